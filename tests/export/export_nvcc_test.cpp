// Exports compile with nvcc alone, without a warning. Skipped, visibly, where there is no nvcc.
// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "tests/catch.h"
#include "tests/export/sample_request.h"

using namespace kw;
using namespace kw::generator;

namespace {

void check_compiles(const ExportRequest& request, const std::string& name) {
  const std::string nvcc = find_nvcc();
  if (nvcc.empty()) {
    std::cout << "SKIPPED: nvcc is not here: '" << name << "' is not compiled\n";
    return;
  }
  const CommandResult result = compile_with_nvcc(nvcc, write_export(request, name), request.op_name);
  INFO(result.output);
  CHECK(result.exit_status == 0);
}

}  // namespace

TEST_CASE("nvcc takes the f32 export without a warning") { check_compiles(make_sample(DType::kF32).request, "nvcc_f32"); }

TEST_CASE("nvcc takes the f16 export without a warning") { check_compiles(make_sample(DType::kF16).request, "nvcc_f16"); }

TEST_CASE("the export's own CMake project configures and builds with this CMake, from 3.25 on") {
  const std::string nvcc = find_nvcc();
  if (nvcc.empty()) {
    std::cout << "SKIPPED: nvcc is not here: the CMake project is not built\n";
    return;
  }
  const Sample sample = make_sample(DType::kF16);
  const std::string folder = write_export(sample.request, "cmake_f16");
  const std::string build = folder + "/build";
  const CommandResult configured = run_command("CUDACXX=$(command -v " + nvcc + ") cmake -S " + folder + " -B " + build);
  INFO(configured.output);
  REQUIRE(configured.exit_status == 0);
  const CommandResult built = run_command("cmake --build " + build);
  INFO(built.output);
  CHECK(built.exit_status == 0);
}
