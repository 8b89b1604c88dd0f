// The reference of the handbook's example: bounds hold for kernels emulated in f32 in several orders of summation, errors are found.
// Tolerances are the evaluator's own bounds: 8·√K·2^-24·‖a‖‖b‖ for the sum, 2^-11·|ref| + 2^-24 for the f16 store.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>

#include "generator/spec/evaluator.h"
#include "generator/spec/evaluator/bounded.h"
#include "tests/catch.h"
#include "tests/evaluator/program_builder.h"
#include "tuner/verify/random_input.h"
#include "tuner/verify/sampling.h"

#if defined(__SANITIZE_ADDRESS__)
#define KW_IS_SANITIZED  // g++
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KW_IS_SANITIZED  // clang++
#endif
#endif

using namespace kw;
using namespace kw::generator;
using namespace kw::tuner;

namespace {

enum class Order { kForward, kBackward, kSplit, kPairs };

/// One output element as an f32 kernel computes it: products are exact in the fused multiply-add, sums are rounded each time.
float emulate(const std::vector<double>& a, const std::vector<double>& b, float bias, Order order) {
  const size_t num_terms = a.size();
  float parts[8] = {};
  for (size_t step = 0; step < num_terms; ++step) {
    const size_t k = order == Order::kBackward ? num_terms - 1 - step : step;
    const size_t part = order == Order::kSplit ? k * 8 / num_terms : order == Order::kPairs ? k % 8 : 0;
    parts[part] = std::fma(static_cast<float>(a[k]), static_cast<float>(b[k]), parts[part]);
  }
  float sum = 0;
  for (const float part : parts) sum += part;
  const float x = sum + bias;
  return x > 0 ? x : 0;
}

struct Case {
  Program program;
  Problem problem;
  std::vector<InputFill> fills;
  std::vector<OutputSamples> samples;
};

Case make_case(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k, bool uses_tf32 = false) {
  Case c{build::matmul_bias_relu(dtype), build::problem({{"M", m}, {"N", n}, {"K", k}}), {}, {}};
  c.program.uses_tf32 = uses_tf32;
  c.fills = input_fills(c.program, c.problem, 17);
  auto samples = reference_samples(c.program, c.problem, c.fills, {}, 300, 5, 1);
  REQUIRE(samples.has_value());
  c.samples = *samples;
  return c;
}

std::vector<double> row_of(const InputFill& fill, std::int64_t row, std::int64_t num_terms) {
  std::vector<double> values(static_cast<size_t>(num_terms));
  input_row(fill, row * num_terms, 1, values);
  return values;
}

}  // namespace

TEST_CASE("an f32 kernel stays within the bound in every order of summation") {
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
    for (const std::int64_t k : {1, 7, 128, 1000, 4096}) {
      const Case c = make_case(dtype, 37, 53, k);
      const OutputSamples& out = c.samples.at(0);
      double worst = 0;
      for (size_t i = 0; i < out.values.size(); ++i) {
        const std::int64_t m = out.coordinates[2 * i], n = out.coordinates[2 * i + 1];
        const auto a = row_of(c.fills[0], m, k), b = row_of(c.fills[1], n, k);
        const auto bias = static_cast<float>(input_element(c.fills[2], n));
        for (const Order order : {Order::kForward, Order::kBackward, Order::kSplit, Order::kPairs}) {
          const double value = round_to(dtype, static_cast<double>(emulate(a, b, bias, order)));
          worst = std::max(worst, std::abs(value - out.values[i]) / out.bounds[i]);
        }
      }
      INFO("dtype " << to_text(dtype) << " K " << k << " worst error / bound " << worst);
      CHECK(worst <= 1);
      CHECK(worst > 1e-4);  // and the bound is not so wide that it means nothing
    }
  }
}

TEST_CASE("an error of two bounds is found, one of half a bound is not") {
  const Case c = make_case(DType::kF16, 37, 53, 1000);
  const OutputSamples& out = c.samples.at(0);
  for (size_t i = 0; i < out.values.size(); ++i) {
    const ReferenceValue reference{out.values[i], out.bounds[i]};
    CHECK_FALSE(is_within_bound(reference.value + 2 * reference.bound, reference));
    CHECK(is_within_bound(reference.value - 0.5 * reference.bound, reference));
    CHECK_FALSE(is_within_bound(std::nan(""), reference));
    CHECK_FALSE(is_within_bound(INFINITY, reference));
  }
}

TEST_CASE("one product left out is an error that most samples show") {
  const std::int64_t k = 4096;
  const Case c = make_case(DType::kF16, 37, 53, k);
  const OutputSamples& out = c.samples.at(0);
  int num_found = 0, num_positive = 0;
  for (size_t i = 0; i < out.values.size(); ++i) {
    if (out.values[i] <= 1) continue;
    ++num_positive;
    auto a = row_of(c.fills[0], out.coordinates[2 * i], k), b = row_of(c.fills[1], out.coordinates[2 * i + 1], k);
    a[4095] = 0;
    const double value = round_to(
        DType::kF16,
        static_cast<double>(emulate(a, b, static_cast<float>(input_element(c.fills[2], out.coordinates[2 * i + 1])), Order::kForward)));
    num_found += !is_within_bound(value, {out.values[i], out.bounds[i]});
  }
  CHECK(num_positive > 50);
  CHECK(num_found > num_positive / 2);
}

TEST_CASE("inputs rounded to tf32 stay within the tf32 bound and break the f32 one") {
  const std::int64_t k = 100;
  const Case wide = make_case(DType::kF32, 37, 53, k, true), narrow = make_case(DType::kF32, 37, 53, k, false);
  const auto to_tf32 = [](double x) {
    int exponent = 0;
    const double fraction = std::frexp(x, &exponent);
    return std::ldexp(std::nearbyint(std::ldexp(fraction, 11)), exponent - 11);
  };
  int num_broken = 0;
  double worst = 0;
  const OutputSamples& out = wide.samples.at(0);
  for (size_t i = 0; i < out.values.size(); ++i) {
    auto a = row_of(wide.fills[0], out.coordinates[2 * i], k), b = row_of(wide.fills[1], out.coordinates[2 * i + 1], k);
    for (double& x : a) x = to_tf32(x);
    for (double& x : b) x = to_tf32(x);
    const double value =
        static_cast<double>(emulate(a, b, static_cast<float>(input_element(wide.fills[2], out.coordinates[2 * i + 1])), Order::kForward));
    worst = std::max(worst, std::abs(value - out.values[i]) / out.bounds[i]);
    num_broken += !is_within_bound(value, {narrow.samples[0].values[i], narrow.samples[0].bounds[i]});
  }
  INFO("worst error / bound " << worst);
  CHECK(worst <= 1);
  CHECK(num_broken > 50);
}

TEST_CASE("K = 0 gives the epilogue of 0, an empty output gives no samples") {
  const Program program = build::matmul_bias_relu();
  const build::FunctionSource inputs({{"bias", [](std::span<const std::int64_t> c) { return c[0] == 0 ? -1.0 : 0.5; }}});
  const Problem problem = build::problem({{"M", 2}, {"N", 2}, {"K", 0}});
  const auto evaluator = Evaluator::create(program, problem, inputs);
  REQUIRE(evaluator.has_value());
  const std::vector<std::int64_t> coordinates = {0, 0, 1, 1};
  const auto values = evaluator->evaluate("out", coordinates);
  REQUIRE(values.has_value());
  CHECK((*values)[0].value == 0);
  CHECK((*values)[1].value == 0.5);
  const Problem empty = build::problem({{"M", 0}, {"N", 8}, {"K", 8}});
  const auto samples = reference_samples(program, empty, input_fills(program, empty, 1), {}, 100, 1, 1);
  REQUIRE(samples.has_value());
  CHECK(samples->at(0).values.empty());
}

TEST_CASE("a sum beyond f16 is inf in the reference, NaN and inf appear where the inputs have them") {
  const Program program = build::matmul_bias_relu();
  const build::FunctionSource inputs(
      {{"A", [](std::span<const std::int64_t> c) { return c[0] == 2   ? std::nan("")
                                                          : c[0] == 0 ? 200.0
                                                                      : 1.0; }},
       {"B", [](std::span<const std::int64_t>) { return 200.0; }},
       {"bias", [](std::span<const std::int64_t> c) { return c[0] == 1 ? -INFINITY : 0.0; }}});
  const auto evaluator = Evaluator::create(program, build::problem({{"M", 3}, {"N", 2}, {"K", 8}}), inputs);
  REQUIRE(evaluator.has_value());
  const std::vector<std::int64_t> coordinates = {0, 0, 1, 0, 0, 1, 2, 0, 2, 1};
  const auto values = evaluator->evaluate("out", coordinates);
  REQUIRE(values.has_value());
  CHECK((*values)[0].value == INFINITY);
  CHECK((*values)[1].value == 1600);
  CHECK((*values)[2].value == 0);  // relu(-inf)
  CHECK(std::isnan((*values)[3].value));
  CHECK(std::isnan((*values)[4].value));
}

TEST_CASE("samples of a large problem cost their own sums, not the whole output") {
  const Program program = build::matmul_bias_relu();
  const Problem problem = build::problem({{"M", 1024}, {"N", 4096}, {"K", 4096}});  // 4 million outputs: all of them would take minutes
  const auto fills = input_fills(program, problem, 3);
  const auto samples = reference_samples(program, problem, fills, {}, 4096, 9, 1);
  REQUIRE(samples.has_value());
  CHECK(samples->at(0).values.size() == 4096);
}

TEST_CASE("the number of threads does not change the reference") {
  const Program program = build::matmul_bias_relu();
  const Problem problem = build::problem({{"M", 100}, {"N", 90}, {"K", 300}});
  const auto fills = input_fills(program, problem, 3);
  const auto one = reference_samples(program, problem, fills, {}, 1000, 9, 1),
             four = reference_samples(program, problem, fills, {}, 1000, 9, 4);
  REQUIRE(one.has_value());
  REQUIRE(four.has_value());
  CHECK(one->at(0).values == four->at(0).values);
  CHECK(one->at(0).bounds == four->at(0).bounds);
}
