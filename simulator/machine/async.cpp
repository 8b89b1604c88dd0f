// Adversaries: when asynchronous operations take effect. Copies that complete on an mbarrier are in flight until the adversary or
// a stand-still lands them; grouped operations at the latest in the wait that covers their group.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/machine/async.h"

#include <charconv>

#include <fmt/format.h>

#include "simulator/machine/state.h"

namespace kw::simulate {

std::string to_text(const Schedule& schedule) {
  std::string name = schedule.adversary == Adversary::kEager ? "eager" : schedule.adversary == Adversary::kLazy ? "lazy" : "random";
  return schedule.adversary == Adversary::kRandom || schedule.seed != 0 ? fmt::format("{}:{}", name, schedule.seed) : name;
}

Result<Schedule> schedule_from_text(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  Schedule schedule;
  if (name == "eager") {
    schedule.adversary = Adversary::kEager;
  } else if (name == "lazy") {
    schedule.adversary = Adversary::kLazy;
  } else if (name == "random") {
    schedule.adversary = Adversary::kRandom;
    schedule.seed = 1;
  } else {
    return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("schedule '{}': must be eager, lazy or random:SEED", text));
  }
  if (colon == std::string_view::npos) return schedule;
  const std::string_view seed = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(seed.data(), seed.data() + seed.size(), schedule.seed);
  if (error != std::errc{} || end != seed.data() + seed.size() || seed.empty()) {
    return fail(Stage::kCommandLine, Code::kBadInput,
                fmt::format("schedule '{}': the seed '{}' must be an integer from 0 to 2^64 - 1", text, seed));
  }
  return schedule;
}

bool Machine::State::takes_effect_at_issue() {
  switch (options.schedule.adversary) {
    case Adversary::kEager:
      return true;
    case Adversary::kLazy:
      return false;
    case Adversary::kRandom:
      return random() % 3 == 0;
  }
  return true;
}

bool Machine::State::run_one_in_flight(Cluster& cluster, std::size_t position) {
  if (cluster.in_flight.empty()) return false;
  const auto chosen = cluster.in_flight.begin() + static_cast<std::ptrdiff_t>(position % cluster.in_flight.size());
  const std::function<void()> effect = std::move(*chosen);
  cluster.in_flight.erase(chosen);
  effect();
  ++wake_count;
  return true;
}

void Machine::State::run_groups(GroupQueue& queue, std::uint32_t up_to_group) {
  while (!queue.pending.empty() && queue.pending.front().group <= up_to_group) {
    const std::function<void()> effect = std::move(queue.pending.front().effect);
    queue.pending.pop_front();
    effect();
  }
}

void Machine::State::launch_on_mbarrier(const Context& ctx, const Target& target, std::uint32_t tx_bytes, std::function<void()> effect) {
  const std::uint64_t phase = target.cta->mbarriers.at(static_cast<std::uint32_t>(target.offset)).phase;
  auto land = [this, ctx, target, tx_bytes, phase, effect = std::move(effect)] {
    if (target.cta->num_live_threads == 0) {
      report(ctx, FindingKind::kAsyncMisuse, -1,
             fmt::format("a copy of {} bytes lands in CTA {}, which has exited", tx_bytes, target.cta->linear), "copies",
             "wait for every copy before the CTA exits");
      return;
    }
    effect();
    const auto found = target.cta->mbarriers.find(static_cast<std::uint32_t>(target.offset));
    if (found == target.cta->mbarriers.end()) {
      report(ctx, FindingKind::kMbarrierMisuse, -1, fmt::format("{} was invalidated while a copy was in flight", describe_mbarrier(target)),
             "copies", "");
      return;
    }
    if (found->second.phase != phase) {
      report(ctx, FindingKind::kMbarrierMisuse, -1,
             fmt::format("{}: {} bytes issued in phase {} land in phase {}: the phase completed without them", describe_mbarrier(target),
                         tx_bytes, phase, found->second.phase),
             "copies", "expect the bytes of all copies of a phase (mbarrier.arrive.expect_tx), before or in the phase's last arrival");
    }
    if (!mbarrier_add_tx(ctx, found->second, target, -std::int64_t{tx_bytes}, -1)) return;
    mbarrier_check_complete(found->second);
  };
  if (takes_effect_at_issue()) {
    land();
    ++wake_count;
  } else {
    ctx.cta->cluster->in_flight.emplace_back(std::move(land));
  }
}

void Machine::tick() {
  State& s = *state_;
  if (s.options.schedule.adversary != Adversary::kRandom) return;
  for (auto& [index, cluster] : s.clusters) {
    if (!cluster->in_flight.empty() && s.random() % 4 == 0) s.run_one_in_flight(*cluster, s.random());
  }
}

bool Machine::force_one_completion() {
  State& s = *state_;
  for (auto& [index, cluster] : s.clusters) {
    const std::size_t position = s.options.schedule.adversary == Adversary::kRandom ? s.random() : 0;
    if (s.run_one_in_flight(*cluster, position)) return true;
  }
  return false;
}

void Machine::retire(std::uint64_t index) {
  State& s = *state_;
  const auto found = s.clusters.find(index);
  KW_CHECK(found != s.clusters.end(), "a resident cluster is retired");
  Cluster& cluster = *found->second;
  while (s.run_one_in_flight(cluster, 0)) {
  }
  for (const auto& cta : cluster.ctas) {
    for (WarpState& state : cta->warps) s.run_groups(state.bulk, ~0u);  // stores leave the CTA even when nobody waits for them
  }
  // Shared addresses of this cluster's CTAs will not be met again.
  if (!s.sync_cells.empty()) {
    std::erase_if(s.sync_cells, [&](const auto& entry) {
      if ((entry.first >> 63) == 0) return false;
      const std::uint64_t linear = (entry.first & ~(std::uint64_t{1} << 63)) >> kSharedRankShift;
      return std::any_of(cluster.ctas.begin(), cluster.ctas.end(), [&](const auto& cta) { return cta->linear == linear; });
    });
  }
  s.clusters.erase(found);
}

}  // namespace kw::simulate
