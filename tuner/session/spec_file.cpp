// Reading specs: parse, read the user functions the body calls, check.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/session/spec_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "generator/base/json_text.h"
#include "generator/rewrite/read_user_functions.h"

namespace kw::tuner {
namespace {

constexpr std::uintmax_t kMaxFileBytes = 1 << 20;  // a spec is written by a person; more is a mistake (docs/spec-format.md)

Result<std::string> read_text_file(const std::filesystem::path& path, const std::string& shown_name) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return fail(Stage::kSpec, Code::kBadInput, "no such file", {shown_name, 0, 0});
  if (!std::filesystem::is_regular_file(path, error)) return fail(Stage::kSpec, Code::kBadInput, "not a regular file", {shown_name, 0, 0});
  const std::uintmax_t size_bytes = std::filesystem::file_size(path, error);
  if (!error && size_bytes > kMaxFileBytes)
    return fail(Stage::kSpec, Code::kBadInput, fmt::format("{} bytes: a spec file has at most {} bytes", size_bytes, kMaxFileBytes),
                {shown_name, 0, 0});
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) return fail(Stage::kSpec, Code::kBadInput, "cannot be read", {shown_name, 0, 0});
  return text.str();
}

/// Parses and checks; `read` gives the text of a file by its name relative to the spec and records it in `spec.files`.
std::shared_ptr<const LoadedSpec> make_spec(LoadedSpec spec, const std::string& shown_name, const generator::FileReader& read,
                                            Diagnostics& diagnostics) {
  auto files = std::make_shared<std::map<std::string, std::string>>(spec.files);
  const generator::FileReader recording = [&read, files](const std::string& name) -> Result<std::string> {
    KW_TRY(std::string text, read(name));
    files->emplace(name, text);
    return text;
  };
  const auto syntax = generator::parse_op_spec(files->at(spec.main_file), shown_name, recording, diagnostics);
  if (syntax == nullptr) return nullptr;
  generator::UserFunctions functions;
  if (!syntax->functions_file.empty()) {
    const auto text = recording(syntax->functions_file);
    if (!text) {
      diagnostics.add({Stage::kSpec,
                       Code::kBadInput,
                       fmt::format("functions = '{}': {}", syntax->functions_file, text.error().message),
                       syntax->functions_where,
                       {}});
      return nullptr;
    }
    functions = generator::read_user_functions(*text, syntax->functions_file, syntax->called_names, diagnostics);
  }
  spec.program = generator::check_op_spec(*syntax, functions, diagnostics);
  if (spec.program == nullptr || diagnostics.has_errors()) return nullptr;
  spec.files = *files;
  spec.canonical_text = generator::canonical_text(*spec.program);
  spec.identity = generator::identity(*spec.program);
  return std::make_shared<const LoadedSpec>(std::move(spec));
}

}  // namespace

std::string LoadedSpec::files_json() const { return nlohmann::json{{"main", main_file}, {"files", files}}.dump(); }

std::shared_ptr<const LoadedSpec> load_spec(const std::string& path, Diagnostics& diagnostics) {
  const std::filesystem::path spec_path(path);
  auto text = read_text_file(spec_path, path);
  if (!text) {
    diagnostics.add(text.error());
    return nullptr;
  }
  LoadedSpec spec;
  spec.main_file = spec_path.filename().string();
  spec.files.emplace(spec.main_file, std::move(*text));
  const std::filesystem::path folder = spec_path.parent_path();
  const generator::FileReader read = [folder](const std::string& name) { return read_text_file(folder / name, name); };
  return make_spec(std::move(spec), path, read, diagnostics);
}

std::shared_ptr<const LoadedSpec> load_spec_from_json(const std::string& files_json, Diagnostics& diagnostics) {
  LoadedSpec spec;
  try {
    const auto json = json_from_text(files_json).value_or(nullptr);
    spec.main_file = json.at("main").get<std::string>();
    spec.files = json.at("files").get<std::map<std::string, std::string>>();
  } catch (const nlohmann::json::exception&) {
    diagnostics.add({Stage::kDatabase, Code::kBadInput, "the stored text of the spec cannot be read back", {}, files_json.substr(0, 200)});
    return nullptr;
  }
  const auto files = spec.files;
  const generator::FileReader read = [files](const std::string& name) -> Result<std::string> {
    const auto found = files.find(name);
    if (found == files.end()) return fail(Stage::kSpec, Code::kBadInput, "not stored with the op", {name, 0, 0});
    return found->second;
  };
  const std::string main_file = spec.main_file;
  if (!spec.files.contains(main_file)) {
    diagnostics.add({Stage::kDatabase, Code::kBadInput, fmt::format("the stored spec lacks its main file '{}'", main_file), {}, {}});
    return nullptr;
  }
  return make_spec(std::move(spec), main_file, read, diagnostics);
}

}  // namespace kw::tuner
