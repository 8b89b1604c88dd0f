// The kernels of plans as ops of their own: each is tuned alone, and plans are made of what was measured. In: a spec whose program is cut.
// Out: a spec a step, and the times of its kernels from the database.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "generator/base/config.h"
#include "generator/plan/partition.h"
#include "tuner/session/services.h"
#include "tuner/session/spec_file.h"

namespace kw::tuner {

/// One step: the op is named after the whole one and what the step writes, "swiglu_mlp__h". Steps that read and write the same are the
/// same op, whatever cut they are of.
struct PlanStep {
  std::shared_ptr<const LoadedSpec> spec;
  Problem problem;
};

/// Errors: none are known; a step is a checked program.
Result<PlanStep> plan_step(const generator::Program& step, const std::string& whole_name, const Problem& problem);

/// The distinct steps of `partitions` that have several.
Result<std::vector<PlanStep>> plan_steps(const std::vector<generator::Partition>& partitions, const std::string& whole_name,
                                         const Problem& problem);

/// Median times in us of the step's kernels on this device, by `key_of_config`: of the full protocol where there are any, else of the
/// early rung. Empty: no device, no NVRTC, no database, or nothing measured. Errors: of a database that is there.
Result<std::map<std::string, double>> measured_us(const PlanStep& step, Services& services);
std::string key_of_config(const Config& config);

}  // namespace kw::tuner
