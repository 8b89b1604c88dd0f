// Checks the declarations of a spec: names, dims, scalars, tensors, indices. They become the head of the program.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "generator/spec/checker.h"
#include "generator/spec/spec_reader.h"
#include "generator/spec/typing.h"

namespace kw::generator {

namespace {

void declare(CheckContext& context, const std::string& name, const std::string& kind, const SourceRange& where) {
  const auto [entry, is_new] = context.kinds.emplace(name, kind);
  if (!is_new) context.error(where, fmt::format("the name {} is declared twice: it is already {}", name, entry->second));
  if (find_builtin(name) != nullptr || find_reduction(name) || name == "cast")
    context.error(where, fmt::format("'{}' is a function of the notation: it cannot name {}", name, kind));
}

/// An extent or stride: an exact integer over dims.
std::optional<IntExpr> dims_expression(CheckContext& context, const SyntaxRef& syntax, const std::string& subject) {
  if (!syntax) return std::nullopt;
  const ExprRef typed = ExpressionTyper(context, {}).type_integer(syntax, subject.c_str());
  if (!typed) return std::nullopt;
  const TreeSize size = tree_size(typed, context);
  if (size.num_nodes > 1000 || size.depth > kMaxDepth) {
    context.error(syntax->where, fmt::format("{} is an expression of {} parts: at most 1000", subject, size.num_nodes));
    return std::nullopt;
  }
  Result<IntExpr> value = as_int_expr(typed);
  if (!value) {
    context.error(syntax->where, fmt::format("{} must be an integer expression of dims: {}", subject, value.error().message));
    return std::nullopt;
  }
  if (value->is_constant() && value->constant() < 0) {
    context.error(syntax->where, fmt::format("{} is {}: it must not be negative", subject, value->constant()));
    return std::nullopt;
  }
  return *value;
}

DType default_accumulate(const OpSpecSyntax& syntax) {
  bool has_f64 = false, has_float = false;
  for (const TensorSyntax& tensor : syntax.tensors) {
    has_f64 = has_f64 || tensor.dtype == DType::kF64;
    has_float = has_float || is_float(tensor.dtype);
  }
  if (has_f64) return DType::kF64;
  return has_float || syntax.tensors.empty() ? DType::kF32 : DType::kI32;
}

void declare_tensor(CheckContext& context, const TensorSyntax& syntax) {
  declare(context, syntax.name, "a tensor", syntax.where);
  Tensor tensor;
  tensor.name = syntax.name;
  tensor.dtype = syntax.dtype;
  tensor.role = syntax.role;
  tensor.align_bytes = syntax.align_bytes;
  tensor.is_const = syntax.is_const;
  tensor.properties = syntax.properties;
  tensor.list_dim = syntax.list_dim;
  tensor.where = syntax.where;
  for (const SyntaxRef& extent : syntax.shape) {
    tensor.shape.push_back(dims_expression(context, extent, fmt::format("an extent of tensor {}", syntax.name)).value_or(IntExpr(1)));
  }
  tensor.strides = row_major_strides(tensor.shape);
  if (syntax.has_strides && syntax.strides.size() == tensor.shape.size()) {
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      if (syntax.strides[axis]) {
        tensor.strides[axis] =
            dims_expression(context, syntax.strides[axis], fmt::format("a stride of tensor {}", syntax.name)).value_or(IntExpr(1));
      } else {
        tensor.strides[axis] = IntExpr::variable(fmt::format("{}.stride{}", syntax.name, axis));
        tensor.has_any_strides = true;
      }
    }
  }
  if (!tensor.list_dim.empty()) {
    const auto kind = context.kinds.find(tensor.list_dim);
    if (kind == context.kinds.end() || kind->second != "a dim") {
      context.error(syntax.list_where, fmt::format("list of tensor {} = '{}': it must name a dim{}", syntax.name,
                                                   tensor.list_dim.substr(0, kMaxNameLength), suggest(context, tensor.list_dim)));
      tensor.list_dim.clear();
    } else {
      context.used.insert(tensor.list_dim);
    }
  }
  if (tensor.is_const && tensor.role != TensorRole::kIn)
    context.error(syntax.where,
                  fmt::format("tensor {} is const and has role {}: only an input is const", syntax.name, to_text(tensor.role)));
  context.program.tensors.push_back(std::move(tensor));
}

void declare_scalar(CheckContext& context, const ScalarSyntax& syntax) {
  const bool has_float_accumulate = is_float(context.program.accumulate);
  const DType default_dtype = context.program.accumulate == DType::kF64 ? DType::kF64 : DType::kF32;
  Scalar scalar;
  scalar.name = syntax.name;
  scalar.dtype = syntax.dtype.value_or(has_float_accumulate ? default_dtype : DType::kI32);
  if (scalar.dtype == DType::kTF32 || scalar.dtype == DType::kE4M3 || scalar.dtype == DType::kE5M2 || scalar.dtype == DType::kI8) {
    context.error(syntax.where, fmt::format("scalar {} has dtype {}: scalars are f16, bf16, f32, f64, i32, i64 or bool", syntax.name,
                                            to_text(scalar.dtype)));
  }
  if (syntax.value) {
    ExprRef value = ExpressionTyper(context, {}).type(syntax.value);
    declare(context, syntax.name, "a scalar", syntax.where);
    if (!value) return;
    const TreeSize size = tree_size(value, context);
    if (size.num_nodes > 1000 || size.depth > kMaxDepth)
      return context.error(syntax.where, fmt::format("scalar {} is an expression of {} parts: at most 1000", syntax.name, size.num_nodes));
    const bool is_exact = !is_float(value->dtype);
    if (is_exact && (!syntax.dtype || !is_float(*syntax.dtype))) {  // exact integers and bools are written out where they are used
      context.derived[syntax.name] = value;
      return;
    }
    if (!is_exact && !is_float(scalar.dtype))
      return context.error(syntax.where, fmt::format("scalar {} has dtype {}, but its value {} is real", syntax.name, to_text(scalar.dtype),
                                                     to_text(value)));
    if (value->kind == ExprNode::Kind::kNumber) value = make_number(value->number, context.program.accumulate);
    context.hidden_sizes[syntax.name] = size;
    scalar.value = std::move(value);
  } else {
    declare(context, syntax.name, "a scalar", syntax.where);
  }
  context.program.scalars.push_back(std::move(scalar));
}

/// Names in an expression that no declaration knows: indices.
void collect_unknown_names(const CheckContext& context, const SyntaxRef& syntax, std::set<std::string>& names) {
  if (syntax->kind == SyntaxNode::Kind::kName && !context.kinds.contains(syntax->name) && syntax->name != "inf" && syntax->name != "true" &&
      syntax->name != "false")
    names.insert(syntax->name);
  for (const SyntaxRef& operand : syntax->operands) collect_unknown_names(context, operand, names);
}

void declare_ragged(CheckContext& context, const IndexSyntax& syntax) {
  const std::string& offsets = syntax.ragged->name;
  const Tensor* tensor = context.program.find_tensor(offsets);
  if (tensor == nullptr)
    return context.error(syntax.ragged->where,
                         fmt::format("index {} ragged: unknown tensor '{}'{}", syntax.name, offsets, suggest(context, offsets)));
  if (!is_integer(tensor->dtype) || tensor->shape.size() != 1 || tensor->role != TensorRole::kIn) {
    context.error(syntax.ragged->where,
                  fmt::format("index {} ragged: {} must be an input of integers with one axis", syntax.name, offsets));
  }
  context.used.insert(offsets);
}

void declare_below(CheckContext& context, const IndexSyntax& syntax) {
  std::set<std::string> names;
  collect_unknown_names(context, syntax.below, names);
  if (names.contains(syntax.name))
    return context.error(syntax.below->where, fmt::format("the bound of index {} reads the index itself", syntax.name));
  ExprRef value =
      ExpressionTyper(context, std::vector<std::string>(names.begin(), names.end())).type_integer(syntax.below, "the bound of an index");
  if (!value) return;
  const TreeSize size = tree_size(value, context);
  if (size.num_nodes > 1000)
    return context.error(syntax.below->where, fmt::format("the bound of index {} is an expression of more than 1000 parts", syntax.name));
  context.hidden_sizes[syntax.name] = size;
  context.below[syntax.name] = std::move(value);
  context.below_needs[syntax.name] = std::move(names);
}

}  // namespace

std::string suggest(const CheckContext& context, const std::string& name) {
  if (name.size() < 2) return "";  // every one-letter name is near to every other
  std::vector<std::string> known;
  for (const auto& [other, kind] : context.kinds) {
    if (other != name) known.push_back(other);
  }
  for (const auto& [other, where] : context.targets) {
    if (other != name) known.push_back(other);
  }
  return did_you_mean(name, known);
}

void declare_dims(CheckContext& context) {
  for (const DimSyntax& syntax : context.syntax.dims) {
    if (!syntax.derived) {
      declare(context, syntax.name, "a dim", syntax.where);
      context.program.dims.push_back({syntax.name, syntax.is_any, syntax.values});
      continue;
    }
    const std::optional<IntExpr> value = dims_expression(context, syntax.derived, fmt::format("dim {}", syntax.name));
    declare(context, syntax.name, "a derived dim", syntax.where);
    context.derived[syntax.name] = value ? ExpressionTyper(context, {}).type(syntax.derived) : make_number(1, DType::kI64);
  }
}

void declare_scalars(CheckContext& context) {
  for (const ScalarSyntax& scalar : context.syntax.scalars) declare_scalar(context, scalar);
}

void declare_tensors(CheckContext& context) {
  for (const TensorSyntax& tensor : context.syntax.tensors) declare_tensor(context, tensor);
}

void declare_accumulate(CheckContext& context) {
  Program& program = context.program;
  program.accumulate = context.syntax.accumulate.value_or(default_accumulate(context.syntax));
  program.uses_tf32 = context.syntax.uses_tf32;
  if (program.uses_tf32 && program.accumulate != DType::kF32) {
    context.error(context.syntax.compute_where,
                  fmt::format("multiply = \"tf32\" needs accumulate = \"f32\", not {}", to_text(program.accumulate)));
  }
}

void declare_indices(CheckContext& context) {
  for (const IndexSyntax& syntax : context.syntax.indices) {
    if (context.kinds.contains(syntax.name)) {
      context.error(syntax.where, fmt::format("the name {} is declared twice: it is already {}", syntax.name, context.kinds[syntax.name]));
      continue;
    }
    context.stated_indices[syntax.name] = &syntax;
    if (const std::optional<IntExpr> extent = dims_expression(context, syntax.extent, fmt::format("the extent of index {}", syntax.name)))
      context.extents.state(syntax.name, *extent);
    if (syntax.ragged) declare_ragged(context, syntax);
  }
  for (const auto& [name, syntax] : context.stated_indices) {
    if (syntax->below) declare_below(context, *syntax);
  }
}

void finish_indices(CheckContext& context) {
  // After another mistake an index may have lost the use that gives its extent.
  const auto extents = context.extents.solve(context.diagnostics, !context.diagnostics.has_errors() && !context.is_partial);
  for (const auto& [name, extent] : extents) {
    Index index;
    index.name = name;
    index.extent = extent;
    const auto below = context.below.find(name);
    if (below != context.below.end()) index.below = below->second;
    const auto stated = context.stated_indices.find(name);
    if (stated != context.stated_indices.end() && stated->second->ragged) {
      index.ragged_offsets = stated->second->ragged->name;
      index.ragged_group = stated->second->ragged->operands[0]->name;
    }
    context.program.indices.push_back(std::move(index));
  }
  for (const auto& [name, syntax] : context.stated_indices) {
    const bool is_used = std::any_of(extents.begin(), extents.end(), [&, index = name](const auto& entry) { return entry.first == index; });
    const bool is_unsolved = context.diagnostics.has_errors();
    if (!is_used && !is_unsolved) context.error(syntax->where, fmt::format("index {} is stated but never used", name));
  }
}

}  // namespace kw::generator
