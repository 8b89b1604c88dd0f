// Several launches over the same buffers, as a host program makes them: allocate, launch, launch, read. The end of a launch orders
// everything before the next one (one stream). The door for the tuner's verification and for `kernelwright simulate`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "simulator/launch/launch.h"
#include "simulator/launch/report.h"

namespace kw::simulate {

struct SimulationOptions {
  Schedule schedule = {};
  TensorMode tensor_mode = TensorMode::kExact;
  LaunchLimits limits = {};  ///< of each launch
  std::uint64_t max_global_bytes = std::uint64_t{1} << 30;
  bool checks_races = true;
  bool checks_initialisation = true;
  bool is_strict = false;
};

struct BufferRequest {
  std::string name;
  std::uint64_t num_bytes = 0;
  AllocationRole role = AllocationRole::kInput;
  /// The address is a multiple of this and, below 256, of nothing larger, so that promises of alignment are put to the test.
  std::uint64_t align_bytes = 256;
  std::span<const std::byte> initial = {};  ///< at most num_bytes; the rest of an input or inout buffer is zero
};

struct LaunchCall {
  std::string kernel;
  std::array<std::uint32_t, 3> grid = {1, 1, 1};
  std::array<std::uint32_t, 3> block = {1, 1, 1};
  std::array<std::uint32_t, 3> cluster = {0, 0, 0};  ///< 0: what the kernel says
  std::uint32_t dynamic_shared_bytes = 0;
  std::vector<std::vector<std::byte>> arguments = {};  ///< one packed value a kernel parameter
};

class Simulation {
 public:
  explicit Simulation(SimulationOptions options = {});
  /// Returns the address. Errors: over the memory cap; align_bytes no power of two.
  Result<std::uint64_t> allocate(const BufferRequest& request);
  /// Errors as simulate(); what the kernel does wrong is in the report.
  Result<LaunchReport> launch(const Module& module, const LaunchCall& call);
  const SimulationOptions& options() const { return options_; }
  /// All bytes of the buffer at `address`, as allocate() returned it.
  std::span<const std::byte> bytes(std::uint64_t address) const;
  /// Bytes of an output buffer that no store has reached so far.
  std::uint64_t num_unwritten_bytes(std::uint64_t address) const { return memory_.num_uninitialised(address); }

 private:
  SimulationOptions options_;
  GlobalMemory memory_;
};

}  // namespace kw::simulate
