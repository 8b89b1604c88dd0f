// The inner loop: which group of lanes of a warp runs, what branches and exits do to groups, and how collectives gather lanes.
// The runnable group with the smallest pc goes first and groups that meet at a pc merge, so lanes reconverge where the compiler expects
// it; a group that used up its instructions lets the others go first next time, so none starves.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "simulator/execute/executor_state.h"

namespace kw::simulate {
namespace {

constexpr std::uint64_t kChunkWhenDivergent = 256;  // instructions after which another group's wake-up is looked at

}  // namespace

WarpStep Executor::State::run(Warp& warp, std::uint64_t max_instructions) {
  std::uint64_t budget = max_instructions;
  while (!warp.groups.empty()) {
    const int index = pick(warp);
    if (index < 0) {
      const bool all_gather = std::all_of(warp.groups.begin(), warp.groups.end(),
                                          [](const LaneGroup& group) { return group.state == LaneGroup::State::kGathering; });
      // Another warp ends this wait, not the machine: ask again next turn.
      if (warp.own_wait != OwnWait::kNone) return WarpStep::kProgress;
      if (!all_gather) return WarpStep::kParked;
      report_divergence(warp);
      return WarpStep::kFault;
    }
    if (budget == 0) {
      warp.is_rotated = warp.groups.size() > 1;
      return WarpStep::kProgress;
    }
    const std::uint64_t before = budget;
    if (run_group(warp, static_cast<std::size_t>(index), budget) == Outcome::kFault) return WarpStep::kFault;
    warp.num_executed += before - budget;
  }
  return WarpStep::kExited;
}

/// Groups at one pc become one, except those that the machine has parked: their call must be repeated with equal lanes.
void Executor::State::merge(Warp& warp) const {
  std::vector<LaneGroup>& groups = warp.groups;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].state == LaneGroup::State::kParked) continue;
    for (std::size_t j = groups.size() - 1; j > i; --j) {
      if (groups[j].pc != groups[i].pc || groups[j].state == LaneGroup::State::kParked) continue;
      groups[i].lanes |= groups[j].lanes;
      groups[i].state = LaneGroup::State::kRunnable;
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
}

/// Index of the group to run, or -1.
int Executor::State::pick(Warp& warp) {
  std::vector<LaneGroup>& groups = warp.groups;
  if (groups.size() > 1) merge(warp);
  int best = -1;
  int rotated = -1;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    LaneGroup& group = groups[i];
    if (group.state == LaneGroup::State::kParked) {
      const bool is_ready = warp.own_wait == OwnWait::kWarpgroup   ? warp.warpgroup->is_complete(warp)
                            : warp.own_wait == OwnWait::kRegisters ? has_registers(*warp.pool, warp.num_registers, warp.num_wanted)
                                                                   : group.wake != machine.wake_count();
      if (!is_ready) continue;
    }
    if (group.state == LaneGroup::State::kGathering && !is_gathered(warp, group)) continue;
    if (warp.is_rotated && group.pc == warp.last_pc) {
      rotated = static_cast<int>(i);
      continue;
    }
    if (best < 0 || group.pc < groups[static_cast<std::size_t>(best)].pc) best = static_cast<int>(i);
  }
  warp.is_rotated = false;
  return best >= 0 ? best : rotated;
}

/// The lanes of `active` that may execute a collective now: all lanes named by their member mask that are alive have come.
LaneMask Executor::State::ready_members(const Warp& warp, const Instr& instr, LaneMask active) const {
  if (instr.kind == InstrKind::kAligned) return (warp.live & ~active) == 0 ? active : 0;
  const auto* masks = reinterpret_cast<const std::uint32_t*>(warp.registers.get() + instr.members);
  LaneMask ready = 0;
  for (LaneMask left = active; left != 0;) {
    const LaneMask mask = masks[std::countr_zero(left)];
    LaneMask same = 0;
    for_lanes(left, [&](int lane) { same |= static_cast<LaneMask>(masks[lane] == mask) << lane; });
    left &= ~same;
    if ((mask & warp.live & ~same) == 0) ready |= same;
  }
  return ready;
}

bool Executor::State::is_gathered(const Warp& warp, const LaneGroup& group) const {
  return ready_members(warp, program->code[group.pc], group.lanes) != 0;
}

Outcome Executor::State::run_group(Warp& warp, std::size_t index, std::uint64_t& budget) {
  const Instr* code = program->code.data();
  LaneGroup& group = warp.groups[index];
  group.state = LaneGroup::State::kRunnable;
  std::uint32_t stop = ~std::uint32_t{0};
  std::uint64_t chunk = budget;
  if (warp.groups.size() > 1) {
    for (const LaneGroup& other : warp.groups) {
      if (other.pc > group.pc) stop = std::min(stop, other.pc);
    }
    chunk = std::min(chunk, kChunkWhenDivergent);
  }
  Frame frame{facts, warp, warp.registers.get()};
  std::uint32_t pc = group.pc;
  const LaneMask lanes = group.lanes;
  Outcome outcome = Outcome::kDone;
  std::uint64_t left = chunk;
  while (left > 0 && pc < stop) {
    const Instr& instr = code[pc];
    LaneMask active = lanes;
    if (instr.guard != kNoGuard) active &= frame.predicate(instr.guard) ^ instr.guard_flip;
    if (active == 0) {
      executed[pc] = 1;
      ++pc;
      --left;
      continue;
    }
    if (instr.touches_tensor_registers) check_tensor_touches(facts, warp, pc, active);
    if (instr.kind == InstrKind::kPlain) {
      frame.pc = pc;
      frame.lanes = active;
      outcome = instr.function(frame, instr);
      if (outcome == Outcome::kDone) {
        executed[pc] = 1;
        ++pc;
        --left;
        continue;
      }
    } else if (instr.kind == InstrKind::kBranch && active == lanes && warp.groups.size() == 1) {
      executed[pc] = 1;
      pc = instr.target;
      --left;
      continue;
    }
    group.pc = pc;
    if (outcome == Outcome::kFault) break;
    if (instr.kind == InstrKind::kPlain || !step_control(warp, index, instr, active, outcome)) {
      if (instr.kind == InstrKind::kPlain) {
        // Parked: lanes that the guard left out go on.
        if (active != lanes) warp.groups.push_back(LaneGroup{.pc = pc + 1, .lanes = lanes & ~active});
        LaneGroup& parked = warp.groups[index];
        parked.lanes = active;
        parked.state = LaneGroup::State::kParked;
        parked.wake = machine.wake_count();
      } else {
        --left;
      }
      budget -= chunk - left;
      return outcome == Outcome::kFault ? outcome : Outcome::kDone;
    }
    // The group goes on as it is, at its new pc.
    pc = warp.groups[index].pc;
    --left;
  }
  warp.groups[index].pc = pc;
  budget -= chunk - left;
  if (budget == 0) warp.last_pc = pc;
  return outcome;
}

bool Executor::State::step_control(Warp& warp, std::size_t index, const Instr& instr, LaneMask active, Outcome& outcome) {
  const std::uint32_t pc = warp.groups[index].pc;
  switch (instr.kind) {
    case InstrKind::kBranch:
      executed[pc] = 1;
      branch(warp, index, instr.target, active);
      return false;
    case InstrKind::kBranchIndexed: {
      executed[pc] = 1;
      const std::vector<std::uint32_t>& targets = program->details[instr.detail].targets;
      const auto* indices = reinterpret_cast<const std::uint32_t*>(warp.registers.get() + instr.a);
      // One target at a time: the first lane's; the others come back to this pc.
      const std::uint32_t first = indices[std::countr_zero(active)];
      if (first >= targets.size()) {
        Context context{warp.cta, warp.index, active, pc};
        machine.report(Finding{.kind = FindingKind::kBadOperand,
                               .message = "brx.idx: index " + std::to_string(first) + " of " + std::to_string(targets.size()) + " targets",
                               .where = machine.place(context, std::countr_zero(active), "branches"),
                               .other = std::nullopt,
                               .remedy = ""});
        outcome = Outcome::kFault;
        return false;
      }
      LaneMask same = 0;
      for_lanes(active, [&](int lane) { same |= static_cast<LaneMask>(indices[lane] == first) << lane; });
      const LaneMask rest = warp.groups[index].lanes & ~same;
      warp.groups[index] = LaneGroup{.pc = targets[first], .lanes = same};
      if ((rest & active) != 0) warp.groups.push_back(LaneGroup{.pc = pc, .lanes = rest & active});
      if ((rest & ~active) != 0) warp.groups.push_back(LaneGroup{.pc = pc + 1, .lanes = rest & ~active});
      return false;
    }
    case InstrKind::kExit:
      executed[pc] = 1;
      exit_lanes(warp, index, active);
      return false;
    default: {
      const bool is_whole = active == warp.groups[index].lanes;
      outcome = step_collective(warp, index, instr, active);
      return is_whole && outcome == Outcome::kDone && warp.groups[index].state == LaneGroup::State::kRunnable &&
             warp.groups[index].pc == pc + 1 && warp.groups[index].lanes == active;
    }
  }
}

void Executor::State::branch(Warp& warp, std::size_t index, std::uint32_t target, LaneMask active) const {
  LaneGroup& group = warp.groups[index];
  const LaneMask rest = group.lanes & ~active;
  const std::uint32_t next = group.pc + 1;
  group.pc = target;
  group.lanes = active;
  if (rest != 0) warp.groups.push_back(LaneGroup{.pc = next, .lanes = rest});
}

void Executor::State::exit_lanes(Warp& warp, std::size_t index, LaneMask active) {
  LaneGroup& group = warp.groups[index];
  machine.exit_lanes(Context{warp.cta, warp.index, active, group.pc});
  warp.live &= ~active;
  group.lanes &= ~active;
  ++group.pc;
  if (group.lanes == 0) warp.groups.erase(warp.groups.begin() + static_cast<std::ptrdiff_t>(index));
}

/// Executes a collective for the lanes that are complete; the others wait at its pc.
Outcome Executor::State::step_collective(Warp& warp, std::size_t index, const Instr& instr, LaneMask active) {
  const std::uint32_t pc = warp.groups[index].pc;
  const LaneMask passing = warp.groups[index].lanes & ~active;
  const LaneMask ready = ready_members(warp, instr, active);
  warp.groups[index].lanes = active;
  if (passing != 0) warp.groups.push_back(LaneGroup{.pc = pc + 1, .lanes = passing});
  if (ready != active) {
    const LaneGroup waiting{.pc = pc, .lanes = active & ~ready, .state = LaneGroup::State::kGathering};
    if (ready == 0) {
      warp.groups[index] = waiting;
      return Outcome::kDone;
    }
    warp.groups.push_back(waiting);
    warp.groups[index].lanes = ready;
  }
  Frame frame{facts, warp, warp.registers.get()};
  frame.pc = pc;
  Outcome outcome = Outcome::kDone;
  if (instr.kind == InstrKind::kAligned) {
    frame.lanes = ready;
    outcome = instr.function(frame, instr);
  } else {
    const auto* masks = reinterpret_cast<const std::uint32_t*>(warp.registers.get() + instr.members);
    for (LaneMask left = ready; left != 0 && outcome == Outcome::kDone;) {
      const LaneMask mask = masks[std::countr_zero(left)];
      LaneMask same = 0;
      for_lanes(left, [&](int lane) { same |= static_cast<LaneMask>(masks[lane] == mask) << lane; });
      left &= ~same;
      frame.lanes = same;
      if ((same & ~mask) != 0) {
        machine.report(Finding{.kind = FindingKind::kBadOperand,
                               .message = program->places[pc].form + ": lane " + std::to_string(std::countr_zero(same & ~mask)) +
                                          " executes it and is not in its member mask",
                               .where = machine.place(frame.context(), std::countr_zero(same & ~mask), "executes a collective"),
                               .other = std::nullopt,
                               .remedy = "PTX ISA: the executing thread must be in membermask"});
        return Outcome::kFault;
      }
      outcome = instr.function(frame, instr);
    }
  }
  LaneGroup& group = warp.groups[index];
  if (outcome == Outcome::kDone) {
    executed[pc] = 1;
    group.pc = pc + 1;
    group.state = LaneGroup::State::kRunnable;
  } else if (outcome == Outcome::kParked) {
    group.state = LaneGroup::State::kParked;
    group.wake = machine.wake_count();
    return Outcome::kDone;
  }
  return outcome;
}

void Executor::State::report_divergence(const Warp& warp) {
  std::string others;
  for (const LaneGroup& group : warp.groups) {
    char text[96];
    std::snprintf(text, sizeof(text), "%slanes 0x%08x wait at line %d", others.empty() ? "" : ", ", group.lanes,
                  program->places[group.pc].ptx_line);
    others += text;
    if (others.size() > 400) break;
  }
  const LaneGroup& first = warp.groups.front();
  Finding finding{.kind = FindingKind::kDivergentAligned,
                  .message = program->places[first.pc].form + ": not all lanes that must execute it together reach it: " + others,
                  .where = machine.place(Context{warp.cta, warp.index, first.lanes, first.pc}, -1, "waits for the other lanes of its warp"),
                  .other = std::nullopt,
                  .remedy = "let all lanes of the warp (or of the member mask) take the same way to this instruction"};
  if (warp.groups.size() > 1) {
    const LaneGroup& second = warp.groups[1];
    finding.other = machine.place(Context{warp.cta, warp.index, second.lanes, second.pc}, -1, "waits for the other lanes of its warp");
  }
  machine.report(std::move(finding));
}

}  // namespace kw::simulate
