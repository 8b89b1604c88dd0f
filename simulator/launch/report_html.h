// The HTML report: one file that needs nothing else, no network and no scripts. It quotes the texts around each line, marked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "simulator/launch/report.h"

namespace kw::simulate {

/// One kernel on one or several schedules.
struct ReportSection {
  std::string title;                         ///< "saxpy (saxpy.cu)"
  const ReportTexts* texts = nullptr;        ///< may be null
  std::vector<const LaunchReport*> reports;  ///< of one kernel
  std::vector<std::string> failures;         ///< besides the findings: wrong outputs, a kernel that did not compile
};

/// The page with all sections that have reports or failures; sections without any are counted in the summary alone.
std::string to_html(const std::string& title, const std::vector<ReportSection>& sections);

}  // namespace kw::simulate
