// cp.async (non-bulk): copies of 4, 8 or 16 bytes a lane in groups. A copy's writes belong to the warp's cp.async agent: they are
// checked against earlier accesses at issue, and known to the warp from the wait that covers them. PTX ISA, cp.async: generic proxy.
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "simulator/machine/state.h"

namespace kw::simulate {
namespace {

void run(CpAsyncCopy& copy) {
  if (copy.is_done) return;
  copy.is_done = true;
  if (copy.source_bytes != 0) std::memcpy(copy.destination, copy.source, copy.source_bytes);
  std::memset(copy.destination + copy.source_bytes, 0, static_cast<std::size_t>(copy.num_bytes - copy.source_bytes));
}

}  // namespace

Outcome Machine::cp_async(const Context& ctx, std::uint32_t num_bytes, const std::uint64_t* shared, const std::uint64_t* global,
                          const std::uint32_t* source_bytes) {
  State& s = *state_;
  if (num_bytes != 4 && num_bytes != 8 && num_bytes != 16) {
    s.report(ctx, FindingKind::kBadOperand, -1, fmt::format("cp.async of {} bytes: must be 4, 8 or 16", num_bytes), "copies", "");
    return Outcome::kFault;
  }
  CpAsyncQueue& queue = s.warp(ctx).cp_async;
  const std::uint32_t agent = ctx.cta->cluster->agent(AgentKind::kCpAsync, s.warp_in_cluster(ctx));
  const State::AgentAccess write = s.async_access_of(ctx, agent, queue.epoch, AccessClass::kWeakWrite, false, "copies (cp.async) to");
  const State::AgentAccess read = s.async_access_of(ctx, agent, queue.epoch, AccessClass::kWeakRead, false, "copies (cp.async) from");
  for (LaneMask rest = ctx.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint32_t num_source = source_bytes != nullptr ? source_bytes[lane] : num_bytes;
    if (num_source > num_bytes) {
      s.report(ctx, FindingKind::kBadOperand, lane, fmt::format("cp.async: src-size {} is larger than cp-size {}", num_source, num_bytes),
               "copies", "");
      return Outcome::kFault;
    }
    if ((shared[lane] | (num_source != 0 ? global[lane] : 0)) % num_bytes != 0) {
      s.report(ctx, FindingKind::kMisaligned, lane,
               fmt::format("cp.async of {} bytes from {} to {}: both must be multiples of {}", num_bytes,
                           s.describe_address(ctx, Space::kGlobal, global[lane]), s.describe_address(ctx, Space::kShared, shared[lane]),
                           num_bytes),
               "copies", "");
      return Outcome::kFault;
    }
    Target destination;
    Target source;
    if (!s.resolve(ctx, Space::kShared, shared[lane], num_bytes, lane, true, destination)) return Outcome::kFault;
    if (num_source != 0) {
      if (!s.resolve(ctx, Space::kGlobal, global[lane], num_source, lane, false, source)) return Outcome::kFault;
      if (s.options.checks_initialisation) s.check_initialised(ctx, source, num_source, lane, "copies (cp.async)");
    }
    s.mark_initialised(destination, num_bytes);
    if (s.options.checks_races) {
      s.shadow_range(ctx, destination, num_bytes, lane, write);
      if (num_source != 0) s.shadow_range(ctx, source, num_source, lane, read);
    }
    queue.pending.push_back({destination.bytes, source.bytes, queue.num_committed[static_cast<std::size_t>(lane)] + 1, queue.epoch,
                             static_cast<std::uint8_t>(lane), static_cast<std::uint8_t>(num_bytes), static_cast<std::uint8_t>(num_source)});
    if (s.takes_effect_at_issue()) run(queue.pending.back());
  }
  queue.is_epoch_used = queue.is_epoch_used || ctx.lanes != 0;
  ++s.store_count;
  return Outcome::kDone;
}

Outcome Machine::cp_async_commit(const Context& ctx) {
  CpAsyncQueue& queue = state_->warp(ctx).cp_async;
  for (LaneMask rest = ctx.lanes; rest != 0; rest &= rest - 1) ++queue.num_committed[static_cast<std::size_t>(std::countr_zero(rest))];
  state_->note(ctx, SyncKind::kCommit, queue.epoch);
  if (queue.is_epoch_used) ++queue.epoch;
  queue.is_epoch_used = false;
  return Outcome::kDone;
}

void Machine::State::finish_cp_async(WarpState& state, LaneMask lanes, const std::array<std::uint32_t, kLanes>& up_to_group,
                                     std::uint32_t agent) {
  CpAsyncQueue& queue = state.cp_async;
  for (CpAsyncCopy& copy : queue.pending) {
    if ((lanes >> copy.lane & 1) != 0 && copy.group <= up_to_group[copy.lane]) {
      run(copy);
      copy.group = 0;  // waited for
    }
  }
  std::erase_if(queue.pending, [](const CpAsyncCopy& copy) { return copy.group == 0; });
  // Copies are in issue order: everything before the first one that is still open is known.
  state.clock.seen.local.raise(agent,
                               queue.pending.empty() ? queue.epoch - (queue.is_epoch_used ? 0 : 1) : queue.pending.front().epoch - 1);
}

Outcome Machine::cp_async_wait(const Context& ctx, std::uint32_t num_pending_groups) {
  State& s = *state_;
  WarpState& state = s.warp(ctx);
  std::array<std::uint32_t, kLanes> up_to{};
  for (std::size_t lane = 0; lane < up_to.size(); ++lane) {
    const std::uint32_t committed = state.cp_async.num_committed[lane];
    up_to[lane] = committed > num_pending_groups ? committed - num_pending_groups : 0;
  }
  s.finish_cp_async(state, ctx.lanes, up_to, ctx.cta->cluster->agent(AgentKind::kCpAsync, s.warp_in_cluster(ctx)));
  s.note(ctx, SyncKind::kCopyWait);
  return Outcome::kDone;
}

Outcome Machine::cp_async_wait_all(const Context& ctx) {
  // PTX ISA, cp.async.wait_all: commit_group followed by wait_group 0.
  cp_async_commit(ctx);
  return cp_async_wait(ctx, 0);
}

Outcome Machine::cp_async_mbarrier_arrive(const Context& ctx, const std::uint64_t* address, bool is_noinc) {
  State& s = *state_;
  CpAsyncQueue& queue = s.warp(ctx).cp_async;
  const std::uint32_t agent = ctx.cta->cluster->agent(AgentKind::kCpAsync, s.warp_in_cluster(ctx));
  const std::uint32_t last_epoch = queue.epoch - (queue.is_epoch_used ? 0 : 1);
  for (LaneMask rest = ctx.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Target target;
    Mbarrier* barrier = s.find_mbarrier(ctx, Space::kShared, address[lane], lane, "arrives when its copies are done", target);
    if (barrier == nullptr) return Outcome::kFault;
    if (!is_noinc) ++barrier->pending;  // PTX ISA, cp.async.mbarrier.arrive: the count goes up by one, then the arrive takes it back
    auto land = [&s, ctx, target, lane, agent, last_epoch] {
      const auto found = target.cta->mbarriers.find(static_cast<std::uint32_t>(target.offset));
      if (found == target.cta->mbarriers.end()) return;
      std::deque<CpAsyncCopy>& pending = s.warp(ctx).cp_async.pending;
      const auto is_covered = [&](const CpAsyncCopy& copy) { return copy.lane == lane && copy.epoch <= last_epoch; };
      for (CpAsyncCopy& copy : pending) {
        if (is_covered(copy)) run(copy);
      }
      std::erase_if(pending, is_covered);
      found->second.arriving.seen.local.raise(agent, last_epoch);
      if (s.mbarrier_arrive(ctx, found->second, target, 1, lane)) s.mbarrier_check_complete(found->second);
    };
    if (s.takes_effect_at_issue()) {
      land();
    } else {
      ctx.cta->cluster->in_flight.emplace_back(std::move(land));
    }
  }
  if (queue.is_epoch_used) ++queue.epoch;
  queue.is_epoch_used = false;
  ++s.wake_count;
  return Outcome::kDone;
}

}  // namespace kw::simulate
