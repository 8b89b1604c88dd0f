// The JSON report.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "simulator/launch/report_view.h"

namespace kw::simulate {
namespace {

nlohmann::json json_of(const LaunchReport& report, std::uint32_t pc) {
  nlohmann::json json = {{"pc", pc}};
  const CodePlace code = code_place(report, pc, {});
  if (code.ptx.line == 0) return json;
  json["ptx_line"] = code.ptx.line;
  json["form"] = code.form;
  if (code.sources.empty()) return json;
  json["source_file"] = code.sources[0].file;
  json["source_line"] = code.sources[0].line;
  for (std::size_t depth = 1; depth < code.sources.size(); ++depth)
    json["called_from"].push_back({{"source_file", code.sources[depth].file}, {"source_line", code.sources[depth].line}});
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

nlohmann::json json_of(const LaunchReport& report, const Finding& finding) {
  nlohmann::json json = {{"kind", to_text(finding.kind)},
                         {"message", finding.message},
                         {"where", json_of(report, finding.where)},
                         {"remedy", finding.remedy},
                         {"count", finding.count}};
  if (!finding.other) return json;
  json["earlier"] = json_of(report, *finding.other);
  json["passed"] = nlohmann::json::array();
  for (const PassedStep& step : finding.passed) {
    json["passed"].push_back(json_of(report, step.place));
    json["passed"].back()["is_of_earlier"] = step.is_of_earlier;
  }
  return json;
}

nlohmann::json json_of(const LaunchReport& report, const WaitingGroup& group) {
  nlohmann::json json = json_of(report, group.pc);
  json["cta"] = group.cta;
  json["warp"] = group.warp;
  json["lanes"] = group.lanes;
  json["text"] = group.text;
  json["has_no_arrival"] = group.history.has_no_arrival;
  json["history"] = nlohmann::json::array();
  for (const Place& place : group.history.places) json["history"].push_back(json_of(report, place));
  return json;
}

}  // namespace

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
                         {"scope", kReportScope}};
  json["findings"] = nlohmann::json::array();
  for (const Finding& finding : report.findings) json["findings"].push_back(json_of(report, finding));
  json["waiting"] = nlohmann::json::array();
  for (const WaitingGroup& group : report.waiting) json["waiting"].push_back(json_of(report, group));
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
