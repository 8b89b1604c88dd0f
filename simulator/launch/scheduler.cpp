// Admission and turns. Clusters run one after another unless their CTAs may wait for each other; then several run interleaved, and
// more are admitted, up to what the device holds, whenever the resident ones cannot go on.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/launch/scheduler.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace kw::simulate {
namespace {

constexpr std::uint64_t kTurnInstructions = 512;
constexpr std::uint64_t kInterleavedClusters = 8;
constexpr std::uint64_t kFirstQuietLimit = 20'000;  // warp instructions without a store before a spin is suspected
constexpr std::uint64_t kMaxShuffledClusters = std::uint64_t{1} << 22;

}  // namespace

std::uint64_t resident_bytes(const LaunchShape& shape, const Program& program, bool checks_races) {
  constexpr std::uint64_t kShadowBytesAByte = 10;  // a cell of 40 bytes a word
  const std::uint64_t shared = shape.shared_bytes * (checks_races ? kShadowBytesAByte + 2 : 2);
  const std::uint64_t local = std::uint64_t{shape.local_bytes_per_thread} * shape.num_warps() * kLanes * 2;
  return shape.ctas_per_cluster() * (shared + local + std::uint64_t{shape.num_warps()} * program.register_bytes);
}

Scheduler::Scheduler(const CheckedLaunch& launch, const LaunchRequest& request, Machine& machine, Executor& executor)
    : request_(request),
      machine_(machine),
      executor_(executor),
      num_clusters_(launch.num_clusters),
      quiet_limit_(kFirstQuietLimit),
      is_shuffled_(request.machine.schedule.seed != 0),
      random_(request.machine.schedule.seed) {
  const std::uint64_t by_memory =
      request.limits.max_resident_bytes /
      std::max<std::uint64_t>(1, resident_bytes(launch.shape, executor.program(), request.machine.checks_races));
  const std::uint64_t by_device = launch.num_resident_ctas / launch.shape.ctas_per_cluster();
  max_residents_ = std::max<std::uint64_t>(1, std::min(by_memory, by_device));
  const std::uint64_t wanted = request.limits.num_resident_clusters != 0 ? request.limits.num_resident_clusters
                               : executor.program().uses_global_atomics  ? kInterleavedClusters
                                                                         : 1;
  target_residents_ = std::min(max_residents_, wanted);
  // Hardware gives out CTAs in ascending order most of the time; a seed tries others.
  if (is_shuffled_ && num_clusters_ <= kMaxShuffledClusters) {
    order_.resize(num_clusters_);
    std::iota(order_.begin(), order_.end(), std::uint64_t{0});
    for (std::size_t rest = order_.size(); rest > 1; --rest) std::swap(order_[rest - 1], order_[random_() % rest]);
  }
}

bool Scheduler::can_admit() const { return next_ < num_clusters_ && residents_.size() < max_residents_; }

void Scheduler::admit_next() {
  const std::uint64_t cluster = order_.empty() ? next_ : order_[next_];
  ++next_;
  Resident resident{cluster, machine_.admit(cluster)};
  for (Cta* cta : resident.ctas) {
    executor_.start(cta);
    for (std::uint32_t warp = 0; warp < machine_.shape().num_warps(); ++warp) warps_.push_back({.cta = cta, .warp = warp});
  }
  residents_.push_back(std::move(resident));
}

void Scheduler::retire_finished() {
  for (std::size_t index = 0; index < residents_.size();) {
    const Resident& resident = residents_[index];
    const auto is_of_resident = [&](const Warp& warp) { return machine_.cluster_of(*warp.cta) == resident.cluster; };
    const bool is_running =
        std::any_of(warps_.begin(), warps_.end(), [&](const Warp& warp) { return !warp.has_exited && is_of_resident(warp); });
    if (is_running) {
      ++index;
      continue;
    }
    std::erase_if(warps_, is_of_resident);
    for (Cta* cta : resident.ctas) executor_.finish(cta);
    num_ctas_run_ += resident.ctas.size();
    machine_.retire(resident.cluster);
    residents_.erase(residents_.begin() + static_cast<std::ptrdiff_t>(index));
  }
}

WarpStep Scheduler::step(Warp& warp, std::uint64_t max_instructions) {
  const WarpStep result = executor_.run(warp.cta, warp.warp, max_instructions, num_executed_);
  warp.is_parked = result == WarpStep::kParked;
  warp.parked_at = machine_.wake_count();
  if (result == WarpStep::kExited) {
    warp.has_exited = true;
    ++num_exited_;
  }
  return result;
}

bool Scheduler::turn(bool& has_progress) {
  const std::uint64_t before = num_executed_ + event_count();
  if (is_shuffled_ && !warps_.empty())
    std::rotate(warps_.begin(), warps_.begin() + static_cast<std::ptrdiff_t>(random_() % warps_.size()), warps_.end());
  for (Warp& warp : warps_) {
    if (warp.has_exited || (warp.is_parked && warp.parked_at == machine_.wake_count())) continue;
    const WarpStep result = step(warp, is_shuffled_ ? 1 + random_() % kTurnInstructions : kTurnInstructions);
    if (result == WarpStep::kFault) return false;
    machine_.tick();  // a copy that lands here is progress: a warp that was asked before may wait for it
    has_progress = has_progress || num_executed_ + event_count() != before || result == WarpStep::kExited;
  }
  // What the adversary landed after the last warp's step counts: the warps that waited for it have not been asked again.
  has_progress = num_executed_ + event_count() != before;
  return true;
}

bool Scheduler::unblock() {
  if (machine_.force_one_completion()) return true;
  if (!can_admit()) return false;
  target_residents_ = std::min(max_residents_, std::max<std::uint64_t>(target_residents_, 2 * residents_.size()));
  return true;
}

bool Scheduler::run() {
  while (true) {
    while (can_admit() && residents_.size() < target_residents_) admit_next();
    if (residents_.empty()) return true;
    bool has_progress = false;
    if (!turn(has_progress)) return false;
    retire_finished();
    if (num_executed_ > request_.limits.max_warp_instructions) {
      report_stuck(FindingKind::kBudget,
                   fmt::format("the launch has executed {} warp instructions: the budget is {}", num_executed_,
                               request_.limits.max_warp_instructions),
                   "raise the budget if the kernel is only long; look at the loops below if it should have ended");
      return false;
    }
    if (residents_.empty()) continue;
    if (!has_progress && !unblock()) {
      report_stuck(FindingKind::kDeadlock, "no warp can go on and no copy is in flight",
                   "compare what each waits for with who should arrive");
      return false;
    }
    if (event_count() != last_event_count_) {
      last_event_count_ = event_count();
      quiet_since_ = num_executed_;
    } else if (num_executed_ - quiet_since_ > quiet_limit_) {
      if (is_livelock()) return false;
      quiet_since_ = num_executed_;
      const bool is_register_loop = target_residents_ <= residents_.size();
      if (is_register_loop) quiet_limit_ *= 2;  // look again later
    }
  }
}

}  // namespace kw::simulate
