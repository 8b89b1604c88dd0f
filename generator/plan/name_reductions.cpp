// See name_reductions.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/plan/name_reductions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "generator/plan/expr_tools.h"
#include "generator/plan/list_match.h"
#include "generator/spec/walk.h"

namespace kw::generator {
namespace {

using Kind = ExprNode::Kind;

/// softmax and cumsum have a value for each value of their index.
bool keeps_index(ReduceOp op) { return op == ReduceOp::kSoftmax || op == ReduceOp::kCumSum; }

void collect_free(const ExprRef& expr, const std::set<std::string>& bound, std::set<std::string>& free) {
  if (expr->kind == Kind::kIndex && bound.count(expr->name) == 0) free.insert(expr->name);
  if (expr->kind == Kind::kReduce && !keeps_index(expr->reduce_op)) {
    std::set<std::string> inner = bound;
    inner.insert(expr->indices.begin(), expr->indices.end());
    collect_free(expr->operands[0], inner, free);
    for (std::size_t i = 1; i < expr->operands.size(); ++i) collect_free(expr->operands[i], bound, free);
    return;
  }
  for (const ExprRef& operand : expr->operands) collect_free(operand, bound, free);
}

/// The reduced index that runs along the last axis of a tensor that is read, else the last one: rows are read along memory.
std::string innermost(const ExprNode& reduction) {
  std::string found = reduction.indices.back();
  bool is_found = false;
  visit_nodes(reduction.operands[0], [&](const ExprRef& node) {
    if (is_found || node->kind != Kind::kRead || node->operands.empty() || node->operands.back()->kind != Kind::kIndex) return true;
    const std::string& name = node->operands.back()->name;
    is_found = std::find(reduction.indices.begin(), reduction.indices.end(), name) != reduction.indices.end();
    if (is_found) found = name;
    return true;
  });
  return found;
}

/// Whether the reduction may be made index by index, each over the results of the one inside it. A contraction stays whole.
bool can_nest(const ExprNode& reduction) {
  switch (reduction.reduce_op) {
    case ReduceOp::kSum: {
      const std::set<std::string> reduced(reduction.indices.begin(), reduction.indices.end());
      int num_factors = 0;
      for (const Factor& factor : product_factors(reduction.operands[0])) num_factors += depends_on(factor.expr, reduced) ? 1 : 0;
      return num_factors < 2;
    }
    case ReduceOp::kProd:
    case ReduceOp::kMax:
    case ReduceOp::kMin:
    case ReduceOp::kMean:
    case ReduceOp::kAny:
    case ReduceOp::kAll:
    case ReduceOp::kLogSumExp:
      return true;
    default:
      return false;
  }
}

/// Reductions over several indices as reductions over one, of such reductions: each may be a row of its own.
/// One over a list of tensors is made as a whole.
ExprRef with_nested_reductions(const ExprRef& expr, const Program& program) {
  return rewrite(expr, [&](const ExprRef& node) -> ExprRef {
    if (node->kind != Kind::kReduce || node->indices.size() < 2 || !can_nest(*node) || uses_list(node, program)) return nullptr;
    std::vector<std::string> rest = node->indices;
    const std::string first = innermost(*node);
    rest.erase(std::find(rest.begin(), rest.end(), first));
    ExprRef value = with_nested_reductions(node->operands[0], program);
    std::vector<std::string> order = {first};
    order.insert(order.end(), rest.rbegin(), rest.rend());
    for (const std::string& index : order) {
      ExprNode one = *node;
      one.indices = {index};
      one.operands[0] = value;
      value = std::make_shared<const ExprNode>(std::move(one));
    }
    return value;
  });
}

/// Gives every reduction that is only a part of its statement a statement of its own, so that a cut may go through it.
class ReductionNamer {
 public:
  explicit ReductionNamer(const Program& program) : program_(program) {}

  std::vector<Statement> run() {
    for (const Statement& statement : program_.statements) {
      done_.clear();
      Statement rest = statement;
      rest.value = named(with_nested_reductions(statement.value, program_), statement, true);
      statements_.push_back(std::move(rest));
    }
    return std::move(statements_);
  }

 private:
  /// `is_lazy`: in a branch of where, which may leave its tensors' axes where it is not taken. What may do so stays there.
  ExprRef named(const ExprRef& expr, const Statement& statement, bool is_whole, bool is_lazy = false) {
    if (!contains_reduction(expr)) return expr;
    const auto done = done_.find({expr.get(), is_lazy});
    if (done != done_.end()) return done->second;
    auto node = std::make_shared<ExprNode>(*expr);
    const bool is_where = expr->kind == Kind::kCall && expr->function == Function::kWhere;
    // A sum that is only rounded is whole: it is stored as it is rounded.
    const bool is_rounded = is_whole && expr->kind == Kind::kCast;
    for (std::size_t i = 0; i < expr->operands.size(); ++i)
      node->operands[i] = named(expr->operands[i], statement, is_rounded, is_lazy || (is_where && i > 0));
    ExprRef result = std::move(node);
    if (result->kind == Kind::kReduce && !is_whole && (!is_lazy || stays_inside(result, program_))) result = split_off(result, statement);
    return done_[{expr.get(), is_lazy}] = result;
  }

  ExprRef split_off(const ExprRef& reduction, const Statement& statement) {
    std::set<std::string> free;
    collect_free(reduction, {}, free);
    std::vector<std::string> order;
    for (const std::string& index : statement.indices) {
      if (free.erase(index) != 0) order.push_back(index);
    }
    order.insert(order.end(), free.begin(), free.end());
    std::vector<ExprRef> subscripts;
    for (const std::string& index : order) subscripts.push_back(make_index(index));
    const auto [known, is_new] = names_.emplace(to_text(reduction), "");
    if (is_new) {
      known->second = fresh_name(statement.target, reduction->reduce_op);
      Statement part;
      part.target = known->second;
      part.indices = order;
      part.subscripts = subscripts;
      part.value = reduction;
      part.where = statement.where;
      orders_[known->second] = std::move(order);
      statements_.push_back(std::move(part));
    } else {
      subscripts.clear();
      for (const std::string& index : orders_.at(known->second)) subscripts.push_back(make_index(index));
    }
    return make_read(known->second, std::move(subscripts), reduction);
  }

  std::string fresh_name(const std::string& target, ReduceOp op) const {
    const auto is_taken = [&](const std::string& name) {
      const auto has_name = [&](const Statement& statement) { return statement.target == name; };
      return program_.find_tensor(name) != nullptr || program_.find_index(name) != nullptr || program_.find_scalar(name) != nullptr ||
             std::any_of(program_.statements.begin(), program_.statements.end(), has_name) ||
             std::any_of(statements_.begin(), statements_.end(), has_name);
    };
    std::string name = fmt::format("{}_{}", target, to_text(op));
    for (int number = 2; is_taken(name); ++number) name = fmt::format("{}_{}{}", target, to_text(op), number);
    return name;
  }

  const Program& program_;
  std::vector<Statement> statements_;
  std::map<std::string, std::string> names_;                ///< text of a reduction -> its name
  std::map<std::string, std::vector<std::string>> orders_;  ///< of its indices
  std::map<std::pair<const ExprNode*, bool>, ExprRef> done_;
};

}  // namespace

std::vector<Statement> name_reductions(const Program& program) { return ReductionNamer(program).run(); }

}  // namespace kw::generator
