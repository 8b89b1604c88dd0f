// The exported folder: what it holds, what is refused, and that it computes the op: run on the host by a stand-in for the CUDA run-time.
// SPDX-License-Identifier: Apache-2.0
#include "generator/emit/export.h"

#include <cstdlib>

#include "generator/emit/export/names.h"
#include "tests/catch.h"
#include "tests/export/sample_request.h"

using namespace kw;
using namespace kw::generator;

namespace {

std::string refusal(const ExportRequest& request) {
  const auto files = export_files(request);
  return files ? "accepted" : files.error().message;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// Compiles the export with the host's compiler against tests/export/host_cuda.
std::string compile_for_host(const std::string& folder) {
  const std::string flags = "-std=c++20 -O1 -Wall -Wextra -Werror -I" KW_SOURCE_DIR "/tests/export/host_cuda -I" + folder;
  const CommandResult compiled =
      run_command("c++ " + flags + " -x c++ " + folder + "/scaled_matmul.cu " + folder + "/test_scaled_matmul.cu -o " + folder + "/test");
  INFO(compiled.output);
  CHECK(compiled.exit_status == 0);
  return folder + "/test";
}

}  // namespace

TEST_CASE("an export holds source, header, test, build file and read-me, and says what it was made from") {
  const Sample sample = make_sample();
  const auto files = export_files(sample.request);
  REQUIRE(files);
  CHECK(files->size() == 5);
  const std::string& source = files->at("scaled_matmul.cu");
  for (const char* part : {"SPDX-License-Identifier: Apache-2.0", "K=80,M=48,N=64", "two_launches", "NVIDIA H200", "measured 12.35 us",
                           "record 17", "predicted, not measured", "NVRTC 12.9", "kernelwright export", "nvcc -std=c++20", "compute_80"}) {
    INFO(part);
    CHECK(has(source, part));
  }
  CHECK(has(files->at("scaled_matmul.h"), "enum class ScaledMatmulStatus"));
  CHECK(has(files->at("scaled_matmul.h"), "scaled_matmul_zeroed_workspace_bytes"));
  CHECK(has(files->at("CMakeLists.txt"), "CUDA_ARCHITECTURES \"80\""));
}

TEST_CASE("a launch that may begin early says so in the export, others keep their turn") {
  Sample sample = make_sample();
  REQUIRE(sample.request.kernels[0].plan.launches.size() == 2);
  sample.request.kernels[0].plan.launches[1].is_dependent = true;
  const std::string source = export_files(sample.request)->at("scaled_matmul.cu");
  CHECK(has(source, "launch_kernel(&k0::scaled_matmul, "));
  const std::string finish = source.substr(source.find("launch_kernel(&k0::finish, "));
  CHECK(has(finish.substr(0, finish.find('\n')), "Begin::kEarly"));
  const std::string first = source.substr(source.find("launch_kernel(&k0::scaled_matmul, "));
  CHECK(has(first.substr(0, first.find('\n')), "Begin::kInTurn"));
}

TEST_CASE("the same request gives the same bytes") {
  const Sample a = make_sample(), b = make_sample();
  CHECK(*export_files(a.request) == *export_files(b.request));
}

TEST_CASE("a source that serves two shapes is exported once") {
  Sample sample = make_sample();
  ExportKernel again = sample.request.kernels[0];
  again.problem.dims["M"] = 96;
  sample.request.kernels.push_back(again);
  const std::string source = export_files(sample.request)->at("scaled_matmul.cu");
  CHECK(has(source, "namespace k2 {"));
  CHECK(!has(source, "namespace k3 {"));
  CHECK(has(source, "{0, {96, 64, 80}}"));
}

TEST_CASE("an exported op computes its formula at tuned, odd and empty shapes, and from a CUDA Graph") {
  const Sample sample = make_sample();
  const std::string test = compile_for_host(write_export(sample.request, "on_host"));
  const CommandResult result = run_command(test);
  INFO(result.output);
  CHECK(result.exit_status == 0);
  CHECK(has(result.output, "M=48 N=64 K=80\n  two_launches (chosen): PASS"));
  CHECK(has(result.output, "M=1 N=100 K=33\n  one_launch (chosen): PASS"));
  CHECK(has(result.output, "M=33 N=33 K=0\n  for_every_shape (chosen): PASS"));
  CHECK(has(result.output, "padded\n  one_launch (chosen): PASS"));
  CHECK(has(result.output, "\nPASS: "));
  CHECK(run_command("HOST_CUDA_CAPABILITY=75 " + test).exit_status == 1);  // older than sm_80: refused
}

TEST_CASE("the exported test fails when a kernel is wrong in one element") {
  Sample sample = make_sample();
  std::string& source = sample.request.kernels[0].source;
  const std::string right = "out[i] = from_float(y < 0.0f ? 0.0f : y);";
  source.replace(source.find(right), right.size(), "out[i] = from_float(i == 65 ? y + 0.01f : y < 0.0f ? 0.0f : y);");
  const CommandResult result = run_command(compile_for_host(write_export(sample.request, "wrong_on_host")));
  CHECK(result.exit_status == 1);
  CHECK(has(result.output, "out at position 65"));
  CHECK(has(result.output, "\nFAIL: "));
}

TEST_CASE("an export is refused with a reason when it would not build or not serve every shape") {
  Sample sample = make_sample();
  ExportRequest request = sample.request;
  request.op_name = "no/identifier";
  CHECK(has(refusal(request), "'no/identifier' is no C identifier"));
  request.op_name = "while";
  CHECK(has(refusal(request), "no C identifier"));
  request = sample.request;
  request.fallback = {};
  CHECK(has(refusal(request), "no fall-back kernel"));
  request = sample.request;
  request.kernels[0].source.clear();
  CHECK(has(refusal(request), "two_launches: its source is not in the database"));
  request = sample.request;
  request.kernels[0].plan.launches[0].kernel = "other_symbol";
  CHECK(has(refusal(request), "kernel symbol 'other_symbol'"));
  request = sample.request;
  request.kernels[0].plan.tensors.pop_back();
  CHECK(has(refusal(request), "kernels of two different ops"));
}

TEST_CASE("names that C++ takes for itself get an underscore, and literals read back") {
  CHECK(safe_name("M") == "M");
  CHECK(safe_name("A.stride0") == "A_stride0");
  CHECK(safe_name("int") == "int_");
  CHECK(camel_case("matmul_bias_relu") == "MatmulBiasRelu");
  CHECK(cpp_text(*IntExpr::parse("int * 2")).find("int_") != std::string::npos);
  CHECK(std::strtod(double_literal(0.1).c_str(), nullptr) == 0.1);
  CHECK(double_literal(1) == "1.0");
  CHECK(comment("a\nb\\") == "// a\n// b\\.\n");
}
