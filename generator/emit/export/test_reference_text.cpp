// Export: struct Reference of the exported test: data, strides and the op's formula over them, and the comparison of each output.
// SPDX-License-Identifier: Apache-2.0
#include "generator/emit/export/test_text.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "generator/emit/export/expression_text.h"
#include "generator/emit/export/names.h"
#include "generator/spec/walk.h"

namespace kw::generator {
namespace {

double max_finite(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 65504.0;
    case DType::kBF16:
      return 0x1.fep127;
    case DType::kE4M3:
      return 448.0;
    case DType::kE5M2:
      return 57344.0;
    case DType::kF32:
    case DType::kTF32:
      return 0x1.fffffep127;
    default:
      return 0x1.fffffffffffffp1023;
  }
}

/// Lowest and highest value of an integer type, as doubles.
std::array<double, 2> integer_range(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return {-128, 127};
    case DType::kI32:
      return {-2147483648.0, 2147483647.0};
    default:
      return {-0x1p63, 0x1.fffffffffffffp62};
  }
}

std::string offset_text(const PlanTensor& tensor, const std::vector<std::string>& subscripts) {
  std::string text;
  for (std::size_t axis = 0; axis < subscripts.size(); ++axis) {
    text += fmt::format("{}{} * {}", axis == 0 ? "" : " + ", subscripts[axis], cpp_factor(tensor.strides[axis]));
  }
  return fmt::format("static_cast<std::size_t>({})", text.empty() ? "0" : text);
}

std::string elements_text(const PlanTensor& tensor) {
  std::vector<std::string> shape, strides;
  for (const IntExpr& extent : tensor.shape) shape.push_back(cpp_text(extent));
  for (const IntExpr& stride : tensor.strides) strides.push_back(cpp_text(stride));
  return fmt::format("span({{{}}}, {{{}}})", fmt::join(shape, ", "), fmt::join(strides, ", "));
}

std::string statement_function(const Program& program, std::size_t position) {
  const Statement& statement = program.statements[position];
  std::size_t part = 0;
  for (std::size_t i = 0; i < position; ++i) part += program.statements[i].target == statement.target ? 1 : 0;
  return fmt::format("{}_value{}", safe_name(statement.target), part == 0 ? "" : fmt::format("_{}", part));
}

std::string index_parameters(const Statement& statement) {
  std::vector<std::string> parameters;
  for (const std::string& index : statement.indices) parameters.push_back("[[maybe_unused]] std::int64_t " + safe_name(index));
  return fmt::format("{}", fmt::join(parameters, ", "));
}

bool has_reduction(const ExprRef& value) {
  return any_node(value, [](const ExprRef& node) { return node->kind == ExprNode::Kind::kReduce; });
}

/// Whether a statement reads an intermediate that is reduced itself: without memory its reference would work that out for every element.
bool reads_reduced(const Program& program) {
  std::set<std::string> reduced;
  for (const Statement& statement : program.statements) {
    if (!statement.is_tensor && has_reduction(statement.value)) reduced.insert(statement.target);
  }
  return std::any_of(program.statements.begin(), program.statements.end(), [&](const Statement& statement) {
    return has_reduction(statement.value) && any_node(statement.value, [&](const ExprRef& node) {
             return node->kind == ExprNode::Kind::kRead && reduced.count(node->name) != 0;
           });
  });
}

/// The table of a list's pointers when its tensors lie one behind the other.
std::string table_text(const PlanTensor& tensor) {
  return fmt::format(
      "  std::vector<char*> {0}_table(void* first) const {{\n    std::vector<char*> table;\n"
      "    for (std::int64_t i = 0; i < {1}; ++i) table.push_back(static_cast<char*>(first) + i * {2} * "
      "static_cast<std::int64_t>(sizeof({3})));\n"
      "    return table;\n  }}\n",
      safe_name(tensor.name), cpp_text(tensor.shape.front()), cpp_factor(tensor.strides.front()), storage_type(tensor.dtype));
}

/// Elements past the bounds of a statement's indices are not compared: they keep what an updated tensor held.
Result<std::string> bounds_text(const Program& program, const Statement& statement, const PlanTensor& tensor, const std::string& offset) {
  std::string text;
  for (const std::string& name : statement.indices) {
    const Index* index = program.find_index(name);
    if (index == nullptr || !index->below) continue;
    KW_TRY(const std::string bound, expression_text_as(program, index->below, ValueKind::kInt));
    const std::string target = safe_name(tensor.name);
    if (tensor.role == TensorRole::kOut) {
      text += fmt::format("      if ({} >= {}) continue;\n", safe_name(name), bound);
      continue;
    }
    text += fmt::format(
        "      if ({0} >= {1}) {{\n        if (decode({2}_out[{3}]) == decode({2}_data[{3}])) continue;\n"
        "        std::printf(\"  {2} at position %lld: past its length, and written\\n\", static_cast<long long>(position));\n"
        "        return false;\n      }}\n",
        safe_name(name), bound, target, offset);
  }
  return text;
}

/// The place of a statement's value among all of its values.
Result<std::string> place_text(const Program& program, const Statement& statement) {
  std::string place = "std::int64_t{0}";
  for (const std::string& name : statement.indices) {
    const Index* index = program.find_index(name);
    if (index == nullptr) return fail(Stage::kEmit, Code::kInternal, "export: index " + name + " has no extent");
    place = fmt::format("({}) * {} + {}", place, cpp_factor(index->extent), safe_name(name));
  }
  return place;
}

/// One statement of the formula as a member function of its free indices. An intermediate with a reduction is worked out once an element.
Result<std::string> statement_text(const Program& program, std::size_t position) {
  const Statement& statement = program.statements[position];
  KW_TRY(std::string value, expression_text_as(program, statement.value, ValueKind::kReal));
  const Tensor* tensor = program.find_tensor(statement.target);
  if (statement.is_tensor && tensor != nullptr && is_integer(tensor->dtype) && tensor->dtype != DType::kBool) {
    const auto [low, high] = integer_range(tensor->dtype);
    value = fmt::format("to_integer({}, {}, {})", value, double_literal(low), double_literal(high));
  }
  const std::string name = statement_function(program, position), parameters = index_parameters(statement);
  if (statement.is_tensor || !has_reduction(statement.value))
    return fmt::format("  Real {}({}) const {{ return {}; }}\n", name, parameters, value);
  KW_TRY(const std::string place, place_text(program, statement));
  return fmt::format(
      "  mutable std::unordered_map<std::int64_t, Real> {0}_kept;\n"
      "  Real {0}({1}) const {{\n"
      "    const auto [kept, is_new] = {0}_kept.try_emplace({2});\n"
      "    if (is_new) kept->second = {3};\n"
      "    return kept->second;\n"
      "  }}\n",
      name, parameters, place, value);
}

constexpr std::string_view kCheckBody = R"(  bool {name}(Comparison& comparison, std::mt19937_64& random) const {{
    for (std::int64_t position : positions({count}, {run}, random)) {{
{indices}      const double out = decode({target}_out[{offset}]);
      const Real expected = {function}({arguments});
      if (!comparison.check(out, expected, {roundoff}, {subnormal}, {max_finite})) {{
        std::printf("  {target} at position %lld: %.9g, expected %.9g within %.3g\n", static_cast<long long>(position), out, expected.value,
                    expected.bound + {roundoff} * std::fabs(expected.value) + {subnormal});
        return false;
      }}
    }}
    return true;
  }}
)";

/// Compares what a kernel wrote with one statement of an output.
Result<std::string> check_text(const ExportModel& model, std::size_t position) {
  const Program& program = *model.program;
  const Statement& statement = program.statements[position];
  std::vector<std::string> subscripts, extents, arguments;
  for (const ExprRef& subscript : statement.subscripts) {
    KW_TRY(const std::string text, expression_text_as(program, subscript, ValueKind::kInt));
    subscripts.push_back(text);
  }
  std::string indices = "      [[maybe_unused]] std::int64_t rest = position;\n";
  for (std::size_t i = statement.indices.size(); i-- > 0;) {
    const Index* index = program.find_index(statement.indices[i]);
    if (index == nullptr) return fail(Stage::kEmit, Code::kInternal, "export: index " + statement.indices[i] + " has no extent");
    const std::string extent = cpp_factor(index->extent), name = safe_name(statement.indices[i]);
    extents.push_back(extent);
    indices += fmt::format("      const std::int64_t {0} = rest % {1};\n      rest /= {1};\n", name, extent);
  }
  for (const std::string& index : statement.indices) arguments.push_back(safe_name(index));
  const PlanTensor* tensor = nullptr;
  for (const PlanTensor& entry : model.plan->tensors) tensor = entry.name == statement.target ? &entry : tensor;
  if (tensor == nullptr) return fail(Stage::kEmit, Code::kInternal, "export: output " + statement.target + " is not in the launch plan");
  KW_TRY(const std::string bounds, bounds_text(program, statement, *tensor, offset_text(*tensor, subscripts)));
  indices += bounds;
  return fmt::format(fmt::runtime(kCheckBody), fmt::arg("name", fmt::format("check_{}", position)),
                     fmt::arg("count", extents.empty() ? std::string("1") : fmt::format("{}", fmt::join(extents, " * "))),
                     fmt::arg("run", reads_reduced(program) ? 256 : 1), fmt::arg("indices", indices),
                     fmt::arg("target", safe_name(statement.target)), fmt::arg("offset", offset_text(*tensor, subscripts)),
                     fmt::arg("function", statement_function(program, position)),
                     fmt::arg("arguments", fmt::format("{}", fmt::join(arguments, ", "))),
                     fmt::arg("roundoff", double_literal(unit_roundoff(tensor->dtype))),
                     fmt::arg("subnormal", double_literal(smallest_subnormal(tensor->dtype))),
                     fmt::arg("max_finite", double_literal(max_finite(tensor->dtype))));
}

}  // namespace

std::vector<IntExpr> limits_of(const Program& program, const std::string& tensor) {
  std::vector<IntExpr> limits;
  const auto add = [&](const ExprRef& subscript, const IntExpr& limit) {
    const bool is_new = std::find(limits.begin(), limits.end(), limit) == limits.end();
    if (subscript->kind == ExprNode::Kind::kRead && subscript->name == tensor && is_new) limits.push_back(limit);
  };
  for (const Index& index : program.indices) {
    if (index.below) add(index.below, index.extent + IntExpr(1));
  }
  for (const Statement& statement : program.statements) {
    visit_nodes(statement.value, [&](const ExprRef& node) {
      const Tensor* const read = node->kind == ExprNode::Kind::kRead ? program.find_tensor(node->name) : nullptr;
      if (read == nullptr) return true;
      const std::vector<IntExpr> shape = subscripted_shape(*read);
      for (std::size_t axis = 0; axis < shape.size() && axis < node->operands.size(); ++axis) add(node->operands[axis], shape[axis]);
      return true;
    });
  }
  return limits;
}

/// struct Reference: dims, strides, data, and the formula over them.
Result<std::string> test_reference_text(const ExportModel& model) {
  const Program& program = *model.program;
  std::string text = "// The op's formula, element by element, in double.\nstruct Reference {\n";
  for (const std::vector<std::string>* names : {&model.dims, &model.strides}) {
    for (const std::string& name : *names) text += fmt::format("  std::int64_t {} = 0;\n", safe_name(name));
  }
  for (const PlanScalar& scalar : model.plan->scalars)
    text += fmt::format("  {} {} = 0;\n", scalar_type(scalar.dtype), safe_name(scalar.name));
  for (const PlanTensor& tensor : model.plan->tensors) {
    const std::string name = safe_name(tensor.name), type = storage_type(tensor.dtype);
    if (tensor.role != TensorRole::kOut) text += fmt::format("  std::vector<{}> {}_data;\n", type, name);
    if (tensor.role != TensorRole::kIn) text += fmt::format("  std::vector<{}> {}_out;  // what the kernel wrote\n", type, name);
  }
  text += "\n";
  for (const PlanTensor& tensor : model.plan->tensors) {
    if (tensor.role == TensorRole::kOut) continue;
    std::vector<std::string> parameters, subscripts;
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      subscripts.push_back(fmt::format("i{}", axis));
      parameters.push_back(fmt::format("std::int64_t i{}", axis));
    }
    text += fmt::format("  Real {0}_at({1}) const {{ return as_real(decode({0}_data[{2}])); }}\n", safe_name(tensor.name),
                        fmt::join(parameters, ", "), offset_text(tensor, subscripts));
  }
  for (const Scalar& scalar : program.scalars) {
    if (!scalar.value) continue;
    KW_TRY(const std::string value, expression_text_as(program, scalar.value, ValueKind::kReal));
    text += fmt::format("  Real {}_value() const {{ return {}; }}\n", safe_name(scalar.name), value);
  }
  for (std::size_t i = 0; i < program.statements.size(); ++i) {
    KW_TRY(const std::string statement, statement_text(program, i));
    text += statement;
  }
  text += "\n";
  for (std::size_t i = 0; i < program.statements.size(); ++i) {
    if (!program.statements[i].is_tensor) continue;
    KW_TRY(const std::string check, check_text(model, i));
    text += check;
  }
  for (const PlanTensor& tensor : model.plan->tensors) {
    if (tensor.is_list) text += table_text(tensor);
    const std::vector<IntExpr> limits = limits_of(program, tensor.name);
    if (limits.empty()) continue;
    std::vector<std::string> texts;
    for (const IntExpr& limit : limits) texts.push_back(cpp_text(limit));
    text += fmt::format("  std::int64_t {}_limit() const {{ return std::min<std::int64_t>({{{}}}); }}\n", safe_name(tensor.name),
                        fmt::join(texts, ", "));
  }
  text += "\n" + test_set_strides_text(model);
  for (const PlanTensor& tensor : model.plan->tensors) {
    text += fmt::format("  std::int64_t {}_elements() const {{ return {}; }}\n", safe_name(tensor.name), elements_text(tensor));
  }
  return text + "};\n";
}

}  // namespace kw::generator
