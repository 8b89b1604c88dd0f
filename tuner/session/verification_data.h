// Inputs and reference values for checking the variants of one problem: made once per seed, shared by all variants.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "generator/spec/program.h"
#include "tuner/device/gpu_worker.h"

namespace kw::tuner {

struct VerificationData {
  Problem problem;
  std::vector<InputFill> fills;
  std::vector<OutputSamples> samples;
  std::map<std::string, double> scalars;  ///< values of launch-time scalars
};

/// Fresh random inputs (protocol v1): several seeds per problem, drawn when the object is made, so that no two runs check on the same
/// numbers; plus small problems, with odd extents where the spec allows them, that are checked whole. A shape at which the spec itself does
/// not hold (an output not covered) is no small problem.
class VerificationSource {
 public:
  VerificationSource(const generator::Program& program, Problem problem, std::uint64_t run_seed);
  /// Data for the `ordinal`-th check on the tuning problem: at most 4,096 samples per output.
  Result<std::shared_ptr<const VerificationData>> at_problem(std::size_t ordinal);
  /// Data at small extents that `plan` accepts, compared whole; null when no small problem is legal for the plan.
  Result<std::shared_ptr<const VerificationData>> at_small_problem(const LaunchPlan& plan);
  /// Data at several small problems that `plan` accepts, compared whole, for the simulator: off every tile grid, smaller than most
  /// tiles, several tiles by several blocks of the reduction, and shapes that are long along one axis. At most `max_count` (6 at most),
  /// fewer where fewer are legal; perhaps none.
  std::vector<std::shared_ptr<const VerificationData>> at_small_problems(const LaunchPlan& plan, std::size_t max_count);

 private:
  using ExtentLists = std::vector<std::vector<std::int64_t>>;
  /// Of the first of `lists` that `plan` accepts; null when it accepts none.
  std::shared_ptr<const VerificationData> first_legal(const LaunchPlan& plan, const ExtentLists& lists);
  Result<std::shared_ptr<const VerificationData>> make(const Problem& problem, std::uint64_t seed, std::int64_t max_samples) const;

  const generator::Program& program_;
  Problem problem_;
  std::uint64_t run_seed_;
  std::map<std::size_t, std::shared_ptr<const VerificationData>> by_seed_;
  std::map<std::string, std::shared_ptr<const VerificationData>> small_;
};

}  // namespace kw::tuner
