// The inner loops of the tensor cores' sums, eight columns at a time with the compiler's vector types (no host instruction set needed).
// Exact path: all products are exact in f32 (significands of 11 bits at most); scaled by 2^(fraction_bits - e) and converted to integers
// they are cut toward zero as the hardware cuts them, and their integer sum is exact. Rare cases go to exact_sum().
// SPDX-License-Identifier: Apache-2.0
#include "simulator/tensor/fused_sum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "generator/base/error.h"

#include "simulator/tensor/vector_types.h"

namespace kw::simulate {
namespace {

constexpr std::uint32_t kCanonicalNan = 0x7fffffff;
constexpr int kSmallestF32Exponent = -126;
/// Below this largest exponent the scale 2^(fraction_bits - e) leaves f32's range.
constexpr int kSmallestScalableExponent = 25 - 127;

double power_of_two(int exponent) { return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52); }

/// Toward zero to `fraction_bits` after the leading bit, with f32's smallest exponent.
float truncate_to_float(double value, int fraction_bits) {
  const int exponent = value == 0 ? kSmallestF32Exponent : std::max(std::ilogb(value), kSmallestF32Exponent);
  const double unit = power_of_two(exponent - fraction_bits);
  const double cut = std::trunc(value / unit) * unit;
  if (std::fabs(cut) >= 0x1p128) return std::copysign(std::numeric_limits<float>::infinity(), static_cast<float>(value < 0 ? -1 : 1));
  return static_cast<float>(cut);
}

float round_result(SumRounding rounding, double value) {
  switch (rounding) {
    case SumRounding::kTruncateF32:
      return truncate_to_float(value, 23);
    case SumRounding::kTruncateE8M13:
      return truncate_to_float(value, 13);
    case SumRounding::kNearestF16:
      return round_to_f16(value);
  }
  return 0;
}

int exponent_of_accumulator(SumRounding rounding, float c) {
  if (c == 0) return kZeroExponent;
  const int field = static_cast<int>(std::bit_cast<std::uint32_t>(c) >> 23 & 0xff);
  return std::max(field - 127, rounding == SumRounding::kNearestF16 ? -14 : kSmallestF32Exponent);
}

/// One block of one row and eight columns.
struct Chunk {
  const float* a_value;
  const std::int32_t* a_exponent;
  const float* b_value;
  const std::int32_t* b_exponent;
  int b_pitch;
  int k;
};

KW_INLINE Int8 chunk_exponents(const SumRule& rule, const Chunk& chunk, Float8 c) {
  Int8 largest = Int8{} + kSmallestF32Exponent;
  for (int k = 0; k < chunk.k; ++k) largest = larger(largest, load<Int8>(chunk.b_exponent + k * chunk.b_pitch) + chunk.a_exponent[k]);
  const Int8 c_magnitude = (Int8)c & 0x7fffffff;
  const Int8 c_exponent =
      larger((c_magnitude >> 23) - 127, Int8{} + (rule.rounding == SumRounding::kNearestF16 ? -14 : kSmallestF32Exponent));
  return larger(largest, c_magnitude == 0 ? Int8{} + kZeroExponent : c_exponent);
}

/// Exact sum of the cut terms as a double: an integer times 2^(exponent - fraction_bits).
KW_INLINE Double8 chunk_sum(const SumRule& rule, const Chunk& chunk, Float8 c, Int8 exponent) {
  const Int8 scale_exponent = smaller(rule.fraction_bits - exponent, Int8{} + 127);
  const Float8 scale = (Float8)((scale_exponent + 127) << 23);
  Unsigned8 sum{};  // at most 16 terms below 2^27, or 32 below 2^15: no wrap
  for (int k = 0; k < chunk.k; ++k) {
    const Float8 product = load<Float8>(chunk.b_value + k * chunk.b_pitch) * chunk.a_value[k];
    sum += (Unsigned8) __builtin_convertvector(product * scale, Int8);
  }
  const Long8 wide_exponent = __builtin_convertvector(exponent, Long8);
  const Double8 c_scale = (Double8)((rule.fraction_bits - wide_exponent + 1023) << 52);
  const Int8 c_cut = __builtin_convertvector(__builtin_convertvector(c, Double8) * c_scale, Int8);
  const Double8 unit = (Double8)((wide_exponent - rule.fraction_bits + 1023) << 52);
  return (__builtin_convertvector((Int8)sum, Double8) + __builtin_convertvector(c_cut, Double8)) * unit;
}

KW_INLINE void store_result(SumRounding rounding, Double8 sum, float* d) {
  if (rounding == SumRounding::kNearestF16) {
    for (int column = 0; column < kColumnStep; ++column) d[column] = round_to_f16(sum[column]);
    return;
  }
  const std::int64_t kept = rounding == SumRounding::kTruncateF32 ? -(std::int64_t{1} << 29) : -(std::int64_t{1} << 39);
  const Float8 result = __builtin_convertvector((Double8)((Long8)sum & kept), Float8);
  store(d, result);
  const Int8 is_subnormal = ((Int8)result & 0x7fffffff) < 0x00800000;
  if (!is_any(is_subnormal & __builtin_convertvector(sum != 0, Int8))) return;
  for (int column = 0; column < kColumnStep; ++column) d[column] = round_result(rounding, sum[column]);  // subnormals have fewer bits
}

float slow_element(const SumRule& rule, const Chunk& chunk, int column, float c) {
  std::array<float, kMaxTileK> b;
  std::array<std::int32_t, kMaxTileK> b_exponent;
  for (int k = 0; k < chunk.k; ++k) {
    b[static_cast<std::size_t>(k)] = chunk.b_value[k * chunk.b_pitch + column];
    b_exponent[static_cast<std::size_t>(k)] = chunk.b_exponent[k * chunk.b_pitch + column];
  }
  const auto count = static_cast<std::size_t>(chunk.k);
  return exact_sum(rule, {chunk.a_value, count}, {chunk.a_exponent, count}, {b.data(), count}, {b_exponent.data(), count}, c);
}

struct Block {
  const SumRule& rule;
  const DecodedOperand& a;
  const DecodedOperand& b;
  int k_begin, k_count;
  const float* c;
  float* d;
};

template <int kCount>
KW_INLINE void exact_block_of(const Block& block) {
  const DecodedOperand &a = block.a, &b = block.b;
  const SumRule rule = block.rule;
  const bool can_overflow = a.largest_exponent + b.largest_exponent > 126;
  const bool is_slow = can_overflow || a.has_special || b.has_special;
  const bool can_be_tiny = a.smallest_exponent + b.smallest_exponent < kSmallestScalableExponent;
  for (int row = 0; row < a.extent; ++row) {
    for (int column = 0; column < b.extent; column += kColumnStep) {
      const int a_start = row * a.k + block.k_begin, b_start = block.k_begin * b.extent + column;
      const Chunk chunk{a.value + a_start, a.exponent + a_start, b.value + b_start, b.exponent + b_start, b.extent, kCount};
      const Float8 c = load<Float8>(block.c + row * b.extent + column);
      float* d = block.d + row * b.extent + column;
      const Int8 exponent = chunk_exponents(rule, chunk, c);
      const bool is_rare = is_slow || is_any(exponent > 127) || (can_be_tiny && is_any(exponent < kSmallestScalableExponent));
      if (!is_rare) {
        store_result(rule.rounding, chunk_sum(rule, chunk, c, exponent), d);
        continue;
      }
      for (int lane = 0; lane < kColumnStep; ++lane) d[lane] = slow_element(rule, chunk, lane, c[lane]);
    }
  }
}

/// A block length known at compile time is twice as fast.
KW_INLINE void exact_block_body(const Block& block) {
  switch (block.k_count) {
    case 4:
      return exact_block_of<4>(block);
    case 8:
      return exact_block_of<8>(block);
    case 16:
      return exact_block_of<16>(block);
    case 32:
      return exact_block_of<32>(block);
    default:
      KW_CHECK(false, "no tensor core sums blocks of this length");
  }
}

KW_INLINE void fast_product_body(const DecodedOperand& a, const DecodedOperand& b, bool is_f16, const float* c, float* d) {
  for (int row = 0; row < a.extent; ++row) {
    for (int column = 0; column < b.extent; column += kColumnStep) {
      Float8 sum = load<Float8>(c + row * b.extent + column);
      for (int k = 0; k < a.k; ++k) sum += load<Float8>(b.value + k * b.extent + column) * a.value[row * a.k + k];
      float* d_chunk = d + row * b.extent + column;
      const Int8 is_nan = (Int8)(sum != sum);
      const Int8 bits = (is_nan & static_cast<std::int32_t>(kCanonicalNan)) | (~is_nan & (Int8)sum);
      store(d_chunk, bits);
      for (int lane = 0; is_f16 && lane < kColumnStep; ++lane) d_chunk[lane] = round_to_f16(d_chunk[lane]);
    }
  }
}

// The same source for the baseline and for AVX2: the results are equal bit for bit, only the speed differs.
void exact_block_baseline(const Block& block) { exact_block_body(block); }
void fast_product_baseline(const DecodedOperand& a, const DecodedOperand& b, bool is_f16, const float* c, float* d) {
  fast_product_body(a, b, is_f16, c, d);
}
#if KW_HAS_AVX2_PATH
[[gnu::target("avx2")]] void exact_block_avx2(const Block& block) { exact_block_body(block); }
[[gnu::target("avx2")]] void fast_product_avx2(const DecodedOperand& a, const DecodedOperand& b, bool is_f16, const float* c, float* d) {
  fast_product_body(a, b, is_f16, c, d);
}
#endif

}  // namespace

float round_to_f16(double value) {
  if (!(std::fabs(value) < 65520.0)) return std::isnan(value) ? std::bit_cast<float>(kCanonicalNan) : value < 0 ? -INFINITY : INFINITY;
  const int exponent = static_cast<int>(std::bit_cast<std::uint64_t>(std::fabs(value)) >> 52) - 1023;
  const double magic = 1.5 * power_of_two(52 + std::max(exponent, -14) - 10);  // its last bit is f16's unit here
  return static_cast<float>(std::copysign((value + magic) - magic, value));
}

float exact_sum(const SumRule& rule, std::span<const float> a, std::span<const std::int32_t> a_exponents, std::span<const float> b,
                std::span<const std::int32_t> b_exponents, float c) {
  int largest = std::max(kSmallestF32Exponent, exponent_of_accumulator(rule.rounding, c));
  double special = c;  // IEEE rules give NaN for inf * 0 and inf - inf; finite products cannot overflow a double
  for (std::size_t k = 0; k < a.size(); ++k) {
    special += static_cast<double>(a[k]) * b[k];
    largest = std::max(largest, a_exponents[k] + b_exponents[k]);
  }
  if (std::isnan(special)) return std::bit_cast<float>(kCanonicalNan);
  if (std::isinf(special)) return static_cast<float>(special);
  const double scale = power_of_two(rule.fraction_bits - largest);
  double sum = std::trunc(c * scale);
  for (std::size_t k = 0; k < a.size(); ++k) sum += std::trunc(static_cast<double>(a[k]) * b[k] * scale);
  return round_result(rule.rounding, sum / scale);
}

void exact_product(const SumRule& rule, const DecodedOperand& a, const DecodedOperand& b, const float* c, float* d) {
  for (int k = 0; k < a.k; k += rule.block) {
    const Block block{rule, a, b, k, std::min(rule.block, a.k - k), k == 0 ? c : d, d};
#if KW_HAS_AVX2_PATH
    if (kHasAvx2) {
      exact_block_avx2(block);
      continue;
    }
#endif
    exact_block_baseline(block);
  }
}

void fast_product(const DecodedOperand& a, const DecodedOperand& b, bool is_f16, const float* c, float* d) {
#if KW_HAS_AVX2_PATH
  if (kHasAvx2) return fast_product_avx2(a, b, is_f16, c, d);
#endif
  fast_product_baseline(a, b, is_f16, c, d);
}

}  // namespace kw::simulate
