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

/// Adds snapshots to what the warp has seen; its own cluster's also go to the local clock.
void Machine::State::take_over(const Context& ctx, const ClusterClocks& clocks) {
  if (clocks.empty()) return;
  Clock& seen = warp(ctx).clock.seen;
  if (const VectorClock* own = clocks.find(ctx.cta->cluster->index)) seen.local.join(*own);
  seen.remote.join(clocks);
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
  const bool has_changed_cta = cell.published_cta.join(clock.fenced_cta);
  const bool has_changed_gpu = scope >= Scope::kGpu && cell.published_gpu.join(clock.fenced_gpu);
  if (has_changed_cta || has_changed_gpu) ++cell.version;
}

void Machine::State::acquire_from(const Context& ctx, std::uint64_t key, Order order, Scope scope) {
  const auto found = sync_cells.find(key);
  if (found == sync_cells.end()) return;
  const SyncCell& cell = found->second;
  WarpState& state = warp(ctx);
  const bool is_acquire = order == Order::kAcquire || order == Order::kAcqRel || order == Order::kSeqCst;
  if (state.last_sync_key == key && state.last_sync_version == cell.version && (state.was_last_sync_acquire || !is_acquire)) return;
  if (scope >= Scope::kGpu) {
    state.last_sync_key = key;
    state.last_sync_version = cell.version;
    state.was_last_sync_acquire = is_acquire;
  }
  Frontiers& clock = state.clock;
  const std::uint64_t own = ctx.cta->cluster->index;
  // Whatever the order, a later fence makes an acquire pattern of this read.
  if (const ClusterClocks::Snapshot* snapshot = cell.published_cta.snapshot(own)) clock.acquired_cta.join(own, *snapshot);
  if (scope >= Scope::kGpu) clock.acquired_gpu.join(cell.published_gpu);
  if (is_acquire) {
    note(ctx, SyncKind::kAcquire);
    take_over(ctx, clock.acquired_cta);
    if (scope >= Scope::kGpu) take_over(ctx, clock.acquired_gpu);
  }
}

void Machine::wait_for_grid(const Context& ctx) { state_->warp(ctx).has_waited_for_grid |= ctx.lanes; }

void Machine::fence(const Context& ctx, Order order, Scope scope) {
  (void)order;  // acq_rel and sc order the same accesses here: each access takes effect at once
  state_->note(ctx, SyncKind::kFence);
  state_->fence(ctx, scope);
}

}  // namespace kw::simulate
