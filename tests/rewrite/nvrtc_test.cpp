// NVRTC takes what specialise() emits: the real compiler of the tool, found at run time. Tagged [.nvrtc].
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <cstdlib>

#include "tests/catch.h"
#include "tests/rewrite/template_cases.h"

namespace kw::generator {
namespace {

/// The five calls of NVRTC that the test needs, by their C signatures.
struct Nvrtc {
  int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*compile)(void*, int, const char* const*) = nullptr;
  int (*log_size)(void*, std::size_t*) = nullptr;
  int (*log)(void*, char*) = nullptr;
  int (*destroy)(void**) = nullptr;

  static Nvrtc load() {
    std::vector<std::string> paths = {"libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"};
    if (const char* given = std::getenv("KERNELWRIGHT_NVRTC")) paths.insert(paths.begin(), given);
    void* library = nullptr;
    for (const std::string& path : paths) {
      if (library == nullptr) library = dlopen(path.c_str(), RTLD_NOW);
    }
    Nvrtc nvrtc;
    if (library == nullptr) return nvrtc;
    nvrtc.create = reinterpret_cast<decltype(create)>(dlsym(library, "nvrtcCreateProgram"));
    nvrtc.compile = reinterpret_cast<decltype(compile)>(dlsym(library, "nvrtcCompileProgram"));
    nvrtc.log_size = reinterpret_cast<decltype(log_size)>(dlsym(library, "nvrtcGetProgramLogSize"));
    nvrtc.log = reinterpret_cast<decltype(log)>(dlsym(library, "nvrtcGetProgramLog"));
    nvrtc.destroy = reinterpret_cast<decltype(destroy)>(dlsym(library, "nvrtcDestroyProgram"));
    return nvrtc;
  }

  /// The compiler's log; "" when it has nothing to say.
  std::string log_of(const std::string& source, const std::string& arch, bool is_syntax_only) const {
    void* program = nullptr;
    create(&program, source.c_str(), "variant.cu", 0, nullptr, nullptr);
    const std::string target = "--gpu-architecture=" + arch;
    std::vector<const char*> options = {target.c_str(), "--std=c++20"};
    if (is_syntax_only) options.push_back("--fdevice-syntax-only");
    const int status = compile(program, static_cast<int>(options.size()), options.data());
    std::size_t size = 0;
    log_size(program, &size);
    std::string text(size, '\0');
    log(program, text.data());
    destroy(&program);
    while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
    return status == 0 ? text : "failed: " + text;
  }
};

}  // namespace

TEST_CASE("NVRTC takes random variants of every template without a word", "[.nvrtc][nvrtc]") {
  const Nvrtc nvrtc = Nvrtc::load();
  REQUIRE(nvrtc.create != nullptr);
  const SourceTree sources = builtin_template_sources();
  std::mt19937 random(7);
  for (const std::string& file : test::template_files(sources)) {
    const Result<TemplateInfo> info = read_template(sources, file);
    REQUIRE(info);
    for (int i = 0; i < 40; ++i) {
      const SpecialiseRequest request = i == 0 ? test::default_request(sources, *info) : test::random_request(sources, *info, random);
      const Result<std::string> text = specialise(request);
      if (!text) FAIL(to_text(text.error()));
      const bool is_syntax_only = i % 8 != 0;
      const std::string log = nvrtc.log_of(*text, info->min_arch, is_syntax_only);
      if (!log.empty()) FAIL(file << " " << i << ": " << log << "\n" << *text);
    }
  }
}

}  // namespace kw::generator
