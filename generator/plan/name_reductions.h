// Reductions inside larger values become statements of their own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "generator/spec/program.h"

namespace kw::generator {

/// The program's statements, with an intermediate for every reduction that is only a part of its statement, "out_sum" of a sum in out;
/// equal reductions have one. A reduction over several indices that is no contraction becomes one for each index. Reductions in a branch of
/// where stay: where it is not taken they may leave their tensors' axes.
std::vector<Statement> name_reductions(const Program& program);

}  // namespace kw::generator
