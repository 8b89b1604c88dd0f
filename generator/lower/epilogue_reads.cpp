// See epilogue_reads.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/lower/epilogue_reads.h"

#include <algorithm>

#include "generator/plan/expr_tools.h"

namespace kw::generator {
namespace {

using Kind = ExprNode::Kind;

class Collector {
 public:
  Collector(const PatternMatch& match, const Program& program) : match_(match), program_(program) {}

  void visit(const ExprRef& expr, bool is_conditional) {
    if (!visited_[is_conditional ? 1 : 0].insert(expr.get()).second) return;
    if (expr->kind == Kind::kRead && program_.find_tensor(expr->name) != nullptr) add(expr, is_conditional);
    const bool is_where = expr->kind == Kind::kCall && expr->function == Function::kWhere;
    for (std::size_t i = 0; i < expr->operands.size(); ++i) visit(expr->operands[i], is_conditional || (is_where && i > 0));
  }

  std::vector<EpilogueRead> take() { return std::move(reads_); }

 private:
  void add(const ExprRef& expr, bool is_conditional) {
    const auto [position, is_new] = positions_.emplace(to_text(expr), reads_.size());
    if (is_new) {
      const Tensor* tensor = program_.find_tensor(expr->name);
      EpilogueRead read;
      read.node = expr;
      read.offset = offset_in_tensor(*tensor, expr->operands);
      read.is_inside = is_inside(*expr, *tensor);
      reads_.push_back(std::move(read));
    }
    if (!is_conditional) reads_[position->second].is_unconditional = true;
  }

  bool is_inside(const ExprNode& read, const Tensor& tensor) const {
    const std::vector<IntExpr> shape = subscripted_shape(tensor);
    for (std::size_t axis = 0; axis < read.operands.size(); ++axis) {
      if (read.operands[axis]->kind != Kind::kIndex) return false;
      const auto extent = match_.extents.find(read.operands[axis]->name);
      if (extent == match_.extents.end() || !are_equal(extent->second, shape[axis])) return false;
    }
    return true;
  }

  const PatternMatch& match_;
  const Program& program_;
  std::set<const ExprNode*> visited_[2];
  std::map<std::string, std::size_t> positions_;
  std::vector<EpilogueRead> reads_;
};

}  // namespace

bool EpilogueRead::is_vector() const {
  return std::all_of(offset.terms.begin(), offset.terms.end(),
                     [](const auto& entry) { return entry.second.atom->kind == Kind::kIndex || !depends_on(entry.second.atom, {"n"}); });
}

std::vector<EpilogueRead> collect_reads(const PatternMatch& match, const Program& program) {
  Collector collector(match, program);
  for (const PatternMatch::Reduction& reduction : match.reductions) collector.visit(reduction.operand, false);
  for (const PatternMatch::Output& output : match.outputs) collector.visit(output.value, false);
  if (match.length) collector.visit(match.length, false);
  return collector.take();
}

}  // namespace kw::generator
