// See library_places.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/compile/library_places.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace kw::tuner {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> toolkit_folders() {
  std::vector<std::string> roots;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const std::string root = environment(name); !root.empty()) roots.push_back(root);
  }
  roots.push_back("/usr/local/cuda");
  std::error_code ignored;
  std::vector<std::string> versions;
  for (const fs::directory_entry& entry : fs::directory_iterator("/usr/local", ignored)) {
    if (entry.path().filename().string().starts_with("cuda-")) versions.push_back(entry.path().string());
  }
  std::sort(versions.rbegin(), versions.rend());
  roots.insert(roots.end(), versions.begin(), versions.end());
  std::vector<std::string> folders;
  for (const std::string& root : roots) {
    for (const char* sub : {"/lib64", "/targets/x86_64-linux/lib"}) folders.push_back(root + sub);
  }
  return folders;
}

std::string newest_library_in(const std::string& folder, const std::string& stem, int max_version) {
  std::error_code ignored;
  std::vector<std::pair<int, std::string>> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(stem)) continue;
    const int version = name == stem ? 0 : std::atoi(name.c_str() + stem.size() + 1);
    if (max_version == 0 || version <= max_version) found.emplace_back(version, entry.path().string());
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  return found.empty() ? "" : found.front().second;
}

}  // namespace kw::tuner
