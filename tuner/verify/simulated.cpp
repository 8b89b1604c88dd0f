// See simulated.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/verify/simulated.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "simulator/tensor/tensor_map.h"
#include "tuner/device/compare_output.h"
#include "tuner/device/kernel_launch.h"
#include "tuner/verify/random_input.h"

namespace kw::tuner {
namespace {

constexpr std::uint32_t kPersistentClusters = 2;

using Addresses = std::map<std::string, std::uint64_t>;

/// The buffers of one run of the plan in a fresh simulated memory.
struct Buffers {
  Addresses tensors, workspaces;
  Addresses arguments;  ///< what kernels are given: of a list the table of its pointers
};

/// The bytes of an input; nothing for an output.
Result<std::vector<std::byte>> input_bytes(const TensorStorage& tensor, const std::vector<InputFill>& fills) {
  std::vector<std::byte> bytes;
  if (!tensor.is_read()) return bytes;
  const auto fill = std::find_if(fills.begin(), fills.end(), [&](const InputFill& entry) { return entry.tensor == tensor.name; });
  if (fill == fills.end())
    return fail(Stage::kVerify, Code::kInternal, fmt::format("{}: no description of how to fill this input", tensor.name));
  bytes.resize(tensor.num_bytes);
  encode_input(*fill, 0, tensor.num_elements, bytes.data());
  return bytes;
}

Result<Buffers> make_buffers(simulate::Simulation& simulation, const KernelJob& job, const std::vector<TensorStorage>& tensors,
                             const std::vector<InputFill>& fills) {
  Buffers buffers;
  for (const TensorStorage& tensor : tensors) {
    KW_TRY(const std::vector<std::byte> bytes, input_bytes(tensor, fills));
    const simulate::AllocationRole role = tensor.role == TensorRole::kIn    ? simulate::AllocationRole::kInput
                                          : tensor.role == TensorRole::kOut ? simulate::AllocationRole::kOutput
                                                                            : simulate::AllocationRole::kInOut;
    KW_TRY(buffers.tensors[tensor.name], simulation.allocate({.name = tensor.name,
                                                              .num_bytes = tensor.num_bytes,
                                                              .role = role,
                                                              .align_bytes = static_cast<std::uint64_t>(tensor.align_bytes),
                                                              .initial = bytes}));
    buffers.arguments[tensor.name] = buffers.tensors[tensor.name];
    if (!tensor.is_list) continue;
    const std::vector<std::uint64_t> table = list_pointers(tensor, buffers.tensors[tensor.name]);
    const auto table_bytes = std::as_bytes(std::span(table));
    KW_TRY(buffers.arguments[tensor.name], simulation.allocate({.name = tensor.name + " (table)",
                                                                .num_bytes = table_bytes.size(),
                                                                .role = simulate::AllocationRole::kInput,
                                                                .align_bytes = sizeof(std::uint64_t),
                                                                .initial = table_bytes}));
  }
  KW_TRY(const auto sizes, workspace_bytes(job));
  for (const PlanWorkspace& workspace : job.plan.workspaces) {
    const std::size_t num_bytes = sizes.at(workspace.name);
    buffers.workspaces[workspace.name] = 0;
    if (num_bytes == 0) continue;
    const auto role = workspace.is_zeroed_once ? simulate::AllocationRole::kInOut : simulate::AllocationRole::kOutput;
    KW_TRY(buffers.workspaces[workspace.name], simulation.allocate({.name = workspace.name, .num_bytes = num_bytes, .role = role}));
  }
  return buffers;
}

std::vector<InputFill> others_of(const std::vector<InputFill>& fills) {
  std::vector<InputFill> others;
  for (const InputFill& fill : fills) others.push_back(other_fill(fill));
  return others;
}

Status write_inputs(simulate::Simulation& simulation, const std::vector<TensorStorage>& tensors, const std::vector<InputFill>& fills,
                    const Addresses& addresses) {
  for (const TensorStorage& tensor : tensors) {
    KW_TRY(const std::vector<std::byte> bytes, input_bytes(tensor, fills));
    if (!bytes.empty()) simulation.write(addresses.at(tensor.name), bytes);
  }
  return {};
}

Result<TensorMapBytes> encode_simulated(const EvaluatedTensorMap& map) {
  simulate::TensorMap encoded;
  switch (map.dtype) {
    case DType::kF16:
      encoded.type = simulate::TensorMapType::kF16;
      break;
    case DType::kBF16:
      encoded.type = simulate::TensorMapType::kBF16;
      break;
    case DType::kF32:
      encoded.type = simulate::TensorMapType::kF32;
      break;
    default:
      return fail(Stage::kVerify, Code::kNotSupported, fmt::format("tensor map of {}: TMA has no such element type", to_text(map.dtype)));
  }
  encoded.rank = static_cast<int>(map.extents.size());
  encoded.global_address = map.address;
  std::copy(map.extents.begin(), map.extents.end(), encoded.extents.begin());
  std::copy(map.strides_bytes.begin(), map.strides_bytes.end(), encoded.strides_bytes.begin());
  std::copy(map.box.begin(), map.box.end(), encoded.box.begin());
  encoded.swizzle = map.swizzle_bytes == 128  ? simulate::TensorMapSwizzle::k128B
                    : map.swizzle_bytes == 64 ? simulate::TensorMapSwizzle::k64B
                    : map.swizzle_bytes == 32 ? simulate::TensorMapSwizzle::k32B
                                              : simulate::TensorMapSwizzle::kNone;
  KW_TRY(const auto bytes, simulate::encode_tensor_map(encoded));
  TensorMapBytes result;
  static_assert(sizeof bytes == sizeof result);
  std::memcpy(result.data(), bytes.data(), sizeof result);
  return result;
}

/// What a launch keeps for later ones does not depend on the order of its copies: one schedule shows it.
bool runs_others_first(const simulate::SimulationOptions& options) { return options.schedule.adversary == simulate::Adversary::kEager; }

/// Runs the plan's launches; false when one did not end or the hardware would refuse it, which then is the outcome.
Result<bool> launch_all(simulate::Simulation& simulation, const simulate::Module& module, const std::vector<EvaluatedLaunch>& launches,
                        SimulatedOutcome& result) {
  for (const EvaluatedLaunch& launch : launches) {
    simulate::LaunchCall call;
    call.kernel = launch.kernel;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      call.grid[axis] = launch.grid[axis];
      call.block[axis] = launch.block[axis];
      call.cluster[axis] = launch.cluster[axis];
    }
    // A small problem has fewer tiles than a GPU has SMs: on few CTAs each one takes several.
    if (launch.is_persistent) call.grid[0] = std::min(call.grid[0], kPersistentClusters * call.cluster[0]);
    call.dynamic_shared_bytes = launch.dynamic_smem_bytes;
    call.is_dependent = launch.is_dependent;
    call.arguments = launch.parameters;
    Result<simulate::LaunchReport> launched = simulation.launch(module, call);
    if (!launched && launched.error().code == Code::kBadInput) {
      result.outcome.status = TrialStatus::kLaunchFailed;
      result.outcome.error = launched.error().message;
      return false;
    }
    KW_TRY(simulate::LaunchReport report, std::move(launched));
    result.num_warp_instructions += report.num_warp_instructions;
    result.seconds += report.seconds;
    const bool has_ended = report.has_ended;
    result.reports.push_back(std::move(report));
    if (!has_ended) return false;
  }
  return true;
}

/// The status that the same fault has on a device, where a device tells: see status_of(int) in tuner/device/driver_api.h.
TrialStatus status_of(simulate::FindingKind kind) {
  switch (kind) {
    case simulate::FindingKind::kOutOfBounds:
    case simulate::FindingKind::kBadAddress:
    case simulate::FindingKind::kWriteToReadOnly:
      return TrialStatus::kOutOfBounds;
    case simulate::FindingKind::kDeadlock:
    case simulate::FindingKind::kLivelock:
    case simulate::FindingKind::kBudget:
      return TrialStatus::kHung;
    case simulate::FindingKind::kMisaligned:
    case simulate::FindingKind::kBadOperand:
    case simulate::FindingKind::kTrap:
      return TrialStatus::kLaunchFailed;
    default:
      return TrialStatus::kWrongResult;
  }
}

/// The first finding of the reports, if any, becomes the verdict.
void judge_findings(SimulatedOutcome& result) {
  if (result.outcome.status != TrialStatus::kOk) return;
  for (const simulate::LaunchReport& report : result.reports) {
    if (report.is_clean()) continue;
    result.outcome.status = report.findings.empty() ? TrialStatus::kHung : status_of(report.findings.front().kind);
    result.outcome.error = report.findings.empty()
                               ? fmt::format("{}: the launch did not end", report.kernel)
                               : fmt::format("{}: {} at {}", to_text(report.findings.front().kind), report.findings.front().message,
                                             simulate::line_of(report, report.findings.front().where.pc));
    return;
  }
}

void judge_outputs(const simulate::Simulation& first, const simulate::Simulation& second, const Addresses& first_addresses,
                   const Addresses& second_addresses, const std::vector<TensorStorage>& tensors, const std::vector<OutputSamples>& samples,
                   VerifyOutcome& outcome) {
  const OutputSamples no_samples;
  double squared_error = 0, squared_reference = 0;
  outcome.is_bit_stable = true;
  for (const TensorStorage& tensor : tensors) {
    if (!tensor.is_written()) continue;
    const auto found =
        std::find_if(samples.begin(), samples.end(), [&](const OutputSamples& entry) { return entry.tensor == tensor.name; });
    OutputComparison comparison(tensor, found == samples.end() ? no_samples : *found);
    const auto bytes_of = [&](const simulate::Simulation& simulation, const Addresses& addresses) {
      const std::span<const std::byte> bytes = simulation.bytes(addresses.at(tensor.name));
      return bytes.first(std::min(bytes.size(), tensor.num_bytes));
    };
    comparison.add(0, bytes_of(first, first_addresses), bytes_of(second, second_addresses));
    outcome.max_error_over_bound = std::max(outcome.max_error_over_bound, comparison.max_error_over_bound());
    outcome.is_bit_stable = outcome.is_bit_stable && comparison.is_bit_stable();
    squared_error += comparison.squared_error();
    squared_reference += comparison.squared_reference();
    if (const std::string verdict = comparison.verdict(); !verdict.empty() && outcome.error.empty()) {
      outcome.status = TrialStatus::kWrongResult;
      outcome.error = verdict;
    }
  }
  outcome.relative_norm_error = squared_reference > 0 ? std::sqrt(squared_error / squared_reference) : std::sqrt(squared_error);
}

}  // namespace

void BlockTally::add(const std::vector<simulate::LaunchReport>& reports) {
  for (const simulate::LaunchReport& report : reports) by_kernel_[report.kernel].add(report);
}

BlockShare BlockTally::share() const {
  BlockShare share;
  for (const auto& [kernel, launches] : by_kernel_) {
    const simulate::BlockCoverage coverage = launches.coverage();
    share.num_executed += coverage.num_executed;
    share.num_blocks += coverage.num_blocks;
  }
  return share;
}

Result<SimulatedOutcome> verify_simulated(const KernelJob& job, const simulate::Module& module, const std::vector<InputFill>& inputs,
                                          const std::vector<OutputSamples>& samples, const simulate::SimulationOptions& options) {
  KW_TRY(const std::vector<TensorStorage> tensors, tensor_storages(job.plan, job.problem));
  SimulatedOutcome result;
  // Twice from the start: the second run shows results that depend on the order of things. Its order differs, and it may come after a run
  // on other inputs in the same memory, as on a device: what the kernel keeps of that, in its variables or in the outputs, shows as well.
  simulate::SimulationOptions other_order = options;
  other_order.schedule.seed = options.schedule.seed + 1;
  simulate::Simulation simulations[2] = {simulate::Simulation(options), simulate::Simulation(other_order)};
  Addresses addresses[2];
  for (int time = 0; time < 2; ++time) {
    KW_TRY(const Buffers buffers, make_buffers(simulations[time], job, tensors, inputs));
    LaunchPointers pointers;
    pointers.encode_tensor_map = encode_simulated;
    for (const auto& [name, address] : buffers.arguments) pointers.tensors[name] = address;
    for (const auto& [name, address] : buffers.workspaces) pointers.workspaces[name] = address;
    KW_TRY(const std::vector<EvaluatedLaunch> launches, evaluate_launches(job, pointers));
    if (time == 1 && runs_others_first(options)) {
      KW_TRY_VOID(write_inputs(simulations[time], tensors, others_of(inputs), buffers.tensors));
      KW_TRY(const bool has_ended, launch_all(simulations[time], module, launches, result));
      if (!has_ended) break;
      KW_TRY_VOID(write_inputs(simulations[time], tensors, inputs, buffers.tensors));
    }
    KW_TRY(const bool has_ended, launch_all(simulations[time], module, launches, result));
    addresses[time] = buffers.tensors;
    if (!has_ended) break;
    for (const TensorStorage& tensor : tensors) {
      if (!tensor.is_written() || time > 0) continue;
      const std::span<const std::byte> bytes = simulations[0].bytes(buffers.tensors.at(tensor.name)).first(tensor.num_bytes);
      result.outputs[tensor.name].assign(bytes.begin(), bytes.end());
    }
  }
  judge_findings(result);
  BlockTally blocks;
  blocks.add(result.reports);
  result.blocks = blocks.share();
  if (result.outcome.status == TrialStatus::kOk)
    // The first run's outputs are compared with the reference: nothing has written to them before.
    judge_outputs(simulations[1], simulations[0], addresses[1], addresses[0], tensors, samples, result.outcome);
  return result;
}

Result<std::vector<OutputSamples>> exact_samples(const KernelJob& job, const SimulatedOutcome& simulated) {
  KW_TRY(const std::vector<TensorStorage> tensors, tensor_storages(job.plan, job.problem));
  std::vector<OutputSamples> all;
  for (const TensorStorage& tensor : tensors) {
    const auto bytes = simulated.outputs.find(tensor.name);
    if (bytes == simulated.outputs.end()) continue;
    OutputSamples samples;
    samples.tensor = tensor.name;
    samples.dtype = tensor.dtype;
    samples.rank = 1;
    const std::vector<bool> is_covered = tensor.is_dense ? std::vector<bool>() : covered_elements(tensor);
    for (std::int64_t offset = 0; offset < tensor.num_elements; ++offset) {
      if (!tensor.is_dense && !is_covered[static_cast<std::size_t>(offset)]) continue;
      samples.offsets.push_back(offset);
      samples.coordinates.push_back(offset);
      samples.values.push_back(
          load_element(tensor.dtype, bytes->second.data() + offset * static_cast<std::int64_t>(size_bytes(tensor.dtype))));
      samples.bounds.push_back(0);
    }
    all.push_back(std::move(samples));
  }
  return all;
}

}  // namespace kw::tuner
