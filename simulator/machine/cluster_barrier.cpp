// barrier.cluster.arrive and .wait. PTX ISA, barrier.cluster: every thread of the cluster that has not exited arrives, then waits;
// a second arrive before the wait is undefined.
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include <fmt/format.h>

#include "simulator/machine/state.h"

namespace kw::simulate {

void Machine::State::cluster_barrier_check_complete(Cluster& cluster) {
  ClusterBarrier& barrier = cluster.barrier;
  if (barrier.num_arrived == 0 || barrier.num_arrived < cluster.num_live_threads) return;
  for (const auto& cta : cluster.ctas) {
    for (WarpState& state : cta->warps) {
      state.cluster_released |= state.cluster_arrived;
      state.cluster_arrived = 0;
    }
  }
  // A thread arrives in the next generation only after its wait, so nobody still needs the older clocks.
  barrier.published.join(barrier.arriving);
  barrier.arriving.clear();
  barrier.num_arrived = 0;
  ++barrier.num_generations;
  ++wake_count;
}

Outcome Machine::cluster_arrive(const Context& ctx, Order order) {
  State& s = *state_;
  WarpState& state = s.warp(ctx);
  if (const LaneMask twice = ctx.lanes & (state.cluster_arrived | state.cluster_released); twice != 0) {
    s.report(ctx, FindingKind::kBarrierMisuse, std::countr_zero(twice), "barrier.cluster.arrive: this thread has arrived and not waited",
             "arrives at the cluster barrier", "pair every barrier.cluster.arrive with one barrier.cluster.wait");
    return Outcome::kFault;
  }
  ClusterBarrier& barrier = ctx.cta->cluster->barrier;
  state.cluster_arrived |= ctx.lanes;
  barrier.num_arrived += static_cast<std::uint32_t>(std::popcount(ctx.lanes));
  s.note(ctx, SyncKind::kClusterArrive, 0, barrier.num_generations);
  if (order != Order::kRelaxed) {
    barrier.arriving.join(state.clock);
    s.advance(ctx);
  } else {
    // PTX ISA, fence.mbarrier_init: it releases the warp's mbarrier.init, and these alone, to the cluster barrier that follows.
    for (auto& [offset, mbarrier] : ctx.cta->mbarriers) {
      if (mbarrier.is_init_fenced && mbarrier.init.agent == s.own_agent(ctx) && mbarrier.init_generation == 0)
        mbarrier.init_generation = barrier.num_generations + 1;
    }
  }
  s.cluster_barrier_check_complete(*ctx.cta->cluster);
  return Outcome::kDone;
}

Outcome Machine::cluster_wait(const Context& ctx, Order order) {
  State& s = *state_;
  (void)order;  // PTX ISA, barrier.cluster.wait: .acquire is the only order and the default
  WarpState& state = s.warp(ctx);
  if (const LaneMask early = ctx.lanes & ~(state.cluster_arrived | state.cluster_released); early != 0) {
    s.report(ctx, FindingKind::kBarrierMisuse, std::countr_zero(early), "barrier.cluster.wait: this thread has not arrived",
             "waits at the cluster barrier", "pair every barrier.cluster.wait with one barrier.cluster.arrive before it");
    return Outcome::kFault;
  }
  if ((ctx.lanes & ~state.cluster_released) != 0) {
    s.park(ctx, {.kind = Wait::Kind::kClusterBarrier});
    return Outcome::kParked;
  }
  state.cluster_released &= ~ctx.lanes;
  state.cluster_generation = ctx.cta->cluster->barrier.num_generations;  // the next one cannot complete without this thread
  state.clock.join(ctx.cta->cluster->barrier.published);
  s.note(ctx, SyncKind::kClusterPass, 0, ctx.cta->cluster->barrier.num_generations - 1);
  s.unpark(ctx);
  return Outcome::kDone;
}

}  // namespace kw::simulate
