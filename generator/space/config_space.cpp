// Enumerates every point of a template's space and keeps or refuses it by the first rule that fails, in the template's order.
// A rule depends on few tunables: its outcomes are remembered in a table over those, so that a point costs one look-up a rule.
// Refusals keep the rule only; their text with the numbers is made when somebody asks.
// SPDX-License-Identifier: Apache-2.0
#include "generator/space/config_space.h"

#include <fmt/format.h>

#include <algorithm>

#include "generator/base/stable_sort.h"
#include "generator/space/refusal_text.h"
#include "generator/space/slots.h"

namespace kw::generator {
namespace {

/// Each refused point is stored (16 bytes), each kept one ranked: 2^22 points take some seconds and 64 MiB. The templates' own spaces have
/// up to 7 * 10^5 points.
constexpr std::uint64_t kMaxPoints = std::uint64_t{1} << 22;

/// Where the spec lists the most values; nowhere when it lists none.
SourceRange longest_override(const SpaceContext& context) {
  const auto longest = std::max_element(context.overrides.begin(), context.overrides.end(),
                                        [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  return longest == context.overrides.end() ? SourceRange{} : override_place(context, longest->first);
}

Result<std::uint64_t> count_points(const SpaceContext& context, const std::vector<std::vector<std::int64_t>>& values) {
  std::uint64_t count = 1;
  for (const auto& list : values) {
    if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(list.size()), &count) || count > kMaxPoints) {
      return fail(Stage::kSpace, Code::kBadInput,
                  fmt::format("{}: the space has more than {} points; narrow it under [tune]", context.info->name, kMaxPoints),
                  longest_override(context));
    }
  }
  return count;
}

}  // namespace

struct ConfigSpace::Impl {
  TemplateInfo info;
  IntBindings fixed;
  std::vector<std::vector<std::int64_t>> values;  ///< by tunable
  std::uint64_t num_points = 0;
  std::vector<std::uint64_t> kept;
  std::vector<RefusedConfig> refused;
  std::vector<int> rule_codes;  ///< RefusedConfig::rule of each rule of the template

  IntBindings config_values(std::uint64_t ordinal) const {
    SpacePoint point;
    decode_point(ordinal, values, point);
    IntBindings result;
    for (std::size_t slot = 0; slot < values.size(); ++slot) result[info.tunables[slot].name] = point.values[slot];
    return result;
  }

  void classify_points(std::vector<RememberedExpr>& rules) {
    SpacePoint point;
    for (std::uint64_t ordinal = 0; ordinal < num_points; ++ordinal) {
      decode_point(ordinal, values, point);
      std::size_t rule = 0;
      while (rule < rules.size() && rules[rule].at(point).value_or(0) != 0) ++rule;  // a rule that cannot be evaluated does not hold
      if (rule == rules.size()) {
        kept.push_back(ordinal);
      } else {
        refused.push_back({ordinal, rule_codes[rule]});
      }
    }
  }
};

Result<ConfigSpace> ConfigSpace::enumerate(const SpaceContext& context) {
  KW_CHECK(context.info != nullptr, "a space belongs to a template");
  auto impl = std::make_shared<Impl>();
  impl->info = *context.info;
  impl->fixed = fixed_bindings(context);
  KW_TRY(impl->values, tunable_values(context));
  KW_TRY(impl->num_points, count_points(context, impl->values));
  std::vector<std::string> names;
  for (const Tunable& tunable : impl->info.tunables) names.push_back(tunable.name);
  struct Compiled {
    Rule rule;
    int code;
    SlotExpr expr;
    bool refuses_all;
  };
  std::vector<Compiled> compiled;
  int num_problem_rules = 0;
  for (std::size_t i = 0; i < impl->info.rules.size(); ++i) {
    const Rule& rule = impl->info.rules[i];
    const int code = rule.is_on_problem ? -1 - num_problem_rules++ : static_cast<int>(i);
    KW_TRY(SlotExpr expr, SlotExpr::create(rule.expression, impl->fixed, names, fmt::format("{}: rule {}", impl->info.name, rule.name)));
    bool is_valid = true;
    const std::vector<std::int64_t> any_point(names.size(), 0);
    const bool refuses_all = expr.used().empty() && (expr.evaluate(any_point, is_valid) == 0 || !is_valid);
    compiled.push_back({rule, code, std::move(expr), refuses_all});
  }
  // A rule that no config keeps is the reason, and the others need not be asked.
  kw::stable_sort(compiled, [](const Compiled& a, const Compiled& b) { return a.refuses_all && !b.refuses_all; });
  impl->info.rules.clear();
  std::vector<RememberedExpr> rules;
  for (Compiled& one : compiled) {
    impl->info.rules.push_back(std::move(one.rule));
    impl->rule_codes.push_back(one.code);
    rules.emplace_back(std::move(one.expr), impl->values);
  }
  impl->classify_points(rules);
  ConfigSpace space;
  space.impl_ = std::move(impl);
  return space;
}

std::uint64_t ConfigSpace::num_points() const { return impl_->num_points; }
const std::vector<std::uint64_t>& ConfigSpace::kept() const { return impl_->kept; }
const std::vector<RefusedConfig>& ConfigSpace::refused() const { return impl_->refused; }

Config ConfigSpace::config_at(std::uint64_t ordinal) const {
  KW_CHECK(ordinal < impl_->num_points, "an ordinal is a position in the enumeration");
  return {impl_->info.name, impl_->config_values(ordinal)};
}

std::string ConfigSpace::refusal_text(const RefusedConfig& refused) const {
  const auto code = std::find(impl_->rule_codes.begin(), impl_->rule_codes.end(), refused.rule);
  KW_CHECK(code != impl_->rule_codes.end(), "a refusal names a rule of its template");
  IntBindings bindings = impl_->fixed;
  for (const auto& [name, value] : impl_->config_values(refused.ordinal)) bindings[name] = value;
  return broken_rule_text(impl_->info.rules[static_cast<std::size_t>(code - impl_->rule_codes.begin())], bindings);
}

bool is_for_one_extent(const TemplateInfo& info, const Config& config) {
  return std::any_of(info.tunables.begin(), info.tunables.end(), [&](const Tunable& tunable) {
    const auto value = config.values.find(tunable.name);
    return !tunable.problem_variable.empty() && value != config.values.end() && value->second != tunable.default_value;
  });
}

std::string variant_id(const TemplateInfo& info, const Config& config) {
  std::string id = info.name + "_";
  for (const Tunable& tunable : info.tunables) {
    const auto value = config.values.find(tunable.name);
    KW_CHECK(value != config.values.end(), "a config has a value for every tunable");
    id += value->second < 0 ? fmt::format("_{}neg{}", tunable.key, -value->second) : fmt::format("_{}{}", tunable.key, value->second);
  }
  return id;
}

}  // namespace kw::generator
