// The evaluator's public face: prepares a program for a problem, deals samples to threads, rounds to the outputs' dtypes.
// Place in the pipeline: tuner/verify asks for the reference of sampled output elements. The work is in block_evaluator.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/spec/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <thread>

#include "generator/spec/evaluator/block_evaluator.h"

namespace kw::generator {

void InputSource::row(const Tensor& tensor, std::span<const std::int64_t> coordinates, int axis, std::span<double> out) const {
  std::vector<std::int64_t> moving(coordinates.begin(), coordinates.end());
  for (double& value : out) {
    value = element(tensor, moving);
    ++moving[static_cast<size_t>(axis)];
  }
}

bool is_within_bound(double out, const ReferenceValue& reference) {
  if (std::isinf(reference.bound)) return true;
  if (std::isnan(reference.value)) return std::isnan(out);
  if (std::isinf(reference.value)) return out == reference.value;
  return std::abs(out - reference.value) <= reference.bound;
}

struct Evaluator::Impl {
  CompiledProgram compiled;
  const InputSource* inputs = nullptr;
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<BlockEvaluator>> idle;  // with their caches, the first thread's last
};

Result<Evaluator> Evaluator::create(const Program& program, const Problem& problem, const InputSource& inputs) {
  auto impl = std::make_shared<Impl>();
  const ScalarReader read_scalar = [&](const Scalar& scalar) { return inputs.scalar(scalar); };
  KW_TRY(impl->compiled, compile_program(program, problem, read_scalar));
  impl->inputs = &inputs;
  Evaluator evaluator;
  evaluator.impl_ = std::move(impl);
  return evaluator;
}

namespace {

struct Chunk {
  std::unique_ptr<BlockEvaluator> evaluator;
  std::span<const std::int64_t> coordinates;
  std::span<ReferenceValue> out;
};

void run_chunk(Chunk& chunk, int target, size_t rank, DType dtype) {
  for (size_t i = 0; i < chunk.out.size() && !chunk.evaluator->failure(); ++i) {
    chunk.evaluator->trim_caches();
    const Bounded value = chunk.evaluator->evaluate_target(target, chunk.coordinates.subspan(i * rank, rank));
    const Bounded rounded = round_to_output(dtype, value);
    chunk.out[i] = {rounded.value, rounded.bound};
  }
}

}  // namespace

Result<std::vector<ReferenceValue>> Evaluator::evaluate(const std::string& output_tensor, std::span<const std::int64_t> coordinates,
                                                        int num_threads) const {
  const CompiledProgram& compiled = impl_->compiled;
  const auto found = compiled.target_ids.find(output_tensor);
  if (found == compiled.target_ids.end() || compiled.targets[static_cast<size_t>(found->second)].tensor == nullptr) {
    return fail(Stage::kSpec, Code::kBadInput, fmt::format("{}: not an output tensor of the program", output_tensor));
  }
  const CompiledTarget& target = compiled.targets[static_cast<size_t>(found->second)];
  const size_t rank = target.extents.size();
  if (rank > 0 && coordinates.size() % rank != 0)
    return fail(Stage::kSpec, Code::kInternal, fmt::format("{}: {} coordinates, rank {}", output_tensor, coordinates.size(), rank));
  for (size_t i = 0; i < coordinates.size(); ++i) {
    if (coordinates[i] < 0 || coordinates[i] >= target.extents[i % rank]) {
      return fail(Stage::kSpec, Code::kBadInput,
                  fmt::format("{}: coordinate {} of axis {} is outside [0, {})", output_tensor, coordinates[i], i % rank,
                              target.extents[i % rank]));
    }
  }
  const size_t num_samples = rank == 0 ? 1 : coordinates.size() / rank;
  std::vector<ReferenceValue> values(num_samples);
  const size_t num_chunks = std::clamp<size_t>(static_cast<size_t>(std::max(num_threads, 1)), 1, std::max<size_t>(num_samples, 1));
  std::vector<Chunk> chunks(num_chunks);
  {
    const std::lock_guard lock(impl_->mutex);
    for (size_t c = 0; c < num_chunks; ++c) {
      const size_t first = num_samples * c / num_chunks, last = num_samples * (c + 1) / num_chunks;
      chunks[c].coordinates = coordinates.subspan(first * rank, (last - first) * rank);
      chunks[c].out = std::span<ReferenceValue>(values).subspan(first, last - first);
      if (impl_->idle.empty()) {
        chunks[c].evaluator = std::make_unique<BlockEvaluator>(compiled, *impl_->inputs);
      } else {
        chunks[c].evaluator = std::move(impl_->idle.back());
        impl_->idle.pop_back();
      }
    }
  }
  std::vector<std::thread> threads;
  for (size_t c = 1; c < num_chunks; ++c) threads.emplace_back([&, c] { run_chunk(chunks[c], found->second, rank, target.tensor->dtype); });
  run_chunk(chunks[0], found->second, rank, target.tensor->dtype);
  for (std::thread& thread : threads) thread.join();
  for (const Chunk& chunk : chunks) {
    if (chunk.evaluator->failure()) return fail(*chunk.evaluator->failure());
  }
  const std::lock_guard lock(impl_->mutex);
  for (size_t c = num_chunks; c-- > 0;) impl_->idle.push_back(std::move(chunks[c].evaluator));
  return values;
}

}  // namespace kw::generator
