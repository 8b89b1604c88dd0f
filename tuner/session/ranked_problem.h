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
  std::vector<generator::ConfigSpace> spaces;  ///< one for each factory of one kernel; those of plans come after them
  std::uint64_t num_points = 0;                ///< configs of all spaces, those of the kernels of plans too
  std::vector<RankedVariant> ranked;           ///< all templates together, fastest prediction first
  std::vector<std::string> refused_templates;  ///< "gemm_sm80_mma: A is f64: ..."
  std::vector<db::RefusalSummary> refusals;    ///< by template and rule, with one example each
};

/// Kernels alone, or plans of several too.
enum class PlanKinds { kSingleKernels, kAll };

/// Error kNotSupported when no template makes the program, or when rules leave no config (the reasons are in the message).
Result<RankedProblem> rank_problem(const LoadedSpec& spec, Services& services, const Problem& problem, PlanKinds kinds = PlanKinds::kAll);

/// The shapes that the --set options of a command mean, each as one text "M=1,N=2". Options that name different things are one shape
/// together (none: the shape ""); where a name comes twice each option is a shape of its own, and all must name the same dims.
Result<std::vector<std::string>> shapes_of_set(const std::vector<std::string>& set);
/// The same for a command that answers for one shape: several are refused in its name.
Result<std::string> single_shape_of_set(const std::vector<std::string>& set, const std::string& command);

/// The problems of a program: explicit rows, else the product of the dims' lists, for each shape of `set` with its values in place of
/// the rows'. Strides declared "any" are row-major for the dims of the problem unless `set`, or a row with these very dims, gives them.
/// Errors: a name in `set` that is no dim or free stride (nearest suggested), an "any" dim without a value, more than 10,000 problems.
Result<std::vector<Problem>> problems_of(const generator::Program& program, const std::vector<std::string>& set);

}  // namespace kw::tuner
