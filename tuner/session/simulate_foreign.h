// Runs somebody's kernel, a .ptx or .cu file, on the simulator as its launch file says, on several schedules.
// Place in the pipeline: beside simulate_session.h, for kernels that are not ours; needs NVRTC for .cu only, never a GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "simulator/launch/launch_file.h"
#include "tuner/session/services.h"

namespace kw::tuner {

struct ForeignOptions {
  std::string launch_file;
  std::string kernel_file;                   ///< empty: the `source` of the launch file, relative to it
  Arch arch = Arch::kSm90a;                  ///< of a .cu; a .ptx has its own target
  std::vector<std::string> include_folders;  ///< of a .cu, before the kernel's own folder and the toolkit's
  std::vector<simulate::Schedule> schedules;
  simulate::TensorMode tensor_mode = simulate::TensorMode::kExact;
  std::uint64_t max_warp_instructions = 100'000'000;  ///< of each launch; a minute or two
};

struct ForeignRun {
  simulate::LaunchReport report;
  std::vector<simulate::Difference> differences;  ///< from the launch file's `expected`; only when the launch ended
  bool is_right() const { return report.is_clean() && differences.empty(); }
};

struct ForeignSummary {
  std::string kernel_file;
  std::string kernel;            ///< the symbol
  std::vector<ForeignRun> runs;  ///< by schedule
  simulate::ReportTexts texts;
  bool is_right() const;
  std::vector<const simulate::LaunchReport*> reports() const;
  /// A line for each wrong buffer: "schedule lazy: buffer 'y': 3 of 512 elements are wrong, the first is 17: got 0, expected 34".
  std::vector<std::string> failures() const;
};

/// Errors: files that cannot be read, a launch file that does not fit the kernel, a source that does not compile (its log in `detail`),
/// PTX that the simulator does not know, memory over the simulator's cap (all kBadInput or kNotSupported); no NVRTC (kToolchain).
Result<ForeignSummary> simulate_foreign(const ForeignOptions& options, Services& services);

}  // namespace kw::tuner
