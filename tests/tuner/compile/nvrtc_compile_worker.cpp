// The real compile worker as its own executable, for tests that need NVRTC. "PLANTED_ABORT" in a source stops the process.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "tuner/compile/compile_worker.h"

int main() {
  return kw::tuner::run_compile_worker([](const std::string& nvrtc_path) -> kw::Result<kw::tuner::CompileFunction> {
    KW_TRY(const kw::tuner::CompileFunction compile, kw::tuner::nvrtc_compiler(nvrtc_path));
    return kw::tuner::CompileFunction([compile](const kw::tuner::CompileJob& job) {
      if (job.source.find("PLANTED_ABORT") != std::string::npos) std::abort();
      return compile(job);
    });
  });
}
