// See value_lowering.h. Arithmetic is in the accumulate type; integers stay exact in int and long long.
// SPDX-License-Identifier: Apache-2.0
#include "generator/lower/value_lowering.h"

#include <fmt/format.h>

#include <map>

#include "generator/lower/lower.h"

namespace kw::generator {
namespace {

constexpr int kSelect = 0, kOr = 1, kAnd = 2, kEquality = 3, kRelation = 4, kAdditive = 5, kMultiplicative = 6, kUnary = 7, kPrimary = 8;

bool is_real(const std::string& type) { return type == "float" || type == "double"; }

int rank_of(const std::string& type) {
  if (type == "bool") return 0;
  if (type == "int") return 1;
  if (type == "long long") return 2;
  return type == "float" ? 3 : 4;
}

const std::string& wider(const std::string& a, const std::string& b) { return rank_of(a) >= rank_of(b) ? a : b; }

}  // namespace

std::string at_level(const LoweredValue& value, int level) { return value.level < level ? "(" + value.text + ")" : value.text; }

LoweredValue converted(const LoweredValue& value, const std::string& type) {
  if (value.type == type) return value;
  if (type == "bool") return {at_level(value, kEquality + 1) + " != 0", type, kEquality};
  return {fmt::format("static_cast<{}>({})", type, value.text), type, kPrimary};
}

LoweredValue OperationLowering::binary(const char* symbol, int level, const LoweredValue& left, const LoweredValue& right,
                                       const std::string& type) const {
  const LoweredValue a = converted(left, type);
  const LoweredValue b = converted(right, type);
  return {fmt::format("{} {} {}", at_level(a, level), symbol, at_level(b, level + 1)), type, level};
}

LoweredValue OperationLowering::compare(const char* symbol, int level, const LoweredValue& left, const LoweredValue& right) const {
  const std::string type = wider(left.type, right.type);
  return {fmt::format("{} {} {}", at_level(converted(left, type), kAdditive), symbol, at_level(converted(right, type), kAdditive)), "bool",
          level};
}

LoweredValue OperationLowering::function(const std::string& name, const std::vector<LoweredValue>& operands, const std::string& type,
                                         const std::string& result_type) const {
  std::string arguments;
  for (const LoweredValue& operand : operands) arguments += (arguments.empty() ? "" : ", ") + converted(operand, type).text;
  return {name + "(" + arguments + ")", result_type, kPrimary};
}

LoweredValue OperationLowering::helper(const std::string& name, const std::vector<LoweredValue>& operands, const std::string& type,
                                       const std::string& result_type) {
  return function(support_.use(name, type), operands, type, result_type);
}

LoweredValue OperationLowering::arithmetic(const ExprNode& node, const std::vector<LoweredValue>& operands, const std::string& type) {
  switch (node.function) {
    case Function::kAdd:
      return binary("+", kAdditive, operands[0], operands[1], type);
    case Function::kSub:
      return binary("-", kAdditive, operands[0], operands[1], type);
    case Function::kMul:
      return binary("*", kMultiplicative, operands[0], operands[1], type);
    case Function::kDiv: {
      const std::string real = is_real(type) ? type : real_type();
      if (approximates_ && real == "float") return converted(helper("divide_approximate", operands, real, real), type);
      return converted(binary("/", kMultiplicative, operands[0], operands[1], real), type);
    }
    case Function::kFloorDiv:
      if (!is_real(type)) return helper("floor_div", operands, type, type);
      return function(math_function("floor", type), {binary("/", kMultiplicative, operands[0], operands[1], type)}, type, type);
    case Function::kMod:
      return helper(is_real(type) ? "floor_mod_real" : "floor_mod", operands, type, type);
    case Function::kNeg:
      return {"-" + at_level(converted(operands[0], type), kPrimary), type, kUnary};
    case Function::kMin:
      return helper(is_real(type) ? "minimum" : "integer_minimum", operands, type, type);
    case Function::kMax:
      return helper(is_real(type) ? "maximum" : "integer_maximum", operands, type, type);
    case Function::kAbs:
      return is_real(type) ? function(math_function("fabs", type), operands, type, type) : helper("integer_abs", operands, type, type);
    case Function::kRelu:
      return helper("relu", operands, type, type);
    default:
      return real_function(node, operands, type);
  }
}

LoweredValue OperationLowering::real_function(const ExprNode& node, const std::vector<LoweredValue>& operands, const std::string& wanted) {
  const std::string type = is_real(wanted) ? wanted : real_type();
  static const std::map<Function, const char*> kBuiltins = {
      {Function::kExp, "exp"}, {Function::kLog, "log"}, {Function::kSqrt, "sqrt"}, {Function::kRsqrt, "rsqrt"}, {Function::kTanh, "tanh"},
      {Function::kErf, "erf"}, {Function::kSin, "sin"}, {Function::kCos, "cos"},   {Function::kFloor, "floor"}, {Function::kPow, "pow"}};
  static const std::map<Function, const char*> kHelpers = {
      {Function::kSigmoid, "sigmoid"}, {Function::kGelu, "gelu"}, {Function::kGeluTanh, "gelu_tanh"}, {Function::kSilu, "silu"}};
  static const std::map<Function, const char*> kApproximate = {{Function::kExp, "exp_approximate"},
                                                               {Function::kSigmoid, "sigmoid_approximate"},
                                                               {Function::kSilu, "silu_approximate"},
                                                               {Function::kGeluTanh, "gelu_tanh_approximate"}};
  if (const auto approximate = kApproximate.find(node.function); approximates_ && type == "float" && approximate != kApproximate.end())
    return converted(helper(approximate->second, operands, type, type), wanted);
  if (const auto builtin = kBuiltins.find(node.function); builtin != kBuiltins.end()) {
    return converted(function(math_function(builtin->second, type), operands, type, type), wanted);
  }
  const auto found = kHelpers.find(node.function);
  KW_CHECK(found != kHelpers.end(), "every pointwise function is lowered");
  return converted(helper(found->second, operands, type, type), wanted);
}

Result<LoweredValue> OperationLowering::call(const ExprNode& node, const std::vector<LoweredValue>& operands) {
  const std::string type = type_of(node.dtype);
  switch (node.function) {
    case Function::kLt:
      return compare("<", kRelation, operands[0], operands[1]);
    case Function::kLe:
      return compare("<=", kRelation, operands[0], operands[1]);
    case Function::kGt:
      return compare(">", kRelation, operands[0], operands[1]);
    case Function::kGe:
      return compare(">=", kRelation, operands[0], operands[1]);
    case Function::kEq:
      return compare("==", kEquality, operands[0], operands[1]);
    case Function::kNe:
      return compare("!=", kEquality, operands[0], operands[1]);
    case Function::kAnd:
      return binary("&&", kAnd, operands[0], operands[1], "bool");
    case Function::kOr: {
      const LoweredValue a = converted(operands[0], "bool");
      const LoweredValue b = converted(operands[1], "bool");
      return LoweredValue{
          fmt::format("{} || {}", at_level(a, a.level == kAnd ? kEquality : kOr), at_level(b, b.level == kAnd ? kEquality : kOr + 1)),
          "bool", kOr};
    }
    case Function::kNot:
      return LoweredValue{"!" + at_level(converted(operands[0], "bool"), kUnary), "bool", kUnary};
    case Function::kWhere: {
      const LoweredValue condition = converted(operands[0], "bool");
      const LoweredValue then = converted(operands[1], type);
      const LoweredValue otherwise = converted(operands[2], type);
      return LoweredValue{fmt::format("{} ? {} : {}", at_level(condition, kOr), at_level(then, kOr), at_level(otherwise, kOr)), type,
                          kSelect};
    }
    case Function::kIsFinite:
      if (!is_real(operands[0].type)) return LoweredValue{"true", "bool", kPrimary};
      return helper("is_finite", operands, operands[0].type, "bool");
    default:
      return arithmetic(node, operands, type);
  }
}

Result<LoweredValue> OperationLowering::cast(DType dtype, const LoweredValue& operand) {
  const std::string real = real_type();
  const LoweredValue value = is_real(operand.type) ? operand : converted(operand, real);
  switch (dtype) {
    case DType::kBool:
      return converted(operand, "bool");
    case DType::kI64:
      return converted(operand, "long long");
    case DType::kI32:
      return operand.type == "long long" ? helper("saturate_i32", {operand}, "long long", "int") : converted(operand, "int");
    case DType::kI8:
      return helper("saturate_i8", {operand}, operand.type == "bool" ? "int" : operand.type, "int");
    case DType::kF64:
      return converted(operand, real);
    case DType::kF32:
      return real == "float" ? value : converted(converted(value, "float"), real);
    case DType::kTF32:
      return helper("round_to_tf32", {value}, real, real);
    case DType::kBF16:
      if (real == "float") return helper("round_to_bf16", {value}, real, real);
      [[fallthrough]];
    default:
      return LoweredValue{fmt::format("to_accumulator<{}>(from_accumulator<{}>({}))", real, element_type_name(dtype), value.text), real,
                          kPrimary};
  }
}

}  // namespace kw::generator
