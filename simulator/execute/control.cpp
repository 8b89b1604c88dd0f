// Control flow and hints: bra, brx, ret, exit, trap, and instructions without effect on values (prefetch, nanosleep, policies).
// Place: simulator/execute/decoder.h; what a branch does to the groups of lanes is the executor's matter (run.cpp).
// SPDX-License-Identifier: Apache-2.0
#include "simulator/execute/decoder.h"
#include "simulator/execute/lane_functions.h"

namespace kw::simulate {
namespace {

Outcome nothing(Frame&, const Instr&) { return Outcome::kDone; }

Outcome wait_for_grid(Frame& frame, const Instr&) {
  frame.machine().wait_for_grid(frame.context());
  return Outcome::kDone;
}

Outcome trap(Frame& frame, const Instr& instr) {
  const char* name = instr.option == 0 ? "trap" : "brkpt";
  frame.machine().report(Finding{.kind = FindingKind::kTrap,
                                 .message = std::string("the kernel executed ") + name + ": an assertion or a check of its own failed",
                                 .where = frame.machine().place(frame.context(), std::countr_zero(frame.lanes), name),
                                 .other = std::nullopt,
                                 .remedy = ""});
  return Outcome::kFault;
}

// Policies of the whole range, as createpolicy.fractional gives them on an H200. To a program they are opaque.
constexpr std::uint64_t kEvictFirstPolicy = 0x12f0000000000000u;
constexpr std::uint64_t kEvictLastPolicy = 0x14f0000000000000u;

Outcome make_policy(Frame& frame, const Instr& instr) {
  for_lanes(frame.lanes, [&](int lane) { frame.at<std::uint64_t>(instr.d)[lane] = instr.immediate; });
  return Outcome::kDone;
}

/// setmaxnreg.inc waits until the CTA's pool has the registers.
Outcome take_registers(Frame& frame, const Instr& instr) {
  Warp& warp = frame.warp;
  warp.num_wanted = static_cast<std::uint32_t>(instr.immediate);
  const bool has_room = has_registers(*warp.pool, warp.num_registers, warp.num_wanted);
  warp.own_wait = has_room ? OwnWait::kNone : OwnWait::kRegisters;
  if (!has_room) return Outcome::kParked;
  warp.pool->num_taken += warp.num_wanted - warp.num_registers;
  warp.num_registers = warp.num_wanted;
  return Outcome::kDone;
}

Outcome give_registers(Frame& frame, const Instr& instr) {
  Warp& warp = frame.warp;
  const auto num_kept = static_cast<std::uint32_t>(instr.immediate);
  if (num_kept > warp.num_registers) {
    frame.machine().report(Finding{.kind = FindingKind::kBadOperand,
                                   .message = "setmaxnreg.dec to " + std::to_string(num_kept) + ": the thread has only " +
                                              std::to_string(warp.num_registers) + " registers",
                                   .where = frame.machine().place(frame.context(), -1, "gives up registers"),
                                   .other = std::nullopt,
                                   .remedy = "PTX ISA, setmaxnreg.dec: the count is at most the current one"});
    return Outcome::kFault;
  }
  warp.pool->num_taken -= warp.num_registers - num_kept;
  warp.num_registers = num_kept;
  return Outcome::kDone;
}

}  // namespace

Status Decoder::decode_control(Instr& instr) {
  switch (op()) {
    case Op::kBra:
      instr.kind = InstrKind::kBranch;
      if (static_cast<std::size_t>(operand(0).index) >= kernel_.instructions.size())
        return refuse("the target is no label", Code::kBadInput);
      instr.target = static_cast<std::uint32_t>(operand(0).index);
      return {};
    case Op::kBrx: {
      instr.kind = InstrKind::kBranchIndexed;
      KW_TRY(instr.a, source(0, 32));
      const auto list = static_cast<std::size_t>(operand(1).index);
      if (list >= kernel_.branch_targets.size()) return refuse("the second operand must name a .branchtargets list", Code::kBadInput);
      Detail& detail = new_detail(instr);
      for (const int target : kernel_.branch_targets[list]) detail.targets.push_back(static_cast<std::uint32_t>(target));
      return {};
    }
    case Op::kRet:
    case Op::kExit:
      instr.kind = InstrKind::kExit;
      return {};
    case Op::kTrap:
    case Op::kBrkpt:
      instr.option = op() == Op::kTrap ? 0 : 1;
      instr.function = &trap;
      return {};
    case Op::kCreatepolicy: {
      KW_TRY(instr.d, destination(0, 64));
      instr.immediate = has("L2::evict_last") ? kEvictLastPolicy : kEvictFirstPolicy;
      instr.function = &make_policy;
      return {};
    }
    case Op::kSetmaxnreg:
      if (operand(0).bits < 24 || operand(0).bits > 256 || operand(0).bits % 8 != 0) {
        return refuse(std::to_string(operand(0).bits) + " registers: must be a multiple of 8 from 24 to 256", Code::kBadInput);
      }
      instr.kind = InstrKind::kAligned;
      instr.may_park = true;
      instr.immediate = operand(0).bits;
      instr.function = has("inc") ? &take_registers : &give_registers;
      return {};
    // One kernel runs alone: the grid before it has ended, the one after it begins later.
    case Op::kGriddepcontrol:
      instr.function = has("wait") ? &wait_for_grid : &nothing;
      return {};
    case Op::kNanosleep:
    case Op::kPmevent:
    case Op::kPrefetch:
    case Op::kApplypriority:
      instr.function = &nothing;
      return {};
    default:
      return refuse("no such instruction");
  }
}

}  // namespace kw::simulate
