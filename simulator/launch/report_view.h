// What the text and the HTML report have in common: quoted lines, timelines, roles that wait, findings of several schedules as one list.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "simulator/launch/report.h"

namespace kw::simulate {

// Said in every report, so that nobody takes a clean run for more than it is.
constexpr std::string_view kReportScope =
    "simulated, not run: no SASS and no timing; covers the blocks, sizes and schedule of this run; races of the observed order";

/// One line of a text; `quote` is empty when the text is not at hand.
struct QuotedLine {
  std::string file;  ///< as a reader knows it
  int line = 0;
  std::string quote;
  const TextLines* text = nullptr;
};

/// Where an instruction is.
struct CodePlace {
  QuotedLine ptx;
  std::string form;                 ///< "ld.shared.f32"
  std::vector<QuotedLine> sources;  ///< its source line, then the calls it was inlined through, innermost first
};
CodePlace code_place(const LaunchReport& report, std::uint32_t pc, const ReportTexts& texts);

/// "CTA 0 warp 3 lane 4".
std::string who(const Place& place);

/// A finding in the order of the run. Column 0 is the warp of the earlier access, column 1 that of the later one.
struct TimelineStep {
  int column = 0;
  bool is_access = false;
  Place place;
};
struct Timeline {
  std::vector<std::string> columns;  ///< who
  std::vector<TimelineStep> steps;
};
Timeline timeline_of(const Finding& finding);
/// "fence.cu:143 and fence.cu:146": the lines between which something is missing; empty when the finding has no two places.
std::string gap_of(const LaunchReport& report, const Finding& finding);

/// Warps that wait at one place for one thing.
struct WaitingRole {
  std::string who;  ///< "CTA 0 warps 4-7; CTA 1 warps 4-7"
  std::uint32_t pc = 0;
  std::string text;
  bool is_at_mbarrier = false;
  WaitHistory history;  ///< of the first of the warps
};
/// First the roles at an mbarrier that nobody has ever arrived at: they point to what is missing.
std::vector<WaitingRole> waiting_roles(const LaunchReport& report);

/// The kernel's instructions that arrive at mbarriers, one for each source line (with its calls).
struct ArriveInstruction {
  std::uint32_t pc = 0;
  bool was_executed = false;
};
std::vector<ArriveInstruction> arrive_instructions(const LaunchReport& report);
/// Where the wrapper of an instruction was called; its own line when it stands in no inlined function.
QuotedLine call_line(const CodePlace& code);

/// Findings of one kind at the same source lines (where there are none: the same instructions), in either order of the two accesses.
struct DistinctFinding {
  const LaunchReport* report = nullptr;  ///< the first that has it
  const Finding* finding = nullptr;
  std::size_t num_alike = 0;  ///< further instructions, or pairs of them, of the same lines
  std::vector<std::string> schedules;
};
/// Races and missing fences first: what was never written or is wrong often follows from them.
std::vector<DistinctFinding> distinct_findings(const std::vector<const LaunchReport*>& reports);

/// Deadlock, livelock or the instruction budget: where each warp stands is what the reader needs.
bool is_standstill(FindingKind kind);
bool is_stuck(const LaunchReport& report);

/// "ended with findings".
std::string_view verdict(const LaunchReport& report);

}  // namespace kw::simulate
