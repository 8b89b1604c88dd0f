// Expands statements and chains with sugar; keeps the shapes of the values so far. The ops themselves are in sugar_ops.cpp,
// blocks of `use` in sugar_blocks.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "generator/spec/sugar.h"

#include <fmt/format.h>

#include <algorithm>

#include "generator/spec/body_parser.h"
#include "generator/spec/functions.h"
#include "generator/spec/spec_reader.h"

namespace kw::generator {

namespace {

constexpr int kMaxSugarStatements = 4 * static_cast<int>(kMaxStatements);

void collect_names(const SyntaxRef& node, std::set<std::string>& names) {
  if (!node->name.empty()) names.insert(node->name);
  names.insert(node->brackets.begin(), node->brackets.end());
  for (const SyntaxRef& operand : node->operands) collect_names(operand, names);
  for (const auto& [keyword, value] : node->keywords) collect_names(value, names);
}

}  // namespace

const std::vector<std::string>& sugar_names() {
  static const std::vector<std::string> kNames = {"attention", "layernorm", "linear", "matmul", "rmsnorm", "swiglu"};
  return kNames;
}
bool is_sugar(std::string_view name) {
  const std::vector<std::string>& names = sugar_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<StatementSyntax> expand_sugar(CheckContext& context) { return SugarExpander(context).run(); }

SugarExpander::SugarExpander(CheckContext& context) : context_(context) {
  for (const auto& [name, kind] : context.kinds) taken_.insert(name);
  for (const auto& [name, syntax] : context.stated_indices) taken_.insert(name);
  for (const std::string word : {"inf", "nan", "true", "false", "new", "cast"}) taken_.insert(word);
  for (const Builtin& builtin : builtins()) taken_.emplace(builtin.name);
  for (const std::string& name : reduction_names()) taken_.insert(name);
  for (const StatementSyntax& statement : context.syntax.statements) {
    taken_.insert(statement.target);
    collect_names(statement.value, taken_);
    for (const SyntaxRef& subscript : statement.subscripts) collect_names(subscript, taken_);
  }
  for (const ChainStep& step : context.syntax.chain) collect_names(step.value, taken_);
  for (const Tensor& tensor : context.program.tensors) {
    if (tensor.list_dim.empty()) shapes_[tensor.name] = Shape(tensor.shape.begin(), tensor.shape.end());
  }
}

std::vector<StatementSyntax> SugarExpander::run() {
  for (const StatementSyntax& statement : context_.syntax.statements) {
    expand_statement(statement);
    if (statements_.size() > kMaxSugarStatements) {
      error(statement.where, fmt::format("the body expands to more than {} statements", kMaxSugarStatements), Code::kNotSupported);
      break;
    }
  }
  if (!context_.syntax.chain.empty()) expand_chain();
  return std::move(statements_);
}

std::nullopt_t SugarExpander::error(const SourceRange& where, std::string message, Code code) {
  context_.error(where, std::move(message), code);
  return std::nullopt;
}

std::string SugarExpander::fresh(const std::string& base) {
  std::string name = base;
  for (int suffix = 2; !taken_.insert(name).second; ++suffix) name = fmt::format("{}{}", base, suffix);
  return name;
}

std::vector<std::string> SugarExpander::fresh_axes(std::size_t count) {
  static const std::vector<std::string> kAxisNames = {"i", "j", "p", "q", "r", "s", "t", "u"};
  std::vector<std::string> names;
  for (std::size_t axis = 0; axis < count; ++axis) names.push_back(fresh(kAxisNames[axis % kAxisNames.size()]));
  return names;
}

void SugarExpander::expand_statement(const StatementSyntax& statement) {
  const bool is_call = statement.value->kind == SyntaxNode::Kind::kCall && !statement.value->has_brackets;
  const bool is_op = is_call && (is_sugar(statement.value->name) || context_.syntax.blocks.contains(statement.value->name));
  if (!is_op || statement.has_subscripts) {
    statements_.push_back(statement);
    remember_shape(statement);
    return;
  }
  const std::optional<Value> value = expand_call(*statement.value, std::nullopt);
  if (value) {
    emit(statement.target, *value, statement.where);
  } else {
    // The op is reported; its target counts as written, so that no other message follows from it.
    context_.targets.emplace(statement.target, statement.where);
    context_.broken.insert(statement.target);
  }
}

void SugarExpander::emit(const std::string& target, const Value& value, const SourceRange& where) {
  StatementSyntax statement;
  statement.target = target;
  statement.has_subscripts = true;
  for (const std::string& index : value.indices) statement.subscripts.push_back(syntax_name(index, where));
  statement.value = value.expression;
  statement.where = where;
  statements_.push_back(std::move(statement));
  if (!shapes_.contains(target)) shapes_[target] = value.shape;
}

SugarExpander::Operand SugarExpander::materialise(const Value& value, const std::string& base, const SourceRange& where) {
  const std::string name = fresh(base);
  emit(name, value, where);
  return {name, value.shape};
}

/// Extents of an ordinary statement's target, where they follow from plain uses of its indices.
void SugarExpander::remember_shape(const StatementSyntax& statement) {
  if (shapes_.contains(statement.target)) return;
  Shape shape;
  for (const SyntaxRef& subscript : statement.subscripts) {
    shape.push_back(subscript->kind == SyntaxNode::Kind::kName ? extent_in(subscript->name, statement.value) : std::nullopt);
  }
  shapes_[statement.target] = std::move(shape);
}

std::optional<IntExpr> SugarExpander::extent_in(const std::string& index, const SyntaxRef& node) const {
  const auto shape = shapes_.find(node->name);
  if (node->kind == SyntaxNode::Kind::kRead && shape != shapes_.end()) {
    for (std::size_t axis = 0; axis < node->operands.size() && axis < shape->second.size(); ++axis) {
      const SyntaxRef& subscript = node->operands[axis];
      if (subscript->kind == SyntaxNode::Kind::kName && subscript->name == index && shape->second[axis]) return shape->second[axis];
    }
  }
  for (const SyntaxRef& operand : node->operands) {
    if (std::optional<IntExpr> extent = extent_in(index, operand)) return extent;
  }
  return std::nullopt;
}

/// A tensor argument: a name, or an op whose result gets a name.
std::optional<SugarExpander::Operand> SugarExpander::operand(const SyntaxRef& argument) {
  if (argument->kind == SyntaxNode::Kind::kCall && !argument->has_brackets &&
      (is_sugar(argument->name) || context_.syntax.blocks.contains(argument->name))) {
    const std::optional<Value> value = expand_call(*argument, std::nullopt);
    if (!value) return std::nullopt;
    return materialise(*value, argument->name + "_out", argument->where);
  }
  if (argument->kind != SyntaxNode::Kind::kName)
    return error(argument->where, "this argument is a whole tensor: give its name, without subscripts");
  const auto shape = shapes_.find(argument->name);
  if (shape == shapes_.end())
    return error(argument->where, fmt::format("unknown tensor '{}'{}", argument->name, suggest(context_, argument->name)));
  return Operand{argument->name, shape->second};
}

SyntaxRef SugarExpander::keyword(const SyntaxNode& call, std::string_view name) const {
  for (const auto& [keyword, value] : call.keywords) {
    if (keyword == name) return value;
  }
  return nullptr;
}

bool SugarExpander::check_keywords(const SyntaxNode& call, std::initializer_list<std::string_view> known) {
  const std::vector<std::string> names(known.begin(), known.end());
  std::set<std::string> seen;
  for (const auto& [keyword, value] : call.keywords) {
    const bool is_known = std::find(names.begin(), names.end(), keyword) != names.end();
    if (is_known && seen.insert(keyword).second) continue;
    error(value->where, is_known ? fmt::format("{}: the argument '{}' stands twice", call.name, keyword)
                                 : fmt::format("{} takes no argument named '{}'{}", call.name, keyword, did_you_mean(keyword, names)));
    return false;
  }
  return true;
}

std::optional<bool> SugarExpander::flag(const SyntaxNode& call, std::string_view name, bool missing) {
  const SyntaxRef value = keyword(call, name);
  if (!value) return missing;
  if (value->kind == SyntaxNode::Kind::kName && value->name == "true") return true;
  if (value->kind == SyntaxNode::Kind::kName && value->name == "false") return false;
  return error(value->where, fmt::format("{} of {} must be true or false", name, call.name));
}

void SugarExpander::expand_chain() {
  std::vector<const Tensor*> outputs;
  for (const Tensor& tensor : context_.program.tensors) {
    if (tensor.role != TensorRole::kIn) outputs.push_back(&tensor);
  }
  if (outputs.size() != 1) {
    error(context_.syntax.chain_where, fmt::format("a chain writes the one tensor of role out: this spec has {}", outputs.size()));
    return;
  }
  std::optional<Value> value = first_step(context_.syntax.chain.front());
  for (std::size_t step = 1; value && step < context_.syntax.chain.size(); ++step)
    value = next_step(context_.syntax.chain[step], std::move(*value));
  if (value) {
    emit(outputs[0]->name, *value, context_.syntax.chain_where);
  } else {
    context_.targets.emplace(outputs[0]->name, context_.syntax.chain_where);
  }
}

std::optional<SugarExpander::Value> SugarExpander::first_step(const ChainStep& step) {
  const SyntaxNode& node = *step.value;
  const bool is_op =
      node.kind == SyntaxNode::Kind::kCall && !node.has_brackets && (is_sugar(node.name) || context_.syntax.blocks.contains(node.name));
  if (is_op) {
    const std::optional<Value> value = expand_call(node, std::nullopt);
    if (!value) return std::nullopt;
    const Operand acc = materialise(*value, "acc", node.where);  // the contraction under a name of its own
    Value read{value->indices, acc.shape, nullptr};
    std::vector<SyntaxRef> subscripts;
    for (const std::string& index : read.indices) subscripts.push_back(syntax_name(index, node.where));
    read.expression = syntax_read(acc.name, std::move(subscripts), node.where);
    return read;
  }
  const std::optional<Operand> first = operand(step.value);
  if (!first) return std::nullopt;
  Value value{fresh_axes(first->shape.size()), first->shape, nullptr};
  value.expression = read_trailing(*first, value, node.where);
  return value;
}

SyntaxRef SugarExpander::read_trailing(const Operand& operand, const Value& value, const SourceRange& where) {
  if (operand.shape.size() > value.indices.size()) {
    error(where,
          fmt::format("{} has {} axes, the value of the chain has {}: a step takes tensors of at most as many axes, matched from the last",
                      operand.name, operand.shape.size(), value.indices.size()));
    return nullptr;
  }
  std::vector<SyntaxRef> subscripts;
  for (std::size_t axis = value.indices.size() - operand.shape.size(); axis < value.indices.size(); ++axis)
    subscripts.push_back(syntax_name(value.indices[axis], where));
  return syntax_read(operand.name, std::move(subscripts), where);
}

/// Names of tensors in an argument become reads along the last axes of the running value.
SyntaxRef SugarExpander::broadcast(const SyntaxRef& node, const Value& value) {
  if (node->kind == SyntaxNode::Kind::kName) {
    const auto shape = shapes_.find(node->name);
    return shape == shapes_.end() ? node : read_trailing({node->name, shape->second}, value, node->where);
  }
  if (node->kind == SyntaxNode::Kind::kRead) return node;
  SyntaxNode copy = *node;
  for (SyntaxRef& operand : copy.operands) {
    operand = broadcast(operand, value);
    if (!operand) return nullptr;
  }
  return std::make_shared<const SyntaxNode>(std::move(copy));
}

std::optional<SugarExpander::Value> SugarExpander::next_step(const ChainStep& step, Value value) {
  const SyntaxNode& node = *step.value;
  if (value.expression->depth > kMaxDepth / 2) {
    const Operand part = materialise(value, "t", node.where);
    value.expression = read_trailing(part, value, node.where);
  }
  if (step.operator_function) {
    SyntaxRef right = broadcast(step.value, value);
    if (!right) return std::nullopt;
    value.expression = syntax_operator(*step.operator_function, {value.expression, std::move(right)}, node.where);
    return value;
  }
  const bool is_call = node.kind == SyntaxNode::Kind::kCall && !node.has_brackets;
  if (is_call && (is_sugar(node.name) || context_.syntax.blocks.contains(node.name))) return expand_call(node, value);
  if (is_call) {
    std::vector<SyntaxRef> arguments = {value.expression};
    for (const SyntaxRef& operand : node.operands) {
      arguments.push_back(broadcast(operand, value));
      if (!arguments.back()) return std::nullopt;
    }
    value.expression = syntax_call(node.name, {}, std::move(arguments), node.where);
    return value;
  }
  if (node.kind != SyntaxNode::Kind::kName)
    return error(node.where,
                 "a step of a chain is a tensor to add, a function to apply, an op, or an operator and a value, as in '* alpha'");
  const auto shape = shapes_.find(node.name);
  if (shape != shapes_.end()) {
    SyntaxRef right = read_trailing({node.name, shape->second}, value, node.where);
    if (!right) return std::nullopt;
    value.expression = syntax_operator(Function::kAdd, {value.expression, std::move(right)}, node.where);
    return value;
  }
  if (context_.kinds.contains(node.name))
    return error(node.where,
                 fmt::format("{} is {}: say what to do with it, as in '* {}'", node.name, context_.kinds[node.name], node.name));
  value.expression = syntax_call(node.name, {}, {value.expression}, node.where);
  return value;
}

}  // namespace kw::generator
