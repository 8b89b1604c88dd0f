// The device's side of timing kernels (protocol v1): buffers, launches over the input sets, the rounds of timed_graph.h, and a check of
// what these launches wrote. A duel alternates two such graphs. See device_tasks.h. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tuner/device/device_tasks.h"
#include "tuner/device/timed_graph.h"
#include "tuner/measure/statistics.h"

namespace kw::tuner {
namespace {

constexpr int kDuelRoundFactor = 2;  // a duel has more rounds than a measurement: its interval decides

/// Enough sets that the inputs of one turn exceed the factor times L2.
std::size_t count_input_sets(const DeviceContext& device, const std::vector<TensorStorage>& tensors, const Protocol& protocol) {
  std::size_t set_bytes = 0;
  for (const TensorStorage& tensor : tensors) set_bytes += tensor.is_read() ? tensor.num_bytes : 0;
  if (!protocol.is_cold_l2 || set_bytes == 0) return 1;
  const double wanted_bytes = protocol.rotation_l2_factor * static_cast<double>(device.info.limits.l2_bytes);
  const auto num_sets = static_cast<std::size_t>(std::ceil(wanted_bytes / static_cast<double>(set_bytes)));
  return std::clamp<std::size_t>(num_sets, 1, static_cast<std::size_t>(std::max(1, protocol.max_input_sets)));
}

/// A kernel ready to be timed: its buffers and its graph.
struct TimedKernel {
  std::shared_ptr<LoadedModule> module;
  WrittenBuffers written;
  std::vector<std::vector<EvaluatedLaunch>> sets;
  TimedGraph timed;
};

/// `outputs_of`: write to the outputs of that kernel. Where buffers lie in DRAM moves a time by half a percent (seen on an H200), so
/// the two sides of a duel write to the same ones.
CudaResult<TimedKernel> make_timed_kernel(DeviceTasks& tasks, const KernelJob& job, const std::vector<TensorStorage>& tensors,
                                          const Protocol& protocol, const Stopwatch& watch, const WrittenBuffers* outputs_of = nullptr) {
  DeviceContext& device = tasks.device;
  TimedKernel kernel;
  KW_CUDA_TRY(kernel.module, tasks.modules.get(job.cubin));
  KW_CUDA_TRY(kernel.written, make_written_buffers(device, job, tensors, AlignMode::kAllocator));
  KW_CUDA_TRY_VOID(make_tables(device, tensors, tasks.measure_inputs, kernel.written));
  for (std::size_t set = 0; set < tasks.measure_inputs.num_sets(); ++set) {
    LaunchPointers pointers = pointers_of(device.driver, kernel.written, tasks.measure_inputs, set, tensors);
    if (outputs_of != nullptr) {
      for (const TensorStorage& tensor : tensors) {
        if (!tensor.is_read() && !tensor.is_list) pointers.tensors[tensor.name] = outputs_of->outputs.at(tensor.name).data();
      }
    }
    KW_DEVICE_TRY(auto launches, evaluate_launches(job, pointers));
    kernel.sets.push_back(std::move(launches));
  }
  // The graph ends with set 0, whose reference values are known.
  if (!kernel.sets.empty()) std::rotate(kernel.sets.begin(), kernel.sets.begin() + 1, kernel.sets.end());
  if (kernel.sets.empty() || kernel.sets.front().empty())
    return tl::unexpected<CudaFault>(CudaFault{-2, "nothing to time: every grid of this problem is empty"});
  const auto enqueue = [&](std::size_t set) -> CudaResult<void> {
    for (const EvaluatedLaunch& launch : kernel.sets[set]) KW_CUDA_TRY_VOID(kernel.module->launch(launch, device.stream));
    return {};
  };
  KW_CUDA_TRY(kernel.timed, make_timed_graph(device, enqueue, kernel.sets.size(), protocol, watch));
  return kernel;
}

/// What is wrong with the results of the launches that were timed; empty: nothing. A kernel that is right when it is checked and leaves
/// work out when it is timed is told by this alone, where it stays above the floor.
CudaResult<std::string> check_timed_launches(DeviceTasks& tasks, const TimedKernel& kernel, const std::vector<TensorStorage>& tensors,
                                             const std::vector<OutputSamples>& samples) {
  const DriverApi& driver = tasks.device.driver;
  KW_CUDA_TRY_VOID(tasks.measure_inputs.refill());  // set 0: an earlier kernel may have written to it
  KW_CUDA_TRY_VOID(poison_outputs(kernel.written));
  const bool updates_in_place =
      std::any_of(tensors.begin(), tensors.end(), [](const TensorStorage& tensor) { return tensor.role == TensorRole::kInOut; });
  if (updates_in_place) {  // the graph would do so many times
    for (const EvaluatedLaunch& launch : kernel.sets.back()) KW_CUDA_TRY_VOID(kernel.module->launch(launch, tasks.device.stream));
  } else {
    KW_CUDA_TRY_VOID(kernel.timed.graph->replay());
  }
  KW_CUDA(driver, "launches after the rounds", driver.stream_synchronize(tasks.device.stream));
  const OutputOf output = [&](const TensorStorage& tensor) -> const GuardedBuffer& {
    return output_buffer(kernel.written, tasks.measure_inputs, tensor);
  };
  KW_CUDA_TRY(const VerifyOutcome outcome, judge_outputs(tasks, tensors, samples, output, output));
  return outcome.error;
}

}  // namespace

CudaResult<void> prepare_measure(DeviceTasks& tasks, const KernelJob& job, const std::vector<InputFill>& fills, const Protocol& protocol) {
  KW_DEVICE_TRY(const std::vector<TensorStorage> tensors, tensor_storages(job.plan, job.problem));
  return tasks.measure_inputs.prepare(tensors, fills, count_input_sets(tasks.device, tensors, protocol));
}

CudaResult<MeasureOutcome> measure_on_device(DeviceTasks& tasks, const KernelJob& job, const std::vector<InputFill>& fills,
                                             const std::vector<OutputSamples>& samples, const Protocol& protocol) {
  DeviceContext& device = tasks.device;
  KW_DEVICE_TRY(const std::vector<TensorStorage> tensors, tensor_storages(job.plan, job.problem));
  KW_CUDA_TRY_VOID(prepare_measure(tasks, job, fills, protocol));
  KW_CUDA_TRY(const std::unique_ptr<Stopwatch> watch, Stopwatch::create(device));
  KW_CUDA_TRY(TimedKernel kernel, make_timed_kernel(tasks, job, tensors, protocol, *watch));
  KW_CUDA_TRY(MeasureOutcome outcome, time_rounds(device, kernel.timed, *watch, protocol));
  if (tasks.uses_memory_guards) {
    KW_CUDA_TRY(outcome.error, first_damage(kernel.written, nullptr, tensors));
    if (!outcome.error.empty()) outcome.status = TrialStatus::kOutOfBounds;
  }
  if (outcome.status == TrialStatus::kOk && job.floor_us > 0 && outcome.median_us < job.floor_us) {
    outcome.status = TrialStatus::kUnderFloor;
    outcome.error = fmt::format("median {:.3f} us: under the floor of {:.3f} us that traffic and peak rate set: something is wrong",
                                outcome.median_us, job.floor_us);
  }
  if (outcome.status == TrialStatus::kOk) {
    KW_CUDA_TRY(const std::string wrong, check_timed_launches(tasks, kernel, tensors, samples));
    if (!wrong.empty()) {
      outcome.status = TrialStatus::kWrongResult;
      outcome.error = fmt::format("right when it was checked, wrong when it was timed: {}", wrong);
    }
  }
  return outcome;
}

CudaResult<DuelOutcome> duel_on_device(DeviceTasks& tasks, const KernelJob& a, const KernelJob& b, const std::vector<InputFill>& fills,
                                       const Protocol& protocol) {
  DeviceContext& device = tasks.device;
  KW_DEVICE_TRY(const std::vector<TensorStorage> tensors, tensor_storages(a.plan, a.problem));
  KW_DEVICE_TRY(const std::vector<TensorStorage> tensors_b, tensor_storages(b.plan, b.problem));
  const auto is_same = [](const TensorStorage& x, const TensorStorage& y) {
    return x.name == y.name && x.num_bytes == y.num_bytes && x.role == y.role;
  };
  if (!std::equal(tensors.begin(), tensors.end(), tensors_b.begin(), tensors_b.end(), is_same)) {
    return tl::unexpected<CudaFault>(CudaFault{-2, fmt::format("{} and {}: a duel needs two kernels of one problem", a.label, b.label)});
  }
  KW_CUDA_TRY_VOID(prepare_measure(tasks, a, fills, protocol));
  KW_CUDA_TRY(const std::unique_ptr<Stopwatch> watch, Stopwatch::create(device));
  KW_CUDA_TRY(TimedKernel first, make_timed_kernel(tasks, a, tensors, protocol, *watch));
  KW_CUDA_TRY(TimedKernel second, make_timed_kernel(tasks, b, tensors, protocol, *watch, &first.written));
  KW_CUDA_TRY_VOID(warm_up(first.timed, *watch, protocol.warmup_ms / 2));
  KW_CUDA_TRY_VOID(warm_up(second.timed, *watch, protocol.warmup_ms / 2));

  DuelOutcome outcome;
  DeviceState before, after;
  std::uint64_t reasons = 0;
  std::vector<double> ratios;
  const int num_rounds = protocol.num_rounds * kDuelRoundFactor;
  for (int round = 0; round < num_rounds; ++round) {
    KW_CUDA_TRY(const double a_us, run_round(device, first.timed, *watch, protocol, reasons, round == 0 ? &before : nullptr));
    KW_CUDA_TRY(const double b_us, run_round(device, second.timed, *watch, protocol, reasons, round == num_rounds - 1 ? &after : nullptr));
    if (round == 0) continue;
    outcome.a_us.push_back(a_us);
    outcome.b_us.push_back(b_us);
    ratios.push_back(b_us / a_us);
  }
  const RatioInterval interval = bootstrap_interval(ratios);
  outcome.ratio_median = interval.median;
  outcome.ratio_low = interval.low;
  outcome.ratio_high = interval.high;
  outcome.is_dirty = !disturbance(before, after, reasons).empty();
  return outcome;
}

}  // namespace kw::tuner
