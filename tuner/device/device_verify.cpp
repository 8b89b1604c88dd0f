// The device's side of a check (protocol v1): a launch on other inputs, two on the same inputs, poisoned outputs, guard bands, comparison
// with the reference values. See device_tasks.h.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "generator/base/hash.h"
#include "tuner/device/compare_output.h"
#include "tuner/device/device_tasks.h"

namespace kw::tuner {
namespace {

constexpr std::size_t kMaxModules = 16;
constexpr int kWorkspaceAlignBytes = kAllocationAlignBytes;

CudaResult<void> launch_all(LoadedModule& module, const std::vector<EvaluatedLaunch>& launches, CudaStream stream) {
  for (const EvaluatedLaunch& launch : launches) KW_CUDA_TRY_VOID(module.launch(launch, stream));
  return {};
}

/// Passes both launches' results (one and the same after a single launch) through the staging memory to the comparison.
CudaResult<void> compare(DeviceContext& device, HostStaging& staging, const GuardedBuffer& first, const GuardedBuffer& second,
                         OutputComparison& comparison) {
  const DriverApi& driver = device.driver;
  constexpr std::size_t piece_bytes = HostStaging::kPieceBytes;
  for (std::size_t begin = 0; begin < first.num_bytes(); begin += piece_bytes) {
    const std::size_t count = std::min(piece_bytes, first.num_bytes() - begin);
    KW_CUDA_TRY(std::byte* const one, staging.piece(0));
    KW_CUDA_TRY(std::byte* const two, staging.piece(1));
    if (&first != &second) KW_CUDA(driver, "cuMemcpyDtoHAsync", driver.copy_to_host(one, first.data() + begin, count, device.stream));
    KW_CUDA(driver, "cuMemcpyDtoHAsync", driver.copy_to_host(two, second.data() + begin, count, device.stream));
    KW_CUDA(driver, "cuStreamSynchronize", driver.stream_synchronize(device.stream));
    comparison.add(begin, std::span(&first == &second ? two : one, count), std::span(two, count));
  }
  return {};
}

void add_comparison(const OutputComparison& comparison, VerifyOutcome& outcome, double& squared_error, double& squared_reference) {
  outcome.max_error_over_bound = std::max(outcome.max_error_over_bound, comparison.max_error_over_bound());
  outcome.is_bit_stable = outcome.is_bit_stable && comparison.is_bit_stable();
  squared_error += comparison.squared_error();
  squared_reference += comparison.squared_reference();
  if (const std::string verdict = comparison.verdict(); !verdict.empty() && outcome.error.empty()) {
    outcome.status = TrialStatus::kWrongResult;
    outcome.error = verdict;
  }
}

/// Two launches on the inputs, after one on other numbers in the same buffers; the results of the first of the two are kept aside.
///   A kernel that remembers (what it made of these addresses, that it ran before) shows the other numbers' results, or none. One that
///   relies on what the output held finds those results in the first launch and poison in the second: the two differ.
CudaResult<std::map<std::string, GuardedBuffer>> run_twice(DeviceTasks& tasks, LoadedModule& module,
                                                           const std::vector<EvaluatedLaunch>& launches, const WrittenBuffers& written,
                                                           const std::vector<TensorStorage>& tensors) {
  DeviceContext& device = tasks.device;
  std::map<std::string, GuardedBuffer> first_results;
  KW_CUDA_TRY_VOID(tasks.verify_inputs.fill_with_others());
  KW_CUDA_TRY_VOID(poison_outputs(written));
  KW_CUDA_TRY_VOID(launch_all(module, launches, device.stream));
  KW_CUDA(device.driver, "launch on other inputs", device.driver.stream_synchronize(device.stream));
  KW_CUDA_TRY_VOID(tasks.verify_inputs.refill());
  KW_CUDA_TRY_VOID(launch_all(module, launches, device.stream));
  KW_CUDA(device.driver, "first launch", device.driver.stream_synchronize(device.stream));
  for (const TensorStorage& tensor : tensors) {
    if (!tensor.is_written()) continue;
    KW_CUDA_TRY(GuardedBuffer kept,
                GuardedBuffer::allocate(device.driver, device.stream, tensor.num_bytes, kAllocationAlignBytes, kOutputGuardByte));
    if (tensor.num_bytes > 0) {
      KW_CUDA(device.driver, "cuMemcpyDtoDAsync",
              device.driver.copy_on_device(kept.data(), output_buffer(written, tasks.verify_inputs, tensor).data(), tensor.num_bytes,
                                           device.stream));
    }
    first_results.emplace(tensor.name, std::move(kept));
  }
  KW_CUDA_TRY_VOID(tasks.verify_inputs.refill(/*only_inout=*/true));
  KW_CUDA_TRY_VOID(poison_outputs(written));
  KW_CUDA_TRY_VOID(launch_all(module, launches, device.stream));
  KW_CUDA(device.driver, "second launch", device.driver.stream_synchronize(device.stream));
  return first_results;
}

}  // namespace

HostStaging::~HostStaging() {
  if (memory_ != nullptr) driver_.host_free(memory_);
}

CudaResult<std::byte*> HostStaging::piece(int which) {
  if (memory_ == nullptr) KW_CUDA(driver_, "cuMemHostAlloc", driver_.host_allocate(&memory_, 2 * kPieceBytes, 0));
  return static_cast<std::byte*>(memory_) + static_cast<std::size_t>(which) * kPieceBytes;
}

CudaResult<std::shared_ptr<LoadedModule>> ModuleCache::get(const std::string& cubin) {
  const std::string key = hash_hex(cubin);
  for (auto entry = modules_.begin(); entry != modules_.end(); ++entry) {
    if (entry->first != key) continue;
    modules_.splice(modules_.begin(), modules_, entry);
    return modules_.front().second;
  }
  KW_CUDA_TRY(std::shared_ptr<LoadedModule> loaded, LoadedModule::load(driver_, cubin));
  modules_.emplace_front(key, loaded);
  if (modules_.size() > kMaxModules) modules_.pop_back();
  return loaded;
}

CudaResult<WrittenBuffers> make_written_buffers(DeviceContext& device, const KernelJob& job, const std::vector<TensorStorage>& tensors,
                                                AlignMode mode) {
  WrittenBuffers written;
  for (const TensorStorage& tensor : tensors) {
    if (tensor.is_read()) continue;
    KW_CUDA_TRY(GuardedBuffer buffer,
                GuardedBuffer::allocate(device.driver, device.stream, tensor.num_bytes, buffer_align(tensor, mode), kOutputGuardByte));
    written.outputs.emplace(tensor.name, std::move(buffer));
  }
  KW_DEVICE_TRY(const auto sizes, workspace_bytes(job));
  for (const PlanWorkspace& workspace : job.plan.workspaces) {
    KW_CUDA_TRY(GuardedBuffer buffer,
                GuardedBuffer::allocate(device.driver, device.stream, sizes.at(workspace.name), kWorkspaceAlignBytes, kOutputGuardByte));
    KW_CUDA_TRY_VOID(buffer.fill(workspace.is_zeroed_once ? 0 : kPoisonByte));
    written.workspaces.emplace(workspace.name, std::move(buffer));
  }
  return written;
}

CudaResult<void> make_tables(DeviceContext& device, const std::vector<TensorStorage>& tensors, const ProblemInputs& inputs,
                             WrittenBuffers& written) {
  for (const TensorStorage& tensor : tensors) {
    for (std::size_t set = 0; tensor.is_list && set < std::max<std::size_t>(inputs.num_sets(), 1); ++set) {
      const GuardedBuffer& elements = tensor.is_read() ? inputs.buffer(set, tensor.name) : written.outputs.at(tensor.name);
      const std::vector<std::uint64_t> table = list_pointers(tensor, elements.data());
      const std::size_t num_bytes = table.size() * sizeof table[0];
      KW_CUDA_TRY(GuardedBuffer buffer,
                  GuardedBuffer::allocate(device.driver, device.stream, num_bytes, kAllocationAlignBytes, kOutputGuardByte));
      if (num_bytes > 0) {
        KW_CUDA(device.driver, "cuMemcpyHtoDAsync", device.driver.copy_to_device(buffer.data(), table.data(), num_bytes, device.stream));
        KW_CUDA(device.driver, "cuStreamSynchronize", device.driver.stream_synchronize(device.stream));
      }
      written.tables.emplace(std::pair(set, tensor.name), std::move(buffer));
    }
  }
  return {};
}

const GuardedBuffer& output_buffer(const WrittenBuffers& written, const ProblemInputs& inputs, const TensorStorage& tensor) {
  return tensor.is_read() ? inputs.buffer(0, tensor.name) : written.outputs.at(tensor.name);
}

CudaResult<void> poison_outputs(const WrittenBuffers& written) {
  for (const auto& [name, buffer] : written.outputs) KW_CUDA_TRY_VOID(buffer.fill(kPoisonByte));
  return {};
}

CudaResult<std::string> first_damage(const WrittenBuffers& written, const ProblemInputs* inputs,
                                     const std::vector<TensorStorage>& tensors) {
  const auto look = [](const std::string& name, const GuardedBuffer& buffer) -> CudaResult<std::string> {
    KW_CUDA_TRY(const std::optional<std::int64_t> damage, buffer.damaged_guard());
    if (!damage) return std::string();
    return fmt::format("{}: byte {} was written: outside its {} bytes", name, *damage, buffer.num_bytes());
  };
  for (const auto* table : {&written.outputs, &written.workspaces}) {
    for (const auto& [name, buffer] : *table) {
      KW_CUDA_TRY(std::string damage, look(name, buffer));
      if (!damage.empty()) return damage;
    }
  }
  for (const TensorStorage& tensor : tensors) {
    if (inputs == nullptr || !tensor.is_read()) continue;
    KW_CUDA_TRY(std::string damage, look(tensor.name, inputs->buffer(0, tensor.name)));
    if (!damage.empty()) return damage;
  }
  return std::string();
}

LaunchPointers pointers_of(const DriverApi& driver, const WrittenBuffers& written, const ProblemInputs& inputs, std::size_t set,
                           const std::vector<TensorStorage>& tensors) {
  LaunchPointers pointers;
  pointers.encode_tensor_map = tensor_map_encoder(driver);
  for (const TensorStorage& tensor : tensors) {
    pointers.tensors[tensor.name] = tensor.is_list     ? written.tables.at({set, tensor.name}).data()
                                    : tensor.is_read() ? inputs.buffer(set, tensor.name).data()
                                                       : written.outputs.at(tensor.name).data();
  }
  for (const auto& [name, buffer] : written.workspaces) pointers.workspaces[name] = buffer.num_bytes() == 0 ? 0 : buffer.data();
  return pointers;
}

CudaResult<VerifyOutcome> judge_outputs(DeviceTasks& tasks, const std::vector<TensorStorage>& tensors,
                                        const std::vector<OutputSamples>& samples, const OutputOf& first, const OutputOf& second) {
  VerifyOutcome outcome;
  outcome.is_bit_stable = true;
  double squared_error = 0, squared_reference = 0;
  const OutputSamples no_samples;
  for (const TensorStorage& tensor : tensors) {
    if (!tensor.is_written()) continue;
    const auto found =
        std::find_if(samples.begin(), samples.end(), [&](const OutputSamples& entry) { return entry.tensor == tensor.name; });
    OutputComparison comparison(tensor, found == samples.end() ? no_samples : *found);
    KW_CUDA_TRY_VOID(compare(tasks.device, tasks.staging, first(tensor), second(tensor), comparison));
    add_comparison(comparison, outcome, squared_error, squared_reference);
  }
  outcome.relative_norm_error = squared_reference > 0 ? std::sqrt(squared_error / squared_reference) : std::sqrt(squared_error);
  return outcome;
}

CudaResult<void> prepare_verify(DeviceTasks& tasks, const KernelJob& job, const std::vector<InputFill>& fills) {
  KW_DEVICE_TRY(const std::vector<TensorStorage> tensors, tensor_storages(job.plan, job.problem));
  return tasks.verify_inputs.prepare(tensors, fills, 1);
}

CudaResult<VerifyOutcome> verify_on_device(DeviceTasks& tasks, const KernelJob& job, const std::vector<InputFill>& fills,
                                           const std::vector<OutputSamples>& samples) {
  DeviceContext& device = tasks.device;
  KW_DEVICE_TRY(const std::vector<TensorStorage> tensors, tensor_storages(job.plan, job.problem));
  KW_CUDA_TRY_VOID(tasks.verify_inputs.prepare(tensors, fills, 1));
  KW_CUDA_TRY(WrittenBuffers written, make_written_buffers(device, job, tensors, AlignMode::kExact));
  KW_CUDA_TRY_VOID(make_tables(device, tensors, tasks.verify_inputs, written));
  KW_DEVICE_TRY(const std::vector<EvaluatedLaunch> launches,
                evaluate_launches(job, pointers_of(device.driver, written, tasks.verify_inputs, 0, tensors)));
  KW_CUDA_TRY(const std::shared_ptr<LoadedModule> module, tasks.modules.get(job.cubin));
  KW_CUDA_TRY(const auto first_results, run_twice(tasks, *module, launches, written, tensors));

  if (tasks.uses_memory_guards) {
    VerifyOutcome outcome;
    outcome.is_bit_stable = true;
    KW_CUDA_TRY(outcome.error, first_damage(written, &tasks.verify_inputs, tensors));
    if (!outcome.error.empty()) {
      outcome.status = TrialStatus::kOutOfBounds;
      tasks.verify_inputs.release();  // their guards are spoilt
      return outcome;
    }
  }
  return judge_outputs(
      tasks, tensors, samples, [&](const TensorStorage& tensor) -> const GuardedBuffer& { return first_results.at(tensor.name); },
      [&](const TensorStorage& tensor) -> const GuardedBuffer& { return output_buffer(written, tasks.verify_inputs, tensor); });
}

}  // namespace kw::tuner
