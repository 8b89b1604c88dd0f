// The steps of specialise() in order: flatten, fill, fold, put the banner on top, format. See specialise.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/rewrite/specialise.h"

#include <fmt/format.h>

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

}  // namespace

Result<std::string> specialise(const SpecialiseRequest& request) {
  KW_CHECK(request.sources != nullptr && request.info != nullptr, "specialise() needs the sources and the template's description");
  KW_TRY(const std::string flat, flatten_includes(*request.sources, request.info->file));
  KW_TRY(const std::string filled, fill_template(flat, request));
  return format_cuda(top_comment(request.banner.empty() ? request.info->contract : request.banner) + filled);
}

}  // namespace kw::generator
