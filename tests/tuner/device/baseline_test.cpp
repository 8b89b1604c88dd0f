// A library's call in the GPU worker, against a cuBLASLt of host memory: what is asked of it, that its result is checked before it is
// timed, and that its faults cost an algorithm or the baseline alone.
// SPDX-License-Identifier: Apache-2.0
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/catch.h"
#include "tests/tuner/device/baseline_case.h"
#include "tests/tuner/device/fake_gpu.h"
#include "tests/tuner/device/sample_job.h"
#include "tuner/device/baseline_job.h"
#include "tuner/device/cublaslt_api.h"
#include "tuner/verify/verify.h"

using namespace kw::tuner;
using namespace kw::tuner::test;
using kw::TrialStatus;

#ifdef CUBLAS_VERSION  // our declarations against the toolkit's, where it is there
static_assert(sizeof(CublasLtAlgo) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(CublasLtHeuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(CublasLtHeuristic, workspace_bytes) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(CublasLtHeuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(cublaslt::kReal32F == CUDA_R_32F && cublaslt::kReal16F == CUDA_R_16F && cublaslt::kReal16BF == CUDA_R_16BF);
static_assert(cublaslt::kCompute32F == CUBLAS_COMPUTE_32F && cublaslt::kCompute32FFastTf32 == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(cublaslt::kPlain == CUBLAS_OP_N && cublaslt::kTranspose == CUBLAS_OP_T);
static_assert(static_cast<int>(cublaslt::Desc::kTransposeFirst) == CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(static_cast<int>(cublaslt::Desc::kTransposeSecond) == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(static_cast<int>(cublaslt::Desc::kEpilogue) == CUBLASLT_MATMUL_DESC_EPILOGUE);
static_assert(static_cast<int>(cublaslt::Desc::kBiasPointer) == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(static_cast<int>(cublaslt::Desc::kBiasBatchStride) == CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE);
static_assert(static_cast<int>(cublaslt::Epilogue::kReluBias) == CUBLASLT_EPILOGUE_RELU_BIAS);
static_assert(static_cast<int>(cublaslt::Epilogue::kGeluBias) == CUBLASLT_EPILOGUE_GELU_BIAS);
static_assert(static_cast<int>(cublaslt::Layout::kBatchCount) == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
static_assert(static_cast<int>(cublaslt::Layout::kBatchStride) == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(static_cast<int>(cublaslt::Preference::kMaxWorkspaceBytes) == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(static_cast<int>(cublaslt::Preference::kMinAlignmentFirst) == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
static_assert(static_cast<int>(cublaslt::Preference::kMinAlignmentResult) == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(static_cast<int>(cublaslt::Config::kCluster) == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID);
#endif

namespace {

Case bias_relu() { return Case(kPlain, kBiasRelu, shape(13, 17, 24)); }

}  // namespace

TEST_CASE("the library is asked in its documented order, and each algorithm is told by its settings") {
  FakeGpu gpu;
  setenv("FAKE_CUBLASLT_LOG", gpu.file("log").c_str(), 1);
  const auto worker = gpu.start();
  const BaselineList list = bias_relu().list(*worker);
  INFO(list.error);
  REQUIRE(list.status == TrialStatus::kOk);
  REQUIRE(list.algorithms.size() == 3);
  CHECK(list.algorithms[1].summary == "algo 1, tile 1, stages 6, cluster 8, split-K 2, reduction 3, swizzle 4, custom 5");
  CHECK(list.library.version == "13.0.2");
  CHECK(list.library.origin == "KERNELWRIGHT_CUBLASLT");
  CHECK(list.library.path == KW_FAKE_CUBLASLT);
  std::ostringstream calls;
  calls << std::ifstream(gpu.file("log")).rdbuf();
  CHECK(calls.str() == "create\ndesc\nlayout\nlayout\nlayout\npreference\nheuristics\n");
}

TEST_CASE("no more algorithms than asked for are taken, and those that the library marks as not usable are left out") {
  FakeGpu gpu;
  setenv("FAKE_CUBLASLT_COUNT", "100", 1);
  setenv("FAKE_CUBLASLT", "not_usable:5", 1);
  const BaselineList list = bias_relu().list(*gpu.start());
  CHECK(list.algorithms.size() == 31);
}

TEST_CASE("each algorithm is checked against the reference and timed by the protocol of our kernels") {
  FakeGpu gpu;
  const auto worker = gpu.start();
  const Case one = bias_relu();
  const BaselineList list = one.list(*worker);
  const double expected_us[] = {30, 20, 25};
  for (std::size_t i = 0; i < 3; ++i) {
    const BaselineOutcome outcome = one.time(*worker, list.algorithms[i], /*is_cold_l2=*/true);
    INFO(outcome.error);
    REQUIRE(outcome.status == TrialStatus::kOk);
    CHECK(outcome.measured.median_us == Approx(expected_us[i]).epsilon(1e-4));
    CHECK(outcome.measured.samples_us.size() == 3);
    CHECK(outcome.measured.num_input_sets > 1);  // cold: the inputs rotate past L2
    CHECK(outcome.measured.before.sm_clock_mhz == 1755);
    CHECK(outcome.verified.max_error_over_bound > 0);
    CHECK(outcome.verified.max_error_over_bound <= 1);
  }
}

TEST_CASE("every layout, batch, epilogue and type that is recognised gives the reference's result") {
  const std::string sum = "sum[k](A[m,k] * B[n,k])";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {kPlain, kBiasRelu},
      {kPlain, "out[m,n] = " + sum + " + bias[n]"},
      {kPlain, "out[m,n] = gelu_tanh(" + sum + " + bias[n])"},
      {without_bias(kPlain), "out[m,n] = " + sum},
      {without_bias(kPlain), "out[m,n] = max(" + sum + ", 0)"},
      {without_bias(kPlain), "out[m,n] = gelu_tanh(" + sum + ")"},
      {without_bias(tensors(R"("K", "M")", R"("N", "K")", R"("M", "N")")), "out[m,n] = sum[k](A[k,m] * B[n,k])"},
      {without_bias(tensors(R"("M", "K")", R"("K", "N")", R"("M", "N")")), "out[m,n] = sum[k](A[m,k] * B[k,n])"},
      {without_bias(tensors(R"("K", "M")", R"("K", "N")", R"("M", "N")")), "out[m,n] = sum[k](A[k,m] * B[k,n])"},
      {tensors(R"("N", "K")", R"("M", "K")", R"("M", "N")", "bf16"), "out[m,n] = relu(sum[k](A[n,k] * B[m,k]) + bias[n])"},
      {tensors(R"("M", "K")", R"("N", "K")", R"("M", "N")", "f32"), kBiasRelu},
      {without_bias(tensors(R"("P", "M", "K")", R"("P", "K", "N")", R"("P", "M", "N")")), "out[b,m,n] = sum[k](A[b,m,k] * B[b,k,n])"},
      {tensors(R"("P", "M", "K")", R"("N", "K")", R"("P", "M", "N")"), "out[b,m,n] = relu(sum[k](A[b,m,k] * B[n,k]) + bias[n])"},
  };
  FakeGpu gpu;
  const auto worker = gpu.start();
  for (const auto& [tensors_text, body] : cases) {
    INFO(tensors_text << "\n" << body);
    for (const kw::Problem& problem : {shape(13, 17, 24), shape(1, 17, 24), shape(13, 1, 1)}) {
      const Case one(tensors_text, body, problem);
      const BaselineList list = one.list(*worker);
      INFO(problem.to_text() << ": " << list.error);
      REQUIRE(list.status == TrialStatus::kOk);
      const BaselineOutcome outcome = one.time(*worker, list.algorithms.front());
      INFO(outcome.error);
      CHECK(outcome.status == TrialStatus::kOk);
    }
  }
}

TEST_CASE("a call that is described wrongly is found by the comparison and not timed") {
  FakeGpu gpu;
  const auto worker = gpu.start();
  Case one = bias_relu();
  const BaselineAlgorithm algorithm = one.list(*worker).algorithms.front();
  one.job.matmul.epilogue = kw::LibraryEpilogue::kBias;
  const BaselineOutcome no_relu = one.time(*worker, algorithm);
  CHECK(no_relu.status == TrialStatus::kWrongResult);
  CHECK(no_relu.measured.samples_us.empty());
  CHECK(has(no_relu.error, "out["));
  one = Case(without_bias(tensors(R"("M", "K")", R"("N", "K")", R"("M", "N")")), "out[m,n] = sum[k](A[m,k] * B[n,k])", shape(16, 16, 16));
  one.job.matmul.first.is_transposed = !one.job.matmul.first.is_transposed;  // square: only the numbers tell
  CHECK(one.time(*worker, algorithm).status == TrialStatus::kWrongResult);
}

TEST_CASE("an algorithm that fails is an outcome of its own, and the next one is timed") {
  struct Fault {
    const char* mode;
    TrialStatus status;
    const char* error;
  };
  const Fault faults[] = {{"refuse:1", TrialStatus::kRefused, "cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED (15)"},
                          {"wrong:1", TrialStatus::kWrongResult, "out[12,16] = "},
                          {"past_end:1", TrialStatus::kOutOfBounds, "out: byte "},
                          {"workspace:1", TrialStatus::kOutOfBounds, "workspace: byte 33554432 was written"},
                          {"illegal:1", TrialStatus::kOutOfBounds, "(700)"},
                          {"segfault:1", TrialStatus::kLaunchFailed, ""},
                          {"hang:1", TrialStatus::kHung, "no end after"}};
  for (const Fault& fault : faults) {
    FakeGpu gpu;
    gpu.options.measure_limit = std::chrono::milliseconds(1500);
    setenv("FAKE_CUBLASLT", fault.mode, 1);
    const auto worker = gpu.start();
    const Case one = bias_relu();
    const BaselineList list = one.list(*worker);
    REQUIRE(list.algorithms.size() == 3);
    const BaselineOutcome outcome = one.time(*worker, list.algorithms[1]);
    INFO(fault.mode << ": " << outcome.error);
    CHECK(outcome.status == fault.status);
    CHECK(has(outcome.error, fault.error));
    CHECK(one.time(*worker, list.algorithms[2]).status == TrialStatus::kOk);
    const VerifyOutcome ours = worker->verify(sample_job("double_it"), sample_fills(), sample_references());
    CHECK(ours.status == TrialStatus::kOk);
  }
}

TEST_CASE("a library that refuses its handle or the product is a sentence, and our kernels go on") {
  const std::pair<const char*, const char*> modes[] = {{"no_handle", "cublasLtCreate: FAKE_STATUS (1)"},
                                                       {"no_heuristics", "cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_NOT_SUPPORTED"},
                                                       {"null_heuristics", "no algorithm for this product"}};
  for (const auto& [mode, error] : modes) {
    FakeGpu gpu;
    setenv("FAKE_CUBLASLT", mode, 1);
    const auto worker = gpu.start();
    const BaselineList list = bias_relu().list(*worker);
    INFO(mode << ": " << list.error);
    CHECK(list.status == TrialStatus::kRefused);
    CHECK(has(list.error, error));
    CHECK(worker->verify(sample_job("double_it"), sample_fills(), sample_references()).status == TrialStatus::kOk);
  }
}

TEST_CASE("a time under the floor is refused for the library too") {
  FakeGpu gpu;
  const auto worker = gpu.start();
  Case one = bias_relu();
  one.job.problem.floor_us = 22;
  const BaselineList list = one.list(*worker);
  CHECK(one.time(*worker, list.algorithms[1]).status == TrialStatus::kUnderFloor);
  CHECK(one.time(*worker, list.algorithms[2]).status == TrialStatus::kOk);
}

TEST_CASE("the library is found where it is named, and what is wrong with it is said") {
  FakeGpu gpu;
  const auto found = find_cublaslt(KW_WORKER);
  REQUIRE(found.has_value());
  CHECK(found->version == "13.0.2");
  const std::pair<std::string, std::string> wrong[] = {{"/no/such/libcublasLt.so", "not found: looked at /no/such/libcublasLt.so"},
                                                       {gpu.file("text"), "cannot be loaded"},
                                                       {KW_NOT_CUBLASLT, "has no cublasLtCreate"}};
  std::ofstream(gpu.file("text")) << "no library";
  for (const auto& [path, error] : wrong) {
    setenv("KERNELWRIGHT_CUBLASLT", path.c_str(), 1);
    const auto missing = find_cublaslt(KW_WORKER);
    REQUIRE_FALSE(missing.has_value());
    INFO(missing.error().message);
    CHECK(has(missing.error().message, error));
    const auto worker = gpu.start();
    const BaselineList list = bias_relu().list(*worker);
    CHECK(list.status == TrialStatus::kRefused);
    CHECK(has(list.error, error));
  }
  setenv("KERNELWRIGHT_CUBLASLT", KW_FAKE_CUBLASLT, 1);
  setenv("FAKE_CUBLASLT_VERSION", "110902", 1);
  CHECK(has(find_cublaslt(KW_WORKER).error().message, "cuBLASLt 11.9.2: versions 12 and 13 are known"));
}

TEST_CASE("without a name the folders of a toolkit and of a Python environment are looked at, the newest that the driver takes") {
  namespace fs = std::filesystem;
  FakeGpu gpu;  // its driver is of CUDA 13.0
  const auto put = [&](const std::string& folder, const std::string& name) {
    fs::create_directories(gpu.file(folder));
    fs::copy_file(KW_FAKE_CUBLASLT, gpu.file(folder + "/" + name));
  };
  setenv("KERNELWRIGHT_CUBLASLT", "", 1);
  setenv("KERNELWRIGHT_HIDE_TOOLKIT", "1", 1);
  setenv("VIRTUAL_ENV", gpu.file("venv").c_str(), 1);
  put("venv/lib/python3.11/site-packages/nvidia/cublas/lib", "libcublasLt.so.12");
  auto found = find_cublaslt(KW_WORKER);
  REQUIRE(found.has_value());
  CHECK(found->origin == "PyPI wheel");
  CHECK(found->path == gpu.file("venv/lib/python3.11/site-packages/nvidia/cublas/lib/libcublasLt.so.12"));
  unsetenv("KERNELWRIGHT_HIDE_TOOLKIT");
  setenv("CUDA_HOME", gpu.file("cuda").c_str(), 1);
  put("cuda/lib64", "libcublasLt.so.13");
  put("cuda/lib64", "libcublasLt.so.14");
  found = find_cublaslt(KW_WORKER);
  REQUIRE(found.has_value());
  CHECK(found->origin == "CUDA toolkit");
  CHECK(found->path == gpu.file("cuda/lib64/libcublasLt.so.13"));
  unsetenv("CUDA_HOME");
  unsetenv("VIRTUAL_ENV");
}
