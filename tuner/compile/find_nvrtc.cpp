// Finds NVRTC: $KERNELWRIGHT_NVRTC, then a CUDA toolkit, then the private folder of the PyPI wheel. A short-lived child
// loads the library to ask its version and targets. KERNELWRIGHT_HIDE_TOOLKIT=1 skips the toolkit (a test build that must do without).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "tuner/compile/compiler.h"
#include "tuner/compile/library_places.h"
#include "tuner/compile/nvrtc_probe.h"

namespace kw::tuner {
namespace {

namespace fs = std::filesystem;

/// A place to look: a file, or a folder that may hold libnvrtc.so.*.
struct Place {
  std::string path, origin;
};

/// <data folder>/kernelwright/nvrtc/<version>/..., newest version first. The wheel keeps its libraries some folders down.
std::vector<std::string> wheel_folders() {
  std::string data = environment("XDG_DATA_HOME");
  const std::string home = environment("HOME");
  if (!data.starts_with('/')) data = home.empty() ? "." : home + "/.local/share";
  const fs::path root = fs::path(data) / "kernelwright" / "nvrtc";
  std::vector<std::string> folders;
  std::error_code ignored;
  for (fs::recursive_directory_iterator entry(root, ignored), end; entry != end && !ignored; entry.increment(ignored)) {
    if (entry->path().filename().string().starts_with("libnvrtc.so")) folders.push_back(entry->path().parent_path().string());
    if (entry.depth() >= 5) entry.disable_recursion_pending();
  }
  std::sort(folders.rbegin(), folders.rend());
  folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  if (folders.empty()) folders.push_back(root.string());
  return folders;
}

std::vector<Place> places_to_look() {
  std::vector<Place> places;
  if (const std::string chosen = environment("KERNELWRIGHT_NVRTC"); !chosen.empty()) return {{chosen, "KERNELWRIGHT_NVRTC"}};
  if (environment("KERNELWRIGHT_HIDE_TOOLKIT") != "1") {
    for (const std::string& folder : toolkit_folders()) places.push_back({folder, "CUDA toolkit"});
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12"}) places.push_back({name, "CUDA toolkit"});
  }
  for (const std::string& folder : wheel_folders()) places.push_back({folder, "PyPI wheel"});
  return places;
}

Result<NvrtcInfo> ask(const std::string& path, const std::string& origin) {
  KW_TRY(const NvrtcFacts facts, probe_nvrtc(path));
  NvrtcInfo info{.nvrtc_path = path, .major = facts.major, .minor = facts.minor, .origin = origin, .arches = {}};
  const std::vector<int>& capabilities = facts.compute_capabilities;
  for (const Arch arch : all_arches()) {
    if (std::find(capabilities.begin(), capabilities.end(), compute_capability(arch)) != capabilities.end()) info.arches.push_back(arch);
  }
  std::error_code ignored;
  if (path.find('/') != std::string::npos)
    info.nvrtc_bytes = static_cast<std::int64_t>(fs::file_size(fs::canonical(path, ignored), ignored));
  if (ignored) info.nvrtc_bytes = 0;
  return info;
}

}  // namespace

std::string NvrtcInfo::version_text() const { return fmt::format("{}.{}", major, minor); }

Result<NvrtcInfo> find_nvrtc() {
  std::string looked, failures;
  for (const Place& place : places_to_look()) {
    std::error_code ignored;
    std::string path = place.path;
    const bool is_bare_name = path.find('/') == std::string::npos;
    if (!is_bare_name && fs::is_directory(path, ignored)) path = newest_library_in(path, "libnvrtc.so", 0);
    looked += fmt::format("{}{}", looked.empty() ? "" : ", ", place.path);
    if (path.empty() || (!is_bare_name && !fs::exists(path, ignored))) continue;
    Result<NvrtcInfo> info = ask(path, place.origin);
    if (info) return info;
    if (!is_bare_name) failures += info.error().message + "\n";
  }
  Error error{Stage::kCompile, Code::kToolchain, {}, {}, failures};
  error.message = fmt::format(
      "NVRTC: not found: looked at {}. Install a CUDA toolkit (12.4 or newer), or run scripts/fetch_nvrtc.sh, or set KERNELWRIGHT_NVRTC to "
      "the library or its folder",
      looked);
  if (!failures.empty()) error.message += fmt::format(". What was found did not load: {}", failures.substr(0, failures.find('\n')));
  return fail(std::move(error));
}

}  // namespace kw::tuner
