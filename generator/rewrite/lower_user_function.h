// Lowers one user function from clang's AST to the expression IR. Private to the files of this folder that include clang's headers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "generator/spec/program.h"

namespace clang {
class ASTContext;
class FunctionDecl;
class QualType;
}  // namespace clang

namespace kw::generator {

/// Type of a value in the notation; none for what a user function may not hold.
std::optional<DType> dtype_of(clang::QualType type);

/// The body over kParameter nodes. Errors: the construct that is no part of user functions, with its place.
Result<ExprRef> lower_user_function(clang::ASTContext& context, const clang::FunctionDecl& function);

}  // namespace kw::generator
