// Encoded tensor maps by the address they were made for: a launch with pointers seen before encodes nothing. Of fixed size, thread-safe;
// an entry pushed out is encoded again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <shared_mutex>
#include <vector>

#include "tuner/device/kernel_launch.h"

namespace kw::tuner {

class TensorMapCache {
 public:
  static constexpr std::size_t kNumSets = 256, kNumWays = 4;

  TensorMapCache() : sets_(kNumSets) {}

  /// A number of its own for a map without an address.
  static std::uint64_t new_map_id();

  /// True: the map is written to `bytes`.
  bool find(std::uint64_t map_id, DevicePointer address, std::byte* bytes) const;
  void store(std::uint64_t map_id, DevicePointer address, const TensorMapBytes& bytes);

 private:
  struct Entry {
    std::uint64_t map_id = 0;  ///< 0: empty
    DevicePointer address = 0;
    TensorMapBytes bytes{};
  };
  struct Set {
    mutable std::shared_mutex mutex;
    std::array<Entry, kNumWays> entries;
    std::size_t next = 0;  ///< the entry to replace
  };
  static std::size_t set_of(std::uint64_t map_id, DevicePointer address);

  std::vector<Set> sets_;
};

}  // namespace kw::tuner
