// A slow and separate statement of a tensor core's sum, on integers of 128 bits and without floating-point arithmetic.
// It shares no code with simulator/tensor: formats are taken apart here from their definition.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kw::simulate::reference {

__extension__ using Wide = __int128;

/// Value = (negative ? -1 : 1) * significand * 2^(exponent - fraction_bits); exponent is that of the leading bit of a normal number.
struct Number {
  bool is_nan = false, is_infinite = false, is_negative = false;
  std::uint64_t significand = 0;
  int exponent = 0;
  int fraction_bits = 0;
};

struct Format {
  int exponent_bits, fraction_bits, bias;
  bool has_infinity = true;
  int ignored_bits = 0;  // tf32 in a 32-bit word
};
inline constexpr Format kF16{5, 10, 15}, kBF16{8, 7, 127}, kTF32{8, 10, 127, true, 13}, kF32{8, 23, 127}, kE4M3{4, 3, 7, false},
    kE5M2{5, 2, 15};

inline Number parse(const Format& format, std::uint32_t bits) {
  bits >>= format.ignored_bits;
  Number number{.fraction_bits = format.fraction_bits};
  const std::uint32_t fraction = bits & ((1u << format.fraction_bits) - 1);
  const int field = static_cast<int>(bits >> format.fraction_bits & ((1u << format.exponent_bits) - 1));
  const int top = (1 << format.exponent_bits) - 1;
  number.is_negative = (bits >> (format.fraction_bits + format.exponent_bits) & 1) != 0;
  if (format.has_infinity && field == top) {
    number.is_nan = fraction != 0;
    number.is_infinite = fraction == 0;
  }
  if (!format.has_infinity && field == top && fraction == (1u << format.fraction_bits) - 1) number.is_nan = true;
  number.exponent = (field == 0 ? 1 : field) - format.bias;
  number.significand = fraction + (field == 0 ? 0u : 1u << format.fraction_bits);
  return number;
}

/// The same value with its leading bit at `fraction_bits`, unless the exponent would fall below the smallest: as a wider format holds it.
inline Number normalised(Number number, int smallest_exponent) {
  while (number.significand != 0 && (number.significand >> number.fraction_bits) == 0 && number.exponent > smallest_exponent) {
    number.significand <<= 1;
    --number.exponent;
  }
  return number;
}

struct Rule {
  int fraction_bits;      // cut below the largest exponent
  int kept_bits;          // of the result: 23 (f32), 13 (E8M13), 10 (f16)
  bool is_nearest;        // f16: ties to even; else toward zero
  int smallest_exponent;  // -126, f16 -14
  int largest_exponent;   // 127, f16 15
};
inline constexpr Rule kHopperF32{25, 23, false, -126, 127}, kHopperF16{25, 10, true, -14, 15}, kHopperFp8{13, 13, false, -126, 127},
    kHopperFp8F16{13, 10, true, -14, 15}, kAmpereF32{24, 23, false, -126, 127}, kAmpereF16{24, 10, true, -14, 15};

/// floor(|value| * 2^shift) with the sign of value.
inline Wide cut(std::uint64_t significand, bool is_negative, int shift) {
  Wide magnitude = static_cast<Wide>(significand);
  if (shift >= 0) magnitude <<= shift;
  if (shift < 0) magnitude = shift < -100 ? Wide{0} : magnitude >> -shift;
  return is_negative ? -magnitude : magnitude;
}

/// sum * 2^unit_exponent rounded by the rule; result bits of f32 (also for E8M13) or of f16.
inline std::uint32_t round_bits(const Rule& rule, Wide sum, int unit_exponent) {
  const bool is_half = rule.largest_exponent == 15;
  const int stored_fraction = is_half ? 10 : 23;
  const std::uint32_t sign = sum < 0 ? (is_half ? 0x8000u : 0x80000000u) : 0;
  if (sum == 0) return 0;
  Wide magnitude = sum < 0 ? -sum : sum;
  int top = 0;
  while ((magnitude >> (top + 1)) != 0) ++top;
  const int exponent = std::max(top + unit_exponent, rule.smallest_exponent);
  const int drop = exponent - rule.kept_bits - unit_exponent;  // bits below the kept ones
  Wide kept = 0;
  if (drop <= 0) {
    kept = magnitude << -drop;
  } else {
    kept = magnitude >> drop;
    const Wide rest = magnitude - (kept << drop), half = Wide{1} << (drop - 1);
    if (rule.is_nearest && (rest > half || (rest == half && (kept & 1) != 0))) ++kept;
  }
  // kept * 2^(exponent - kept_bits); carry out is handled by the packed addition of fraction and exponent field.
  const auto fraction = static_cast<std::uint32_t>(kept) << (stored_fraction - rule.kept_bits);
  const auto field = static_cast<std::uint32_t>(exponent - rule.smallest_exponent);
  const std::uint32_t magnitude_bits = (field << stored_fraction) + fraction;  // normal: the leading 1 adds one to the field
  if (magnitude_bits == 0) return 0;                                           // no negative zero
  const std::uint32_t infinity = static_cast<std::uint32_t>(is_half ? 31 : 255) << stored_fraction;
  return sign | std::min(magnitude_bits, infinity);
}

inline std::uint32_t fused_sum(const Rule& rule, const std::vector<Number>& a, const std::vector<Number>& b, const Number& c) {
  const bool is_half = rule.largest_exponent == 15;
  const std::uint32_t nan = is_half ? 0x7fff : 0x7fffffff, infinity = is_half ? 0x7c00 : 0x7f800000, sign = is_half ? 0x8000 : 0x80000000;
  bool has_nan = c.is_nan, has_positive = c.is_infinite && !c.is_negative, has_negative = c.is_infinite && c.is_negative;
  int largest = std::max(-126, c.significand == 0 ? -126 : c.exponent);
  for (std::size_t k = 0; k < a.size(); ++k) {
    const bool is_negative = a[k].is_negative != b[k].is_negative;
    has_nan |= a[k].is_nan || b[k].is_nan;
    if (a[k].is_infinite || b[k].is_infinite) {
      const bool is_zero_times = (!a[k].is_infinite && a[k].significand == 0) || (!b[k].is_infinite && b[k].significand == 0);
      has_nan |= is_zero_times;
      (is_negative ? has_negative : has_positive) = true;
    }
    if (a[k].significand != 0 && b[k].significand != 0) largest = std::max(largest, a[k].exponent + b[k].exponent);
  }
  if (has_nan || (has_positive && has_negative)) return nan;
  if (has_positive || has_negative) return infinity | (has_negative ? sign : 0);
  const int unit = largest - rule.fraction_bits;
  Wide sum = cut(c.significand, c.is_negative, c.exponent - c.fraction_bits - unit);
  if (c.significand == 0) sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (a[k].significand == 0 || b[k].significand == 0) continue;
    const int shift = a[k].exponent + b[k].exponent - a[k].fraction_bits - b[k].fraction_bits - unit;
    sum += cut(a[k].significand * b[k].significand, a[k].is_negative != b[k].is_negative, shift);
  }
  return round_bits(rule, sum, unit);
}

}  // namespace kw::simulate::reference
