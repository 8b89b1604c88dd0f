// Finding and loading cuBLASLt. See cublaslt_api.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/device/cublaslt_api.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "tuner/compile/library_places.h"

namespace kw::tuner {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStem = "libcublasLt.so";
constexpr int kKnownMajors[] = {13, 12};  // their ABI is what cublaslt_api.h declares

/// A place to look: a file, a folder, or a bare name for the loader.
struct Place {
  std::string path, origin;
};

/// <root>/lib/python3.*/{site,dist}-packages/nvidia/{cublas,cu13}/lib: where pip puts nvidia-cublas-cu12 and nvidia-cublas.
void add_wheel_folders(const std::string& root, std::vector<Place>& places) {
  std::error_code ignored;
  std::vector<std::string> pythons;
  for (const fs::directory_entry& entry : fs::directory_iterator(root + "/lib", ignored)) {
    if (entry.path().filename().string().starts_with("python3")) pythons.push_back(entry.path().string());
  }
  std::sort(pythons.rbegin(), pythons.rend());
  for (const std::string& python : pythons) {
    for (const char* packages : {"/site-packages", "/dist-packages"}) {
      for (const char* wheel : {"/nvidia/cu13/lib", "/nvidia/cublas/lib"}) {
        const std::string folder = python + packages + wheel;
        if (fs::is_directory(folder, ignored)) places.push_back({folder, "PyPI wheel"});
      }
    }
  }
}

std::vector<Place> places_to_look(int max_major) {
  if (const std::string chosen = environment("KERNELWRIGHT_CUBLASLT"); !chosen.empty()) return {{chosen, "KERNELWRIGHT_CUBLASLT"}};
  std::vector<Place> places;
  if (environment("KERNELWRIGHT_HIDE_TOOLKIT") != "1") {
    for (const std::string& folder : toolkit_folders()) places.push_back({folder, "CUDA toolkit"});
    for (const int major : kKnownMajors) {
      if (max_major == 0 || major <= max_major) places.push_back({fmt::format("{}.{}", kStem, major), "CUDA toolkit"});
    }
  }
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string root = environment(variable); !root.empty()) add_wheel_folders(root, places);
  }
  if (const std::string home = environment("HOME"); !home.empty()) add_wheel_folders(home + "/.local", places);
  add_wheel_folders("/usr/local", places);
  add_wheel_folders("/usr", places);
  return places;
}

/// The first name that the library lacks; empty when it has them all.
std::string resolve(void* library, CublasLtApi& api) {
  std::string missing;
  const auto need = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && missing.empty()) missing = name;
  };
  need(api.version, "cublasLtGetVersion");
  need(api.create, "cublasLtCreate");
  need(api.desc_create, "cublasLtMatmulDescCreate");
  need(api.desc_destroy, "cublasLtMatmulDescDestroy");
  need(api.desc_set, "cublasLtMatmulDescSetAttribute");
  need(api.layout_create, "cublasLtMatrixLayoutCreate");
  need(api.layout_destroy, "cublasLtMatrixLayoutDestroy");
  need(api.layout_set, "cublasLtMatrixLayoutSetAttribute");
  need(api.preference_create, "cublasLtMatmulPreferenceCreate");
  need(api.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  need(api.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  need(api.heuristics, "cublasLtMatmulAlgoGetHeuristic");
  need(api.algo_get, "cublasLtMatmulAlgoConfigGetAttribute");
  need(api.matmul, "cublasLtMatmul");
  api.status_text = reinterpret_cast<decltype(api.status_text)>(dlsym(library, "cublasLtGetStatusString"));
  return missing;
}

/// The file behind a bare name.
std::string path_of(const void* symbol, const std::string& name) {
  Dl_info info{};
  return dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : name;
}

Result<CublasLtLibrary> load(const std::string& path, const std::string& origin) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return fail(Stage::kDevice, Code::kToolchain, fmt::format("{}: cannot be loaded: {}", path, why == nullptr ? "no reason given" : why));
  }
  CublasLtLibrary library;
  library.origin = origin;
  if (const std::string missing = resolve(handle, library.api); !missing.empty())
    return fail(Stage::kDevice, Code::kToolchain, fmt::format("{}: cannot be used as cuBLASLt: it has no {}", path, missing));
  library.path = path_of(reinterpret_cast<const void*>(library.api.matmul), path);
  library.version = static_cast<int>(library.api.version());
  const int major = library.version / 10000;
  if (std::find(std::begin(kKnownMajors), std::end(kKnownMajors), major) == std::end(kKnownMajors))
    return fail(Stage::kDevice, Code::kToolchain,
                fmt::format("{}: cuBLASLt {}: versions 12 and 13 are known", path, library.version_text()));
  return library;
}

}  // namespace

std::string CublasLtLibrary::version_text() const {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);  // cublas_api.h, CUBLAS_VERSION
}

Result<CublasLtLibrary> open_cublaslt(int max_major) {
  std::string looked, failure;
  for (const Place& place : places_to_look(max_major)) {
    std::error_code ignored;
    std::string path = place.path;
    const bool is_bare_name = path.find('/') == std::string::npos;
    if (!is_bare_name && fs::is_directory(path, ignored)) path = newest_library_in(path, kStem, max_major);
    looked += fmt::format("{}{}", looked.empty() ? "" : ", ", place.path);
    if (path.empty() || (!is_bare_name && !fs::exists(path, ignored))) continue;
    Result<CublasLtLibrary> library = load(path, place.origin);
    if (library) return library;
    if (!is_bare_name && failure.empty()) failure = library.error().message;
  }
  if (!failure.empty()) return fail(Stage::kDevice, Code::kToolchain, failure);
  return fail(Stage::kDevice, Code::kToolchain,
              fmt::format("cuBLASLt: not found: looked at {}. Install a CUDA toolkit or the wheel nvidia-cublas, or set "
                          "KERNELWRIGHT_CUBLASLT to libcublasLt.so or its folder",
                          looked));
}

}  // namespace kw::tuner
