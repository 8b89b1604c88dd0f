// Pointwise arithmetic with error bounds; bounded.h states the rules.
// Device approximations are allowed these errors beyond the rounding of the operands, in units of u (2u is one ulp):
//   exp (4 + 3|x|) relative, as ex2.approx of a rounded x·log2(e) has;  log 8·max(1, |v|) absolute;  sin, cos 8 absolute;
//   tanh, erf, sqrt, rsqrt, 1/x 8 relative;  sigmoid, silu exp's and 4 more;  gelu 16|x| absolute, since 1 + erf cancels.
// Of a quotient also |numerator| times the smallest normal number: 1 / divisor is flushed to 0 where it would be smaller (div.approx.ftz).
// SPDX-License-Identifier: Apache-2.0
#include "generator/spec/evaluator/bounded.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cstddef>

namespace kw::generator {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kExactIntegerLimit = 9007199254740992.0;  // 2^53

/// v ± e after rounding by `relative` units of u and an absolute error of `absolute` units of u.
Bounded rounded(double v, double e, double relative, double absolute, const Bounded& a, const Rounding& r) {
  if (!std::isfinite(v) || !(e < kInf)) return settle(v, e, a, {}, r);
  e += r.unit * (relative * (std::abs(v) + e) + absolute);
  if (relative > 1) e += r.smallest_normal;
  return settle(v, e, a, {}, r);
}

/// A quotient whose divisor's inverse may be flushed to 0.
Bounded with_flush(const Bounded& quotient, double numerator, const Rounding& r) {
  return {quotient.value, quotient.bound + std::min(std::abs(numerator) * r.smallest_normal, std::abs(quotient.value))};
}

/// Bound of a monotone function: the larger distance to f at the ends of the interval.
template <typename F>
double monotone_bound(F f, double v, const Bounded& x) {
  if (x.bound == 0 || std::isnan(v)) return 0;
  return std::max(std::abs(f(x.value + x.bound) - v), std::abs(v - f(x.value - x.bound)));
}

/// Units of u that exp(x) may be off, relatively. Beyond |x| = 1000 the result is 0 or inf in every type.
double exp_units(double x) { return 4 + 3 * std::min(std::abs(x), 1000.0); }

double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
double gelu(double x) { return x == -kInf ? 0 : 0.5 * x * std::erfc(-x * M_SQRT1_2); }
double gelu_tanh(double x) {
  if (x == -kInf) return 0;
  const double inner = 0.7978845608028654 * (x + 0.044715 * x * x * x);  // sqrt(2/pi)
  return x * sigmoid(2 * inner);
}
double silu(double x) { return x == -kInf ? 0 : x * sigmoid(x); }

Bounded apply_exp(const Bounded& x, const Rounding& r) {
  const auto f = [](double t) { return std::exp(t); };
  const double v = f(x.value);
  return rounded(v, monotone_bound(f, v, x), exp_units(x.value), 0, x, r);
}

Bounded apply_log(const Bounded& x, const Rounding& r) {
  if (x.value + x.bound < 0) return {kNaN, 0};
  if (x.value < 0 || (x.bound > 0 && x.value <= x.bound)) return not_judged();
  const auto f = [](double t) { return std::log(t); };
  const double v = f(x.value);
  return rounded(v, monotone_bound(f, v, x), 0, 8 * std::max(1.0, std::abs(v)), x, r);
}

Bounded apply_sqrt(const Bounded& x, const Rounding& r) {
  if (x.value + x.bound < 0) return {kNaN, 0};
  if (x.value < x.bound || x.value < 0) return not_judged();  // the kernel may see a negative number
  const auto f = [](double t) { return std::sqrt(std::max(t, 0.0)); };
  const double v = std::sqrt(x.value);
  return rounded(v, monotone_bound(f, v, x), 8, 0, x, r);
}

Bounded apply_rsqrt(const Bounded& x, const Rounding& r) {
  if (x.value + x.bound < 0) return {kNaN, 0};
  if (x.value < 0 || (x.bound > 0 && x.value <= x.bound)) return not_judged();
  const auto f = [](double t) { return 1 / std::sqrt(t); };
  const double v = f(x.value);
  return rounded(v, monotone_bound(f, v, x), 8, 0, x, r);
}

Bounded apply_sigmoid(const Bounded& x, const Rounding& r) {
  const double v = sigmoid(x.value);
  return rounded(v, monotone_bound(sigmoid, v, x), exp_units(x.value) + 4, 0, x, r);
}

/// Functions with a known largest slope: gelu 1.13, silu 1.10, sin and cos 1.
Bounded apply_smooth(double v, double slope, double relative, double absolute, const Bounded& x, const Rounding& r) {
  return rounded(v, slope * x.bound, relative, absolute, x, r);
}

Bounded apply_unary(Function function, const Bounded& x, const Rounding& r) {
  if (std::isnan(x.value)) return {kNaN, 0};
  const double v = x.value;
  switch (function) {
    case Function::kNeg:
      return {-v, x.bound};
    case Function::kAbs:
      return {std::abs(v), x.bound};
    case Function::kRelu: {
      const double hi = std::max(v + x.bound, 0.0);
      const double lo = std::max(v - x.bound, 0.0);
      const double top = std::max(v, 0.0);
      return {top, x.bound == 0 ? 0 : std::max(hi - top, top - lo)};
    }
    case Function::kExp:
      return apply_exp(x, r);
    case Function::kLog:
      return apply_log(x, r);
    case Function::kSqrt:
      return apply_sqrt(x, r);
    case Function::kRsqrt:
      return apply_rsqrt(x, r);
    case Function::kSigmoid:
      return apply_sigmoid(x, r);
    case Function::kTanh: {
      const auto f = [](double t) { return std::tanh(t); };
      return rounded(f(v), monotone_bound(f, f(v), x), 8, 0, x, r);
    }
    case Function::kErf: {
      const auto f = [](double t) { return std::erf(t); };
      return rounded(f(v), monotone_bound(f, f(v), x), 8, 0, x, r);
    }
    case Function::kGelu:
      return apply_smooth(gelu(v), 1.13, 4, 16 * std::min(std::abs(v), 1e6), x, r);
    case Function::kGeluTanh:
      return apply_smooth(gelu_tanh(v), 1.13, 4, 16 * std::min(std::abs(v), 1e6), x, r);
    case Function::kSilu: {
      const Bounded result = apply_smooth(silu(v), 1.10, exp_units(v) + 6, 0, x, r);
      return is_judged(result) ? with_flush(result, v, r) : result;
    }
    case Function::kSin:
      return apply_smooth(std::sin(v), 1, 4, 8, x, r);
    case Function::kCos:
      return apply_smooth(std::cos(v), 1, 4, 8, x, r);
    case Function::kFloor: {
      const auto f = [](double t) { return std::floor(t); };
      return {f(v), monotone_bound(f, f(v), x)};
    }
    default:
      return not_judged();
  }
}

Bounded truth(bool is_true, bool is_certain) { return {is_true ? 1.0 : 0.0, is_certain ? 0.0 : 1.0}; }

Bounded compare(Function function, const Bounded& a, const Bounded& b) {
  if (std::isnan(a.value) || std::isnan(b.value)) return truth(function == Function::kNe, true);
  const bool is_certain = (a.bound == 0 && b.bound == 0) || std::abs(a.value - b.value) > a.bound + b.bound;
  switch (function) {
    case Function::kLt:
      return truth(a.value < b.value, is_certain);
    case Function::kLe:
      return truth(a.value <= b.value, is_certain);
    case Function::kGt:
      return truth(a.value > b.value, is_certain);
    case Function::kGe:
      return truth(a.value >= b.value, is_certain);
    case Function::kEq:
      return truth(a.value == b.value, is_certain);
    default:
      return truth(a.value != b.value, is_certain);
  }
}

/// Three-valued logic: a certain false decides "and", a certain true decides "or".
Bounded logic(Function function, const Bounded& a, const Bounded& b) {
  const double decisive = function == Function::kAnd ? 0.0 : 1.0;
  const auto is_true = [](const Bounded& x) { return x.value != 0; };
  const auto decides = [&](const Bounded& x) { return x.bound == 0 && (is_true(x) ? 1.0 : 0.0) == decisive; };
  if (decides(a) || decides(b)) return {decisive, 0};
  const bool value = function == Function::kAnd ? is_true(a) && is_true(b) : is_true(a) || is_true(b);
  return truth(value, a.bound == 0 && b.bound == 0);
}

Bounded extreme(bool is_max, const Bounded& a, const Bounded& b) {
  if (std::isnan(a.value) || std::isnan(b.value)) return {kNaN, 0};
  const auto pick = [is_max](double x, double y) { return is_max ? std::max(x, y) : std::min(x, y); };
  const double v = pick(a.value, b.value);
  if (std::isinf(v)) return is_judged(a) && is_judged(b) ? Bounded{v, 0} : not_judged();
  const double hi = pick(a.value + a.bound, b.value + b.bound);
  const double lo = pick(a.value - a.bound, b.value - b.bound);
  return {v, std::max(hi - v, v - lo)};
}

Bounded divide(const Bounded& a, const Bounded& b, const Rounding& r) {
  if (std::isnan(a.value) || std::isnan(b.value)) return {kNaN, 0};
  if (!is_judged(a) || !is_judged(b)) return not_judged();
  if (b.bound > 0 && std::abs(b.value) <= b.bound) return not_judged();
  if (b.value == 0 && a.bound > 0 && std::abs(a.value) <= a.bound) return not_judged();
  const double v = a.value / b.value;
  if (!std::isfinite(v) || std::isinf(b.value)) return {v, 0};
  const double e = (a.bound + std::abs(v) * b.bound) / (std::abs(b.value) - b.bound);
  const Bounded result = rounded(v, e, 4, 0, a, r);
  return is_judged(result) ? with_flush(result, a.value, r) : result;
}

Bounded floor_divide(const Bounded& a, const Bounded& b, const Rounding& r) {
  if (b.value == 0 && b.bound == 0 && r.unit == 0) return {kNaN, 0};
  const Bounded q = divide(a, b, r);
  const Bounded floored = apply_unary(Function::kFloor, q, r);
  // Integers divide exactly; the quotient's rounding in double must not cross an integer.
  if (r.unit == 0 && std::abs(q.value) < kExactIntegerLimit) {
    double v = std::floor(a.value / b.value);
    const double remainder = a.value - v * b.value;
    if (remainder != 0 && ((remainder < 0) != (b.value < 0))) v -= 1;
    if (std::abs(remainder) >= std::abs(b.value)) v += 1;
    return {v, 0};
  }
  return floored;
}

Bounded modulo(const Bounded& a, const Bounded& b, const Rounding& r) {
  const Bounded q = floor_divide(a, b, r);
  if (std::isnan(q.value)) return {kNaN, 0};
  if (!is_judged(q)) return not_judged();
  const double v = a.value - q.value * b.value;
  if (q.bound > 0) return rounded(v, std::abs(b.value) + b.bound + a.bound, 2, 0, a, r);  // another period may be taken
  return rounded(v, a.bound + std::abs(q.value) * b.bound, 4, 2 * std::abs(a.value), a, r);
}

Bounded power(const Bounded& a, const Bounded& b, const Rounding& r) {
  const double v = std::pow(a.value, b.value);
  if (std::isnan(a.value) || std::isnan(b.value)) return {v, 0};  // pow(NaN, 0) and pow(1, NaN) are 1, here and on the device
  if (!is_judged(a) || !is_judged(b)) return not_judged();
  double e = 0;
  if (a.bound > 0 || b.bound > 0) {
    const bool is_integer_power = b.bound == 0 && b.value == std::floor(b.value);
    if (a.value - a.bound > 0) {
      for (const double x : {a.value - a.bound, a.value + a.bound}) {
        for (const double y : {b.value - b.bound, b.value + b.bound}) e = std::max(e, std::abs(std::pow(x, y) - v));
      }
    } else if (is_integer_power && (b.value >= 1 || std::abs(a.value) > a.bound)) {
      const double far = b.value >= 1 ? std::abs(a.value) + a.bound : std::abs(a.value) - a.bound;
      e = std::abs(b.value) * std::pow(far, b.value - 1) * a.bound;
    } else {
      return not_judged();
    }
  }
  if (!std::isfinite(v)) return {v, 0};
  const double log_units = v == 0 ? 0 : 8 * std::min(std::abs(std::log(std::abs(v))), 1000.0);
  return rounded(v, e, 16 + log_units, 0, a, r);
}

}  // namespace

Rounding rounding_of(DType node, DType accumulate) {
  if (!is_float(node)) return {};
  const bool is_double = (node == DType::kF64) && (accumulate == DType::kF64 || !is_float(accumulate));
  if (is_double || (accumulate == DType::kF64 && node != DType::kF32)) return {unit_roundoff(DType::kF64), DBL_MIN, DBL_MAX};
  if (accumulate == DType::kF16 || accumulate == DType::kBF16) {
    return {unit_roundoff(accumulate), accumulate == DType::kF16 ? 0x1p-14 : double{FLT_MIN},
            accumulate == DType::kF16 ? 65504.0 : double{FLT_MAX}};
  }
  return {unit_roundoff(DType::kF32), FLT_MIN, FLT_MAX};
}

Bounded settle(double v, double e, const Bounded& a, const Bounded& b, const Rounding& r) {
  if (std::abs(v) + e <= r.largest && e < kInf) return {v, e};
  if (std::isnan(a.value) || std::isnan(b.value)) return {kNaN, 0};
  if (!is_judged(a) || !is_judged(b)) return not_judged();
  if (!std::isfinite(v)) return {v, 0};
  if (std::abs(v) - e > r.largest * (1 + r.unit)) return {std::copysign(kInf, v), 0};
  return not_judged();
}

Bounded add(const Bounded& a, const Bounded& b, const Rounding& r) {
  const double v = a.value + b.value;
  double e = a.bound + b.bound;
  if (r.unit == 0) return settle(v, std::abs(v) > kExactIntegerLimit ? e + std::abs(v) * DBL_EPSILON : e, a, b, r);
  e += r.unit * (std::abs(v) + e);
  return settle(v, e, a, b, r);
}

Bounded multiply(const Bounded& a, const Bounded& b, const Rounding& r) {
  const double v = a.value * b.value;
  double e = std::abs(a.value) * b.bound + std::abs(b.value) * a.bound + a.bound * b.bound;
  if (!std::isfinite(v)) {
    const auto may_be_zero = [](const Bounded& x) { return x.bound > 0 && std::abs(x.value) <= x.bound; };
    if ((may_be_zero(a) || may_be_zero(b)) && !std::isnan(a.value) && !std::isnan(b.value)) return not_judged();
    return settle(v, 0, a, b, r);
  }
  if (r.unit == 0) return settle(v, std::abs(v) > kExactIntegerLimit ? e + std::abs(v) * DBL_EPSILON : e, a, b, r);
  e += r.unit * (std::abs(v) + e);
  return settle(v, e, a, b, r);
}

Bounded either(const Bounded& taken, const Bounded& other) {
  if (std::isnan(taken.value) && std::isnan(other.value)) return {kNaN, 0};
  if (taken.value == other.value) return {taken.value, std::max(taken.bound, other.bound)};
  if (!std::isfinite(taken.value) || !std::isfinite(other.value)) return not_judged();
  return {taken.value, std::max(taken.bound, std::abs(taken.value - other.value) + other.bound)};
}

Bounded apply(Function function, std::span<const Bounded> x, const Rounding& r) {
  switch (function) {
    case Function::kAdd:
      return add(x[0], x[1], r);
    case Function::kSub:
      return add(x[0], {-x[1].value, x[1].bound}, r);
    case Function::kMul:
      return multiply(x[0], x[1], r);
    case Function::kDiv:
      return divide(x[0], x[1], r);
    case Function::kFloorDiv:
      return floor_divide(x[0], x[1], r);
    case Function::kMod:
      return modulo(x[0], x[1], r);
    case Function::kPow:
      return power(x[0], x[1], r);
    case Function::kLt:
    case Function::kLe:
    case Function::kGt:
    case Function::kGe:
    case Function::kEq:
    case Function::kNe:
      return compare(function, x[0], x[1]);
    case Function::kAnd:
    case Function::kOr:
      return logic(function, x[0], x[1]);
    case Function::kNot:
      return {x[0].value == 0 ? 1.0 : 0.0, x[0].bound > 0 ? 1.0 : 0.0};
    case Function::kMin:
      return extreme(false, x[0], x[1]);
    case Function::kMax:
      return extreme(true, x[0], x[1]);
    case Function::kIsFinite:
      return truth(std::isfinite(x[0].value), is_judged(x[0]));
    case Function::kWhere:
      return not_judged();
    default:
      return apply_unary(function, x[0], r);
  }
}

double round_to(DType dtype, double value) {
  std::array<std::byte, 8> bytes{};
  store_element(dtype, value, bytes.data());
  return load_element(dtype, bytes.data());
}

Bounded cast_to(DType dtype, const Bounded& x) {
  if (dtype == DType::kBool) return truth(x.value != 0, x.bound == 0 || std::abs(x.value) > x.bound);
  if (dtype == DType::kTF32)
    return settle(x.value, x.bound + 0x1p-11 * (std::abs(x.value) + x.bound), x, {}, {});  // rna or rn: either may be used
  if (x.bound == 0 && !(is_integer(dtype) && std::isnan(x.value))) return {round_to(dtype, x.value), 0};
  if (!is_judged(x) || std::isnan(x.value)) return is_float(dtype) && std::isnan(x.value) ? Bounded{kNaN, 0} : not_judged();
  const double v = round_to(dtype, x.value), hi = round_to(dtype, x.value + x.bound), lo = round_to(dtype, x.value - x.bound);
  if (is_float(dtype) && (!std::isfinite(hi) || !std::isfinite(lo))) return hi == lo ? Bounded{hi, 0} : not_judged();
  return {v, std::max(hi - v, v - lo)};
}

Bounded round_to_output(DType dtype, const Bounded& x) {
  if (!is_float(dtype)) return cast_to(dtype, x);
  if (!std::isfinite(x.value)) return {round_to(dtype, x.value), 0};
  if (!is_judged(x)) return x;
  const double hi = round_to(dtype, x.value + x.bound);
  const double lo = round_to(dtype, x.value - x.bound);
  if (!std::isfinite(hi) || !std::isfinite(lo)) {
    const bool is_same = hi == lo || (std::isnan(hi) && std::isnan(lo));
    return is_same ? Bounded{hi, 0} : Bounded{x.value, kInf};
  }
  const double rounding = unit_roundoff(dtype) * std::abs(x.value) + smallest_subnormal(dtype);
  // A type that saturates (e4m3) is far from the value beyond its range: then the saturated number is the reference.
  if (hi == lo && std::abs(x.value - hi) > x.bound + 2 * rounding) return {hi, 0};
  return {x.value, x.bound + rounding};
}

}  // namespace kw::generator
