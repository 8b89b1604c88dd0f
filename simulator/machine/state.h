// Inside of the machine: CTAs, clusters, warps, barriers, queues. Only the .cpp files of this folder include it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "simulator/machine/machine.h"
#include "simulator/machine/shadow.h"
#include "simulator/machine/sync_log.h"

namespace kw::simulate {

constexpr std::uint32_t kNumNamedBarriers = 16;              // PTX ISA, bar: "16 barriers numbered from 0 to 15"
constexpr std::uint32_t kMaxMbarrierCount = (1u << 20) - 1;  // PTX ISA, mbarrier contents; both limits seen on an H200
constexpr std::int64_t kMaxMbarrierTx = (1 << 20) - 1;

/// Kinds of agents of a cluster; see Cluster::agent().
enum class AgentKind : std::uint32_t {
  kGeneric = 0,
  kCpAsync = 1,
  kBulkRead = 2,   ///< bulk stores read shared memory
  kBulkWrite = 3,  ///< and write global memory
  kWgmma = 4,
  kMbarrier = 5  ///< from here on one agent an mbarrier: the copies that complete on it; its time is the phase
};

/// What a parked call waits for.
struct Wait {
  enum class Kind : std::uint8_t { kNone, kNamedBarrier, kMbarrier, kClusterBarrier };
  Kind kind = Kind::kNone;
  std::uint32_t pc = 0;
  LaneMask lanes = 0;
  std::uint32_t id_or_address = 0;
  std::uint64_t parity_or_state = 0;
  bool is_parity = false;
};

/// A try_wait that has returned false without the phase: it does so once, then parks.
struct TimedOut {
  std::uint32_t pc = 0;
  LaneMask lanes = 0;
  std::uint32_t offset = 0;  // of the mbarrier
  std::uint64_t phase = 0;
};

/// One non-bulk cp.async of one lane, kept until the lane has waited for it.
struct CpAsyncCopy {
  std::byte* destination = nullptr;
  const std::byte* source = nullptr;
  std::uint32_t group = 0;  // the lane's group number, from 1
  std::uint32_t epoch = 0;  // time of the warp's cp.async agent
  std::uint8_t lane = 0;
  std::uint8_t num_bytes = 0;
  std::uint8_t source_bytes = 0;
  bool is_done = false;
};

/// cp.async state of a warp. Groups are counted per lane: lanes of a diverged warp may commit different numbers of groups.
struct CpAsyncQueue {
  std::deque<CpAsyncCopy> pending;  // in issue order, so epochs do not fall
  std::array<std::uint32_t, kLanes> num_committed{};
  std::uint32_t epoch = 1;  // of the next copy; a commit or an mbarrier arrive ends it
  bool is_epoch_used = false;
};

/// Operations in groups, done at the latest when a wait covers the group: bulk stores of a warp, wgmma of a warpgroup.
struct GroupedOperation {
  std::uint32_t group = 0;  // from 1
  std::function<void()> effect;
};
struct GroupQueue {
  std::deque<GroupedOperation> pending;
  std::uint32_t num_committed = 0;
  bool has_open = false;  // operations issued since the last commit
};

struct WarpState {
  Frontiers clock;
  SyncLog log;
  LaneMask existing = 0;  // lanes of the launch's threads
  LaneMask exited = 0;
  LaneMask has_waited_for_grid = 0;  // lanes that have passed griddepcontrol.wait
  CpAsyncQueue cp_async;
  GroupQueue bulk;
  GroupQueue wgmma;
  // The last strong read: a spin loop reads the same address with nothing new in it again and again.
  std::uint64_t last_sync_key = 0;
  std::uint64_t last_sync_version = 0;
  bool was_last_sync_acquire = false;
  std::vector<Wait> waits;                               // one per parked group of lanes
  std::vector<TimedOut> timed_out;                       // one per group of lanes and pc
  std::map<std::uint64_t, std::uint64_t> acquired_maps;  // tensor map's address -> the publication that a fence has acquired
  // Named barriers and the cluster barrier: lanes that wait, and lanes that a completed generation has let go.
  std::array<LaneMask, kNumNamedBarriers> barrier_waiting{};
  std::array<LaneMask, kNumNamedBarriers> barrier_released{};
  LaneMask cluster_arrived = 0;          // of the open generation, not yet let go
  LaneMask cluster_released = 0;         // of a completed generation, not yet waited for
  std::uint64_t cluster_generation = 0;  // of the last cluster barrier waited for, from 1
  LaneMask live() const { return existing & ~exited; }
};

struct NamedBarrier {
  bool is_open = false;            // somebody has arrived in this generation
  bool counts_all = false;         // no count given: all threads that have not exited
  std::uint32_t num_expected = 0;  // threads
  std::uint32_t num_arrived = 0;
  std::vector<LaneMask> arrived;  // lanes by warp
  Place first;                    // who opened the generation
  Frontiers arriving;
  std::uint32_t num_true = 0;  // predicates of a reduction
  std::uint32_t num_predicates = 0;
  std::uint32_t result_true = 0;  // of the last completed generation
  std::uint32_t result_predicates = 0;
  std::uint64_t num_generations = 0;
};

struct Mbarrier {
  std::uint32_t count = 0;            // expected arrivals of the next phases
  std::uint32_t pending = 0;          // arrivals still missing in this phase
  std::int64_t tx = 0;                // bytes expected minus bytes completed
  std::uint64_t phase = 0;            // completed phases
  std::uint16_t agent = 0;            // component of its asynchronous writers
  bool is_init_fenced = false;        // fence.mbarrier_init or fence.proxy.async: the async proxy may complete bytes on it
  std::uint64_t init_generation = 0;  // of the cluster barrier that carries the fenced init by a relaxed arrive; 0: none
  Stamp init;
  std::map<std::uint16_t, Stamp> remote_arrives;  // the last one of each agent of another CTA
  Frontiers arriving;
  Frontiers published;
};

struct ClusterBarrier {
  std::uint64_t num_generations = 0;
  std::uint32_t num_arrived = 0;  // threads, without those that have exited
  Frontiers arriving;
  Frontiers published;
};

struct Cluster {
  std::uint64_t index = 0;
  std::vector<std::unique_ptr<Cta>> ctas;
  ClusterBarrier barrier;
  std::uint32_t num_warps = 0;   // of the whole cluster
  std::uint32_t next_agent = 0;  // mbarriers
  std::uint32_t num_live_threads = 0;
  std::deque<std::function<void()>> in_flight;  // in issue order
  std::uint32_t agent(AgentKind kind, std::uint32_t warp_in_cluster) const {
    return static_cast<std::uint32_t>(kind) * num_warps + warp_in_cluster;
  }
  std::uint32_t num_generic_agents() const { return 2 * num_warps; }  // cp.async is a generic-proxy operation
};

/// One CTA of a resident cluster.
class Cta {
 public:
  Cluster* cluster = nullptr;
  std::uint64_t linear = 0;
  std::array<std::uint32_t, 3> id{};
  std::uint32_t rank = 0;
  std::uint32_t num_live_threads = 0;
  std::vector<std::byte> shared;
  std::vector<std::uint64_t> shared_initialised;  // a bit a byte
  std::vector<ShadowCell> shared_shadow;          // a cell a word
  OverflowLists shared_overflow;
  std::vector<std::byte> local;
  std::vector<std::uint64_t> local_initialised;
  std::vector<WarpState> warps;
  std::array<NamedBarrier, kNumNamedBarriers> barriers;
  std::map<std::uint32_t, Mbarrier> mbarriers;  // by offset from the first byte
  Clock exit_clock;                             // what the threads that have exited knew
  std::uint32_t first_warp_in_cluster() const { return rank * static_cast<std::uint32_t>(warps.size()); }
};

/// Shadow of one allocation, by pages of kPageWords words that are made when first written.
struct GlobalShadow {
  static constexpr std::uint64_t kPageWords = 1024;
  std::vector<std::unique_ptr<std::array<ShadowCell, kPageWords>>> pages;
  OverflowLists overflow;
};

/// What has been published at an address by release operations, for acquire operations to take over.
struct SyncCell {
  ClusterClocks published_gpu;
  ClusterClocks published_cta;  ///< taken over by CTAs of the same cluster only
  std::uint64_t version = 0;    ///< changes with the two above
};

/// Where a lane's access lands.
struct Target {
  enum class Kind : std::uint8_t { kGlobal, kShared, kLocal } kind = Kind::kGlobal;
  std::byte* bytes = nullptr;
  std::uint64_t offset = 0;  // in the allocation, the shared memory from its first byte, or the thread's local memory
  Allocation* allocation = nullptr;
  Cta* cta = nullptr;  // whose shared memory
};

/// Names a barrier of a cluster in SyncStep::object.
inline std::uint64_t barrier_object(const Cta& cta, std::uint32_t id) { return std::uint64_t{cta.rank} << kSharedRankShift | id; }
inline std::uint64_t mbarrier_object(const Target& target) { return std::uint64_t{target.cta->rank} << kSharedRankShift | target.offset; }

struct Machine::State {
  State(GlobalMemory& memory_in, LaunchShape shape_in, MachineOptions options_in)
      : memory(memory_in), shape(std::move(shape_in)), options(options_in), random(options_in.schedule.seed) {}

  GlobalMemory& memory;
  LaunchShape shape;
  MachineOptions options;
  Findings findings;
  std::map<std::uint64_t, std::unique_ptr<Cluster>> clusters;  // resident ones
  std::unordered_map<const Allocation*, GlobalShadow> global_shadow;
  std::unordered_map<std::uint64_t, SyncCell> sync_cells;  // by address; shared ones by window address and cluster
  std::map<std::uint64_t, std::uint64_t> published_maps;   // tensor map's address -> how often this launch has published it
  std::uint64_t num_shadow_bytes = 0;
  bool has_unchecked_memory = false;  // the shadow's cap was reached
  std::uint64_t wake_count = 0;
  std::uint64_t store_count = 0;
  std::uint64_t num_sync_steps = 0;
  std::mt19937_64 random;

  // access.cpp
  bool resolve(const Context& ctx, Space space, std::uint64_t address, std::uint32_t num_bytes, int lane, bool is_store, Target& target);
  /// Reports an access that is no multiple of its size.
  bool check_aligned(const Context& ctx, Space space, std::uint64_t address, std::uint32_t num_bytes, int lane, const char* verb);
  /// An access of the warp itself or of an asynchronous agent, prepared once for all words of an instruction.
  struct AgentAccess {
    Stamp stamp;
    Accessor accessor;
    const char* verb = "";
  };
  AgentAccess access_of(const Context& ctx, AccessClass access, const char* verb) const;
  AgentAccess async_access_of(const Context& ctx, std::uint32_t agent, std::uint32_t epoch, AccessClass access, bool is_async_proxy,
                              const char* verb) const;
  void shadow_range(const Context& ctx, const Target& target, std::uint32_t num_bytes, int lane, const AgentAccess& access);
  bool check_initialised(const Context& ctx, const Target& target, std::uint32_t num_bytes, int lane, const char* verb);
  void mark_initialised(const Target& target, std::uint32_t num_bytes);
  GlobalShadow* shadow_of(const Allocation& allocation);

  // cta.cpp
  /// The CTA's last threads exit: accesses of other CTAs and of copies to its shared memory must come before.
  void check_exit(const Context& ctx);
  void check_exit(const Context& ctx, const Target& target, const Stamp& stamp);
  std::uint64_t linear_of(std::uint64_t cluster, std::uint32_t rank) const;
  std::array<std::uint32_t, 3> id_of(std::uint64_t cluster, std::uint32_t rank) const;

  // findings_text.cpp
  Place place(const Context& ctx, int lane, std::string role) const;
  std::string shared_name(std::uint64_t offset) const;
  std::string describe(const Target& target, std::uint64_t num_bytes) const;
  std::string describe_address(const Context& ctx, Space space, std::uint64_t address) const;
  void report(const Context& ctx, FindingKind kind, int lane, std::string message, std::string role, std::string remedy);
  void report_conflict(const Context& ctx, const Target& target, std::uint32_t num_bytes, int lane, const AgentAccess& access,
                       const Conflict& conflict);
  Place place_of(const Stamp& stamp, const std::string& object) const;

  // steps.cpp
  /// Adds a step to the warp's log.
  void note(const Context& ctx, SyncKind kind, std::uint64_t object = 0, std::uint64_t generation = 0);
  /// What the two warps passed between the earlier access and the one of `ctx`, as far as the logs go back.
  std::vector<PassedStep> steps_between(const Context& ctx, const Stamp& earlier) const;
  /// The warp of the cluster that issued the asynchronous operation at `pc` last: the index of its CTA and its own; else nothing.
  std::optional<std::pair<std::uint32_t, std::uint32_t>> issuer_of(std::uint64_t cluster, std::uint32_t pc) const;
  std::string describe_step(const SyncStep& step) const;
  /// Who initialised the barrier of this wait and who has arrived at it lately, by warp and instruction.
  WaitHistory history(const Context& ctx, const Wait& wait) const;

  // clocks of warps
  WarpState& warp(const Context& ctx) const { return ctx.cta->warps[ctx.warp]; }
  std::uint32_t warp_in_cluster(const Context& ctx) const { return ctx.cta->first_warp_in_cluster() + ctx.warp; }
  std::uint32_t own_agent(const Context& ctx) const { return warp_in_cluster(ctx); }
  /// Ends the warp's epoch after a release, so that later accesses are not covered by it.
  void advance(const Context& ctx) {
    VectorClock& local = warp(ctx).clock.seen.local;
    local.raise(own_agent(ctx), local.get(own_agent(ctx)) + 1);
  }
  // sync.cpp
  void fence(const Context& ctx, Scope scope);
  void take_over(const Context& ctx, const ClusterClocks& clocks);
  void release_to(const Context& ctx, std::uint64_t key, Order order, Scope scope);
  void acquire_from(const Context& ctx, std::uint64_t key, Order order, Scope scope);
  static std::uint64_t sync_key(const Target& target);

  // barriers
  Outcome barrier_call(const Context& ctx, std::uint32_t id, std::uint32_t num_threads, bool is_aligned, bool waits,
                       const LaneMask* predicates);
  void barrier_check_complete(Cta& cta, std::uint32_t id);
  void cluster_barrier_check_complete(Cluster& cluster);
  std::string describe(const Context& ctx, const Wait& wait) const;
  void park(const Context& ctx, Wait wait);
  void unpark(const Context& ctx);

  // mbarrier.cpp
  /// The barrier at a shared address, or null after a finding. Checks that this user comes after the mbarrier.init.
  Mbarrier* find_mbarrier(const Context& ctx, Space space, std::uint64_t address, int lane, const char* verb, Target& target);
  bool mbarrier_arrive(const Context& ctx, Mbarrier& barrier, const Target& target, std::uint32_t count, int lane);
  bool mbarrier_add_tx(const Context& ctx, Mbarrier& barrier, const Target& target, std::int64_t bytes, int lane);
  void mbarrier_check_complete(Mbarrier& barrier);
  /// Reports a barrier on which the async proxy is to complete bytes although no fence has made its init known there.
  void check_init_fenced(const Context& ctx, const Mbarrier& barrier, const Target& target, int lane);
  /// The adversary lets this try_wait return false although the phase is not complete.
  bool times_out(const Context& ctx, const Wait& wait, std::uint64_t phase);
  std::string describe_mbarrier(const Target& target) const;

  // async.cpp
  bool takes_effect_at_issue();
  bool run_one_in_flight(Cluster& cluster, std::size_t position);
  void run_groups(GroupQueue& queue, std::uint32_t up_to_group);
  /// Puts a copy in flight that will complete bytes on a barrier, or runs it now (eager).
  void launch_on_mbarrier(const Context& ctx, const Target& barrier, std::uint32_t tx_bytes, std::function<void()> effect);

  // cp_async.cpp
  void finish_cp_async(WarpState& state, LaneMask lanes, const std::array<std::uint32_t, kLanes>& up_to_group, std::uint32_t agent);

  // bulk.cpp
  struct ResolvedPiece {
    std::byte* destination = nullptr;
    const std::byte* source = nullptr;
    std::uint32_t num_bytes = 0;
    std::uint16_t fill = 0;
  };
  Outcome load_to(const Context& ctx, std::span<const CopyPiece> pieces, std::uint32_t mbarrier, std::uint32_t tx_bytes,
                  std::uint32_t moved_to, bool is_moved);
};

}  // namespace kw::simulate
