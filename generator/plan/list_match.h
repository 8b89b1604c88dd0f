// Fits a group to a list pattern "out[m,n] = list[n](m)": one index counts the tensors of a list, the other one their elements. Values are
// pointwise; reductions run over both indices. How many elements a tensor has may be data (`below`).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "generator/plan/fusion_group.h"

namespace kw::generator {

/// Why only a kernel over lists can make the program: what it reads or writes is a list of tensors, or an extent depends on data. Empty: no
/// statement needs one.
std::string needs_list(const Program& program);
/// The same of one expression.
bool uses_list(const ExprRef& expr, const Program& program);

/// Error where an element past a bound would be read that nothing has written: an intermediate that is written along a bounded index and
/// read along another; or where an `out` is written along one, whose other elements nobody defines.
Status check_bounds(const Program& program);

/// The match, or nothing with the reason. Values of the result are over m (tensors) and n (elements).
std::optional<PatternMatch> match_list(const FusionGroup& group, const Program& program, std::string& why_not);

}  // namespace kw::generator
