// Export: test_<op>.cu, which compares the exported kernels with the op's formula in double, made from the program's expressions.
// SPDX-License-Identifier: Apache-2.0
#include "generator/emit/export/test_text.h"

#include <set>

#include <fmt/format.h>

#include "generator/emit/export/names.h"
#include "generator/emit/export/texts.h"

namespace kw::generator {
namespace {

std::string includes_text(const ExportModel& model) {
  std::set<std::string> headers = {"cuda_runtime.h"};
  for (const PlanTensor& tensor : model.plan->tensors) {
    if (tensor.dtype == DType::kF16) headers.insert("cuda_fp16.h");
    if (tensor.dtype == DType::kBF16) headers.insert("cuda_bf16.h");
    if (tensor.dtype == DType::kE4M3 || tensor.dtype == DType::kE5M2) headers.insert("cuda_fp8.h");
  }
  std::string text = fmt::format("#include \"{}.h\"\n\n", model.op);
  for (const char* header : {"algorithm", "cmath", "cstdint", "cstdio", "cstdlib", "cstring", "initializer_list", "limits", "random",
                             "unordered_map", "vector"}) {
    text += fmt::format("#include <{}>\n", header);
  }
  text += "\n";
  for (const std::string& header : headers) text += fmt::format("#include <{}>\n", header);
  return text;
}

/// encode() and decode() for the element types of the op.
std::string conversions_text(const ExportModel& model) {
  std::set<std::string> types;
  for (const PlanTensor& tensor : model.plan->tensors) types.insert(storage_type(tensor.dtype));
  std::string text;
  for (const std::string& type : types) {
    std::string from = fmt::format("static_cast<{}>(x)", type), to = "static_cast<double>(x)";
    if (type == "__half") from = "__double2half(x)", to = "static_cast<double>(__half2float(x))";
    if (type == "__nv_bfloat16") from = "__double2bfloat16(x)", to = "static_cast<double>(__bfloat162float(x))";
    if (type.rfind("__nv_fp8", 0) == 0) to = "static_cast<double>(static_cast<float>(x))";
    text += fmt::format("inline double decode({0} x) {{ return {1}; }}\ninline void encode(double x, {0}& out) {{ out = {2}; }}\n", type,
                        to, from);
  }
  return text;
}

constexpr std::string_view kMain = R"(
int main() {{
  using namespace {0}_test;
  int num_devices = 0;
  if (cudaGetDeviceCount(&num_devices) != cudaSuccess || num_devices == 0) {{
    std::printf("FAIL: no CUDA device\n");
    return 1;
  }}
  std::mt19937_64 random(20240601);
  int num_failed = 0, num_passed = 0;
  for (const Case& shape : kCases) ++(run(shape, random) ? num_passed : num_failed);
  std::printf("%s: %d passed, %d failed\n", num_failed == 0 ? "PASS" : "FAIL", num_passed, num_failed);
  return num_failed == 0 ? 0 : 1;
}}
)";

}  // namespace

Result<std::string> test_text(const ExportModel& model) {
  KW_TRY(const std::string reference, test_reference_text(model));
  std::string_view support = kTestSupport;
  support.remove_prefix(support.find("// ---\n") + 7);
  std::string text = banner_text(model, "test_" + model.op + ".cu", "test against the naive formula");
  text += includes_text(model) + fmt::format("\nnamespace {}_test {{\n\n", model.op);
  const double roundoff = unit_roundoff(model.program->accumulate);
  text += fmt::format("constexpr double kRoundoff = {};\nconstexpr double kProductRoundoff = {};\n\n", double_literal(roundoff),
                      double_literal(model.program->uses_tf32 ? 2 * unit_roundoff(DType::kTF32) : roundoff));
  text += conversions_text(model) + "\n" + std::string(support) + "\n" + reference + "\n" + test_run_text(model);
  return text + fmt::format("\n}}  // namespace {}_test\n", model.op) + fmt::format(fmt::runtime(kMain), model.op);
}

}  // namespace kw::generator
