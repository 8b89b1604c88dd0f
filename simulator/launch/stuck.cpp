// Stand-stills: who waits for what, and whether running warps spin on memory that nobody changes.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "generator/base/stable_sort.h"
#include "simulator/launch/scheduler.h"

namespace kw::simulate {
namespace {

constexpr std::size_t kMaxWaiting = 256;
constexpr int kMaxSpinInstructions = 4096;

/// "0-3, 6": warps of one CTA that wait at the same place.
std::string ranges(const std::vector<std::uint32_t>& sorted) {
  std::string text;
  for (std::size_t first = 0; first < sorted.size();) {
    std::size_t last = first;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", sorted[first]);
    if (last > first) text += fmt::format("-{}", sorted[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace

std::vector<WaitingGroup> Scheduler::waiting() const {
  std::vector<WaitingGroup> waiting;
  for (const Warp& warp : warps_) {
    if (warp.has_exited) continue;
    for (const GroupView& group : executor_.groups(warp.cta, warp.warp)) {
      if (waiting.size() == kMaxWaiting) return waiting;
      WaitingGroup entry{machine_.linear_cta(*warp.cta), warp.warp, group.lanes, group.pc, ""};
      if (!group.reason.empty()) {
        entry.text = group.reason;
      } else if (group.is_gathering) {
        entry.text = "waits for the other lanes of its warp at an .aligned or collective instruction";
      } else if (group.is_parked) {
        entry.text = machine_.describe_wait({warp.cta, warp.warp, group.lanes, group.pc});
      } else {
        entry.text = "is running";
      }
      waiting.push_back(std::move(entry));
    }
  }
  kw::stable_sort(waiting,
                  [](const WaitingGroup& a, const WaitingGroup& b) { return std::pair(a.cta, a.warp) < std::pair(b.cta, b.warp); });
  return waiting;
}

void Scheduler::report_stuck(FindingKind kind, std::string message, std::string remedy) {
  const std::vector<WaitingGroup> groups = waiting();
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::string>, std::vector<std::uint32_t>> by_place;
  for (const WaitingGroup& group : groups) by_place[{group.cta, group.pc, group.text}].push_back(group.warp);
  Finding finding{kind, std::move(message), {}, std::nullopt, std::move(remedy)};
  std::size_t num_listed = 0;
  for (const auto& [place, warps] : by_place) {
    if (++num_listed > 8) break;
    finding.message +=
        fmt::format("; cta {} warp {} at pc {}: {}", std::get<0>(place), ranges(warps), std::get<1>(place), std::get<2>(place));
  }
  if (by_place.size() > 8) finding.message += fmt::format("; and {} more places", by_place.size() - 8);
  if (!groups.empty()) finding.where = {groups[0].cta, groups[0].warp, -1, groups[0].pc, groups[0].text};
  const bool is_divergent = std::any_of(groups.begin(), groups.end(),
                                        [](const WaitingGroup& group) { return group.text.starts_with("waits for the other lanes"); });
  if (kind == FindingKind::kDeadlock && is_divergent) {
    for (const WaitingGroup& group : groups) {
      if (!group.text.starts_with("waits for the other lanes")) continue;
      machine_.report(
          {FindingKind::kDivergentAligned,
           fmt::format("lanes {:#010x} are at an .aligned or collective instruction that the other live lanes of the warp never reach",
                       group.lanes),
           {group.cta, group.warp, -1, group.pc, group.text},
           std::nullopt,
           "let all lanes of the warp reach the instruction, or name the lanes that do in its mask"});
    }
  }
  machine_.report(std::move(finding));
}

/// True when the warp comes back to the same registers and pcs without a store anywhere.
bool Scheduler::spins(Warp& warp) {
  const std::uint64_t events = event_count();
  const std::uint64_t first = executor_.state_hash(warp.cta, warp.warp);
  for (int instruction = 0; instruction < kMaxSpinInstructions; ++instruction) {
    if (step(warp, 1) != WarpStep::kProgress || event_count() != events) return false;
    if (executor_.state_hash(warp.cta, warp.warp) == first) return true;
  }
  return false;
}

bool Scheduler::is_livelock() {
  bool any_runs = false;
  for (Warp& warp : warps_) {
    if (warp.has_exited || (warp.is_parked && warp.parked_at == machine_.wake_count())) continue;
    any_runs = true;
    if (!spins(warp)) return false;
  }
  if (!any_runs || unblock()) return false;
  report_stuck(FindingKind::kLivelock, "every warp that still runs repeats a loop on memory that nobody changes any more",
               "look for the store, arrive or CTA that should end the loop");
  return true;
}

}  // namespace kw::simulate
