// Types names, operators, calls and casts. Reads are in typing_reads.cpp, reductions in typing_reductions.cpp, user functions
// in inline_user_function.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "generator/spec/typing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "generator/spec/spec_reader.h"
#include "generator/spec/sugar.h"

namespace kw::generator {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TypeRule operator_rule(Function function) {
  switch (function) {
    case Function::kDiv:
    case Function::kPow:
      return TypeRule::kReal;
    case Function::kLt:
    case Function::kLe:
    case Function::kGt:
    case Function::kGe:
    case Function::kEq:
    case Function::kNe:
      return TypeRule::kPredicate;
    default:
      return TypeRule::kArithmetic;
  }
}

bool is_logical(Function function) { return function == Function::kAnd || function == Function::kOr || function == Function::kNot; }
bool is_number_type(DType type) { return type != DType::kBool; }

}  // namespace

ExprRef ExpressionTyper::error(const SourceRange& where, std::string message, Code code) {
  context_.error(where, std::move(message), code);
  return nullptr;
}

ExprRef ExpressionTyper::located(ExprNode node, const SourceRange& where) const {
  node.where = where;
  return std::make_shared<const ExprNode>(std::move(node));
}

bool ExpressionTyper::is_in_scope(const std::string& name) const { return std::find(scope_.begin(), scope_.end(), name) != scope_.end(); }

ExprRef ExpressionTyper::type(const SyntaxRef& syntax) {
  const SyntaxNode& node = *syntax;
  switch (node.kind) {
    case SyntaxNode::Kind::kInteger: {
      ExprNode number;
      number.number = static_cast<double>(node.integer);
      number.dtype = DType::kI64;
      return located(std::move(number), node.where);
    }
    case SyntaxNode::Kind::kReal: {
      if (!is_float(context_.real_type()))
        return error(node.where,
                     fmt::format("a real number needs a float accumulate type, but accumulate is {}", to_text(context_.real_type())));
      ExprNode number;
      number.number = node.real;
      number.dtype = context_.real_type();
      return located(std::move(number), node.where);
    }
    case SyntaxNode::Kind::kName:
      return type_name(node);
    case SyntaxNode::Kind::kRead:
      return type_read(node);
    case SyntaxNode::Kind::kOperator:
      return type_operator(node);
    case SyntaxNode::Kind::kCall:
      return type_call(node);
  }
  return nullptr;
}

ExprRef ExpressionTyper::type_integer(const SyntaxRef& syntax, const char* what) {
  ExprRef value = type(syntax);
  if (value && !is_integer(value->dtype)) {
    return error(syntax->where,
                 fmt::format("{} is {}, of type {}: it must be an exact integer", what, to_text(value), to_text(value->dtype)));
  }
  return value;
}

ExprRef ExpressionTyper::type_name(const SyntaxNode& node) {
  ExprNode typed;
  typed.name = node.name;
  typed.dtype = DType::kI64;
  if (is_in_scope(node.name) || is_group_in_scope(node.name)) {
    typed.kind = ExprNode::Kind::kIndex;
    context_.extents.mention(node.name, node.where);
    return located(std::move(typed), node.where);
  }
  const auto derived = context_.derived.find(node.name);
  if (derived != context_.derived.end()) {
    context_.used.insert(node.name);
    return derived->second;
  }
  const auto kind = context_.kinds.find(node.name);
  if (kind != context_.kinds.end() && kind->second == "a dim") {
    context_.used.insert(node.name);
    typed.kind = ExprNode::Kind::kDim;
    return located(std::move(typed), node.where);
  }
  if (const Scalar* scalar = context_.program.find_scalar(node.name)) {
    context_.used.insert(node.name);
    typed.kind = ExprNode::Kind::kScalar;
    typed.dtype = is_float(scalar->dtype) ? context_.real_type() : is_integer(scalar->dtype) ? DType::kI64 : DType::kBool;
    if (is_float(scalar->dtype) && !is_float(typed.dtype))
      return error(node.where, fmt::format("scalar {} is {}, but accumulate is {}: choose a float accumulate type", node.name,
                                           to_text(scalar->dtype), to_text(context_.real_type())));
    return located(std::move(typed), node.where);
  }
  if (node.name == "inf" || node.name == "nan") {
    if (!is_float(context_.real_type()))
      return error(node.where,
                   fmt::format("{} needs a float accumulate type, but accumulate is {}", node.name, to_text(context_.real_type())));
    typed.name.clear();
    typed.number = node.name == "inf" ? kInfinity : std::numeric_limits<double>::quiet_NaN();
    typed.dtype = context_.real_type();
    return located(std::move(typed), node.where);
  }
  if (node.name == "true" || node.name == "false") {
    typed.name.clear();
    typed.number = node.name == "true" ? 1 : 0;
    typed.dtype = DType::kBool;
    return located(std::move(typed), node.where);
  }
  return unknown_value(node);
}

/// A bare name that is no index, dim or scalar: a tensor of rank 0, or a mistake.
ExprRef ExpressionTyper::unknown_value(const SyntaxNode& node) {
  if (context_.program.find_tensor(node.name) != nullptr || context_.targets.contains(node.name)) return finish_read(node, {});
  if (context_.stated_indices.contains(node.name) || context_.index_names.contains(node.name)) {
    return error(node.where, fmt::format("index {} is neither on the left side nor reduced here: write sum[{}](...) or put it on the left",
                                         node.name, node.name));
  }
  return error(node.where, fmt::format("unknown name '{}': no index of this statement, dim, scalar or tensor{}", node.name,
                                       suggest(context_, node.name)));
}

ExprRef ExpressionTyper::type_operator(const SyntaxNode& node) {
  std::vector<ExprRef> operands;
  for (const SyntaxRef& operand : node.operands) operands.push_back(type(operand));
  if (std::find(operands.begin(), operands.end(), nullptr) != operands.end()) return nullptr;
  // -3 and -inf are numbers.
  if (node.function == Function::kNeg && operands[0]->kind == ExprNode::Kind::kNumber && is_number_type(operands[0]->dtype)) {
    ExprNode number = *operands[0];
    number.number = -number.number;
    if (number.number == 0 && is_integer(number.dtype)) number.number = 0;
    return located(std::move(number), node.where);
  }
  return apply(node.function, operator_rule(node.function), std::move(operands), node.where);
}

ExprRef ExpressionTyper::convert_literal(const ExprRef& expr, DType dtype) const {
  if (expr->kind != ExprNode::Kind::kNumber || expr->dtype != DType::kI64 || !is_float(dtype)) return expr;
  ExprNode number = *expr;
  number.dtype = dtype;
  return std::make_shared<const ExprNode>(std::move(number));
}

ExprRef ExpressionTyper::real_operand(const ExprRef& expr, const SourceRange& where, const char* what) {
  if (!is_float(context_.real_type())) {
    return error(where, fmt::format("{} needs real numbers, but accumulate is {}: choose a float accumulate type", what,
                                    to_text(context_.real_type())));
  }
  if (!is_number_type(expr->dtype))
    return error(where, fmt::format("{} needs a number, {} is a bool: write where(c, 1, 0)", what, to_text(expr)));
  return convert_literal(expr, context_.real_type());
}

std::optional<DType> ExpressionTyper::common_type(const std::vector<ExprRef>& operands, std::size_t first, const SourceRange& where,
                                                  const char* what) {
  bool has_real = false, has_bool = false, has_number = false, has_sum_type = false;
  for (std::size_t i = first; i < operands.size(); ++i) {
    const DType type = operands[i]->dtype;
    has_bool = has_bool || type == DType::kBool;
    has_number = has_number || type != DType::kBool;
    has_real = has_real || is_float(type);
    has_sum_type = has_sum_type || type == context_.real_type();
  }
  if (has_bool && has_number) {
    error(where, fmt::format("{} mixes a bool and a number: write where(c, 1, 0) for the bool", what));
    return std::nullopt;
  }
  if (has_bool) return DType::kBool;
  if (has_real) return context_.real_type();
  return has_sum_type ? context_.real_type() : DType::kI64;
}

ExprRef ExpressionTyper::select(std::vector<ExprRef> operands, const SourceRange& where) {
  if (operands[0]->dtype != DType::kBool)
    return error(where, fmt::format("the condition of where is {}, of type {}: it must be a bool", to_text(operands[0]),
                                    to_text(operands[0]->dtype)));
  const std::optional<DType> type = common_type(operands, 1, where, "where");
  if (!type) return nullptr;
  for (std::size_t i = 1; i < operands.size(); ++i) operands[i] = convert_literal(operands[i], *type);
  return located(*make_call(Function::kWhere, std::move(operands), *type), where);
}

ExprRef ExpressionTyper::apply(Function function, TypeRule rule, std::vector<ExprRef> operands, const SourceRange& where) {
  const std::string name(function == Function::kNeg ? "unary -" : to_text(function));
  if (rule == TypeRule::kSelect) return select(std::move(operands), where);
  if (is_logical(function)) {
    for (const ExprRef& operand : operands) {
      if (operand->dtype != DType::kBool)
        return error(where, fmt::format("'{}' takes bools: {} has type {}", name, to_text(operand), to_text(operand->dtype)));
    }
    return located(*make_call(function, std::move(operands), DType::kBool), where);
  }
  if (rule == TypeRule::kReal) {
    for (ExprRef& operand : operands) {
      operand = real_operand(operand, where, name.c_str());
      if (!operand) return nullptr;
    }
    return located(*make_call(function, std::move(operands), context_.real_type()), where);
  }
  const std::optional<DType> type = common_type(operands, 0, where, name.c_str());
  if (!type) return nullptr;
  const bool is_equality = function == Function::kEq || function == Function::kNe;
  if (*type == DType::kBool && !is_equality)
    return error(where, fmt::format("'{}' takes numbers: {} is a bool", name, to_text(operands[0])));
  if ((function == Function::kFloorDiv || function == Function::kMod) && !is_integer(*type)) {
    return error(where, fmt::format("'{}' takes exact integers: use floor(a / b) for reals", name));
  }
  for (ExprRef& operand : operands) operand = convert_literal(operand, *type);
  if ((function == Function::kFloorDiv || function == Function::kMod) && operands[1]->kind == ExprNode::Kind::kNumber &&
      operands[1]->number == 0) {
    return error(where, fmt::format("'{}' by zero", name));
  }
  return located(*make_call(function, std::move(operands), rule == TypeRule::kPredicate ? DType::kBool : *type), where);
}

ExprRef ExpressionTyper::type_call(const SyntaxNode& node) {
  if (node.has_brackets) return type_reduction(node);
  if (node.name == "cast") return type_cast(node);
  const Builtin* builtin = find_builtin(node.name);
  if (builtin != nullptr) return type_builtin(node, *builtin);
  if (is_sugar(node.name) || context_.syntax.blocks.contains(node.name)) {
    return error(node.where,
                 fmt::format("{}(...) makes a whole tensor: it stands alone on the right side, as in t = {}(...)", node.name, node.name));
  }
  if (find_reduction(node.name))
    return error(node.where, fmt::format("{} is a reduction: name its index, as in {}[k](...)", node.name, node.name));
  return type_user_call(node);
}

ExprRef ExpressionTyper::type_builtin(const SyntaxNode& node, const Builtin& builtin) {
  const bool is_variadic = builtin.function == Function::kMin || builtin.function == Function::kMax;
  const std::size_t wanted = static_cast<std::size_t>(builtin.num_arguments);
  if (!node.keywords.empty()) return error(node.where, fmt::format("{} takes no argument named '{}'", node.name, node.keywords[0].first));
  if (node.operands.size() < wanted || (!is_variadic && node.operands.size() > wanted)) {
    return error(node.where, fmt::format("{} takes {}{} argument{}, not {}", node.name, wanted, is_variadic ? " or more" : "",
                                         wanted == 1 ? "" : "s", node.operands.size()));
  }
  std::vector<ExprRef> operands;
  for (const SyntaxRef& operand : node.operands) operands.push_back(type(operand));
  if (std::find(operands.begin(), operands.end(), nullptr) != operands.end()) return nullptr;
  if (builtin.rule == TypeRule::kPredicate) {
    ExprRef value = real_operand(operands[0], node.where, node.name.c_str());
    return value ? located(*make_call(builtin.function, {value}, DType::kBool), node.where) : nullptr;
  }
  if (!is_variadic) return apply(builtin.function, builtin.rule, std::move(operands), node.where);
  ExprRef folded = operands[0];
  for (std::size_t i = 1; i < operands.size() && folded; ++i)
    folded = apply(builtin.function, builtin.rule, {folded, operands[i]}, node.where);
  return folded;
}

ExprRef ExpressionTyper::type_cast(const SyntaxNode& node) {
  if (node.operands.size() != 2 || !node.keywords.empty() || node.operands[1]->kind != SyntaxNode::Kind::kName) {
    return error(node.where, "cast takes a value and a dtype, as in cast(x, f16)");
  }
  const std::string& name = node.operands[1]->name;
  const std::optional<DType> dtype = dtype_from_text(name);
  if (!dtype) {
    std::vector<std::string> names;
    for (const DType known : all_dtypes()) names.emplace_back(to_text(known));
    return error(node.operands[1]->where, fmt::format("cast to '{}': unknown dtype{}", name, did_you_mean(name, names)));
  }
  ExprRef value = type(node.operands[0]);
  if (!value) return nullptr;
  if (is_float(*dtype) && !is_float(context_.real_type())) {
    return error(node.where, fmt::format("cast to {} makes a real, but accumulate is {}: choose a float accumulate type", name,
                                         to_text(context_.real_type())));
  }
  ExprNode cast;
  cast.kind = ExprNode::Kind::kCast;
  cast.dtype = *dtype;
  cast.operands = {is_float(*dtype) ? convert_literal(value, context_.real_type()) : value};
  return located(std::move(cast), node.where);
}

}  // namespace kw::generator
