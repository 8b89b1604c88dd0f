// Problems (one shape of an op) and the checks of a plan's constraints on them.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "generator/base/key_values.h"
#include "generator/base/launch_plan.h"

namespace kw {
namespace {

constexpr std::string_view kAlignSuffix = ".align";
constexpr std::int64_t kMaxAlignBytes = std::int64_t{1} << 30;
constexpr std::string_view kStrideMark = ".stride";

}  // namespace

std::string key_values_to_text(const IntBindings& values) {
  std::string text;
  for (const auto& [name, value] : values) text += (text.empty() ? "" : ",") + name + "=" + std::to_string(value);
  return text;
}

Result<IntBindings> key_values_from_text(std::string_view text, Stage stage) {
  IntBindings values;
  if (text.empty()) return values;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return fail(stage, Code::kBadInput, fmt::format("'{}': expected NAME=INTEGER", item));
    const std::string name(item.substr(0, equals));
    const std::string_view digits = item.substr(equals + 1);
    std::int64_t value = 0;
    const auto [pointer, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || pointer != digits.data() + digits.size())
      return fail(stage, Code::kBadInput, fmt::format("'{}': '{}' is not an integer of 64 bits", item, digits));
    if (!values.emplace(name, value).second) return fail(stage, Code::kBadInput, fmt::format("'{}': {} is given twice", text, name));
  }
  return values;
}

IntBindings Problem::bindings(const LaunchPlan& plan) const {
  IntBindings all = dims;
  for (const auto& [name, value] : strides) all.emplace(name, value);
  for (const PlanTensor& tensor : plan.tensors) {
    const auto align = align_bytes.find(tensor.name);
    all.emplace(tensor.name + ".align", align == align_bytes.end() ? tensor.align_bytes : align->second);
    for (std::size_t axis = 0; axis < tensor.strides.size(); ++axis) {
      const std::string name = tensor.name + ".stride" + std::to_string(axis);
      if (all.contains(name)) continue;
      if (const auto value = tensor.strides[axis].evaluate(all)) all.emplace(name, *value);
    }
  }
  return all;
}

std::string Problem::to_text() const {
  IntBindings rest = strides;
  for (const auto& [tensor, bytes] : align_bytes) rest.emplace(tensor + std::string(kAlignSuffix), bytes);
  std::string text = key_values_to_text(dims);
  if (!rest.empty()) text += (text.empty() ? "" : ",") + key_values_to_text(rest);
  return text;
}

Result<Problem> problem_from_text(std::string_view text) {
  KW_TRY(const IntBindings values, key_values_from_text(text, Stage::kCommandLine));
  Problem problem;
  for (const auto& [name, value] : values) {
    if (value < 0) return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("{} = {}: must not be negative", name, value));
    if (name.size() > kAlignSuffix.size() && name.ends_with(kAlignSuffix)) {
      if (value == 0 || (value & (value - 1)) != 0)
        return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("{} = {}: an alignment is a power of two in bytes", name, value));
      if (value > kMaxAlignBytes)
        return fail(Stage::kCommandLine, Code::kBadInput,
                    fmt::format("{} = {}: an alignment is at most {} bytes", name, value, kMaxAlignBytes));
      problem.align_bytes.emplace(name.substr(0, name.size() - kAlignSuffix.size()), value);
    } else if (name.find(kStrideMark) != std::string::npos) {
      problem.strides.emplace(name, value);
    } else {
      problem.dims.emplace(name, value);
    }
  }
  return problem;
}

void complete_strides(const std::string& tensor, std::span<const IntExpr> shape, std::span<const IntExpr> strides, Problem& problem) {
  std::int64_t dense = 1;  // the next stride outwards
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const std::string name = fmt::format("{}{}{}", tensor, kStrideMark, axis);
    const bool is_free = strides[axis] == IntExpr::variable(name);
    const std::int64_t stride =
        is_free ? problem.strides.emplace(name, dense).first->second : strides[axis].evaluate(problem.dims).value_or(dense);
    const std::int64_t extent = std::max<std::int64_t>(shape[axis].evaluate(problem.dims).value_or(0), 1);
    if (__builtin_mul_overflow(stride, extent, &dense)) dense = 0;
  }
}

std::string first_broken_constraint(const LaunchPlan& plan, const Problem& problem) {
  const IntBindings bindings = problem.bindings(plan);
  for (const PlanConstraint& constraint : plan.constraints) {
    const auto value = constraint.rule.evaluate(bindings);
    if (!value) return fmt::format("{}: {}", constraint.name, value.error().message);
    if (*value == 0) return fmt::format("{}: {} ({})", constraint.name, constraint.why, describe_broken_rule(constraint.rule, bindings));
  }
  return "";
}

std::string describe_broken_rule(const IntExpr& rule, const IntBindings& bindings) {
  using Op = IntExpr::Op;
  if (rule.op() == Op::kAnd) {
    const auto left = rule.operands()[0].evaluate(bindings);
    return describe_broken_rule(rule.operands()[left && *left != 0 ? 1 : 0], bindings);
  }
  const bool is_comparison = rule.op() >= Op::kLt && rule.op() <= Op::kNe;
  if (!is_comparison) return rule.to_text() + " is false";
  static constexpr std::string_view kSigns[] = {"<", "<=", ">", ">=", "==", "!="};
  const auto left = rule.operands()[0].evaluate(bindings);
  const auto right = rule.operands()[1].evaluate(bindings);
  const auto text = [](const Result<std::int64_t>& value) { return value ? std::to_string(*value) : value.error().message; };
  return fmt::format("{}: {} {} {} is false", rule.to_text(), text(left), kSigns[static_cast<int>(rule.op()) - static_cast<int>(Op::kLt)],
                     text(right));
}

}  // namespace kw
