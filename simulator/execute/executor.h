// Runs the warps of a launch on a machine: the call that the scheduling loop (simulator/launch) makes for each warp.
// Knows nothing of which CTAs are resident or when a launch is stuck; it says for each warp whether it went on, waits or has ended.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "generator/base/error.h"
#include "simulator/execute/program.h"
#include "simulator/machine/machine.h"
#include "simulator/ptx/module.h"

namespace kw::simulate {

/// Errors: kNotSupported for operand types or combinations that the simulator does not have, kBadInput for operands that contradict
/// the instruction; with file and line. The program does not refer to the module afterwards.
Result<std::shared_ptr<const Program>> decode_kernel(const Module& module, std::string_view kernel_name);

/// What a launch gives besides the program.
struct LaunchArguments {
  std::vector<std::byte> parameters = {};              ///< Program::parameter_bytes of them
  std::uint64_t parameter_address = 0;                 ///< of a read-only global allocation with the same bytes
  std::vector<std::uint64_t> variable_addresses = {};  ///< by index into Module::variables; 0 for shared ones
  std::uint32_t dynamic_shared_bytes = 0;
  TensorMode tensor_mode = TensorMode::kExact;
};

enum class WarpStep : std::uint8_t {
  kProgress = 0,  ///< used up its instructions
  kParked = 1,    ///< no group can go on until the machine's wake_count() changes
  kExited = 2,
  kFault = 3  ///< a finding was recorded; end the launch
};

/// A group of lanes for reports of deadlocks.
struct GroupView {
  std::uint32_t pc = 0;
  LaneMask lanes = 0;
  bool is_parked = false;     ///< Machine::describe_wait says why
  bool is_gathering = false;  ///< waits for other lanes of its warp at a collective
  std::string reason = {};    ///< when the executor itself parked it: "waits for warp 3 of its warpgroup"
};

class Executor {
 public:
  /// Errors: kBadInput when the arguments do not match the kernel's parameters.
  static Result<std::unique_ptr<Executor>> make(std::shared_ptr<const Program> program, Machine& machine, LaunchArguments arguments);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Makes the warps of a CTA that the machine has admitted; all start at pc 0.
  void start(Cta* cta);
  /// Runs one warp for at most `max_instructions` warp instructions; adds the number executed to `num_executed`.
  WarpStep run(Cta* cta, std::uint32_t warp, std::uint64_t max_instructions, std::uint64_t& num_executed);
  /// Frees the warps of a CTA whose threads have all exited.
  void finish(Cta* cta);

  std::vector<GroupView> groups(Cta* cta, std::uint32_t warp) const;
  /// A hash of the warp's registers and pcs: equal over a turn of a loop without stores means that it spins.
  std::uint64_t state_hash(Cta* cta, std::uint32_t warp) const;
  const Program& program() const;
  /// By pc: whether any lane has executed the instruction.
  const std::vector<std::uint8_t>& executed() const;

 private:
  Executor();
  struct State;
  std::unique_ptr<State> state_;
};

/// Basic blocks of the program and those of them that ran.
struct BlockCoverage {
  std::uint32_t num_blocks = 0;
  std::uint32_t num_executed = 0;
  std::vector<std::uint32_t> missed;  ///< first pcs
};
BlockCoverage block_coverage(const Program& program, const std::vector<std::uint8_t>& executed);

}  // namespace kw::simulate
