// See refusal_text.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/space/refusal_text.h"

#include <fmt/format.h>

#include <set>

namespace kw::generator {
namespace {

using Op = IntExpr::Op;

/// Longer lists of variables do not help a reader.
constexpr std::size_t kMaxShownVariables = 6;

std::string_view comparison_text(Op op) {
  switch (op) {
    case Op::kLt:
      return "<";
    case Op::kLe:
      return "<=";
    case Op::kGt:
      return ">";
    case Op::kGe:
      return ">=";
    case Op::kEq:
      return "==";
    case Op::kNe:
      return "!=";
    default:
      return "";
  }
}

/// The first part of a conjunction that does not hold.
IntExpr broken_part(const IntExpr& expr, const IntBindings& bindings) {
  if (expr.op() != Op::kAnd) return expr;
  for (const IntExpr& part : expr.operands()) {
    const Result<std::int64_t> value = part.evaluate(bindings);
    if (!value || *value == 0) return broken_part(part, bindings);
  }
  return expr;
}

std::string variables_text(const IntExpr& expr, const IntBindings& bindings) {
  std::set<std::string> names;
  expr.collect_variables(names);
  if (names.empty() || names.size() > kMaxShownVariables) return "";
  std::string text;
  for (const std::string& name : names) text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, bindings.at(name));
  return " (" + text + ")";
}

}  // namespace

std::string broken_rule_text(const Rule& rule, const IntBindings& bindings) {
  const std::string head = fmt::format("{}: {}: ", rule.name, rule.why);
  const IntExpr part = broken_part(rule.expression, bindings);
  if (const Result<std::int64_t> value = part.evaluate(bindings); !value) return head + value.error().message;
  const std::string variables = variables_text(part, bindings);
  const std::string_view comparison = comparison_text(part.op());
  if (comparison.empty()) return fmt::format("{}needs {}{}", head, part.to_text(), variables);
  const Result<std::int64_t> left = part.operands()[0].evaluate(bindings);
  const Result<std::int64_t> right = part.operands()[1].evaluate(bindings);
  // Small remainders say little without what they are the remainder of.
  const bool is_remainder = part.operands()[0].op() == Op::kMod;
  if (!left || !right || is_remainder) return fmt::format("{}needs {}{}", head, part.to_text(), variables);
  return fmt::format("{}needs {} {} {}{}", head, *left, comparison, *right, variables);
}

}  // namespace kw::generator
