// Export: spelling of names, types and integer expressions in the exported C++.
// SPDX-License-Identifier: Apache-2.0
#include "generator/emit/export/names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace kw::generator {
namespace {

// Keywords of C++20 and CUDA's words, then macros of headers that an export includes, then names the emitted functions use. Sorted.
constexpr std::array kReserved = {"EOF",
                                  "HUGE_VAL",
                                  "INFINITY",
                                  "NAN",
                                  "NULL",
                                  "alignas",
                                  "alignof",
                                  "and",
                                  "asm",
                                  "auto",
                                  "blockDim",
                                  "blockIdx",
                                  "bool",
                                  "break",
                                  "case",
                                  "catch",
                                  "char",
                                  "class",
                                  "concept",
                                  "const",
                                  "constexpr",
                                  "continue",
                                  "decltype",
                                  "default",
                                  "delete",
                                  "do",
                                  "double",
                                  "else",
                                  "enum",
                                  "errno",
                                  "explicit",
                                  "export",
                                  "extern",
                                  "false",
                                  "float",
                                  "for",
                                  "friend",
                                  "goto",
                                  "gridDim",
                                  "if",
                                  "inline",
                                  "int",
                                  "kernel",
                                  "linux",
                                  "long",
                                  "main",
                                  "mutable",
                                  "namespace",
                                  "new",
                                  "not",
                                  "operator",
                                  "or",
                                  "parameters",
                                  "private",
                                  "protected",
                                  "public",
                                  "register",
                                  "requires",
                                  "return",
                                  "scratch",
                                  "short",
                                  "signed",
                                  "sizeof",
                                  "static",
                                  "std",
                                  "stderr",
                                  "stdout",
                                  "stream",
                                  "struct",
                                  "switch",
                                  "template",
                                  "this",
                                  "threadIdx",
                                  "throw",
                                  "true",
                                  "try",
                                  "typedef",
                                  "typeid",
                                  "typename",
                                  "union",
                                  "unix",
                                  "unsigned",
                                  "using",
                                  "v",
                                  "virtual",
                                  "void",
                                  "volatile",
                                  "warpSize",
                                  "while",
                                  "workspace",
                                  "workspace_bytes",
                                  "xor",
                                  "zeroed_workspace",
                                  "zeroed_workspace_bytes"};

}  // namespace

bool is_identifier(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front()))) return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) { return (c < 128 && std::isalnum(c)) || c == '_'; });
}

std::string safe_name(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '.', '_');
  if (std::find(kReserved.begin(), kReserved.end(), text) != kReserved.end()) text += '_';
  return text;
}

std::string camel_case(std::string_view snake) {
  std::string text;
  bool is_word_start = true;
  for (const char c : snake) {
    if (c == '_') {
      is_word_start = true;
    } else {
      text += is_word_start ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
      is_word_start = false;
    }
  }
  return text;
}

std::string header_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kTF32:
      return "float";
    case DType::kF64:
      return "double";
    case DType::kI8:
      return "std::int8_t";
    case DType::kI32:
      return "std::int32_t";
    case DType::kI64:
      return "std::int64_t";
    case DType::kBool:
      return "bool";
    case DType::kF16:
    case DType::kBF16:
    case DType::kE4M3:
    case DType::kE5M2:
      return "void";
  }
  return "void";
}

std::string scalar_type(DType dtype) {
  const std::string type = header_type(dtype);
  return type == "void" ? "float" : type;
}

std::string argument_type(const PlanTensor& tensor) {
  return fmt::format("{}{}*{}", tensor.role == TensorRole::kIn ? "const " : "", header_type(tensor.dtype), tensor.is_list ? " const*" : "");
}

std::string storage_type(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return "__half";
    case DType::kBF16:
      return "__nv_bfloat16";
    case DType::kE4M3:
      return "__nv_fp8_e4m3";
    case DType::kE5M2:
      return "__nv_fp8_e5m2";
    case DType::kBool:
      return "unsigned char";
    default:
      return header_type(dtype);
  }
}

std::string cpp_text(const IntExpr& expr) {
  std::set<std::string> names;
  expr.collect_variables(names);
  std::map<std::string, IntExpr> renamed;
  for (const std::string& name : names) {
    if (safe_name(name) != name) renamed.emplace(name, IntExpr::variable(safe_name(name)));
  }
  return renamed.empty() ? expr.to_cpp() : expr.substitute(renamed).to_cpp();
}

std::string cpp_factor(const IntExpr& expr) {
  const bool is_plain = expr.op() == IntExpr::Op::kVar || (expr.is_constant() && expr.constant() >= 0);
  return is_plain ? cpp_text(expr) : "(" + cpp_text(expr) + ")";
}

std::string locals_text(const std::vector<IntExpr>& expressions, std::string_view indent) {
  std::set<std::string> names;
  for (const IntExpr& expression : expressions) expression.collect_variables(names);
  std::string text;
  for (const std::string& name : names) text += fmt::format("{0}const std::int64_t {1} = v.{1};\n", indent, safe_name(name));
  return text;
}

std::string double_literal(double value) {
  if (std::isnan(value)) return "std::numeric_limits<double>::quiet_NaN()";
  if (std::isinf(value)) return value > 0 ? "std::numeric_limits<double>::infinity()" : "-std::numeric_limits<double>::infinity()";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return value < 0 ? "(" + text + ")" : text;
}

std::string comment(std::string_view text) {
  std::string result;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    // A backslash at a line's end would join the next line to the comment.
    result += line.empty() ? "//\n" : fmt::format("// {}{}\n", line, line.back() == '\\' ? "." : "");
    begin = end + 1;
  }
  return result;
}

}  // namespace kw::generator
