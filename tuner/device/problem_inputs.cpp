// See problem_inputs.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/device/problem_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "generator/base/hash.h"
#include "tuner/verify/random_input.h"

namespace kw::tuner {
namespace {

constexpr unsigned int kFillThreads = 256;
constexpr std::int64_t kMaxFillCtas = 4096;
constexpr std::uint64_t kSetSeedStep = 0x9e3779b97f4a7c15ull;

std::string key_of(const std::vector<TensorStorage>& tensors, const std::map<std::string, InputFill>& fills, std::size_t num_sets) {
  KeyHasher hasher;
  hasher.add("sets", std::to_string(num_sets));
  for (const TensorStorage& tensor : tensors) {
    const InputFill& fill = fills.at(tensor.name);
    hasher.add(tensor.name, fmt::format("{} {} {} {} {} {} {:a} {:a} {} {}", to_text(tensor.dtype), tensor.num_elements, tensor.align_bytes,
                                        to_text(tensor.role), to_text(fill.dtype), static_cast<int>(fill.kind), fill.low, fill.high,
                                        fill.seed, fill.num_elements));
  }
  return hasher.hex();
}

template <typename T>
std::vector<std::byte> bytes_of(T value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

}  // namespace

int buffer_align(const TensorStorage& tensor, AlignMode mode) {
  constexpr int kVectorBytes = 16;  // the widest access of a thread
  return mode == AlignMode::kAllocator && tensor.align_bytes >= kVectorBytes ? kAllocationAlignBytes : tensor.align_bytes;
}

void ProblemInputs::release() {
  key_.clear();
  sets_.clear();
  host_images_.clear();
}

CudaResult<void> ProblemInputs::prepare(const std::vector<TensorStorage>& tensors, const std::vector<InputFill>& fills,
                                        std::size_t num_sets) {
  std::vector<TensorStorage> read;
  std::map<std::string, InputFill> by_name;
  for (const InputFill& fill : fills) by_name[fill.tensor] = fill;
  for (const TensorStorage& tensor : tensors) {
    if (!tensor.is_read()) continue;
    if (!by_name.contains(tensor.name))
      return tl::unexpected<CudaFault>(CudaFault{-2, fmt::format("{}: no description of how to fill this input", tensor.name)});
    read.push_back(tensor);
  }
  const std::string key = key_of(read, by_name, num_sets);
  if (key == key_) return {};
  release();
  tensors_ = std::move(read);
  fills_ = std::move(by_name);
  for (std::size_t set = 0; set < num_sets; ++set) {
    sets_.emplace_back();
    for (const TensorStorage& tensor : tensors_) {
      KW_CUDA_TRY(GuardedBuffer buffer,
                  GuardedBuffer::allocate(device_.driver, device_.stream, tensor.num_bytes, buffer_align(tensor, mode_), kPoisonByte));
      KW_CUDA_TRY_VOID(fill(tensor, fills_.at(tensor.name), buffer, set));
      sets_.back().emplace(tensor.name, std::move(buffer));
    }
  }
  KW_CUDA(device_.driver, "cuStreamSynchronize", device_.driver.stream_synchronize(device_.stream));
  key_ = key;
  return {};
}

CudaResult<void> ProblemInputs::refill(bool only_inout) {
  for (const TensorStorage& tensor : tensors_) {
    if (only_inout && !tensor.is_written()) continue;
    KW_CUDA_TRY_VOID(fill(tensor, fills_.at(tensor.name), sets_.front().at(tensor.name), 0));
  }
  return {};
}

CudaResult<void> ProblemInputs::fill_with_others() {
  for (const TensorStorage& tensor : tensors_) {
    KW_CUDA_TRY_VOID(fill(tensor, other_fill(fills_.at(tensor.name)), sets_.front().at(tensor.name), 0));
  }
  return {};
}

CudaResult<void> ProblemInputs::fill(const TensorStorage& tensor, const InputFill& fill, const GuardedBuffer& buffer, std::size_t set) {
  if (tensor.num_elements == 0) return {};
  if (device_.fill_kernels != nullptr) {
    InputFill of_set = fill;
    of_set.seed += set * kSetSeedStep;
    return fill_on_device(tensor, of_set, buffer);
  }
  // Made on the host: the other sets are other memory with the same numbers, which is as cold.
  if (set > 0) {
    KW_CUDA(device_.driver, "cuMemcpyDtoDAsync",
            device_.driver.copy_on_device(buffer.data(), sets_.front().at(tensor.name).data(), tensor.num_bytes, device_.stream));
    return {};
  }
  const std::string& image = host_image(tensor, fill);
  KW_CUDA(device_.driver, "cuMemcpyHtoDAsync", device_.driver.copy_to_device(buffer.data(), image.data(), image.size(), device_.stream));
  return {};
}

CudaResult<void> ProblemInputs::fill_on_device(const TensorStorage& tensor, const InputFill& fill, const GuardedBuffer& buffer) const {
  EvaluatedLaunch launch;
  launch.kernel = fill_kernel_name(tensor.dtype);
  const std::int64_t num_ctas = std::min<std::int64_t>(kMaxFillCtas, (tensor.num_elements + kFillThreads - 1) / kFillThreads);
  launch.grid = {static_cast<unsigned int>(num_ctas), 1, 1};
  launch.block = {kFillThreads, 1, 1};
  launch.cluster = {1, 1, 1};
  launch.parameter_names = {"out", "num_elements", "kind", "low", "high", "seed", "num_sorted"};
  launch.parameters = {bytes_of(buffer.data()),    bytes_of(tensor.num_elements), bytes_of(static_cast<std::int32_t>(fill.kind)),
                       bytes_of(fill.low),         bytes_of(fill.high),           bytes_of(fill.seed),
                       bytes_of(fill.num_elements)};
  return device_.fill_kernels->launch(launch, device_.stream);
}

const std::string& ProblemInputs::host_image(const TensorStorage& tensor, const InputFill& fill) {
  std::string& image = host_images_[{tensor.name, fill.seed}];
  if (!image.empty()) return image;
  image.resize(tensor.num_bytes);
  const auto num_threads = static_cast<std::int64_t>(std::clamp(std::thread::hardware_concurrency(), 1u, 16u));
  const std::int64_t per_thread = (tensor.num_elements + num_threads - 1) / num_threads;
  std::vector<std::thread> threads;
  for (std::int64_t begin = 0; begin < tensor.num_elements; begin += per_thread) {
    threads.emplace_back([&, begin] {
      encode_input(fill, begin, std::min(begin + per_thread, tensor.num_elements), reinterpret_cast<std::byte*>(image.data()));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return image;
}

}  // namespace kw::tuner
