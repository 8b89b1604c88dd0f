// How a tensor core forms one sum of products: block length, fraction bits, rounding of the result. Data, by instruction and architecture.
// Internal to simulator/tensor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simulator/tensor/types.h"

namespace kw::simulate {

enum class TensorUnit { kMmaSync = 0, kWgmma = 1 };

/// How the exact sum of a block becomes the next accumulator.
enum class SumRounding {
  kTruncateF32 = 0,    ///< toward zero to f32
  kTruncateE8M13 = 1,  ///< toward zero to 13 fraction bits with f32's exponents
  kNearestF16 = 2      ///< to nearest even f16
};

/// A block of `block` products and the accumulator are cut (toward zero) to multiples of 2^(e - fraction_bits) and added exactly; e is the
/// largest exponent among the products' operands' exponent sums and the accumulator's (products are not normalised first), at least -126.
struct SumRule {
  int block = 16;
  int fraction_bits = 25;
  SumRounding rounding = SumRounding::kTruncateF32;
  /// fp8 mma.sync where there is no fp8 unit: ptxas turns it into two f16 instructions from a zero accumulator, first the elements with
  /// k % 4 < 2, then the others (the halves of each register), and adds the accumulator by a rounded f32 or f16 addition.
  bool is_split_in_halves = false;
};

SumRule sum_rule(TensorArch arch, TensorUnit unit, ElementType operand, ElementType accumulator);

}  // namespace kw::simulate
