// What a matched program gives a template: types and numbers for its BIND members, and its problem variables as expressions over
// the op's own dims and strides.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "generator/plan/fusion_group.h"
#include "generator/rewrite/template_info.h"

namespace kw::generator {

struct TemplateValues {
  IntBindings numbers;                       ///< numeric bindings; size_bytes.X and dtype_code.X of every type binding X
  std::map<std::string, std::string> types;  ///< type binding -> C++ type
  std::map<std::string, IntExpr> variables;  ///< extent_m, A_stride_k, A_align ... over dims, "A.stride0", "A.align"
};

/// Sources of bindings that a kernel's place in a plan gives; 0 for a kernel alone.
inline constexpr const char* kIsDependent = "is_dependent";
inline constexpr const char* kIsFollowed = "is_followed";

/// Errors (kTemplate): a binding source that is not known or names no operand of the pattern.
Result<TemplateValues> template_values(const TemplateInfo& info, const PatternMatch& match);

/// "A is f16, B is f16, accumulate is f32": for messages.
std::string types_text(const PatternMatch& match);

}  // namespace kw::generator
