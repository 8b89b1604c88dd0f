// Element types: conversions are exact and round to nearest even.
// SPDX-License-Identifier: Apache-2.0
#include "generator/base/dtype.h"

#include <array>
#include <cmath>
#include <limits>

#include "tests/catch.h"

namespace kw {
namespace {

double round_trip(DType dtype, double value) {
  std::array<std::byte, 8> memory{};
  store_element(dtype, value, memory.data());
  return load_element(dtype, memory.data());
}

}  // namespace

TEST_CASE("every dtype survives the way to text and back and has a size") {
  for (const DType dtype : all_dtypes()) {
    CHECK(dtype_from_text(to_text(dtype)) == dtype);
    CHECK(size_bytes(dtype) > 0);
    CHECK(is_float(dtype) != is_integer(dtype));
  }
  CHECK_FALSE(dtype_from_text("fp16").has_value());
}

TEST_CASE("each bit pattern of the small formats decodes and encodes to itself") {
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2}) {
    const unsigned patterns = size_bytes(dtype) == 2 ? 65536 : 256;
    int mismatches = 0;
    for (unsigned bits = 0; bits < patterns; ++bits) {
      std::array<std::byte, 8> memory{};
      memory[0] = static_cast<std::byte>(bits & 255);
      memory[1] = static_cast<std::byte>(bits >> 8);
      const double value = load_element(dtype, memory.data());
      if (std::isnan(value)) {
        mismatches += std::isnan(round_trip(dtype, value)) ? 0 : 1;
        continue;
      }
      std::array<std::byte, 8> back{};
      store_element(dtype, value, back.data());
      mismatches += back == memory ? 0 : 1;
    }
    INFO(to_text(dtype));
    CHECK(mismatches == 0);
  }
}

TEST_CASE("rounding is to nearest, ties to even, and overflow is infinity where the format has one") {
  CHECK(round_trip(DType::kF16, 1.0 + 0x1p-11) == 1.0);
  CHECK(round_trip(DType::kF16, 1.0 + 3 * 0x1p-11) == 1.0 + 0x1p-9);
  CHECK(round_trip(DType::kF16, 65519.9) == 65504.0);
  CHECK(std::isinf(round_trip(DType::kF16, 65520.0)));
  CHECK(round_trip(DType::kF16, 0x1p-25) == 0.0);
  CHECK(round_trip(DType::kF16, 0x1.8p-25) == 0x1p-24);
  CHECK(round_trip(DType::kF16, 0x1.ffep-15) == 0x1p-14);
  CHECK(round_trip(DType::kBF16, 1.0 + 0x1p-8) == 1.0);
  CHECK(round_trip(DType::kE4M3, 448.0) == 448.0);
  CHECK(std::isnan(round_trip(DType::kE4M3, 480.0)));
  CHECK(std::isnan(round_trip(DType::kF16, std::numeric_limits<double>::quiet_NaN())));
  CHECK(std::signbit(round_trip(DType::kBF16, -0.0)));
}

TEST_CASE("integers truncate toward zero and saturate") {
  CHECK(round_trip(DType::kI8, -1.9) == -1.0);
  CHECK(round_trip(DType::kI8, 300.0) == 127.0);
  CHECK(round_trip(DType::kI32, -1e12) == -2147483648.0);
  CHECK(round_trip(DType::kBool, 2.0) == 1.0);
}

}  // namespace kw
