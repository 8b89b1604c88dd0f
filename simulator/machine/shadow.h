// Shadow of memory: for each 4-byte word who wrote it last and who has read it since, so that a later access can be checked
// against them. Bytes of a word are told apart by masks, so neighbours that share a word do not look like a race.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "simulator/machine/clock.h"

namespace kw::simulate {

/// Weak accesses conflict with everything but weak reads; strong ones (atomics, volatile, relaxed, ...) only with weak ones.
/// A strong update (atomic read-modify-write) has observed the strong accesses of its word before it.
enum class AccessClass : std::uint8_t { kWeakRead = 0, kStrongRead = 1, kStrongWrite = 2, kStrongUpdate = 3, kWeakWrite = 4 };
inline bool is_write(AccessClass access) { return access >= AccessClass::kStrongWrite; }
inline bool conflicts(AccessClass a, AccessClass b) {
  if (a == AccessClass::kWeakWrite || b == AccessClass::kWeakWrite) return true;
  const bool has_write = is_write(a) || is_write(b);
  const bool has_weak = a == AccessClass::kWeakRead || b == AccessClass::kWeakRead;
  return has_write && has_weak;
}

/// One access of one word. epoch 0: none.
struct Stamp {
  std::uint32_t epoch = 0;
  std::uint32_t pc = 0;
  std::uint32_t cluster = 0;
  std::uint16_t agent = 0;
  AccessClass access = AccessClass::kWeakRead;
  std::uint8_t bytes = 0;  ///< mask of the word's bytes
};

/// Last weak writer, one other access inline, further ones in the table's list `more` (0: none).
struct ShadowCell {
  Stamp writer;
  Stamp other;
  std::uint32_t more = 0;
};

/// The accessor of a check: what it knows.
struct Accessor {
  const Clock* seen;
  const VectorClock* async_seen;  ///< null: a generic access; else stamps of generic writers need this frontier too
  std::uint32_t cluster;
  std::uint32_t num_generic_agents;  ///< agents below belong to the generic proxy
};

enum class Verdict : std::uint8_t { kOrdered = 0, kRace = 1, kNeedsProxyFence = 2 };
struct Conflict {
  Verdict verdict = Verdict::kOrdered;
  Stamp earlier;
};

inline Verdict order_of(const Stamp& earlier, const Accessor& accessor) {
  if (earlier.cluster != accessor.cluster) [[unlikely]] {
    const VectorClock* known = accessor.seen->remote.find(earlier.cluster);
    return known != nullptr && known->get(earlier.agent) >= earlier.epoch ? Verdict::kOrdered : Verdict::kRace;
  }
  if (accessor.seen->local.get(earlier.agent) < earlier.epoch) return Verdict::kRace;
  if (accessor.async_seen != nullptr && is_write(earlier.access) && earlier.agent < accessor.num_generic_agents &&
      accessor.async_seen->get(earlier.agent) < earlier.epoch) {
    return Verdict::kNeedsProxyFence;
  }
  return Verdict::kOrdered;
}

/// Further accesses of cells, in numbered lists.
class OverflowLists {
 public:
  std::vector<Stamp>& list(std::uint32_t index) { return lists_[index - 1]; }
  std::uint32_t make() {
    if (!free_.empty()) {
      const std::uint32_t index = free_.back();
      free_.pop_back();
      return index;
    }
    lists_.emplace_back();
    return static_cast<std::uint32_t>(lists_.size());
  }
  void release(std::uint32_t index) {
    lists_[index - 1].clear();
    free_.push_back(index);
  }

 private:
  std::vector<std::vector<Stamp>> lists_;
  std::vector<std::uint32_t> free_;
};

/// Checks `now` against the cell and records it. Returns the first conflict.
Conflict check_and_record_slow(ShadowCell& cell, OverflowLists& lists, const Stamp& now, const Accessor& accessor);

inline Conflict check_and_record(ShadowCell& cell, OverflowLists& lists, const Stamp& now, const Accessor& accessor) {
  // Fast path: a whole-word weak read after an ordered writer, seen before from the same agent or the first of all readers.
  if (now.access == AccessClass::kWeakRead && now.bytes == 0xf && cell.more == 0) {
    const bool is_own_slot = cell.other.epoch == 0 || (cell.other.agent == now.agent && cell.other.access == AccessClass::kWeakRead &&
                                                       cell.other.cluster == now.cluster);
    if (is_own_slot) {
      const bool is_written_by_me = cell.writer.agent == now.agent && cell.writer.cluster == now.cluster;
      if (cell.writer.epoch == 0 || is_written_by_me || order_of(cell.writer, accessor) == Verdict::kOrdered) {
        cell.other = now;
        return {};
      }
    }
  }
  // Fast path: a whole-word weak write of a cell that nobody else holds.
  if (now.access == AccessClass::kWeakWrite && now.bytes == 0xf && cell.more == 0 &&
      (cell.writer.epoch == 0 || order_of(cell.writer, accessor) == Verdict::kOrdered) &&
      (cell.other.epoch == 0 || order_of(cell.other, accessor) == Verdict::kOrdered)) {
    cell.writer = now;
    cell.other.epoch = 0;
    return {};
  }
  return check_and_record_slow(cell, lists, now, accessor);
}

}  // namespace kw::simulate
