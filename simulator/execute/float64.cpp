// f64 arithmetic. Place: simulator/execute/decoder.h. Directed rounding uses the host's rounding mode for one operation at a time.
// SPDX-License-Identifier: Apache-2.0
#include <cfenv>

#include "simulator/execute/decoder.h"
#include "simulator/execute/float_formula.h"
#include "simulator/execute/lane_functions.h"

namespace kw::simulate {
namespace {

/// Restores round-to-nearest at the end of a scope.
class RoundingScope {
 public:
  explicit RoundingScope(Rounding rounding) {
    const int mode = rounding == Rounding::kTowardZero ? FE_TOWARDZERO
                     : rounding == Rounding::kDown     ? FE_DOWNWARD
                     : rounding == Rounding::kUp       ? FE_UPWARD
                                                       : FE_TONEAREST;
    std::fesetround(mode);
  }
  ~RoundingScope() { std::fesetround(FE_TONEAREST); }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;
};

double formula(Op op, double x, double y, double z) {
  // volatile keeps the compiler from folding or moving the operation over the change of the rounding mode.
  volatile double a = x;
  volatile double b = y;
  volatile double c = z;
  volatile double result = 0.0;
  switch (op) {
    case Op::kAdd:
      result = a + b;
      break;
    case Op::kSub:
      result = a - b;
      break;
    case Op::kMul:
      result = a * b;
      break;
    case Op::kFma:
      result = std::fma(a, b, c);
      break;
    case Op::kDiv:
      result = a / b;
      break;
    case Op::kRcp:
      result = 1.0 / a;
      break;
    case Op::kSqrt:
      result = std::sqrt(a);
      break;
    case Op::kMin:
      return minimum(x, y, false);
    case Op::kMax:
      return maximum(x, y, false);
    case Op::kAbs:
      return std::fabs(x);
    case Op::kNeg:
      return -x;
    case Op::kCopysign:
      return std::copysign(y, x);
    default:
      break;
  }
  return canonical(static_cast<double>(result));
}

/// PTX ISA, rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64: gross approximations of 20 bits by definition, here the right value with the low
/// word cleared (relative error 2^-20).
template <Op kOp>
Outcome coarse(Frame& frame, const Instr& instr) {
  for_lanes(frame.lanes, [&](int lane) {
    const double a = frame.at<double>(instr.a)[lane];
    // .ftz: a subnormal counts as the zero of its sign.
    const double x = instr.option == 1 && std::fpclassify(a) == FP_SUBNORMAL ? std::copysign(0.0, a) : a;
    const double value = canonical(kOp == Op::kRcp ? 1.0 / x : 1.0 / std::sqrt(x));
    frame.at<std::uint64_t>(instr.d)[lane] = std::bit_cast<std::uint64_t>(value) & ~std::uint64_t{0xffffffff};
  });
  return Outcome::kDone;
}

/// 1 / sqrt(x) rounded once: the errors of the root and of the quotient are known exactly and put back. The exponent is taken out first,
/// so that no error is lost to underflow.
double reciprocal_root(double x) {
  if (!(x > 0) || std::isinf(x)) return canonical(1.0 / std::sqrt(x));  // zeros, negative numbers, infinity, NaN
  int exponent = 0;
  double scaled = std::frexp(x, &exponent);
  if (exponent % 2 != 0) {
    scaled *= 2;
    --exponent;
  }
  const double root = std::sqrt(scaled);
  const double missing = std::fma(-root, root, scaled) / (2 * root);
  const double quotient = 1.0 / root;
  const double rest = std::fma(-quotient, root, 1.0);
  return std::ldexp(quotient + quotient * (rest - missing * quotient), -exponent / 2);
}

/// rsqrt.approx.f64, what CUDA's rsqrt(double) is: in spite of its name ptxas makes a routine of full precision of it, and subnormals
/// count. Only the .ftz form is coarse.
Outcome full_rsqrt(Frame& frame, const Instr& instr) {
  for_lanes(frame.lanes, [&](int lane) { frame.at<double>(instr.d)[lane] = reciprocal_root(frame.at<double>(instr.a)[lane]); });
  return Outcome::kDone;
}

template <Op kOp>
Outcome general(Frame& frame, const Instr& instr) {
  const RoundingScope scope(frame.detail(instr).mode.rounding);
  for_lanes(frame.lanes, [&](int lane) {
    frame.at<double>(instr.d)[lane] =
        formula(kOp, frame.at<double>(instr.a)[lane], frame.at<double>(instr.b)[lane], frame.at<double>(instr.c)[lane]);
  });
  return Outcome::kDone;
}

Function general_for(Op op) {
  switch (op) {
    case Op::kAdd:
      return &general<Op::kAdd>;
    case Op::kSub:
      return &general<Op::kSub>;
    case Op::kMul:
      return &general<Op::kMul>;
    case Op::kFma:
      return &general<Op::kFma>;
    case Op::kDiv:
      return &general<Op::kDiv>;
    case Op::kRcp:
      return &general<Op::kRcp>;
    case Op::kSqrt:
      return &general<Op::kSqrt>;
    case Op::kMin:
      return &general<Op::kMin>;
    case Op::kMax:
      return &general<Op::kMax>;
    case Op::kAbs:
      return &general<Op::kAbs>;
    case Op::kNeg:
      return &general<Op::kNeg>;
    case Op::kCopysign:
      return &general<Op::kCopysign>;
    default:
      return nullptr;
  }
}

}  // namespace

Status Decoder::decode_double(Instr& instr) {
  if (!has("approx"))
    instr.function = general_for(op());
  else if (op() == Op::kRcp)
    instr.function = &coarse<Op::kRcp>;
  else
    instr.function = has("ftz") ? &coarse<Op::kRsqrt> : &full_rsqrt;
  instr.option = has("ftz") ? 1 : 0;
  if (instr.function == nullptr) return refuse("no such f64 operation");
  new_detail(instr).mode.rounding = rounding();
  return arithmetic_operands(instr, 64, true);
}

}  // namespace kw::simulate
