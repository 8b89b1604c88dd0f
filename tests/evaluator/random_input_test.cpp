// Random inputs: moments, ranges, permutations, and the same bits as the device source, which is compiled here for the host.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/verify/random_input.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "tests/catch.h"
#include "tests/evaluator/program_builder.h"
#include "tuner/verify/sampling.h"

namespace device_source {

// What the device compiler provides. One thread does all.
struct Position {
  unsigned x;
};
constexpr Position blockIdx{0}, threadIdx{0}, blockDim{1}, gridDim{1};
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>((static_cast<Wide>(a) * b) >> 64);
}
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline int __float_as_int(float x) {
  int bits = 0;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}
#define __device__
#define __global__
#define __forceinline__ inline
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include "templates/support/fill_inputs.cuh"
#pragma GCC diagnostic pop
#undef __device__
#undef __global__
#undef __forceinline__

}  // namespace device_source

using namespace kw;
using namespace kw::generator;
using namespace kw::tuner;
using Kind = InputFill::Kind;

namespace {

/// What the device's kernel leaves in memory, decoded.
std::vector<double> device_fill(const InputFill& fill, std::int64_t num_elements) {
  const auto size = static_cast<size_t>(size_bytes(fill.dtype));
  std::vector<std::byte> memory(static_cast<size_t>(num_elements) * size);
  const auto run = [&](auto kernel, auto* element) {
    kernel(reinterpret_cast<decltype(element)>(memory.data()), num_elements, static_cast<int>(fill.kind), fill.low, fill.high, fill.seed,
           fill.num_elements);
  };
  switch (fill.dtype) {
    case DType::kF16:
      run(device_source::fill_input_f16, static_cast<unsigned short*>(nullptr));
      break;
    case DType::kBF16:
      run(device_source::fill_input_bf16, static_cast<unsigned short*>(nullptr));
      break;
    case DType::kF32:
    case DType::kTF32:
      run(device_source::fill_input_f32, static_cast<float*>(nullptr));
      break;
    case DType::kF64:
      run(device_source::fill_input_f64, static_cast<double*>(nullptr));
      break;
    case DType::kE4M3:
      run(device_source::fill_input_e4m3, static_cast<unsigned char*>(nullptr));
      break;
    case DType::kE5M2:
      run(device_source::fill_input_e5m2, static_cast<unsigned char*>(nullptr));
      break;
    case DType::kI8:
      run(device_source::fill_input_i8, static_cast<signed char*>(nullptr));
      break;
    case DType::kI32:
      run(device_source::fill_input_i32, static_cast<int*>(nullptr));
      break;
    case DType::kI64:
      run(device_source::fill_input_i64, static_cast<long long*>(nullptr));
      break;
    case DType::kBool:
      run(device_source::fill_input_bool, static_cast<unsigned char*>(nullptr));
      break;
  }
  std::vector<double> values;
  for (size_t i = 0; i < static_cast<size_t>(num_elements); ++i) values.push_back(load_element(fill.dtype, memory.data() + i * size));
  return values;
}

InputFill fill_of(DType dtype, Kind kind, double low, double high, std::uint64_t seed, std::int64_t num_elements) {
  InputFill fill;
  fill.dtype = dtype;
  fill.kind = kind;
  fill.low = low;
  fill.high = high;
  fill.seed = seed;
  fill.num_elements = num_elements;
  return fill;
}

bool equal_bits(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

TEST_CASE("host and device make the same bits for every dtype and kind") {
  const std::int64_t num_elements = 20000;
  for (const DType dtype : all_dtypes()) {
    for (const InputFill& fill :
         {fill_of(dtype, Kind::kNormal, 0, 0, 11, num_elements), fill_of(dtype, Kind::kUniform, -0.7, 1.3, 12, num_elements),
          fill_of(dtype, Kind::kUniform, -9e4, 9e4, 13, num_elements), fill_of(dtype, Kind::kInteger, -5, 100, 14, num_elements),
          fill_of(dtype, Kind::kInteger, 0, 3e9, 15, num_elements), fill_of(dtype, Kind::kSorted, 0, 1000, 16, num_elements),
          fill_of(dtype, Kind::kSorted, 0, 70000, 17, num_elements), fill_of(dtype, Kind::kUnique, 3, 30000, 18, num_elements)}) {
      const std::vector<double> device = device_fill(fill, num_elements);
      std::vector<double> host(device.size());
      input_row(fill, 0, 1, host);
      INFO(to_text(dtype) << " kind " << static_cast<int>(fill.kind) << " range " << fill.low << " " << fill.high);
      CHECK(std::equal(host.begin(), host.end(), device.begin(), equal_bits));
      CHECK(equal_bits(input_element(fill, 777), device[777]));
    }
  }
}

TEST_CASE("normal inputs have mean 0, variance 1, kurtosis near 3 and no correlation between neighbours or seeds") {
  const std::int64_t n = 200000;
  std::vector<double> x(static_cast<size_t>(n)), other(static_cast<size_t>(n));
  for (const std::uint64_t seed : {0u, 1u, 77u}) {
    input_row(fill_of(DType::kF32, Kind::kNormal, 0, 0, seed, n), 0, 1, x);
    input_row(fill_of(DType::kF32, Kind::kNormal, 0, 0, seed + 1, n), 0, 1, other);
    double mean = 0, square = 0, fourth = 0, lag = 0, row_lag = 0, cross = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      mean += x[i];
      square += x[i] * x[i];
      fourth += x[i] * x[i] * x[i] * x[i];
      if (i > 0) lag += x[i] * x[i - 1];
      if (i >= 4096) row_lag += x[i] * x[i - 4096];
      cross += x[i] * other[i];
    }
    const double count = static_cast<double>(n), margin = 5 / std::sqrt(count);  // five standard errors
    CHECK(std::abs(mean / count) < margin);
    CHECK(std::abs(square / count - 1) < 1.5 * margin);
    CHECK(fourth / count == Approx(3 - 1.2 / 8).margin(0.08));  // Irwin-Hall of 8: 3 - 6/5/8
    CHECK(std::abs(lag / count) < margin);
    CHECK(std::abs(row_lag / count) < margin);
    CHECK(std::abs(cross / count) < margin);
  }
}

TEST_CASE("uniform and integer inputs fill their range evenly") {
  std::vector<double> x(100000);
  input_row(fill_of(DType::kF64, Kind::kUniform, 2, 6, 5, 0), 0, 1, x);
  double mean = 0;
  for (const double value : x) mean += value / 100000;
  CHECK(mean == Approx(4).margin(0.02));
  CHECK(*std::min_element(x.begin(), x.end()) >= 2);
  CHECK(*std::max_element(x.begin(), x.end()) < 6);
  std::vector<int> seen(10);
  input_row(fill_of(DType::kI32, Kind::kInteger, -4, 6, 6, 0), 0, 1, x);
  for (const double value : x) ++seen.at(static_cast<size_t>(value + 4));
  for (const int count : seen) CHECK(count == Approx(10000).margin(500));
}

TEST_CASE("unique inputs are distinct, sorted ones ascend from the first to the last value of their range") {
  for (const std::int64_t span : {1, 2, 3, 100, 1000, 4097}) {
    std::vector<double> x(static_cast<size_t>(span));
    input_row(fill_of(DType::kI64, Kind::kUnique, 10, static_cast<double>(10 + span), 9, span), 0, 1, x);
    CHECK(std::set<double>(x.begin(), x.end()).size() == x.size());
    CHECK(*std::min_element(x.begin(), x.end()) == 10);
    CHECK(*std::max_element(x.begin(), x.end()) == static_cast<double>(9 + span));
    if (span >= 100) CHECK_FALSE(std::is_sorted(x.begin(), x.end()));
    for (const std::int64_t n : {2, 9, 500}) {
      std::vector<double> sorted(static_cast<size_t>(n));
      input_row(fill_of(DType::kI32, Kind::kSorted, 0, static_cast<double>(span), 9, n), 0, 1, sorted);
      CHECK(std::is_sorted(sorted.begin(), sorted.end()));
      CHECK(sorted.front() == 0);
      CHECK(sorted.back() == static_cast<double>(span - 1));
    }
  }
}

TEST_CASE("an index tensor gets the extent of the axis it indexes; inside an expression it must state its range") {
  Program program;
  program.tensors = {build::tensor("x", DType::kF32, {"M", "K"}), build::tensor("i", DType::kI32, {"N"}),
                     build::tensor("y", DType::kF32, {"N", "K"}, TensorRole::kOut)};
  program.indices = {build::index("n", "N"), build::index("k", "K")};
  const ExprRef position = build::read_at("i", {"n"}, DType::kI64);
  program.statements = {build::statement("y", true, {"n", "k"}, build::read("x", {position, make_index("k")}))};
  const Problem problem = build::problem({{"M", 9}, {"N", 50}, {"K", 3}});
  auto fills = input_fills(program, problem, 4);
  CHECK(fills.at(1).kind == Kind::kInteger);
  CHECK(fills.at(1).low == 0);
  CHECK(fills.at(1).high == 9);
  CHECK(reference_samples(program, problem, fills, {}, 1000, 1, 1).has_value());

  const ExprRef shifted = build::call(Function::kAdd, {position, build::number(1, DType::kI64)}, DType::kI64);
  program.statements[0].value = build::read("x", {shifted, make_index("k")});
  const Status refused = check_input_fills(program, problem);
  REQUIRE_FALSE(refused.has_value());
  CHECK_THAT(refused.error().message, contains_text("tensor i") && contains_text("range"));

  program.tensors[1].properties.range_low = 0;
  program.tensors[1].properties.range_high = 8;  // 8 + 1 is outside
  fills = input_fills(program, problem, 4);
  const auto outside = reference_samples(program, problem, fills, {}, 1000, 1, 1);
  REQUIRE_FALSE(outside.has_value());
  CHECK_THAT(outside.error().message, contains_text("x: subscript 9 of axis 0 is outside [0, 9)"));
}
