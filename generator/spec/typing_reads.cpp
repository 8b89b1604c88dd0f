// Types reads of tensors and intermediates: ranks, subscripts, the order of writing and reading, and new(x).
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "generator/spec/typing.h"

namespace kw::generator {

namespace {

/// The one statement that writes `name` with plain distinct indices, or null.
Statement* plain_writer(Program& program, const std::string& name) {
  Statement* writer = nullptr;
  for (Statement& statement : program.statements) {
    if (statement.target != name) continue;
    if (writer != nullptr) return nullptr;
    writer = &statement;
  }
  if (writer == nullptr) return nullptr;
  std::set<std::string> seen;
  for (const ExprRef& subscript : writer->subscripts) {
    if (subscript->kind != ExprNode::Kind::kIndex || !seen.insert(subscript->name).second) return nullptr;
  }
  return writer;
}

}  // namespace

bool ExpressionTyper::is_group_in_scope(const std::string& name) const {
  for (const auto& [index, stated] : context_.stated_indices) {
    if (stated->ragged && stated->ragged->operands[0]->name == name && is_in_scope(index)) return true;
  }
  return false;
}

ExprRef ExpressionTyper::type_read(const SyntaxNode& node) {
  std::vector<ExprRef> subscripts;
  bool is_right = true;
  for (const SyntaxRef& operand : node.operands) {
    subscripts.push_back(type_integer(operand, "a subscript"));
    is_right = is_right && subscripts.back() != nullptr;
  }
  const bool is_known = context_.program.find_tensor(node.name) != nullptr || context_.targets.contains(node.name);
  if (is_known) return is_right ? finish_read(node, std::move(subscripts)) : nullptr;
  const auto kind = context_.kinds.find(node.name);
  if (kind != context_.kinds.end()) return error(node.where, fmt::format("{} is {}: it has no subscripts", node.name, kind->second));
  if (find_reduction(node.name)) return error(node.where, fmt::format("{}[...] needs a body in parentheses", node.name));
  return error(node.where, fmt::format("unknown tensor '{}'{}", node.name, suggest(context_, node.name)));
}

ExprRef ExpressionTyper::finish_read(const SyntaxNode& node, std::vector<ExprRef> subscripts) {
  context_.used.insert(node.name);
  if (context_.broken.contains(node.name)) return nullptr;
  const Tensor* tensor = context_.program.find_tensor(node.name);
  if (node.is_new && (tensor == nullptr || tensor->role != TensorRole::kInOut)) {
    return error(node.where, fmt::format("new({}): only a tensor of role inout has an updated value", node.name));
  }
  if (tensor != nullptr && tensor->role != TensorRole::kOut && !node.is_new) return read_tensor(node, *tensor, std::move(subscripts));
  const bool is_written = tensor != nullptr ? context_.written.contains(node.name) : context_.intermediates.contains(node.name);
  if (!is_written) {
    const auto target = context_.targets.find(node.name);
    if (target == context_.targets.end()) return nullptr;  // reported as an output that is not written
    return error(node.where, fmt::format("{} is read before it is written (line {}): statements stand in the order of their use", node.name,
                                         target->second.line));
  }
  if (tensor != nullptr) return read_updated(node, *tensor, std::move(subscripts));
  return read_intermediate(node, context_.intermediates.at(node.name), std::move(subscripts));
}

ExprRef ExpressionTyper::read_tensor(const SyntaxNode& node, const Tensor& tensor, std::vector<ExprRef> subscripts) {
  std::vector<IntExpr> axes = tensor.shape;
  if (!tensor.list_dim.empty()) axes.insert(axes.begin(), IntExpr::variable(tensor.list_dim));
  if (subscripts.size() != axes.size()) {
    return error(node.where, fmt::format("{} has {} axes{}, but {} subscripts stand here", node.name, axes.size(),
                                         tensor.list_dim.empty() ? "" : " (the position in the list is the first)", subscripts.size()));
  }
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    if (subscripts[axis]->kind == ExprNode::Kind::kIndex) {
      context_.extents.use(subscripts[axis]->name, axes[axis], fmt::format("axis {} of {}", axis, node.name), subscripts[axis]->where);
    }
  }
  ExprNode read;
  read.kind = ExprNode::Kind::kRead;
  read.name = node.name;
  read.operands = std::move(subscripts);
  if (tensor.dtype == DType::kBool) {
    read.dtype = DType::kBool;
  } else if (is_integer(tensor.dtype)) {
    read.dtype = DType::kI64;
  } else if (is_float(context_.real_type())) {
    read.dtype = context_.real_type();
  } else {
    return error(node.where, fmt::format("{} has dtype {}, but accumulate is {}: choose a float accumulate type", node.name,
                                         to_text(tensor.dtype), to_text(context_.real_type())));
  }
  return located(std::move(read), node.where);
}

ExprRef ExpressionTyper::read_intermediate(const SyntaxNode& node, const Defined& defined, std::vector<ExprRef> subscripts) {
  if (subscripts.size() != defined.indices.size()) {
    return error(node.where, fmt::format("{} has {} axes (line {}), but {} subscripts stand here", node.name, defined.indices.size(),
                                         defined.where.line, subscripts.size()));
  }
  for (std::size_t axis = 0; axis < subscripts.size(); ++axis) {
    if (subscripts[axis]->kind == ExprNode::Kind::kIndex)
      context_.extents.link(subscripts[axis]->name, defined.indices[axis], subscripts[axis]->where);
  }
  ExprNode read;
  read.kind = ExprNode::Kind::kRead;
  read.name = node.name;
  read.dtype = defined.dtype;
  read.operands = std::move(subscripts);
  return located(std::move(read), node.where);
}

/// A written output, or new(x): the stored value, rounded to the tensor's dtype. It becomes an intermediate of its own, which the
/// writing statement then stores, so that no later step needs to know the order of launches.
ExprRef ExpressionTyper::read_updated(const SyntaxNode& node, const Tensor& tensor, std::vector<ExprRef> subscripts) {
  const std::string name = tensor.name + "__new";
  if (!context_.intermediates.contains(name)) {
    Statement* writer = plain_writer(context_.program, tensor.name);
    if (writer == nullptr) {
      return error(node.where,
                   fmt::format("{} is read after it is written, which works when one statement writes it with plain indices, as in {}[i,j] "
                               "= ...; write an intermediate and read that",
                               tensor.name, tensor.name),
                   Code::kNotSupported);
    }
    if (context_.kinds.contains(name) || context_.targets.contains(name))
      return error(node.where, fmt::format("the name {} is needed for the new value of {}: rename yours", name, tensor.name));
    Statement update;
    update.target = name;
    update.subscripts = writer->subscripts;
    update.indices = writer->indices;
    update.where = writer->where;
    ExprNode rounded;
    rounded.kind = ExprNode::Kind::kCast;
    rounded.dtype = tensor.dtype;
    rounded.operands = {writer->value};
    update.value = located(std::move(rounded), writer->where);
    const DType dtype = is_float(tensor.dtype) ? context_.real_type() : tensor.dtype == DType::kBool ? DType::kBool : DType::kI64;
    context_.intermediates[name] = {writer->indices, dtype, tree_size(update.value, context_), writer->where};
    ExprNode read;
    read.kind = ExprNode::Kind::kRead;
    read.name = name;
    read.dtype = dtype;
    read.operands = writer->subscripts;
    writer->value = located(std::move(read), writer->where);
    const auto position = context_.program.statements.begin() + (writer - context_.program.statements.data());
    context_.program.statements.insert(position, std::move(update));
  }
  SyntaxNode renamed = node;
  renamed.name = name;
  return read_intermediate(renamed, context_.intermediates.at(name), std::move(subscripts));
}

}  // namespace kw::generator
