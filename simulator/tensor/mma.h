// mma.sync: forms, register counts, fragments and the product itself, for one warp.
// Layout (verified on an H200 for every width): g = lane/4, q = lane%4, per = elements in a 32-bit register;
//   A register j, element i: row g + 8*(j%2), k = q*per + i + 4*per*(j/2);  B: n = g, k = q*per + i + 4*per*j;
//   C/D element i: row g + 8*(i/2), col 2q + i%2 (f32, s32: one a register; f16: two). f64 m8n8k4: one element in two registers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "generator/base/error.h"
#include "simulator/tensor/types.h"

namespace kw::simulate {

/// One mma.sync.mMnNkK.row.col form. D and C have one type here (the mixed f32/f16 forms of sm_70 are refused).
struct MmaForm {
  int m = 16, n = 8, k = 16;
  ElementType a = ElementType::kF16;
  ElementType b = ElementType::kF16;
  ElementType d = ElementType::kF32;                      ///< accumulator: kF32, kF16, kS32, kF64
  bool saturates = false;                                 ///< .satfinite of the integer forms
  int a_registers = 4, b_registers = 2, d_registers = 4;  ///< 32-bit registers a lane; an f64 element takes two, low word first
};

/// Checks that PTX has this form for sm_80..sm_90 and fills in the register counts.
/// Errors: kNotSupported with the form's name, "mma.sync m16n8k12 f16 f16 f32: no such form (known k: 8, 16)".
Result<MmaForm> make_mma_form(int m, int n, int k, ElementType a, ElementType b, ElementType d, bool saturates = false);

/// d = a * b + c over the whole warp. Spans hold form.*_registers registers; d may be c.
void mma(const MmaForm& form, const TensorMath& math, std::span<const LaneRegister> a, std::span<const LaneRegister> b,
         std::span<const LaneRegister> c, std::span<LaneRegister> d);

}  // namespace kw::simulate
