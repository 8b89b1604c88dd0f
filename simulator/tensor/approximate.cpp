// The host's double functions, rounded once. Sources of the special cases: PTX ISA, tables of ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh,
// div. SPDX-License-Identifier: Apache-2.0
#include "simulator/tensor/approximate.h"

#include <bit>
#include <cmath>
#include <limits>

namespace kw::simulate {
namespace {

float flushed(float value, bool is_ftz) { return is_ftz && std::fabs(value) < 0x1p-126f ? std::copysign(0.0f, value) : value; }

float rounded(double value, bool is_ftz) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(encode(FloatFormat::kF32, value, {.flushes_subnormals = is_ftz})));
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double reciprocal(double x) { return x == 0 ? std::copysign(kInfinity, x) : 1 / x; }

}  // namespace

float ex2_approx(float x, bool is_ftz) { return rounded(std::exp2(static_cast<double>(flushed(x, is_ftz))), is_ftz); }

float lg2_approx(float x, bool is_ftz) {
  const double value = flushed(x, is_ftz);
  if (value == 0) return rounded(-kInfinity, is_ftz);
  return rounded(value < 0 ? kNan : std::log2(value), is_ftz);
}

float rcp_approx(float x, bool is_ftz) { return rounded(reciprocal(flushed(x, is_ftz)), is_ftz); }

float rsqrt_approx(float x, bool is_ftz) {
  const double value = flushed(x, is_ftz);
  if (value == 0) return rounded(std::copysign(kInfinity, value), is_ftz);
  return rounded(value < 0 ? kNan : 1 / std::sqrt(value), is_ftz);
}

float sqrt_approx(float x, bool is_ftz) {
  const double value = flushed(x, is_ftz);
  return rounded(value < 0 ? kNan : std::sqrt(value), is_ftz);
}

float sin_approx(float x, bool is_ftz) {
  const double value = flushed(x, is_ftz);
  return rounded(std::isinf(value) ? kNan : std::sin(value), is_ftz);
}

float cos_approx(float x, bool is_ftz) {
  const double value = flushed(x, is_ftz);
  return rounded(std::isinf(value) ? kNan : std::cos(value), is_ftz);
}

float tanh_approx(float x) { return rounded(std::tanh(static_cast<double>(x)), false); }

float div_approx(float x, float y, bool is_ftz) {
  const float magnitude = std::fabs(y);
  const float dividend = flushed(x, is_ftz);
  if (magnitude > 0x1p126f && magnitude < std::numeric_limits<float>::infinity()) {  // PTX ISA, div.approx: large divisors
    if (std::isnan(x) || std::isinf(x)) return rounded(kNan, is_ftz);
    return std::copysign(0.0f, std::signbit(x) == std::signbit(y) ? 1.0f : -1.0f);
  }
  return rounded(static_cast<double>(dividend) * rcp_approx(y, is_ftz), is_ftz);
}

float div_full(float x, float y, bool is_ftz) {
  const double dividend = flushed(x, is_ftz), divisor = flushed(y, is_ftz);
  if (divisor != 0) return rounded(dividend / divisor, is_ftz);
  return rounded(dividend == 0 || std::isnan(dividend) ? kNan : std::copysign(kInfinity, dividend) * std::copysign(1.0, divisor), is_ftz);
}

std::uint16_t ex2_approx_16bit(FloatFormat format, std::uint16_t x) {
  const bool is_ftz = format == FloatFormat::kBF16;  // PTX has ex2.approx.ftz.bf16 only
  return static_cast<std::uint16_t>(encode(format, std::exp2(decode(format, x)), {.flushes_subnormals = is_ftz}));
}

std::uint16_t tanh_approx_16bit(FloatFormat format, std::uint16_t x) {
  return static_cast<std::uint16_t>(encode(format, std::tanh(decode(format, x))));
}

}  // namespace kw::simulate
