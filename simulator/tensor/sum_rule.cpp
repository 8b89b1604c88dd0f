// Table of the tensor cores' sums.
// Sources: fraction bits and blocks as published for A100, L40S, H100 and B200 (arXiv 2511.10909, 2512.07004); 25 and 13 bits confirmed on
// an H200; the split of fp8 mma.sync read in the machine code of ptxas 13.0 for sm_90a and sm_100a (F2FP.UNPACK, 2 x HMMA, FADD or HADD2).
// SPDX-License-Identifier: Apache-2.0
#include "simulator/tensor/sum_rule.h"

namespace kw::simulate {
namespace {

struct Row {
  TensorArch arch;
  TensorUnit unit;
  bool is_fp8;
  int block_bytes;  ///< operand bytes of one block: 32 is 16 f16 or 8 tf32
  int fraction_bits;
  bool is_e8m13;
  bool is_split_in_halves;
};

constexpr Row kRows[] = {
    {TensorArch::kSm80, TensorUnit::kMmaSync, false, 16, 24, false, false},
    {TensorArch::kSm89, TensorUnit::kMmaSync, false, 16, 24, false, false},
    {TensorArch::kSm89, TensorUnit::kMmaSync, true, 16, 13, true, false},
    {TensorArch::kSm90, TensorUnit::kMmaSync, false, 32, 25, false, false},
    {TensorArch::kSm90, TensorUnit::kMmaSync, true, 16, 25, false, true},
    {TensorArch::kSm90, TensorUnit::kWgmma, false, 32, 25, false, false},
    {TensorArch::kSm90, TensorUnit::kWgmma, true, 32, 13, true, false},
    {TensorArch::kSm100, TensorUnit::kMmaSync, false, 32, 25, false, false},
    {TensorArch::kSm100, TensorUnit::kMmaSync, true, 16, 25, false, true},
};

}  // namespace

SumRule sum_rule(TensorArch arch, TensorUnit unit, ElementType operand, ElementType accumulator) {
  const bool is_fp8 = operand == ElementType::kE4M3 || operand == ElementType::kE5M2;
  Row found = kRows[3];  // kernels for an architecture without the unit do not assemble; Hopper's numbers stand in
  for (const Row& row : kRows) {
    if (row.arch == arch && row.unit == unit && row.is_fp8 == is_fp8) found = row;
  }
  const SumRounding f32_rounding = found.is_e8m13 ? SumRounding::kTruncateE8M13 : SumRounding::kTruncateF32;
  return {.block = found.block_bytes / size_bytes(operand),
          .fraction_bits = found.fraction_bits,
          .rounding = accumulator == ElementType::kF16 ? SumRounding::kNearestF16 : f32_rounding,
          .is_split_in_halves = found.is_split_in_halves};
}

}  // namespace kw::simulate
