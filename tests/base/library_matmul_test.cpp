// A library's matrix product goes through JSON unchanged, and its words are read back.
// SPDX-License-Identifier: Apache-2.0
#include "generator/base/library_matmul.h"

#include <nlohmann/json.hpp>

#include "tests/catch.h"

using namespace kw;

TEST_CASE("every epilogue of a library has a word of its own that is read back") {
  for (int value = 0; value <= 5; ++value) {
    const auto epilogue = static_cast<LibraryEpilogue>(value);
    CHECK(library_epilogue_from_text(to_text(epilogue)) == epilogue);
    CHECK(has_bias(epilogue) == (to_text(epilogue).find("bias") != std::string_view::npos));
  }
  CHECK_FALSE(library_epilogue_from_text("silu").has_value());
}

TEST_CASE("a library's product is the same after JSON, and a damaged one is an error") {
  LibraryMatmul matmul;
  matmul.rows = 96, matmul.cols = 64, matmul.depth = 128, matmul.num_batches = 3;
  matmul.first = {"right", DType::kBF16, true, 136, 1000};
  matmul.second = {"left", DType::kBF16, false, 129, 0};
  matmul.out = {"result", DType::kF32, false, 97, 6208};
  matmul.epilogue = LibraryEpilogue::kGeluTanhBias;
  matmul.bias = "bias", matmul.bias_batch_stride = 96, matmul.multiplies_tf32 = true;
  const nlohmann::json json = to_json(matmul);
  const auto again = library_matmul_from_json(json);
  REQUIRE(again.has_value());
  CHECK(to_json(*again) == json);
  CHECK(again->first.is_transposed);
  CHECK(again->second.leading_dimension == 129);
  CHECK(again->out.dtype == DType::kF32);
  nlohmann::json broken = json;
  broken["epilogue"] = "silu";
  CHECK(library_matmul_from_json(broken).error().message.find("silu") != std::string::npos);
  broken = json;
  broken["first"].erase("dtype");
  CHECK_FALSE(library_matmul_from_json(broken).has_value());
}
