// The steps of specialise() in order: flatten, fill, fold, put the banner on top, format. See specialise.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/rewrite/specialise.h"

#include <algorithm>

#include <fmt/format.h>

#include "generator/rewrite/fold.h"
#include "generator/rewrite/format_text.h"
#include "generator/rewrite/template_text.h"

namespace kw::generator {
namespace {

/// SPDX line and banner as one comment block.
std::string top_comment(const std::string& banner) {
  std::string out = "// SPDX-License-Identifier: Apache-2.0\n";
  for (std::size_t at = 0; at < banner.size();) {
    const std::size_t end = std::min(banner.find('\n', at), banner.size());
    const std::string line = banner.substr(at, end - at);
    out += line.empty() ? "//\n" : fmt::format("// {}\n", line);
    at = end + 1;
  }
  return out + "\n";
}

/// Rules of dashes in headings ("// ---- Kernel -----") end before the formatter's column limit, else it would break them.
std::string with_short_rules(const std::string& text) {
  constexpr std::size_t kMaxColumns = 100;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (line.size() > kMaxColumns && line.starts_with("//") && line.ends_with("----")) {
      const std::size_t last_word = line.find_last_not_of('-');
      line.resize(std::max(kMaxColumns, last_word + 1));
    }
    out += line + "\n";
    at = end + 1;
  }
  return out;
}

}  // namespace

Result<std::string> specialise(const SpecialiseRequest& request) {
  KW_CHECK(request.sources != nullptr && request.info != nullptr, "specialise() needs the sources and the template's description");
  KW_TRY(const std::string flat, flatten_includes(*request.sources, request.info->file));
  KW_TRY(const std::string filled, fill_template(flat, request));
  const std::string& kernel = request.kernel_name.empty() ? request.info->name : request.kernel_name;
  KW_TRY(const std::string folded, fold_unused(filled, kernel));
  return format_cuda(top_comment(request.banner.empty() ? request.info->contract : request.banner) + with_short_rules(folded));
}

}  // namespace kw::generator
