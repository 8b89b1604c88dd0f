// bar.sync, bar.arrive, bar.red. PTX ISA, bar: 16 barriers a CTA; a warp's arrival counts 32 threads; all users of a generation give
// one thread count. Without a count all threads take part that have not exited (CUDA Programming Guide, __syncthreads).
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include <fmt/format.h>

#include "simulator/machine/state.h"

namespace kw::simulate {

void Machine::State::park(const Context& ctx, Wait wait) {
  wait.pc = ctx.pc;
  wait.lanes = ctx.lanes;
  for (Wait& known : warp(ctx).waits) {
    if ((known.lanes & ctx.lanes) != 0) {
      known = wait;
      return;
    }
  }
  warp(ctx).waits.push_back(wait);
}

void Machine::State::unpark(const Context& ctx) {
  std::erase_if(warp(ctx).waits, [&](const Wait& wait) { return (wait.lanes & ctx.lanes) != 0; });
}

void Machine::State::barrier_check_complete(Cta& cta, std::uint32_t id) {
  NamedBarrier& barrier = cta.barriers[id];
  if (!barrier.is_open) return;
  if (barrier.counts_all) {
    for (std::size_t warp = 0; warp < cta.warps.size(); ++warp) {
      if ((cta.warps[warp].live() & ~barrier.arrived[warp]) != 0) return;
    }
  } else if (barrier.num_arrived != barrier.num_expected) {
    return;
  }
  for (WarpState& state : cta.warps) {
    if (state.barrier_waiting[id] == 0) continue;
    state.clock.join(barrier.arriving);
    state.barrier_released[id] |= state.barrier_waiting[id];
    state.barrier_waiting[id] = 0;
  }
  barrier.result_true = barrier.num_true;
  barrier.result_predicates = barrier.num_predicates;
  barrier.is_open = barrier.counts_all = false;
  barrier.num_arrived = barrier.num_true = barrier.num_predicates = 0;
  std::fill(barrier.arrived.begin(), barrier.arrived.end(), 0);
  barrier.arriving.clear();
  ++barrier.num_generations;
  ++wake_count;
}

Outcome Machine::State::barrier_call(const Context& ctx, std::uint32_t id, std::uint32_t num_threads, bool is_aligned, bool waits,
                                     const LaneMask* predicates) {
  const char* role = waits ? "waits at the barrier" : "arrives at the barrier";
  const int lane = std::countr_zero(ctx.lanes | 1u << 31);
  const auto refuse = [&](std::string message, std::string remedy) {
    report(ctx, FindingKind::kBarrierMisuse, lane, std::move(message), role, std::move(remedy));
    return Outcome::kFault;
  };
  if (id >= kNumNamedBarriers) return refuse(fmt::format("barrier {}: a CTA has barriers 0 to {}", id, kNumNamedBarriers - 1), "");
  if (num_threads % kLanes != 0) return refuse(fmt::format("barrier {}: {} threads: must be a multiple of 32", id, num_threads), "");
  WarpState& state = warp(ctx);
  const std::uint32_t num_all = shape.num_warps() * kLanes;
  if (num_threads > num_all) {
    return refuse(
        fmt::format("barrier {}: {} threads expected, the CTA has {}: it can never complete", id, num_threads, shape.num_threads()), "");
  }
  const LaneMask arriving = ctx.lanes & ~(state.barrier_waiting[id] | state.barrier_released[id]);
  if (arriving != 0) {
    NamedBarrier& barrier = ctx.cta->barriers[id];
    const std::uint32_t num_expected = num_threads == 0 ? num_all : num_threads;
    if (!barrier.is_open) {
      barrier.is_open = true;
      barrier.num_expected = num_expected;
      barrier.first = place(ctx, -1, fmt::format("opens barrier {} for {} threads", id, num_expected));
    } else if (barrier.num_expected != num_expected) {
      Finding finding{
          FindingKind::kBarrierMisuse,
          fmt::format("barrier {}: arrival for {} threads, but this generation was opened for {}", id, num_expected, barrier.num_expected),
          place(ctx, lane, role), barrier.first, "give one thread count to all users of a barrier, or use another barrier id"};
      findings.add(std::move(finding));
      return Outcome::kFault;
    }
    barrier.counts_all = barrier.counts_all || num_threads == 0;
    const LaneMask absent = ~state.live() & ~arriving;
    const bool is_first = barrier.arrived[ctx.warp] == 0;
    barrier.num_arrived += is_aligned ? kLanes : static_cast<std::uint32_t>(std::popcount(is_first ? arriving | absent : arriving));
    barrier.arrived[ctx.warp] |= is_aligned ? arriving | state.live() : arriving;
    if (!barrier.counts_all && barrier.num_arrived > barrier.num_expected) {
      return refuse(fmt::format("barrier {}: {} threads have arrived, {} are expected", id, barrier.num_arrived, barrier.num_expected),
                    "count every warp that arrives or syncs in one generation");
    }
    if (predicates != nullptr) {
      barrier.num_true += static_cast<std::uint32_t>(std::popcount(*predicates & arriving));
      barrier.num_predicates += static_cast<std::uint32_t>(std::popcount(arriving));
    }
    barrier.arriving.join(state.clock);
    note(ctx, SyncKind::kBarrierArrive, barrier_object(*ctx.cta, id), barrier.num_generations);
    advance(ctx);
    if (waits) state.barrier_waiting[id] |= arriving;
    barrier_check_complete(*ctx.cta, id);
  }
  if (!waits) return Outcome::kDone;
  if ((ctx.lanes & ~state.barrier_released[id]) != 0) {
    park(ctx, {.kind = Wait::Kind::kNamedBarrier, .id_or_address = id});
    return Outcome::kParked;
  }
  state.barrier_released[id] &= ~ctx.lanes;
  note(ctx, SyncKind::kBarrierPass, barrier_object(*ctx.cta, id), ctx.cta->barriers[id].num_generations - 1);
  unpark(ctx);
  return Outcome::kDone;
}

Outcome Machine::barrier_sync(const Context& ctx, std::uint32_t id, std::uint32_t num_threads, bool is_aligned) {
  return state_->barrier_call(ctx, id, num_threads, is_aligned, true, nullptr);
}

Outcome Machine::barrier_arrive(const Context& ctx, std::uint32_t id, std::uint32_t num_threads, bool is_aligned) {
  if (num_threads == 0) {
    state_->report(ctx, FindingKind::kBarrierMisuse, -1, fmt::format("barrier {}: bar.arrive needs a thread count", id),
                   "arrives at the barrier", "");
    return Outcome::kFault;
  }
  return state_->barrier_call(ctx, id, num_threads, is_aligned, false, nullptr);
}

Outcome Machine::barrier_reduce(const Context& ctx, std::uint32_t id, std::uint32_t num_threads, bool is_aligned, BarrierReduction op,
                                LaneMask predicates, std::uint32_t& result) {
  const Outcome outcome = state_->barrier_call(ctx, id, num_threads, is_aligned, true, &predicates);
  if (outcome != Outcome::kDone) return outcome;
  const NamedBarrier& barrier = ctx.cta->barriers[id];
  switch (op) {
    case BarrierReduction::kPopc:
      result = barrier.result_true;
      break;
    case BarrierReduction::kAnd:
      result = barrier.result_true == barrier.result_predicates ? 1 : 0;
      break;
    case BarrierReduction::kOr:
      result = barrier.result_true != 0 ? 1 : 0;
      break;
  }
  return Outcome::kDone;
}

void Machine::warp_sync(const Context& ctx) {
  (void)ctx;  // accesses of one warp are ordered by the executor: the clocks know warps, not lanes
}

}  // namespace kw::simulate
