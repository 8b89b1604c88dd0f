// Export: spelling of names, types and integer expressions in the exported C++. Pure text; used by every other file of this folder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "generator/base/int_expr.h"
#include "generator/base/launch_plan.h"

namespace kw::generator {

/// Letters, digits and '_', not starting with a digit.
bool is_identifier(std::string_view name);
/// The name as C++ may spell it: '.' becomes '_', and a keyword or a macro of the standard headers gets a '_' behind it.
std::string safe_name(std::string_view name);
/// "matmul_bias_relu" -> "MatmulBiasRelu".
std::string camel_case(std::string_view snake);

/// Element type in the exported header: "float", "std::int32_t"; "void" for the 16- and 8-bit floats, which C++ has no name for.
std::string header_type(DType dtype);
/// Type of a tensor's argument: "const float*", of a list "const float* const*", the table of its pointers.
std::string argument_type(const PlanTensor& tensor);
/// Type of a launch-time scalar in the exported header.
std::string scalar_type(DType dtype);
/// Type of one stored element in the exported test: "__half", "float".
std::string storage_type(DType dtype);

/// C++ text of an expression, with every variable spelled by safe_name().
std::string cpp_text(const IntExpr& expr);
/// The same as a factor of a product: in parentheses unless it is a name or a number.
std::string cpp_factor(const IntExpr& expr);
/// "  const std::int64_t M = v.M;" for each variable of the expressions, in alphabetical order.
std::string locals_text(const std::vector<IntExpr>& expressions, std::string_view indent = "  ");
/// A double as a C++ literal that reads back to the same value.
std::string double_literal(double value);
/// Text with "// " before each line.
std::string comment(std::string_view text);

}  // namespace kw::generator
