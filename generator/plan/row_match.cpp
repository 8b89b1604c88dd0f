// See row_match.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/plan/row_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "generator/base/stable_sort.h"
#include "generator/plan/expr_tools.h"
#include "generator/plan/index_groups.h"
#include "generator/spec/walk.h"

namespace kw::generator {
namespace {

using Kind = ExprNode::Kind;

/// The free indices of an expression in order of occurrence.
class FreeIndices {
 public:
  explicit FreeIndices(const ExprRef& expr) { visit(expr, {}); }
  const std::vector<std::string>& order() const { return order_; }

 private:
  void visit(const ExprRef& expr, std::set<std::string> bound) {
    if (expr->kind == Kind::kReduce) bound.insert(expr->indices.begin(), expr->indices.end());
    if (!seen_[bound].insert(expr.get()).second) return;
    if (expr->kind == Kind::kIndex && bound.count(expr->name) == 0 && std::find(order_.begin(), order_.end(), expr->name) == order_.end())
      order_.push_back(expr->name);
    for (const ExprRef& operand : expr->operands) visit(operand, bound);
  }

  std::map<std::set<std::string>, std::unordered_set<const ExprNode*>> seen_;  ///< by the indices bound around a node
  std::vector<std::string> order_;
};

/// Whether each read of the output's tensor is one of the element that the output writes.
bool reads_only_own_element(const ExprRef& expr, const PatternMatch::Output& output) {
  return !any_node(expr, [&](const ExprRef& node) {
    if (node->kind != Kind::kRead || node->name != output.tensor) return false;
    for (std::size_t axis = 0; axis < output.subscripts.size(); ++axis) {
      if (to_text(node->operands[axis]) != to_text(output.subscripts[axis])) return true;
    }
    return false;
  });
}

class RowMatcher {
 public:
  RowMatcher(const FusionGroup& group, const Program& program, std::string& why_not)
      : group_(group), program_(program), why_not_(why_not) {}

  std::optional<PatternMatch> match() {
    for (const FusionGroup::Output& output : group_.outputs) {
      const Result<ExprRef> expanded = expand_reductions(output.value, program_);
      if (!expanded) return refuse(expanded.error().message);
      values_.push_back(*expanded);
    }
    for (const ExprRef& value : values_) {
      if (!find_reduced(value) || !check_nested(value, {})) return std::nullopt;
    }
    if (!find_column() || !find_rows()) return std::nullopt;
    order_rows();
    PatternMatch result;
    result.accumulate = program_.accumulate;
    result.uses_tf32 = program_.uses_tf32;
    result.counts_columns = std::any_of(group_.outputs.begin(), group_.outputs.end(), [](const FusionGroup::Output& output) {
      return any_node(output.value, [](const ExprRef& node) {
        return node->kind == Kind::kReduce && (node->reduce_op == ReduceOp::kArgmax || node->reduce_op == ReduceOp::kCount ||
                                               node->reduce_op == ReduceOp::kTopK || node->reduce_op == ReduceOp::kTopKIndex);
      });
    });
    result.index_map = {{"m", rows_.name()}, {"n", column_}};
    result.extents = {{"m", rows_.extent()}, {"n", normalise(column_extent_)}, {"shared", shared_extent()}};
    for (std::size_t i = 0; i < group_.outputs.size(); ++i) {
      std::optional<PatternMatch::Output> output = output_of(i, result.reductions);
      if (!output) return std::nullopt;
      result.outputs.push_back(std::move(*output));
    }
    kw::stable_sort(result.reductions, [](const auto& a, const auto& b) { return a.phase < b.phase; });
    if (!check_written(result)) return std::nullopt;
    for (const PatternMatch::Output& output : result.outputs) count_bytes(output.value, result);
    const auto is_shared = [this](const ExprRef& node) {
      return node->kind == Kind::kRead && program_.find_tensor(node->name) != nullptr && is_shared_by_rows(node);
    };
    for (const PatternMatch::Reduction& reduction : result.reductions) {
      count_bytes(reduction.operand, result);
      result.columns_are_reduced = result.columns_are_reduced || any_node(reduction.operand, is_shared);
    }
    return result;
  }

 private:
  std::nullopt_t refuse(std::string reason) {
    why_not_ = std::move(reason);
    return std::nullopt;
  }
  bool fails(std::string reason) {
    why_not_ = std::move(reason);
    return false;
  }

  /// Notes the rows and the extent of every reduction.
  bool find_reduced(const ExprRef& value) {
    return !any_node(value, [this](const ExprRef& node) { return node->kind == Kind::kReduce && !note_reduced(node); });
  }

  bool note_reduced(const ExprRef& expr) {
    if (expr->indices.size() != 1)
      return fails(fmt::format("{} over {}: reductions over several indices are not made yet", to_text(expr->reduce_op),
                               fmt::join(expr->indices, ",")));
    if (!is_float(expr->dtype) || expr->dtype != program_.accumulate)
      return fails(fmt::format("{}: reductions of integers are not made yet", to_text(expr)));
    const IntExpr& extent = find_program_index(program_, expr->indices.front())->extent;
    if (has_reduction_ && !are_equal(extent, column_extent_))
      return fails(fmt::format("reductions over {} and over {} elements: one kernel has rows of one length", column_extent_.to_text(),
                               extent.to_text()));
    has_reduction_ = true;
    column_extent_ = extent;
    const FreeIndices free(expr);
    free_of_reductions_.insert(free.order().begin(), free.order().end());
    return true;
  }

  /// A reduction inside another is one of the row: it may not depend on the index that the outer one runs over, also where a row index has
  /// the same name (a softmax keeps its own).
  bool check_nested(const ExprRef& expr, const std::set<std::string>& bound) {
    if (expr->kind == Kind::kReduce && !bound.empty()) {
      const FreeIndices free(expr);
      for (const std::string& index : free.order()) {
        if (bound.count(index) != 0)
          return fails(fmt::format("{} depends on {}, over which a reduction around it runs: one kernel reduces along the rows alone",
                                   to_text(expr), index));
      }
    }
    if (!checked_[bound].insert(expr.get()).second) return true;
    std::set<std::string> inner = bound;
    if (expr->kind == Kind::kReduce) inner.insert(expr->indices.begin(), expr->indices.end());
    return std::all_of(expr->operands.begin(), expr->operands.end(), [&](const ExprRef& operand) { return check_nested(operand, inner); });
  }

  /// The index of the outputs that runs along the rows: none when the outputs are of rows alone.
  bool find_column() {
    for (const FusionGroup::Output& output : group_.outputs) {
      for (const std::string& index : output.indices) {
        const bool may_run = !has_reduction_ || (free_of_reductions_.count(index) == 0 &&
                                                 are_equal(find_program_index(program_, index)->extent, column_extent_));
        if (!may_run) continue;
        // Of a pointwise output the one along which it is contiguous.
        const bool is_better = column_.empty() || (!has_reduction_ && is_contiguous(output, index) && !is_contiguous(output, column_));
        if (is_better) column_ = index;
      }
      if (!column_.empty()) break;
    }
    if (!has_reduction_) column_extent_ = column_.empty() ? IntExpr(1) : find_program_index(program_, column_)->extent;
    return true;
  }

  bool is_contiguous(const FusionGroup::Output& output, const std::string& index) const {
    Access access;
    std::string ignored;
    if (!make_access(output.tensor, output.subscripts, program_, access, ignored)) return false;
    const auto stride = access.strides.find(index);
    return stride != access.strides.end() && stride->second == IntExpr(1);
  }

  bool find_rows() {
    std::vector<std::string> rows;
    const auto add = [&](const std::string& index) {
      if (index != column_ && std::find(rows.begin(), rows.end(), index) == rows.end()) rows.push_back(index);
    };
    for (const FusionGroup::Output& output : group_.outputs) {
      for (const std::string& index : output.indices) add(index);
    }
    for (const std::string& index : free_of_reductions_) add(index);
    for (const FusionGroup::Output& output : group_.outputs) {
      for (const std::string& index : rows) {
        if (std::find(output.indices.begin(), output.indices.end(), index) == output.indices.end())
          return fails(fmt::format("output {} has no index {}: outputs of other rows are not made yet", output.tensor, index));
      }
    }
    for (const std::string& index : rows) {
      rows_.indices.push_back(index);
      rows_.extents.push_back(find_program_index(program_, index)->extent);
    }
    return true;
  }

  /// The order in which most accesses find one row behind the other.
  void order_rows() {
    std::vector<Access> accesses;
    std::string ignored;
    for (const FusionGroup::Output& output : group_.outputs) add_access(output.tensor, output.subscripts, accesses);
    std::vector<const Access*> of_outputs, all;
    const std::size_t num_outputs = accesses.size();
    for (const ExprRef& value : values_) add_reads(value, accesses);
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      (i < num_outputs ? of_outputs : all).push_back(&accesses[i]);
      if (i < num_outputs) all.push_back(&accesses[i]);
    }
    if (!flatten(rows_, all, ignored)) flatten(rows_, of_outputs, ignored);
  }

  /// Of a product of matrices, row by row: how often the operand that is read least often is read. 1 where there is no such product.
  IntExpr shared_extent() const {
    if (!has_matrix_product(group_)) return IntExpr(1);
    std::optional<IntExpr> least;
    const auto add_read = [&](const ExprRef& node) {
      if (node->kind != Kind::kRead || program_.find_tensor(node->name) == nullptr) return true;
      const IntExpr repeats = num_repeats(node);
      if (!least || !are_equal(*least, repeats)) least = least ? IntExpr::make(IntExpr::Op::kMin, {*least, repeats}) : repeats;
      return true;
    };
    const auto add_reduction = [&](const ExprRef& node) {
      if (node->kind != Kind::kReduce) return true;
      visit_nodes(node->operands[0], add_read);
      return false;
    };
    for (const ExprRef& value : values_) visit_nodes(value, add_reduction);
    return least ? normalise(*least) : IntExpr(1);
  }

  /// How many rows read the same element.
  IntExpr num_repeats(const ExprRef& read) const {
    const FreeIndices free(read);
    const std::vector<std::string>& used = free.order();
    IntExpr repeats(1);
    for (std::size_t i = 0; i < rows_.indices.size(); ++i) {
      if (std::find(used.begin(), used.end(), rows_.indices[i]) == used.end()) repeats = repeats * rows_.extents[i];
    }
    return repeats;
  }

  void add_access(const std::string& tensor, const std::vector<ExprRef>& subscripts, std::vector<Access>& accesses) const {
    Access access;
    std::string ignored;
    if (program_.find_tensor(tensor) != nullptr && make_access(tensor, subscripts, program_, access, ignored)) accesses.push_back(access);
  }

  void add_reads(const ExprRef& expr, std::vector<Access>& accesses) const {
    visit_nodes(expr, [&](const ExprRef& node) {
      if (node->kind == Kind::kRead) add_access(node->name, node->operands, accesses);
      return true;
    });
  }

  /// The expression over m and n; its reductions become reads of their results.
  std::optional<ExprRef> over_pattern(const ExprRef& expr, std::vector<PatternMatch::Reduction>& reductions) {
    bool has_failed = false;
    const ExprRef without = rewrite(expr, [&](const ExprRef& node) -> ExprRef {
      if (node->kind != Kind::kReduce || has_failed) return nullptr;
      const std::set<std::string> bound(node->indices.begin(), node->indices.end());
      const FreeIndices free(node);
      for (const std::string& index : free.order()) {
        const bool is_row = std::find(rows_.indices.begin(), rows_.indices.end(), index) != rows_.indices.end();
        if (is_row) continue;
        has_failed = true;
        why_not_ = fmt::format("{} depends on {}, which is no index of the rows: not made yet", to_text(node), index);
        return nullptr;
      }
      std::map<std::string, ExprRef> names = rows_.member_values("m");
      names[node->indices.front()] = make_index("n");
      return result_of(node->reduce_op, substitute_indices(node->operands[0], names), reductions);
    });
    if (has_failed) return std::nullopt;
    std::map<std::string, ExprRef> names = rows_.member_values("m");
    if (!column_.empty()) names[column_] = make_index("n");
    return substitute_indices(without, names);
  }

  /// A read of the reduction's result; equal reductions are one.
  ExprRef result_of(ReduceOp op, const ExprRef& operand, std::vector<PatternMatch::Reduction>& reductions) {
    const std::string text = fmt::format("{} {}", to_text(op), to_text(operand));
    const auto [known, is_new] = names_.emplace(text, "");
    if (is_new) {
      PatternMatch::Reduction reduction;
      reduction.op = op;
      reduction.operand = operand;
      reduction.phase = phase_of(operand, reductions);
      const std::string wanted = fmt::format("row_{}", to_text(op));
      reduction.name = wanted;
      for (int number = 2; is_taken(reduction.name, reductions); ++number) reduction.name = fmt::format("{}_{}", wanted, number);
      known->second = reduction.name;
      reductions.push_back(std::move(reduction));
    }
    ExprNode read;
    read.kind = Kind::kRead;
    read.dtype = program_.accumulate;
    read.name = known->second;
    return std::make_shared<const ExprNode>(std::move(read));
  }

  bool is_taken(const std::string& name, const std::vector<PatternMatch::Reduction>& reductions) const {
    return program_.find_tensor(name) != nullptr ||
           std::any_of(reductions.begin(), reductions.end(), [&](const auto& other) { return other.name == name; });
  }

  static int phase_of(const ExprRef& expr, const std::vector<PatternMatch::Reduction>& reductions) {
    int phase = 0;
    visit_nodes(expr, [&](const ExprRef& node) {
      if (node->kind != Kind::kRead) return true;
      const auto found = std::find_if(reductions.begin(), reductions.end(), [&](const auto& other) { return other.name == node->name; });
      if (found != reductions.end()) phase = std::max(phase, found->phase + 1);
      return true;
    });
    return phase;
  }

  std::optional<PatternMatch::Output> output_of(std::size_t position, std::vector<PatternMatch::Reduction>& reductions) {
    const FusionGroup::Output& output = group_.outputs[position];
    PatternMatch::Output result;
    result.tensor = output.tensor;
    result.dtype = program_.find_tensor(output.tensor)->dtype;
    const std::optional<ExprRef> value = over_pattern(values_[position], reductions);
    if (!value) return std::nullopt;
    result.value = *value;
    for (const ExprRef& subscript : output.subscripts) result.subscripts.push_back(*over_pattern(subscript, reductions));
    return result;
  }

  void count_bytes(const ExprRef& expr, PatternMatch& result) {
    visit_nodes(expr, [&](const ExprRef& node) {
      const Tensor* tensor = node->kind == Kind::kRead ? program_.find_tensor(node->name) : nullptr;
      result.has_const_rows = result.has_const_rows || is_const_row(node, program_);
      if (tensor == nullptr || !depends_on(node, {"n"}) || !counted_.insert(to_text(node)).second) return true;
      result.bytes_per_column += size_bytes(tensor->dtype);
      if (!is_shared_by_rows(node)) result.row_bytes_per_column += size_bytes(tensor->dtype);
      return true;
    });
  }

  /// A tensor that the kernel writes may be read only at its own row, and outside reductions only at the element that the same thread
  /// writes. One thread writes the outputs of one element a row, after it has read all that they need: no other thread may read those.
  bool check_written(const PatternMatch& match) {
    for (const PatternMatch::Output& output : match.outputs) {
      if (runs_along_row(output)) continue;
      // What is read at other subscripts than plain indices may be read where it is used, after other values were stored.
      const bool is_read_first = std::all_of(output.subscripts.begin(), output.subscripts.end(),
                                             [](const ExprRef& subscript) { return subscript->kind == Kind::kIndex; });
      const auto is_read = [&](const PatternMatch::Output& reader) {
        return reader.tensor != output.tensor && (runs_along_row(reader) || !is_read_first) && reads(reader.value, output.tensor);
      };
      const auto is_reduced = [&](const PatternMatch::Reduction& reduction) { return reads(reduction.operand, output.tensor); };
      if (std::any_of(match.outputs.begin(), match.outputs.end(), is_read) ||
          std::any_of(match.reductions.begin(), match.reductions.end(), is_reduced))
        return fails(
            fmt::format("{} has one element a row, is updated in place and also read for other values: not made yet", output.tensor));
    }
    for (const PatternMatch::Output& output : match.outputs) {
      const auto check = [&](const ExprRef& expr) {
        if (reads_only_own_element(expr, output)) return true;
        return fails(fmt::format("{} is written and also read at other elements: not made yet", output.tensor));
      };
      for (const PatternMatch::Output& reader : match.outputs) {
        if (!check(reader.value)) return false;
      }
      for (const PatternMatch::Reduction& reduction : match.reductions) {
        if (!check(reduction.operand)) return false;
      }
    }
    return true;
  }

  static bool runs_along_row(const PatternMatch::Output& output) {
    return std::any_of(output.subscripts.begin(), output.subscripts.end(),
                       [](const ExprRef& subscript) { return depends_on(subscript, {"n"}); });
  }

  static bool reads(const ExprRef& expr, const std::string& tensor) {
    return any_node(expr, [&](const ExprRef& node) { return node->kind == Kind::kRead && node->name == tensor; });
  }

  const FusionGroup& group_;
  const Program& program_;
  std::string& why_not_;
  std::vector<ExprRef> values_;  ///< of the outputs, reductions expanded
  bool has_reduction_ = false;
  IntExpr column_extent_{1};
  std::string column_;
  std::map<std::set<std::string>, std::unordered_set<const ExprNode*>> checked_;  ///< by check_nested, by the indices bound around a node
  std::set<std::string> free_of_reductions_;
  IndexGroup rows_;
  std::set<std::string> counted_;             ///< texts of reads
  std::map<std::string, std::string> names_;  ///< text of a reduction -> name of its result
};

}  // namespace

bool is_shared_by_rows(const ExprRef& read) { return depends_on(read, {"n"}) && !depends_on(read, {"m"}); }

bool is_const_row(const ExprRef& node, const Program& program) {
  const Tensor* const tensor = node->kind == Kind::kRead ? program.find_tensor(node->name) : nullptr;
  const auto has_data = [](const ExprRef& subscript) {
    return any_node(subscript, [](const ExprRef& inner) { return inner->kind == Kind::kRead; });
  };
  return tensor != nullptr && tensor->is_const && depends_on(node, {"n"}) && !is_shared_by_rows(node) &&
         std::none_of(node->operands.begin(), node->operands.end(), has_data);
}

std::optional<PatternMatch> match_row(const FusionGroup& group, const Program& program, std::string& why_not) {
  return RowMatcher(group, program, why_not).match();
}

}  // namespace kw::generator
