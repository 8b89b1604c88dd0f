// See template_values.h. Binding sources: docs/adding-a-template.md.
// SPDX-License-Identifier: Apache-2.0
#include "generator/emit/template_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "generator/lower/lower.h"
#include "generator/lower/names.h"
#include "generator/plan/expr_tools.h"

namespace kw::generator {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ':') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// Element type of an operand, of "out" (the first output) or of "accumulate".
std::optional<DType> dtype_of(const std::string& what, const PatternMatch& match) {
  if (what == "accumulate") return match.accumulate;
  if (what == "out") return match.outputs.front().dtype;
  const auto operand = match.operands.find(what);
  return operand == match.operands.end() ? std::nullopt : std::optional<DType>(operand->second.dtype);
}

std::optional<std::int64_t> unit_stride(const std::string& operand_name, const std::string& index, const PatternMatch& match) {
  const auto operand = match.operands.find(operand_name);
  if (operand == match.operands.end() && operand_name != "out") return std::nullopt;
  const auto& strides = operand_name == "out" ? match.outputs.front().strides : operand->second.strides;
  const auto stride = strides.find(index);
  if (stride == strides.end()) return operand_name == "out" ? std::optional<std::int64_t>(0) : std::nullopt;
  return stride->second == IntExpr(1) ? 1 : 0;
}

/// How many reductions the busiest phase of a row has; 1 when there is none.
std::int64_t most_of_one_phase(const PatternMatch& match) {
  std::map<int, std::int64_t> counts = {{0, 1}};
  for (const PatternMatch::Reduction& reduction : match.reductions) ++counts[reduction.phase];
  if (!match.reductions.empty()) --counts[0];
  return std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->second;
}

std::optional<std::int64_t> number_of(const std::string& source, const PatternMatch& match) {
  const std::vector<std::string> parts = split(source);
  const auto type = [&](std::size_t position) { return dtype_of(parts[position], match); };
  if (source == "uses_tf32") return match.uses_tf32 ? 1 : 0;
  if (source == "num_phases") return match.reductions.empty() ? 0 : match.reductions.back().phase + 1;
  if (source == "num_reductions") return most_of_one_phase(match);
  if (source == "bytes_per_column") return match.bytes_per_column;
  if (source == "row_bytes_per_column") return match.row_bytes_per_column;
  if (source == "columns_are_reduced") return match.columns_are_reduced ? 1 : 0;
  if (source == "has_const_rows") return match.has_const_rows ? 1 : 0;
  if (source == "counts_columns") return match.counts_columns ? 1 : 0;
  if (source == "stores_along_rows") {
    const auto runs_along = [](const PatternMatch::Output& output) {
      return std::any_of(output.subscripts.begin(), output.subscripts.end(),
                         [](const ExprRef& subscript) { return depends_on(subscript, {"n"}); });
    };
    return std::any_of(match.outputs.begin(), match.outputs.end(), runs_along) ? 1 : 0;
  }
  if (source == kIsDependent || source == kIsFollowed) return 0;
  if (source == "num_outputs") return static_cast<std::int64_t>(match.outputs.size());
  if (parts[0] == "unit_stride" && parts.size() == 3) return unit_stride(parts[1], parts[2], match);
  if (parts[0] == "dtype_code" && parts.size() == 2 && type(1)) return static_cast<std::int64_t>(*type(1));
  if (parts[0] == "is_float" && parts.size() == 2 && type(1)) return is_float(*type(1)) ? 1 : 0;
  if (parts[0] == "is_same_dtype" && parts.size() == 3 && type(1) && type(2)) return *type(1) == *type(2) ? 1 : 0;
  if (parts[0] == "static" && parts.size() == 2) return 0;  // extents are run-time arguments
  return std::nullopt;
}

tl::unexpected<Error> unknown_source(const TemplateInfo& info, const Binding& binding) {
  return fail(
      Stage::kTemplate, Code::kBadInput,
      fmt::format("{}: BIND(\"{}\") of {}: not a source the generator knows for this template", info.name, binding.source, binding.name));
}

}  // namespace

Result<TemplateValues> template_values(const TemplateInfo& info, const PatternMatch& match) {
  TemplateValues values;
  for (const Binding& binding : info.bindings) {
    const std::vector<std::string> parts = split(binding.source);
    if (!binding.is_type) {
      const std::optional<std::int64_t> number = number_of(binding.source, match);
      if (!number) return unknown_source(info, binding);
      values.numbers[binding.name] = *number;
      continue;
    }
    const std::optional<DType> dtype = parts[0] == "dtype" && parts.size() == 2 ? dtype_of(parts[1], match) : std::nullopt;
    if (!dtype) return unknown_source(info, binding);
    values.types[binding.name] = parts[1] == "accumulate" ? value_type_name(*dtype, *dtype) : element_type_name(*dtype);
    values.numbers["size_bytes." + binding.name] = size_bytes(*dtype);
    values.numbers["dtype_code." + binding.name] = static_cast<std::int64_t>(*dtype);
  }
  for (const auto& [index, extent] : match.extents) values.variables["extent_" + index] = extent;
  for (const auto& [name, operand] : match.operands) {
    for (const auto& [index, stride] : operand.strides) values.variables[fmt::format("{}_stride_{}", name, index)] = stride;
    values.variables[name + "_align"] = IntExpr::variable(operand.tensor + ".align");
  }
  return values;
}

std::string types_text(const PatternMatch& match) {
  std::string text;
  for (const auto& [name, operand] : match.operands) {
    text += fmt::format("{}{} is {}", text.empty() ? "" : ", ", name, to_text(operand.dtype));
    if (operand.tensor != name) text += " (" + operand.tensor + ")";
  }
  return text + fmt::format(", accumulate is {}", to_text(match.accumulate));
}

}  // namespace kw::generator
