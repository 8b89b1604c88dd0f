// Export: the op's expressions as C++ in double, for the exported test. Works with the functions of texts/test_support.cuh.
// Reductions become loops inside a lambda. Refuses by name what it cannot write.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "generator/spec/program.h"

namespace kw::generator {

/// What a C++ expression is: class Real (value and bound), std::int64_t, or bool.
enum class ValueKind { kReal, kInt, kBool };

struct ExpressionText {
  std::string text;
  ValueKind kind = ValueKind::kReal;
};

/// `expr` as C++ inside the exported struct Reference: dims and scalars are its members, T_at(...) reads tensor T, T_value(...) computes
/// an intermediate or an output. Errors: kNotSupported with the construct's name.
Result<ExpressionText> expression_text(const Program& program, const ExprRef& expr);
/// The same, converted to one kind.
Result<std::string> expression_text_as(const Program& program, const ExprRef& expr, ValueKind kind);

}  // namespace kw::generator
