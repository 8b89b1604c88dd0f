// Bulk and tensor copies. Loads complete on an mbarrier and carry only their own bytes (PTX ISA, 8.9.1.1); stores form groups of the
// issuing thread. All go through the async proxy: generic writes they meet need a fence.proxy.async before (PTX ISA, 8.9.5).
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "simulator/machine/reduction.h"
#include "simulator/machine/state.h"

namespace kw::simulate {
namespace {

int issuing_lane(const Context& ctx) { return ctx.lanes == 0 ? 0 : std::countr_zero(ctx.lanes); }

void fill_bytes(std::byte* destination, std::uint32_t num_bytes, std::uint16_t pattern) {
  for (std::uint32_t byte = 0; byte < num_bytes; ++byte) destination[byte] = static_cast<std::byte>(pattern >> (byte % 2 * 8) & 0xff);
}

std::uint32_t moved(std::uint32_t address, std::uint32_t rank) { return rank << kSharedRankShift | (address & kSharedOffsetMask); }

}  // namespace

Outcome Machine::State::load_to(const Context& ctx, std::span<const CopyPiece> pieces, std::uint32_t mbarrier, std::uint32_t tx_bytes,
                                std::uint32_t rank, bool is_moved) {
  const int lane = issuing_lane(ctx);
  Target barrier_at;
  Mbarrier* barrier =
      find_mbarrier(ctx, Space::kSharedCluster, is_moved ? moved(mbarrier, rank) : mbarrier, lane, "copies with completion on", barrier_at);
  if (barrier == nullptr) return Outcome::kFault;
  check_init_fenced(ctx, *barrier, barrier_at, lane);
  const auto epoch = static_cast<std::uint32_t>(barrier->phase + 1);
  const AgentAccess write = async_access_of(ctx, barrier->agent, epoch, AccessClass::kWeakWrite, true, "copies (bulk) to");
  const AgentAccess read = async_access_of(ctx, barrier->agent, epoch, AccessClass::kWeakRead, true, "copies (bulk) from");
  std::vector<ResolvedPiece> resolved;
  resolved.reserve(pieces.size());
  for (const CopyPiece& piece : pieces) {
    Target destination;
    Target source;
    if (!resolve(ctx, Space::kSharedCluster, is_moved ? moved(piece.shared, rank) : piece.shared, piece.num_bytes, lane, true, destination))
      return Outcome::kFault;
    if (!piece.is_fill) {
      if (!resolve(ctx, Space::kGlobal, piece.global, piece.num_bytes, lane, false, source)) return Outcome::kFault;
      if (options.checks_initialisation) check_initialised(ctx, source, piece.num_bytes, lane, "copies (bulk)");
      if (options.checks_races) shadow_range(ctx, source, piece.num_bytes, lane, read);
    }
    mark_initialised(destination, piece.num_bytes);
    if (options.checks_races) shadow_range(ctx, destination, piece.num_bytes, lane, write);
    resolved.push_back({destination.bytes, source.bytes, piece.num_bytes, piece.fill});
  }
  launch_on_mbarrier(ctx, barrier_at, tx_bytes, [resolved = std::move(resolved)] {
    for (const ResolvedPiece& piece : resolved) {
      if (piece.source == nullptr) {
        fill_bytes(piece.destination, piece.num_bytes, piece.fill);
      } else {
        std::memmove(piece.destination, piece.source, piece.num_bytes);
      }
    }
  });
  return Outcome::kDone;
}

Outcome Machine::bulk_load(const Context& ctx, std::span<const CopyPiece> pieces, std::uint32_t mbarrier, std::uint32_t tx_bytes,
                           std::uint16_t cta_mask) {
  State& s = *state_;
  ++s.store_count;
  s.note(ctx, SyncKind::kAsyncIssue);
  if (cta_mask == 0) return s.load_to(ctx, pieces, mbarrier, tx_bytes, 0, false);
  const std::size_t num_ctas = ctx.cta->cluster->ctas.size();
  if (static_cast<std::size_t>(std::bit_width(cta_mask)) > num_ctas) {
    s.report(ctx, FindingKind::kBadOperand, issuing_lane(ctx),
             fmt::format("multicast mask {:#x}: the cluster has {} CTAs", cta_mask, num_ctas), "copies (bulk)", "");
    return Outcome::kFault;
  }
  for (std::uint32_t rank = 0; rank < num_ctas; ++rank) {
    if ((cta_mask >> rank & 1) == 0) continue;
    if (const Outcome outcome = s.load_to(ctx, pieces, mbarrier, tx_bytes, rank, true); outcome != Outcome::kDone) return outcome;
  }
  return Outcome::kDone;
}

Outcome Machine::bulk_copy_shared(const Context& ctx, std::uint32_t destination, std::uint32_t source, std::uint32_t num_bytes,
                                  std::uint32_t mbarrier) {
  State& s = *state_;
  ++s.store_count;
  s.note(ctx, SyncKind::kAsyncIssue);
  const int lane = issuing_lane(ctx);
  Target barrier_at;
  Mbarrier* barrier = s.find_mbarrier(ctx, Space::kSharedCluster, mbarrier, lane, "copies with completion on", barrier_at);
  if (barrier == nullptr) return Outcome::kFault;
  s.check_init_fenced(ctx, *barrier, barrier_at, lane);
  const auto epoch = static_cast<std::uint32_t>(barrier->phase + 1);
  Target to;
  Target from;
  if (!s.resolve(ctx, Space::kSharedCluster, destination, num_bytes, lane, true, to)) return Outcome::kFault;
  if (!s.resolve(ctx, Space::kShared, source, num_bytes, lane, false, from)) return Outcome::kFault;
  if (s.options.checks_initialisation) s.check_initialised(ctx, from, num_bytes, lane, "copies (bulk)");
  s.mark_initialised(to, num_bytes);
  if (s.options.checks_races) {
    s.shadow_range(ctx, from, num_bytes, lane,
                   s.async_access_of(ctx, barrier->agent, epoch, AccessClass::kWeakRead, true, "copies (bulk) from"));
    s.shadow_range(ctx, to, num_bytes, lane,
                   s.async_access_of(ctx, barrier->agent, epoch, AccessClass::kWeakWrite, true, "copies (bulk) to"));
  }
  s.launch_on_mbarrier(ctx, barrier_at, num_bytes, [to, from, num_bytes] { std::memmove(to.bytes, from.bytes, num_bytes); });
  return Outcome::kDone;
}

Outcome Machine::store_async(const Context& ctx, std::uint32_t bytes, const std::uint64_t* address, const std::byte* data,
                             const std::uint64_t* mbarrier) {
  State& s = *state_;
  ++s.store_count;
  s.note(ctx, SyncKind::kAsyncIssue);
  for (LaneMask rest = ctx.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Target barrier_at;
    Mbarrier* barrier = s.find_mbarrier(ctx, Space::kSharedCluster, mbarrier[lane], lane, "stores with completion on", barrier_at);
    if (barrier == nullptr) return Outcome::kFault;
    if (address[lane] % bytes != 0) {
      s.report(ctx, FindingKind::kMisaligned, lane,
               fmt::format("{}: an access of {} bytes must be a multiple of {}",
                           s.describe_address(ctx, Space::kSharedCluster, address[lane]), bytes, bytes),
               "stores", "");
      return Outcome::kFault;
    }
    Target to;
    if (!s.resolve(ctx, Space::kSharedCluster, address[lane], bytes, lane, true, to)) return Outcome::kFault;
    if (to.cta != barrier_at.cta) {
      s.report(ctx, FindingKind::kBadOperand, lane, "st.async: the address and the mbarrier lie in different CTAs", "stores", "");
      return Outcome::kFault;
    }
    s.mark_initialised(to, bytes);
    if (s.options.checks_races) {
      const auto epoch = static_cast<std::uint32_t>(barrier->phase + 1);
      s.shadow_range(ctx, to, bytes, lane,
                     s.async_access_of(ctx, barrier->agent, epoch, AccessClass::kWeakWrite, false, "stores (asynchronously) to"));
    }
    std::array<std::byte, 16> value{};
    std::memcpy(value.data(), data + static_cast<std::size_t>(lane) * bytes, bytes);
    s.launch_on_mbarrier(ctx, barrier_at, bytes, [to, value, bytes] { std::memcpy(to.bytes, value.data(), bytes); });
  }
  return Outcome::kDone;
}

Outcome Machine::bulk_store(const Context& ctx, std::span<const CopyPiece> pieces, const AtomicKind* reduction) {
  State& s = *state_;
  ++s.store_count;
  s.note(ctx, SyncKind::kAsyncIssue);
  const int lane = issuing_lane(ctx);
  GroupQueue& queue = s.warp(ctx).bulk;
  const Cluster& cluster = *ctx.cta->cluster;
  const std::uint32_t group = queue.num_committed + 1;
  const std::uint32_t warp = s.warp_in_cluster(ctx);
  const State::AgentAccess read =
      s.async_access_of(ctx, cluster.agent(AgentKind::kBulkRead, warp), group, AccessClass::kWeakRead, true, "copies (bulk) from");
  const AccessClass write_class = reduction != nullptr ? AccessClass::kStrongUpdate : AccessClass::kWeakWrite;
  const State::AgentAccess write =
      s.async_access_of(ctx, cluster.agent(AgentKind::kBulkWrite, warp), group, write_class, true, "copies (bulk) to");
  std::vector<State::ResolvedPiece> resolved;
  resolved.reserve(pieces.size());
  for (const CopyPiece& piece : pieces) {
    KW_CHECK(!piece.is_fill, "stores are clipped by the caller");
    Target source;
    Target destination;
    if (!s.resolve(ctx, Space::kShared, piece.shared, piece.num_bytes, lane, false, source)) return Outcome::kFault;
    if (!s.resolve(ctx, Space::kGlobal, piece.global, piece.num_bytes, lane, true, destination)) return Outcome::kFault;
    if (s.options.checks_initialisation) {
      s.check_initialised(ctx, source, piece.num_bytes, lane, "copies (bulk)");
      if (reduction != nullptr) s.check_initialised(ctx, destination, piece.num_bytes, lane, "reduces (bulk)");
    }
    if (s.options.checks_races) {
      s.shadow_range(ctx, source, piece.num_bytes, lane, read);
      s.shadow_range(ctx, destination, piece.num_bytes, lane, write);
    }
    s.mark_initialised(destination, piece.num_bytes);
    resolved.push_back({destination.bytes, source.bytes, piece.num_bytes, 0});
  }
  queue.has_open = true;
  const bool is_reduction = reduction != nullptr;
  const AtomicKind kind = is_reduction ? *reduction : AtomicKind{};
  const std::uint32_t element_bytes = is_reduction ? atomic_bytes(kind.type) : 1;
  queue.pending.push_back({group, [resolved = std::move(resolved), is_reduction, kind, element_bytes] {
                             for (const State::ResolvedPiece& piece : resolved) {
                               if (!is_reduction) std::memmove(piece.destination, piece.source, piece.num_bytes);
                               for (std::uint32_t at = 0; is_reduction && at + element_bytes <= piece.num_bytes; at += element_bytes) {
                                 apply_reduction(kind, piece.destination + at, piece.source + at);
                               }
                             }
                           }});
  if (s.takes_effect_at_issue()) s.run_groups(queue, group);
  return Outcome::kDone;
}

Outcome Machine::bulk_commit(const Context& ctx) {
  GroupQueue& queue = state_->warp(ctx).bulk;
  ++queue.num_committed;
  queue.has_open = false;
  return Outcome::kDone;
}

Outcome Machine::bulk_wait(const Context& ctx, std::uint32_t num_pending_groups, bool is_read_only) {
  State& s = *state_;
  WarpState& state = s.warp(ctx);
  GroupQueue& queue = state.bulk;
  const std::uint32_t done = queue.num_committed > num_pending_groups ? queue.num_committed - num_pending_groups : 0;
  s.run_groups(queue, done);
  s.note(ctx, SyncKind::kCopyWait);
  VectorClock& local = state.clock.seen.local;
  const Cluster& cluster = *ctx.cta->cluster;
  local.raise(cluster.agent(AgentKind::kBulkRead, s.warp_in_cluster(ctx)), done);
  if (!is_read_only) local.raise(cluster.agent(AgentKind::kBulkWrite, s.warp_in_cluster(ctx)), done);
  return Outcome::kDone;
}

void Machine::fence_proxy_async(const Context& ctx) {
  State& s = *state_;
  Frontiers& clock = s.warp(ctx).clock;
  clock.async_seen = clock.seen.local;
  for (auto& [offset, barrier] : ctx.cta->mbarriers) {
    barrier.is_init_fenced = barrier.is_init_fenced || clock.seen.local.get(barrier.init.agent) >= barrier.init.epoch;
  }
  s.note(ctx, SyncKind::kProxyFence);
  s.advance(ctx);
}

}  // namespace kw::simulate
