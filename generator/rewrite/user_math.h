// CUDA's device functions that a user function may call -> the notation. A table, apart from the walk over the AST.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "generator/spec/program.h"

namespace kw::generator {

/// The value of name(arguments) in the notation, or null when the notation has no such function. `name` as called: "expf", "__expf",
/// "fmax". NaN propagates through max and min, as everywhere in the notation.
ExprRef lower_math_call(std::string_view name, const std::vector<ExprRef>& arguments, DType type);

/// The names that lower_math_call() knows, without suffixes, for "did you mean".
std::vector<std::string> math_names();

/// C's integer division and remainder (toward zero) by the notation's, which floor.
ExprRef truncating_divide(const ExprRef& a, const ExprRef& b);
ExprRef truncating_remainder(const ExprRef& a, const ExprRef& b);

}  // namespace kw::generator
