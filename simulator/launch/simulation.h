// Several launches over the same buffers, as a host program makes them: allocate, launch, write, launch, read. The end of a launch orders
// everything before the next one (one stream). A module's variables live as long as the buffers. The door for the tuner's verification and
// for `kernelwright simulate`. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
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
  bool is_dependent = false;                           ///< see MachineOptions
  std::vector<std::vector<std::byte>> arguments = {};  ///< one packed value a kernel parameter
};

class Simulation {
 public:
  explicit Simulation(SimulationOptions options = {});
  /// Returns the address. Errors: over the memory cap; align_bytes no power of two.
  Result<std::uint64_t> allocate(const BufferRequest& request);
  /// The host's copy to the begin of the buffer at `address`, between two launches. KW_CHECK: inside it.
  void write(std::uint64_t address, std::span<const std::byte> bytes) { memory_.write(address, bytes); }
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
  /// By module, and by its variables' names: another module may come to lie where one was.
  std::map<std::pair<const Module*, std::string>, std::vector<std::uint64_t>> variable_addresses_;
};

}  // namespace kw::simulate
