// Blocks: an op of another spec file (`use`) called like a function. Its statements are copied with its tensors, dims, scalars
// and indices renamed; its dims follow from the shapes of the arguments.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "generator/spec/body_parser.h"
#include "generator/spec/sugar.h"

namespace kw::generator {

namespace {

/// Copies syntax with names replaced: values by syntax, names of tensors and indices by names. All places become the call's.
struct Renamer {
  const std::map<std::string, SyntaxRef>& values;
  std::map<std::string, std::string>& names;
  SourceRange where;

  std::string name(const std::string& old) const {
    const auto found = names.find(old);
    return found == names.end() ? old : found->second;
  }

  SyntaxRef copy(const SyntaxRef& node) const {
    if (node->kind == SyntaxNode::Kind::kName) {
      const auto value = values.find(node->name);
      if (value != values.end()) return value->second;
    }
    SyntaxNode renamed = *node;
    renamed.where = where;
    if (node->kind == SyntaxNode::Kind::kName || node->kind == SyntaxNode::Kind::kRead) renamed.name = name(node->name);
    for (std::string& index : renamed.brackets) index = name(index);
    int depth = 0;
    for (SyntaxRef& operand : renamed.operands) {
      operand = copy(operand);
      depth = std::max(depth, operand->depth);
    }
    for (auto& [keyword, value] : renamed.keywords) {
      value = copy(value);
      depth = std::max(depth, value->depth);
    }
    renamed.depth = depth + 1;
    return std::make_shared<const SyntaxNode>(std::move(renamed));
  }
};

void collect_indices(const SyntaxRef& node, const CheckContext& inner, const std::set<std::string>& targets,
                     std::set<std::string>& indices) {
  if (node->kind == SyntaxNode::Kind::kName && !inner.kinds.contains(node->name) && !targets.contains(node->name))
    indices.insert(node->name);
  indices.insert(node->brackets.begin(), node->brackets.end());
  for (const SyntaxRef& operand : node->operands) collect_indices(operand, inner, targets, indices);
  for (const auto& [keyword, value] : node->keywords) collect_indices(value, inner, targets, indices);
}

bool is_word(const std::string& name) { return name == "inf" || name == "nan" || name == "true" || name == "false"; }

}  // namespace

/// The block's dims and scalars as syntax of the caller.
std::optional<std::map<std::string, SyntaxRef>> SugarExpander::bind_block_dims(const SyntaxNode& call, const OpSpec& spec,
                                                                               CheckContext& inner, const std::vector<Operand>& operands) {
  std::map<std::string, SyntaxRef> values;
  Diagnostics ignored;
  std::size_t position = 0;
  for (const Tensor& tensor : inner.program.tensors) {
    if (tensor.role != TensorRole::kIn) continue;
    const Operand& operand = operands[position++];
    if (operand.shape.size() != tensor.shape.size()) {
      return error(call.where, fmt::format("{}: {} has {} axes, its tensor {} has {}", spec.name, operand.name, operand.shape.size(),
                                           tensor.name, tensor.shape.size()));
    }
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      if (tensor.shape[axis].op() != IntExpr::Op::kVar || !operand.shape[axis]) continue;
      values.emplace(tensor.shape[axis].name(),
                     parse_expression(operand.shape[axis]->to_text(), {call.where.file, call.where.line, call.where.column}, ignored));
    }
  }
  for (const DimSyntax& dim : spec.syntax->dims) {
    if (values.contains(dim.name)) continue;
    std::map<std::string, std::string> no_names;
    if (dim.derived) {
      values[dim.name] = Renamer{values, no_names, call.where}.copy(dim.derived);
    } else if (dim.values.size() == 1) {
      values[dim.name] = syntax_integer(dim.values.front(), call.where);
    } else {
      return error(call.where, fmt::format("{}: its dim {} does not follow from the shapes of the arguments", spec.name, dim.name));
    }
  }
  for (const ScalarSyntax& scalar : spec.syntax->scalars) {
    std::map<std::string, std::string> no_names;
    if (const SyntaxRef given = keyword(call, scalar.name))
      values[scalar.name] = given;
    else if (scalar.value)
      values[scalar.name] = Renamer{values, no_names, call.where}.copy(scalar.value);
    else
      return error(call.where, fmt::format("{}: its scalar {} is given at launch: pass it, as in {}(..., {} = alpha)", spec.name,
                                           scalar.name, spec.name, scalar.name));
  }
  return values;
}

std::optional<SugarExpander::Value> SugarExpander::block(const SyntaxNode& call, const std::vector<Operand>& operands) {
  const OpSpec& spec = *context_.syntax.blocks.at(call.name);
  if (!spec.syntax->indices.empty())
    return error(call.where, fmt::format("{}: a spec with [index] cannot be used as a block yet", spec.name), Code::kNotSupported);
  if (!spec.functions_file.empty() && spec.functions_file != context_.spec.functions_file) {
    return error(call.where, fmt::format("{}: its functions come from {}: name the same file here", spec.name, spec.functions_file),
                 Code::kNotSupported);
  }
  for (const auto& [keyword, value] : call.keywords) {
    const bool is_scalar = std::any_of(spec.syntax->scalars.begin(), spec.syntax->scalars.end(),
                                       [&, name = keyword](const ScalarSyntax& scalar) { return scalar.name == name; });
    if (!is_scalar) return error(value->where, fmt::format("{} has no scalar named '{}'", spec.name, keyword));
  }
  // Declares the block alone, so that its own sugar finds its shapes.
  CheckContext inner{.spec = spec,
                     .syntax = *spec.syntax,
                     .functions = context_.functions,
                     .diagnostics = context_.diagnostics,
                     .is_partial = context_.is_partial};
  const std::size_t errors_before = context_.diagnostics.errors().size();
  declare_accumulate(inner);
  declare_dims(inner);
  declare_scalars(inner);
  declare_tensors(inner);
  const std::vector<StatementSyntax> body = expand_sugar(inner);
  if (context_.diagnostics.errors().size() > errors_before) return std::nullopt;
  std::vector<std::string> inputs, outputs;
  for (const Tensor& tensor : inner.program.tensors) (tensor.role == TensorRole::kIn ? inputs : outputs).push_back(tensor.name);
  if (outputs.size() != 1)
    return error(call.where, fmt::format("{}: a block has one output, this one has {}", spec.name, outputs.size()), Code::kNotSupported);
  if (operands.size() != inputs.size())
    return error(call.where,
                 fmt::format("{} takes {} tensors ({}), not {}", spec.name, inputs.size(), fmt::join(inputs, ", "), operands.size()));
  const auto values = bind_block_dims(call, spec, inner, operands);
  if (!values) return std::nullopt;

  std::map<std::string, std::string> renamed;
  std::set<std::string> targets, indices;
  for (std::size_t i = 0; i < inputs.size(); ++i) renamed[inputs[i]] = operands[i].name;
  for (const StatementSyntax& statement : body) targets.insert(statement.target);
  for (const std::string& target : targets) renamed[target] = fresh(spec.name + "_" + target);
  for (const StatementSyntax& statement : body) {
    collect_indices(statement.value, inner, targets, indices);
    for (const SyntaxRef& subscript : statement.subscripts) collect_indices(subscript, inner, targets, indices);
  }
  for (const std::string& index : indices) {
    if (!is_word(index)) renamed[index] = fresh(index);
  }
  const Renamer renamer{*values, renamed, call.where};
  std::optional<Value> value;
  for (const StatementSyntax& statement : body) {
    StatementSyntax copy = statement;
    copy.where = call.where;
    copy.target = renamer.name(statement.target);
    copy.value = renamer.copy(statement.value);
    for (SyntaxRef& subscript : copy.subscripts) subscript = renamer.copy(subscript);
    if (copy.value->depth > kMaxDepth)
      return error(call.where, fmt::format("{}: its expressions are nested deeper than {} levels here", spec.name, kMaxDepth));
    if (statement.target != outputs[0]) {
      statements_.push_back(copy);
      remember_shape(copy);
      continue;
    }
    const bool is_plain = std::all_of(copy.subscripts.begin(), copy.subscripts.end(),
                                      [](const SyntaxRef& subscript) { return subscript->kind == SyntaxNode::Kind::kName; });
    if (value || !is_plain)
      return error(call.where, fmt::format("{}: a block writes its output in one statement with plain indices", spec.name),
                   Code::kNotSupported);
    value.emplace();
    for (const SyntaxRef& subscript : copy.subscripts) value->indices.push_back(subscript->name);
    for (const std::string& index : value->indices) value->shape.push_back(extent_in(index, copy.value));
    value->expression = copy.value;
  }
  if (!value) return error(call.where, fmt::format("{}: no statement writes its output {}", spec.name, outputs[0]));
  return value;
}

}  // namespace kw::generator
