// Tensor-core operations that read shared memory asynchronously (wgmma). PTX ISA, wgmma: the operands are read through the async
// proxy; a group's reads are done when wait_group covers it, for the whole warpgroup (all four warps wait together on an H200).
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "simulator/machine/state.h"

namespace kw::simulate {

namespace {
constexpr std::uint32_t kWarpsPerWarpgroup = 4;

Context leader_of(Context ctx) {
  ctx.warp -= ctx.warp % kWarpsPerWarpgroup;
  return ctx;
}
}  // namespace

Outcome Machine::tensor_issue(const Context& ctx, std::span<const SharedRange> reads, Effect effect) {
  State& s = *state_;
  const Context leader = leader_of(ctx);
  GroupQueue& queue = s.warp(leader).wgmma;
  const std::uint32_t group = queue.num_committed + 1;
  const std::uint32_t agent = ctx.cta->cluster->agent(AgentKind::kWgmma, s.warp_in_cluster(leader));
  const State::AgentAccess read = s.async_access_of(ctx, agent, group, AccessClass::kWeakRead, true, "reads (wgmma)");
  const int lane = ctx.lanes == 0 ? 0 : std::countr_zero(ctx.lanes);
  for (const SharedRange& range : reads) {
    Target target;
    if (!s.resolve(ctx, Space::kShared, range.address, range.num_bytes, lane, false, target)) return Outcome::kFault;
    if (s.options.checks_initialisation) s.check_initialised(ctx, target, range.num_bytes, lane, "reads (wgmma)");
    if (s.options.checks_races) s.shadow_range(ctx, target, range.num_bytes, lane, read);
  }
  s.note(ctx, SyncKind::kAsyncIssue);
  queue.has_open = true;
  queue.pending.push_back({group, std::move(effect)});
  if (s.takes_effect_at_issue()) s.run_groups(queue, group);
  return Outcome::kDone;
}

Outcome Machine::tensor_commit(const Context& ctx) {
  GroupQueue& queue = state_->warp(leader_of(ctx)).wgmma;
  ++queue.num_committed;
  queue.has_open = false;
  return Outcome::kDone;
}

Outcome Machine::tensor_wait(const Context& ctx, std::uint32_t num_pending_groups) {
  State& s = *state_;
  const Context leader = leader_of(ctx);
  GroupQueue& queue = s.warp(leader).wgmma;
  const std::uint32_t done = queue.num_committed > num_pending_groups ? queue.num_committed - num_pending_groups : 0;
  s.run_groups(queue, done);
  s.note(ctx, SyncKind::kCopyWait);
  const std::uint32_t agent = ctx.cta->cluster->agent(AgentKind::kWgmma, s.warp_in_cluster(leader));
  for (std::uint32_t warp = leader.warp; warp < leader.warp + kWarpsPerWarpgroup && warp < ctx.cta->warps.size(); ++warp) {
    ctx.cta->warps[warp].clock.seen.local.raise(agent, done);
  }
  return Outcome::kDone;
}

}  // namespace kw::simulate
