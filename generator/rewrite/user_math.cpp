// The table of CUDA math functions: see user_math.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/rewrite/user_math.h"

#include <array>
#include <string>

namespace kw::generator {
namespace {

struct MathRow {
  std::string_view name;
  Function function;
  std::size_t num_arguments;
};

constexpr std::array kRows = {
    MathRow{"abs", Function::kAbs, 1},           MathRow{"cos", Function::kCos, 1},   MathRow{"erf", Function::kErf, 1},
    MathRow{"exp", Function::kExp, 1},           MathRow{"fabs", Function::kAbs, 1},  MathRow{"fdivide", Function::kDiv, 2},
    MathRow{"floor", Function::kFloor, 1},       MathRow{"fmax", Function::kMax, 2},  MathRow{"fmin", Function::kMin, 2},
    MathRow{"isfinite", Function::kIsFinite, 1}, MathRow{"log", Function::kLog, 1},   MathRow{"max", Function::kMax, 2},
    MathRow{"min", Function::kMin, 2},           MathRow{"pow", Function::kPow, 2},   MathRow{"rsqrt", Function::kRsqrt, 1},
    MathRow{"sin", Function::kSin, 1},           MathRow{"sqrt", Function::kSqrt, 1}, MathRow{"tanh", Function::kTanh, 1},
};

/// "__expf", "expf" and "exp" are one function of the notation.
std::string_view plain_name(std::string_view name) {
  if (name.starts_with("__")) name.remove_prefix(2);
  const auto is_known = [&](std::string_view candidate) {
    for (const MathRow& row : kRows) {
      if (row.name == candidate) return true;
    }
    return candidate == "fma" || candidate == "exp2" || candidate == "ceil" || candidate == "isnan" || candidate == "isinf";
  };
  if (!is_known(name) && name.ends_with("f")) name.remove_suffix(1);
  return name;
}

}  // namespace

ExprRef lower_math_call(std::string_view name, const std::vector<ExprRef>& arguments, DType type) {
  const std::string_view plain = plain_name(name);
  for (const MathRow& row : kRows) {
    if (row.name == plain && row.num_arguments == arguments.size()) return make_call(row.function, arguments, type);
  }
  if (plain == "fma" && arguments.size() == 3) {
    return make_call(Function::kAdd, {make_call(Function::kMul, {arguments[0], arguments[1]}, type), arguments[2]}, type);
  }
  if (arguments.size() != 1) return nullptr;
  const ExprRef& x = arguments[0];
  const ExprRef is_number = make_call(Function::kEq, {x, x}, DType::kBool);
  if (plain == "exp2") return make_call(Function::kPow, {make_number(2, type), x}, type);
  if (plain == "ceil") return make_call(Function::kNeg, {make_call(Function::kFloor, {make_call(Function::kNeg, {x}, type)}, type)}, type);
  if (plain == "isnan") return make_call(Function::kNe, {x, x}, DType::kBool);
  if (plain == "isinf") {
    return make_call(Function::kAnd,
                     {is_number, make_call(Function::kNot, {make_call(Function::kIsFinite, {x}, DType::kBool)}, DType::kBool)},
                     DType::kBool);
  }
  return nullptr;
}

std::vector<std::string> math_names() {
  std::vector<std::string> names = {"ceil", "exp2", "fma", "isinf", "isnan"};
  for (const MathRow& row : kRows) names.emplace_back(row.name);
  return names;
}

ExprRef truncating_divide(const ExprRef& a, const ExprRef& b) {
  const DType type = DType::kI64;
  const ExprRef zero = make_number(0, type);
  const auto negative = [&](const ExprRef& x) { return make_call(Function::kLt, {x, zero}, DType::kBool); };
  const auto choose = [&](const ExprRef& x, const ExprRef& yes, const ExprRef& no) {
    return make_call(Function::kWhere, {negative(x), yes, no}, type);
  };
  const ExprRef quotient =
      make_call(Function::kFloorDiv, {make_call(Function::kAbs, {a}, type), make_call(Function::kAbs, {b}, type)}, type);
  const ExprRef opposite = make_call(Function::kNeg, {quotient}, type);
  return choose(a, choose(b, quotient, opposite), choose(b, opposite, quotient));
}

ExprRef truncating_remainder(const ExprRef& a, const ExprRef& b) {
  return make_call(Function::kSub, {a, make_call(Function::kMul, {truncating_divide(a, b), b}, DType::kI64)}, DType::kI64);
}

}  // namespace kw::generator
