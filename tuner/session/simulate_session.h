// Checks an op's variants on the simulator: compile to PTX, run small problems on several schedules, compare with the reference.
// Place in the pipeline: beside tune_session.h; needs NVRTC but no GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "simulator/launch/simulation.h"
#include "tuner/session/ranked_problem.h"
#include "tuner/session/services.h"
#include "tuner/session/spec_file.h"
#include "tuner/session/verification_data.h"
#include "tuner/verify/simulated.h"

namespace kw::tuner {

struct SimulateOptions {
  std::size_t num_variants = 8;   ///< fewer where fewer are legal
  std::uint64_t random_seed = 0;  ///< 0: the model's best, of different shapes; else random legal variants
  std::size_t num_problems = 3;   ///< small problems of each variant, at most
  bool compares_device = false;   ///< run each problem on the device too and compare all outputs, bit by bit
  bool is_at_problem = false;     ///< simulate at the problem itself, not at small ones derived from it
  std::vector<simulate::Schedule> schedules;
  simulate::TensorMode tensor_mode = simulate::TensorMode::kExact;
  ProgressSink progress;
};

/// One variant at one problem on one schedule.
struct SimulatedCase {
  std::string variant;
  std::string problem;
  simulate::Schedule schedule;
  SimulatedOutcome result;
  bool is_compared = false;       ///< the device ran it too
  std::string device_difference;  ///< what differs there; empty: all outputs are equal
};

/// Variants that the compiler refused for one kind of reason.
struct Refusals {
  std::size_t count = 0;
  std::string example;  ///< "gemm_simt__...: spills: 12 B stored, ..."
};

struct SimulationSummary {
  Problem problem;
  std::size_t num_variants = 0, num_right = 0;  ///< simulated; right in all their cases
  std::size_t num_refused = 0;                  ///< did not compile, spilled, or has serialised wgmma
  std::map<std::string, Refusals> refusals;     ///< by the compiler, by status
  std::vector<SimulatedCase> cases;
  std::map<std::string, BlockShare> blocks;  ///< of each variant, in all its cases together
  std::vector<std::string> failures;         ///< a line for each wrong variant, and for each that did not compile
  std::uint64_t num_warp_instructions = 0;
  std::size_t num_compared = 0, num_equal = 0;         ///< cases that ran on the device too
  double seconds = 0;                                  ///< wall time of the whole
  std::map<std::string, simulate::ReportTexts> texts;  ///< of the variants that are not right, for reports
};

/// The cases of one variant, on all cores: every problem of `data` on every schedule of `options`, in that order.
/// Errors: as verify_simulated.
Result<std::vector<SimulatedCase>> simulate_variant(const generator::Variant& variant, const simulate::Module& module,
                                                    const std::vector<std::shared_ptr<const VerificationData>>& data,
                                                    const SimulateOptions& options);

/// The three schedules of a verification: asynchronous copies as early as they may, as late as they may, and at random.
std::vector<simulate::Schedule> all_schedules();

/// Errors: no NVRTC, PTX that the simulator does not have, memory over the simulator's cap.
Result<SimulationSummary> simulate_problem(const LoadedSpec& spec, const Problem& problem, const SimulateOptions& options,
                                           Services& services);

}  // namespace kw::tuner
