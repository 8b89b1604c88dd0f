// A hand-made op and three hand-written kernels for the tests of export.
// SPDX-License-Identifier: Apache-2.0
#include "tests/export/sample_request.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <sys/wait.h>

namespace kw::generator {
namespace {

IntExpr expr(std::string_view text) {
  Result<IntExpr> parsed = IntExpr::parse(text);
  if (!parsed) throw std::runtime_error(parsed.error().message);
  return *parsed;
}

ExprRef read(std::string name, std::vector<std::string> indices) {
  auto node = std::make_shared<ExprNode>();
  node->kind = ExprNode::Kind::kRead;
  node->name = std::move(name);
  for (std::string& index : indices) node->operands.push_back(make_index(std::move(index)));
  return node;
}

ExprRef sum_over_k(ExprRef operand) {
  auto node = std::make_shared<ExprNode>();
  node->kind = ExprNode::Kind::kReduce;
  node->reduce_op = ReduceOp::kSum;
  node->indices = {"k"};
  node->operands = {std::move(operand)};
  return node;
}

Tensor tensor(std::string name, DType dtype, TensorRole role, std::vector<IntExpr> shape, std::vector<IntExpr> strides) {
  Tensor result;
  result.name = std::move(name);
  result.dtype = dtype;
  result.role = role;
  result.shape = std::move(shape);
  result.strides = std::move(strides);
  return result;
}

/// acc[m,n] = sum[k](A[m,k] * B[n,k]);  out[m,n] = relu(alpha * acc[m,n] + bias[n])
std::unique_ptr<Program> make_program(DType dtype) {
  auto program = std::make_unique<Program>();
  program->name = "scaled_matmul";
  program->dims = {{"M", true, {}}, {"N", true, {}}, {"K", true, {}}};
  program->tensors = {tensor("A", dtype, TensorRole::kIn, {expr("M"), expr("K")}, {expr("A.stride0"), expr("A.stride1")}),
                      tensor("B", dtype, TensorRole::kIn, {expr("N"), expr("K")}, {expr("K + 2"), IntExpr(1)}),
                      tensor("bias", dtype, TensorRole::kIn, {expr("N")}, {IntExpr(1)}),
                      tensor("out", dtype, TensorRole::kOut, {expr("M"), expr("N")}, {expr("N"), IntExpr(1)})};
  program->tensors[0].has_any_strides = true;
  program->scalars = {{"alpha", nullptr, DType::kF32}};
  program->indices = {{"m", expr("M"), nullptr, "", ""}, {"n", expr("N"), nullptr, "", ""}, {"k", expr("K"), nullptr, "", ""}};
  Statement acc, out;
  acc.target = "acc";
  acc.indices = {"m", "n"};
  acc.subscripts = {make_index("m"), make_index("n")};
  acc.value = sum_over_k(make_call(Function::kMul, {read("A", {"m", "k"}), read("B", {"n", "k"})}, DType::kF32));
  auto alpha = std::make_shared<ExprNode>();
  alpha->kind = ExprNode::Kind::kScalar;
  alpha->name = "alpha";
  out.target = "out";
  out.is_tensor = true;
  out.indices = acc.indices;
  out.subscripts = acc.subscripts;
  const ExprRef scaled = make_call(Function::kMul, {alpha, read("acc", {"m", "n"})}, DType::kF32);
  out.value = make_call(Function::kRelu, {make_call(Function::kAdd, {scaled, read("bias", {"n"})}, DType::kF32)}, DType::kF32);
  program->statements = {acc, out};
  return program;
}

// The element type of the kernels: float, or a 2-byte type that converts as the templates' parts do.
constexpr const char* kFloatElement = R"(using Element = float;
__device__ __forceinline__ float to_float(Element x) { return x; }
__device__ __forceinline__ Element from_float(float x) { return x; }
)";
constexpr const char* kHalfElement = R"(struct Element { unsigned short bits; };
__device__ __forceinline__ float to_float(Element x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
__device__ __forceinline__ Element from_float(float x) {
  Element y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
)";

constexpr const char* kOneLaunch = R"(struct Problem { long long extent_m, extent_n, extent_k, A_stride_m, A_stride_k; };
struct Epilogue { const Element* bias; Element* out; float alpha; };
extern "C" __global__ void scaled_matmul(const Element* A, const Element* B, Problem problem, Epilogue epilogue) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= problem.extent_m * problem.extent_n) return;
  const long long m = i / problem.extent_n, n = i % problem.extent_n;
  float acc = 0;
  for (long long k = 0; k < problem.extent_k; ++k) {
    acc += to_float(A[m * problem.A_stride_m + k * problem.A_stride_k]) * to_float(B[n * (problem.extent_k + 2) + k]);
  }
  const float y = epilogue.alpha * acc + to_float(epilogue.bias[n]);
  epilogue.out[i] = from_float(y < 0.0f ? 0.0f : y);
}
)";

constexpr const char* kTwoLaunches = R"(struct Problem { long long extent_m, extent_n, extent_k; };
extern "C" __global__ void scaled_matmul(const Element* A, const Element* B, Problem problem, float* partial, int* counters) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i == 0) counters[0] += 1;
  if (i >= problem.extent_m * problem.extent_n) return;
  const long long m = i / problem.extent_n, n = i % problem.extent_n;
  float acc = 0;
  for (long long k = 0; k < problem.extent_k; ++k) acc += to_float(A[m * problem.extent_k + k]) * to_float(B[n * (problem.extent_k + 2) + k]);
  partial[i] = acc;
}
extern "C" __global__ void finish(const float* partial, int* counters, Problem problem, const Element* bias, Element* out, float alpha) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= problem.extent_m * problem.extent_n) return;
  const float y = alpha * partial[i] + to_float(bias[i % problem.extent_n]) + (counters[0] == 1 ? 0.0f : 1e30f);
  out[i] = from_float(y < 0.0f ? 0.0f : y);
  if (i == problem.extent_m * problem.extent_n - 1) counters[0] = 0;
}
)";

PlanField field(PlanField::Kind kind, std::string name, std::string source, IntExpr value = {}) {
  return {kind, std::move(name), std::move(source), std::move(value), DType::kF32};
}
PlanField extent(std::string name, std::string_view value) { return field(PlanField::Kind::kInt64, std::move(name), "", expr(value)); }
PlanParameter single(PlanField entry) { return {entry.name, {entry}}; }

LaunchPlan plan_head(const Program& program) {
  LaunchPlan plan;
  for (const Dim& dim : program.dims) plan.dims.push_back(dim.name);
  for (const Tensor& t : program.tensors) plan.tensors.push_back({t.name, t.dtype, t.role, t.shape, t.strides, t.align_bytes});
  plan.scalars = {{"alpha", DType::kF32}};
  return plan;
}

PlanLaunch launch_over_outputs(std::string kernel, std::vector<PlanParameter> parameters) {
  PlanLaunch launch;
  launch.kernel = std::move(kernel);
  launch.grid = {expr("(M * N + 127) // 128"), IntExpr(1), IntExpr(1)};
  launch.block = {IntExpr(128), IntExpr(1), IntExpr(1)};
  launch.parameters = std::move(parameters);
  return launch;
}

ExportKernel one_launch_kernel(const Program& program, const std::string& element, std::string id) {
  using Kind = PlanField::Kind;
  ExportKernel kernel;
  kernel.variant_id = std::move(id);
  kernel.source = "// recorded\n" + element + kOneLaunch;
  kernel.plan = plan_head(program);
  const PlanParameter problem = {"problem",
                                 {extent("extent_m", "M"), extent("extent_n", "N"), extent("extent_k", "K"),
                                  extent("A_stride_m", "A.stride0"), extent("A_stride_k", "A.stride1")}};
  const PlanParameter epilogue = {
      "epilogue", {field(Kind::kTensor, "bias", "bias"), field(Kind::kTensor, "out", "out"), field(Kind::kScalar, "alpha", "alpha")}};
  kernel.plan.launches = {launch_over_outputs(
      "scaled_matmul", {single(field(Kind::kTensor, "A", "A")), single(field(Kind::kTensor, "B", "B")), problem, epilogue})};
  return kernel;
}

ExportKernel two_launch_kernel(const Program& program, const std::string& element) {
  using Kind = PlanField::Kind;
  ExportKernel kernel;
  kernel.variant_id = "two_launches";
  kernel.source = "// recorded\n" + element + kTwoLaunches;
  kernel.plan = plan_head(program);
  kernel.plan.workspaces = {{"partial", expr("4 * M * N"), false}, {"counters", expr("min(M, 1) * 4"), true}};
  kernel.plan.constraints = {{"a_is_row_major", expr("A.stride1 == 1 && A.stride0 == K"), "A must be row-major"},
                             {"k_is_even", expr("K % 8 == 0"), "K must be a multiple of 8"},
                             {"a_alignment", expr("A.align >= 16"), "A must be 16 B aligned"}};
  const PlanParameter problem = {"problem", {extent("extent_m", "M"), extent("extent_n", "N"), extent("extent_k", "K")}};
  const PlanParameter partial = single(field(Kind::kWorkspace, "partial", "partial"));
  const PlanParameter counters = single(field(Kind::kWorkspace, "counters", "counters"));
  kernel.plan.launches = {
      launch_over_outputs("scaled_matmul",
                          {single(field(Kind::kTensor, "A", "A")), single(field(Kind::kTensor, "B", "B")), problem, partial, counters}),
      launch_over_outputs("finish", {partial, counters, problem, single(field(Kind::kTensor, "bias", "bias")),
                                     single(field(Kind::kTensor, "out", "out")), single(field(Kind::kScalar, "alpha", "alpha"))})};
  return kernel;
}

}  // namespace

Sample make_sample(DType dtype) {
  Sample sample;
  sample.program = make_program(dtype);
  const std::string element = dtype == DType::kF16 ? kHalfElement : kFloatElement;
  ExportKernel two = two_launch_kernel(*sample.program, element);
  two.problem.dims = {{"M", 48}, {"N", 64}, {"K", 80}};
  two.median_us = 12.345;
  two.device_model = "NVIDIA H200";
  two.toolchain = "NVRTC 12.9, driver 580.1";
  two.flags = "-std=c++20";
  two.record_id = "17";
  ExportKernel one = one_launch_kernel(*sample.program, element, "one_launch");
  one.source += "// another variant\n";
  one.problem.dims = {{"M", 1}, {"N", 100}, {"K", 33}};
  one.is_predicted = true;
  sample.request = {sample.program.get(),
                    "scaled_matmul",
                    {two, one},
                    one_launch_kernel(*sample.program, element, "for_every_shape"),
                    "kernelwright export"};
  return sample;
}

std::string write_export(const ExportRequest& request, const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(KW_BINARY_DIR) / "tests" / "export" / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const auto files = export_files(request);
  if (!files) throw std::runtime_error(files.error().message);
  for (const auto& [file, text] : *files) std::ofstream(folder / file) << text;
  return folder.string();
}

CommandResult run_command(const std::string& command) {
  CommandResult result;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("popen failed");
  std::array<char, 4096> buffer;
  while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe)) result.output.append(buffer.data(), count);
  const int status = pclose(pipe);
  result.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return result;
}

std::string find_nvcc() {
  const char* hidden = std::getenv("KERNELWRIGHT_HIDE_TOOLKIT");
  if (hidden != nullptr && std::string(hidden) == "1") return "";
  for (const char* candidate : {"nvcc", "/usr/local/cuda/bin/nvcc"}) {
    if (run_command(std::string(candidate) + " --version").exit_status == 0) return candidate;
  }
  return "";
}

CommandResult compile_with_nvcc(const std::string& nvcc, const std::string& folder, const std::string& op, Arch arch,
                                const std::string& flags) {
  const std::string number = std::string(to_text(arch)).substr(3);
  CommandResult result;
  for (const std::string& file : {op, "test_" + op}) {
    result = run_command(nvcc + " " + flags + " -std=c++20 -Xcompiler=-Wall,-Wextra -Werror all-warnings -gencode arch=compute_" + number +
                         ",code=sm_" + number + " -I" + folder + " -c " + folder + "/" + file + ".cu -o " + folder + "/" + file + ".o");
    if (result.exit_status != 0) break;
  }
  return result;
}

}  // namespace kw::generator
