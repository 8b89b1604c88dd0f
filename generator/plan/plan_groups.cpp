// Program -> fusion groups: intermediates are inlined, the reductions of every output are collected and made equal by name.
// One kernel: of one contraction, or of rows. Why a program is no contraction is kept for the refusals, by name and line.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "generator/plan/expr_tools.h"
#include "generator/plan/fusion_group.h"
#include "generator/plan/list_match.h"
#include "generator/plan/row_match.h"
#include "generator/spec/walk.h"

namespace kw::generator {
namespace {

using Kind = ExprNode::Kind;

tl::unexpected<Error> not_made(const std::string& what, const SourceRange& where) {
  return fail(Stage::kPlan, Code::kNotSupported, "not made yet: " + what, where);
}

/// "line 12: acc", or "acc" where the line is not known.
std::string place(const Statement& statement) {
  return statement.where.line > 0 ? fmt::format("line {}: {}", statement.where.line, statement.target) : statement.target;
}

Status check_declarations(const Program& program) {
  for (const Index& index : program.indices) {
    if (!index.ragged_offsets.empty())
      return not_made(fmt::format("index {}: a ragged extent (offsets {})", index.name, index.ragged_offsets), {});
  }
  return {};
}

/// Equal nodes become one, so that a value that is reached on several ways, under whatever names of indices, is there once.
class NodeSharing {
 public:
  ExprRef shared(const ExprRef& expr) {
    const auto known = by_node_.find(expr.get());
    if (known != by_node_.end()) return known->second;
    std::vector<ExprRef> operands;
    for (const ExprRef& operand : expr->operands) operands.push_back(shared(operand));
    std::string key = fmt::format("{} {} {:a} {} {} {} {} {}", static_cast<int>(expr->kind), static_cast<int>(expr->dtype), expr->number,
                                  static_cast<int>(expr->function), static_cast<int>(expr->reduce_op), expr->parameter, expr->name,
                                  fmt::join(expr->indices, ","));
    for (const ExprRef& operand : operands) key += fmt::format(" {}", fmt::ptr(operand.get()));
    ExprRef& node = by_key_[key];
    if (!node && operands == expr->operands) node = expr;
    if (!node) {
      ExprNode rebuilt = *expr;
      rebuilt.operands = std::move(operands);
      node = std::make_shared<const ExprNode>(std::move(rebuilt));
    }
    alive_.push_back(expr);
    return by_node_[expr.get()] = node;
  }
  std::size_t num_nodes() const { return by_key_.size(); }

 private:
  std::unordered_map<const ExprNode*, ExprRef> by_node_;
  std::unordered_map<std::string, ExprRef> by_key_;
  std::vector<ExprRef> alive_;  ///< keeps the nodes behind by_node_
};

/// Whether a reduction that keeps its index (softmax, cumsum) keeps this one: then the index stands for its surrounding value.
bool keeps_index(const ExprRef& expr, const std::string& index) {
  return any_node(expr, [&](const ExprRef& node) {
    const bool keeps = node->kind == Kind::kReduce && (node->reduce_op == ReduceOp::kSoftmax || node->reduce_op == ReduceOp::kCumSum);
    return keeps && node->indices.front() == index;
  });
}

/// Kernels work reductions out whether they are needed or not. In a branch of where, one that may leave its tensors' axes takes the
/// branch's condition along: what it gives elsewhere is not used.
ExprRef with_guarded_reductions(const ExprRef& expr, const ExprRef& condition, const Program& program) {
  if (!contains_reduction(expr)) return expr;
  auto node = std::make_shared<ExprNode>(*expr);
  if (expr->kind == Kind::kCall && expr->function == Function::kWhere) {
    const ExprRef& taken = expr->operands[0];
    const auto both = [&](const ExprRef& other) { return condition ? make_call(Function::kAnd, {condition, other}, DType::kBool) : other; };
    node->operands[0] = with_guarded_reductions(taken, condition, program);
    node->operands[1] = with_guarded_reductions(expr->operands[1], both(taken), program);
    node->operands[2] = with_guarded_reductions(expr->operands[2], both(make_call(Function::kNot, {taken}, DType::kBool)), program);
    return node;
  }
  for (ExprRef& operand : node->operands) operand = with_guarded_reductions(operand, condition, program);
  // A condition on an index that the reduction binds, or a softmax keeps, is another element's inside of it.
  const std::set<std::string> bound(expr->indices.begin(), expr->indices.end());
  if (expr->kind == Kind::kReduce && condition && !depends_on(condition, bound) && !stays_inside(expr, program)) {
    const ExprRef& operand = node->operands[0];
    node->operands[0] = make_call(Function::kWhere, {condition, operand, make_number(0, operand->dtype)}, operand->dtype);
  }
  return node;
}

/// Replaces reads of earlier statements by their values.
class Inliner {
 public:
  explicit Inliner(const Program& program) : program_(program) {}

  Result<ExprRef> inlined(const Statement& statement) {
    Error error;
    bool has_failed = false;
    const ExprRef value = rewrite(statement.value, [&](const ExprRef& node) -> ExprRef {
      if (node->kind != Kind::kRead || has_failed) return nullptr;
      const auto written = values_.find(node->name);
      if (written == values_.end()) return nullptr;
      Result<ExprRef> replaced = read_value(node, *written->second.statement, written->second.value);
      if (replaced) return *replaced;
      error = replaced.error();
      has_failed = true;
      return nullptr;
    });
    if (has_failed) return fail(error);
    const ExprRef result = sharing_.shared(with_guarded_reductions(value, nullptr, program_));
    if (sharing_.num_nodes() > kMaxNodes)
      return not_made(
          fmt::format("{} has more than {} different parts when its intermediates are written out", statement.target, kMaxNodes),
          statement.where);
    return result;
  }

  void define(const Statement& statement, const ExprRef& value) { values_[statement.target] = {&statement, value}; }

 private:
  struct Written {
    const Statement* statement = nullptr;
    ExprRef value;
  };

  Result<ExprRef> read_value(const ExprRef& read, const Statement& statement, ExprRef value) const {
    std::map<std::string, ExprRef> replacements;
    for (std::size_t axis = 0; axis < statement.subscripts.size(); ++axis) {
      const ExprRef& left = statement.subscripts[axis];
      if (left->kind != Kind::kIndex || replacements.count(left->name) != 0) {
        return not_made(fmt::format("{} is read back after it is written at {}[{}]", read->name, statement.target, to_text(left)),
                        read->where);
      }
      replacements[left->name] = read->operands.at(axis);
    }
    // An index that a softmax keeps is bound in it: other positions can be put in place only when the softmax is written out.
    const auto moves = [](const auto& entry) { return entry.second->kind != Kind::kIndex || entry.second->name != entry.first; };
    const auto is_kept = [&](const auto& entry) { return keeps_index(value, entry.first); };
    if (std::any_of(replacements.begin(), replacements.end(), moves) && std::any_of(replacements.begin(), replacements.end(), is_kept)) {
      KW_TRY(value, expand_reductions(value, program_));
    }
    const bool is_same = std::all_of(replacements.begin(), replacements.end(), [](const auto& replacement) {
      return replacement.second->kind == Kind::kIndex && replacement.second->name == replacement.first;
    });
    return is_same ? value : substitute_indices(value, replacements);
  }

  static constexpr std::size_t kMaxNodes = 200'000;

  const Program& program_;
  std::map<std::string, Written> values_;
  NodeSharing sharing_;
};

/// The first reduction that cannot be a contraction, as an error.
Status check_reduction(const ExprRef& reduction, const Program& program) {
  std::string owner = to_text(reduction);
  for (const Statement& statement : program.statements) {
    if (statement.where.line > 0 && statement.where.line == reduction->where.line) owner = place(statement);
  }
  if (reduction->reduce_op != ReduceOp::kSum) {
    return not_made(fmt::format("{} ({}): reductions other than a sum of products", to_text(reduction->reduce_op), owner),
                    reduction->where);
  }
  if (contains_reduction(reduction->operands[0])) {
    return not_made(fmt::format("a reduction inside a reduction ({}) in one kernel", owner), reduction->where);
  }
  const std::set<std::string> reduced(reduction->indices.begin(), reduction->indices.end());
  int num_operands = 0;
  for (const Factor& factor : product_factors(reduction->operands[0])) num_operands += depends_on(factor.expr, reduced) ? 1 : 0;
  if (num_operands < 2) {
    return not_made(fmt::format("sum[{}] over one factor ({}): row reductions", fmt::join(reduction->indices, ","), owner),
                    reduction->where);
  }
  return {};
}

/// Names of the free indices of a reduction in the order in which they occur; its bound ones are not free.
void collect_order(const ExprRef& expr, const std::set<std::string>& bound, std::vector<std::string>& order) {
  visit_nodes(expr, [&](const ExprRef& node) {
    if (node->kind == Kind::kIndex && bound.count(node->name) == 0 && std::find(order.begin(), order.end(), node->name) == order.end())
      order.push_back(node->name);
    return true;
  });
}

struct Shape {
  std::string text;  ///< with free and bound indices numbered in order of occurrence
  std::vector<std::string> free, bound;
};

Shape shape_of(const ExprRef& reduction) {
  Shape shape;
  shape.bound = reduction->indices;
  collect_order(reduction->operands[0], {shape.bound.begin(), shape.bound.end()}, shape.free);
  std::map<std::string, ExprRef> renames;
  for (std::size_t i = 0; i < shape.free.size(); ++i) renames[shape.free[i]] = make_index(fmt::format("free{}'", i));
  for (std::size_t i = 0; i < shape.bound.size(); ++i) renames[shape.bound[i]] = make_index(fmt::format("bound{}'", i));
  shape.text = fmt::format("{} {}", shape.bound.size(), to_text(substitute_indices(reduction->operands[0], renames)));
  return shape;
}

bool have_equal_extents(const std::vector<std::string>& a, const std::vector<std::string>& b, const Program& program) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Index* left = find_program_index(program, a[i]);
    const Index* right = find_program_index(program, b[i]);
    if (left == nullptr || right == nullptr || !(left->extent == right->extent)) return false;
  }
  return true;
}

/// Renames the indices of `output` so that its contraction reads like the group's first one. False: it is another contraction.
bool align_names(FusionGroup::Output& output, const ExprRef& first, const Program& program) {
  std::vector<ExprRef> reductions;
  collect_reductions(output.value, reductions);
  const Shape wanted = shape_of(first);
  const Shape found = shape_of(reductions.front());
  if (wanted.text != found.text || !have_equal_extents(wanted.free, found.free, program) ||
      !have_equal_extents(wanted.bound, found.bound, program))
    return false;
  std::map<std::string, ExprRef> renames;
  for (std::size_t i = 0; i < found.free.size(); ++i) renames[found.free[i]] = make_index(wanted.free[i]);
  for (const std::string& index : output.indices) {  // an index that only this output has must not take a name that is in use
    if (renames.count(index) == 0 && std::find(wanted.free.begin(), wanted.free.end(), index) != wanted.free.end())
      renames[index] = make_index(index + "'");
  }
  for (ExprRef& subscript : output.subscripts) subscript = substitute_indices(subscript, renames);
  for (std::string& index : output.indices) {
    const auto renamed = renames.find(index);
    if (renamed != renames.end()) index = renamed->second->name;
  }
  output.value = replace_reductions(substitute_indices(output.value, renames), [&](const ExprRef& reduction) {
    const Shape shape = shape_of(reduction);
    return shape.text == wanted.text && shape.free == wanted.free && have_equal_extents(shape.bound, wanted.bound, program) ? first
                                                                                                                            : reduction;
  });
  return true;
}

tl::unexpected<Error> several_contractions(const Program& program, const FusionGroup& group) {
  std::string places;
  for (const Statement& statement : program.statements) {
    if (!contains_reduction(statement.value)) continue;
    places += (places.empty() ? "" : ", ") + place(statement);
  }
  return not_made(fmt::format("two contractions ({}) in one kernel", places), group.contractions.back()->where);
}

/// The contraction that the first output with one has. Error when there is none, or a reduction that is no contraction.
Result<ExprRef> first_contraction(const FusionGroup& group, const Program& program) {
  ExprRef first;
  for (const FusionGroup::Output& output : group.outputs) {
    std::vector<ExprRef> reductions;
    collect_reductions(output.value, reductions);
    for (const ExprRef& reduction : reductions) KW_TRY_VOID(check_reduction(reduction, program));
    if (!first && !reductions.empty()) first = reductions.front();
  }
  if (first) return first;
  const FusionGroup::Output& output = group.outputs.front();
  return not_made(fmt::format("{} has no contraction: pointwise kernels", output.tensor), output.value->where);
}

/// Makes the contractions of all outputs one, by name; two distinct ones are left as they are. Error when something else is reduced.
Status find_contractions(FusionGroup& group, const Program& program) {
  KW_TRY(const ExprRef first, first_contraction(group, program));
  for (FusionGroup::Output& output : group.outputs) {
    // An output without the contraction is written along with the others, if it has their indices (the matcher checks).
    if (!contains_reduction(output.value)) continue;
    bool is_aligned = align_names(output, first, program);
    for (std::size_t known = 0; known < group.contractions.size() && !is_aligned; ++known)
      is_aligned = align_names(output, group.contractions[known], program);
    std::vector<ExprRef> reductions;
    collect_reductions(output.value, reductions);
    for (const ExprRef& reduction : reductions) {
      const bool is_known = std::any_of(group.contractions.begin(), group.contractions.end(),
                                        [&](const ExprRef& known) { return to_text(known) == to_text(reduction); });
      if (!is_known) group.contractions.push_back(reduction);
    }
    if (!is_aligned || group.contractions.size() > 2) return several_contractions(program, group);
  }
  if (group.contractions.size() == 2) group.why_no_contraction = several_contractions(program, group).value().message;
  return {};
}

/// Whether two factors of the product each have an index that the other lacks: a tile of products shares their elements.
bool is_matrix_product(const ExprRef& reduction) {
  const std::set<std::string> reduced(reduction->indices.begin(), reduction->indices.end());
  std::vector<std::set<std::string>> own;
  for (const Factor& factor : product_factors(reduction->operands[0])) {
    if (!depends_on(factor.expr, reduced)) continue;
    std::vector<std::string> order;
    collect_order(factor.expr, reduced, order);
    own.emplace_back(order.begin(), order.end());
  }
  for (const auto& a : own) {
    for (const auto& b : own) {
      if (!std::includes(a.begin(), a.end(), b.begin(), b.end()) && !std::includes(b.begin(), b.end(), a.begin(), a.end())) return true;
    }
  }
  return false;
}

bool has_matrix_product(const ExprRef& expr) {
  return any_node(expr, [](const ExprRef& node) {
    return node->kind == Kind::kReduce && node->reduce_op == ReduceOp::kSum && is_matrix_product(node);
  });
}

}  // namespace

Result<std::vector<FusionGroup>> plan_groups(const Program& program) {
  KW_TRY_VOID(check_declarations(program));
  KW_TRY_VOID(check_bounds(program));
  Inliner inliner(program);
  FusionGroup group;
  for (const Statement& statement : program.statements) {
    KW_TRY(const ExprRef value, inliner.inlined(statement));
    // A read of a tensor is its value before the kernel; the checker makes an intermediate of a value that is read back.
    if (!statement.is_tensor) inliner.define(statement, value);
    if (statement.is_tensor) group.outputs.push_back({statement.target, statement.subscripts, statement.indices, value});
  }
  if (group.outputs.empty()) return fail(Stage::kPlan, Code::kBadInput, fmt::format("{}: no output is written", program.name));

  FusionGroup with_contraction = group;
  const Status status = find_contractions(with_contraction, program);
  if (status) return std::vector<FusionGroup>{std::move(with_contraction)};
  group.why_no_contraction = status.error().message;
  return std::vector<FusionGroup>{std::move(group)};
}

bool has_matrix_product(const FusionGroup& group) {
  return std::any_of(group.outputs.begin(), group.outputs.end(),
                     [](const FusionGroup::Output& output) { return has_matrix_product(output.value); });
}

}  // namespace kw::generator
