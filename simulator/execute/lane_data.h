// Between registers and the machine's calls: addresses of the lanes, and elements as bytes lane by lane.
// The machine takes data of lane l at l * bytes; registers hold one element of all lanes in a row.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "simulator/execute/warp.h"

namespace kw::simulate {

struct LaneAddresses {
  alignas(64) std::uint64_t at[kLanes];
};

/// slot + offset for each executing lane; 32-bit addresses wrap at 32 bits.
inline void fill_addresses(const Frame& frame, Slot slot, std::uint64_t offset, LaneAddresses& addresses) {
  if (slot.bits == 32) {
    const std::uint32_t* base = frame.at<std::uint32_t>(slot.offset);
    const auto low = static_cast<std::uint32_t>(offset);
    for (int lane = 0; lane < kLanes; ++lane) addresses.at[lane] = static_cast<std::uint32_t>(base[lane] + low);
    return;
  }
  const std::uint64_t* base = frame.at<std::uint64_t>(slot.offset);
  for (int lane = 0; lane < kLanes; ++lane) addresses.at[lane] = base[lane] + offset;
}

/// Elements of `element_bytes` from the slots' low bits to bytes. Stride: all elements of a lane together.
inline void gather(const Frame& frame, const std::vector<Slot>& slots, std::uint32_t element_bytes, std::byte* data) {
  const std::size_t stride = slots.size() * element_bytes;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    std::byte* element = data + i * element_bytes;
    const Slot slot = slots[i];
    const std::uint32_t width = slot.bits / 8u;
    const std::byte* from = frame.registers + slot.offset;
    if (element_bytes == 4 && width == 4) {
      for_lanes(frame.lanes, [&](int lane) { std::memcpy(element + static_cast<std::size_t>(lane) * stride, from + 4 * lane, 4); });
    } else {
      for_lanes(frame.lanes, [&](int lane) {
        std::memcpy(element + static_cast<std::size_t>(lane) * stride, from + static_cast<std::size_t>(lane) * width, element_bytes);
      });
    }
  }
}

/// Elements into registers, zero- or sign-extended to their width.
inline void scatter(const Frame& frame, const std::vector<Slot>& slots, std::uint32_t element_bytes, bool is_signed_element,
                    const std::byte* data) {
  const std::size_t stride = slots.size() * element_bytes;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const std::byte* element = data + i * element_bytes;
    const Slot slot = slots[i];
    const std::uint32_t width = slot.bits / 8u;
    std::byte* to = frame.registers + slot.offset;
    if (element_bytes == 4 && width == 4) {
      for_lanes(frame.lanes, [&](int lane) { std::memcpy(to + 4 * lane, element + static_cast<std::size_t>(lane) * stride, 4); });
    } else if (element_bytes == width) {
      for_lanes(frame.lanes, [&](int lane) {
        std::memcpy(to + static_cast<std::size_t>(lane) * width, element + static_cast<std::size_t>(lane) * stride, element_bytes);
      });
    } else {
      for_lanes(frame.lanes, [&](int lane) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, element + static_cast<std::size_t>(lane) * stride, element_bytes);
        if (is_signed_element) {
          const int shift = 64 - 8 * static_cast<int>(element_bytes);
          bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << shift) >> shift);
        }
        frame.set_value(slot, lane, bits);
      });
    }
  }
}

}  // namespace kw::simulate
