// The look at a file of user functions before clang sees it: its size, its nesting, and words that user functions do not need.
// Clang expands macros and templates without bound and walks nesting by recursion; what passes here is small for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "generator/base/error.h"

namespace kw::generator {

constexpr std::size_t kMaxUserBytes = 64 << 10;
constexpr std::size_t kMaxUserTokens = 10'000;
constexpr int kMaxUserNesting = 100;                ///< of (, [ and {
constexpr int kMaxUserElses = 200;                  ///< in one function: each may nest in the one before
constexpr std::size_t kMaxStatementTokens = 2'000;  ///< from one ';', '{' or '}' to the next: bounds what nests without brackets

/// Refuses, with line and column: a file, a function or a statement past the limits above, directives other than "#pragma once", templates,
/// classes, arrays, and aliases that could grow. Reports the first thing of each kind.
Diagnostics check_user_text(std::string_view text, const std::string& file_name);

}  // namespace kw::generator
