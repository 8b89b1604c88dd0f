// Unifies a fusion group with what a template states: indices get roles by where they occur, the two operands are tried in both
// orders (the product commutes), and each fit becomes a PatternMatch with extents, strides and the outputs over pattern indices.
// Two contractions with one operand in common: that one is the left, and the right ones have the same indices.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "generator/plan/expr_tools.h"
#include "generator/plan/fusion_group.h"
#include "generator/plan/index_groups.h"
#include "generator/plan/list_match.h"
#include "generator/plan/row_match.h"
#include "generator/spec/walk.h"

namespace kw::generator {
namespace {

using Kind = ExprNode::Kind;

/// The contraction of the group: two plain reads, and factors that do not depend on the reduced indices.
struct Contraction {
  std::string text;  ///< of the reduction
  std::vector<std::string> reduced;
  std::array<ExprRef, 2> reads;
  std::array<Access, 2> accesses;
  std::vector<Factor> scales;
};

/// A second contraction that shares an operand with the first.
struct SecondContraction {
  Contraction contraction;
  std::size_t shared = 0;  ///< which operand of the first it shares
  std::size_t right = 0;   ///< which of its own it does not share
};

/// Names of the pattern's indices by role.
struct Roles {
  std::string batch, left, right, reduced;
};

/// A reading of the group: which access is operand 0, and the program indices of each role.
struct Reading {
  std::array<int, 2> operand = {0, 1};
  IndexGroup batch, left, right, reduced;
};

bool fails(std::string& why_not, std::string reason) {
  why_not = std::move(reason);
  return false;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// A cast of a read to the type it is multiplied in changes nothing.
ExprRef without_widening(const ExprRef& expr, DType accumulate) {
  return expr->kind == Kind::kCast && expr->dtype == accumulate && expr->operands[0]->kind == Kind::kRead ? expr->operands[0] : expr;
}

/// `free`: the output's indices. A bound index of the same name is another one: it gets a mark (n -> n').
bool read_contraction(const ExprRef& reduction, const std::vector<std::string>& free, const Program& program, Contraction& result,
                      std::string& why_not) {
  std::map<std::string, ExprRef> marked;
  for (std::string index : reduction->indices) {
    const std::string old = index;
    while (has(free, index) || (index != old && has(reduction->indices, index))) index += "'";
    if (index != old) marked[old] = make_index(index);
    result.reduced.push_back(index);
  }
  const std::set<std::string> reduced(result.reduced.begin(), result.reduced.end());
  std::vector<ExprRef> operands;
  for (const Factor& factor : product_factors(substitute_indices(reduction->operands[0], marked))) {
    if (!depends_on(factor.expr, reduced)) {
      result.scales.push_back(factor);
      continue;
    }
    const ExprRef read = without_widening(factor.expr, program.accumulate);
    if (factor.is_divisor || read->kind != Kind::kRead) {
      return fails(why_not, fmt::format("factor {}{} of the sum is not a plain read of a tensor", factor.is_divisor ? "1 / " : "",
                                        to_text(factor.expr)));
    }
    operands.push_back(read);
  }
  if (operands.size() != 2)
    return fails(why_not,
                 fmt::format("the sum multiplies {} tensors over {}, the template 2", operands.size(), fmt::join(result.reduced, ",")));
  for (std::size_t i = 0; i < 2; ++i) {
    result.reads[i] = operands[i];
    if (!make_access(operands[i]->name, operands[i]->operands, program, result.accesses[i], why_not)) return false;
  }
  return true;
}

bool have_equal_extents(const std::string& a, const std::string& b, const Program& program) {
  const Index* left = find_program_index(program, a);
  const Index* right = find_program_index(program, b);
  return left != nullptr && right != nullptr && left->extent == right->extent;
}

/// Reads the second contraction with its reduced indices called like the first's.
bool read_second(const ExprRef& reduction, const std::vector<std::string>& free, const Program& program, const Contraction& first,
                 SecondContraction& second, std::string& why_not) {
  if (reduction->indices.size() != first.reduced.size()) return fails(why_not, "the two contractions reduce different numbers of indices");
  ExprNode renamed = *reduction;
  std::map<std::string, ExprRef> names;
  for (std::size_t i = 0; i < first.reduced.size(); ++i) {
    if (!have_equal_extents(reduction->indices[i], first.reduced[i], program))
      return fails(why_not, "the two contractions reduce different extents");
    names[reduction->indices[i]] = make_index(first.reduced[i]);
  }
  renamed.indices = first.reduced;
  renamed.operands[0] = substitute_indices(reduction->operands[0], names);
  if (!read_contraction(std::make_shared<const ExprNode>(std::move(renamed)), free, program, second.contraction, why_not)) return false;
  second.contraction.text = to_text(reduction);
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 2; ++j) {
      if (to_text(first.reads[i]) != to_text(second.contraction.reads[j])) continue;
      second.shared = i;
      second.right = 1 - j;
      return true;
    }
  }
  return fails(why_not, "the two contractions have no operand in common");
}

bool find_roles(const TemplatePattern& pattern, Roles& roles, std::string& why_not) {
  if ((pattern.operands.size() != 2 && pattern.operands.size() != 3) || pattern.reduce_op != ReduceOp::kSum)
    return fails(why_not, "the template is not a sum of products of two operands");
  for (const std::string& index : pattern.indices) {
    const bool in_left = has(pattern.operands[0].indices, index);
    const bool in_right = has(pattern.operands[1].indices, index);
    std::string& role = has(pattern.reduced, index) ? roles.reduced
                        : in_left && in_right       ? roles.batch
                        : in_left                   ? roles.left
                                                    : roles.right;
    if (!role.empty()) return fails(why_not, fmt::format("pattern indices {} and {} have the same role", role, index));
    role = index;
  }
  return true;
}

void add_index(IndexGroup& group, const std::string& index, const Program& program) {
  const Index* found = find_program_index(program, index);
  KW_CHECK(found != nullptr, "every index of a checked program is declared");
  group.indices.push_back(index);
  group.extents.push_back(found->extent);
}

/// Sorts the indices by where they occur, for one order of the operands.
bool classify(const Contraction& contraction, const std::vector<std::string>& free, const Program& program, Reading& reading,
              std::string& why_not) {
  const Access& left = contraction.accesses[static_cast<std::size_t>(reading.operand[0])];
  const Access& right = contraction.accesses[static_cast<std::size_t>(reading.operand[1])];
  for (const std::string& index : free) {
    const bool in_left = left.strides.count(index) != 0;
    const bool in_right = right.strides.count(index) != 0;
    if (!in_left && !in_right)
      return fails(why_not, fmt::format("index {} is in no operand: an output that repeats the contraction is not made yet", index));
    add_index(in_left && in_right ? reading.batch : in_left ? reading.left : reading.right, index, program);
  }
  for (const std::string& index : contraction.reduced) {
    if (left.strides.count(index) == 0 || right.strides.count(index) == 0)
      return fails(why_not, fmt::format("reduced index {} is not in both operands", index));
    add_index(reading.reduced, index, program);
  }
  if (reading.left.indices.empty() && reading.right.indices.empty())
    return fails(why_not, "neither operand has an index of its own: row reductions are not made yet");
  return true;
}

/// What the indices of each role occur in, besides the outputs.
struct Operands {
  const Access* left = nullptr;
  std::vector<const Access*> right;  ///< one, or two of two contractions

  std::vector<const Access*> all() const {
    std::vector<const Access*> result = {left};
    result.insert(result.end(), right.begin(), right.end());
    return result;
  }
};

bool flatten_all(Reading& reading, const Operands& operands, const std::vector<Access>& outputs, std::string& why_not) {
  const auto with_outputs = [&](std::vector<const Access*> accesses) {
    for (const Access& output : outputs) accesses.push_back(&output);
    return accesses;
  };
  return flatten(reading.batch, with_outputs(operands.all()), why_not) && flatten(reading.left, with_outputs({operands.left}), why_not) &&
         flatten(reading.right, with_outputs(operands.right), why_not) && flatten(reading.reduced, operands.all(), why_not);
}

/// The reading as it is, or with one index of a role that does not flatten moved to the batch (the other operand repeats: stride 0).
bool settle(Reading& reading, const Operands& operands, const std::vector<Access>& outputs, std::string& why_not) {
  Reading plain = reading;
  if (flatten_all(plain, operands, outputs, why_not)) {
    reading = plain;
    return true;
  }
  if (!reading.batch.indices.empty()) return false;
  for (IndexGroup Reading::* role : {&Reading::left, &Reading::right}) {
    const std::size_t num_members = (reading.*role).indices.size();
    for (std::size_t moved = 0; num_members > 1 && moved < num_members; ++moved) {
      Reading trial = reading;
      IndexGroup& group = trial.*role;
      trial.batch.indices = {group.indices[moved]};
      trial.batch.extents = {group.extents[moved]};
      group.indices.erase(group.indices.begin() + static_cast<std::ptrdiff_t>(moved));
      group.extents.erase(group.extents.begin() + static_cast<std::ptrdiff_t>(moved));
      std::string ignored;
      if (!flatten_all(trial, operands, outputs, ignored)) continue;
      reading = trial;
      return true;
    }
  }
  return false;
}

/// A contraction as the epilogue sees it: its sum, called `name`, times the factors that were taken out of it.
ExprRef accumulator_value(const Contraction& contraction, std::string_view name, DType accumulate) {
  auto accumulator = std::make_shared<ExprNode>();
  accumulator->kind = Kind::kRead;
  accumulator->dtype = accumulate;
  accumulator->name = name;
  ExprRef value = accumulator;
  for (const Factor& factor : contraction.scales)
    value = make_call(factor.is_divisor ? Function::kDiv : Function::kMul, {value, factor.expr}, accumulate);
  return value;
}

class Matcher {
 public:
  Matcher(const TemplatePattern& pattern, const FusionGroup& group, const Program& program)
      : pattern_(pattern), group_(group), program_(program) {}

  bool prepare(std::string& why_not) {
    if (group_.contractions.size() != pattern_.operands.size() - 1) {
      return fails(why_not, group_.contractions.size() == 1 ? "the template takes two contractions with one operand in common"
                                                            : group_.why_no_contraction);
    }
    const auto with_contraction = std::find_if(group_.outputs.begin(), group_.outputs.end(),
                                               [](const FusionGroup::Output& output) { return contains_reduction(output.value); });
    free_ = with_contraction->indices;
    if (!find_roles(pattern_, roles_, why_not) || !read_contraction(group_.contractions[0], free_, program_, contraction_, why_not))
      return false;
    contraction_.text = to_text(group_.contractions[0]);
    if (group_.contractions.size() == 2) {
      second_.emplace();
      if (!read_second(group_.contractions[1], free_, program_, contraction_, *second_, why_not)) return false;
    }
    const std::set<std::string> wanted(free_.begin(), free_.end());
    for (const FusionGroup::Output& output : group_.outputs) {
      if (std::set<std::string>(output.indices.begin(), output.indices.end()) != wanted) {
        return fails(why_not,
                     fmt::format("outputs {} and {} have different indices: not made yet", group_.outputs.front().tensor, output.tensor));
      }
      outputs_.emplace_back();
      if (!make_access(output.tensor, output.subscripts, program_, outputs_.back(), why_not)) return false;
    }
    return check_written(why_not);
  }

  std::optional<PatternMatch> match(std::array<int, 2> order, std::string& why_not) const {
    Reading reading;
    reading.operand = order;
    if (second_ && second_->shared != static_cast<std::size_t>(order[0])) return std::nullopt;
    if (!classify(contraction_, free_, program_, reading, why_not)) return std::nullopt;
    std::array<const Access*, 3> accesses = {&contraction_.accesses[static_cast<std::size_t>(order[0])],
                                             &contraction_.accesses[static_cast<std::size_t>(order[1])], nullptr};
    Operands operands{accesses[0], {accesses[1]}};
    if (second_) {
      accesses[2] = &second_->contraction.accesses[second_->right];
      if (!have_same_indices(*accesses[1], *accesses[2], why_not)) return std::nullopt;
      operands.right.push_back(accesses[2]);
    }
    if (!settle(reading, operands, outputs_, why_not)) return std::nullopt;
    PatternMatch result;
    result.accumulate = program_.accumulate;
    result.uses_tf32 = program_.uses_tf32;
    for (const auto& [pattern_index, group] : groups_of(reading)) {
      result.index_map[pattern_index] = group->name();
      result.extents[pattern_index] = group->extent();
    }
    for (std::size_t i = 0; i < pattern_.operands.size(); ++i) {
      const Access& access = *accesses[i];
      PatternMatch::OperandMatch& operand = result.operands[pattern_.operands[i].name];
      operand.tensor = access.tensor;
      operand.dtype = program_.find_tensor(access.tensor)->dtype;
      operand.offset = access.offset;
      operand.strides = strides_of(reading, access);
    }
    for (std::size_t i = 0; i < outputs_.size(); ++i) result.outputs.push_back(output_of(reading, i));
    return result;
  }

 private:
  std::vector<std::pair<std::string, const IndexGroup*>> groups_of(const Reading& reading) const {
    std::vector<std::pair<std::string, const IndexGroup*>> groups = {
        {roles_.batch, &reading.batch}, {roles_.left, &reading.left}, {roles_.right, &reading.right}, {roles_.reduced, &reading.reduced}};
    std::erase_if(groups, [](const auto& entry) { return entry.first.empty(); });
    return groups;
  }

  std::map<std::string, IntExpr> strides_of(const Reading& reading, const Access& access) const {
    std::map<std::string, IntExpr> strides;
    for (const auto& [pattern_index, group] : groups_of(reading)) strides[pattern_index] = normalise(group->stride(access));
    return strides;
  }

  PatternMatch::Output output_of(const Reading& reading, std::size_t position) const {
    const FusionGroup::Output& output = group_.outputs[position];
    PatternMatch::Output result;
    result.tensor = output.tensor;
    result.dtype = program_.find_tensor(output.tensor)->dtype;
    result.offset = outputs_[position].offset;
    result.strides = strides_of(reading, outputs_[position]);
    result.strides.erase(roles_.reduced);
    std::map<std::string, ExprRef> values;
    for (const auto& [pattern_index, group] : groups_of(reading)) values.merge(group->member_values(pattern_index));
    const ExprRef first = accumulator_value(contraction_, kAccumulators[0], program_.accumulate);
    const ExprRef second = second_ ? accumulator_value(second_->contraction, kAccumulators[1], program_.accumulate) : nullptr;
    const ExprRef value = replace_reductions(
        output.value, [&](const ExprRef& reduction) { return second && to_text(reduction) == second_->contraction.text ? second : first; });
    result.value = substitute_indices(value, values);
    return result;
  }

  static bool have_same_indices(const Access& a, const Access& b, std::string& why_not) {
    for (const auto& [index, stride] : a.strides) {
      if (b.strides.count(index) == 0) return fails(why_not, fmt::format("index {} is in {} and not in {}", index, a.tensor, b.tensor));
    }
    return a.strides.size() == b.strides.size() || have_same_indices(b, a, why_not);
  }

  /// A tensor that the kernel writes may be read only at the element that the same thread writes.
  bool check_written(std::string& why_not) const {
    std::vector<Access> accesses(contraction_.accesses.begin(), contraction_.accesses.end());
    if (second_) accesses.push_back(second_->contraction.accesses[second_->right]);
    for (const FusionGroup::Output& output : group_.outputs) {
      for (const Access& access : accesses) {
        if (access.tensor == output.tensor)
          return fails(why_not, fmt::format("{} is an operand of the contraction and an output: updating it in place is not made yet",
                                            output.tensor));
      }
      for (const FusionGroup::Output& reader : group_.outputs) {
        if (!reads_only_own_element(reader.value, output))
          return fails(why_not, fmt::format("{} is written and also read at other elements: not made yet", output.tensor));
      }
    }
    return true;
  }

  bool reads_only_own_element(const ExprRef& expr, const FusionGroup::Output& output) const {
    return !any_node(expr, [&](const ExprRef& node) {
      if (node->kind != Kind::kRead || node->name != output.tensor) return false;
      for (std::size_t axis = 0; axis < output.subscripts.size(); ++axis) {
        if (to_text(node->operands[axis]) != to_text(output.subscripts[axis])) return true;
      }
      return false;
    });
  }

  const TemplatePattern& pattern_;
  const FusionGroup& group_;
  const Program& program_;
  Roles roles_;
  Contraction contraction_;
  std::optional<SecondContraction> second_;
  std::vector<std::string> free_;
  std::vector<Access> outputs_;
};

/// 0 when the first output is contiguous along the template's last free index, else 1.
int badness(const PatternMatch& match, const TemplatePattern& pattern) {
  std::string last;
  for (const std::string& index : pattern.indices) {
    if (!has(pattern.reduced, index)) last = index;
  }
  const auto stride = match.outputs.front().strides.find(last);
  return stride != match.outputs.front().strides.end() && stride->second == IntExpr(1) ? 0 : 1;
}

}  // namespace

std::vector<PatternMatch> unify(const TemplatePattern& pattern, const FusionGroup& group, const Program& program, std::string& why_not) {
  std::vector<PatternMatch> matches;
  why_not.clear();
  if (pattern.is_list) {
    if (std::optional<PatternMatch> match = match_list(group, program, why_not)) matches.push_back(std::move(*match));
    return matches;
  }
  if (why_not = needs_list(program); !why_not.empty()) return matches;
  if (pattern.is_row) {
    if (std::optional<PatternMatch> match = match_row(group, program, why_not)) matches.push_back(std::move(*match));
    return matches;
  }
  Matcher matcher(pattern, group, program);
  if (!matcher.prepare(why_not)) return matches;
  for (const std::array<int, 2> order : {std::array<int, 2>{0, 1}, std::array<int, 2>{1, 0}}) {
    std::string reason;
    if (std::optional<PatternMatch> match = matcher.match(order, reason)) matches.push_back(std::move(*match));
    if (why_not.empty()) why_not = reason;
  }
  if (!matches.empty()) why_not.clear();
  if (matches.size() == 2 && badness(matches[1], pattern) < badness(matches[0], pattern)) std::swap(matches[0], matches[1]);
  return matches;
}

}  // namespace kw::generator
