// Buffers and launches in sequence.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/launch/simulation.h"

#include <bit>
#include <chrono>

#include <fmt/format.h>

namespace kw::simulate {

Simulation::Simulation(SimulationOptions options) : options_(std::move(options)), memory_(options_.max_global_bytes) {}

Result<std::uint64_t> Simulation::allocate(const BufferRequest& request) {
  constexpr std::uint64_t kFullAlignment = 256;
  if (!std::has_single_bit(request.align_bytes) || request.initial.size() > request.num_bytes) {
    return fail(Stage::kVerify, Code::kBadInput,
                fmt::format("buffer '{}': alignment {} must be a power of two, and {} initial bytes must fit in {} bytes", request.name,
                            request.align_bytes, request.initial.size(), request.num_bytes));
  }
  if (request.align_bytes > kFullAlignment) {
    return fail(Stage::kVerify, Code::kBadInput,
                fmt::format("buffer '{}': alignment {}: buffers are at most 256-byte aligned", request.name, request.align_bytes));
  }
  const std::uint64_t offset = request.align_bytes < kFullAlignment ? request.align_bytes : 0;
  KW_TRY(const std::uint64_t address, memory_.allocate(request.name, request.num_bytes, request.role, offset));
  if (request.role == AllocationRole::kOutput) {
    memory_.write(address, request.initial);
  } else {
    std::vector<std::byte> bytes(request.num_bytes);
    std::copy(request.initial.begin(), request.initial.end(), bytes.begin());
    memory_.write(address, bytes);
  }
  return address;
}

Result<LaunchReport> Simulation::launch(const Module& module, const LaunchCall& call) {
  LaunchRequest request;
  request.kernel = call.kernel;
  request.grid = call.grid;
  request.block = call.block;
  request.cluster = call.cluster;
  request.dynamic_shared_bytes = call.dynamic_shared_bytes;
  request.arguments = call.arguments;
  request.machine = {options_.schedule, options_.checks_races, options_.checks_initialisation, options_.is_strict, call.is_dependent};
  request.tensor_mode = options_.tensor_mode;
  request.limits = options_.limits;
  std::string names;
  for (const Variable& variable : module.variables) names += variable.name + ' ';
  std::vector<std::uint64_t>& variable_addresses = variable_addresses_[{&module, names}];
  request.variable_addresses = variable_addresses;
  const auto start = std::chrono::steady_clock::now();
  KW_TRY(LaunchReport report, simulate(module, request, memory_));
  variable_addresses = report.variable_addresses;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

std::span<const std::byte> Simulation::bytes(std::uint64_t address) const {
  const Allocation* allocation = memory_.nearest(address);
  KW_CHECK(allocation != nullptr && allocation->address == address, "an address that allocate() returned");
  return allocation->bytes;
}

}  // namespace kw::simulate
