// See report_html.h. Plain HTML 5 with a style sheet of its own; every text from outside goes through escaped().
// SPDX-License-Identifier: Apache-2.0
#include "simulator/launch/report_html.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/launch/report_view.h"

namespace kw::simulate {
namespace {

constexpr int kLinesAround = 3;
constexpr std::size_t kMaxColumns = 200;  // of a quoted line

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{0}</title>
<style>
body {{ font: 15px/1.45 system-ui, sans-serif; color: #1b1f24; background: #fff; max-width: 72em; margin: 2em auto; padding: 0 1em; }}
h1 {{ font-size: 1.5em; }} h2 {{ font-size: 1.25em; margin-top: 2em; border-top: 2px solid #d0d7de; padding-top: 0.7em; }}
h3 {{ font-size: 1.05em; margin: 1.6em 0 0.4em; }}
code, pre {{ font: 13px/1.4 ui-monospace, monospace; }}
pre {{ background: #f6f8fa; border: 1px solid #d0d7de; margin: 0.2em 0 0.6em; overflow-x: auto; }}
pre .line {{ display: block; padding: 0 0.6em; }} pre .hit {{ background: #ffe3a3; font-weight: bold; }}
pre .number {{ display: inline-block; width: 3.5em; color: #6e7781; }}
table {{ border-collapse: collapse; width: 100%; }} th, td {{ text-align: left; vertical-align: top; padding: 0.3em 0.6em; }}
th {{ border-bottom: 1px solid #d0d7de; }}
.timeline td {{ border-bottom: 1px solid #eaeef2; }}
.timeline td.lane {{ width: 2.2em; text-align: center; border-left: 2px solid #8c959f; font-size: 1.2em; padding: 0; }}
.access {{ color: #cf222e; font-weight: bold; }} .passed {{ color: #57606a; }}
.good {{ color: #1a7f37; font-weight: bold; }} .bad {{ color: #cf222e; font-weight: bold; }}
.remedy {{ background: #ddf4ff; border-left: 4px solid #0969da; padding: 0.4em 0.8em; margin: 0.6em 0; }}
.suspect {{ background: #ffebe9; border-left: 4px solid #cf222e; padding: 0.4em 0.8em; margin: 0.6em 0; }}
.small {{ color: #57606a; font-size: 0.9em; }}
</style>
</head>
<body>
<h1>{0}</h1>
)";

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        // Control characters are no HTML; bytes above 127 pass as the UTF-8 that they are in a source.
        result += static_cast<unsigned char>(c) < 0x20 && c != '\t' ? ' ' : c;
    }
  }
  return result;
}

/// The lines around `at`, which is marked.
std::string excerpt(const QuotedLine& at) {
  const std::string name = fmt::format("<code>{}:{}</code>", escaped(at.file), at.line);
  if (at.text == nullptr || at.line < 1 || at.line > at.text->num_lines()) return name + "\n";
  std::string html = name + "<pre>";
  for (int line = std::max(1, at.line - kLinesAround); line <= std::min(at.text->num_lines(), at.line + kLinesAround); ++line) {
    html += fmt::format("<span class=\"line{}\"><span class=\"number\">{}</span>{}</span>", line == at.line ? " hit" : "", line,
                        escaped(at.text->whole(line).substr(0, kMaxColumns)));
  }
  return html + "</pre>\n";
}

std::string one_line(const QuotedLine& at) {
  return fmt::format("<code>{}:{}{}{}</code>", escaped(at.file), at.line, at.quote.empty() ? "" : "&nbsp; ",
                     escaped(std::string_view(at.quote).substr(0, kMaxColumns)));
}

/// The source line and its callers with their surroundings, then the PTX (folded where there is a source).
std::string code_html(const LaunchReport& report, std::uint32_t pc, const ReportTexts& texts) {
  const CodePlace code = code_place(report, pc, texts);
  std::string html;
  for (std::size_t depth = 0; depth < code.sources.size(); ++depth)
    html += fmt::format("<div>{}{}</div>\n", depth == 0 ? "" : "called from ", excerpt(code.sources[depth]));
  if (code.ptx.line == 0) return html;
  if (code.sources.empty()) return html + fmt::format("<div>{} <code>{}</code></div>\n", excerpt(code.ptx), escaped(code.form));
  return html + fmt::format("<details><summary>PTX: {} <code>{}</code></summary>{}</details>\n",
                            fmt::format("<code>{}:{}</code>", escaped(code.ptx.file), code.ptx.line), escaped(code.form),
                            excerpt(code.ptx));
}

std::string short_code_html(const LaunchReport& report, std::uint32_t pc, const ReportTexts& texts) {
  const CodePlace code = code_place(report, pc, texts);
  std::string html;
  for (const QuotedLine& source : code.sources) html += one_line(source) + "<br>\n";
  return code.ptx.line == 0 ? html : html + one_line(code.ptx) + "\n";
}

std::string timeline_html(const LaunchReport& report, const Finding& finding, const ReportTexts& texts) {
  const Timeline timeline = timeline_of(finding);
  const std::size_t num_columns = timeline.columns.size();
  std::string html = "<table class=\"timeline\">\n<tr>";
  for (std::size_t column = 0; column < num_columns; ++column) html += fmt::format("<th>{}</th>", "AB"[column]);
  std::vector<std::string> names;
  for (std::size_t column = 0; column < num_columns; ++column)
    names.push_back(fmt::format("{} = {}", "AB"[column], escaped(timeline.columns[column])));
  html += fmt::format("<th>{}; time runs down</th></tr>\n", fmt::join(names, ", "));
  for (std::size_t at = 0; at < timeline.steps.size(); ++at) {
    const TimelineStep& step = timeline.steps[at];
    html += "<tr>";
    for (std::size_t column = 0; column < num_columns; ++column) {
      const bool is_here = static_cast<std::size_t>(step.column) == column;
      html += fmt::format("<td class=\"lane{}\">{}</td>", step.is_access ? " access" : " passed",
                          !is_here         ? ""
                          : step.is_access ? "&#9679;"
                                           : "&#9675;");
    }
    const std::string_view label = num_columns == 1 || !step.is_access ? "" : at == 0 ? "earlier access: " : "later access: ";
    html += fmt::format("<td><span class=\"{}\">{}{} {}</span>\n{}</td></tr>\n", step.is_access ? "access" : "passed", label,
                        escaped(who(step.place)), escaped(step.place.role),
                        step.is_access ? code_html(report, step.place.pc, texts) : "<br>" + short_code_html(report, step.place.pc, texts));
  }
  return html + "</table>\n";
}

std::string finding_html(const DistinctFinding& distinct, std::size_t number, const ReportTexts& texts) {
  const Finding& finding = *distinct.finding;
  std::string html = fmt::format("<h3 id=\"f{}\">{}. {}: {}</h3>\n", number, number, to_text(finding.kind), escaped(finding.message));
  const std::string gap = gap_of(*distinct.report, finding);
  if (!finding.remedy.empty())
    html += fmt::format("<p class=\"remedy\"><b>What helps:</b> {}{}</p>\n", escaped(finding.remedy),
                        gap.empty() ? "" : fmt::format("<br><b>Where:</b> between {}", escaped(gap)));
  if (!is_standstill(finding.kind)) html += timeline_html(*distinct.report, finding, texts);
  if (distinct.num_alike != 0)
    html += fmt::format("<p class=\"small\">and the same for {} more instructions of these lines</p>\n", distinct.num_alike);
  return html + fmt::format("<p class=\"small\">seen {} times; on schedule {}</p>\n", finding.count,
                            escaped(fmt::format("{}", fmt::join(distinct.schedules, ", "))));
}

/// Of a barrier that nobody has arrived at: which arrives the kernel has at all.
std::string suspect_html(const LaunchReport& report, const ReportTexts& texts) {
  std::string html =
      "<div class=\"suspect\"><b>Nobody has arrived at this barrier so far:</b> look for the arrive that should let this role go. "
      "The kernel's arrives:<ul>\n";
  for (const ArriveInstruction& arrive : arrive_instructions(report)) {
    html += fmt::format("<li>{}: {}</li>\n", arrive.was_executed ? "executed, for other barriers" : "not executed so far",
                        one_line(call_line(code_place(report, arrive.pc, texts))));
  }
  return html + "</ul></div>\n";
}

std::string waiting_html(const LaunchReport& report, const ReportTexts& texts) {
  std::string html = "<h3>Who waits, where and for what</h3>\n";
  for (const WaitingRole& role : waiting_roles(report)) {
    html += fmt::format("<p><span class=\"access\">{}</span><br>{}</p>\n", escaped(role.who), escaped(role.text));
    if (role.history.has_no_arrival) html += suspect_html(report, texts);
    html += code_html(report, role.pc, texts);
    if (role.history.places.empty()) continue;
    html += "<details><summary>who initialised this barrier and who has arrived</summary><ul>\n";
    for (const Place& place : role.history.places)
      html += fmt::format("<li>{}: {}<br>{}</li>\n", escaped(place.role), escaped(who(place)), short_code_html(report, place.pc, texts));
    html += "</ul></details>\n";
  }
  return html;
}

std::string runs_html(const std::vector<const LaunchReport*>& reports) {
  std::string html =
      "<table><tr><th>schedule</th><th>verdict</th><th>findings</th><th>CTAs</th><th>warp instructions</th><th>basic blocks "
      "run</th></tr>\n";
  for (const LaunchReport* report : reports) {
    html += fmt::format("<tr><td>{}</td><td class=\"{}\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{} of {}</td></tr>\n",
                        to_text(report->schedule), report->is_clean() ? "good" : "bad", verdict(*report),
                        report->findings.size() + report->num_dropped_findings, report->num_ctas_run, report->num_warp_instructions,
                        report->coverage.num_executed, report->coverage.num_blocks);
  }
  return html + "</table>\n";
}

std::string section_html(const ReportSection& section, const ReportTexts& texts, std::size_t& number) {
  std::string html = fmt::format("<h2>{}</h2>\n", escaped(section.title));
  for (const std::string& failure : section.failures) html += fmt::format("<p class=\"bad\">{}</p>\n", escaped(failure));
  if (section.reports.empty()) return html;
  html += runs_html(section.reports);
  for (const DistinctFinding& distinct : distinct_findings(section.reports)) html += finding_html(distinct, ++number, texts);
  const auto stuck =
      std::find_if(section.reports.begin(), section.reports.end(), [](const LaunchReport* report) { return is_stuck(*report); });
  if (stuck != section.reports.end() && !(*stuck)->waiting.empty()) html += waiting_html(**stuck, texts);
  for (const UnwrittenOutput& output : section.reports.back()->unwritten) {
    html += fmt::format("<p>output <code>{}</code>: {} of {} bytes were never written</p>\n", escaped(output.name),
                        output.num_unwritten_bytes, output.num_bytes);
  }
  return html;
}

}  // namespace

std::string to_html(const std::string& title, const std::vector<ReportSection>& sections) {
  const ReportTexts no_texts;
  std::string body;
  std::string contents;
  std::size_t number = 0;
  std::size_t num_failures = 0;
  for (const ReportSection& section : sections) {
    std::size_t listed = number;
    for (const DistinctFinding& distinct : distinct_findings(section.reports)) {
      contents += fmt::format("<li><a href=\"#f{}\">{}: {}</a></li>\n", ++listed, to_text(distinct.finding->kind),
                              escaped(distinct.finding->message));
    }
    num_failures += section.failures.size();
    body += section_html(section, section.texts == nullptr ? no_texts : *section.texts, number);
  }
  std::string html = fmt::format(fmt::runtime(kHead), escaped(title));
  html += number + num_failures == 0
              ? "<p class=\"good\">No finding.</p>\n"
              : fmt::format("<p class=\"bad\">{} findings, {} failures</p>\n<ol>\n{}</ol>\n", number, num_failures, contents);
  return html + body + fmt::format("<p class=\"small\">{}</p>\n</body>\n</html>\n", kReportScope);
}

}  // namespace kw::simulate
