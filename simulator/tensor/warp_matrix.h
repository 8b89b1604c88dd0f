// ldmatrix, stmatrix and movmatrix: between 8x8 matrices of 16-bit elements in shared memory and a warp's registers.
// The caller reads or writes memory (bounds, races, initialisation are its matter): lane 8i+j gives the address of row j of
// matrix i, 16 bytes, 16-aligned. Verified on an H200 (x1, x2, x4, with and without .trans).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "simulator/tensor/types.h"

namespace kw::simulate {

/// One row of an 8x8 b16 matrix.
struct MatrixRow {
  std::array<std::uint8_t, 16> bytes{};
};

/// rows: 8 * registers.size() rows, matrix by matrix; register i of lane l gets row l/4, columns 2(l%4) and +1 of matrix i
/// (is_transposed: rows 2(l%4) and +1 of column l/4).
void ldmatrix(std::span<const MatrixRow> rows, bool is_transposed, std::span<LaneRegister> registers);
/// The inverse: fills 8 * registers.size() rows.
void stmatrix(std::span<const LaneRegister> registers, bool is_transposed, std::span<MatrixRow> rows);
/// movmatrix.sync.aligned.m8n8.trans.b16: the transposed fragment.
LaneRegister movmatrix(const LaneRegister& source);

}  // namespace kw::simulate
