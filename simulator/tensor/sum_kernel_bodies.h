// Bodies of the hot loops, eight columns at a time with the compiler's vector types. Included by exactly the files that compile them for
// one instruction set each; nothing of the standard library that could be shared between those is used here. Internal to simulator/tensor.
// Exact path: all products are exact in f32 (significands of 11 bits at most); scaled by 2^(fraction_bits - e) and converted to integers
// they are cut toward zero as the hardware cuts them, and their integer sum is exact. Rare cases go to exact_sum().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simulator/tensor/sum_kernels.h"
#include "simulator/tensor/vector_types.h"

namespace kw::simulate {
namespace {

constexpr std::uint32_t kCanonicalNan = 0x7fffffff;
constexpr int kSmallestF32Exponent = -126;
/// Below this largest exponent the scale 2^(fraction_bits - e) leaves f32's range.
constexpr int kSmallestScalableExponent = 25 - 127;

inline Int8 chunk_exponents(const SumRule& rule, const Chunk& chunk, Float8 c) {
  Int8 largest = Int8{} + kSmallestF32Exponent;
  for (int k = 0; k < chunk.k; ++k) largest = larger(largest, load<Int8>(chunk.b_exponent + k * chunk.b_pitch) + chunk.a_exponent[k]);
  const Int8 c_magnitude = (Int8)c & 0x7fffffff;
  const Int8 c_exponent =
      larger((c_magnitude >> 23) - 127, Int8{} + (rule.rounding == SumRounding::kNearestF16 ? -14 : kSmallestF32Exponent));
  return larger(largest, c_magnitude == 0 ? Int8{} + kZeroExponent : c_exponent);
}

/// 2^exponent of four lanes: the upper words of doubles with zeros below (widening integers is slow without AVX-512).
inline Double4 powers_of_two(Int4 exponent) {
  const Int4 upper = (exponent + 1023) << 20, zero{};
  return (Double4)__builtin_shufflevector(zero, upper, 0, 4, 0, 5, 0, 6, 0, 7);
}

inline Int4 low_half(Int8 vector) { return __builtin_shufflevector(vector, vector, 0, 1, 2, 3); }
inline Int4 high_half(Int8 vector) { return __builtin_shufflevector(vector, vector, 4, 5, 6, 7); }

/// products * 2^(exponent - fraction_bits) + c cut to multiples of the same unit: exact.
inline Double4 scaled_sum(const SumRule& rule, Int4 products, Float4 c, Int4 exponent) {
  const Double4 c_scaled = __builtin_convertvector(c, Double4) * powers_of_two(rule.fraction_bits - exponent);
  const Int4 c_cut = __builtin_convertvector(c_scaled, Int4);
  return (__builtin_convertvector(products, Double4) + __builtin_convertvector(c_cut, Double4)) *
         powers_of_two(exponent - rule.fraction_bits);
}

/// The cut products as integers; at most 16 terms below 2^27, or 32 below 2^15: no wrap.
inline Int8 chunk_products(const SumRule& rule, const Chunk& chunk, Int8 exponent) {
  const Int8 scale_exponent = smaller(rule.fraction_bits - exponent, Int8{} + 127);
  const Float8 scale = (Float8)((scale_exponent + 127) << 23);
  Unsigned8 sum{};
  for (int k = 0; k < chunk.k; ++k) {
    const Float8 product = load<Float8>(chunk.b_value + k * chunk.b_pitch) * chunk.a_value[k];
    sum += (Unsigned8) __builtin_convertvector(product * scale, Int8);
  }
  return (Int8)sum;
}

/// Four results toward zero; subnormal ones keep fewer bits.
inline void store_truncated(SumRounding rounding, Double4 sum, float* d) {
  const std::int64_t kept = rounding == SumRounding::kTruncateF32 ? -(std::int64_t{1} << 29) : -(std::int64_t{1} << 39);
  const Float4 result = __builtin_convertvector((Double4)((Long4)sum & kept), Float4);
  store(d, result);
  const Int4 is_subnormal = ((Int4)result & 0x7fffffff) < 0x00800000;
  const Long4 is_rare = __builtin_convertvector(is_subnormal, Long4) & (Long4)(sum != 0);
  if ((is_rare[0] | is_rare[1] | is_rare[2] | is_rare[3]) == 0) return;
  for (int column = 0; column < 4; ++column) d[column] = round_result(rounding, sum[column]);
}

inline void store_result(const SumRule& rule, Int8 products, Float8 c, Int8 exponent, float* d) {
  const Float4 c_low = (Float4)low_half((Int8)c), c_high = (Float4)high_half((Int8)c);
  const Double4 low = scaled_sum(rule, low_half(products), c_low, low_half(exponent));
  const Double4 high = scaled_sum(rule, high_half(products), c_high, high_half(exponent));
  if (rule.rounding == SumRounding::kNearestF16) {
    for (int column = 0; column < 4; ++column) d[column] = round_to_f16(low[column]);
    for (int column = 0; column < 4; ++column) d[4 + column] = round_to_f16(high[column]);
    return;
  }
  store_truncated(rule.rounding, low, d);
  store_truncated(rule.rounding, high, d + 4);
}

template <int kCount>
inline void exact_block_of(const ExactBlock& block) {
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
        store_result(rule, chunk_products(rule, chunk, exponent), c, exponent, d);
        continue;
      }
      for (int lane = 0; lane < kColumnStep; ++lane) d[lane] = slow_element(rule, chunk, lane, c[lane]);
    }
  }
}

/// A block length known at compile time is twice as fast.
inline void exact_block_body(const ExactBlock& block) {
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
      __builtin_unreachable();  // sum_rule() has no other lengths
  }
}

inline void fast_product_body(const FastProduct& product) {
  const DecodedOperand &a = product.a, &b = product.b;
  for (int row = 0; row < a.extent; ++row) {
    for (int column = 0; column < b.extent; column += kColumnStep) {
      Float8 sum = load<Float8>(product.c + row * b.extent + column);
      for (int k = 0; k < a.k; ++k) sum += load<Float8>(b.value + k * b.extent + column) * a.value[row * a.k + k];
      float* d_chunk = product.d + row * b.extent + column;
      const Int8 is_nan = (Int8)(sum != sum);
      const Int8 bits = (is_nan & static_cast<std::int32_t>(kCanonicalNan)) | (~is_nan & (Int8)sum);
      store(d_chunk, bits);
      for (int lane = 0; product.is_f16 && lane < kColumnStep; ++lane) d_chunk[lane] = round_to_f16(d_chunk[lane]);
    }
  }
}

}  // namespace
}  // namespace kw::simulate
