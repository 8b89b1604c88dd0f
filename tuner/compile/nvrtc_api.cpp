// Loading of NVRTC and its calls. See nvrtc_api.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/compile/nvrtc_api.h"

#include <algorithm>
#include <filesystem>

#include <dlfcn.h>
#include <fmt/format.h>

namespace kw::tuner {
namespace {

namespace fs = std::filesystem;
using Program = struct OpaqueNvrtcProgram*;
constexpr int kSuccess = 0;
constexpr int kMaxArches = 1000;                               // NVRTC 13 knows 12 of them: a larger number is a library gone wrong
constexpr int kNoMemory = 1, kNoProgram = 2, kNoBuiltins = 7;  // nvrtcResult values that no source is to blame for

/// Signatures from the NVRTC documentation; stable since CUDA 11.1 (nvrtcGetCUBIN).
struct Calls {
  int (*version)(int*, int*);
  int (*num_arches)(int*);
  int (*arches)(int*);
  int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  int (*destroy)(Program*);
  int (*compile)(Program, int, const char* const*);
  int (*log_bytes)(Program, std::size_t*);
  int (*log)(Program, char*);
  int (*cubin_bytes)(Program, std::size_t*);
  int (*cubin)(Program, char*);
  int (*ptx_bytes)(Program, std::size_t*);
  int (*ptx)(Program, char*);
  const char* (*error_text)(int);
};

template <typename Function>
bool resolve(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool resolve_all(void* library, Calls& calls) {
  return resolve(library, "nvrtcVersion", calls.version) && resolve(library, "nvrtcGetNumSupportedArchs", calls.num_arches) &&
         resolve(library, "nvrtcGetSupportedArchs", calls.arches) && resolve(library, "nvrtcCreateProgram", calls.create) &&
         resolve(library, "nvrtcDestroyProgram", calls.destroy) && resolve(library, "nvrtcCompileProgram", calls.compile) &&
         resolve(library, "nvrtcGetProgramLogSize", calls.log_bytes) && resolve(library, "nvrtcGetProgramLog", calls.log) &&
         resolve(library, "nvrtcGetCUBINSize", calls.cubin_bytes) && resolve(library, "nvrtcGetCUBIN", calls.cubin) &&
         resolve(library, "nvrtcGetPTXSize", calls.ptx_bytes) && resolve(library, "nvrtcGetPTX", calls.ptx) &&
         resolve(library, "nvrtcGetErrorString", calls.error_text);
}

/// NVRTC has no RPATH: when its folder is not in ld.so's path it cannot find libnvrtc-builtins, unless that is loaded already.
void load_builtins_beside(const fs::path& library) {
  std::error_code ignored;
  const fs::path folder = fs::canonical(library, ignored).parent_path();
  if (folder.empty()) return;
  std::vector<fs::path> builtins;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("libnvrtc-builtins.so.")) builtins.push_back(entry.path());
  }
  std::sort(builtins.begin(), builtins.end());
  for (const fs::path& path : builtins) dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
}

class LoadedNvrtc final : public NvrtcLibrary {
 public:
  LoadedNvrtc(void* library, const Calls& calls) : library_(library), calls_(calls) { calls_.version(&major_, &minor_); }
  ~LoadedNvrtc() override { dlclose(library_); }
  int major() const override { return major_; }
  int minor() const override { return minor_; }

  std::vector<int> compute_capabilities() const override {
    int count = 0;
    if (calls_.num_arches(&count) != kSuccess || count <= 0 || count > kMaxArches) return {};
    std::vector<int> result(static_cast<std::size_t>(count));
    if (calls_.arches(result.data()) != kSuccess) result.clear();
    return result;
  }

  NvrtcResult compile(const std::string& source, const std::string& file_name, const std::vector<std::string>& options,
                      bool wants_ptx) const override {
    NvrtcResult result;
    Program program = nullptr;
    int code = calls_.create(&program, source.c_str(), file_name.c_str(), 0, nullptr, nullptr);
    if (code == kSuccess) {
      std::vector<const char*> arguments;
      for (const std::string& option : options) arguments.push_back(option.c_str());
      code = calls_.compile(program, static_cast<int>(arguments.size()), arguments.data());
      result.log = fetch(program, calls_.log_bytes, calls_.log);
      while (!result.log.empty() && result.log.back() == '\0') result.log.pop_back();
    }
    if (code == kSuccess) result.cubin = fetch(program, calls_.cubin_bytes, calls_.cubin);
    if (code == kSuccess && wants_ptx) {
      result.ptx = fetch(program, calls_.ptx_bytes, calls_.ptx);
      while (!result.ptx.empty() && result.ptx.back() == '\0') result.ptx.pop_back();
    }
    result.is_ok = code == kSuccess && !result.cubin.empty();
    if (!result.is_ok) {
      const char* text = calls_.error_text(code);
      result.code_text = text != nullptr ? text : fmt::format("NVRTC error {}", code);
      result.is_toolchain_fault = code == kNoMemory || code == kNoProgram || code == kNoBuiltins;
    }
    if (program != nullptr) calls_.destroy(&program);
    return result;
  }

 private:
  static std::string fetch(Program program, int (*get_bytes)(Program, std::size_t*), int (*get)(Program, char*)) {
    std::size_t bytes = 0;
    if (get_bytes(program, &bytes) != kSuccess || bytes == 0) return {};
    std::string text(bytes, '\0');
    if (get(program, text.data()) != kSuccess) return {};
    return text;
  }

  void* library_;
  Calls calls_;
  int major_ = 0, minor_ = 0;
};

}  // namespace

Result<std::unique_ptr<NvrtcLibrary>> NvrtcLibrary::load(const std::string& path) {
  if (path.find('/') != std::string::npos) load_builtins_beside(path);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fail(Stage::kCompile, Code::kToolchain, fmt::format("{}: cannot be loaded as NVRTC: {}", path, dlerror()));
  Calls calls{};
  if (!resolve_all(library, calls)) {
    dlclose(library);
    return fail(Stage::kCompile, Code::kToolchain, fmt::format("{}: is no NVRTC, or older than CUDA 11.2: a function is missing", path));
  }
  return std::make_unique<LoadedNvrtc>(library, calls);
}

}  // namespace kw::tuner
