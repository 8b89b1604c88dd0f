// See tensor_map_cache.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/runtime/tensor_map_cache.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

namespace kw::tuner {

std::uint64_t TensorMapCache::new_map_id() {
  static std::atomic<std::uint64_t> last_id{0};
  return ++last_id;
}

std::size_t TensorMapCache::set_of(std::uint64_t map_id, DevicePointer address) {
  // Addresses differ in the middle bits: a multiplication by the golden ratio brings all of them to the top.
  return static_cast<std::size_t>((map_id ^ address) * 0x9E3779B97F4A7C15ull >> 56) % kNumSets;
}

bool TensorMapCache::find(std::uint64_t map_id, DevicePointer address, std::byte* bytes) const {
  const Set& set = sets_[set_of(map_id, address)];
  const std::shared_lock lock(set.mutex);
  for (const Entry& entry : set.entries) {
    if (entry.map_id != map_id || entry.address != address) continue;
    std::memcpy(bytes, entry.bytes.data(), entry.bytes.size());
    return true;
  }
  return false;
}

void TensorMapCache::store(std::uint64_t map_id, DevicePointer address, const TensorMapBytes& bytes) {
  Set& set = sets_[set_of(map_id, address)];
  const std::unique_lock lock(set.mutex);
  // Two threads may have encoded the same map.
  const auto same = std::find_if(set.entries.begin(), set.entries.end(),
                                 [&](const Entry& entry) { return entry.map_id == map_id && entry.address == address; });
  if (same != set.entries.end()) return;
  set.entries[set.next] = {map_id, address, bytes};
  set.next = (set.next + 1) % kNumWays;
}

}  // namespace kw::tuner
