// The text report. A finding shows what, the earlier access, what lies between, the later access, and what would order them.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/launch/report.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/launch/report_view.h"

namespace kw::simulate {
namespace {

constexpr std::size_t kMaxQuote = 100;  // columns of a quoted line

std::string shortened(const std::string& quote) {
  if (quote.empty()) return "";
  std::string text = "  " + (quote.size() > kMaxQuote ? quote.substr(0, kMaxQuote - 3) + "..." : quote);
  std::replace(text.begin(), text.end(), '\t', ' ');
  return text;
}

std::string ptx_text(const CodePlace& code) {
  if (code.ptx.line == 0) return code.ptx.file;
  return fmt::format("{}:{} {}", code.ptx.file, code.ptx.line, code.ptx.quote.empty() ? code.form : shortened(code.ptx.quote).substr(2));
}

/// The lines of an instruction, each with `margin` before it: PTX, source, callers.
std::string lines_of(const LaunchReport& report, std::uint32_t pc, const ReportTexts& texts, const std::string& margin) {
  const CodePlace code = code_place(report, pc, texts);
  std::string text;
  for (std::size_t depth = 0; depth < code.sources.size(); ++depth) {
    const QuotedLine& source = code.sources[depth];
    text += fmt::format("{}{}{}:{}{}\n", margin, depth == 0 ? "" : "called from ", source.file, source.line, shortened(source.quote));
  }
  return text + fmt::format("{}{}\n", margin, ptx_text(code));
}

std::string timeline_text(const LaunchReport& report, const Finding& finding, const ReportTexts& texts) {
  const Timeline timeline = timeline_of(finding);
  const bool has_two = timeline.columns.size() == 2;
  std::string text = has_two ? fmt::format("  A = {}, B = {}; time runs down\n\n   A   B\n", timeline.columns[0], timeline.columns[1]) : "";
  for (std::size_t at = 0; at < timeline.steps.size(); ++at) {
    const TimelineStep& step = timeline.steps[at];
    const char mark = step.is_access ? '*' : '+';
    const std::string_view label = !has_two || !step.is_access ? "" : at == 0 ? "earlier: " : "later:   ";
    const std::string head = !has_two ? "  at: " : step.column == 0 ? fmt::format("   {}   .   ", mark) : fmt::format("   .   {}   ", mark);
    const std::string margin = !has_two ? "      " : "   .   .     ";
    text += fmt::format("{}{}{} {}\n", head, label, who(step.place), step.place.role);
    text += lines_of(report, step.place.pc, texts, margin);
  }
  return text;
}

std::string text_of(const DistinctFinding& distinct, const ReportTexts& texts, bool names_schedules) {
  const Finding& finding = *distinct.finding;
  std::string text = fmt::format("{}: {}\n", to_text(finding.kind), finding.message);
  if (!finding.remedy.empty()) text += fmt::format("  remedy:  {}\n", finding.remedy);
  if (const std::string gap = gap_of(*distinct.report, finding); !gap.empty()) text += fmt::format("  where:   between {}\n", gap);
  if (!is_standstill(finding.kind)) text += timeline_text(*distinct.report, finding, texts);  // who stands where follows in its own list
  if (finding.count > 1) text += fmt::format("  seen {} times\n", finding.count);
  if (distinct.num_alike != 0) text += fmt::format("  and the same for {} more instructions of these lines\n", distinct.num_alike);
  if (names_schedules) text += fmt::format("  on schedule {}\n", fmt::join(distinct.schedules, ", "));
  return text;
}

/// Of a barrier that nobody has arrived at: which arrives the kernel has at all.
std::string suspect_text(const LaunchReport& report, const ReportTexts& texts) {
  std::string text =
      "    NOBODY HAS ARRIVED at this barrier so far: look for the arrive that should let this role go. The kernel's arrives:\n";
  for (const ArriveInstruction& arrive : arrive_instructions(report)) {
    const QuotedLine line = call_line(code_place(report, arrive.pc, texts));
    text += fmt::format("      {} {}:{}{}\n", arrive.was_executed ? "executed, for other barriers:" : "not executed so far:", line.file,
                        line.line, shortened(line.quote));
  }
  return text;
}

/// Arrivals at one instruction in one phase are one line.
std::string history_text(const LaunchReport& report, const WaitingRole& role, const ReportTexts& texts) {
  std::string text;
  std::size_t at = 0;
  if (role.is_at_mbarrier && !role.history.places.empty()) {
    text += fmt::format("    {} by {}:\n", role.history.places[0].role, who(role.history.places[0]));
    text += lines_of(report, role.history.places[0].pc, texts, "      ");
    at = 1;
    if (role.history.has_no_arrival) text += suspect_text(report, texts);
  }
  while (at < role.history.places.size()) {
    const Place& first = role.history.places[at];
    std::vector<std::string> names;
    for (; at < role.history.places.size() && role.history.places[at].pc == first.pc && role.history.places[at].role == first.role; ++at) {
      if (names.empty() || names.back() != who(role.history.places[at])) names.push_back(who(role.history.places[at]));
    }
    text += fmt::format("    {}: {}, at\n", first.role, fmt::join(names, ", "));
    text += lines_of(report, first.pc, texts, "      ");
  }
  return text;
}

std::string waiting_text(const LaunchReport& report, const ReportTexts& texts) {
  std::string text = "\nwho waits, where and for what:\n";
  for (const WaitingRole& role : waiting_roles(report)) {
    text += fmt::format("\n  {}\n    {}\n", role.who, role.text);
    text += lines_of(report, role.pc, texts, "      ");
    text += history_text(report, role, texts);
  }
  return text;
}

/// What the last report has besides findings, and the blocks that none of the reports executed.
std::string tail_text(const std::vector<const LaunchReport*>& reports) {
  const LaunchReport& last = *reports.back();
  std::string text;
  if (!last.has_ended) return text;  // what it did not come to says nothing
  if (last.num_dropped_findings != 0) text += fmt::format("\n{} further findings are not listed\n", last.num_dropped_findings);
  if (last.has_unchecked_memory)
    text += "\nmore global memory was written than the race check holds: part of it was not checked for races\n";
  for (const UnwrittenOutput& output : last.unwritten) {
    text += fmt::format("\noutput '{}': {} of {} bytes were never written\n", output.name, output.num_unwritten_bytes, output.num_bytes);
  }
  if (std::any_of(reports.begin(), reports.end(), [](const LaunchReport* report) { return !report->is_clean(); })) return text;
  CoverageUnion together;
  for (const LaunchReport* report : reports) together.add(*report);
  for (const std::uint32_t pc : together.coverage().missed) text += fmt::format("  block not executed: {}\n", line_of(last, pc));
  return text;
}

}  // namespace

std::string line_of(const LaunchReport& report, std::uint32_t pc) {
  const CodePlace code = code_place(report, pc, {});
  if (code.ptx.line == 0) return fmt::format("{}, instruction {}", report.file, pc);
  std::string text = ptx_text(code);
  if (!code.sources.empty()) text += fmt::format(", source {}:{}", code.sources[0].file, code.sources[0].line);
  return text;
}

std::string to_text(const LaunchReport& report, const ReportTexts& texts) { return to_text(std::vector{&report}, texts); }

std::string to_text(const std::vector<const LaunchReport*>& reports, const ReportTexts& texts) {
  std::string text;
  for (const LaunchReport* report : reports) {
    text += fmt::format("kernel {} ({}), schedule {}: {}\n", report->kernel, report->file, to_text(report->schedule), verdict(*report));
    text += fmt::format("  {} CTAs, {} warp instructions, {} of {} basic blocks executed\n", report->num_ctas_run,
                        report->num_warp_instructions, report->coverage.num_executed, report->coverage.num_blocks);
  }
  for (const DistinctFinding& distinct : distinct_findings(reports)) text += "\n" + text_of(distinct, texts, reports.size() > 1);
  const auto stuck = std::find_if(reports.begin(), reports.end(), [](const LaunchReport* report) { return is_stuck(*report); });
  if (stuck != reports.end() && !(*stuck)->waiting.empty()) text += waiting_text(**stuck, texts);
  return text + tail_text(reports) + fmt::format("({})\n", kReportScope);
}

}  // namespace kw::simulate
