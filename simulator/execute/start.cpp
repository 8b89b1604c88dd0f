// The executor's outer calls: making it, starting and finishing CTAs, constants of a launch, views for reports.
// Place: simulator/execute/executor.h; the inner loop is run.cpp.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <new>

#include "simulator/execute/executor_state.h"

namespace kw::simulate {
namespace {

std::uint64_t lane_mask_value(SpecialRegister which, std::uint32_t lane) {
  const std::uint64_t own = std::uint64_t{1} << lane;
  switch (which) {
    case SpecialRegister::kLanemaskEq:
      return own;
    case SpecialRegister::kLanemaskLe:
      return (own << 1) - 1;
    case SpecialRegister::kLanemaskLt:
      return own - 1;
    case SpecialRegister::kLanemaskGe:
      return ~(own - 1) & kAllLanes;
    default:
      return ~((own << 1) - 1) & kAllLanes;
  }
}

/// The x, y or z of an extent by a special register's distance from its .x form.
std::uint32_t part(const std::array<std::uint32_t, 3>& values, SpecialRegister which, SpecialRegister x) {
  return values[static_cast<std::size_t>(which) - static_cast<std::size_t>(x)];
}

std::uint64_t special_value(SpecialRegister which, const Machine& machine, const Warp& warp, std::uint32_t lane, std::uint32_t shared_bytes,
                            std::uint32_t dynamic_bytes) {
  using enum SpecialRegister;
  const LaunchShape& shape = machine.shape();
  const std::uint32_t thread = warp.index * kLanes + lane;
  const std::array<std::uint32_t, 3> tid = {thread % shape.block[0], thread / shape.block[0] % shape.block[1],
                                            thread / shape.block[0] / shape.block[1]};
  const std::array<std::uint32_t, 3> ctaid = machine.ctaid(*warp.cta);
  const auto by_cluster = [&](bool is_rest) {
    std::array<std::uint32_t, 3> result{};
    for (std::size_t i = 0; i < 3; ++i) result[i] = is_rest ? ctaid[i] % shape.cluster[i] : ctaid[i] / shape.cluster[i];
    return result;
  };
  const std::array<std::uint32_t, 3> clusters = {shape.grid[0] / shape.cluster[0], shape.grid[1] / shape.cluster[1],
                                                 shape.grid[2] / shape.cluster[2]};
  if (which <= kTidZ) return part(tid, which, kTidX);
  if (which <= kNtidZ) return part(shape.block, which, kNtidX);
  if (which <= kCtaidZ) return part(ctaid, which, kCtaidX);
  if (which <= kNctaidZ) return part(shape.grid, which, kNctaidX);
  if (which >= kClusteridX && which <= kClusteridZ) return part(by_cluster(false), which, kClusteridX);
  if (which >= kNclusteridX && which <= kNclusteridZ) return part(clusters, which, kNclusteridX);
  if (which >= kClusterCtaidX && which <= kClusterCtaidZ) return part(by_cluster(true), which, kClusterCtaidX);
  if (which >= kClusterNctaidX && which <= kClusterNctaidZ) return part(shape.cluster, which, kClusterNctaidX);
  if (which >= kLanemaskEq && which <= kLanemaskGt) return lane_mask_value(which, lane);
  constexpr std::uint32_t kNumSms = 132;  // an H200; kernels use it to size persistent loops at most
  switch (which) {
    case kLaneid:
      return lane;
    case kWarpid:
      return warp.index;
    case kNwarpid:
      return shape.num_warps();
    case kSmid:
      return machine.linear_cta(*warp.cta) % kNumSms;
    case kNsmid:
      return kNumSms;
    case kGridid:
      return 1;
    case kClusterCtarank:
      return machine.rank_in_cluster(*warp.cta);
    case kClusterNctarank:
      return shape.ctas_per_cluster();
    case kIsExplicitCluster:
      return shape.ctas_per_cluster() > 1 ? 1 : 0;
    case kDynamicSmemSize:
      return dynamic_bytes;
    case kTotalSmemSize:
      return shared_bytes;
    default:
      return 0;
  }
}

/// Registers that each thread gets at entry: all of the SM's 64 K, in steps of 8, at most 255 (seen on an H200: 168 at 384 threads).
std::uint32_t entry_registers(std::uint32_t num_threads) {
  constexpr std::uint32_t kRegistersOfSm = 65536;
  return std::min<std::uint32_t>(255, kRegistersOfSm / std::max<std::uint32_t>(num_threads, 1) / 8 * 8);
}

}  // namespace

Executor::Executor() = default;
Executor::~Executor() = default;

Result<std::unique_ptr<Executor>> Executor::make(std::shared_ptr<const Program> program, Machine& machine, LaunchArguments arguments) {
  if (arguments.parameters.size() != program->parameter_bytes) {
    return fail(Stage::kVerify, Code::kBadInput,
                "kernel " + program->kernel_name + " takes " + std::to_string(program->parameter_bytes) + " bytes of parameters, " +
                    std::to_string(arguments.parameters.size()) + " are given");
  }
  std::unique_ptr<Executor> executor(new Executor());
  executor->state_ = std::make_unique<State>(std::move(program), machine, std::move(arguments));
  State& state = *executor->state_;
  state.facts = LaunchFacts{.machine = &machine,
                            .program = state.program.get(),
                            .tensor_math = TensorMath{state.arguments.tensor_mode, tensor_arch_for(state.program->compute_capability)},
                            .instruction_clock = &state.num_executed,
                            .parameter_address = state.arguments.parameter_address};
  return executor;
}

RegisterBlock Executor::State::take_registers() {
  if (!free_registers.empty()) {
    RegisterBlock block = std::move(free_registers.back());
    free_registers.pop_back();
    return block;
  }
  return RegisterBlock(new (std::align_val_t{64}) std::byte[program->register_bytes]);
}

std::uint64_t Executor::State::constant_value(const Constant& constant, const Warp& warp, std::uint32_t lane) const {
  switch (constant.kind) {
    case Constant::Kind::kBits:
      return constant.bits;
    case Constant::Kind::kSpecial:
      return special_value(static_cast<SpecialRegister>(constant.index), machine, warp, lane, machine.shape().shared_bytes,
                           arguments.dynamic_shared_bytes);
    case Constant::Kind::kParameter: {
      std::uint64_t value = 0;
      std::memcpy(&value, arguments.parameters.data() + constant.bits, constant.num_bytes);
      return value;
    }
    case Constant::Kind::kParameterAddress:
      return arguments.parameter_address + constant.bits;
    case Constant::Kind::kModuleVariable:
      return (constant.index < arguments.variable_addresses.size() ? arguments.variable_addresses[constant.index] : 0) + constant.bits;
    case Constant::Kind::kShared:
      return machine.shared_base(*warp.cta) + constant.bits;
    case Constant::Kind::kLocal:
      return constant.bits;
  }
  return 0;
}

void Executor::State::fill_constants(Warp& warp) const {
  const Frame frame{facts, warp, warp.registers.get()};
  for (const Constant& constant : program->constants) {
    if (constant.slot.bits == 1) {
      frame.predicate(constant.slot.offset) = constant.bits != 0 ? kAllLanes : 0;
      continue;
    }
    const bool varies = constant.kind == Constant::Kind::kSpecial;
    std::uint64_t value = constant_value(constant, warp, 0);
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      if (varies) value = constant_value(constant, warp, lane);
      frame.set_value(constant.slot, static_cast<int>(lane), value);
    }
  }
}

/// Why the executor itself keeps a warp waiting; empty when the machine does.
std::string Executor::State::wait_reason(const Warp& warp) const {
  if (warp.own_wait == OwnWait::kWarpgroup) return warp.warpgroup->describe_wait(warp, *program);
  if (warp.own_wait != OwnWait::kRegisters) return "";
  const std::uint32_t num_free = warp.pool->num_total - warp.pool->num_taken;
  return "setmaxnreg.inc to " + std::to_string(warp.num_wanted) + " registers from " + std::to_string(warp.num_registers) +
         ": the CTA has " + std::to_string(num_free) + " left for each thread of one warp; another warpgroup must give some up first";
}

void Executor::start(Cta* cta) {
  State& state = *state_;
  ResidentCta& resident = state.resident[cta];
  const LaunchShape& shape = state.machine.shape();
  resident.warps.clear();
  resident.warps.resize(shape.num_warps());
  resident.warpgroups.clear();
  const std::uint32_t num_registers = entry_registers(shape.num_threads());
  resident.pool = RegisterPool{num_registers * shape.num_warps(), num_registers * shape.num_warps()};
  for (std::uint32_t index = 0; index < shape.num_warps(); ++index) {
    Warp& warp = resident.warps[index];
    warp.cta = cta;
    warp.index = index;
    const std::uint32_t num_lanes = std::min<std::uint32_t>(kLanes, shape.num_threads() - index * kLanes);
    warp.live = num_lanes == kLanes ? kAllLanes : (LaneMask{1} << num_lanes) - 1;
    warp.pool = &resident.pool;
    warp.num_registers = num_registers;
    warp.registers = state.take_registers();
    std::memset(warp.registers.get(), 0, state.program->zeroed_bytes);
    state.fill_constants(warp);
    warp.groups.push_back(LaneGroup{.pc = 0, .lanes = warp.live});
    if (!state.program->uses_wgmma) continue;
    if (index % kWarpgroupWarps == 0) resident.warpgroups.push_back(std::make_shared<WarpgroupState>());
    warp.warpgroup = resident.warpgroups.back().get();
    warp.warpgroup->registers[index % kWarpgroupWarps] = warp.registers.get();
    warp.tensor_registers.assign(state.program->tensor_registers.size(), TensorRegisterState{});
  }
}

void Executor::finish(Cta* cta) {
  const auto found = state_->resident.find(cta);
  if (found == state_->resident.end()) return;
  // Operations that the kernel never waited for must not write into registers of the next CTA.
  for (const auto& warpgroup : found->second.warpgroups) warpgroup->is_alive = false;
  for (Warp& warp : found->second.warps) state_->free_registers.push_back(std::move(warp.registers));
  state_->resident.erase(found);
}

WarpStep Executor::run(Cta* cta, std::uint32_t warp, std::uint64_t max_instructions, std::uint64_t& num_executed) {
  Warp& running = state_->resident.at(cta).warps.at(warp);
  const std::uint64_t before = running.num_executed;
  const WarpStep step = state_->run(running, max_instructions);
  num_executed += running.num_executed - before;
  state_->num_executed += running.num_executed - before;
  return step;
}

std::vector<GroupView> Executor::groups(Cta* cta, std::uint32_t warp) const {
  std::vector<GroupView> views;
  const auto found = state_->resident.find(cta);
  if (found == state_->resident.end()) return views;
  for (const LaneGroup& group : found->second.warps.at(warp).groups) {
    views.push_back(GroupView{.pc = group.pc,
                              .lanes = group.lanes,
                              .is_parked = group.state == LaneGroup::State::kParked,
                              .is_gathering = group.state == LaneGroup::State::kGathering,
                              .reason = state_->wait_reason(found->second.warps.at(warp))});
  }
  return views;
}

std::uint64_t Executor::state_hash(Cta* cta, std::uint32_t warp) const {
  const Warp& hashed = state_->resident.at(cta).warps.at(warp);
  std::uint64_t hash = 0x9e3779b97f4a7c15u;
  const auto mix = [&hash](std::uint64_t value) { hash = (hash ^ value) * 0xff51afd7ed558ccdu ^ hash >> 29; };
  for (const LaneGroup& group : hashed.groups) mix(static_cast<std::uint64_t>(group.pc) << 32 | group.lanes);
  const std::byte* bytes = hashed.registers.get();
  for (std::uint32_t at = 0; at + 8 <= state_->program->zeroed_bytes; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, 8);
    mix(word);
  }
  return hash;
}

const Program& Executor::program() const { return *state_->program; }
const std::vector<std::uint8_t>& Executor::executed() const { return state_->executed; }

BlockCoverage block_coverage(const Program& program, const std::vector<std::uint8_t>& executed) {
  BlockCoverage coverage;
  for (const std::uint32_t start : program.block_starts) {
    ++coverage.num_blocks;
    if (start < executed.size() && executed[start] != 0) {
      ++coverage.num_executed;
    } else {
      coverage.missed.push_back(start);
    }
  }
  return coverage;
}

}  // namespace kw::simulate
