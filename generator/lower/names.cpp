// See names.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/lower/names.h"

#include <fmt/format.h>

#include <cmath>

#include "generator/lower/lower.h"

namespace kw::generator {
namespace {

/// Words that a tensor, dim or scalar of a spec may be called and C++ or the templates use.
const std::set<std::string>& reserved_words() {
  static const std::set<std::string> words = {
      "Accumulator", "BFloat16", "Config",   "E4M3",      "E5M2",     "EpilogueArgs", "GemmProblem", "Half",      "alignas",   "alignof",
      "and",         "and_eq",   "asm",      "auto",      "bitand",   "bitor",        "blockDim",    "blockIdx",  "bool",      "break",
      "case",        "catch",    "char",     "class",     "compl",    "concept",      "const",       "consteval", "constexpr", "constinit",
      "continue",    "decltype", "default",  "delete",    "do",       "double",       "else",        "enum",      "explicit",  "export",
      "extern",      "false",    "float",    "for",       "friend",   "goto",         "gridDim",     "if",        "inline",    "int",
      "kVec",        "long",     "mutable",  "namespace", "new",      "noexcept",     "not",         "not_eq",    "nullptr",   "operator",
      "or",          "or_eq",    "private",  "protected", "public",   "register",     "requires",    "return",    "short",     "signed",
      "sizeof",      "static",   "struct",   "switch",    "template", "this",         "threadIdx",   "throw",     "true",      "try",
      "typedef",     "typeid",   "typename", "union",     "unsigned", "using",        "virtual",     "void",      "volatile",  "warpSize",
      "wchar_t",     "while",    "xor",      "xor_eq"};
  return words;
}

}  // namespace

std::string NameTable::unique(const std::string& wanted) {
  std::string name = wanted;
  for (int number = 2; reserved_words().count(name) != 0 || !taken_.insert(name).second; ++number)
    name = fmt::format("{}_{}", wanted, number);
  return name;
}

std::string value_type_name(DType dtype, DType accumulate) {
  if (is_float(dtype)) return accumulate == DType::kF64 ? "double" : "float";
  if (dtype == DType::kBool) return "bool";
  return dtype == DType::kI64 ? "long long" : "int";
}

std::string literal(double value, const std::string& type) {
  const bool is_single = type == "float";
  if (type == "bool") return value != 0 ? "true" : "false";
  if (type == "int") return fmt::format("{:.0f}", value);
  if (type == "long long") return fmt::format("{:.0f}{}", value, std::fabs(value) > 2147483647.0 ? "ll" : "");
  if (std::isnan(value)) return is_single ? "__int_as_float(0x7fffffff)" : "__longlong_as_double(0x7fffffffffffffffll)";
  if (std::isinf(value) || (is_single && std::fabs(value) > 3.4028235677973366e38)) {  // past the midpoint above the largest f32
    const std::string infinity = is_single ? "__int_as_float(0x7f800000)" : "__longlong_as_double(0x7ff0000000000000ll)";
    return value < 0 ? "-" + infinity : infinity;
  }
  std::string text = is_single ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return is_single ? text + "f" : text;
}

std::string element_type_name(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return "Half";
    case DType::kBF16:
      return "BFloat16";
    case DType::kF32:
      return "float";
    case DType::kF64:
      return "double";
    case DType::kTF32:
      return "float";
    case DType::kE4M3:
      return "E4M3";
    case DType::kE5M2:
      return "E5M2";
    case DType::kI8:
      return "signed char";
    case DType::kI32:
      return "int";
    case DType::kI64:
      return "long long";
    case DType::kBool:
      return "bool";
  }
  return "?";
}

}  // namespace kw::generator
