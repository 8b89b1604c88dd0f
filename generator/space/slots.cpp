// See slots.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/space/slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace kw::generator {
namespace {

/// Values are remembered when the tunables of an expression have at most this many combinations (16 bytes each).
constexpr std::uint64_t kMaxRemembered = std::uint64_t{1} << 18;

}  // namespace

SourceRange override_place(const SpaceContext& context, const std::string& name) {
  const auto place = context.override_places.find(name);
  return place == context.override_places.end() ? SourceRange{} : place->second;
}

IntBindings fixed_bindings(const SpaceContext& context) {
  IntBindings fixed = limit_bindings(context.limits);
  for (const IntBindings* more : {&context.bindings, &context.problem}) {
    for (const auto& [name, value] : *more) fixed[name] = value;
  }
  return fixed;
}

IntExpr with_fixed(const IntExpr& expr, const IntBindings& fixed) {
  std::set<std::string> names;
  expr.collect_variables(names);
  std::map<std::string, IntExpr> replacements;
  for (const std::string& name : names) {
    const auto found = fixed.find(name);
    if (found != fixed.end()) replacements[name] = IntExpr(found->second);
  }
  return expr.substitute(replacements);
}

Result<SlotExpr> SlotExpr::create(const IntExpr& expr, const IntBindings& fixed, std::span<const std::string> tunables,
                                  const std::string& subject) {
  const IntExpr open = with_fixed(expr, fixed);
  std::set<std::string> names;
  open.collect_variables(names);
  std::vector<int> used;
  for (std::size_t slot = 0; slot < tunables.size(); ++slot) {
    if (names.erase(tunables[slot]) != 0) used.push_back(static_cast<int>(slot));
  }
  if (names.empty()) return SlotExpr(open, tunables, std::move(used));
  std::vector<std::string> known(tunables.begin(), tunables.end());
  for (const auto& [name, value] : fixed) known.push_back(name);
  const std::string near = nearest_name(*names.begin(), known);
  return fail(Stage::kSpace, Code::kBadInput,
              fmt::format("{}: {} is neither a tunable, a binding, a limit nor a problem variable{}", subject, *names.begin(),
                          near.empty() ? "" : "; did you mean " + near + "?"));
}

std::int64_t SlotExpr::evaluate(std::span<const std::int64_t> values, bool& is_valid) const { return code_.evaluate(values, is_valid); }

Result<std::vector<std::vector<std::int64_t>>> tunable_values(const SpaceContext& context) {
  const TemplateInfo& info = *context.info;
  std::vector<std::string> names;
  for (const Tunable& tunable : info.tunables) names.push_back(tunable.name);
  for (const auto& [name, values] : context.overrides) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      const std::string near = nearest_name(name, names);
      return fail(Stage::kSpace, Code::kBadInput,
                  fmt::format("[tune] {}: {} has no such tunable{}", name, info.name, near.empty() ? "" : "; did you mean " + near + "?"),
                  override_place(context, name));
    }
    if (values.empty())
      return fail(Stage::kSpace, Code::kBadInput, fmt::format("[tune] {}: the list of values is empty", name),
                  override_place(context, name));
  }
  std::vector<std::vector<std::int64_t>> result;
  for (const Tunable& tunable : info.tunables) {
    const auto replaced = context.overrides.find(tunable.name);
    const std::vector<std::int64_t>& values = replaced == context.overrides.end() ? tunable.values : replaced->second;
    std::vector<std::int64_t> distinct;
    std::set<std::int64_t> seen;
    for (const std::int64_t value : values) {
      if (seen.insert(value).second) distinct.push_back(value);
    }
    const auto of_problem = context.problem.find(tunable.problem_variable);
    if (replaced == context.overrides.end() && of_problem != context.problem.end() && seen.insert(of_problem->second).second)
      distinct.push_back(of_problem->second);
    result.push_back(std::move(distinct));
  }
  return result;
}

void decode_point(std::uint64_t ordinal, const std::vector<std::vector<std::int64_t>>& values, SpacePoint& point) {
  point.digits.resize(values.size());
  point.values.resize(values.size());
  for (std::size_t slot = values.size(); slot-- > 0;) {
    const std::uint64_t size = values[slot].size();
    point.digits[slot] = ordinal % size;
    point.values[slot] = values[slot][point.digits[slot]];
    ordinal /= size;
  }
}

RememberedExpr::RememberedExpr(SlotExpr expr, const std::vector<std::vector<std::int64_t>>& values) : expr_(std::move(expr)) {
  std::uint64_t size = 1;
  for (const int slot : expr_.used()) {
    weights_.push_back(size);
    size = std::min<std::uint64_t>(size * values[static_cast<std::size_t>(slot)].size(), kMaxRemembered + 1);
  }
  if (size <= kMaxRemembered) entries_.resize(size);
}

RememberedExpr::Entry RememberedExpr::evaluate(const SpacePoint& point) const {
  bool is_valid = true;
  const std::int64_t value = expr_.evaluate(point.values, is_valid);
  return {value, is_valid ? State::kKnown : State::kInvalid};
}

std::optional<std::int64_t> RememberedExpr::at(const SpacePoint& point) {
  Entry computed;
  Entry* entry = &computed;
  if (!entries_.empty()) {
    std::uint64_t position = 0;
    for (std::size_t i = 0; i < weights_.size(); ++i) position += point.digits[static_cast<std::size_t>(expr_.used()[i])] * weights_[i];
    entry = &entries_[position];
  }
  if (entry->state == State::kUnknown) *entry = evaluate(point);
  return entry->state == State::kKnown ? std::optional<std::int64_t>(entry->value) : std::nullopt;
}

}  // namespace kw::generator
