// The compile worker: one job after the other, from the parent's channel to the compiler and back. The compiler is a parameter, so
// that tests plant crashes, hangs and memory hogs; compile_worker_main() (compiler.h) runs it with NVRTC.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "generator/base/error.h"
#include "tuner/compile/nvrtc_api.h"

namespace kw::tuner {

struct CompileJob {
  std::string source, file_name;
  std::vector<std::string> options;
  bool wants_ptx = false;
};
using CompileFunction = std::function<NvrtcResult(const CompileJob&)>;
/// Makes the compiler from the library's path, which the parent sends first.
using CompilerFactory = std::function<Result<CompileFunction>(const std::string& nvrtc_path)>;

Result<CompileFunction> nvrtc_compiler(const std::string& nvrtc_path);

/// Runs until the parent closes the channel. Exit code 0, or 2 when standard input is no channel of ours.
int run_compile_worker(const CompilerFactory& factory);

}  // namespace kw::tuner
