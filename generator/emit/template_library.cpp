// The templates of the executable, or of a folder: found by their COMPUTES annotation, parsed once, sorted by name.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "generator/emit/variant.h"
#include "generator/rewrite/builtin_templates.h"

namespace kw::generator {
namespace {

/// The file that defines the annotations names them all and is no template.
constexpr std::string_view kAnnotationsFile = "parts/annotations.cuh";

Result<SourceTree> read_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  SourceTree sources;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (!entry->is_regular_file() || entry->path().extension() != ".cuh") continue;
    std::ifstream file(entry->path(), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) return fail(Stage::kTemplate, Code::kIo, fmt::format("{}: cannot be read", entry->path().string()));
    sources[fs::relative(entry->path(), folder).generic_string()] = text.str();
  }
  if (error) return fail(Stage::kTemplate, Code::kBadInput, fmt::format("{}: not a folder of templates: {}", folder, error.message()));
  if (sources.empty()) return fail(Stage::kTemplate, Code::kBadInput, fmt::format("{}: no .cuh file in this folder", folder));
  return sources;
}

bool is_template(const std::string& text) { return text.find("COMPUTES(") != std::string::npos; }

/// A file is a template, or serves one: what is neither was meant as a template and lost its COMPUTES. A helper may be unused.
Status check_purpose(const SourceTree& sources, const std::string& file) {
  for (const std::string_view helpers : {"parts/", "ptx/", "support/"})
    if (file.starts_with(helpers)) return {};
  const std::string quoted = '"' + file + '"';
  for (const auto& [other, text] : sources)
    if (other != file && text.find(quoted) != std::string::npos) return {};
  return fail(Error{Stage::kTemplate,
                    Code::kBadInput,
                    "no COMPUTES annotation, and no other file includes it: a template says what it computes with COMPUTES(\"...\")",
                    {file, 0, 0},
                    {}});
}

}  // namespace

struct TemplateLibrary::Impl {
  SourceTree sources;
  std::vector<TemplateInfo> templates;
};

Result<TemplateLibrary> TemplateLibrary::load(const std::string& override_folder) {
  auto impl = std::make_shared<Impl>();
  if (override_folder.empty()) {
    impl->sources = builtin_template_sources();
  } else {
    KW_TRY(impl->sources, read_folder(override_folder));
  }
  for (const auto& [file, text] : impl->sources) {
    if (file == kAnnotationsFile) continue;
    if (!is_template(text)) {
      KW_TRY_VOID(check_purpose(impl->sources, file));
      continue;
    }
    KW_TRY(TemplateInfo info, read_template(impl->sources, file));
    impl->templates.push_back(std::move(info));
  }
  if (impl->templates.empty())
    return fail(Stage::kTemplate, Code::kBadInput,
                fmt::format("{}: no template: no .cuh file here has a COMPUTES annotation", override_folder));
  std::sort(impl->templates.begin(), impl->templates.end(), [](const TemplateInfo& a, const TemplateInfo& b) { return a.name < b.name; });
  TemplateLibrary library;
  library.impl_ = std::move(impl);
  return library;
}

const std::vector<TemplateInfo>& TemplateLibrary::templates() const { return impl_->templates; }
const SourceTree& TemplateLibrary::sources() const { return impl_->sources; }

const TemplateInfo* TemplateLibrary::find(std::string_view name) const {
  const auto found =
      std::find_if(impl_->templates.begin(), impl_->templates.end(), [&](const TemplateInfo& info) { return info.name == name; });
  return found == impl_->templates.end() ? nullptr : &*found;
}

}  // namespace kw::generator
