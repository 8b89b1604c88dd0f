// See nvrtc.h. NVRTC's C interface is declared here, so that the tests build without a CUDA toolkit.
// SPDX-License-Identifier: Apache-2.0
#include "tests/templates/nvrtc.h"

#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace kw::template_tests {
namespace {

struct Nvrtc {
  using Program = void*;
  int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*log_size)(Program, std::size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*destroy)(Program*) = nullptr;
};

template <typename Function>
void resolve(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(std::string("NVRTC has no ") + name);
}

Nvrtc load_nvrtc() {
  std::vector<std::string> paths = {"libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so.13",
                                    "/usr/local/cuda/lib64/libnvrtc.so.12"};
  if (const char* path = std::getenv("KERNELWRIGHT_NVRTC")) paths.insert(paths.begin(), path);
  void* library = nullptr;
  for (const std::string& path : paths) {
    // NVRTC looks for its builtins by bare name: load those that lie beside it first.
    if (const std::size_t slash = path.rfind('/'); slash != std::string::npos) {
      dlopen((path.substr(0, slash) + "/libnvrtc-builtins.so").c_str(), RTLD_NOW | RTLD_GLOBAL);
    }
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) throw std::runtime_error("no NVRTC found: set KERNELWRIGHT_NVRTC to the path of libnvrtc.so");
  Nvrtc nvrtc;
  resolve(library, "nvrtcCreateProgram", nvrtc.create);
  resolve(library, "nvrtcCompileProgram", nvrtc.compile);
  resolve(library, "nvrtcGetProgramLogSize", nvrtc.log_size);
  resolve(library, "nvrtcGetProgramLog", nvrtc.log);
  resolve(library, "nvrtcDestroyProgram", nvrtc.destroy);
  return nvrtc;
}

int sum_of_matches(const std::string& text, const std::string& pattern) {
  const std::regex number(pattern);
  int sum = 0;
  for (std::sregex_iterator match(text.begin(), text.end(), number), end; match != end; ++match) sum += std::stoi((*match)[1]);
  return sum;
}

}  // namespace

NvrtcResult compile(const std::string& source, const std::string& arch) {
  static const Nvrtc nvrtc = load_nvrtc();
  Nvrtc::Program program = nullptr;
  if (nvrtc.create(&program, source.c_str(), "template.cu", 0, nullptr, nullptr) != 0)
    throw std::runtime_error("nvrtcCreateProgram failed");
  const std::string arch_option = "--gpu-architecture=" + arch, include_option = "--include-path=" KW_SOURCE_DIR "/templates";
  const char* options[] = {arch_option.c_str(), include_option.c_str(), "-std=c++20", "--no-cache", "--ptxas-options=-v"};
  NvrtcResult result;
  result.is_compiled = nvrtc.compile(program, 5, options) == 0;
  std::size_t size = 0;
  nvrtc.log_size(program, &size);
  std::vector<char> log(size + 1);
  nvrtc.log(program, log.data());
  result.log = log.data();
  nvrtc.destroy(&program);
  result.registers = sum_of_matches(result.log, "Used ([0-9]+) registers");
  result.spill_bytes = sum_of_matches(result.log, "([0-9]+) bytes spill (?:stores|loads)");
  return result;
}

std::string template_path(const std::string& name) {
  return std::string(KW_SOURCE_DIR "/templates/") + (name.starts_with("gemm_") ? "gemm/" : "rows/") + name + ".cuh";
}

std::string template_text(const std::string& name, const std::vector<std::string>& settings) {
  std::ifstream file(template_path(name));
  std::stringstream text;
  text << file.rdbuf();
  std::string result = text.str();
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    const std::regex member("([ )]" + setting.substr(0, equals) + "( BIND\\([^)]*\\))? = )[A-Za-z0-9 ]+;");
    std::smatch match;
    if (!std::regex_search(result, match, member)) throw std::runtime_error(name + " has no member " + setting.substr(0, equals));
    const auto at = static_cast<std::size_t>(match.position(0));
    const auto length = static_cast<std::size_t>(match.length(0));
    const std::string kept = match[1].str();
    result.replace(at, length, kept + setting.substr(equals + 1) + ";");
  }
  return result;
}

}  // namespace kw::template_tests
