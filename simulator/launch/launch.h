// Simulates one launch of a kernel: checks the request, places parameters and variables, admits CTAs, runs their warps to the end or
// to a stand-still, and returns what was found. The only entry for users of the simulator besides parse_ptx.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "generator/base/error.h"
#include "simulator/execute/executor.h"
#include "simulator/machine/machine.h"
#include "simulator/ptx/module.h"

namespace kw::simulate {

struct LaunchLimits {
  std::uint64_t max_warp_instructions = 500'000'000;
  std::uint64_t max_resident_bytes = std::uint64_t{1} << 30;  ///< registers, shared and local memory with their shadow
  std::size_t max_findings = 64;
  /// Clusters that run interleaved; 0: one, or several when the kernel's CTAs may wait for each other.
  std::uint32_t num_resident_clusters = 0;
};

struct LaunchRequest {
  std::string kernel;
  std::array<std::uint32_t, 3> grid = {1, 1, 1};
  std::array<std::uint32_t, 3> block = {1, 1, 1};
  std::array<std::uint32_t, 3> cluster = {0, 0, 0};  ///< 0: what the kernel says (.reqnctapercluster), else 1
  std::uint32_t dynamic_shared_bytes = 0;
  std::vector<std::vector<std::byte>> arguments = {};  ///< one a kernel parameter, of its size
  MachineOptions machine = {};
  TensorMode tensor_mode = TensorMode::kExact;
  LaunchLimits limits = {};
  /// Where an earlier launch of the module in this memory had its variables (LaunchReport), with what it left there. Empty: new ones.
  std::vector<std::uint64_t> variable_addresses = {};
};

/// A group of lanes that could not go on when the launch stood still.
struct WaitingGroup {
  std::uint32_t cta = 0;
  std::uint32_t warp = 0;
  LaneMask lanes = 0;
  std::uint32_t pc = 0;
  std::string text;  ///< "barrier 0: 32 of 96 threads have arrived, ..."
  WaitHistory history;
};

/// Bytes of an output that no store reached.
struct UnwrittenOutput {
  std::string name;
  std::uint64_t num_unwritten_bytes = 0;
  std::uint64_t num_bytes = 0;
};

struct LaunchReport {
  std::string file;  ///< of the PTX
  std::string kernel;
  Schedule schedule;
  bool has_ended = false;  ///< all threads of the grid have exited
  std::vector<Finding> findings;
  std::uint64_t num_dropped_findings = 0;
  bool has_unchecked_memory = false;  ///< more global memory was written than the race check holds
  std::vector<WaitingGroup> waiting;  ///< after a deadlock, livelock or exhausted budget
  std::vector<UnwrittenOutput> unwritten;
  std::uint64_t num_warp_instructions = 0;
  std::uint64_t num_ctas_run = 0;
  double seconds = 0;  ///< host time, when Simulation measured it; not part of to_json
  BlockCoverage coverage;
  std::vector<std::uint8_t> executed;             ///< by pc
  std::shared_ptr<const Program> program;         ///< maps pcs to lines
  std::vector<std::uint64_t> variable_addresses;  ///< of the module's .global and .const variables
  bool is_clean() const { return has_ended && findings.empty(); }
};

/// Runs the launch. Errors are mistakes of the request (kBadInput) and forms that the simulator does not know (kNotSupported);
/// faults of the kernel are findings of the report. Inputs are taken from `memory`, outputs left in it.
Result<LaunchReport> simulate(const Module& module, const LaunchRequest& request, GlobalMemory& memory);
/// The same for a program decoded before (decode_kernel), for many launches of one kernel.
Result<LaunchReport> simulate(const Module& module, std::shared_ptr<const Program> program, const LaunchRequest& request,
                              GlobalMemory& memory);

/// The blocks that any of several launches of one kernel executed: a verification's coverage.
class CoverageUnion {
 public:
  /// KW_CHECK: all reports are of one kernel (as many instructions).
  void add(const LaunchReport& report);
  BlockCoverage coverage() const;

 private:
  std::shared_ptr<const Program> program_;
  std::vector<std::uint8_t> executed_;
};

/// The bytes of a scalar or pointer argument.
template <typename T>
std::vector<std::byte> argument(const T& value) {
  const auto* first = reinterpret_cast<const std::byte*>(&value);
  return {first, first + sizeof(T)};
}

}  // namespace kw::simulate
