// The arithmetic that mma.sync and wgmma share: raw operand tiles and packed accumulators in, packed accumulators out.
// Internal to simulator/tensor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "simulator/tensor/sum_rule.h"
#include "simulator/tensor/types.h"

namespace kw::simulate {

struct DenseMma {
  TensorUnit unit = TensorUnit::kMmaSync;
  int rows = 16, columns = 8, k = 16;
  ElementType a = ElementType::kF16, b = ElementType::kF16, d = ElementType::kF32;
  int warps = 1;  ///< each holds rows / warps rows in its own registers
  bool saturates = false;
};

/// a_bits: [rows][k], b_bits: [columns][k] raw elements; c and d: accumulator registers, warp after warp (fragment.h). For an fp8
/// mma.sync that is split in halves the bits are reordered in place. c empty: zero accumulators.
void dense_mma(const DenseMma& problem, const TensorMath& math, std::uint32_t* a_bits, std::uint32_t* b_bits,
               std::span<const LaneRegister> c, std::span<LaneRegister> d);

}  // namespace kw::simulate
