// Checks statements in their order: targets, left sides, values, and at the end that every declared name has a use.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "generator/spec/checker.h"
#include "generator/spec/typing.h"

namespace kw::generator {

namespace {

/// Names read by an expression, as far as statements define them.
void collect_reads(const SyntaxRef& node, const std::map<std::string, SourceRange>& targets, std::set<std::string>& reads) {
  const bool is_named = node->kind == SyntaxNode::Kind::kName || node->kind == SyntaxNode::Kind::kRead;
  if (is_named && targets.contains(node->name)) reads.insert(node->name);
  for (const SyntaxRef& operand : node->operands) collect_reads(operand, targets, reads);
  for (const auto& [keyword, value] : node->keywords) collect_reads(value, targets, reads);
}

/// Every name that an expression mentions, and every name that stands as an index of a reduction.
void collect_mentions(const SyntaxRef& node, CheckContext& context) {
  const bool is_value = node->kind == SyntaxNode::Kind::kName || node->kind == SyntaxNode::Kind::kRead;
  if (is_value) context.used.insert(node->name);
  context.index_names.insert(node->brackets.begin(), node->brackets.end());
  for (const SyntaxRef& operand : node->operands) collect_mentions(operand, context);
  for (const auto& [keyword, value] : node->keywords) collect_mentions(value, context);
}

void collect_statement_mentions(const StatementSyntax& statement, CheckContext& context) {
  collect_mentions(statement.value, context);
  for (const SyntaxRef& subscript : statement.subscripts) {
    collect_mentions(subscript, context);
    if (subscript->kind == SyntaxNode::Kind::kName && !context.kinds.contains(subscript->name)) context.index_names.insert(subscript->name);
  }
}

/// Reports each cycle of intermediates and outputs once. Returns the names on cycles, whose statements are not checked further.
std::set<std::string> report_cycles(CheckContext& context, const std::vector<StatementSyntax>& statements) {
  std::map<std::string, std::set<std::string>> reads;
  for (const StatementSyntax& statement : statements) {
    const Tensor* tensor = context.program.find_tensor(statement.target);
    if (tensor != nullptr && tensor->role != TensorRole::kOut) continue;  // an inout reads its old value
    collect_reads(statement.value, context.targets, reads[statement.target]);
  }
  std::set<std::string> on_cycle, done;
  std::vector<std::string> path;
  // The number of statements is limited (kMaxStatements), so this recursion is too.
  const std::function<void(const std::string&)> visit = [&](const std::string& name) {
    const auto start = std::find(path.begin(), path.end(), name);
    if (start != path.end()) {
      const std::vector<std::string> cycle(start, path.end());
      const bool is_known = std::any_of(cycle.begin(), cycle.end(), [&](const std::string& member) { return on_cycle.contains(member); });
      if (!is_known)
        context.error(context.targets.at(name),
                      fmt::format("a cycle: {} -> {}: no order of the statements computes it", fmt::join(cycle, " -> "), name));
      on_cycle.insert(cycle.begin(), cycle.end());
      return;
    }
    if (!done.insert(name).second) return;
    path.push_back(name);
    for (const std::string& read : reads[name]) visit(read);
    path.pop_back();
  };
  for (const StatementSyntax& statement : statements) visit(statement.target);
  return on_cycle;
}

class StatementChecker {
 public:
  StatementChecker(CheckContext& context, const StatementSyntax& syntax) : context_(context), syntax_(syntax) {}

  void check() {
    if (!check_target()) return;
    const bool has_left = tensor_ != nullptr ? check_tensor_left() : check_intermediate_left();
    statement_.target = syntax_.target;
    statement_.where = syntax_.where;
    statement_.is_tensor = tensor_ != nullptr;
    ExpressionTyper typer(context_, indices_);
    statement_.value = typer.type(syntax_.value);
    const bool is_right = has_left && statement_.value && check_size() && (tensor_ == nullptr || check_type());
    if (!is_right && (tensor_ == nullptr || !statement_.value)) context_.broken.insert(syntax_.target);
    if (tensor_ == nullptr) {
      Defined& defined = context_.intermediates[syntax_.target];
      defined.indices = indices_;
      defined.where = syntax_.where;
      defined.dtype = statement_.value ? statement_.value->dtype : context_.real_type();
      if (is_right) defined.size = tree_size(statement_.value, context_);
    } else {
      context_.written.emplace(syntax_.target, syntax_.where);
    }
    if (!is_right) return;
    statement_.indices = indices_;
    context_.program.statements.push_back(std::move(statement_));
  }

 private:
  bool check_target() {
    tensor_ = context_.program.find_tensor(syntax_.target);
    const std::string& name = syntax_.target;
    if (tensor_ != nullptr) {
      if (tensor_->role != TensorRole::kIn) return true;
      context_.error(syntax_.where, fmt::format("{} is an input: declare role = \"out\" or \"inout\" to write it", name));
      return false;
    }
    const auto kind = context_.kinds.find(name);
    if (kind != context_.kinds.end()) {
      context_.error(syntax_.where, fmt::format("{} is {}: a statement cannot write it", name, kind->second));
      return false;
    }
    if (find_builtin(name) != nullptr || find_reduction(name) || name == "cast" || name == "new" || name == "inf" || name == "nan" ||
        name == "true" || name == "false") {
      context_.error(syntax_.where, fmt::format("'{}' is a word of the notation: it cannot name a value", name));
      return false;
    }
    const auto defined = context_.intermediates.find(name);
    if (defined == context_.intermediates.end()) return true;
    context_.error(syntax_.where, fmt::format("{} is written twice: first in line {}", name, defined->second.where.line));
    return false;
  }

  void collect_indices(const SyntaxRef& node) {
    if (node->kind == SyntaxNode::Kind::kName) {
      const std::string& name = node->name;
      const bool is_index = !context_.kinds.contains(name) && !context_.targets.contains(name) && name != "inf" && name != "nan" &&
                            name != "true" && name != "false";
      if (is_index && std::find(indices_.begin(), indices_.end(), name) == indices_.end()) {
        indices_.push_back(name);
        context_.extents.mention(name, node->where);
      }
    }
    for (const SyntaxRef& operand : node->operands) collect_indices(operand);
  }

  bool check_intermediate_left() {
    bool is_right = true;
    for (const SyntaxRef& subscript : syntax_.subscripts) {
      const std::size_t before = indices_.size();
      if (subscript->kind == SyntaxNode::Kind::kName) collect_indices(subscript);
      if (indices_.size() == before + 1) {
        statement_.subscripts.push_back(make_index(subscript->name));
        continue;
      }
      context_.error(subscript->where,
                     fmt::format("{} is no declared tensor{}: on the left side of an intermediate stand distinct indices alone",
                                 syntax_.target, suggest(context_, syntax_.target)));
      is_right = false;
    }
    return is_right && check_bounds();
  }

  bool check_tensor_left() {
    std::vector<IntExpr> axes = tensor_->shape;
    if (!tensor_->list_dim.empty()) axes.insert(axes.begin(), IntExpr::variable(tensor_->list_dim));
    for (const SyntaxRef& subscript : syntax_.subscripts) collect_indices(subscript);
    if (syntax_.subscripts.size() != axes.size()) {
      context_.error(syntax_.where, fmt::format("{} has {} axes, but {} subscripts stand on the left", syntax_.target, axes.size(),
                                                syntax_.subscripts.size()));
      return false;
    }
    bool is_right = true;
    std::map<std::string, std::size_t> axis_of;
    ExpressionTyper typer(context_, indices_);
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      ExprRef subscript = typer.type_integer(syntax_.subscripts[axis], "a subscript");
      if (!subscript || !check_affine(subscript, syntax_.subscripts[axis]->where)) {
        is_right = false;
        continue;
      }
      if (subscript->kind == ExprNode::Kind::kIndex)
        context_.extents.use(subscript->name, axes[axis], fmt::format("axis {} of {}", axis, syntax_.target), subscript->where);
      is_right = check_axis_indices(subscript, axis, axis_of) && is_right;
      statement_.subscripts.push_back(std::move(subscript));
    }
    return is_right && check_bounds();
  }

  /// An index on two axes writes only a diagonal.
  bool check_axis_indices(const ExprRef& expr, std::size_t axis, std::map<std::string, std::size_t>& axis_of) {
    if (expr->kind == ExprNode::Kind::kIndex) {
      const auto [entry, is_new] = axis_of.emplace(expr->name, axis);
      if (!is_new && entry->second != axis) {
        context_.error(expr->where, fmt::format("index {} stands on two axes of {}: the statement would write a diagonal alone", expr->name,
                                                syntax_.target));
        return false;
      }
    }
    return std::all_of(expr->operands.begin(), expr->operands.end(),
                       [&](const ExprRef& operand) { return check_axis_indices(operand, axis, axis_of); });
  }

  static bool has_index(const ExprRef& expr) {
    return expr->kind == ExprNode::Kind::kIndex || std::any_of(expr->operands.begin(), expr->operands.end(), has_index);
  }

  bool check_affine(const ExprRef& expr, const SourceRange& where) {
    if (tree_size(expr, context_).num_nodes > 1000) {
      context_.error(where, "a left subscript has more than 1000 parts");
      return false;
    }
    if (is_affine(expr)) return true;
    context_.error(where,
                   fmt::format("the left subscript {} is not affine: it must be a sum of indices, each times a factor of dims and numbers",
                               to_text(expr)));
    return false;
  }

  static bool is_affine(const ExprRef& expr) {
    if (!has_index(expr)) return as_int_expr(expr).has_value();
    if (expr->kind == ExprNode::Kind::kIndex) return true;
    if (expr->kind != ExprNode::Kind::kCall) return false;
    switch (expr->function) {
      case Function::kAdd:
      case Function::kSub:
      case Function::kNeg:
        break;
      case Function::kMul:
        if (has_index(expr->operands[0]) && has_index(expr->operands[1])) return false;
        break;
      default:
        return false;
    }
    return std::all_of(expr->operands.begin(), expr->operands.end(), is_affine);
  }

  bool check_bounds() {
    for (const std::string& index : indices_) {
      const auto needs = context_.below_needs.find(index);
      if (needs == context_.below_needs.end()) continue;
      for (const std::string& needed : needs->second) {
        if (std::find(indices_.begin(), indices_.end(), needed) != indices_.end()) continue;
        context_.error(syntax_.where, fmt::format("the bound of index {} reads index {}, which is not on the left side", index, needed));
        return false;
      }
    }
    return true;
  }

  bool check_size() {
    const TreeSize size = tree_size(statement_.value, context_);
    if (size.num_nodes <= kMaxExpandedNodes && size.depth <= kMaxExpandedDepth) return true;
    context_.error(syntax_.where,
                   fmt::format("{} has more than {} parts or {} levels when its intermediates and functions are written out",
                               syntax_.target, kMaxExpandedNodes, kMaxExpandedDepth),
                   Code::kNotSupported);
    return false;
  }

  bool check_type() {
    const DType target = tensor_->dtype, value = statement_.value->dtype;
    if ((target == DType::kBool) != (value == DType::kBool)) {
      context_.error(syntax_.where,
                     target == DType::kBool
                         ? fmt::format("{} is bool, but its value has type {}: compare it, as in x != 0", syntax_.target, to_text(value))
                         : fmt::format("{} has dtype {}, but its value is a bool: write where(c, 1, 0)", syntax_.target, to_text(target)));
      return false;
    }
    if (is_integer(target) && is_float(value)) {
      context_.error(syntax_.where, fmt::format("{} has dtype {}, but its value is real ({}): write cast(..., {})", syntax_.target,
                                                to_text(target), to_text(value), to_text(target)));
      return false;
    }
    if (statement_.value->kind == ExprNode::Kind::kNumber && is_float(target) && is_float(context_.real_type()))
      statement_.value = make_number(statement_.value->number, context_.real_type());
    return true;
  }

  CheckContext& context_;
  const StatementSyntax& syntax_;
  const Tensor* tensor_ = nullptr;
  std::vector<std::string> indices_;
  Statement statement_;
};

}  // namespace

void check_statements(CheckContext& context, const std::vector<StatementSyntax>& statements) {
  for (const StatementSyntax& statement : statements) {
    context.targets.emplace(statement.target, statement.where);
    collect_statement_mentions(statement, context);
  }
  for (const StatementSyntax& statement : context.syntax.statements) collect_statement_mentions(statement, context);  // sugar that failed
  for (const ChainStep& step : context.syntax.chain) collect_mentions(step.value, context);
  const std::set<std::string> on_cycle = report_cycles(context, statements);
  context.broken.insert(on_cycle.begin(), on_cycle.end());
  for (const StatementSyntax& statement : statements) {
    if (!on_cycle.contains(statement.target)) StatementChecker(context, statement).check();
  }
}

void check_all_used(CheckContext& context) {
  for (const Tensor& tensor : context.program.tensors) {
    const bool is_written = context.targets.contains(tensor.name), is_read = context.used.contains(tensor.name);
    if (tensor.role == TensorRole::kIn && !is_read && !is_written)
      context.error(tensor.where, fmt::format("tensor {} is never read", tensor.name));
    if (tensor.role != TensorRole::kIn && !is_written)
      context.error(tensor.where, fmt::format("tensor {} has role {}, but no statement writes it", tensor.name, to_text(tensor.role)));
  }
  for (const auto& [name, where] : context.targets) {
    const bool is_intermediate = context.program.find_tensor(name) == nullptr && context.intermediates.contains(name);
    if (is_intermediate && !context.used.contains(name))
      context.error(where, fmt::format("{} is computed but never read: declare it under [tensors] with role = \"out\", or remove it{}",
                                       name, suggest(context, name)));
  }
  for (const Dim& dim : context.program.dims) {
    if (context.used.contains(dim.name)) continue;
    for (const DimSyntax& syntax : context.syntax.dims) {
      if (syntax.name == dim.name) context.error(syntax.where, fmt::format("dim {} is never used", dim.name));
    }
  }
  for (const ScalarSyntax& scalar : context.syntax.scalars) {
    if (!context.used.contains(scalar.name)) context.error(scalar.where, fmt::format("scalar {} is never used", scalar.name));
  }
}

}  // namespace kw::generator
