// See list_match.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/plan/list_match.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "generator/plan/expr_tools.h"
#include "generator/plan/linear_form.h"
#include "generator/plan/row_match.h"
#include "generator/spec/walk.h"

namespace kw::generator {
namespace {

using Kind = ExprNode::Kind;

const Tensor* list_of(const Program& program, const std::string& name) {
  const Tensor* tensor = program.find_tensor(name);
  return tensor != nullptr && !tensor->list_dim.empty() ? tensor : nullptr;
}

std::string why_index(const Program& program, const std::string& name) {
  const Index* index = find_program_index(program, name);
  if (index == nullptr || !index->below) return "";
  return fmt::format("index {}: an extent that depends on data (below = {})", index->name, to_text(index->below));
}

std::string why_tensor(const Program& program, const std::string& name) {
  const Tensor* tensor = list_of(program, name);
  return tensor == nullptr ? "" : fmt::format("tensor {}: lists of tensors (list = \"{}\")", tensor->name, tensor->list_dim);
}

std::string why_expr(const Program& program, const ExprRef& expr) {
  std::string reason;
  visit_nodes(expr, [&](const ExprRef& node) {
    if (reason.empty() && node->kind == Kind::kRead) reason = why_tensor(program, node->name);
    if (reason.empty() && node->kind == Kind::kReduce) {
      for (const std::string& index : node->indices) reason = reason.empty() ? why_index(program, index) : reason;
    }
    return reason.empty();
  });
  return reason;
}

/// The two indices of a statement or a reduction over a list.
struct Pair {
  std::string m, n;
};

class ListMatcher {
 public:
  ListMatcher(const FusionGroup& group, const Program& program, std::string& why_not)
      : group_(group), program_(program), why_not_(why_not) {}

  std::optional<PatternMatch> match() {
    if (needs_list(program_).empty()) return refuse("reads and writes no list of tensors, and no extent depends on data");
    PatternMatch result;
    result.is_list = true;
    result.accumulate = program_.accumulate;
    result.uses_tf32 = program_.uses_tf32;
    for (const FusionGroup::Output& output : group_.outputs) {
      if (!add_output(output, result)) return std::nullopt;
    }
    result.index_map = {{"m", pair_.m}, {"n", pair_.n}};
    result.extents = {{"m", normalise(find_program_index(program_, pair_.m)->extent)},
                      {"n", normalise(find_program_index(program_, pair_.n)->extent)}};
    result.length = length_;
    if (!check_written(result)) return std::nullopt;
    for (const PatternMatch::Output& output : result.outputs) count_bytes(output.value, result);
    for (const PatternMatch::Reduction& reduction : result.reductions) count_bytes(reduction.operand, result);
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

  bool add_output(const FusionGroup::Output& output, PatternMatch& result) {
    if (!check_reductions(output.value)) return false;
    const Result<ExprRef> expanded = expand_reductions(output.value, program_);
    if (!expanded) return fails(expanded.error().message);
    ExprRef value = *expanded;
    const bool is_single = output.indices.empty();
    if (is_single && !contains_reduction(value))
      return fails(fmt::format("{} is a single value that no reduction over the list makes: a kernel of its own", output.tensor));
    if (!is_single && contains_reduction(value))
      return fails(fmt::format("{} needs the reduction over the whole list: a later kernel makes it", output.tensor));
    PatternMatch::Output made;
    made.tensor = output.tensor;
    made.dtype = program_.find_tensor(output.tensor)->dtype;
    if (is_single) {
      if (!take_reductions(value, result)) return false;
      made.value = value;
    } else {
      Pair pair;
      if (!find_pair(output.indices, value, &output, pair) || !check_positions(value, pair)) return false;
      made.value = over_pattern(value, pair);
      for (const ExprRef& subscript : output.subscripts) made.subscripts.push_back(over_pattern(subscript, pair));
      if (list_of(program_, output.tensor) != nullptr && to_text(made.subscripts.front()) != "m")
        return fails(fmt::format("{} is written at another position of the list than that of its index: not made yet", output.tensor));
    }
    result.outputs.push_back(std::move(made));
    return true;
  }

  /// What a reduction over a list is made of: results of CTAs that are joined in any grouping.
  bool check_reductions(const ExprRef& value) {
    return !any_node(value, [&](const ExprRef& node) {
      if (node->kind != Kind::kReduce) return false;
      const ReduceOp op = node->reduce_op;
      const bool is_made = op == ReduceOp::kSum || op == ReduceOp::kProd || op == ReduceOp::kMax || op == ReduceOp::kMin ||
                           op == ReduceOp::kAny || op == ReduceOp::kAll;
      return !is_made &&
             !fails(fmt::format("{} over a list of tensors, or over an extent that depends on data: not made yet", to_text(op)));
    });
  }

  bool take_reductions(ExprRef& value, PatternMatch& result) {
    std::vector<ExprRef> reductions;
    collect_reductions(value, reductions);
    std::map<const ExprNode*, ExprRef> results;
    for (const ExprRef& reduction : reductions) {
      Pair pair;
      const ExprRef& operand = reduction->operands[0];
      if (contains_reduction(operand))
        return fails(fmt::format("{} reduces what depends on a reduction: a later kernel makes it", to_text(reduction)));
      if (!is_float(reduction->dtype) || reduction->dtype != program_.accumulate)
        return fails(fmt::format("{}: reductions of integers are not made yet", to_text(reduction)));
      if (!find_pair(reduction->indices, operand, nullptr, pair) || !check_positions(operand, pair)) return false;
      results[reduction.get()] = result_of(reduction->reduce_op, over_pattern(operand, pair), result);
    }
    value = replace_reductions(value, [&](const ExprRef& reduction) { return results.at(reduction.get()); });
    return true;
  }

  /// Which index counts tensors and which one elements. All statements of a kernel must agree on the extents.
  bool find_pair(const std::vector<std::string>& indices, const ExprRef& value, const FusionGroup::Output* output, Pair& pair) {
    if (indices.size() != 2)
      return fails(
          fmt::format("[{}]: a kernel over a list has one index for its tensors and one for their elements: others are not made yet",
                      fmt::join(indices, ",")));
    for (const int column : {0, 1}) {
      const std::string& n = indices[static_cast<std::size_t>(column)];
      const std::string& m = indices[static_cast<std::size_t>(1 - column)];
      const auto runs = [&](const std::string& tensor, const std::vector<ExprRef>& subscripts) {
        return list_of(program_, tensor) != nullptr && subscripts.front()->kind == Kind::kIndex && subscripts.front()->name == m;
      };
      const bool is_read =
          any_node(value, [&](const ExprRef& node) { return node->kind == Kind::kRead && runs(node->name, node->operands); });
      const bool is_written = output != nullptr && runs(output->tensor, output->subscripts);
      if (find_program_index(program_, n)->below || is_read || is_written) pair = {m, n};
    }
    if (pair.m.empty()) return fails(fmt::format("[{}]: neither index counts the tensors of a list", fmt::join(indices, ",")));
    return agree(pair);
  }

  bool agree(const Pair& pair) {
    const Index* m = find_program_index(program_, pair.m);
    const Index* n = find_program_index(program_, pair.n);
    if (m->below) return fails(why_index(program_, pair.m) + ": of tensors of a list: not made yet");
    const ExprRef length = n->below ? over_pattern(n->below, pair) : nullptr;
    if (length && (depends_on(length, {"n"}) || contains_reduction(length)))
      return fails(fmt::format("index {}: its bound {} is no value of its tensor: not made yet", pair.n, to_text(n->below)));
    if (pair_.m.empty()) {
      pair_ = pair;
      length_ = length;
      return true;
    }
    const bool has_same_bound = (length == nullptr) == (length_ == nullptr) && (!length || to_text(length) == to_text(length_));
    if (!are_equal(m->extent, find_program_index(program_, pair_.m)->extent) ||
        !are_equal(n->extent, find_program_index(program_, pair_.n)->extent) || !has_same_bound)
      return fails(fmt::format("[{},{}] and [{},{}] have other extents: one kernel has one list", pair.m, pair.n, pair_.m, pair_.n));
    return true;
  }

  /// Every tensor of a list is read at the position that its kernel is at.
  bool check_positions(const ExprRef& value, const Pair& pair) {
    return !any_node(value, [&](const ExprRef& node) {
      const Tensor* list = node->kind == Kind::kRead ? list_of(program_, node->name) : nullptr;
      if (list == nullptr) return false;
      if (list->shape.size() != 1)
        return !fails(fmt::format("tensor {}: a list of tensors of {} axes: one is made (say how many elements each has)", list->name,
                                  list->shape.size()));
      const ExprRef& position = node->operands.front();
      if (position->kind == Kind::kIndex && position->name == pair.m) return false;
      return !fails(fmt::format("{} is read at another position of the list: not made yet", to_text(node)));
    });
  }

  static ExprRef over_pattern(const ExprRef& expr, const Pair& pair) {
    return substitute_indices(expr, {{pair.m, make_index("m")}, {pair.n, make_index("n")}});
  }

  /// A read of the reduction's result; equal reductions are one.
  ExprRef result_of(ReduceOp op, const ExprRef& operand, PatternMatch& result) const {
    const auto is_same = [&](const PatternMatch::Reduction& known) { return known.op == op && to_text(known.operand) == to_text(operand); };
    auto known = std::find_if(result.reductions.begin(), result.reductions.end(), is_same);
    if (known == result.reductions.end()) {
      PatternMatch::Reduction reduction;
      reduction.op = op;
      reduction.operand = operand;
      const std::string wanted = fmt::format("list_{}", to_text(op));
      reduction.name = wanted;
      const auto is_taken = [&](const std::string& name) {
        return program_.find_tensor(name) != nullptr ||
               std::any_of(result.reductions.begin(), result.reductions.end(), [&](const auto& other) { return other.name == name; });
      };
      for (int number = 2; is_taken(reduction.name); ++number) reduction.name = fmt::format("{}_{}", wanted, number);
      result.reductions.push_back(std::move(reduction));
      known = result.reductions.end() - 1;
    }
    ExprNode read;
    read.kind = Kind::kRead;
    read.dtype = program_.accumulate;
    read.name = known->name;
    return std::make_shared<const ExprNode>(std::move(read));
  }

  /// Elements are read by the thread that writes them, and before it does. Single values are written by the last CTA, while others may
  /// still be at work: nothing of this kernel reads them but their own new value.
  bool check_written(const PatternMatch& match) {
    for (const PatternMatch::Output& output : match.outputs) {
      const auto is_foreign = [&](const ExprRef& expr, bool may_read) {
        return any_node(expr, [&](const ExprRef& node) {
          if (node->kind != Kind::kRead || node->name != output.tensor) return false;
          if (!may_read) return true;
          for (std::size_t axis = 0; axis < output.subscripts.size(); ++axis) {
            if (to_text(node->operands[axis]) != to_text(output.subscripts[axis])) return true;
          }
          return false;
        });
      };
      const bool is_single = output.subscripts.empty();
      const auto is_wrong = [&](const PatternMatch::Output& reader) {
        return is_foreign(reader.value, !is_single || reader.tensor == output.tensor);
      };
      const bool is_refused = std::any_of(match.outputs.begin(), match.outputs.end(), is_wrong) ||
                              std::any_of(match.reductions.begin(), match.reductions.end(),
                                          [&](const auto& reduction) { return is_foreign(reduction.operand, !is_single); }) ||
                              (match.length && is_foreign(match.length, false));
      if (is_refused) return fails(fmt::format("{} is written and also read at other elements: not made yet", output.tensor));
    }
    return true;
  }

  void count_bytes(const ExprRef& expr, PatternMatch& result) {
    visit_nodes(expr, [&](const ExprRef& node) {
      const Tensor* tensor = node->kind == Kind::kRead ? program_.find_tensor(node->name) : nullptr;
      if (tensor == nullptr || !depends_on(node, {"n"}) || !counted_.insert(to_text(node)).second) return true;
      result.bytes_per_column += size_bytes(tensor->dtype);
      result.row_bytes_per_column += size_bytes(tensor->dtype);
      return true;
    });
  }

  const FusionGroup& group_;
  const Program& program_;
  std::string& why_not_;
  Pair pair_;       ///< of the first statement
  ExprRef length_;  ///< over m
  std::set<std::string> counted_;
};

}  // namespace

bool uses_list(const ExprRef& expr, const Program& program) { return !why_expr(program, expr).empty(); }

std::string needs_list(const Program& program) {
  for (const Statement& statement : program.statements) {
    std::string reason = why_tensor(program, statement.target);
    if (reason.empty()) reason = why_expr(program, statement.value);
    for (const std::string& index : statement.indices) reason = reason.empty() ? why_index(program, index) : reason;
    if (!reason.empty()) return reason + ": not made by this template";
  }
  return "";
}

Status check_bounds(const Program& program) {
  std::map<std::string, const Statement*> writers;
  std::optional<Error> error;
  const auto note = [&](const std::string& message, const SourceRange& where) {
    if (!error) error = Error{Stage::kPlan, Code::kNotSupported, "not made yet: " + message, where, {}};
  };
  const auto check_read = [&](const ExprRef& node) {
    const auto writer = node->kind == Kind::kRead ? writers.find(node->name) : writers.end();
    if (writer == writers.end()) return true;
    std::map<std::string, ExprRef> operands;
    for (std::size_t axis = 0; axis < writer->second->indices.size(); ++axis)
      operands[writer->second->subscripts[axis]->name] = node->operands[axis];
    for (const auto& [name, operand] : operands) {
      const Index* written = find_program_index(program, name);
      if (written == nullptr || !written->below) continue;
      const Index* read = operand->kind == Kind::kIndex ? find_program_index(program, operand->name) : nullptr;
      const bool is_same = read != nullptr && read->below && to_text(read->below) == to_text(substitute_indices(written->below, operands));
      if (!is_same)
        note(fmt::format("{} is written along {} up to {}, and read at {}, which has another bound", node->name, name,
                         to_text(written->below), to_text(operand)),
             node->where);
    }
    return true;
  };
  for (const Statement& statement : program.statements) {
    visit_nodes(statement.value, check_read);
    if (!statement.is_tensor) {
      writers[statement.target] = &statement;
      continue;
    }
    const Tensor* tensor = program.find_tensor(statement.target);
    for (const std::string& name : statement.indices) {
      const std::string why = why_index(program, name);
      if (!why.empty() && tensor != nullptr && tensor->role == TensorRole::kOut)
        note(fmt::format("{} has role out and {}; elements past it would hold anything: declare role = \"inout\", they keep their value",
                         statement.target, why),
             statement.where);
    }
  }
  if (error) return fail(*error);
  return {};
}

std::optional<PatternMatch> match_list(const FusionGroup& group, const Program& program, std::string& why_not) {
  return ListMatcher(group, program, why_not).match();
}

}  // namespace kw::generator
