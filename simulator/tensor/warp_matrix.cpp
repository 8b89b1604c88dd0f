// Register j of a fragment holds an 8x8 b16 matrix: lane 4r+q has columns 2q (low half) and 2q+1 of row r. So a register's 32 words are the
// matrix row by row, 16 bytes a row.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/tensor/warp_matrix.h"

#include <cstring>

#include "generator/base/error.h"

namespace kw::simulate {
namespace {

using Matrix = std::array<std::array<std::uint16_t, 8>, 8>;  // [row][column]

Matrix transposed(const Matrix& matrix) {
  Matrix result;
  for (std::size_t row = 0; row < 8; ++row) {
    for (std::size_t column = 0; column < 8; ++column) result[column][row] = matrix[row][column];
  }
  return result;
}

LaneRegister to_register(const Matrix& matrix) {
  LaneRegister result;
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    const auto& row = matrix[lane / 4];
    result.lane[lane] = row[2 * (lane % 4)] | static_cast<std::uint32_t>(row[2 * (lane % 4) + 1]) << 16;
  }
  return result;
}

Matrix to_matrix(const LaneRegister& source) {
  Matrix matrix;
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    matrix[lane / 4][2 * (lane % 4)] = static_cast<std::uint16_t>(source.lane[lane] & 0xffff);
    matrix[lane / 4][2 * (lane % 4) + 1] = static_cast<std::uint16_t>(source.lane[lane] >> 16);
  }
  return matrix;
}

}  // namespace

void ldmatrix(std::span<const MatrixRow> rows, bool is_transposed, std::span<LaneRegister> registers) {
  KW_CHECK(rows.size() == 8 * registers.size(), "ldmatrix takes eight rows a register");
  for (std::size_t matrix_index = 0; matrix_index < registers.size(); ++matrix_index) {
    Matrix matrix;
    for (std::size_t row = 0; row < 8; ++row) std::memcpy(matrix[row].data(), rows[8 * matrix_index + row].bytes.data(), 16);
    registers[matrix_index] = to_register(is_transposed ? transposed(matrix) : matrix);
  }
}

void stmatrix(std::span<const LaneRegister> registers, bool is_transposed, std::span<MatrixRow> rows) {
  KW_CHECK(rows.size() == 8 * registers.size(), "stmatrix gives eight rows a register");
  for (std::size_t matrix_index = 0; matrix_index < registers.size(); ++matrix_index) {
    const Matrix held = to_matrix(registers[matrix_index]);
    const Matrix matrix = is_transposed ? transposed(held) : held;
    for (std::size_t row = 0; row < 8; ++row) std::memcpy(rows[8 * matrix_index + row].bytes.data(), matrix[row].data(), 16);
  }
}

LaneRegister movmatrix(const LaneRegister& source) { return to_register(transposed(to_matrix(source))); }

}  // namespace kw::simulate
