// The compile pool with the real NVRTC.
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "tests/catch.h"
#include "tests/tuner/compile/scratch_folder.h"
#include "tuner/compile/child_process.h"
#include "tuner/compile/compiler.h"
#include "tuner/compile/cubin_facts.h"

using namespace kw::tuner;
using kw::TrialStatus;

namespace {

const char* const kScale = R"(extern "C" __global__ void scale(const float* x, float* y, long long n) {
  __shared__ float tile[256];
  long long i = blockIdx.x * 256ll + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  if (i < n) y[i] = 2.0f * tile[255 - threadIdx.x];
})";

CompilePoolOptions options_with(int num_workers) {
  CompilePoolOptions options;
  const auto nvrtc = find_nvrtc();
  if (!nvrtc) FAIL(nvrtc.error().message);
  options.nvrtc = *nvrtc;
  options.num_workers = num_workers;
  options.worker_command = KW_WORKER;
  return options;
}

CompileOutcome compile(CompilePool& pool, const std::string& source, const std::string& kernel = "scale", kw::Arch arch = kw::Arch::kSm80) {
  return pool.submit({.source = source, .arch = arch, .kernel_name = kernel, .options = {}, .wants_ptx = true}).get();
}

/// Loads of many values kept live over a barrier: ptxas must spill at 255 registers.
std::string spilling_source() {
  std::string source =
      "extern \"C\" __global__ void __launch_bounds__(1024, 1) scale(const float* x, float* y, long long n) {\n  float v[160];\n";
  source += "#pragma unroll\n  for (int i = 0; i < 160; ++i) v[i] = x[i * n + threadIdx.x];\n  __syncthreads();\n";
  source += "  for (int r = 0; r < 3; ++r)\n#pragma unroll\n    for (int i = 0; i < 160; ++i) v[i] = v[i] * v[(i + 7) % 160] + 1.0f;\n";
  return source + "#pragma unroll\n  for (int i = 0; i < 160; ++i) y[i * n + threadIdx.x] = v[i];\n}";
}

/// Straight-line code that takes the compiler far longer than a second.
std::string endless_source() {
  std::string source = "extern \"C\" __global__ void scale(float* y) {\n  float a = y[0], b = y[1];\n";
  for (int line = 0; line < 60000; ++line)
    source += "  a = a * b + y[" + std::to_string(line % 977) + "]; b = b * a - " + std::to_string(line) + ".5f; y[" +
              std::to_string(line % 1013) + "] = b;\n";
  return source + "}";
}

/// The worker's memory after the 50th of `num_compiles` compiles is its memory after the last, within 20 MiB.
void check_memory_is_flat(int num_compiles) {
  const auto worker = *ChildProcess::start(KW_WORKER, "__compile-worker", {});
  const auto nvrtc = *find_nvrtc();
  Message load;
  load.head = {{"op", "load"}, {"nvrtc_path", nvrtc.nvrtc_path}};
  REQUIRE(worker->ask(load, std::chrono::seconds(60)).message.head.value("ok", false));
  std::int64_t bytes_after_50 = 0;
  for (int number = 0; number < num_compiles; ++number) {
    Message job;
    job.head = {{"op", "compile"}, {"file_name", "k.cu"}, {"options", {"--gpu-architecture=sm_80", "--std=c++20"}}};
    job.blobs = {std::string(kScale) + "\n// " + std::to_string(number)};
    REQUIRE(worker->ask(job, std::chrono::seconds(60)).message.head.value("ok", false));
    if (number == 49) bytes_after_50 = worker->resident_bytes();
  }
  INFO("after 50: " << bytes_after_50 << ", after " << num_compiles << ": " << worker->resident_bytes());
  CHECK(worker->resident_bytes() < bytes_after_50 + (20ll << 20));
}

}  // namespace

TEST_CASE("NVRTC compiles a kernel and the facts of log and ELF agree") {
  const auto pool = *CompilePool::start(options_with(1));
  const kw::Arch arch = GENERATE(kw::Arch::kSm80, kw::Arch::kSm90);
  const CompileOutcome outcome = compile(*pool, kScale, "scale", arch);
  INFO(outcome.error << outcome.kernel.log);
  REQUIRE(outcome.status == TrialStatus::kOk);
  CHECK(outcome.kernel.registers > 4);
  CHECK(outcome.kernel.static_smem_bytes == 1024);
  CHECK(outcome.kernel.ptx.find(".entry scale") != std::string::npos);
  REQUIRE(outcome.kernel.log.find("Used ") != std::string::npos);
  CompiledKernel without_log = outcome.kernel;
  without_log.log.clear();
  REQUIRE(read_kernel_facts("scale", kw::compute_capability(arch), without_log));
  CHECK(without_log.registers == outcome.kernel.registers);
  CHECK(without_log.static_smem_bytes == 1024);
}

TEST_CASE("a mistake in the source is a failed compile with NVRTC's line") {
  const auto pool = *CompilePool::start(options_with(1));
  const CompileOutcome outcome = compile(*pool, "extern \"C\" __global__ void scale() { undefined_name = 1; }");
  CHECK(outcome.status == TrialStatus::kCompileFailed);
  CHECK(outcome.error.find("undefined_name") != std::string::npos);
}

TEST_CASE("spilled registers are refused with their bytes") {
  const auto pool = *CompilePool::start(options_with(1));
  const CompileOutcome outcome = compile(*pool, spilling_source());
  INFO(outcome.kernel.log);
  CHECK(outcome.status == TrialStatus::kSpillsRefused);
  CHECK(outcome.kernel.spill_store_bytes > 0);
}

TEST_CASE("wgmma whose sums are touched before the wait is refused with the reason of ptxas") {
  const auto pool = *CompilePool::start(options_with(1));
  const CompileOutcome outcome =
      compile(*pool, R"(extern "C" __global__ void scale(unsigned long long a, unsigned long long b, float* out, int n) {
  float d[8] = {};
  for (int i = 0; i < n; ++i) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, 1, 1, 1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]) : "l"(a), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    if (threadIdx.x > n) d[0] += 1;
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 8; ++i) out[threadIdx.x * 8 + i] = d[i];
})",
              "scale", kw::Arch::kSm90a);
  INFO(outcome.kernel.log);
  CHECK(outcome.status == TrialStatus::kRefused);
  CHECK(outcome.error.find("(C7511) Potential Performance Loss") != std::string::npos);
}

TEST_CASE("a huge kernel ends at the limit and the pool goes on") {
  CompilePoolOptions options = options_with(1);
  options.time_limit = std::chrono::milliseconds(1000);
  const auto pool = *CompilePool::start(options);
  CHECK(compile(*pool, endless_source()).status == TrialStatus::kCompileTimeout);
  CHECK(compile(*pool, kScale).status == TrialStatus::kOk);
}

TEST_CASE("an abort inside the compiler's process costs one variant") {
  const auto pool = *CompilePool::start(options_with(1));
  CHECK(compile(*pool, std::string(kScale) + "// PLANTED_ABORT").status == TrialStatus::kCompileCrashed);
  CHECK(compile(*pool, kScale).status == TrialStatus::kOk);
}

TEST_CASE("three hundred compiles in one worker leave its memory flat") { check_memory_is_flat(300); }

TEST_CASE("two thousand compiles in one worker leave its memory flat", "[.long]") { check_memory_is_flat(2000); }
