// Fragments of a warp to dense tiles and back. One picture serves every operand: register j of a lane quartet holds 16 bytes of one row, so
// the 32 words of a register are 8 rows of 16 bytes, row g from lanes 4g..4g+3.
// Internal to simulator/tensor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "simulator/tensor/types.h"

namespace kw::simulate {

/// bits[row * k + element]: A with `row_blocks` blocks of eight rows (register j: block j % row_blocks, 16-byte chunk j / row_blocks of K);
/// B is the same with one block (its rows are columns n).
void unpack_operand(std::span<const LaneRegister> registers, int row_blocks, int element_bytes, int k, std::uint32_t* bits);

/// Accumulators of 32 bits: register i, lane 4g+q: row g + 8*((i/2) % row_blocks), col 2q + i%2 + 8*(i / (2*row_blocks)).
void unpack_words(std::span<const LaneRegister> registers, int row_blocks, int columns, std::uint32_t* words);
void pack_words(const std::uint32_t* words, int row_blocks, int columns, std::span<LaneRegister> registers);
/// Accumulators of 16 bits as f32 values: register i holds what words 2i (low half) and 2i+1 hold above.
void unpack_halves(std::span<const LaneRegister> registers, int row_blocks, int columns, float* values);
void pack_halves(const float* values, int row_blocks, int columns, std::span<LaneRegister> registers);

}  // namespace kw::simulate
