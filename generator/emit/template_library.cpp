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
  if (error) return fail(Stage::kTemplate, Code::kIo, fmt::format("{}: {}", folder, error.message()));
  if (sources.empty()) return fail(Stage::kTemplate, Code::kNotFound, fmt::format("{}: no .cuh file in this folder", folder));
  return sources;
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
    if (file == kAnnotationsFile || text.find("COMPUTES(") == std::string::npos) continue;
    KW_TRY(TemplateInfo info, read_template(impl->sources, file));
    impl->templates.push_back(std::move(info));
  }
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
