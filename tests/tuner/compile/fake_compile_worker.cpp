// A compile worker with a scripted compiler: words in the source say what goes wrong. Host tests of the pool run against it.
// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <unistd.h>

#include "tests/tuner/compile/fake_cubin.h"
#include "tuner/compile/compile_worker.h"

namespace {

bool says(const std::string& source, const char* word) { return source.find(word) != std::string::npos; }

kw::tuner::NvrtcResult scripted_compile(const kw::tuner::CompileJob& job) {
  static int num_compiles = 0;
  ++num_compiles;
  if (says(job.source, "CRASH")) {
    std::fputs("planted abort in the compiler\n", stderr);
    std::abort();
  }
  if (says(job.source, "KILLED")) raise(SIGKILL);
  if (says(job.source, "DIES_WHEN_WORN") && num_compiles > 1) _exit(3);
  if (says(job.source, "HANG")) {
    // A grandchild that outlives its parent must be killed with the group.
    if (says(job.source, "WITH_GRANDCHILD") && fork() == 0) {
      if (fork() == 0) std::this_thread::sleep_for(std::chrono::hours(1));
      std::this_thread::sleep_for(std::chrono::hours(1));
    }
    std::this_thread::sleep_for(std::chrono::hours(1));
  }
  if (says(job.source, "EAT_MEMORY")) {
    for (std::size_t block_bytes = 32 << 20;;) {
      std::memset(std::malloc(block_bytes), 1, block_bytes);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  if (says(job.source, "PRINT")) std::puts("a compiler that prints to standard output");
  kw::tuner::NvrtcResult result;
  if (says(job.source, "NO_MEMORY")) {
    result.code_text = "NVRTC_ERROR_OUT_OF_MEMORY";
    result.is_toolchain_fault = true;
    return result;
  }
  if (says(job.source, "ERROR")) {
    result.code_text = "NVRTC_ERROR_COMPILATION";
    result.log = "kernel.cu(1): warning: odd\nkernel.cu(2): error: identifier \"x\" is undefined\n";
    return result;
  }
  result.is_ok = true;
  const char* name = says(job.source, "OTHER_NAME") ? "other" : says(job.source, "probe()") ? "probe" : "k";
  result.cubin = kw::tuner::test::fake_cubin(name, job.source + std::to_string(getpid()));
  result.log = kw::tuner::test::ptxas_report(name, 40, says(job.source, "SPILL") ? 16 : 0);
  // The lines of NVRTC 13.0 for a wgmma that a call interrupts.
  if (says(job.source, "INJECTED") || says(job.source, "SERIALIZED"))
    result.log +=
        "ptxas info    : (C7519) warpgroup.arrive is injected in around line 71 by compiler to allow use of registers in GMMA in function "
        "'k'\n";
  if (says(job.source, "SERIALIZED"))
    result.log +=
        "ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register "
        "resources "
        "for the wgmma pipeline in the function 'k'\n";
  std::this_thread::sleep_for(std::chrono::milliseconds(says(job.source, "SLOW") ? 300 : 1));
  return result;
}

}  // namespace

int main() {
  return kw::tuner::run_compile_worker([](const std::string& nvrtc_path) -> kw::Result<kw::tuner::CompileFunction> {
    if (nvrtc_path == "broken") return kw::fail(kw::Stage::kCompile, kw::Code::kToolchain, "broken: cannot be loaded as NVRTC");
    return kw::tuner::CompileFunction(scripted_compile);
  });
}
