// What a parked warp waits for, with the state of now: the lines of a deadlock report.
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include <fmt/format.h>

#include "simulator/machine/state.h"

namespace kw::simulate {
namespace {

std::string missing_warps(const Cta& cta, const NamedBarrier& barrier) {
  std::string text;
  for (std::size_t warp = 0; warp < cta.warps.size(); ++warp) {
    if ((cta.warps[warp].live() & ~barrier.arrived[warp]) != 0) text += fmt::format("{}{}", text.empty() ? "" : ", ", warp);
  }
  return text.empty() ? "none" : text;
}

}  // namespace

std::string Machine::State::describe(const Context& ctx, const Wait& wait) const {
  switch (wait.kind) {
    case Wait::Kind::kNone:
      return "waits";
    case Wait::Kind::kNamedBarrier: {
      const NamedBarrier& barrier = ctx.cta->barriers[wait.id_or_address];
      return fmt::format("barrier {}: {} of {} threads have arrived, generation {}; warps that have not: {}", wait.id_or_address,
                         barrier.num_arrived, barrier.num_expected, barrier.num_generations, missing_warps(*ctx.cta, barrier));
    }
    case Wait::Kind::kClusterBarrier: {
      const ClusterBarrier& barrier = ctx.cta->cluster->barrier;
      return fmt::format("cluster barrier: {} of {} threads have arrived, generation {}", barrier.num_arrived,
                         ctx.cta->cluster->num_live_threads, barrier.num_generations);
    }
    case Wait::Kind::kMbarrier:
      break;
  }
  const auto found = ctx.cta->mbarriers.find(wait.id_or_address);
  const std::string name =
      describe_address(ctx, Space::kShared, ctx.cta->rank << kSharedRankShift | (wait.id_or_address + kSharedFirstByte));
  if (found == ctx.cta->mbarriers.end()) return fmt::format("mbarrier at {}: invalidated", name);
  const Mbarrier& barrier = found->second;
  const std::string target =
      wait.is_parity ? fmt::format("parity {}", wait.parity_or_state & 1) : fmt::format("the end of phase {}", wait.parity_or_state >> 32);
  return fmt::format("mbarrier at {}: waits for {}; it is in phase {} (parity {}) with {} of {} arrivals pending and {} bytes outstanding",
                     name, target, barrier.phase, barrier.phase & 1, barrier.pending, barrier.count, barrier.tx);
}

std::string Machine::describe_wait(const Context& ctx) const {
  for (const Wait& wait : state_->warp(ctx).waits) {
    if ((wait.lanes & ctx.lanes) != 0) return state_->describe(ctx, wait);
  }
  return "is not parked in the machine";
}

WaitHistory Machine::wait_history(const Context& ctx) const {
  for (const Wait& wait : state_->warp(ctx).waits) {
    if ((wait.lanes & ctx.lanes) != 0) return state_->history(ctx, wait);
  }
  return {};
}

}  // namespace kw::simulate
