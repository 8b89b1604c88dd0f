// Fits a group to a row pattern "out[m,n] = row[n](m)": one index of the outputs runs along the rows, the others count them; reductions
// run over the former. Reductions of the notation are taken apart into sums, products, maxima and minima in phases.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "generator/plan/fusion_group.h"

namespace kw::generator {

/// mean, softmax, logsumexp, any and all written as sums, maxima and pointwise functions. Error kNotSupported for a reduction that is
/// none of these nor a sum, product, maximum or minimum.
Result<ExprRef> expand_reductions(const ExprRef& expr, const Program& program);

/// The match, or nothing with the reason. Values of the result are over m (all rows, flattened) and n; each output's subscripts too.
std::optional<PatternMatch> match_row(const FusionGroup& group, const Program& program, std::string& why_not);

/// Whether a read along the rows, over m and n, is the same for every row: by its subscripts, a stride of zero does not count.
bool is_shared_by_rows(const ExprRef& read);

/// Whether a node reads a row of a tensor that is declared const, at subscripts without data: it may be fetched before the kernel before
/// this one has ended.
bool is_const_row(const ExprRef& node, const Program& program);

}  // namespace kw::generator
