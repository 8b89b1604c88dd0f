// Release and acquire by fences, atomics and strong accesses. PTX ISA, memory consistency model: a release pattern is a release
// operation, or a fence followed by a strong write; an acquire pattern is an acquire operation, or a strong read followed by a fence.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/machine/state.h"

namespace kw::simulate {

std::uint64_t Machine::State::sync_key(const Target& target) {
  if (target.kind == Target::Kind::kGlobal) return target.allocation->address + target.offset;
  // Shared memory of a CTA: outside of the range of global addresses.
  return (std::uint64_t{1} << 63) | (target.cta->linear << kSharedRankShift) | target.offset;
}

/// Adds other clusters' snapshots to what the warp has seen; its own cluster's go to the local clock.
void Machine::State::take_over(const Context& ctx, const ClusterClocks& clocks) {
  Clock& seen = warp(ctx).clock.seen;
  const std::uint64_t own = ctx.cta->cluster->index;
  for (const auto& [cluster, snapshot] : clocks.entries()) {
    if (cluster == own) {
      seen.local.join(*snapshot);
    } else {
      seen.remote.join(cluster, snapshot);
    }
  }
}

void Machine::State::fence(const Context& ctx, Scope scope) {
  Frontiers& clock = warp(ctx).clock;
  take_over(ctx, clock.acquired_cta);
  clock.acquired_cta.clear();
  if (scope >= Scope::kGpu) {
    take_over(ctx, clock.acquired_gpu);
    clock.acquired_gpu.clear();
  }
  const auto snapshot = std::make_shared<const VectorClock>(clock.seen.local);
  const std::uint64_t own = ctx.cta->cluster->index;
  clock.fenced_cta.join(own, snapshot);
  clock.fenced_cta.join(clock.seen.remote);
  if (scope >= Scope::kGpu) {
    clock.fenced_gpu.join(own, snapshot);
    clock.fenced_gpu.join(clock.seen.remote);
  }
  advance(ctx);
}

void Machine::State::release_to(const Context& ctx, std::uint64_t key, Order order, Scope scope) {
  if (order == Order::kRelease || order == Order::kAcqRel || order == Order::kSeqCst) {
    note(ctx, SyncKind::kRelease);
    fence(ctx, scope);
  }
  const Frontiers& clock = warp(ctx).clock;
  if (clock.fenced_cta.empty()) return;  // nothing to publish: no fence so far
  SyncCell& cell = sync_cells[key];
  cell.published_cta.join(clock.fenced_cta);
  if (scope >= Scope::kGpu) cell.published_gpu.join(clock.fenced_gpu);
}

void Machine::State::acquire_from(const Context& ctx, std::uint64_t key, Order order, Scope scope) {
  const auto found = sync_cells.find(key);
  if (found == sync_cells.end()) return;
  const SyncCell& cell = found->second;
  Frontiers& clock = warp(ctx).clock;
  const std::uint64_t own = ctx.cta->cluster->index;
  // Whatever the order, a later fence makes an acquire pattern of this read.
  for (const auto& [cluster, snapshot] : cell.published_cta.entries()) {
    if (cluster == own) clock.acquired_cta.join(cluster, snapshot);
  }
  if (scope >= Scope::kGpu) clock.acquired_gpu.join(cell.published_gpu);
  if (order == Order::kAcquire || order == Order::kAcqRel || order == Order::kSeqCst) {
    note(ctx, SyncKind::kAcquire);
    take_over(ctx, clock.acquired_cta);
    if (scope >= Scope::kGpu) take_over(ctx, clock.acquired_gpu);
  }
}

void Machine::fence(const Context& ctx, Order order, Scope scope) {
  (void)order;  // acq_rel and sc order the same accesses here: each access takes effect at once
  state_->note(ctx, SyncKind::kFence);
  state_->fence(ctx, scope);
}

}  // namespace kw::simulate
