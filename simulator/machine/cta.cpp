// Clusters and CTAs: made resident, looked up, retired; threads that exit.
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include <fmt/format.h>

#include "simulator/machine/bits.h"
#include "simulator/machine/state.h"

namespace kw::simulate {
namespace {

constexpr std::byte kPoison{0xff};  // a NaN in every float type

LaneMask lanes_of_warp(std::uint32_t num_threads, std::uint32_t warp) {
  const std::uint32_t rest = num_threads - warp * kLanes;
  return rest >= kLanes ? kAllLanes : (LaneMask{1} << rest) - 1;
}

}  // namespace

Machine::Machine(GlobalMemory& memory, LaunchShape shape, MachineOptions options)
    : state_(std::make_unique<State>(memory, std::move(shape), options)) {}
Machine::~Machine() = default;

std::array<std::uint32_t, 3> Machine::State::id_of(std::uint64_t cluster, std::uint32_t rank) const {
  std::array<std::uint32_t, 3> id{};
  std::uint64_t rest = rank;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::uint64_t num_clusters = shape.grid[axis] / shape.cluster[axis];
    id[axis] = static_cast<std::uint32_t>(cluster % num_clusters * shape.cluster[axis] + rest % shape.cluster[axis]);
    cluster /= num_clusters;
    rest /= shape.cluster[axis];
  }
  return id;
}

std::uint64_t Machine::State::linear_of(std::uint64_t cluster, std::uint32_t rank) const {
  const auto id = id_of(cluster, rank);
  return id[0] + std::uint64_t{shape.grid[0]} * (id[1] + std::uint64_t{shape.grid[1]} * id[2]);
}

std::vector<Cta*> Machine::admit(std::uint64_t index) {
  State& s = *state_;
  auto cluster = std::make_unique<Cluster>();
  cluster->index = index;
  const std::uint32_t num_warps = s.shape.num_warps();
  const std::uint32_t num_ctas = s.shape.ctas_per_cluster();
  cluster->num_warps = num_warps * num_ctas;
  cluster->next_agent = cluster->agent(AgentKind::kMbarrier, 0);
  std::vector<Cta*> residents;
  for (std::uint32_t rank = 0; rank < num_ctas; ++rank) {
    auto cta = std::make_unique<Cta>();
    cta->cluster = cluster.get();
    cta->rank = rank;
    cta->id = s.id_of(index, rank);
    cta->linear = s.linear_of(index, rank);
    cta->num_live_threads = s.shape.num_threads();
    cta->shared.assign(s.shape.shared_bytes, kPoison);
    cta->shared_initialised = make_byte_bits(s.shape.shared_bytes);
    if (s.options.checks_races) cta->shared_shadow.resize((s.shape.shared_bytes + 3) / 4);
    const std::uint64_t local_bytes = std::uint64_t{s.shape.local_bytes_per_thread} * num_warps * kLanes;
    cta->local.assign(local_bytes, kPoison);
    cta->local_initialised = make_byte_bits(local_bytes);
    cta->warps.resize(num_warps);
    for (std::uint32_t warp = 0; warp < num_warps; ++warp) {
      cta->warps[warp].existing = lanes_of_warp(s.shape.num_threads(), warp);
      cta->warps[warp].clock.seen.local.raise(rank * num_warps + warp, 1);
    }
    for (NamedBarrier& barrier : cta->barriers) barrier.arrived.assign(num_warps, 0);
    cluster->num_live_threads += cta->num_live_threads;
    residents.push_back(cta.get());
    cluster->ctas.push_back(std::move(cta));
  }
  KW_CHECK(!s.clusters.contains(index), "a cluster is admitted once");
  s.clusters[index] = std::move(cluster);
  return residents;
}

std::uint32_t Machine::linear_cta(const Cta& cta) const { return static_cast<std::uint32_t>(cta.linear); }
std::array<std::uint32_t, 3> Machine::ctaid(const Cta& cta) const { return cta.id; }
std::uint32_t Machine::rank_in_cluster(const Cta& cta) const { return cta.rank; }
std::uint64_t Machine::cluster_of(const Cta& cta) const { return cta.cluster->index; }
std::uint32_t Machine::shared_base(const Cta& cta) const { return cta.rank << kSharedRankShift | kSharedFirstByte; }
const LaunchShape& Machine::shape() const { return state_->shape; }
GlobalMemory& Machine::global() { return state_->memory; }
std::uint64_t Machine::wake_count() const { return state_->wake_count; }
std::uint64_t Machine::store_count() const { return state_->store_count; }
const Findings& Machine::findings() const { return state_->findings; }
bool Machine::has_unchecked_memory() const { return state_->has_unchecked_memory; }
void Machine::report(Finding finding) { state_->findings.add(std::move(finding)); }
Place Machine::place(const Context& ctx, int lane, std::string role) const { return state_->place(ctx, lane, std::move(role)); }
std::string Machine::describe_address(const Context& ctx, Space space, std::uint64_t address) const {
  return state_->describe_address(ctx, space, address);
}

Outcome Machine::map_to_rank(const Context& ctx, std::uint32_t address, std::uint32_t rank, std::uint32_t& mapped) {
  const std::size_t num_ctas = ctx.cta->cluster->ctas.size();
  if (rank >= num_ctas) {
    state_->report(ctx, FindingKind::kBadOperand, std::countr_zero(ctx.lanes | 1u << 31),
                   fmt::format("mapa to CTA rank {}: the cluster has {} CTAs", rank, num_ctas), "maps an address", "");
    return Outcome::kFault;
  }
  mapped = rank << kSharedRankShift | (address & kSharedOffsetMask);
  return Outcome::kDone;
}

void Machine::State::check_exit(const Context& ctx, const Target& target, const Stamp& stamp) {
  const Cluster& cluster = *ctx.cta->cluster;
  if (stamp.epoch == 0 || stamp.cluster != cluster.index) return;
  const std::uint32_t num_warps = static_cast<std::uint32_t>(ctx.cta->warps.size());
  const bool is_of_warp = stamp.agent < cluster.agent(AgentKind::kMbarrier, 0);
  if (is_of_warp && stamp.agent % cluster.num_warps / num_warps == ctx.cta->rank) return;
  if (ctx.cta->exit_clock.local.get(stamp.agent) >= stamp.epoch) return;
  if (findings.count_again(FindingKind::kRace, stamp.pc, ctx.pc)) return;
  const std::string object = describe(target, 0);
  findings.add({.kind = FindingKind::kRace,
                .message = fmt::format("{}: that CTA exits, and nothing orders this access before its exit", object),
                .where = place_of(stamp, object),
                .other = place(ctx, -1, "exits"),
                .remedy = "a cluster barrier as the last act of all threads of the cluster; a wait for every copy"});
}

void Machine::State::check_exit(const Context& ctx) {
  Cta& cta = *ctx.cta;
  Target target{Target::Kind::kShared, nullptr, 0, nullptr, &cta};
  for (std::size_t word = 0; word < cta.shared_shadow.size(); ++word) {
    const ShadowCell& cell = cta.shared_shadow[word];
    target.offset = 4 * word;
    check_exit(ctx, target, cell.writer);
    check_exit(ctx, target, cell.other);
    if (cell.more == 0) continue;
    for (const Stamp& stamp : cta.shared_overflow.list(cell.more)) check_exit(ctx, target, stamp);
  }
  for (const auto& [offset, barrier] : cta.mbarriers) {
    target.offset = offset;
    for (const auto& [agent, stamp] : barrier.remote_arrives) check_exit(ctx, target, stamp);
  }
}

void Machine::exit_lanes(const Context& ctx) {
  State& s = *state_;
  WarpState& state = s.warp(ctx);
  const LaneMask leaving = ctx.lanes & state.live();
  const auto num_leaving = static_cast<std::uint32_t>(std::popcount(leaving));
  state.exited |= leaving;
  ctx.cta->num_live_threads -= num_leaving;
  ctx.cta->cluster->num_live_threads -= num_leaving;
  const auto arrived_and_left = static_cast<std::uint32_t>(std::popcount(state.cluster_arrived & leaving));
  ctx.cta->cluster->barrier.num_arrived -= arrived_and_left;
  state.cluster_arrived &= ~leaving;
  if (leaving == 0) return;
  const bool has_peers = ctx.cta->cluster->ctas.size() > 1;
  if (s.options.checks_races && has_peers) {
    ctx.cta->exit_clock.join(state.clock.seen);
    if (ctx.cta->num_live_threads == 0) s.check_exit(ctx);
  }
  for (std::uint32_t id = 0; id < kNumNamedBarriers; ++id) s.barrier_check_complete(*ctx.cta, id);
  s.cluster_barrier_check_complete(*ctx.cta->cluster);
  ++s.wake_count;
}

}  // namespace kw::simulate
