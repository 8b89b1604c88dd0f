// A launch's report for people (text; HTML in report_html.h) and programs (JSON): every finding with its PTX line, instruction, source
// line and the calls it was inlined through, drawn as a short timeline.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "simulator/launch/launch.h"

namespace kw::simulate {

/// A text by line number, from 1.
class TextLines {
 public:
  TextLines() = default;
  explicit TextLines(std::string_view text);
  /// Without the spaces around it; empty for a line that is not there.
  std::string_view trimmed(int line) const;
  std::string_view whole(int line) const;
  int num_lines() const { return static_cast<int>(starts_.size()); }

 private:
  std::string text_;
  std::vector<std::size_t> starts_;
};

/// The texts that a report quotes; without them it gives line numbers alone.
struct ReportTexts {
  TextLines ptx;
  std::map<std::string, TextLines> sources;  ///< by the name in the PTX's .file
};

/// "gemm.ptx:123 ld.shared.f32, source gemm.cu:45".
std::string line_of(const LaunchReport& report, std::uint32_t pc);
std::string to_text(const LaunchReport& report, const ReportTexts& texts = {});
/// Reports of one kernel on several schedules, at least one: each finding once, with the schedules that show it.
std::string to_text(const std::vector<const LaunchReport*>& reports, const ReportTexts& texts);
nlohmann::json to_json(const LaunchReport& report);

}  // namespace kw::simulate
