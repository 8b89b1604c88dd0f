// Prints reports. A finding shows what, the later access, the earlier access, and what would order them.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/launch/report.h"

#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kw::simulate {
namespace {

// Said in every report, so that nobody takes a clean run for more than it is.
constexpr std::string_view kScope =
    "simulated, not run: no SASS and no timing; covers the blocks, sizes and schedule of this run; races of the observed order";

const SourcePlace* place_of(const LaunchReport& report, std::uint32_t pc) {
  return report.program != nullptr && pc < report.program->places.size() ? &report.program->places[pc] : nullptr;
}

/// A compiler's made-up folder says nothing: a path that is no file here is cut to its name.
std::string file_name(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) ? path : std::filesystem::path(path).filename().string();
}

std::string who(const Place& place) {
  return place.lane >= 0 ? fmt::format("CTA {} warp {} lane {}", place.cta, place.warp, place.lane)
                         : fmt::format("CTA {} warp {}", place.cta, place.warp);
}

std::string text_of(const LaunchReport& report, const Finding& finding) {
  std::string text = fmt::format("{}: {}\n", to_text(finding.kind), finding.message);
  if (finding.other) {
    text += fmt::format("  earlier: {}\n           {} {}\n", line_of(report, finding.other->pc), who(*finding.other), finding.other->role);
    text += fmt::format("  later:   {}\n           {} {}\n", line_of(report, finding.where.pc), who(finding.where), finding.where.role);
  } else {
    text += fmt::format("  at:      {}\n           {} {}\n", line_of(report, finding.where.pc), who(finding.where), finding.where.role);
  }
  if (!finding.remedy.empty()) text += fmt::format("  remedy:  {}\n", finding.remedy);
  if (finding.count > 1) text += fmt::format("  seen {} times\n", finding.count);
  return text;
}

nlohmann::json json_of(const LaunchReport& report, std::uint32_t pc) {
  nlohmann::json json = {{"pc", pc}};
  if (const SourcePlace* place = place_of(report, pc); place != nullptr) {
    json["ptx_line"] = place->ptx_line;
    json["form"] = place->form;
    if (place->source_line != 0) {
      json["source_file"] = file_name(place->source_file);
      json["source_line"] = place->source_line;
    }
  }
  return json;
}

nlohmann::json json_of(const LaunchReport& report, const Place& place) {
  nlohmann::json json = json_of(report, place.pc);
  json["cta"] = place.cta;
  json["warp"] = place.warp;
  if (place.lane >= 0) json["lane"] = place.lane;
  json["role"] = place.role;
  return json;
}

}  // namespace

std::string line_of(const LaunchReport& report, std::uint32_t pc) {
  const SourcePlace* place = place_of(report, pc);
  if (place == nullptr) return fmt::format("{}, instruction {}", report.file, pc);
  std::string text = fmt::format("{}:{} {}", report.file, place->ptx_line, place->form);
  if (place->source_line != 0) text += fmt::format(", source {}:{}", file_name(place->source_file), place->source_line);
  return text;
}

std::string to_text(const LaunchReport& report) {
  const std::string_view verdict = report.is_clean() ? "clean" : report.has_ended ? "ended with findings" : "did not end";
  std::string text = fmt::format("kernel {} ({}), schedule {}: {}\n", report.kernel, report.file, to_text(report.schedule), verdict);
  text += fmt::format("  {} CTAs, {} warp instructions, {} of {} basic blocks executed\n", report.num_ctas_run,
                      report.num_warp_instructions, report.coverage.num_executed, report.coverage.num_blocks);
  for (const Finding& finding : report.findings) text += "\n" + text_of(report, finding);
  if (report.num_dropped_findings != 0) text += fmt::format("\n{} further findings are not listed\n", report.num_dropped_findings);
  if (report.has_unchecked_memory)
    text += "\nmore global memory was written than the race check holds: part of it was not checked for races\n";
  if (!report.waiting.empty()) {
    text += "\nwhere each warp stands:\n";
    for (const WaitingGroup& group : report.waiting) {
      const std::string lanes = group.lanes == kAllLanes ? "" : fmt::format(" lanes {:#010x}", group.lanes);
      text += fmt::format("  CTA {} warp {}{}: {}\n    {}\n", group.cta, group.warp, lanes, line_of(report, group.pc), group.text);
    }
  }
  for (const UnwrittenOutput& output : report.unwritten) {
    text += fmt::format("\noutput '{}': {} of {} bytes were never written\n", output.name, output.num_unwritten_bytes, output.num_bytes);
  }
  for (const std::uint32_t pc : report.coverage.missed) text += fmt::format("  block not executed: {}\n", line_of(report, pc));
  return text + fmt::format("({})\n", kScope);
}

nlohmann::json to_json(const LaunchReport& report) {
  nlohmann::json json = {{"format", "kernelwright.simulation"},
                         {"version", 1},
                         {"file", report.file},
                         {"kernel", report.kernel},
                         {"schedule", to_text(report.schedule)},
                         {"has_ended", report.has_ended},
                         {"is_clean", report.is_clean()},
                         {"num_ctas_run", report.num_ctas_run},
                         {"num_warp_instructions", report.num_warp_instructions},
                         {"num_dropped_findings", report.num_dropped_findings},
                         {"has_unchecked_memory", report.has_unchecked_memory},
                         {"scope", kScope}};
  json["findings"] = nlohmann::json::array();
  for (const Finding& finding : report.findings) {
    nlohmann::json entry = {{"kind", to_text(finding.kind)},
                            {"message", finding.message},
                            {"where", json_of(report, finding.where)},
                            {"remedy", finding.remedy},
                            {"count", finding.count}};
    if (finding.other) entry["earlier"] = json_of(report, *finding.other);
    json["findings"].push_back(std::move(entry));
  }
  json["waiting"] = nlohmann::json::array();
  for (const WaitingGroup& group : report.waiting) {
    nlohmann::json entry = json_of(report, group.pc);
    entry["cta"] = group.cta;
    entry["warp"] = group.warp;
    entry["lanes"] = group.lanes;
    entry["text"] = group.text;
    json["waiting"].push_back(std::move(entry));
  }
  json["unwritten"] = nlohmann::json::array();
  for (const UnwrittenOutput& output : report.unwritten) {
    json["unwritten"].push_back(
        {{"name", output.name}, {"num_unwritten_bytes", output.num_unwritten_bytes}, {"num_bytes", output.num_bytes}});
  }
  json["blocks"] = {
      {"num_blocks", report.coverage.num_blocks}, {"num_executed", report.coverage.num_executed}, {"missed", nlohmann::json::array()}};
  for (const std::uint32_t pc : report.coverage.missed) json["blocks"]["missed"].push_back(json_of(report, pc));
  return json;
}

}  // namespace kw::simulate
