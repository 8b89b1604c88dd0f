// Sums of a tensor core: the plain statement for rare cases, rounding, and the choice of the hot loops (sum_kernels.h).
// SPDX-License-Identifier: Apache-2.0
#include "simulator/tensor/fused_sum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "generator/base/error.h"

#include "simulator/tensor/host_features.h"
#include "simulator/tensor/sum_kernels.h"

namespace kw::simulate {
namespace {

constexpr std::uint32_t kCanonicalNan = 0x7fffffff;
constexpr int kSmallestF32Exponent = -126;

double power_of_two(int exponent) { return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52); }

/// Toward zero to `fraction_bits` after the leading bit, with f32's smallest exponent.
float truncate_to_float(double value, int fraction_bits) {
  const int exponent = value == 0 ? kSmallestF32Exponent : std::max(std::ilogb(value), kSmallestF32Exponent);
  const double unit = power_of_two(exponent - fraction_bits);
  const double cut = std::trunc(value / unit) * unit;
  if (std::fabs(cut) >= 0x1p128) return std::copysign(std::numeric_limits<float>::infinity(), static_cast<float>(value < 0 ? -1 : 1));
  return static_cast<float>(cut);
}

int exponent_of_accumulator(SumRounding rounding, float c) {
  if (c == 0) return kZeroExponent;
  const int field = static_cast<int>(std::bit_cast<std::uint32_t>(c) >> 23 & 0xff);
  return std::max(field - 127, rounding == SumRounding::kNearestF16 ? -14 : kSmallestF32Exponent);
}

}  // namespace

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

float round_to_f16(double value) {
  if (!(std::fabs(value) < 65520.0)) return std::isnan(value) ? std::bit_cast<float>(kCanonicalNan) : value < 0 ? -INFINITY : INFINITY;
  const int exponent = static_cast<int>(std::bit_cast<std::uint64_t>(std::fabs(value)) >> 52) - 1023;
  const double magic = 1.5 * power_of_two(52 + std::max(exponent, -14) - 10);  // its last bit is f16's unit here
  return static_cast<float>((value + magic) - magic);  // a negative value that rounds to zero gives +0, as on an H200
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
    const ExactBlock block{rule, a, b, k, std::min(rule.block, a.k - k), k == 0 ? c : d, d};
    KW_CHECK(block.k_count == 4 || block.k_count == 8 || block.k_count == 16 || block.k_count == 32, "no tensor core sums such blocks");
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
  if (kHasAvx2) return fast_product_avx2({a, b, is_f16, c, d});
#endif
  fast_product_baseline({a, b, is_f16, c, d});
}

}  // namespace kw::simulate
