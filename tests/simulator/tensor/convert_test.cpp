// Conversions against a search through all values of a format, and 16-bit arithmetic against exact integers.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/tensor/convert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "simulator/tensor/tile_generator.h"
#include "tests/catch.h"
#include "tests/simulator/tensor/reference_sum.h"

namespace kw::simulate {
namespace {

using enum Rounding;

/// Value -> bits of every finite non-negative number of a small format.
std::map<double, std::uint64_t> all_values(FloatFormat format) {
  std::map<double, std::uint64_t> values;
  const std::uint64_t count = std::uint64_t{1} << (size_bits(format) - 1);
  for (std::uint64_t bits = 0; bits < count; ++bits) {
    const double value = decode(format, bits);
    if (std::isfinite(value)) values[value] = bits;
  }
  return values;
}

/// The definition of rounding: the nearest of two neighbours, or the one in the direction asked for.
std::uint64_t searched(const std::map<double, std::uint64_t>& values, FloatFormat format, double value, Rounding rounding) {
  const std::uint64_t sign = std::signbit(value) ? std::uint64_t{1} << (size_bits(format) - 1) : 0;
  const double magnitude = std::fabs(value);
  const auto above = values.lower_bound(magnitude);
  if (above != values.end() && above->first == magnitude) return sign | above->second;
  const auto below = std::prev(above);
  const std::uint64_t up_bits = below->second + 1;  // also the step over the largest finite number
  const double step = below->first - std::prev(below)->first;
  const double up_value = above == values.end() ? below->first + step : above->first;
  bool is_up = false;
  const double to_up = up_value - magnitude, to_below = magnitude - below->first;
  if (rounding == kNearestEven) is_up = to_up < to_below || (to_up == to_below && (below->second & 1) != 0);
  if (rounding == kNearestAway) is_up = to_up <= to_below;
  if (rounding == kUp) is_up = value > 0;
  if (rounding == kDown) is_up = value < 0;
  return sign | (is_up ? up_bits : below->second);
}

}  // namespace

TEST_CASE("decoding and encoding every number of a format gives its bits back") {
  for (const FloatFormat format : {FloatFormat::kF16, FloatFormat::kBF16, FloatFormat::kE4M3, FloatFormat::kE5M2}) {
    int num_wrong = 0;
    for (std::uint64_t bits = 0; bits < std::uint64_t{1} << size_bits(format); ++bits) {
      const double value = decode(format, bits);
      if (!std::isnan(value) && encode(format, value) != bits) ++num_wrong;
    }
    CHECK(num_wrong == 0);
  }
}

TEST_CASE("every rounding mode picks the neighbour that its definition says") {
  for (const FloatFormat format : {FloatFormat::kF16, FloatFormat::kBF16, FloatFormat::kE4M3, FloatFormat::kE5M2}) {
    const std::map<double, std::uint64_t> values = all_values(format);
    int num_wrong = 0;
    for (std::uint64_t trial = 0; trial < 30000; ++trial) {
      const std::uint64_t hash = mix_bits(trial);
      auto first = values.begin();
      double value = decode(format, hash & (values.size() - 1));  // a value, a midpoint, or something beside them
      const double next = decode(format, (hash & (values.size() - 1)) + 1);
      if (!std::isfinite(value) || !std::isfinite(next) || value == first->first) continue;
      const double offsets[] = {0.5, 0.25, 0.75, 0.5 + 0x1p-30, 0.5 - 0x1p-30, 0x1p-40};
      value += (next - value) * offsets[hash >> 40 & 3] * ((hash >> 43 & 1) != 0 ? 1 : 0.5);
      if ((hash >> 50 & 1) != 0) value = -value;
      for (const Rounding rounding : {kNearestEven, kTowardZero, kDown, kUp, kNearestAway}) {
        if (encode(format, value, {.rounding = rounding}) != searched(values, format, value, rounding)) ++num_wrong;
      }
    }
    CHECK(num_wrong == 0);
  }
}

TEST_CASE("f32 from a double equals the host's rounding to nearest, tf32 keeps ten fraction bits") {
  for (std::uint64_t trial = 0; trial < 100000; ++trial) {
    const double value = std::bit_cast<double>(tile_element(ElementType::kF64, TileStyle::kFewExponents, mix_bits(trial), 0, 0, 0)) *
                         std::ldexp(1.0, static_cast<int>(trial % 330) - 165);
    const float expected =
        std::fabs(value) < 0x1.ffffffp127 ? static_cast<float>(value) : std::copysign(INFINITY, static_cast<float>(value));
    REQUIRE(encode(FloatFormat::kF32, value) == std::bit_cast<std::uint32_t>(expected));
  }
  CHECK(encode(FloatFormat::kTF32, 1 + 0x1p-11, {.rounding = kNearestAway}) == std::bit_cast<std::uint32_t>(1 + 0x1p-10f));
  CHECK(encode(FloatFormat::kTF32, 1 + 0x1p-11) == std::bit_cast<std::uint32_t>(1.0f));
  CHECK(encode(FloatFormat::kTF32, -0x1.fffp127, {.rounding = kTowardZero}) == 0xff7fe000u);
}

TEST_CASE("overflow goes to infinity, to NaN for e4m3, or to the largest finite number when it saturates") {
  CHECK(encode(FloatFormat::kF16, 65519.9) == 0x7bff);
  CHECK(encode(FloatFormat::kF16, 65520.0) == 0x7c00);
  CHECK(encode(FloatFormat::kF16, 1e9, {.rounding = kTowardZero}) == 0x7bff);
  CHECK(encode(FloatFormat::kF16, -1e9, {.rounding = kUp}) == 0xfbff);
  CHECK(encode(FloatFormat::kF16, -1e9, {.rounding = kDown}) == 0xfc00);
  CHECK(encode(FloatFormat::kBF16, 3.4e38) == 0x7f80);
  CHECK(encode(FloatFormat::kE4M3, 448.0) == 0x7e);
  CHECK(encode(FloatFormat::kE4M3, 464.0) == 0x7e);
  CHECK(encode(FloatFormat::kE4M3, 465.0) == 0x7f);
  const EncodeOptions saturating{.saturates_to_finite = true};
  CHECK(encode(FloatFormat::kE4M3, 1e9, saturating) == 0x7e);
  CHECK(encode(FloatFormat::kE4M3, -INFINITY, saturating) == 0xfe);
  CHECK(encode(FloatFormat::kE5M2, 1e9, saturating) == 0x7b);
  CHECK(encode(FloatFormat::kE4M3, NAN, saturating) == 0x7f);
}

TEST_CASE("relu, sat and ftz act as PTX says") {
  CHECK(encode(FloatFormat::kBF16, -2.0, {.has_relu = true}) == 0);
  CHECK(encode(FloatFormat::kBF16, NAN, {.has_relu = true}) == 0x7fff);
  CHECK(encode(FloatFormat::kF32, 2.5, {.has_sat = true}) == 0x3f800000);
  CHECK(encode(FloatFormat::kF32, NAN, {.has_sat = true}) == 0);
  CHECK(encode(FloatFormat::kF32, -0x1p-130, {.flushes_subnormals = true}) == 0x80000000);
  CHECK(encode(FloatFormat::kF32, -0x1p-130) == 0x80080000);
}

TEST_CASE("integers become floats with one rounding, also beyond 53 bits") {
  CHECK(encode_integer(FloatFormat::kF32, false, 0xffffffffffffffffull, kNearestEven) == 0x5f800000);
  CHECK(encode_integer(FloatFormat::kF32, false, 0xffffffffffffffffull, kTowardZero) == 0x5f7fffff);
  CHECK(encode_integer(FloatFormat::kF64, false, (1ull << 62) + (1ull << 9) + 1, kNearestEven) ==
        std::bit_cast<std::uint64_t>(0x1p62 + 1024));
  CHECK(encode_integer(FloatFormat::kF64, true, (1ull << 62) + (1ull << 9), kNearestEven) == std::bit_cast<std::uint64_t>(-0x1p62));
  CHECK(encode_integer(FloatFormat::kF16, true, 70000, kNearestEven) == 0xfc00);
  CHECK(encode_integer(FloatFormat::kF16, false, 2049, kUp) == 0x6801);
}

TEST_CASE("floats become integers clamped to the target, NaN as documented") {
  CHECK(to_integer({32, true}, 2.5, kNearestEven) == 2);
  CHECK(to_integer({32, true}, -3.5, kNearestEven) == static_cast<std::uint64_t>(-4));
  CHECK(to_integer({32, true}, -2.5, kTowardZero) == static_cast<std::uint64_t>(-2));
  CHECK(to_integer({32, true}, -2.5, kDown) == static_cast<std::uint64_t>(-3));
  CHECK(to_integer({32, true}, 1e20, kTowardZero) == 0x7fffffff);
  CHECK(to_integer({32, false}, -1.0, kTowardZero) == 0);
  CHECK(to_integer({32, false}, 1e20, kTowardZero) == 0xffffffff);
  CHECK(to_integer({8, true}, -1000.0, kTowardZero) == static_cast<std::uint64_t>(-128));
  CHECK(to_integer({64, true}, 1e30, kTowardZero) == 0x7fffffffffffffffull);
  CHECK(to_integer({64, true}, -1e30, kTowardZero) == 0x8000000000000000ull);
  CHECK(to_integer({64, false}, 0x1p64, kTowardZero) == 0xffffffffffffffffull);
  CHECK(to_integer({32, true}, NAN, kTowardZero) == 0);
  CHECK(to_integer({64, true}, NAN, kTowardZero) == 0x8000000000000000ull);
  CHECK(to_integer({32, false}, NAN, kTowardZero, true) == 0x80000000);
  CHECK(to_integer({32, true}, INFINITY, kNearestEven) == 0x7fffffff);
}

TEST_CASE("an f16 fused multiply-add is rounded once") {
  const reference::Rule nearest{0, 10, true, -14, 15};
  int num_wrong = 0;
  for (std::uint64_t trial = 0; trial < 300000; ++trial) {
    const auto style = static_cast<TileStyle>(trial % 5);
    const auto element = [&](int operand) {
      return static_cast<std::uint16_t>(tile_element(ElementType::kF16, style, tile_key(9, trial, operand), operand, 0, 0));
    };
    const std::uint16_t a = element(0), b = element(1), c = element(2);
    const auto scaled = [](std::uint16_t bits, int scale) {
      return static_cast<std::int64_t>(std::ldexp(decode(FloatFormat::kF16, bits), scale));
    };
    const reference::Wide sum =
        static_cast<reference::Wide>(scaled(a, 24)) * scaled(b, 24) + (static_cast<reference::Wide>(scaled(c, 24)) << 24);
    const std::uint16_t got = fma_16bit(FloatFormat::kF16, a, b, c);
    const std::uint32_t sign = sum < 0 ? 0x8000 : 0;  // the tensor core's rounding has no negative zero, arithmetic has
    if (sum != 0 && got != (reference::round_bits(nearest, sum, -48) | sign)) ++num_wrong;
  }
  CHECK(num_wrong == 0);
  // 1 + 2^-8 - tie broken by a term far below: going through f32 would lose it.
  CHECK(fma_16bit(FloatFormat::kBF16, 0x3f80, 0x3f80, 0x3b80) == 0x3f80);
  CHECK(fma_16bit(FloatFormat::kBF16, 0x3f80, 0x3b80, 0x3f80) == 0x3f80);
  CHECK(fma_16bit(FloatFormat::kF16, 0x7c00, 0x0000, 0x3c00) == 0x7fff);
}

TEST_CASE("directed f32 arithmetic brackets the exact result") {
  for (std::uint64_t trial = 0; trial < 20000; ++trial) {
    const auto value = [&](int operand) {
      return std::bit_cast<float>(static_cast<std::uint32_t>(
          tile_element(ElementType::kF32, static_cast<TileStyle>(trial % 3), tile_key(4, trial, operand), operand, 0, 0)));
    };
    const float a = value(0), b = value(1), c = value(2);
    const float down = fma_f32(a, b, c, kDown), up = fma_f32(a, b, c, kUp), nearest = fma_f32(a, b, c, kNearestEven);
    REQUIRE(nearest == std::fma(a, b, c));
    REQUIRE((down == up || std::nextafter(down, INFINITY) == up));
    REQUIRE((nearest == down || nearest == up));
    REQUIRE(add_f32(a, b, kNearestEven) == a + b);
    REQUIRE(mul_f32(a, b, kNearestEven) == a * b);
    REQUIRE(std::fabs(add_f32(a, b, kTowardZero)) <= std::fabs(add_f32(a, b, kNearestEven)));
  }
  CHECK(std::signbit(add_f32(1.0f, -1.0f, kDown)));
  CHECK_FALSE(std::signbit(add_f32(1.0f, -1.0f, kTowardZero)));
}

}  // namespace kw::simulate
