// ldmatrix, stmatrix, movmatrix: the maps as PTX states them.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/tensor/warp_matrix.h"

#include <vector>

#include "tests/catch.h"

namespace kw::simulate {
namespace {

/// Element (row, column) of matrix m holds 64 m + 8 row + column.
std::vector<MatrixRow> numbered_rows(int num_matrices) {
  std::vector<MatrixRow> rows(static_cast<std::size_t>(8 * num_matrices));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t column = 0; column < 8; ++column) rows[row].bytes[2 * column] = static_cast<std::uint8_t>(8 * row + column);
  }
  return rows;
}

}  // namespace

TEST_CASE("ldmatrix gives lane l columns 2(l%4), +1 of row l/4, transposed the rows of column l/4") {
  for (const int count : {1, 2, 4}) {
    const std::vector<MatrixRow> rows = numbered_rows(count);
    std::vector<LaneRegister> plain(static_cast<std::size_t>(count)), transposed(plain.size());
    ldmatrix(rows, false, plain);
    ldmatrix(rows, true, transposed);
    for (std::uint32_t matrix = 0; matrix < static_cast<std::uint32_t>(count); ++matrix) {
      for (std::uint32_t lane = 0; lane < 32; ++lane) {
        const std::uint32_t first = 64 * matrix + 8 * (lane / 4) + 2 * (lane % 4);
        CHECK(plain[matrix].lane[lane] == (first | (first + 1) << 16));
        const std::uint32_t first_transposed = 64 * matrix + 8 * (2 * (lane % 4)) + lane / 4;
        CHECK(transposed[matrix].lane[lane] == (first_transposed | (first_transposed + 8) << 16));
      }
    }
  }
}

TEST_CASE("stmatrix undoes ldmatrix, and movmatrix transposes a fragment") {
  const std::vector<MatrixRow> rows = numbered_rows(4);
  for (const bool is_transposed : {false, true}) {
    std::vector<LaneRegister> registers(4);
    ldmatrix(rows, is_transposed, registers);
    std::vector<MatrixRow> stored(rows.size());
    stmatrix(registers, is_transposed, stored);
    for (std::size_t row = 0; row < rows.size(); ++row) CHECK(stored[row].bytes == rows[row].bytes);
  }
  std::vector<LaneRegister> plain(1), transposed(1);
  ldmatrix(numbered_rows(1), false, plain);
  ldmatrix(numbered_rows(1), true, transposed);
  CHECK(movmatrix(plain[0]).lane == transposed[0].lane);
}

}  // namespace kw::simulate
