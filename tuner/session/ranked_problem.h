// One problem of a program, enumerated and ranked over all templates: what explain prints, generate writes and tune tries.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "db/database.h"
#include "generator/emit/variant.h"
#include "tuner/session/services.h"
#include "tuner/session/spec_file.h"

namespace kw::tuner {

struct RankedVariant {
  std::size_t factory = 0;  ///< index into RankedProblem::factories
  generator::RankedConfig ranked;
};

struct RankedProblem {
  Problem problem;
  std::vector<generator::VariantFactory> factories;
  std::vector<generator::ConfigSpace> spaces;  ///< one per factory
  std::vector<RankedVariant> ranked;           ///< all templates together, fastest prediction first
  std::vector<std::string> refused_templates;  ///< "gemm_sm80_mma: A is f64: ..."
  std::vector<db::RefusalSummary> refusals;    ///< by template and rule, with one example each
};

/// Error kNotSupported when no template makes the program, or when rules leave no config (the reasons are in the message).
Result<RankedProblem> rank_problem(const LoadedSpec& spec, Services& services, const Problem& problem);

/// The problems of a program: explicit rows, else the product of the dims' lists, each with `set` replacing values.
/// Errors: a name in `set` that is no dim or stride (nearest suggested), an "any" dim without a value, more than 10,000 problems.
Result<std::vector<Problem>> problems_of(const generator::Program& program, const std::vector<std::string>& set);

}  // namespace kw::tuner
