// Plans of several kernels of one problem: every cut of the program, its kernels ranked each by itself, and the combinations to try.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "generator/spec/evaluator.h"
#include "tuner/session/ranked_problem.h"

namespace kw::tuner {

/// One cut as it would run: for explain. Bytes are without a cache; `l2_aware_bytes` leaves out what a kernel reads of an earlier kernel's
/// result that fits the L2, and what is written to a workspace where all that a launch touches fits half of it.
struct PlanOutline {
  static constexpr std::size_t kUnfused = static_cast<std::size_t>(-1);
  std::size_t number = 0;  ///< of the cut, as a plan's config has it; kUnfused: none of them
  std::string cut;         ///< Partition::to_text()
  struct Kernel {
    std::string text;  ///< the statements that write, one a line
    generator::WorkCounts work;
    double intensity = 0, bound_us = 0;
  };
  std::vector<Kernel> kernels;
  double bytes = 0, l2_aware_bytes = 0;
  double workspace_bytes = 0, unshared_workspace_bytes = 0;  ///< with and without memory that intermediates use in turn
};

/// The cuts of the program that have several kernels, and last the one with a kernel for each statement, where there is one.
Result<std::vector<PlanOutline>> outline_plans(const LoadedSpec& spec, Services& services, const Problem& problem);

/// Adds the plans of several kernels to `ranked`: of each cut the best kernels together, and this with one kernel exchanged at a time.
/// Kernels are the model's best; where they were timed on this device by themselves (plan_steps.h) the fastest, and cuts that were timed
/// and are near the fastest. Ok with nothing added where one kernel is the only cut. Error: why there is no cut at all.
Status add_plans(const LoadedSpec& spec, Services& services, RankedProblem& ranked);

}  // namespace kw::tuner
