// See report_view.h.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/launch/report_view.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "generator/base/stable_sort.h"

namespace kw::simulate {
namespace {

/// A compiler's made-up folder says nothing: a path that is no file here is cut to its name; one below the current folder to what follows.
std::string file_name(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::filesystem::path(path).filename().string();
  const std::filesystem::path below = std::filesystem::proximate(path, error);
  return error || below.empty() || *below.begin() == ".." ? path : below.string();
}

/// Equal for instructions of the same source lines.
std::string line_key(const LaunchReport& report, std::uint32_t pc) {
  if (report.program == nullptr || pc >= report.program->places.size()) return fmt::format("pc {}", pc);
  const std::vector<SourceLine>& sources = report.program->places[pc].sources;
  std::string key;
  for (const SourceLine& source : sources) key += fmt::format("{}:{} ", source.file, source.line);
  return key.empty() ? fmt::format("pc {}", pc) : key;
}

bool is_of_order(FindingKind kind) { return kind == FindingKind::kRace || kind == FindingKind::kMissingProxyFence; }

/// "warp 3", "warps 0-3, 6".
std::string warp_ranges(const std::vector<std::uint32_t>& sorted) {
  std::string text;
  for (std::size_t first = 0; first < sorted.size();) {
    std::size_t last = first;
    while (last + 1 < sorted.size() && sorted[last + 1] <= sorted[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", sorted[first]);
    if (sorted[last] != sorted[first]) text += fmt::format("-{}", sorted[last]);
    first = last + 1;
  }
  return (sorted.size() > 1 ? "warps " : "warp ") + text;
}

}  // namespace

TextLines::TextLines(std::string_view text) : text_(text) {
  for (std::size_t start = 0; start < text_.size();) {
    starts_.push_back(start);
    const std::size_t end = text_.find('\n', start);
    start = end == std::string::npos ? text_.size() : end + 1;
  }
}

std::string_view TextLines::whole(int line) const {
  if (line < 1 || line > num_lines()) return {};
  const std::size_t start = starts_[static_cast<std::size_t>(line) - 1];
  const std::size_t end = text_.find_first_of("\r\n", start);
  return std::string_view(text_).substr(start, end == std::string::npos ? std::string::npos : end - start);
}

std::string_view TextLines::trimmed(int line) const {
  std::string_view text = whole(line);
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

CodePlace code_place(const LaunchReport& report, std::uint32_t pc, const ReportTexts& texts) {
  CodePlace code;
  code.ptx.file = report.file;
  if (report.program == nullptr || pc >= report.program->places.size()) return code;
  const SourcePlace& place = report.program->places[pc];
  code.form = place.form;
  code.ptx = {report.file, place.ptx_line, std::string(texts.ptx.trimmed(place.ptx_line)), &texts.ptx};
  for (const SourceLine& source : place.sources) {
    const auto found = texts.sources.find(source.file);
    const TextLines* text = found == texts.sources.end() ? nullptr : &found->second;
    code.sources.push_back(
        {file_name(source.file), source.line, text == nullptr ? std::string() : std::string(text->trimmed(source.line)), text});
  }
  return code;
}

std::string who(const Place& place) {
  return place.lane >= 0 ? fmt::format("CTA {} warp {} lane {}", place.cta, place.warp, place.lane)
                         : fmt::format("CTA {} warp {}", place.cta, place.warp);
}

Timeline timeline_of(const Finding& finding) {
  Timeline timeline;
  if (!finding.other) {
    timeline.columns = {who(finding.where)};
    timeline.steps = {{0, true, finding.where}};
    return timeline;
  }
  timeline.columns = {who(*finding.other), who(finding.where)};
  timeline.steps.push_back({0, true, *finding.other});
  for (const PassedStep& step : finding.passed) timeline.steps.push_back({step.is_of_earlier ? 0 : 1, false, step.place});
  timeline.steps.push_back({1, true, finding.where});
  return timeline;
}

std::string gap_of(const LaunchReport& report, const Finding& finding) {
  if (!finding.other || !is_of_order(finding.kind)) return "";
  std::uint32_t end_pc = finding.where.pc;
  if (finding.kind == FindingKind::kMissingProxyFence) {
    // The fence belongs to the writer, before it hands the data over.
    const auto arrival =
        std::find_if(finding.passed.begin(), finding.passed.end(), [](const PassedStep& step) { return step.is_of_earlier; });
    if (arrival != finding.passed.end()) end_pc = arrival->place.pc;
  }
  const auto line = [&](std::uint32_t pc) {
    const CodePlace code = code_place(report, pc, {});
    return code.sources.empty() ? code.ptx : code.sources[0];
  };
  QuotedLine first = line(finding.other->pc);
  QuotedLine last = line(end_pc);
  if (first.line == 0 || last.line == 0) return "";
  if (first.file == last.file && first.line == last.line) return "";
  if (finding.kind == FindingKind::kRace && first.file == last.file && first.line > last.line) std::swap(first, last);
  return fmt::format("{}:{} and {}:{}", first.file, first.line, last.file, last.line);
}

std::vector<ArriveInstruction> arrive_instructions(const LaunchReport& report) {
  std::vector<ArriveInstruction> arrives;
  if (report.program == nullptr) return arrives;
  std::map<std::string, std::size_t> by_line;
  for (std::uint32_t pc = 0; pc < report.program->places.size(); ++pc) {
    const std::string& form = report.program->places[pc].form;
    if (!form.starts_with("mbarrier.arrive") && !form.starts_with("cp.async.mbarrier.arrive")) continue;
    const auto [entry, is_new] = by_line.emplace(line_key(report, pc), arrives.size());
    if (is_new) arrives.push_back({pc, false});
    ArriveInstruction& arrive = arrives[entry->second];
    arrive.was_executed = arrive.was_executed || (pc < report.executed.size() && report.executed[pc] != 0);
  }
  return arrives;
}

QuotedLine call_line(const CodePlace& code) {
  return code.sources.size() > 1 ? code.sources[1] : code.sources.size() == 1 ? code.sources[0] : code.ptx;
}

std::vector<WaitingRole> waiting_roles(const LaunchReport& report) {
  std::map<std::pair<std::uint32_t, std::string>, std::map<std::uint32_t, std::vector<std::uint32_t>>> warps;  // by place, then by CTA
  std::map<std::pair<std::uint32_t, std::string>, const WaitingGroup*> first;
  for (const WaitingGroup& group : report.waiting) {
    const auto key = std::pair(group.pc, group.text);
    warps[key][group.cta].push_back(group.warp);
    first.emplace(key, &group);
  }
  std::vector<WaitingRole> roles;
  for (const auto& [key, by_cta] : warps) {
    WaitingRole role{"", key.first, key.second, key.second.starts_with("mbarrier"), first[key]->history};
    for (const auto& [cta, numbers] : by_cta)
      role.who += fmt::format("{}CTA {} {}", role.who.empty() ? "" : "; ", cta, warp_ranges(numbers));
    roles.push_back(std::move(role));
  }
  kw::stable_sort(roles, [](const WaitingRole& a, const WaitingRole& b) { return a.history.has_no_arrival > b.history.has_no_arrival; });
  return roles;
}

std::vector<DistinctFinding> distinct_findings(const std::vector<const LaunchReport*>& reports) {
  std::vector<DistinctFinding> distinct;
  std::map<std::tuple<FindingKind, std::string, std::string>, std::size_t> by_lines;
  std::set<std::tuple<FindingKind, std::uint32_t, std::uint32_t>> pairs;
  for (const LaunchReport* report : reports) {
    for (const Finding& finding : report->findings) {
      std::string first = line_key(*report, finding.where.pc);
      std::string second = finding.other ? line_key(*report, finding.other->pc) : std::string();
      std::uint32_t first_pc = finding.where.pc;
      std::uint32_t second_pc = finding.other ? finding.other->pc : ~0u;
      if (finding.kind == FindingKind::kRace && second_pc < first_pc) {
        std::swap(first, second);
        std::swap(first_pc, second_pc);
      }
      const auto [entry, is_new] = by_lines.emplace(std::tuple(finding.kind, first, second), distinct.size());
      if (is_new) distinct.push_back({report, &finding, 0, {}});
      DistinctFinding& group = distinct[entry->second];
      if (pairs.emplace(finding.kind, first_pc, second_pc).second && !is_new) ++group.num_alike;
      const std::string schedule = to_text(report->schedule);
      if (std::find(group.schedules.begin(), group.schedules.end(), schedule) == group.schedules.end()) group.schedules.push_back(schedule);
    }
  }
  kw::stable_sort(distinct, [](const DistinctFinding& a, const DistinctFinding& b) {
    return is_of_order(a.finding->kind) > is_of_order(b.finding->kind);
  });
  return distinct;
}

bool is_standstill(FindingKind kind) {
  return kind == FindingKind::kDeadlock || kind == FindingKind::kLivelock || kind == FindingKind::kBudget;
}

bool is_stuck(const LaunchReport& report) {
  return std::any_of(report.findings.begin(), report.findings.end(), [](const Finding& finding) { return is_standstill(finding.kind); });
}

std::string_view verdict(const LaunchReport& report) {
  return report.is_clean() ? "clean" : report.has_ended ? "ended with findings" : "did not end";
}

}  // namespace kw::simulate
