// Rounding to a format is done on integers: a significand, the weight of its last bit, one shift. No host rounding mode is touched.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/tensor/convert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "generator/base/error.h"
#include "simulator/tensor/half_bits.h"

namespace kw::simulate {
namespace {

struct Layout {
  int exponent_bits, fraction_bits;
  int smallest_exponent;         ///< of a normal number
  std::uint64_t largest_finite;  ///< magnitude bits
  std::uint64_t infinity;        ///< magnitude bits; e4m3: its NaN
  std::uint64_t canonical_nan;
  int shift;  ///< tf32 lies 13 bits up in its word
};

Layout layout_of(FloatFormat format) {
  switch (format) {
    case FloatFormat::kF16:
      return {5, 10, -14, 0x7bff, 0x7c00, 0x7fff, 0};
    case FloatFormat::kBF16:
      return {8, 7, -126, 0x7f7f, 0x7f80, 0x7fff, 0};
    case FloatFormat::kTF32:
      return {8, 10, -126, 0x3fbff, 0x3fc00, 0x7fffffff, 13};
    case FloatFormat::kE4M3:
      return {4, 3, -6, 0x7e, 0x7f, 0x7f, 0};
    case FloatFormat::kE5M2:
      return {5, 2, -14, 0x7b, 0x7c, 0x7f, 0};
    case FloatFormat::kF32:
      return {8, 23, -126, 0x7f7fffff, 0x7f800000, 0x7fffffff, 0};
    case FloatFormat::kF64:
      return {11, 52, -1022, 0x7fefffffffffffffull, 0x7ff0000000000000ull, 0x7fffffffffffffffull, 0};
  }
  KW_CHECK(false, "a float format outside the enum");
}

/// A finite number: significand * 2^last_bit.
struct Number {
  bool is_negative = false;
  std::uint64_t significand = 0;
  int last_bit = 0;
};

Number number_of(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int field = static_cast<int>(bits >> 52 & 0x7ff);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  return {.is_negative = bits >> 63 != 0,
          .significand = field == 0 ? fraction : fraction | std::uint64_t{1} << 52,
          .last_bit = std::max(field, 1) - 1075};
}

bool rounds_up(Rounding rounding, bool is_negative, bool is_odd, std::uint64_t rest, std::uint64_t half) {
  switch (rounding) {
    case Rounding::kNearestEven:
      return rest > half || (rest == half && is_odd);
    case Rounding::kNearestAway:
      return rest >= half;
    case Rounding::kTowardZero:
      return false;
    case Rounding::kDown:
      return is_negative && rest != 0;
    case Rounding::kUp:
      return !is_negative && rest != 0;
  }
  return false;
}

/// Magnitude bits (unshifted) of the number rounded to the layout; larger than largest_finite: overflow.
std::uint64_t rounded_magnitude(const Layout& layout, const Number& number, Rounding rounding) {
  if (number.significand == 0) return 0;
  const int exponent = std::max(static_cast<int>(std::bit_width(number.significand)) - 1 + number.last_bit, layout.smallest_exponent);
  const int drop = exponent - layout.fraction_bits - number.last_bit;
  std::uint64_t kept = 0;
  if (drop <= 0) {
    kept = number.significand << -drop;
  } else if (drop < 64) {
    kept = number.significand >> drop;
    const std::uint64_t rest = number.significand & ((std::uint64_t{1} << drop) - 1);
    if (rounds_up(rounding, number.is_negative, (kept & 1) != 0, rest, std::uint64_t{1} << (drop - 1))) ++kept;
  } else if (rounds_up(rounding, number.is_negative, false, 1, 2)) {  // far below half a unit: only directed modes can round up
    kept = 1;
  }
  const int largest_exponent = static_cast<int>(layout.largest_finite >> layout.fraction_bits) - 1 + layout.smallest_exponent;
  if (exponent > largest_exponent) return layout.largest_finite + 1;
  return (static_cast<std::uint64_t>(exponent - layout.smallest_exponent) << layout.fraction_bits) + kept;
}

std::uint64_t encode_number(const Layout& layout, const Number& number, const EncodeOptions& options) {
  const std::uint64_t sign = static_cast<std::uint64_t>(number.is_negative) << (layout.exponent_bits + layout.fraction_bits);
  std::uint64_t magnitude = rounded_magnitude(layout, number, options.rounding);
  if (magnitude > layout.largest_finite) {
    const bool stays_finite = options.saturates_to_finite || options.rounding == Rounding::kTowardZero ||
                              options.rounding == (number.is_negative ? Rounding::kUp : Rounding::kDown);
    magnitude = stays_finite ? layout.largest_finite : layout.infinity;
  }
  if (options.flushes_subnormals && magnitude < std::uint64_t{1} << layout.fraction_bits) magnitude = 0;
  return (sign | magnitude) << layout.shift;
}

/// a + b rounded to odd: rounding the result again to 50 bits or fewer is then rounding once. Exact zeros have the sign of the mode.
double add_to_odd(double a, double b, Rounding rounding) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  if (sum == 0) {
    if (std::signbit(a) == std::signbit(b)) return sum;
    return rounding == Rounding::kDown ? -0.0 : 0.0;
  }
  const double b_part = sum - a;
  const double error = (a - (sum - b_part)) + (b - b_part);
  const auto bits = std::bit_cast<std::uint64_t>(sum);
  if (error == 0 || (bits & 1) != 0) return sum;
  return std::bit_cast<double>(std::signbit(error) == std::signbit(sum) ? bits + 1 : bits - 1);
}

double flushed(FloatFormat format, double value, bool flushes) {
  if (!flushes || std::fabs(value) >= std::ldexp(1.0, layout_of(format).smallest_exponent) || std::isnan(value)) return value;
  return std::copysign(0.0, value);
}

float f32_from(double value, Rounding rounding) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(encode(FloatFormat::kF32, value, {.rounding = rounding})));
}

}  // namespace

int size_bits(FloatFormat format) {
  switch (format) {
    case FloatFormat::kE4M3:
    case FloatFormat::kE5M2:
      return 8;
    case FloatFormat::kF16:
    case FloatFormat::kBF16:
      return 16;
    case FloatFormat::kTF32:
    case FloatFormat::kF32:
      return 32;
    case FloatFormat::kF64:
      return 64;
  }
  KW_CHECK(false, "a float format outside the enum");
}

double decode(FloatFormat format, std::uint64_t bits) {
  const auto word = static_cast<std::uint32_t>(bits);
  switch (format) {
    case FloatFormat::kF16:
      return f16_value(word & 0xffffu);
    case FloatFormat::kE5M2:
      return f16_value((word & 0xffu) << 8);
    case FloatFormat::kBF16:
      return std::bit_cast<float>(word << 16);
    case FloatFormat::kTF32:
      return std::bit_cast<float>(word & 0xffffe000u);
    case FloatFormat::kF32:
      return std::bit_cast<float>(word);
    case FloatFormat::kF64:
      return std::bit_cast<double>(bits);
    case FloatFormat::kE4M3: {
      const double magnitude = (word & 0x7fu) == 0x7fu ? std::numeric_limits<double>::quiet_NaN()
                                                       : static_cast<double>(std::bit_cast<float>((word & 0x7fu) << 20)) * 0x1p120;
      return (word & 0x80u) != 0 ? -magnitude : magnitude;
    }
  }
  KW_CHECK(false, "a float format outside the enum");
}

std::uint64_t encode(FloatFormat format, double value, const EncodeOptions& options) {
  const Layout layout = layout_of(format);
  if (options.has_sat) value = value > 0 ? std::min(value, 1.0) : 0.0;  // NaN gives +0
  if (std::isnan(value)) return layout.canonical_nan;
  if (options.has_relu && std::signbit(value)) value = 0.0;
  if (std::isinf(value)) {
    const std::uint64_t sign = static_cast<std::uint64_t>(value < 0) << (layout.exponent_bits + layout.fraction_bits);
    return (sign | (options.saturates_to_finite ? layout.largest_finite : layout.infinity)) << layout.shift;
  }
  return encode_number(layout, number_of(value), options);
}

std::uint64_t encode_integer(FloatFormat format, bool is_negative, std::uint64_t magnitude, Rounding rounding) {
  if (magnitude == 0) return 0;
  return encode_number(layout_of(format), {.is_negative = is_negative, .significand = magnitude, .last_bit = 0}, {.rounding = rounding});
}

double round_to_integral(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::kTowardZero:
      return std::trunc(value);
    case Rounding::kDown:
      return std::floor(value);
    case Rounding::kUp:
      return std::ceil(value);
    case Rounding::kNearestAway:
      return std::round(value);
    case Rounding::kNearestEven:
      break;
  }
  const double below = std::floor(value), rest = value - below;
  const bool is_up = rest > 0.5 || (rest == 0.5 && std::fmod(below, 2.0) != 0);
  return std::copysign(std::isfinite(value) && is_up ? below + 1 : below, value);
}

std::uint64_t to_integer(IntegerFormat target, double value, Rounding rounding, bool is_source_f64) {
  const std::uint64_t mask = target.bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << target.bits) - 1;
  const std::uint64_t top_bit = std::uint64_t{1} << (target.bits - 1);
  const auto extended = [&](std::uint64_t bits) { return target.is_signed && (bits & top_bit) != 0 ? bits | ~mask : bits & mask; };
  if (std::isnan(value)) return is_source_f64 || target.bits == 64 ? extended(top_bit) : 0;
  const double rounded = round_to_integral(value, rounding);
  const double limit = std::ldexp(1.0, target.is_signed ? target.bits - 1 : target.bits);
  if (rounded >= limit) return target.is_signed ? top_bit - 1 : mask;
  if (!target.is_signed) return rounded <= 0 ? 0 : static_cast<std::uint64_t>(rounded);
  if (rounded <= -limit) return extended(top_bit);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(rounded));
}

std::uint16_t fma_16bit(FloatFormat format, std::uint16_t a, std::uint16_t b, std::uint16_t c, const EncodeOptions& options) {
  KW_CHECK(size_bits(format) == 16, "fma_16bit is for f16 and bf16");
  const auto operand = [&](std::uint16_t bits) { return flushed(format, decode(format, bits), options.flushes_subnormals); };
  return static_cast<std::uint16_t>(encode(format, add_to_odd(operand(a) * operand(b), operand(c), options.rounding), options));
}

float fma_f32(float a, float b, float c, Rounding rounding) {
  return f32_from(add_to_odd(static_cast<double>(a) * b, c, rounding), rounding);
}
float add_f32(float a, float b, Rounding rounding) { return f32_from(add_to_odd(a, b, rounding), rounding); }
float mul_f32(float a, float b, Rounding rounding) { return f32_from(static_cast<double>(a) * b, rounding); }

}  // namespace kw::simulate
