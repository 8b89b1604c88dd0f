// Exports compile with nvcc alone, without a warning. Skipped, visibly, where there is no nvcc.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <iostream>

#include "tests/catch.h"
#include "tests/export/sample_request.h"

using namespace kw;
using namespace kw::generator;

namespace {

/// Path of nvcc, or "" when there is none or the toolkit is to be taken as absent.
std::string find_nvcc() {
  const char* hidden = std::getenv("KERNELWRIGHT_HIDE_TOOLKIT");
  if (hidden != nullptr && std::string(hidden) == "1") return "";
  for (const char* candidate : {"nvcc", "/usr/local/cuda/bin/nvcc"}) {
    if (run_command(std::string(candidate) + " --version").exit_status == 0) return candidate;
  }
  return "";
}

void check_compiles(const ExportRequest& request, const std::string& name) {
  const std::string nvcc = find_nvcc();
  if (nvcc.empty()) {
    std::cout << "SKIPPED: nvcc is not here: '" << name << "' is not compiled\n";
    return;
  }
  const std::string folder = write_export(request, name);
  const std::string op = request.op_name;
  for (const std::string& file : {op, "test_" + op}) {
    const CommandResult result = run_command(nvcc + " -std=c++20 -Xcompiler=-Wall,-Wextra -Werror all-warnings -arch=sm_80 -I" + folder +
                                             " -c " + folder + "/" + file + ".cu -o " + folder + "/" + file + ".o");
    INFO(result.output);
    CHECK(result.exit_status == 0);
  }
}

}  // namespace

TEST_CASE("nvcc takes the f32 export without a warning") { check_compiles(make_sample(DType::kF32).request, "nvcc_f32"); }

TEST_CASE("nvcc takes the f16 export without a warning") { check_compiles(make_sample(DType::kF16).request, "nvcc_f16"); }
