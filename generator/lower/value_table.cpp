// See value_table.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/lower/value_table.h"

#include <fmt/format.h>

namespace kw::generator {

using Kind = ExprNode::Kind;

ValueTable::ValueTable(const Program& program, const std::vector<EpilogueRead>& reads) : program_(program), reads_(reads) {
  for (std::size_t i = 0; i < reads.size(); ++i) reads_by_text_[to_text(reads[i].node)] = i;
}

const EpilogueRead* ValueTable::read_of(const ExprNode& node) const {
  if (program_.find_tensor(node.name) == nullptr) return nullptr;  // a value from outside
  const auto found = reads_by_text_.find(to_text(std::make_shared<const ExprNode>(node)));
  KW_CHECK(found != reads_by_text_.end(), "every read of an epilogue was collected");
  return &reads_[found->second];
}

int ValueTable::intern(const ExprRef& expr) {
  const auto known = by_node_.find(expr.get());
  if (known != by_node_.end()) return known->second;
  const int position = add(expr);
  alive_.push_back(expr);
  by_node_[expr.get()] = position;
  return position;
}

int ValueTable::add(const ExprRef& expr) {
  if (expr->kind == Kind::kScalar) {
    const Scalar* scalar = program_.find_scalar(expr->name);
    KW_CHECK(scalar != nullptr, "scalars of a checked program are declared");
    if (scalar->value) {
      const int value = intern(scalar->value);
      Entry& entry = entries_[static_cast<std::size_t>(value)];
      if (entry.name_hint.empty()) entry.name_hint = scalar->name;
      return value;
    }
  }
  Entry entry;
  entry.node = expr;
  if (expr->kind == Kind::kRead) {
    const EpilogueRead* read = read_of(*expr);
    if (read != nullptr && !read->is_affine()) {
      for (const auto& [text, term] : read->offset.terms) entry.operands.push_back(intern(term.atom));
    }
  } else {
    for (const ExprRef& operand : expr->operands) entry.operands.push_back(intern(operand));
  }
  std::string key = fmt::format("{} {} {} {} {}", static_cast<int>(expr->kind), static_cast<int>(expr->dtype), expr->number,
                                static_cast<int>(expr->function), expr->name);
  if (expr->kind == Kind::kRead) key += " " + to_text(expr);
  for (const int operand : entry.operands) key += fmt::format(" {}", operand);
  const auto [found, is_new] = by_key_.emplace(key, num_entries());
  if (!is_new) return found->second;
  for (const int operand : entry.operands) ++entries_[static_cast<std::size_t>(operand)].num_uses;
  classify(entry);
  entries_.push_back(std::move(entry));
  return found->second;
}

void ValueTable::classify(Entry& entry) const {
  const ExprNode& node = *entry.node;
  entry.is_constant = node.kind == Kind::kNumber || (!entry.operands.empty() && node.kind != Kind::kRead);
  for (const int operand : entry.operands) {
    entry.is_per_lane = entry.is_per_lane || at(operand).is_per_lane;
    entry.reads_in_place = entry.reads_in_place || at(operand).reads_in_place;
    entry.is_constant = entry.is_constant && at(operand).is_constant;
  }
  if (node.kind == Kind::kIndex) entry.is_per_lane = node.name == "n";
  if (node.kind != Kind::kRead) return;
  const EpilogueRead* read = read_of(node);
  if (read == nullptr) {
    entry.is_per_lane = is_accumulator(node.name);  // the result of a reduction is the row's
    return;
  }
  if (read->is_affine()) entry.is_per_lane = !(read->offset.coefficient_of("n") == IntExpr(0));
  // What no branch guards and every lane shares is loaded once; an address that differs by lane and is no vector stays in the loop.
  const bool can_move =
      (read->can_load_first() && !entry.reads_in_place) || (read->is_unconditional && !entry.is_per_lane && !entry.reads_in_place);
  entry.reads_in_place = !can_move;
}

}  // namespace kw::generator
