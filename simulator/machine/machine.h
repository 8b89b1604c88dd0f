// The machine of one launch: every call of the executor that touches memory, barriers or asynchronous operations.
// It checks bounds, alignment, initialisation, races (vector clocks), proxies and barrier use, and records findings.
// A call that returns kParked is repeated with equal arguments once wake_count() has changed; repeating it is free of effects.
// The machine does not execute instructions, order warps or know PTX; see simulator/execute and simulator/launch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "generator/base/error.h"
#include "simulator/machine/async.h"
#include "simulator/machine/finding.h"
#include "simulator/machine/memory.h"
#include "simulator/machine/types.h"

namespace kw::simulate {

/// A named part of shared memory, for reports only.
struct SharedSymbol {
  std::string name;
  std::uint32_t offset = 0;  ///< from shared_base()
  std::uint32_t num_bytes = 0;
};

/// What all CTAs of a launch have in common.
struct LaunchShape {
  std::array<std::uint32_t, 3> grid = {1, 1, 1};
  std::array<std::uint32_t, 3> block = {1, 1, 1};
  std::array<std::uint32_t, 3> cluster = {1, 1, 1};
  std::uint32_t shared_bytes = 0;            ///< static + dynamic of one CTA
  std::uint32_t local_bytes_per_thread = 0;  ///< .local depots
  std::vector<SharedSymbol> shared_symbols = {};
  std::uint32_t num_threads() const { return block[0] * block[1] * block[2]; }
  std::uint32_t num_warps() const { return (num_threads() + kLanes - 1) / kLanes; }
  std::uint32_t ctas_per_cluster() const { return cluster[0] * cluster[1] * cluster[2]; }
};

struct MachineOptions {
  Schedule schedule = {};
  bool checks_races = true;
  bool checks_initialisation = true;
  bool is_strict = false;     ///< also report practice that the text of PTX does not grant but all known hardware keeps
  bool is_dependent = false;  ///< the grid before this one may still run: global memory only after griddepcontrol.wait
};

enum class AtomicOp : std::uint8_t { kAdd, kMin, kMax, kInc, kDec, kAnd, kOr, kXor, kExch, kCas };
enum class AtomicType : std::uint8_t { kU32, kS32, kU64, kS64, kF32, kF64, kF16, kBF16, kF16x2, kBF16x2, kB16, kB32, kB64, kB128 };
struct AtomicKind {
  AtomicOp op = AtomicOp::kAdd;
  AtomicType type = AtomicType::kU32;
  Space space = Space::kGeneric;
  Order order = Order::kRelaxed;  ///< PTX: .relaxed when no order is written
  Scope scope = Scope::kGpu;
  bool is_reduction = false;  ///< red: returns nothing
};

enum class BarrierReduction : std::uint8_t { kPopc = 0, kAnd = 1, kOr = 2 };

/// Forms of mbarrier.arrive.
struct ArriveKind {
  Space space = Space::kShared;
  std::uint32_t count = 1;
  bool has_expect_tx = false;
  std::uint32_t tx_bytes = 0;
  bool is_drop = false;         ///< arrive_drop
  bool is_no_complete = false;  ///< .noComplete
  Order order = Order::kRelease;
  Scope scope = Scope::kCta;
};

/// Forms of mbarrier.test_wait and try_wait.
struct WaitKind {
  bool is_parity = true;
  bool may_park = true;  ///< try_wait; false: test_wait, which answers at once
  Order order = Order::kAcquire;
  Scope scope = Scope::kCta;
};

/// What led to a wait at a barrier.
struct WaitHistory {
  std::vector<Place> places;    ///< who initialised the mbarrier, then the latest arrivals at the barrier
  bool has_no_arrival = false;  ///< of an mbarrier: nobody has arrived at it since its initialisation
};

class Machine {
 public:
  struct State;  ///< inside: state.h

  Machine(GlobalMemory& memory, LaunchShape shape, MachineOptions options);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // --- CTAs (called by the launch) ---
  /// Makes the CTAs of one cluster resident; `cluster` counts clusters of the grid in x, y, z order. Returns them by rank.
  std::vector<Cta*> admit(std::uint64_t cluster);
  /// All threads have exited and nothing is pending: frees the cluster's memory after last checks.
  void retire(std::uint64_t cluster);

  // --- Facts about a CTA ---
  std::uint32_t linear_cta(const Cta& cta) const;  ///< index in the grid, x fastest
  std::array<std::uint32_t, 3> ctaid(const Cta& cta) const;
  std::uint32_t rank_in_cluster(const Cta& cta) const;
  std::uint64_t cluster_of(const Cta& cta) const;
  std::uint32_t shared_base(const Cta& cta) const;  ///< 32-bit shared address of the first static byte
  const LaunchShape& shape() const;
  GlobalMemory& global();

  // --- Memory. `address[lane]` in kind.space; data of lane l at data + l * kind.bytes; lanes off the mask are left alone ---
  Outcome load(const Context& ctx, AccessKind kind, const std::uint64_t* address, std::byte* data);
  Outcome store(const Context& ctx, AccessKind kind, const std::uint64_t* address, const std::byte* data);
  /// `operand` and `compare` (kCas only; else null) hold one element a lane at its type's size; `old` may be null for reductions.
  /// A vector form is the caller's loop over its elements.
  Outcome atomic(const Context& ctx, AtomicKind kind, const std::uint64_t* address, const std::byte* operand, const std::byte* compare,
                 std::byte* old);
  /// 16-byte rows by lane, as ldmatrix and stmatrix access them. row_address[lane] for the lanes in ctx.lanes; data + 16 * lane.
  Outcome load_rows(const Context& ctx, const std::uint32_t* row_address, std::byte* data);
  Outcome store_rows(const Context& ctx, const std::uint32_t* row_address, const std::byte* data);
  /// membar / fence.acq_rel / fence.sc
  void fence(const Context& ctx, Order order, Scope scope);
  /// griddepcontrol.wait: from here on these lanes may touch global memory in a dependent launch.
  void wait_for_grid(const Context& ctx);
  /// mapa: the shared address of the same offset in the CTA of rank `rank`; kFault when there is no such CTA.
  Outcome map_to_rank(const Context& ctx, std::uint32_t address, std::uint32_t rank, std::uint32_t& mapped);

  // --- Named barriers. num_threads 0: all threads of the CTA ---
  Outcome barrier_sync(const Context& ctx, std::uint32_t id, std::uint32_t num_threads, bool is_aligned);
  Outcome barrier_arrive(const Context& ctx, std::uint32_t id, std::uint32_t num_threads, bool is_aligned);
  /// `predicates`: bit per lane. On kDone `result` is the count, or 0 / 1.
  Outcome barrier_reduce(const Context& ctx, std::uint32_t id, std::uint32_t num_threads, bool is_aligned, BarrierReduction op,
                         LaneMask predicates, std::uint32_t& result);
  /// bar.warp.sync and other points where a warp's lanes order their accesses. Never parks: the executor gathers the lanes.
  void warp_sync(const Context& ctx);

  // --- Cluster barrier ---
  Outcome cluster_arrive(const Context& ctx, Order order);
  Outcome cluster_wait(const Context& ctx, Order order);

  // --- mbarrier. `address[lane]`: shared address; lanes arrive one by one ---
  Outcome mbarrier_init(const Context& ctx, const std::uint64_t* address, const std::uint32_t* count);
  Outcome mbarrier_inval(const Context& ctx, const std::uint64_t* address);
  /// `count` and `tx_bytes` of kind hold for all lanes, unless the pointers (one a lane) are given. `state` may be null (sink `_`).
  Outcome mbarrier_arrive(const Context& ctx, const ArriveKind& kind, const std::uint64_t* address, const std::uint32_t* count,
                          const std::uint32_t* tx_bytes, std::uint64_t* state);
  Outcome mbarrier_expect_tx(const Context& ctx, Space space, const std::uint64_t* address, const std::uint32_t* tx_bytes);
  Outcome mbarrier_complete_tx(const Context& ctx, Space space, const std::uint64_t* address, const std::uint32_t* tx_bytes);
  /// `state_or_parity[lane]`. `completed` gets the lanes whose wait succeeded. kParked only if kind.may_park and no lane succeeded;
  /// the lazy and the random adversary may also let such a wait end without success, once.
  Outcome mbarrier_wait(const Context& ctx, const WaitKind& kind, const std::uint64_t* address, const std::uint64_t* state_or_parity,
                        LaneMask& completed);
  Outcome mbarrier_pending_count(const Context& ctx, const std::uint64_t* state, std::uint32_t* count);

  // --- cp.async (non-bulk) ---
  /// Copies source_bytes[lane] bytes and fills with zeros up to `num_bytes` (4, 8, 16). source_bytes null: all of them.
  Outcome cp_async(const Context& ctx, std::uint32_t num_bytes, const std::uint64_t* shared, const std::uint64_t* global,
                   const std::uint32_t* source_bytes);
  Outcome cp_async_commit(const Context& ctx);
  Outcome cp_async_wait(const Context& ctx, std::uint32_t num_pending_groups);
  Outcome cp_async_wait_all(const Context& ctx);
  Outcome cp_async_mbarrier_arrive(const Context& ctx, const std::uint64_t* address, bool is_noinc);

  // --- Bulk and tensor copies; one issuing lane (the lowest of ctx.lanes) ---
  /// global -> shared; completes `tx` bytes on `mbarrier` (32-bit shared address). cta_mask 0: no multicast, pieces and mbarrier hold
  /// as they are; else for each set rank the pieces and the mbarrier are moved to that rank.
  Outcome bulk_load(const Context& ctx, std::span<const CopyPiece> pieces, std::uint32_t mbarrier, std::uint32_t tx_bytes,
                    std::uint16_t cta_mask);
  /// shared -> global in the issuing thread's open bulk group; `reduction` null: plain store.
  Outcome bulk_store(const Context& ctx, std::span<const CopyPiece> pieces, const AtomicKind* reduction);
  /// shared::cta -> shared::cluster, completes on the destination's mbarrier.
  Outcome bulk_copy_shared(const Context& ctx, std::uint32_t destination, std::uint32_t source, std::uint32_t num_bytes,
                           std::uint32_t mbarrier);
  /// st.async: one element a lane into shared::cluster, completes its bytes on the mbarrier of that CTA.
  Outcome store_async(const Context& ctx, std::uint32_t bytes, const std::uint64_t* address, const std::byte* data,
                      const std::uint64_t* mbarrier);
  Outcome bulk_commit(const Context& ctx);
  Outcome bulk_wait(const Context& ctx, std::uint32_t num_pending_groups, bool is_read_only);
  /// fence.proxy.async: the warp's ordered generic accesses become visible to the async proxy.
  void fence_proxy_async(const Context& ctx);
  void fence_mbarrier_init(const Context& ctx);

  // --- Tensor maps that the kernel makes or changes. The machine moves their bytes and does not know what is in them ---
  /// The map at a generic address, for a tensor copy: bounds, order, and the proxy fence after a publish_tensor_map.
  Outcome read_tensor_map(const Context& ctx, std::uint64_t address, std::span<std::byte> bytes);
  /// tensormap.cp_fenceproxy: shared -> global, once for the warp, then a release at `scope` that covers the copy.
  Outcome publish_tensor_map(const Context& ctx, std::uint64_t global, std::uint32_t shared, std::uint32_t num_bytes, Scope scope);
  /// fence.proxy.tensormap::generic.acquire: later tensor copies of the warp may use the map at `address[lane]`.
  Outcome acquire_tensor_map(const Context& ctx, const std::uint64_t* address, Scope scope);

  // --- Tensor-core operations that read shared memory asynchronously (wgmma). Called by one warp for its warpgroup ---
  /// Checks and records the reads; `effect` runs now (eager) or by the adversary, at the latest in the wait that covers its group.
  Outcome tensor_issue(const Context& ctx, std::span<const SharedRange> reads, Effect effect);
  /// Reads bytes for an effect, without checks.
  void peek_shared(const Cta& cta, std::uint32_t address, std::span<std::byte> bytes) const;
  Outcome tensor_commit(const Context& ctx);
  Outcome tensor_wait(const Context& ctx, std::uint32_t num_pending_groups);

  // --- Life of threads, waiting, reports ---
  /// The lanes of ctx have executed exit (or ret of the kernel).
  void exit_lanes(const Context& ctx);
  /// Changes whenever something happened for which a parked call may go on.
  std::uint64_t wake_count() const;
  /// Called between instructions of the scheduling loop: the random adversary completes operations here.
  void tick();
  /// Nothing is runnable: completes one pending asynchronous operation; false when there is none (then it is a deadlock).
  bool force_one_completion();
  /// Why the latest kParked call of this warp waits, with the state of now: "mbarrier full[1] (shared + 64): waits for parity 0,
  /// phase 3, 1 of 1 arrivals pending, 16384 bytes outstanding".
  std::string describe_wait(const Context& ctx) const;
  /// Beside describe_wait: who initialised that barrier, and who has arrived at it lately.
  WaitHistory wait_history(const Context& ctx) const;
  /// Stores so far (any space): an unchanged value over a backward branch marks a spin loop.
  std::uint64_t store_count() const;
  /// "shared 'smem' + 128", "global 'A' + 4096": for reports.
  std::string describe_address(const Context& ctx, Space space, std::uint64_t address) const;
  /// Records a finding of the caller's own (divergent .aligned, bad operand, trap).
  void report(Finding finding);
  Place place(const Context& ctx, int lane, std::string role) const;
  const Findings& findings() const;
  /// The shadow of global memory reached its cap: races on further words were not looked for.
  bool has_unchecked_memory() const;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace kw::simulate
