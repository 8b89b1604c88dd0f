// Stand-stills: who waits for what, and whether running warps spin on memory that nobody changes.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "generator/base/stable_sort.h"
#include "simulator/launch/scheduler.h"

namespace kw::simulate {
namespace {

constexpr std::size_t kMaxWaiting = 256;
constexpr int kMaxSpinInstructions = 4096;

}  // namespace

std::vector<WaitingGroup> Scheduler::waiting() const {
  std::vector<WaitingGroup> waiting;
  for (const Warp& warp : warps_) {
    if (warp.has_exited) continue;
    for (const GroupView& group : executor_.groups(warp.cta, warp.warp)) {
      if (waiting.size() == kMaxWaiting) return waiting;
      WaitingGroup entry{machine_.linear_cta(*warp.cta), warp.warp, group.lanes, group.pc, "", {}};
      if (!group.reason.empty()) {
        entry.text = group.reason;
      } else if (group.is_gathering) {
        entry.text = "waits for the other lanes of its warp at an .aligned or collective instruction";
      } else if (group.is_parked) {
        const Context ctx{warp.cta, warp.warp, group.lanes, group.pc};
        entry.text = machine_.describe_wait(ctx);
        entry.history = machine_.wait_history(ctx);
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
  Finding finding{kind, std::move(message), {}, std::nullopt, std::move(remedy)};
  if (!groups.empty()) {
    // A role at an mbarrier that nobody has ever arrived at points to what is missing.
    const auto suspect = std::find_if(groups.begin(), groups.end(), [](const WaitingGroup& group) { return group.history.has_no_arrival; });
    const WaitingGroup& first = suspect == groups.end() ? groups[0] : *suspect;
    if (suspect != groups.end()) finding.remedy = "nobody has arrived at that mbarrier: an arrive is missing, or not reached";
    finding.where = {first.cta, first.warp, -1, first.pc, first.text};
    std::set<std::pair<std::uint32_t, std::uint32_t>> warps;  // a diverged warp waits at several places
    for (const WaitingGroup& group : groups) warps.emplace(group.cta, group.warp);
    finding.message +=
        fmt::format("; {} warps wait or run, look first at CTA {} warp {}: {}", warps.size(), first.cta, first.warp, first.text);
  }
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
