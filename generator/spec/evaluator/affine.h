// Affine forms of subscripts over index slots, and their inversion: which index values write a given element.
// Part of the evaluator; compiled_program.h has the types.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "generator/spec/evaluator/compiled_program.h"

namespace kw::generator {

/// Number of operands of a pointwise function.
size_t arity(Function function);

/// constant + Σ coefficient · index, if the expression has that form; dims become numbers.
std::optional<Affine> read_affine(const ExprNode& expr, const std::map<std::string, int>& slots, const IntBindings& dims);

/// Index values of `statement` that write `coordinates`; false when the statement does not cover them. `values` follows statement.slots.
bool invert_subscripts(const CompiledProgram& program, const CompiledStatement& statement, std::span<const std::int64_t> coordinates,
                       std::vector<std::int64_t>& values);

}  // namespace kw::generator
