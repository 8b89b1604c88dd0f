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

/// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64: coarse by definition, here the right value with the low word cleared (relative error
/// 2^-20). rsqrt.approx.f64 has no such step: it is what CUDA's rsqrt(double) compiles to, whose error is at most one unit in the last
/// place (CUDA Programming Guide, mathematical functions).
template <Op kOp>
Outcome approximate(Frame& frame, const Instr& instr) {
  for_lanes(frame.lanes, [&](int lane) {
    const double a = frame.at<double>(instr.a)[lane];
    const bool is_coarse = instr.option == 1;
    // .ftz: a subnormal counts as the zero of its sign.
    const double x = is_coarse && std::fpclassify(a) == FP_SUBNORMAL ? std::copysign(0.0, a) : a;
    const double value = canonical(kOp == Op::kRcp ? 1.0 / x : static_cast<double>(1.0L / std::sqrt(static_cast<long double>(x))));
    const std::uint64_t kept = is_coarse ? ~std::uint64_t{0xffffffff} : ~std::uint64_t{0};
    frame.at<std::uint64_t>(instr.d)[lane] = std::bit_cast<std::uint64_t>(value) & kept;
  });
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
  instr.function = has("approx") ? (op() == Op::kRcp ? &approximate<Op::kRcp> : &approximate<Op::kRsqrt>) : general_for(op());
  instr.option = has("ftz") ? 1 : 0;
  if (instr.function == nullptr) return refuse("no such f64 operation");
  new_detail(instr).mode.rounding = rounding();
  return arithmetic_operands(instr, 64, true);
}

}  // namespace kw::simulate
