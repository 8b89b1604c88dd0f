// See walk.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/spec/walk.h"

#include <algorithm>
#include <unordered_set>

namespace kw::generator {

void visit_nodes(const ExprRef& expr, const std::function<bool(const ExprRef&)>& enter) {
  std::unordered_set<const ExprNode*> seen;
  const auto visit = [&](const auto& self, const ExprRef& node) -> void {
    if (!seen.insert(node.get()).second || !enter(node)) return;
    for (const ExprRef& operand : node->operands) self(self, operand);
  };
  visit(visit, expr);
}

bool any_node(const ExprRef& expr, const std::function<bool(const ExprRef&)>& is_wanted) {
  bool has_any = false;
  visit_nodes(expr, [&](const ExprRef& node) {
    has_any = has_any || is_wanted(node);
    return !has_any;
  });
  return has_any;
}

std::int64_t count_parts(const ExprRef& expr, std::int64_t limit) {
  std::int64_t count = 1;
  for (const ExprRef& operand : expr->operands) {
    if (count >= limit) return limit;
    count += count_parts(operand, limit - count);
  }
  return std::min(count, limit);
}

}  // namespace kw::generator
