// The steps of warps for reports: what lies between two accesses, who has arrived at a barrier.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "generator/base/stable_sort.h"
#include "simulator/machine/state.h"

namespace kw::simulate {
namespace {

constexpr std::size_t kMaxStepsPerWarp = 4;
constexpr std::size_t kMaxHistory = 12;

struct Entry {
  SyncStep step;
  bool is_of_earlier = false;
};

/// Index of the first step after the access: all steps of the warp before it ended an earlier epoch or were issued before.
std::size_t first_step_after(const SyncLog& log, const Stamp& access, std::uint32_t kind) {
  std::size_t first = log.size();
  for (std::size_t index = log.size(); index-- > 0;) {
    const SyncStep& step = log[index];
    if (kind == static_cast<std::uint32_t>(AgentKind::kGeneric)) {
      if (step.epoch < access.epoch) return first;
      first = index;
    } else if (kind == static_cast<std::uint32_t>(AgentKind::kCpAsync)) {
      if (step.kind == SyncKind::kCommit && step.object < access.epoch) return first;
      if (step.kind == SyncKind::kCommit) first = index;
    } else if (step.kind == SyncKind::kAsyncIssue && step.pc == access.pc) {
      return index + 1;
    }
  }
  return first;
}

/// Whether `arrival` is an arrival at what `pass` passes.
bool is_met(const SyncStep& pass, const SyncStep& arrival) {
  const bool is_pair = (pass.kind == SyncKind::kBarrierPass && arrival.kind == SyncKind::kBarrierArrive) ||
                       (pass.kind == SyncKind::kClusterPass && arrival.kind == SyncKind::kClusterArrive) ||
                       (pass.kind == SyncKind::kMbarrierPass && arrival.kind == SyncKind::kMbarrierArrive);
  return is_pair && pass.object == arrival.object && pass.generation == arrival.generation;
}

/// Whether a step of the later warp comes after the earlier access: a barrier that both pass decides, else the order of the run.
bool is_between(const SyncStep& step, const SyncLog& earlier, std::size_t first_after) {
  for (std::size_t index = 0; index < earlier.size(); ++index) {
    if (is_met(step, earlier[index])) return index >= first_after;
  }
  return first_after == 0 || step.sequence > earlier[first_after - 1].sequence;
}

}  // namespace

void Machine::State::note(const Context& ctx, SyncKind kind, std::uint64_t object, std::uint64_t generation) {
  WarpState& state = warp(ctx);
  state.log.add({kind, ctx.pc, state.clock.seen.local.get(own_agent(ctx)), object, generation, ++num_sync_steps});
}

std::vector<PassedStep> Machine::State::steps_between(const Context& ctx, const Stamp& earlier) const {
  const auto cluster = clusters.find(earlier.cluster);
  if (cluster == clusters.end()) return {};
  const std::uint32_t warps_per_cta = shape.num_warps();
  const std::uint32_t kind =
      std::min(earlier.agent / (warps_per_cta * shape.ctas_per_cluster()), static_cast<std::uint32_t>(AgentKind::kMbarrier));
  const Place place = place_of(earlier, "");
  const auto owner = std::find_if(cluster->second->ctas.begin(), cluster->second->ctas.end(),
                                  [&](const std::unique_ptr<Cta>& cta) { return cta->linear == place.cta; });
  if (owner == cluster->second->ctas.end() || place.warp >= warps_per_cta) return {};
  const WarpState& first_warp = (*owner)->warps[place.warp];
  const SyncLog& first = first_warp.log;
  const SyncLog& second = warp(ctx).log;
  const bool is_one_warp = &first == &second;
  const std::size_t first_after = first_step_after(first, earlier, kind);
  std::vector<Entry> entries;
  for (std::size_t index = first_after; index < first.size() && entries.size() < kMaxStepsPerWarp; ++index) {
    if (publishes(first[index].kind)) entries.push_back({first[index], true});
  }
  const std::size_t num_of_first = entries.size();
  for (std::size_t index = second.size(); !is_one_warp && index-- > 0 && entries.size() < num_of_first + kMaxStepsPerWarp;) {
    if (takes_over(second[index].kind) && is_between(second[index], first, first_after)) entries.push_back({second[index], false});
  }
  kw::stable_sort(entries, [](const Entry& a, const Entry& b) { return a.step.sequence < b.step.sequence; });
  std::vector<PassedStep> passed;
  for (const Entry& entry : entries) {
    Place at = entry.is_of_earlier ? place : this->place(ctx, -1, "");
    at.pc = entry.step.pc;
    at.role = describe_step(entry.step);
    passed.push_back({entry.is_of_earlier, std::move(at)});
  }
  return passed;
}

std::optional<std::pair<std::uint32_t, std::uint32_t>> Machine::State::issuer_of(std::uint64_t index, std::uint32_t pc) const {
  const auto cluster = clusters.find(index);
  if (cluster == clusters.end()) return std::nullopt;
  std::optional<std::pair<std::uint32_t, std::uint32_t>> issuer;
  std::uint64_t latest = 0;
  for (const auto& cta : cluster->second->ctas) {
    for (std::size_t warp = 0; warp < cta->warps.size(); ++warp) {
      const SyncLog& log = cta->warps[warp].log;
      for (std::size_t at = 0; at < log.size(); ++at) {
        if (log[at].kind != SyncKind::kAsyncIssue || log[at].pc != pc || log[at].sequence < latest) continue;
        latest = log[at].sequence;
        issuer = {static_cast<std::uint32_t>(cta->linear), static_cast<std::uint32_t>(warp)};
      }
    }
  }
  return issuer;
}

std::string Machine::State::describe_step(const SyncStep& step) const {
  const std::uint64_t offset = step.object & kSharedOffsetMask;
  const std::string mbarrier =
      fmt::format("the mbarrier at {}{}", shared_name(offset),
                  shape.ctas_per_cluster() > 1 ? fmt::format(" of CTA rank {}", step.object >> kSharedRankShift) : "");
  switch (step.kind) {
    case SyncKind::kBarrierArrive:
      return fmt::format("arrives at barrier {} (generation {})", offset, step.generation);
    case SyncKind::kBarrierPass:
      return fmt::format("passes barrier {} (generation {})", offset, step.generation);
    case SyncKind::kClusterArrive:
      return fmt::format("arrives at the cluster barrier (generation {})", step.generation);
    case SyncKind::kClusterPass:
      return fmt::format("passes the cluster barrier (generation {})", step.generation);
    case SyncKind::kMbarrierArrive:
      return fmt::format("arrives at {} (phase {})", mbarrier, step.generation);
    case SyncKind::kMbarrierPass:
      return fmt::format("sees the end of phase {} of {}", step.generation, mbarrier);
    case SyncKind::kFence:
      return "passes a fence of the generic proxy";
    case SyncKind::kProxyFence:
      return "passes a proxy fence";
    case SyncKind::kCopyWait:
      return "waits for groups of its own asynchronous operations";
    case SyncKind::kRelease:
      return "releases";
    case SyncKind::kAcquire:
      return "acquires";
    case SyncKind::kCommit:
      return "commits a group of copies";
    case SyncKind::kAsyncIssue:
      return "issues an asynchronous operation";
    case SyncKind::kNone:
      break;
  }
  return "";
}

WaitHistory Machine::State::history(const Context& ctx, const Wait& wait) const {
  const bool is_mbarrier = wait.kind == Wait::Kind::kMbarrier;
  if (!is_mbarrier && wait.kind != Wait::Kind::kNamedBarrier) return {};
  WaitHistory history;
  std::vector<Place>& places = history.places;
  if (is_mbarrier) {
    const auto found = ctx.cta->mbarriers.find(wait.id_or_address);
    if (found == ctx.cta->mbarriers.end()) return {};
    const Mbarrier& barrier = found->second;
    history.has_no_arrival = barrier.phase == 0 && barrier.pending == barrier.count;
    Place init = place_of(barrier.init, "");
    init.role = fmt::format("initialised it, count {}", barrier.count);
    places.push_back(std::move(init));
  }
  const SyncKind arrival = is_mbarrier ? SyncKind::kMbarrierArrive : SyncKind::kBarrierArrive;
  const std::uint64_t object = barrier_object(*ctx.cta, wait.id_or_address);
  std::vector<std::pair<std::uint64_t, Place>> arrivals;
  for (const auto& cta : ctx.cta->cluster->ctas) {
    for (std::size_t warp = 0; warp < cta->warps.size(); ++warp) {
      const SyncLog& log = cta->warps[warp].log;
      for (std::size_t at = 0; at < log.size(); ++at) {
        const SyncStep& step = log[at];
        if (step.kind != arrival || step.object != object) continue;
        arrivals.push_back({step.sequence,
                            {static_cast<std::uint32_t>(cta->linear), static_cast<std::uint32_t>(warp), -1, step.pc,
                             fmt::format("arrived in {} {}", is_mbarrier ? "phase" : "generation", step.generation)}});
      }
    }
  }
  kw::stable_sort(arrivals, [](const auto& a, const auto& b) { return a.first < b.first; });
  const std::size_t num_skipped = arrivals.size() > kMaxHistory ? arrivals.size() - kMaxHistory : 0;
  for (std::size_t at = num_skipped; at < arrivals.size(); ++at) places.push_back(std::move(arrivals[at].second));
  return history;
}

}  // namespace kw::simulate
