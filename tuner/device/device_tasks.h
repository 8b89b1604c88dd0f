// What the GPU's worker does for the tuner: check a kernel, time one, time two in turn. Run in the child process only.
// A CudaFault that is sticky means that the process must end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "tuner/device/device_context.h"
#include "tuner/device/problem_inputs.h"

namespace kw::tuner {

/// Kernels loaded last, by the hash of their cubin: a check, a measurement and a duel load a cubin once.
class ModuleCache {
 public:
  explicit ModuleCache(const DriverApi& driver) : driver_(driver) {}
  CudaResult<std::shared_ptr<LoadedModule>> get(const std::string& cubin);

 private:
  const DriverApi& driver_;
  std::list<std::pair<std::string, std::shared_ptr<LoadedModule>>> modules_;
};

/// Page-locked host memory for two pieces of an output; the first use makes it.
class HostStaging {
 public:
  static constexpr std::size_t kPieceBytes = 16 << 20;
  explicit HostStaging(const DriverApi& driver) : driver_(driver) {}
  ~HostStaging();
  HostStaging(const HostStaging&) = delete;
  HostStaging& operator=(const HostStaging&) = delete;
  CudaResult<std::byte*> piece(int which);

 private:
  const DriverApi& driver_;
  void* memory_ = nullptr;
};

/// Everything that lives as long as the worker.
struct DeviceTasks {
  explicit DeviceTasks(DeviceContext& opened)
      : device(opened),
        modules(opened.driver),
        staging(opened.driver),
        verify_inputs(opened, AlignMode::kExact),
        measure_inputs(opened, AlignMode::kAllocator) {}
  DeviceContext& device;
  ModuleCache modules;
  HostStaging staging;
  ProblemInputs verify_inputs, measure_inputs;
  bool uses_memory_guards = true;
};

/// Buffers that a kernel writes: outputs (poisoned on request) and workspaces.
struct WrittenBuffers {
  std::map<std::string, GuardedBuffer> outputs, workspaces;
  std::map<std::pair<std::size_t, std::string>, GuardedBuffer> tables;  ///< of pointers, by input set and list of tensors
};
CudaResult<WrittenBuffers> make_written_buffers(DeviceContext& device, const KernelJob& job, const std::vector<TensorStorage>& tensors,
                                                AlignMode mode);
/// Makes the tables of pointers of every list of tensors, for each set of inputs.
CudaResult<void> make_tables(DeviceContext& device, const std::vector<TensorStorage>& tensors, const ProblemInputs& inputs,
                             WrittenBuffers& written);
/// The first damaged guard of any buffer, in words; empty when all are whole.
CudaResult<std::string> first_damage(const WrittenBuffers& written, const ProblemInputs* inputs, const std::vector<TensorStorage>& tensors);
LaunchPointers pointers_of(const DriverApi& driver, const WrittenBuffers& written, const ProblemInputs& inputs, std::size_t set,
                           const std::vector<TensorStorage>& tensors);

CudaResult<void> poison_outputs(const WrittenBuffers& written);
/// Where the tensor's results lie: in the first input set where it is read too.
const GuardedBuffer& output_buffer(const WrittenBuffers& written, const ProblemInputs& inputs, const TensorStorage& tensor);

/// Where the results of a launch lie, for every tensor that is written.
using OutputOf = std::function<const GuardedBuffer&(const TensorStorage&)>;
/// Compares the results of two launches with the reference values (the same one twice: bits are not compared).
CudaResult<VerifyOutcome> judge_outputs(DeviceTasks& tasks, const std::vector<TensorStorage>& tensors,
                                        const std::vector<OutputSamples>& samples, const OutputOf& first, const OutputOf& second);

/// Makes the inputs of a job's problem; the slow part of a new problem, under its own time limit.
CudaResult<void> prepare_verify(DeviceTasks& tasks, const KernelJob& job, const std::vector<InputFill>& fills);
CudaResult<void> prepare_measure(DeviceTasks& tasks, const KernelJob& job, const std::vector<InputFill>& fills, const Protocol& protocol);

CudaResult<VerifyOutcome> verify_on_device(DeviceTasks& tasks, const KernelJob& job, const std::vector<InputFill>& fills,
                                           const std::vector<OutputSamples>& samples);
CudaResult<MeasureOutcome> measure_on_device(DeviceTasks& tasks, const KernelJob& job, const std::vector<InputFill>& fills,
                                             const std::vector<OutputSamples>& samples, const Protocol& protocol);
CudaResult<DuelOutcome> duel_on_device(DeviceTasks& tasks, const KernelJob& a, const KernelJob& b, const std::vector<InputFill>& fills,
                                       const Protocol& protocol);

}  // namespace kw::tuner
