// Checks a kernel without a GPU: its PTX runs on the simulator, on the same inputs and against the same reference as on a device
// (protocol v1, checking), with races, fences, initialisation, bounds and barriers watched.
// Place in the pipeline: tuner/session compiles a variant, asks here, and stores the answer at the level `simulated`, never as `device`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "simulator/launch/simulation.h"
#include "tuner/device/gpu_worker.h"

namespace kw::tuner {

/// Basic blocks of one or several kernels, and those of them that ran: a verification counts for these alone.
struct BlockShare {
  std::uint64_t num_executed = 0;
  std::uint64_t num_blocks = 0;
};

/// A block that ran in any of a kernel's launches counts as executed.
class BlockTally {
 public:
  void add(const std::vector<simulate::LaunchReport>& reports);
  BlockShare share() const;

 private:
  std::map<std::string, simulate::CoverageUnion> by_kernel_;
};

struct SimulatedOutcome {
  /// kOk, kWrongResult (also for races and other findings that leave the result in doubt), kOutOfBounds, kHung (deadlock, livelock,
  /// instruction budget), kLaunchFailed (a trap, what the hardware refuses at the launch or in an instruction). is_bit_stable compares two
  /// launches.
  VerifyOutcome outcome;
  std::vector<simulate::LaunchReport> reports;  ///< of the plan's launches, in order, each time
  std::uint64_t num_warp_instructions = 0;
  double seconds = 0;                                     ///< of the simulator alone
  BlockShare blocks;                                      ///< of its kernels, in all launches together
  std::map<std::string, std::vector<std::byte>> outputs;  ///< by tensor, after the first launch; only when it ended
};

/// The simulated outputs as reference values for a device, each element, with no room for error: a device that differs in one bit
/// (but for the sign of zero and the kind of NaN) is told apart by verify(). Errors: as tensor_storages().
Result<std::vector<OutputSamples>> exact_samples(const KernelJob& job, const SimulatedOutcome& simulated);

/// `job.cubin` is not used; `module` is the parsed PTX of the same source. Errors: forms that the simulator does not have
/// (kNotSupported), a plan that does not fit the kernel, memory over the cap.
Result<SimulatedOutcome> verify_simulated(const KernelJob& job, const simulate::Module& module, const std::vector<InputFill>& inputs,
                                          const std::vector<OutputSamples>& samples, const simulate::SimulationOptions& options);

}  // namespace kw::tuner
