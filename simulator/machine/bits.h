// One bit a byte: which bytes of a memory have been written.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace kw::simulate {

using ByteBits = std::vector<std::uint64_t>;

inline ByteBits make_byte_bits(std::uint64_t num_bytes) { return ByteBits((num_bytes + 63) / 64, 0); }

/// Mask of bits [first, first + count) of a 64-bit word; 1 <= count, first + count <= 64.
inline std::uint64_t bit_range(std::uint64_t first, std::uint64_t count) { return (~std::uint64_t{0} >> (64 - count)) << first; }

inline void set_bits(ByteBits& bits, std::uint64_t first, std::uint64_t count) {
  while (count > 0) {
    const std::uint64_t shift = first % 64;
    const std::uint64_t step = count < 64 - shift ? count : 64 - shift;
    bits[first / 64] |= bit_range(shift, step);
    first += step;
    count -= step;
  }
}

inline bool are_bits_set(const ByteBits& bits, std::uint64_t first, std::uint64_t count) {
  while (count > 0) {
    const std::uint64_t shift = first % 64;
    const std::uint64_t step = count < 64 - shift ? count : 64 - shift;
    const std::uint64_t mask = bit_range(shift, step);
    if ((bits[first / 64] & mask) != mask) return false;
    first += step;
    count -= step;
  }
  return true;
}

inline std::uint64_t count_bits(const ByteBits& bits, std::uint64_t num_bytes) {
  std::uint64_t count = 0;
  for (std::uint64_t word = 0; word < bits.size(); ++word) {
    const std::uint64_t rest = num_bytes - word * 64;
    count += static_cast<std::uint64_t>(std::popcount(rest >= 64 ? bits[word] : bits[word] & bit_range(0, rest)));
  }
  return count;
}

}  // namespace kw::simulate
