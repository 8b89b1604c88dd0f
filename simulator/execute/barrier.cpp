// Named barriers, bar.warp.sync and the cluster barrier. Place: simulator/execute/decoder.h.
// bar.* and .aligned forms are executed by all live lanes together (the executor gathers them); others by the lanes that come.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/execute/decoder.h"
#include "simulator/execute/lane_functions.h"

namespace kw::simulate {
namespace {

// detail.a[0]: barrier id, detail.b[0]: number of threads, if has_c. option 1: aligned.
std::uint32_t barrier_id(const Frame& frame, const Detail& detail) { return static_cast<std::uint32_t>(uniform(frame, detail.a[0])); }
std::uint32_t thread_count(const Frame& frame, const Detail& detail) {
  return detail.has_c ? static_cast<std::uint32_t>(uniform(frame, detail.b[0])) : 0;
}

/// Zero threads are no barrier; the machine takes 0 for "all", so the value is refused here.
bool is_bad_count(const Frame& frame, const Detail& detail) {
  if (!detail.has_c || thread_count(frame, detail) != 0) return false;
  frame.machine().report(Finding{.kind = FindingKind::kBarrierMisuse,
                                 .message = "barrier " + std::to_string(barrier_id(frame, detail)) + ": 0 threads",
                                 .where = frame.machine().place(frame.context(), -1, "at the barrier"),
                                 .other = std::nullopt,
                                 .remedy = "PTX ISA, bar: the number of threads is a non-zero multiple of the warp size"});
  return true;
}

Outcome sync(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  if (is_bad_count(frame, detail)) return Outcome::kFault;
  return frame.machine().barrier_sync(frame.context(), barrier_id(frame, detail), thread_count(frame, detail), instr.option == 1);
}

Outcome arrive(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  if (is_bad_count(frame, detail)) return Outcome::kFault;
  return frame.machine().barrier_arrive(frame.context(), barrier_id(frame, detail), thread_count(frame, detail), instr.option == 1);
}

/// immediate: the BarrierReduction; d: a 32-bit register (popc) or a predicate.
Outcome reduce(Frame& frame, const Instr& instr) {
  const Detail& detail = frame.detail(instr);
  if (is_bad_count(frame, detail)) return Outcome::kFault;
  const auto operation = static_cast<BarrierReduction>(instr.immediate);
  std::uint32_t result = 0;
  const Outcome outcome =
      frame.machine().barrier_reduce(frame.context(), barrier_id(frame, detail), thread_count(frame, detail), instr.option == 1, operation,
                                     (frame.predicate(instr.c) ^ instr.flip) & frame.lanes, result);
  if (outcome != Outcome::kDone) return outcome;
  if (operation == BarrierReduction::kPopc) {
    for_lanes(frame.lanes, [&](int lane) { frame.at<std::uint32_t>(instr.d)[lane] = result; });
  } else {
    frame.set_predicate(instr.d, result != 0 ? kAllLanes : 0);
  }
  return outcome;
}

Outcome warp_sync(Frame& frame, const Instr&) {
  frame.machine().warp_sync(frame.context());
  return Outcome::kDone;
}

Outcome cluster_arrive(Frame& frame, const Instr& instr) {
  return frame.machine().cluster_arrive(frame.context(), static_cast<Order>(instr.option));
}
Outcome cluster_wait(Frame& frame, const Instr& instr) {
  return frame.machine().cluster_wait(frame.context(), static_cast<Order>(instr.option));
}

}  // namespace

Status Decoder::decode_barrier(Instr& instr) {
  const bool is_aligned = has("aligned") || form().row->base == "bar";
  if (op() == Op::kBarWarpSync) {
    instr.kind = InstrKind::kMembers;
    KW_TRY(instr.members, source(0, 32));
    instr.function = &warp_sync;
    return {};
  }
  instr.kind = is_aligned ? InstrKind::kAligned : InstrKind::kPlain;
  instr.may_park = true;
  if (op() == Op::kClusterArrive || op() == Op::kClusterWait) {
    // PTX ISA, barrier.cluster: .release and .acquire are the defaults.
    instr.option = static_cast<std::uint8_t>(op() == Op::kClusterWait ? Order::kAcquire
                                             : has("relaxed")         ? Order::kRelaxed
                                                                      : Order::kRelease);
    instr.function = op() == Op::kClusterArrive ? &cluster_arrive : &cluster_wait;
    return {};
  }
  Detail& detail = new_detail(instr);
  instr.option = is_aligned ? 1 : 0;
  const std::size_t first = op() == Op::kBarRed ? 1 : 0;
  const std::size_t last = op() == Op::kBarRed ? num_operands() - 1 : num_operands();
  KW_TRY(const std::uint32_t id, source(first, 32));
  detail.a = {Slot{id, 32}};
  if (last > first + 1) {
    detail.has_c = true;
    KW_TRY(const std::uint32_t count, source(first + 1, 32));
    detail.b = {Slot{count, 32}};
  }
  if (op() == Op::kBarSync) instr.function = &sync;
  if (op() == Op::kBarArrive) instr.function = &arrive;
  if (op() == Op::kBarRed) {
    const BarrierReduction operation = has("popc") ? BarrierReduction::kPopc : has("and") ? BarrierReduction::kAnd : BarrierReduction::kOr;
    instr.immediate = static_cast<std::uint64_t>(operation);
    if (operation == BarrierReduction::kPopc) {
      KW_TRY(instr.d, destination(0, 32));
    } else {
      KW_TRY(instr.d, predicate_destination(operand(0)));
    }
    KW_TRY(const Predicate predicate, predicate_source(operand(last)));
    instr.c = predicate.offset;
    instr.flip = predicate.flip;
    instr.function = &reduce;
  }
  return {};
}

}  // namespace kw::simulate
