// Runs a kernel of a PTX text on the machine, CTA after CTA in the simplest way, for tests of the executor.
// simulator/launch has the real scheduling loop; this one only turns over the warps of one cluster at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "simulator/execute/executor.h"
#include "simulator/ptx/parser.h"
#include "tests/catch.h"

namespace kw::simulate {

struct KernelRun {
  GlobalMemory memory;
  LaunchShape shape;
  MachineOptions options;
  std::vector<std::byte> parameters;
  std::uint32_t dynamic_shared_bytes = 0;
  TensorMode tensor_mode = TensorMode::kExact;
  // results
  std::vector<Finding> findings;
  bool is_finished = false;
  std::uint64_t num_executed = 0;
  BlockCoverage coverage;

  template <typename T>
  void add_parameter(T value) {
    while (parameters.size() % sizeof(T) != 0) parameters.push_back(std::byte{0});
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    parameters.insert(parameters.end(), bytes, bytes + sizeof(T));
  }
  /// A buffer with these values; returns its address.
  template <typename T>
  std::uint64_t add_buffer(const std::string& name, const std::vector<T>& values, AllocationRole role) {
    const Result<std::uint64_t> address = memory.allocate(name, values.size() * sizeof(T), role);
    REQUIRE(address.has_value());
    if (role != AllocationRole::kOutput) {
      memory.write(*address, std::span(reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T)));
    }
    return *address;
  }
  template <typename T>
  std::vector<T> read(std::uint64_t address, std::size_t count) const {
    const std::vector<std::byte> bytes = memory.read(address, count * sizeof(T));
    std::vector<T> values(count);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  void run(const std::string& text, const std::string& kernel, std::uint64_t max_turns = 100000);

 private:
  bool run_cluster(Machine& machine, Executor& executor, std::uint64_t cluster, std::uint64_t max_turns);
};

inline void KernelRun::run(const std::string& text, const std::string& kernel, std::uint64_t max_turns) {
  const Result<Module> module = parse_ptx(text, "test.ptx");
  INFO((module ? std::string() : to_text(module.error())));
  REQUIRE(module.has_value());
  const Result<std::shared_ptr<const Program>> program = decode_kernel(*module, kernel);
  INFO((program ? std::string() : to_text(program.error())));
  REQUIRE(program.has_value());
  LaunchArguments arguments{.parameters = parameters, .dynamic_shared_bytes = dynamic_shared_bytes, .tensor_mode = tensor_mode};
  if (!parameters.empty()) {
    arguments.parameter_address = add_buffer("parameters", parameters, AllocationRole::kConstant);
  }
  for (const Variable& variable : module->variables) {
    arguments.variable_addresses.push_back(0);
    if (variable.space == StateSpace::kShared) continue;
    std::vector<std::uint8_t> bytes = variable.initial;
    bytes.resize(variable.size_bytes);
    const bool is_const = variable.space == StateSpace::kConst;
    arguments.variable_addresses.back() = add_buffer(variable.name, bytes, is_const ? AllocationRole::kConstant : AllocationRole::kInOut);
  }
  const KernelLayout& layout = (*program)->layout;
  shape.shared_bytes = layout.static_shared_bytes + dynamic_shared_bytes;
  shape.local_bytes_per_thread = layout.local_bytes_per_thread;
  shape.shared_symbols = layout.shared_symbols;
  for (SharedSymbol& symbol : shape.shared_symbols) {
    if (symbol.num_bytes == 0) symbol.num_bytes = dynamic_shared_bytes;
  }
  Machine machine(memory, shape, options);
  const Result<std::unique_ptr<Executor>> executor = Executor::make(*program, machine, arguments);
  REQUIRE(executor.has_value());
  const std::uint64_t num_clusters = std::uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2] / shape.ctas_per_cluster();
  is_finished = true;
  for (std::uint64_t cluster = 0; cluster < num_clusters && is_finished; ++cluster) {
    is_finished = run_cluster(machine, **executor, cluster, max_turns);
  }
  findings = machine.findings().all();
  coverage = block_coverage((*executor)->program(), (*executor)->executed());
}

inline bool KernelRun::run_cluster(Machine& machine, Executor& executor, std::uint64_t cluster, std::uint64_t max_turns) {
  const std::vector<Cta*> ctas = machine.admit(cluster);
  for (Cta* cta : ctas) executor.start(cta);
  for (std::uint64_t turn = 0; turn < max_turns; ++turn) {
    bool is_alive = false;
    bool has_progress = false;
    for (Cta* cta : ctas) {
      for (std::uint32_t warp = 0; warp < shape.num_warps(); ++warp) {
        std::uint64_t executed = 0;
        const WarpStep step = executor.run(cta, warp, 1000, executed);
        num_executed += executed;
        if (step == WarpStep::kFault) return false;
        is_alive = is_alive || step != WarpStep::kExited;
        has_progress = has_progress || executed > 0;
        machine.tick();
      }
    }
    if (!is_alive) {
      for (Cta* cta : ctas) executor.finish(cta);
      machine.retire(cluster);
      return true;
    }
    if (!has_progress && !machine.force_one_completion()) return false;  // deadlock
  }
  return false;
}

}  // namespace kw::simulate
