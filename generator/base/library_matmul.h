// A matrix product as a BLAS library is asked for it: column-major, with evaluated extents and the epilogues that such a library fuses.
// Made by generator/plan/library_epilogue.h, sent to the GPU's worker as JSON. Knows no library: its enums are behind tuner/device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "generator/base/dtype.h"
#include "generator/base/error.h"

namespace kw {

/// What follows the product: bias is added before the function.
enum class LibraryEpilogue { kNone = 0, kBias = 1, kRelu = 2, kReluBias = 3, kGeluTanh = 4, kGeluTanhBias = 5 };
std::string_view to_text(LibraryEpilogue epilogue);
std::optional<LibraryEpilogue> library_epilogue_from_text(std::string_view text);
bool has_bias(LibraryEpilogue epilogue);

/// out[rows, cols] = epilogue(op(first)[rows, depth] * op(second)[depth, cols] + bias[rows]), all column-major: the first index is the
/// contiguous one. Sums are f32. A row-major product is the transposed one with its operands exchanged.
struct LibraryMatmul {
  struct Matrix {
    std::string tensor;
    DType dtype = DType::kF16;
    bool is_transposed = false;                            ///< stored as [depth, rows] or [cols, depth]; never for `out`
    std::int64_t leading_dimension = 0, batch_stride = 0;  ///< elements
  };
  std::int64_t rows = 0, cols = 0, depth = 0, num_batches = 1;
  Matrix first, second, out;
  LibraryEpilogue epilogue = LibraryEpilogue::kNone;
  std::string bias;  ///< tensor of the dtype of `out`, contiguous along the rows; empty without one
  std::int64_t bias_batch_stride = 0;
  bool multiplies_tf32 = false;  ///< f32 operands may be rounded to tf32
};

nlohmann::json to_json(const LibraryMatmul& matmul);
Result<LibraryMatmul> library_matmul_from_json(const nlohmann::json& json);

}  // namespace kw
