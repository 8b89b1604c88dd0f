// Bounds of pointwise arithmetic: every value inside the operands' intervals stays inside the result's, both sides of a discontinuity too.
// SPDX-License-Identifier: Apache-2.0
#include "generator/spec/evaluator/bounded.h"

#include <array>
#include <cmath>

#include "tests/catch.h"

using namespace kw;
using namespace kw::generator;

TEST_CASE("the function of any value inside the interval is inside the result's interval") {
  const Rounding f32 = rounding_of(DType::kF32, DType::kF32);
  for (const Function function : {Function::kAbs, Function::kExp, Function::kLog, Function::kSqrt, Function::kRsqrt, Function::kTanh,
                                  Function::kSigmoid, Function::kRelu, Function::kGelu, Function::kGeluTanh, Function::kSilu,
                                  Function::kErf, Function::kSin, Function::kCos, Function::kFloor, Function::kNeg}) {
    for (double x = -6; x <= 6; x += 0.37) {
      for (const double e : {1e-7, 1e-3, 0.4}) {
        const std::array<Bounded, 1> operand = {Bounded{x, e}};
        const Bounded result = apply(function, operand, f32);
        for (const double shift : {-1.0, -0.5, 0.3, 1.0}) {
          const std::array<Bounded, 1> moved = {Bounded{x + shift * e, 0}};
          const double value = apply(function, moved, f32).value;
          if (!is_judged(result) || std::isnan(result.value)) continue;
          INFO(to_text(function) << " at " << x << " ± " << e);
          CHECK(std::abs(value - result.value) <= result.bound * (1 + 1e-12) + 1e-15);
        }
      }
    }
  }
}

// The value was left unrounded, its bound wide enough for the rounding: a kernel without the cast passed.
TEST_CASE("a cast gives the rounded value: exactly where the operand decides it, else within the neighbours that it may round to") {
  const Bounded decided = cast_to(DType::kF16, {1.0003, 1e-6});
  CHECK(decided.value == 1);
  CHECK(decided.bound == 0);
  const double tie = 1 + 0x1p-11;  // between 1 and the next f16 number
  const Bounded undecided = cast_to(DType::kF16, {tie + 1e-8, 1e-6});
  CHECK(undecided.value == 1 + 0x1p-10);
  CHECK(undecided.bound == 0x1p-10);
  CHECK_FALSE(is_judged(cast_to(DType::kF16, {65519, 2})));  // the largest number, or inf
  CHECK(cast_to(DType::kI32, {2.5, 0.25}).value == 2);
}

TEST_CASE("an undecided comparison makes where cover both branches, a decided one does not") {
  const std::array<Bounded, 2> close = {Bounded{1, 1e-3}, Bounded{1.0005, 0}}, apart = {Bounded{1, 1e-3}, Bounded{2, 0}};
  CHECK(apply(Function::kLt, close, {}).bound == 1);
  CHECK(apply(Function::kLt, apart, {}).bound == 0);
  const Bounded both = either({10, 0.5}, {-4, 0.25});
  CHECK(both.value == 10);
  CHECK(both.bound >= 14.25);
  CHECK_FALSE(is_judged(either({10, 0.5}, {INFINITY, 0})));
}

TEST_CASE("overflow of the accumulate type is inf when certain and not judged when near") {
  const Rounding f32 = rounding_of(DType::kF32, DType::kF32);
  CHECK(multiply({1e30, 0}, {1e30, 0}, f32).value == INFINITY);
  CHECK_FALSE(is_judged(add({3.4028234e38, 1e33}, {0, 0}, f32)));
  CHECK(round_to_output(DType::kF16, {70000, 1}).value == INFINITY);
  CHECK_FALSE(is_judged(round_to_output(DType::kF16, {65519, 10})));
  const Bounded stored = round_to_output(DType::kF16, {1.5, 1e-4});
  CHECK(stored.bound == Approx(1e-4 + 1.5 * 0x1p-11).epsilon(1e-3));
}

TEST_CASE("integers floor toward minus infinity and a division by zero is NaN") {
  const auto floor_div = [](double a, double b) {
    return apply(Function::kFloorDiv, std::array<Bounded, 2>{Bounded{a, 0}, Bounded{b, 0}}, {}).value;
  };
  const auto mod = [](double a, double b) { return apply(Function::kMod, std::array<Bounded, 2>{Bounded{a, 0}, Bounded{b, 0}}, {}).value; };
  CHECK(floor_div(7, 2) == 3);
  CHECK(floor_div(-7, 2) == -4);
  CHECK(mod(-7, 2) == 1);
  CHECK(mod(7, -2) == -1);
  CHECK(floor_div(9007199254740991.0, 3) == 3002399751580330.0);
  CHECK(std::isnan(floor_div(1, 0)));
}

// An f32 kernel's 1 / (1 + e^88) is flushed: silu(-88) came out as 0, and whole MLPs were called wrong for it.
TEST_CASE("a quotient may be 0 where the divisor's inverse is flushed, and nowhere else") {
  const Rounding f32 = rounding_of(DType::kF32, DType::kF32);
  const auto silu = [&](double x) { return apply(Function::kSilu, std::array<Bounded, 1>{Bounded{x, 0}}, f32); };
  CHECK(std::abs(silu(-88).value) <= silu(-88).bound);
  CHECK(std::abs(silu(-80).value) > 100 * silu(-80).bound);
  const auto quotient = [&](double a, double b) {
    return apply(Function::kDiv, std::array<Bounded, 2>{Bounded{a, 0}, Bounded{b, 0}}, f32);
  };
  CHECK(std::abs(quotient(-88, 0x1p127).value) <= quotient(-88, 0x1p127).bound);
  CHECK(std::abs(quotient(-88, 0x1p100).value) > 100 * quotient(-88, 0x1p100).bound);
}
