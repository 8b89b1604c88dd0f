// Exports of real variants compile with nvcc alone, without a warning: every epilogue and operand form that has a golden file, and one
// export of several kernels. Skipped, visibly, where there is no nvcc.
// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "tests/catch.h"
#include "tests/emit/golden_cases.h"
#include "tests/export/sample_request.h"

using namespace kw;
using namespace kw::generator;

namespace {

ExportKernel kernel_of(const Variant& variant, Arch arch, std::int64_t extent) {
  ExportKernel kernel;
  kernel.variant_id = variant.id;
  kernel.source = variant.source;
  kernel.plan = variant.plan;
  kernel.arch = arch;
  for (const std::string& dim : variant.plan.dims) kernel.problem.dims[dim] = extent;
  kernel.is_predicted = true;
  return kernel;
}

/// A variant whose only rules on the problem are the limits of a launch, and of how often rows of a product are read again: gemm_simt, or a
/// row that is read again for every phase.
ExportKernel fallback_of(const Program& program, Arch arch) {
  testing::GoldenCase free{"gemm_simt", program, {}, arch};
  Result<Variant> variant = testing::emit(free);
  if (!variant) variant = testing::emit({"row_sm80", program, {{"IS_STREAMED", 1}}, arch});
  if (!variant) FAIL(variant.error().message);
  for (const PlanConstraint& constraint : variant->plan.constraints)
    CHECK((constraint.name == "grid_fits" || constraint.name == "extents_fit" || constraint.name == "products_are_thin"));
  return kernel_of(*variant, arch, 1);
}

void check_compiles(const ExportRequest& request, const std::string& folder_name) {
  const std::string nvcc = find_nvcc();
  if (nvcc.empty()) {
    std::cout << "SKIPPED: nvcc is not here: '" << folder_name << "' is not compiled\n";
    return;
  }
  const std::string folder = write_export(request, folder_name);
  const bool has_checks = request.kernels.front().source.find("KERNELWRIGHT_CHECKED") != std::string::npos;
  for (const char* flags : {"", "-DKERNELWRIGHT_CHECKED"}) {
    if (*flags != '\0' && !has_checks) continue;
    const CommandResult result = compile_with_nvcc(nvcc, folder, request.op_name, request.kernels.front().arch, flags);
    INFO(folder_name << " " << flags << "\n" << result.output);
    CHECK(result.exit_status == 0);
  }
}

}  // namespace

TEST_CASE("nvcc takes an export of every form of epilogue and operand without a warning") {
  int number = 0;
  for (const testing::GoldenCase& golden : testing::golden_cases()) {
    const Result<Variant> variant = testing::emit(golden);
    REQUIRE(variant);
    ExportRequest request{
        &golden.program, golden.program.name, {kernel_of(*variant, golden.arch, 256)}, fallback_of(golden.program, golden.arch), ""};
    check_compiles(request, "variant_" + std::to_string(number++) + "_" + golden.program.name);
  }
}

TEST_CASE("the test of an export gives subscripts that lie inside their axes, and passes over shapes that have none") {
  int number = 0;
  for (const testing::GoldenCase& golden : testing::golden_cases()) {
    const Result<Variant> variant = testing::emit(golden);
    REQUIRE(variant);
    if (variant->source.find("in_axis(") == std::string::npos) continue;
    ++number;
    const ExportRequest request{
        &golden.program, golden.program.name, {kernel_of(*variant, golden.arch, 256)}, fallback_of(golden.program, golden.arch), ""};
    const auto files = export_files(request);
    REQUIRE(files);
    const std::string& test = files->at("test_" + golden.program.name + ".cu");
    CHECK_THAT(test, contains_text("_limit() const { return std::min<std::int64_t>({"));
    CHECK_THAT(test, contains_text(", static_cast<double>(r."));
    CHECK_THAT(test, contains_text("would be inside an empty axis"));
    CHECK_THAT(files->at("README.md"), contains_text("-D KERNELWRIGHT_CHECKED"));
  }
  CHECK(number > 0);
}

TEST_CASE("nvcc takes an export of several kernels of one op without a warning") {
  testing::GoldenCase golden = testing::golden_cases().front();
  ExportRequest request{&golden.program, golden.program.name, {}, fallback_of(golden.program, golden.arch), ""};
  for (const std::int64_t block : {64, 128}) {
    golden.changes["BLOCK_N"] = block;
    const Result<Variant> variant = testing::emit(golden);
    REQUIRE(variant);
    request.kernels.push_back(kernel_of(*variant, golden.arch, block));
  }
  check_compiles(request, "several_variants");
}
