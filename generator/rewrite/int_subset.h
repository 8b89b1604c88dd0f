// The integer subset of C++ in which templates write rules, launch sizes and estimates -> IntExpr.
// The subset is listed in docs/adding-a-template.md; everything else is refused with its place and its name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "generator/base/int_expr.h"

namespace clang {
class ASTContext;
class FunctionDecl;
}  // namespace clang

namespace kw::generator {

/// Inlines the function into one expression over its parameters, annotated members of Config, "size_bytes.X" of bound types and
/// members of DeviceLimits, each a variable by its name.
Result<IntExpr> lower_int_function(clang::ASTContext& context, const clang::FunctionDecl& function);

}  // namespace kw::generator
