// See device_baseline.h. A status of the library is an outcome of the algorithm, unless CUDA itself is at fault behind it.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/device/device_baseline.h"

#include <fmt/format.h>

#include <algorithm>

#include "tuner/device/timed_graph.h"

namespace kw::tuner {
namespace {

/// The buffers of a call: the inputs that our kernels are timed with, outputs and workspace of its own.
struct CallBuffers {
  std::vector<TensorStorage> tensors;
  WrittenBuffers written;
  std::unique_ptr<LibraryCall> call;
};

Result<LibraryCall::Alignments> alignments_of(const std::vector<TensorStorage>& tensors, const LibraryMatmul& matmul) {
  const auto align_of = [&](const std::string& name) -> Result<std::uint32_t> {
    for (const TensorStorage& tensor : tensors)
      if (tensor.name == name) return static_cast<std::uint32_t>(buffer_align(tensor, AlignMode::kAllocator));
    return fail(Stage::kDevice, Code::kInternal, fmt::format("{}: the plan has no such tensor", name));
  };
  LibraryCall::Alignments alignments;
  KW_TRY(alignments.first, align_of(matmul.first.tensor));
  KW_TRY(alignments.second, align_of(matmul.second.tensor));
  KW_TRY(alignments.out, align_of(matmul.out.tensor));
  return alignments;
}

CudaResult<CallBuffers> make_call(DeviceTasks& tasks, const CublasLt& library, const BaselineJob& job, const std::vector<InputFill>& fills,
                                  const Protocol& protocol) {
  CallBuffers buffers;
  KW_DEVICE_TRY(buffers.tensors, tensor_storages(job.problem.plan, job.problem.problem));
  KW_CUDA_TRY_VOID(prepare_measure(tasks, job.problem, fills, protocol));
  KW_CUDA_TRY(buffers.written, make_written_buffers(tasks.device, job.problem, buffers.tensors, AlignMode::kAllocator));
  KW_DEVICE_TRY(const LibraryCall::Alignments alignments, alignments_of(buffers.tensors, job.matmul));
  KW_CUDA_TRY(buffers.call, LibraryCall::create(library, job.matmul, alignments, job.workspace_bytes));
  return buffers;
}

LibraryPointers pointers_of_set(const DeviceTasks& tasks, const CallBuffers& buffers, const LibraryMatmul& matmul, std::size_t set) {
  LibraryPointers pointers;
  pointers.first = tasks.measure_inputs.buffer(set, matmul.first.tensor).data();
  pointers.second = tasks.measure_inputs.buffer(set, matmul.second.tensor).data();
  pointers.out = buffers.written.outputs.at(matmul.out.tensor).data();
  if (has_bias(matmul.epilogue)) pointers.bias = tasks.measure_inputs.buffer(set, matmul.bias).data();
  return pointers;
}

/// Damage of any guard band, the workspace's included; empty when all are whole.
CudaResult<std::string> damage_of(const DeviceTasks& tasks, const CallBuffers& buffers, const GuardedBuffer& workspace) {
  if (!tasks.uses_memory_guards) return std::string();
  KW_CUDA_TRY(std::string damage, first_damage(buffers.written, &tasks.measure_inputs, buffers.tensors));
  if (!damage.empty()) return damage;
  KW_CUDA_TRY(const std::optional<std::int64_t> byte, workspace.damaged_guard());
  return byte ? fmt::format("workspace: byte {} was written: outside its {} bytes", *byte, workspace.num_bytes()) : std::string();
}

/// One launch on input set 0, which holds the numbers that the reference knows.
CudaResult<VerifyOutcome> check_call(DeviceTasks& tasks, const CallBuffers& buffers, const EnqueueSet& enqueue,
                                     const std::vector<OutputSamples>& samples, const GuardedBuffer& workspace) {
  KW_CUDA_TRY_VOID(tasks.measure_inputs.refill());
  for (const auto& [name, buffer] : buffers.written.outputs) KW_CUDA_TRY_VOID(buffer.fill(kPoisonByte));
  KW_CUDA_TRY_VOID(enqueue(0));
  KW_CUDA(tasks.device.driver, "first launch", tasks.device.driver.stream_synchronize(tasks.device.stream));
  KW_CUDA_TRY(const std::string damage, damage_of(tasks, buffers, workspace));
  if (!damage.empty()) {
    tasks.measure_inputs.release();  // their guards may be the spoilt ones
    VerifyOutcome outcome;
    outcome.status = TrialStatus::kOutOfBounds;
    outcome.error = damage;
    return outcome;
  }
  const OutputOf output = [&](const TensorStorage& tensor) -> const GuardedBuffer& { return buffers.written.outputs.at(tensor.name); };
  return judge_outputs(tasks, buffers.tensors, samples, output, output);
}

CudaResult<BaselineOutcome> check_and_time(DeviceTasks& tasks, const CublasLt& library, const BaselineJob& job,
                                           const BaselineAlgorithm& algorithm, const std::vector<InputFill>& fills,
                                           const std::vector<OutputSamples>& samples, const Protocol& protocol) {
  DeviceContext& device = tasks.device;
  KW_CUDA_TRY(const CallBuffers buffers, make_call(tasks, library, job, fills, protocol));
  KW_CUDA_TRY(const GuardedBuffer workspace,
              GuardedBuffer::allocate(device.driver, device.stream, job.workspace_bytes, kAllocationAlignBytes, kOutputGuardByte));
  const EnqueueSet enqueue = [&](std::size_t set) {
    return buffers.call->enqueue(pointers_of_set(tasks, buffers, job.matmul, set), algorithm, workspace.data(), device.stream);
  };
  BaselineOutcome outcome;
  KW_CUDA_TRY(outcome.verified, check_call(tasks, buffers, enqueue, samples, workspace));
  outcome.status = outcome.verified.status;
  outcome.error = outcome.verified.error;
  if (outcome.status != TrialStatus::kOk) return outcome;
  KW_CUDA_TRY(const std::unique_ptr<Stopwatch> watch, Stopwatch::create(device));
  KW_CUDA_TRY(TimedGraph timed, make_timed_graph(device, enqueue, tasks.measure_inputs.num_sets(), protocol, *watch));
  KW_CUDA_TRY(outcome.measured, time_rounds(device, timed, *watch, protocol));
  KW_CUDA_TRY(outcome.error, damage_of(tasks, buffers, workspace));
  if (!outcome.error.empty()) {
    outcome.status = TrialStatus::kOutOfBounds;
    tasks.measure_inputs.release();
  } else if (job.problem.floor_us > 0 && outcome.measured.median_us < job.problem.floor_us) {
    outcome.status = TrialStatus::kUnderFloor;
    outcome.error =
        fmt::format("median {:.3f} us: under the floor of {:.3f} us: something is wrong", outcome.measured.median_us, job.problem.floor_us);
  }
  return outcome;
}

/// A library's status as the outcome "refused"; the fault of CUDA behind it, where there is one that ends the context.
template <typename Outcome>
CudaResult<Outcome> settled(DeviceTasks& tasks, CudaResult<Outcome> result) {
  if (result || result.error().code != kLibraryFault) return result;
  if (const int code = tasks.device.driver.stream_synchronize(tasks.device.stream); code != 0)
    return tl::unexpected<CudaFault>(cuda_fault(tasks.device.driver, code, result.error().text.c_str()));
  Outcome outcome;
  outcome.status = TrialStatus::kRefused;
  outcome.error = result.error().text;
  return outcome;
}

CudaResult<BaselineList> ask_heuristics(DeviceTasks& tasks, const CublasLt& library, const BaselineJob& job,
                                        const std::vector<InputFill>& fills, const Protocol& protocol) {
  KW_CUDA_TRY(const CallBuffers buffers, make_call(tasks, library, job, fills, protocol));
  BaselineList list;
  KW_CUDA_TRY(list.algorithms, buffers.call->heuristics(pointers_of_set(tasks, buffers, job.matmul, 0), job.max_algorithms));
  list.library = library.file();
  if (list.algorithms.empty()) {
    list.status = TrialStatus::kRefused;
    list.error = "its heuristics have no algorithm for this product";
  }
  return list;
}

}  // namespace

CudaResult<BaselineList> list_on_device(DeviceTasks& tasks, const CublasLt& library, const BaselineJob& job,
                                        const std::vector<InputFill>& fills, const Protocol& protocol) {
  return settled(tasks, ask_heuristics(tasks, library, job, fills, protocol));
}

CudaResult<BaselineOutcome> time_on_device(DeviceTasks& tasks, const CublasLt& library, const BaselineJob& job,
                                           const BaselineAlgorithm& algorithm, const std::vector<InputFill>& fills,
                                           const std::vector<OutputSamples>& samples, const Protocol& protocol) {
  return settled(tasks, check_and_time(tasks, library, job, algorithm, fills, samples, protocol));
}

}  // namespace kw::tuner
