// Comparison of outputs with their references: NaN, infinities, bounds, gaps.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tuner/device/compare_output.h"
#include "tuner/device/guarded_buffer.h"

using namespace kw::tuner;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TensorStorage tensor_of(kw::DType dtype, std::int64_t n) {
  TensorStorage tensor;
  tensor.name = "out";
  tensor.dtype = dtype;
  tensor.role = kw::TensorRole::kOut;
  tensor.extents = {n};
  tensor.strides = {1};
  tensor.num_elements = n;
  tensor.num_bytes = static_cast<std::size_t>(n * kw::size_bytes(dtype));
  return tensor;
}

/// Verdict for one f16 element.
std::string verdict_of(double value, double reference, double bound) {
  const TensorStorage tensor = tensor_of(kw::DType::kF16, 1);
  OutputSamples samples{
      .tensor = "out", .dtype = kw::DType::kF16, .offsets = {0}, .coordinates = {0}, .rank = 1, .values = {reference}, .bounds = {bound}};
  std::byte bytes[2];
  kw::store_element(kw::DType::kF16, value, bytes);
  OutputComparison comparison(tensor, samples);
  comparison.add(0, bytes, bytes);
  return comparison.verdict();
}

}  // namespace

TEST_CASE("NaN and infinity must be exactly where the reference has them") {
  const double nan = std::nan("");
  CHECK(verdict_of(nan, nan, 0).empty());
  CHECK_FALSE(verdict_of(nan, 1, kInfinity).empty());
  CHECK_FALSE(verdict_of(1, nan, 1).empty());
  CHECK(verdict_of(kInfinity, kInfinity, 0).empty());
  CHECK_FALSE(verdict_of(-kInfinity, kInfinity, 0).empty());
  CHECK_FALSE(verdict_of(65504, kInfinity, 1).empty());
  CHECK_FALSE(verdict_of(kInfinity, 100, 1).empty());
}

TEST_CASE("an element that nothing writes may keep the poison, one that is written may not") {
  const TensorStorage tensor = tensor_of(kw::DType::kF32, 2);
  OutputSamples samples{.tensor = "out",
                        .dtype = kw::DType::kF32,
                        .offsets = {0, 1},
                        .coordinates = {0, 1},
                        .rank = 1,
                        .values = {1, 0},
                        .bounds = {0, kInfinity}};
  std::byte bytes[8];
  std::memset(bytes, kPoisonByte, sizeof bytes);
  OutputComparison unwritten(tensor, samples);
  unwritten.add(0, bytes, bytes);
  CHECK_THAT(unwritten.verdict(), contains_text("1 of 2 samples"));
  kw::store_element(kw::DType::kF32, 1, bytes);
  OutputComparison right(tensor, samples);
  right.add(0, bytes, bytes);
  CHECK(right.verdict().empty());
}

TEST_CASE("a list's tensors lie one behind the other, and kernels are given the table of their pointers") {
  kw::LaunchPlan plan;
  plan.dims = {"L", "N"};
  const kw::IntExpr l = kw::IntExpr::variable("L"), n = kw::IntExpr::variable("N");
  plan.tensors.push_back({"p", kw::DType::kF16, kw::TensorRole::kInOut, {l, n}, {n, kw::IntExpr(1)}, 16, true});
  const auto storages = tensor_storages(plan, {.dims = {{"L", 3}, {"N", 5}}, .strides = {}, .align_bytes = {}});
  REQUIRE(storages);
  CHECK(storages->front().num_elements == 15);
  CHECK(list_pointers(storages->front(), 1000) == std::vector<std::uint64_t>{1000, 1010, 1020});
  const auto again = kw::launch_plan_from_json(kw::to_json(plan));
  REQUIRE(again);
  CHECK(again->tensors.front().is_list);
}

TEST_CASE("a value that overflows the output's type is an infinity there") {
  CHECK(verdict_of(kInfinity, 70000, 32).empty());
  CHECK(verdict_of(kInfinity, 65510, 32).empty());  // rounds up within the bound
  CHECK(verdict_of(65504, 65510, 32).empty());
}

TEST_CASE("the bound decides, and an exact value needs none") {
  CHECK(verdict_of(1.0, 1.0004, 0.0005).empty());
  CHECK_FALSE(verdict_of(1.0, 1.0006, 0.0005).empty());
  CHECK(verdict_of(0.0, 0.0, 0.0).empty());
}

TEST_CASE("a write between the rows of a tensor with gaps is found") {
  TensorStorage tensor = tensor_of(kw::DType::kF32, 7);
  tensor.extents = {2, 3};
  tensor.strides = {4, 1};
  tensor.is_dense = false;
  float values[7] = {1, 2, 3, 0, 4, 5, 6};
  std::memset(&values[3], kPoisonByte, sizeof(float));
  const OutputSamples samples{
      .tensor = "out", .dtype = kw::DType::kF32, .offsets = {4}, .coordinates = {1, 0}, .rank = 2, .values = {4}, .bounds = {0}};
  OutputComparison clean(tensor, samples);
  clean.add(0, std::as_bytes(std::span(values)), std::as_bytes(std::span(values)));
  CHECK(clean.verdict().empty());
  values[3] = 9;
  OutputComparison stray(tensor, samples);
  stray.add(0, std::as_bytes(std::span(values)), std::as_bytes(std::span(values)));
  CHECK(stray.verdict() == "out: element 3 lies between the rows and was written");
}

TEST_CASE("samples are found in any order over several pieces, and one outside is an error") {
  const TensorStorage tensor = tensor_of(kw::DType::kF32, 4);
  const float values[4] = {1, 2, 3, 4};
  OutputSamples samples{.tensor = "out",
                        .dtype = kw::DType::kF32,
                        .offsets = {3, 0, 2},
                        .coordinates = {3, 0, 2},
                        .rank = 1,
                        .values = {4, 1, 3},
                        .bounds = {0, 0, 0}};
  const auto bytes = std::as_bytes(std::span(values));
  OutputComparison comparison(tensor, samples);
  comparison.add(0, bytes.first(8), bytes.first(8));
  comparison.add(8, bytes.subspan(8), bytes.subspan(8));
  CHECK(comparison.verdict().empty());
  CHECK(comparison.squared_reference() == 26);
  samples.offsets[0] = 9;
  OutputComparison outside(tensor, samples);
  outside.add(0, bytes, bytes);
  CHECK(outside.verdict().find("outside the tensor") != std::string::npos);
}
