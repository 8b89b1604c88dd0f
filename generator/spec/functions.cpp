// Tables of the built-in functions and reductions of the notation.
// SPDX-License-Identifier: Apache-2.0
#include "generator/spec/functions.h"

namespace kw::generator {

const std::vector<Builtin>& builtins() {
  static const std::vector<Builtin> kBuiltins = {
      {"abs", Function::kAbs, 1, TypeRule::kArithmetic},
      {"cos", Function::kCos, 1, TypeRule::kReal},
      {"erf", Function::kErf, 1, TypeRule::kReal},
      {"exp", Function::kExp, 1, TypeRule::kReal},
      {"floor", Function::kFloor, 1, TypeRule::kReal},
      {"gelu", Function::kGelu, 1, TypeRule::kReal},
      {"gelu_tanh", Function::kGeluTanh, 1, TypeRule::kReal},
      {"isfinite", Function::kIsFinite, 1, TypeRule::kPredicate},
      {"log", Function::kLog, 1, TypeRule::kReal},
      {"max", Function::kMax, 2, TypeRule::kArithmetic},
      {"min", Function::kMin, 2, TypeRule::kArithmetic},
      {"relu", Function::kRelu, 1, TypeRule::kArithmetic},
      {"rsqrt", Function::kRsqrt, 1, TypeRule::kReal},
      {"sigmoid", Function::kSigmoid, 1, TypeRule::kReal},
      {"silu", Function::kSilu, 1, TypeRule::kReal},
      {"sin", Function::kSin, 1, TypeRule::kReal},
      {"sqrt", Function::kSqrt, 1, TypeRule::kReal},
      {"tanh", Function::kTanh, 1, TypeRule::kReal},
      {"where", Function::kWhere, 3, TypeRule::kSelect},
  };
  return kBuiltins;
}

const Builtin* find_builtin(std::string_view name) {
  for (const Builtin& builtin : builtins()) {
    if (builtin.name == name) return &builtin;
  }
  return nullptr;
}

std::optional<ReduceOp> find_reduction(std::string_view name) {
  for (int op = 0; op <= static_cast<int>(ReduceOp::kCumSum); ++op) {
    if (to_text(static_cast<ReduceOp>(op)) == name) return static_cast<ReduceOp>(op);
  }
  return std::nullopt;
}

const std::vector<std::string>& reduction_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (int op = 0; op <= static_cast<int>(ReduceOp::kCumSum); ++op) names.emplace_back(to_text(static_cast<ReduceOp>(op)));
    return names;
  }();
  return kNames;
}

}  // namespace kw::generator
