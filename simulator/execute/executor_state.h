// What the executor's files share: the warps of resident CTAs and the scheduling of lane groups inside a warp.
// Not for users: see executor.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "simulator/execute/executor.h"
#include "simulator/execute/warp.h"
#include "simulator/execute/warpgroup.h"

namespace kw::simulate {

using RegisterBlock = std::unique_ptr<std::byte[], FreeAligned>;

struct ResidentCta {
  std::vector<Warp> warps;
  std::vector<std::shared_ptr<WarpgroupState>> warpgroups;
  RegisterPool pool;
};

struct Executor::State {
  State(std::shared_ptr<const Program> program_, Machine& machine_, LaunchArguments arguments_)
      : program(std::move(program_)), machine(machine_), arguments(std::move(arguments_)), executed(program->code.size(), 0) {}

  // start.cpp: making warps
  RegisterBlock take_registers();
  void fill_constants(Warp& warp) const;
  std::string wait_reason(const Warp& warp) const;
  std::uint64_t constant_value(const Constant& constant, const Warp& warp, std::uint32_t lane) const;
  // run.cpp: the groups of a warp
  WarpStep run(Warp& warp, std::uint64_t max_instructions);
  int pick(Warp& warp);
  void merge(Warp& warp) const;
  bool is_gathered(const Warp& warp, const LaneGroup& group) const;
  LaneMask ready_members(const Warp& warp, const Instr& instr, LaneMask active) const;
  Outcome run_group(Warp& warp, std::size_t index, std::uint64_t& budget);
  /// One instruction that is no plain one, or one that parked; false: the group must be picked again.
  bool step_control(Warp& warp, std::size_t index, const Instr& instr, LaneMask active, Outcome& outcome);
  void branch(Warp& warp, std::size_t index, std::uint32_t target, LaneMask active) const;
  void exit_lanes(Warp& warp, std::size_t index, LaneMask active);
  Outcome step_collective(Warp& warp, std::size_t index, const Instr& instr, LaneMask active);
  void report_divergence(const Warp& warp);

  std::shared_ptr<const Program> program;
  Machine& machine;
  LaunchArguments arguments;
  LaunchFacts facts;
  std::vector<std::uint8_t> executed;
  std::unordered_map<const Cta*, ResidentCta> resident;
  std::vector<RegisterBlock> free_registers;
  std::uint64_t num_executed = 0;
};

}  // namespace kw::simulate
