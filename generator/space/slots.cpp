// See slots.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/space/slots.h"

#include <fmt/format.h>

#include <algorithm>

namespace kw::generator {

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

}  // namespace kw::generator
