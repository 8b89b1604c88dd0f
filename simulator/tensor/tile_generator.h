// Operands for comparing matrix instructions with a device: every element is a hash of (seed, tile, operand, row, column), so that the
// recorder on the GPU (bench/record_mma_digests.cu), the replaying test and the unit tests see the same bits without sharing files.
// Eight styles take turns by tile: plain random numbers and the ones that break wrong sums.
// Plain C++ that nvcc compiles for both sides.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "simulator/tensor/types.h"

#ifdef __CUDACC__
#define KW_HOST_DEVICE __host__ __device__
#else
#define KW_HOST_DEVICE
#endif

namespace kw::simulate {

enum class TileStyle {
  kAnyFinite = 0,      ///< all bit patterns but infinities and NaN: wide exponents
  kNearOne = 1,        ///< exponents within 3 of 1.0
  kFewExponents = 2,   ///< exponents within 14 of 1.0, one element in eight a zero
  kCancelling = 3,     ///< neighbours in k cancel, up to a changed last bit
  kSubnormal = 4,      ///< subnormals and the smallest normals beside ordinary numbers
  kSpecial = 5,        ///< now and then an infinity, a NaN, a zero of either sign
  kPowersOfTwo = 6,    ///< edges of the alignment
  kSmallIntegers = 7,  ///< -3 .. 3
};
inline constexpr int kNumTileStyles = 8;

KW_HOST_DEVICE inline std::uint64_t mix_bits(std::uint64_t value) {  // splitmix64's finaliser
  value += 0x9e3779b97f4a7c15ull;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

/// operand: 0 A, 1 B, 2 C.
KW_HOST_DEVICE inline std::uint64_t tile_key(std::uint64_t seed, std::uint64_t tile, int operand) {
  return mix_bits(seed ^ mix_bits(tile * 4 + static_cast<std::uint64_t>(operand)));
}

struct TileFormat {
  int exponent_bits, fraction_bits, bias;
};
KW_HOST_DEVICE inline TileFormat tile_format(ElementType type) {
  switch (type) {
    case ElementType::kF16:
      return {5, 10, 15};
    case ElementType::kBF16:
      return {8, 7, 127};
    case ElementType::kE4M3:
      return {4, 3, 7};
    case ElementType::kE5M2:
      return {5, 2, 15};
    case ElementType::kF64:
      return {11, 52, 1023};
    default:
      return {8, 23, 127};  // f32, and tf32 with lower bits that must be ignored
  }
}

/// An element from a sign, an exponent (of the value, clamped into the format's normal range) and fraction bits.
KW_HOST_DEVICE inline std::uint64_t tile_number(TileFormat format, bool is_negative, int exponent, std::uint64_t fraction) {
  const int top = (1 << format.exponent_bits) - 2;
  int field = exponent + format.bias;
  field = field < 1 ? 1 : field > top ? top : field;
  const std::uint64_t fraction_mask = (std::uint64_t{1} << format.fraction_bits) - 1;
  return (static_cast<std::uint64_t>(is_negative) << format.exponent_bits | static_cast<std::uint64_t>(field)) << format.fraction_bits |
         (fraction & fraction_mask);
}

KW_HOST_DEVICE inline std::uint64_t special_element(TileFormat format, bool is_negative, std::uint64_t hash) {
  const std::uint64_t sign = static_cast<std::uint64_t>(is_negative) << (format.exponent_bits + format.fraction_bits);
  const std::uint64_t infinity = ((std::uint64_t{1} << format.exponent_bits) - 1) << format.fraction_bits;
  const std::uint64_t quiet_bit = std::uint64_t{1} << (format.fraction_bits - 1);
  switch (hash >> 40 & 255) {
    case 0:
      return sign | infinity;  // for e4m3 the pattern of 256
    case 1:
      return sign | infinity | quiet_bit;
    case 2:
      return sign | infinity | ((std::uint64_t{1} << format.fraction_bits) - 1);
    case 3:
    case 4:
      return sign;
    default:
      return tile_number(format, is_negative, static_cast<int>(hash >> 48 & 7) - 3, hash);
  }
}

/// One element's bits. line is the row of A or C, the column of B; k its place along K (for C: the column).
KW_HOST_DEVICE inline std::uint64_t tile_element(ElementType type, TileStyle style, std::uint64_t key, int operand, int line, int k) {
  const bool is_cancelling = style == TileStyle::kCancelling && operand != 2;
  const int hashed_k = is_cancelling ? k & ~1 : k;
  const std::uint64_t hash = mix_bits(key ^ (static_cast<std::uint64_t>(line) << 16 | static_cast<std::uint64_t>(hashed_k)));
  if (type == ElementType::kS8 || type == ElementType::kU8) {
    const std::uint64_t extreme = (hash >> 8 & 1) != 0 ? 0x80 : (type == ElementType::kS8 ? 0x7f : 0xff);
    return style == TileStyle::kSpecial || style == TileStyle::kSubnormal ? extreme : hash & 0xff;
  }
  if (type == ElementType::kS32) {
    return style == TileStyle::kSpecial ? 0x7fffffffull + (hash & 1) : style == TileStyle::kAnyFinite ? hash & 0xffffffff : hash & 0xffff;
  }
  const TileFormat format = tile_format(type);
  bool is_negative = (hash >> 63) != 0;
  const std::uint64_t small = hash >> 32 & 0xffff;
  switch (style) {
    case TileStyle::kAnyFinite: {
      const int field = static_cast<int>(small % ((1u << format.exponent_bits) - 1));
      return field == 0 ? tile_number(format, is_negative, -100000, hash) : tile_number(format, is_negative, field - format.bias, hash);
    }
    case TileStyle::kNearOne:
      return tile_number(format, is_negative, static_cast<int>(small % 7) - 3, hash);
    case TileStyle::kFewExponents:
      return small >> 13 == 0 ? 0 : tile_number(format, is_negative, static_cast<int>(small % 29) - 14, hash);
    case TileStyle::kCancelling: {
      if (operand == 1 && (k & 1) != 0) is_negative = !is_negative;
      const std::uint64_t last_bit = operand == 0 && (k & 1) != 0 && small >> 14 == 0 ? 1 : 0;
      return tile_number(format, is_negative, static_cast<int>(small % 13) - 6 - (operand == 2 ? 12 : 0), hash) ^ last_bit;
    }
    case TileStyle::kSubnormal: {
      const std::uint64_t smallest = tile_number(format, is_negative, -100000, hash);
      const std::uint64_t field_one = std::uint64_t{1} << format.fraction_bits;
      if ((small & 3) == 0) return tile_number(format, is_negative, static_cast<int>(small >> 2 & 15), hash);
      return (small & 3) == 1 ? smallest : smallest & ~field_one;
    }
    case TileStyle::kSpecial:
      return special_element(format, is_negative, hash);
    case TileStyle::kPowersOfTwo:
      return tile_number(format, is_negative, static_cast<int>(small % 31) - 15, 0);
    case TileStyle::kSmallIntegers: {
      const int integer = static_cast<int>(small & 3);
      if (integer == 0) return 0;
      const std::uint64_t half = integer == 3 ? std::uint64_t{1} << (format.fraction_bits - 1) : 0;
      return tile_number(format, is_negative, integer == 1 ? 0 : 1, half);
    }
  }
  return 0;
}

}  // namespace kw::simulate
