// Runs a kernel of a PTX fixture on the three schedules with all checks on; used by the tests of whole kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "simulator/launch/simulation.h"
#include "simulator/ptx/parser.h"
#include "tests/catch.h"

namespace kw::simulate {

/// The parsed fixture tests/simulator/kernels/NAME.
inline Module load_fixture(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(KW_SOURCE_DIR) / "tests/simulator/kernels" / name;
  std::ifstream in(path);
  REQUIRE(in.good());
  std::stringstream text;
  text << in.rdbuf();
  Result<Module> module = parse_ptx(text.str(), name);
  if (!module) FAIL(to_text(module.error()));
  return std::move(*module);
}

inline const std::vector<Schedule>& all_schedules() {
  static const std::vector<Schedule> schedules = {{Adversary::kEager, 0}, {Adversary::kLazy, 0}, {Adversary::kRandom, 7}};
  return schedules;
}

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span<const T>(values));
}

template <typename T>
std::uint64_t input(Simulation& simulation, const std::string& name, const std::vector<T>& values) {
  const auto address = simulation.allocate({.name = name,
                                            .num_bytes = values.size() * sizeof(T),
                                            .role = AllocationRole::kInput,
                                            .align_bytes = 256,
                                            .initial = bytes_of(values)});
  REQUIRE(address.has_value());
  return *address;
}

/// An output starts poisoned, an inout buffer zeroed.
inline std::uint64_t output(Simulation& simulation, const std::string& name, std::uint64_t num_bytes, bool is_zeroed = false) {
  const auto address = simulation.allocate(
      {.name = name, .num_bytes = num_bytes, .role = is_zeroed ? AllocationRole::kInOut : AllocationRole::kOutput, .align_bytes = 256});
  REQUIRE(address.has_value());
  return *address;
}

template <typename T>
std::vector<T> values_at(const Simulation& simulation, std::uint64_t address) {
  const std::span<const std::byte> bytes = simulation.bytes(address);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

/// Calls `body` with a fresh simulation for each schedule, under a Catch context that names it.
inline void on_every_schedule(const std::function<void(Simulation&)>& body) {
  for (const Schedule& schedule : all_schedules()) {
    CAPTURE(to_text(schedule));
    Simulation simulation({.schedule = schedule});
    body(simulation);
  }
}

/// Launches and requires that nothing was found.
inline void run_clean(Simulation& simulation, const Module& module, const LaunchCall& call) {
  const Result<LaunchReport> report = simulation.launch(module, call);
  if (!report) FAIL(to_text(report.error()));
  if (!report->is_clean()) FAIL(to_text(*report));
}

/// The kinds found on any of the three schedules, once each.
inline std::vector<FindingKind> kinds_found(const Module& module, const std::function<LaunchCall(Simulation&)>& prepare) {
  std::vector<FindingKind> kinds;
  on_every_schedule([&](Simulation& simulation) {
    const LaunchCall call = prepare(simulation);
    const Result<LaunchReport> report = simulation.launch(module, call);
    if (!report) FAIL(to_text(report.error()));
    for (const Finding& finding : report->findings) {
      if (std::find(kinds.begin(), kinds.end(), finding.kind) == kinds.end()) kinds.push_back(finding.kind);
    }
  });
  return kinds;
}

}  // namespace kw::simulate
