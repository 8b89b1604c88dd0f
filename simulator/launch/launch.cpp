// One launch from request to report.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/launch/launch.h"

#include <cstring>

#include <fmt/format.h>

#include "simulator/launch/scheduler.h"
#include "simulator/launch/symbol_name.h"

namespace kw::simulate {
namespace {

/// Module variables (.global, .const) as allocations, by index; shared ones stay 0.
Result<std::vector<std::uint64_t>> place_variables(const Module& module, GlobalMemory& memory) {
  std::vector<std::uint64_t> addresses(module.variables.size(), 0);
  for (std::size_t index = 0; index < module.variables.size(); ++index) {
    const Variable& variable = module.variables[index];
    if (variable.space != StateSpace::kGlobal && variable.space != StateSpace::kConst) continue;
    const bool is_constant = variable.space == StateSpace::kConst;
    KW_TRY(addresses[index], memory.allocate(short_name(variable.name), variable.size_bytes,
                                             is_constant ? AllocationRole::kConstant : AllocationRole::kInOut));
    std::vector<std::byte> bytes(variable.size_bytes);
    if (!variable.initial.empty())
      std::memcpy(bytes.data(), variable.initial.data(), std::min<std::size_t>(bytes.size(), variable.initial.size()));
    memory.write(addresses[index], bytes);
  }
  return addresses;
}

void fill_report(LaunchReport& report, const Machine& machine, const Executor& executor, const GlobalMemory& memory) {
  report.findings = machine.findings().all();
  report.num_dropped_findings = machine.findings().num_dropped();
  report.has_unchecked_memory = machine.has_unchecked_memory();
  report.executed = executor.executed();
  report.coverage = block_coverage(executor.program(), executor.executed());
  for (const auto& allocation : memory.allocations()) {
    if (allocation->role != AllocationRole::kOutput) continue;
    const std::uint64_t num_unwritten = memory.num_uninitialised(allocation->address);
    if (num_unwritten != 0) report.unwritten.push_back({allocation->name, num_unwritten, allocation->num_bytes});
  }
}

}  // namespace

Result<LaunchReport> simulate(const Module& module, std::shared_ptr<const Program> program, const LaunchRequest& request,
                              GlobalMemory& memory) {
  KW_TRY(const CheckedLaunch launch, check_request(module, *program, request));
  if (const std::uint64_t needed = resident_bytes(launch.shape, *program, request.machine.checks_races);
      needed > request.limits.max_resident_bytes) {
    return fail(Stage::kVerify, Code::kNotSupported,  // a GPU may well run it
                fmt::format("kernel '{}': one resident cluster needs {} bytes of the host: the cap is {}", request.kernel, needed,
                            request.limits.max_resident_bytes));
  }
  LaunchArguments arguments;
  arguments.parameters = launch.parameters;
  KW_TRY(arguments.parameter_address, memory.allocate("kernel parameters", launch.parameters.size(), AllocationRole::kConstant));
  memory.write(arguments.parameter_address, launch.parameters);
  if (request.variable_addresses.empty()) {
    KW_TRY(arguments.variable_addresses, place_variables(module, memory));
  } else {
    KW_CHECK(request.variable_addresses.size() == module.variables.size(), "variables of the same module");
    arguments.variable_addresses = request.variable_addresses;
  }
  const std::vector<std::uint64_t> variable_addresses = arguments.variable_addresses;
  arguments.dynamic_shared_bytes = request.dynamic_shared_bytes;
  arguments.tensor_mode = request.tensor_mode;

  Machine machine(memory, launch.shape, request.machine);
  KW_TRY(const std::unique_ptr<Executor> executor, Executor::make(program, machine, std::move(arguments)));
  Scheduler scheduler(launch, request, machine, *executor);
  LaunchReport report;
  report.file = module.file;
  report.kernel = request.kernel;
  report.schedule = request.machine.schedule;
  report.program = std::move(program);
  report.variable_addresses = variable_addresses;
  report.has_ended = scheduler.run();
  if (!report.has_ended) report.waiting = scheduler.waiting();
  report.num_warp_instructions = scheduler.num_executed();
  report.num_ctas_run = scheduler.num_ctas_run();
  fill_report(report, machine, *executor, memory);
  return report;
}

void CoverageUnion::add(const LaunchReport& report) {
  if (program_ == nullptr) {
    program_ = report.program;
    executed_.assign(report.executed.size(), 0);
  }
  KW_CHECK(executed_.size() == report.executed.size(), "launches of one kernel");
  for (std::size_t pc = 0; pc < executed_.size(); ++pc) executed_[pc] = static_cast<std::uint8_t>(executed_[pc] | report.executed[pc]);
}

BlockCoverage CoverageUnion::coverage() const { return program_ == nullptr ? BlockCoverage{} : block_coverage(*program_, executed_); }

Result<LaunchReport> simulate(const Module& module, const LaunchRequest& request, GlobalMemory& memory) {
  KW_TRY(std::shared_ptr<const Program> program, decode_kernel(module, request.kernel));
  return simulate(module, std::move(program), request, memory);
}

}  // namespace kw::simulate
