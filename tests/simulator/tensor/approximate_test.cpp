// Approximations: inside PTX's bounds, and the special values of its tables.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/tensor/approximate.h"

#include <bit>
#include <cmath>

#include "simulator/tensor/tile_generator.h"
#include "tests/catch.h"

namespace kw::simulate {
namespace {

constexpr float kInfinity = INFINITY;

double relative_error(double got, double exact) { return std::fabs(got - exact) / std::fabs(exact); }

}  // namespace

TEST_CASE("approximations stay within the bounds that PTX documents") {
  for (std::uint64_t trial = 0; trial < 50000; ++trial) {
    const auto x = std::bit_cast<float>(
        static_cast<std::uint32_t>(tile_element(ElementType::kF32, TileStyle::kFewExponents, mix_bits(trial), 1, 0, 0)));
    if (x == 0) continue;
    const float magnitude = std::fabs(x);
    REQUIRE(relative_error(rcp_approx(x, false), 1.0 / x) <= 0x1p-23);
    REQUIRE(relative_error(rsqrt_approx(magnitude, false), 1 / std::sqrt(static_cast<double>(magnitude))) <= 0x1p-22);
    REQUIRE(relative_error(sqrt_approx(magnitude, false), std::sqrt(static_cast<double>(magnitude))) <= 0x1p-22);
    if (magnitude < 100) REQUIRE(relative_error(ex2_approx(x, false), std::exp2(static_cast<double>(x))) <= 0x1p-22);
    REQUIRE(std::fabs(lg2_approx(magnitude, false) - std::log2(static_cast<double>(magnitude))) <= 0x1p-20);
    REQUIRE(relative_error(tanh_approx(x), std::tanh(static_cast<double>(x))) <= 0x1p-11);
    REQUIRE(std::fabs(sin_approx(x, false) - std::sin(static_cast<double>(x))) <= 0x1p-20);
    REQUIRE(std::fabs(cos_approx(x, false) - std::cos(static_cast<double>(x))) <= 0x1p-20);
    REQUIRE(relative_error(div_approx(3.0f, x, false), 3.0 / x) <= 0x1p-22);
  }
}

TEST_CASE("special values follow the tables") {
  CHECK(ex2_approx(-kInfinity, false) == 0);
  CHECK(ex2_approx(kInfinity, false) == kInfinity);
  CHECK(ex2_approx(-140, false) == 0x1p-140f);
  CHECK(ex2_approx(-140, true) == 0);
  CHECK(ex2_approx(-0x1p-140f, true) == 1);
  CHECK(lg2_approx(0, false) == -kInfinity);
  CHECK(lg2_approx(0x1p-140f, true) == -kInfinity);
  CHECK(lg2_approx(0x1p-140f, false) == -140);
  CHECK(std::isnan(lg2_approx(-1, false)));
  CHECK(rcp_approx(-0.0f, false) == -kInfinity);
  CHECK(rcp_approx(0x1p-130f, true) == kInfinity);
  CHECK(rcp_approx(0x1p127f, true) == 0);
  CHECK(rcp_approx(0x1p127f, false) == 0x1p-127f);
  CHECK(rsqrt_approx(-0.0f, false) == -kInfinity);
  CHECK(std::isnan(rsqrt_approx(-1, false)));
  CHECK(rsqrt_approx(kInfinity, false) == 0);
  CHECK(std::signbit(sqrt_approx(-0.0f, false)));
  CHECK(std::isnan(sin_approx(kInfinity, false)));
  CHECK(std::signbit(sin_approx(-0.0f, true)));
  CHECK(tanh_approx(kInfinity) == 1);
  CHECK(div_approx(8, 0x1.8p126f, false) == 0);
  CHECK(std::isnan(div_approx(kInfinity, 0x1.8p126f, false)));
  CHECK(div_full(0x1p127f, 0x1p127f, false) == 1);
  CHECK(div_full(-1, 0, false) == -kInfinity);
  CHECK(std::bit_cast<std::uint32_t>(rcp_approx(NAN, false)) == 0x7fffffff);
  CHECK(ex2_approx_16bit(FloatFormat::kF16, 0x4000) == 0x4400);
  CHECK(tanh_approx_16bit(FloatFormat::kBF16, 0x7f80) == 0x3f80);
}

}  // namespace kw::simulate
