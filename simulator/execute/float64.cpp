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

bool has_property(double value, std::uint8_t option) {
  switch (option) {
    case 0:
      return std::isfinite(value);
    case 1:
      return std::isinf(value);
    case 2:
      return !std::isnan(value);
    case 3:
      return std::isnan(value);
    case 4:
      return std::isnormal(value);
    default:
      return std::fpclassify(value) == FP_SUBNORMAL;
  }
}

Outcome test_property(Frame& frame, const Instr& instr) {
  LaneMask result = 0;
  for_lanes(frame.lanes, [&](int lane) {
    result |= static_cast<LaneMask>(has_property(frame.at<double>(instr.a)[lane], instr.option) ? 1 : 0) << lane;
  });
  frame.set_predicate(instr.d, result);
  return Outcome::kDone;
}

}  // namespace

Status Decoder::decode_double(Instr& instr) {
  if (op() == Op::kTestp) {
    constexpr const char* kNames[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
    for (int i = 0; i < 6; ++i) {
      if (has(kNames[i])) instr.option = static_cast<std::uint8_t>(i);
    }
    instr.function = &test_property;
    KW_TRY(instr.d, predicate_destination(operand(0)));
    KW_TRY(instr.a, source(1, 64, true));
    return {};
  }
  instr.function = general_for(op());
  if (instr.function == nullptr) return refuse("no such f64 operation");
  new_detail(instr).mode.rounding = has("rz")   ? Rounding::kTowardZero
                                    : has("rm") ? Rounding::kDown
                                    : has("rp") ? Rounding::kUp
                                                : Rounding::kNearestEven;
  KW_TRY(instr.d, destination(0, 64));
  KW_TRY(instr.a, source(1, 64, true));
  instr.b = instr.c = instr.a;
  if (num_operands() > 2) {
    KW_TRY(instr.b, source(2, 64, true));
  }
  if (num_operands() > 3) {
    KW_TRY(instr.c, source(3, 64, true));
  }
  return {};
}

}  // namespace kw::simulate
