// Vector clocks. Inside a cluster each agent (a warp's generic accesses, its cp.async copies, its bulk groups, a warpgroup's
// wgmma reads, an mbarrier's asynchronous writers) has one component; other clusters are known by snapshots of their clocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace kw::simulate {

/// Times of the agents of one cluster; a missing component is 0 (nothing of that agent is known).
class VectorClock {
 public:
  std::uint32_t get(std::size_t agent) const { return agent < times_.size() ? times_[agent] : 0; }
  void raise(std::size_t agent, std::uint32_t time) {
    if (agent >= times_.size()) times_.resize(agent + 1, 0);
    times_[agent] = std::max(times_[agent], time);
  }
  void join(const VectorClock& other) {
    if (other.times_.size() > times_.size()) times_.resize(other.times_.size(), 0);
    for (std::size_t agent = 0; agent < other.times_.size(); ++agent) times_[agent] = std::max(times_[agent], other.times_[agent]);
  }
  bool covers(const VectorClock& other) const {
    for (std::size_t agent = 0; agent < other.times_.size(); ++agent) {
      if (get(agent) < other.times_[agent]) return false;
    }
    return true;
  }
  void clear() { times_.clear(); }

 private:
  std::vector<std::uint32_t> times_;
};

/// What is known of each cluster, sorted by cluster. Snapshots are shared, since most joins meet the same ones again.
class ClusterClocks {
 public:
  using Snapshot = std::shared_ptr<const VectorClock>;
  const Snapshot* snapshot(std::uint64_t cluster) const {
    const auto entry = position(cluster);
    return entry != entries_.end() && entry->first == cluster ? &entry->second : nullptr;
  }
  const VectorClock* find(std::uint64_t cluster) const {
    const Snapshot* found = snapshot(cluster);
    return found != nullptr ? found->get() : nullptr;
  }
  void join(std::uint64_t cluster, const Snapshot& snapshot) {
    const auto entry = position(cluster);
    if (entry == entries_.end() || entry->first != cluster) {
      entries_.emplace(entry, cluster, snapshot);
    } else {
      merge_into(entries_[static_cast<std::size_t>(entry - entries_.begin())].second, snapshot);
    }
  }
  /// True when something new came in. Both are sorted, and most entries are the same object: one walk, without a copy when nothing is new.
  bool join(const ClusterClocks& other) {
    if (other.entries_.empty()) return false;
    bool has_changed = false;
    bool has_new_cluster = false;
    std::size_t mine = 0;
    for (const auto& [cluster, snapshot] : other.entries_) {
      while (mine < entries_.size() && entries_[mine].first < cluster) ++mine;
      if (mine < entries_.size() && entries_[mine].first == cluster) {
        has_changed = merge_into(entries_[mine].second, snapshot) || has_changed;
      } else {
        has_new_cluster = true;
      }
    }
    if (!has_new_cluster) return has_changed;
    std::vector<std::pair<std::uint64_t, Snapshot>> merged;
    merged.reserve(entries_.size() + other.entries_.size());
    // Clusters in both were merged above; std::set_union takes those from the first range.
    std::set_union(entries_.begin(), entries_.end(), other.entries_.begin(), other.entries_.end(), std::back_inserter(merged),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
    entries_ = std::move(merged);
    return true;
  }
  bool empty() const { return entries_.empty(); }
  void clear() { entries_.clear(); }

 private:
  static bool merge_into(Snapshot& mine, const Snapshot& snapshot) {
    if (mine == snapshot || mine->covers(*snapshot)) return false;
    if (snapshot->covers(*mine)) {
      mine = snapshot;
      return true;
    }
    auto joined = std::make_shared<VectorClock>(*snapshot);
    joined->join(*mine);
    mine = std::move(joined);
    return true;
  }
  std::vector<std::pair<std::uint64_t, Snapshot>>::const_iterator position(std::uint64_t cluster) const {
    return std::lower_bound(entries_.begin(), entries_.end(), cluster,
                            [](const auto& entry, std::uint64_t key) { return entry.first < key; });
  }
  std::vector<std::pair<std::uint64_t, Snapshot>> entries_;
};

/// The own cluster's agents and the other clusters'.
struct Clock {
  VectorClock local;
  ClusterClocks remote;
  void join(const Clock& other) {
    local.join(other.local);
    if (!other.remote.empty()) remote.join(other.remote);
  }
  void clear() {
    local.clear();
    remote.clear();
  }
};

/// What a warp knows, and what has passed which fence. Barriers carry all of it from arrivers to waiters: a fence by each thread,
/// a barrier and an atomic by one thread publish the work of all (the usual last-CTA pattern).
struct Frontiers {
  Clock seen;                  ///< ordered before the warp's next generic access
  VectorClock async_seen;      ///< the part that a fence.proxy.async has made visible to the async proxy
  ClusterClocks fenced_cta;    ///< what later relaxed atomics may publish inside the cluster (a fence was passed)
  ClusterClocks fenced_gpu;    ///< the same at gpu scope, to every CTA
  ClusterClocks acquired_cta;  ///< read by relaxed atomics inside the cluster; the next fence moves it to `seen`
  ClusterClocks acquired_gpu;  ///< the same across clusters; needs a fence of gpu scope
  void join(const Frontiers& other) {
    seen.join(other.seen);
    async_seen.join(other.async_seen);
    fenced_cta.join(other.fenced_cta);
    fenced_gpu.join(other.fenced_gpu);
    acquired_cta.join(other.acquired_cta);
    acquired_gpu.join(other.acquired_gpu);
  }
  void clear() { *this = Frontiers{}; }
};

}  // namespace kw::simulate
