// Dense products of small tiles, D = A * B + C, in the exact arithmetic of a tensor core (sum_rule.h) or in plain f32.
// Internal to simulator/tensor: mma.cpp and wgmma.cpp bring fragments into this form and back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "simulator/tensor/sum_rule.h"
#include "simulator/tensor/types.h"

namespace kw::simulate {

inline constexpr int kMaxTileK = 32;
inline constexpr int kMaxTileElements = 256 * kMaxTileK;
inline constexpr int kColumnStep = 8;  // columns are done eight at a time

/// An operand with its numbers taken apart. A lies [row][k], B lies [k][column].
/// Storage is left uninitialised on purpose: one lives on the stack of every matrix instruction.
struct DecodedOperand {
  alignas(64) float value[kMaxTileElements];            ///< exact; may be infinite or NaN
  alignas(64) std::int32_t exponent[kMaxTileElements];  ///< of the leading bit, at least the format's smallest; kZeroExponent for zero
  int extent = 0;                                       ///< rows of A or columns of B
  int k = 0;
  int largest_exponent = 0;   ///< over all elements
  int smallest_exponent = 0;  ///< over the elements that are not zero
  bool has_special = false;   ///< an infinity or a NaN
};
inline constexpr std::int32_t kZeroExponent = -100000;

/// bits: [extent][k] raw elements of `type`; is_by_column: transpose into [k][extent] (operand B).
void decode_operand(ElementType type, const std::uint32_t* bits, int extent, int k, bool is_by_column, DecodedOperand& out);

/// d[row][column] = sum by the rule, blocks in order of k. c and d are f32 values, [rows][columns]; for kNearestF16 they hold f16 values.
/// accumulator_min_exponent: -126 for f32, -14 for f16. columns is a multiple of 8. c may be d.
void exact_product(const SumRule& rule, const DecodedOperand& a, const DecodedOperand& b, const float* c, float* d);

/// d = c + a*b with f32 multiplications and additions in order of k, whatever the rule; f16 accumulators are rounded once at the end.
void fast_product(const DecodedOperand& a, const DecodedOperand& b, bool is_f16, const float* c, float* d);

/// One sum by the rule, plainly written: the path for infinities, NaN and products outside f32's range, and a check of the fast path.
float exact_sum(const SumRule& rule, std::span<const float> a, std::span<const std::int32_t> a_exponents, std::span<const float> b,
                std::span<const std::int32_t> b_exponents, float c);

/// Rounds to f16 and back as the tensor core does: ties to even, overflow to infinity, zero always +0.
float round_to_f16(double value);

}  // namespace kw::simulate
