// Texts and JSON of a library's matrix product. See library_matmul.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/base/library_matmul.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace kw {
namespace {

constexpr std::array<std::pair<LibraryEpilogue, std::string_view>, 6> kEpilogueTexts = {
    {{LibraryEpilogue::kNone, "none"},
     {LibraryEpilogue::kBias, "bias"},
     {LibraryEpilogue::kRelu, "relu"},
     {LibraryEpilogue::kReluBias, "bias_relu"},
     {LibraryEpilogue::kGeluTanh, "gelu_tanh"},
     {LibraryEpilogue::kGeluTanhBias, "bias_gelu_tanh"}}};

nlohmann::json to_json(const LibraryMatmul::Matrix& matrix) {
  return {{"tensor", matrix.tensor},
          {"dtype", std::string(to_text(matrix.dtype))},
          {"is_transposed", matrix.is_transposed},
          {"leading_dimension", matrix.leading_dimension},
          {"batch_stride", matrix.batch_stride}};
}

Result<LibraryMatmul::Matrix> matrix_from_json(const nlohmann::json& json) {
  LibraryMatmul::Matrix matrix;
  matrix.tensor = json.at("tensor").get<std::string>();
  const std::string dtype_text = json.at("dtype").get<std::string>();
  const std::optional<DType> dtype = dtype_from_text(dtype_text);
  if (!dtype) return fail(Stage::kDevice, Code::kBadInput, fmt::format("matrix {}: unknown dtype '{}'", matrix.tensor, dtype_text));
  matrix.dtype = *dtype;
  matrix.is_transposed = json.at("is_transposed").get<bool>();
  matrix.leading_dimension = json.at("leading_dimension").get<std::int64_t>();
  matrix.batch_stride = json.at("batch_stride").get<std::int64_t>();
  return matrix;
}

}  // namespace

std::string_view to_text(LibraryEpilogue epilogue) {
  for (const auto& [value, text] : kEpilogueTexts)
    if (value == epilogue) return text;
  return "unknown";
}

std::optional<LibraryEpilogue> library_epilogue_from_text(std::string_view text) {
  for (const auto& [value, known] : kEpilogueTexts)
    if (known == text) return value;
  return std::nullopt;
}

bool has_bias(LibraryEpilogue epilogue) {
  return epilogue == LibraryEpilogue::kBias || epilogue == LibraryEpilogue::kReluBias || epilogue == LibraryEpilogue::kGeluTanhBias;
}

nlohmann::json to_json(const LibraryMatmul& matmul) {
  return {{"rows", matmul.rows},
          {"cols", matmul.cols},
          {"depth", matmul.depth},
          {"num_batches", matmul.num_batches},
          {"first", to_json(matmul.first)},
          {"second", to_json(matmul.second)},
          {"out", to_json(matmul.out)},
          {"epilogue", std::string(to_text(matmul.epilogue))},
          {"bias", matmul.bias},
          {"bias_batch_stride", matmul.bias_batch_stride},
          {"multiplies_tf32", matmul.multiplies_tf32}};
}

Result<LibraryMatmul> library_matmul_from_json(const nlohmann::json& json) {
  try {
    LibraryMatmul matmul;
    matmul.rows = json.at("rows").get<std::int64_t>();
    matmul.cols = json.at("cols").get<std::int64_t>();
    matmul.depth = json.at("depth").get<std::int64_t>();
    matmul.num_batches = json.at("num_batches").get<std::int64_t>();
    KW_TRY(matmul.first, matrix_from_json(json.at("first")));
    KW_TRY(matmul.second, matrix_from_json(json.at("second")));
    KW_TRY(matmul.out, matrix_from_json(json.at("out")));
    const std::string epilogue_text = json.at("epilogue").get<std::string>();
    const std::optional<LibraryEpilogue> epilogue = library_epilogue_from_text(epilogue_text);
    if (!epilogue) return fail(Stage::kDevice, Code::kBadInput, fmt::format("unknown epilogue '{}'", epilogue_text));
    matmul.epilogue = *epilogue;
    matmul.bias = json.at("bias").get<std::string>();
    matmul.bias_batch_stride = json.at("bias_batch_stride").get<std::int64_t>();
    matmul.multiplies_tf32 = json.at("multiplies_tf32").get<bool>();
    return matmul;
  } catch (const nlohmann::json::exception& error) {
    return fail(Stage::kDevice, Code::kBadInput, fmt::format("a library's matrix product cannot be read back: {}", error.what()));
  }
}

}  // namespace kw
