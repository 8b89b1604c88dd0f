// The latest synchronising steps of a warp: what a finding shows between two accesses, and a deadlock beside the barrier that nobody
// completes. Steps are kept as numbers; findings_text.cpp and describe_wait.cpp put them into words.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kw::simulate {

enum class SyncKind : std::uint8_t {
  kNone = 0,
  kBarrierArrive,
  kBarrierPass,
  kClusterArrive,
  kClusterPass,
  kMbarrierArrive,
  kMbarrierPass,
  kFence,
  kProxyFence,
  kCopyWait,    ///< of cp.async, bulk or wgmma groups
  kRelease,     ///< by an atomic or a strong store
  kAcquire,     ///< by an atomic or a strong load
  kCommit,      ///< of a cp.async group
  kAsyncIssue,  ///< a bulk copy or a wgmma was issued
};
/// Of the steps that publish what a warp has done before (arrivals, fences) and those that take over what others have published.
inline bool publishes(SyncKind kind) {
  return kind == SyncKind::kBarrierArrive || kind == SyncKind::kClusterArrive || kind == SyncKind::kMbarrierArrive ||
         kind == SyncKind::kFence || kind == SyncKind::kProxyFence || kind == SyncKind::kRelease || kind == SyncKind::kCopyWait;
}
inline bool takes_over(SyncKind kind) {
  return kind == SyncKind::kBarrierPass || kind == SyncKind::kClusterPass || kind == SyncKind::kMbarrierPass || kind == SyncKind::kFence ||
         kind == SyncKind::kProxyFence || kind == SyncKind::kAcquire || kind == SyncKind::kCopyWait;
}

struct SyncStep {
  SyncKind kind = SyncKind::kNone;
  std::uint32_t pc = 0;
  std::uint32_t epoch = 0;   ///< the warp's time before the step; of kCommit the epoch of the group
  std::uint64_t object = 0;  ///< barrier id; mbarrier: CTA rank << kSharedRankShift | offset from the first byte
  std::uint64_t generation = 0;
  std::uint64_t sequence = 0;  ///< over all warps, from 1
};

class SyncLog {
 public:
  static constexpr std::size_t kNumKept = 64;
  /// A repetition (lanes of one instruction, a loop that polls) takes the place of the step before it.
  void add(const SyncStep& step) {
    if (!steps_.empty() && is_same_step((*this)[size() - 1], step)) {
      steps_[(first_ + size() - 1) % kNumKept] = step;
    } else if (size() < kNumKept) {
      steps_.push_back(step);
    } else {
      steps_[first_] = step;
      first_ = (first_ + 1) % kNumKept;
    }
  }
  std::size_t size() const { return steps_.size(); }
  /// Oldest first.
  const SyncStep& operator[](std::size_t index) const { return steps_[(first_ + index) % kNumKept]; }

 private:
  static bool is_same_step(const SyncStep& a, const SyncStep& b) {
    return a.kind == b.kind && a.pc == b.pc && a.object == b.object && a.generation == b.generation;
  }
  std::vector<SyncStep> steps_;
  std::size_t first_ = 0;
};

}  // namespace kw::simulate
