// The worker on a real GPU with real kernels: fills against the host's numbers, faults, timing. Without a GPU the tests say so and
// pass, unless KERNELWRIGHT_REQUIRE_GPU=1.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <fstream>
#include <optional>

#include "tests/catch.h"
#include "tests/tuner/device/sample_job.h"
#include "tuner/compile/compiler.h"
#include "tuner/measure/measure.h"
#include "tuner/verify/verify.h"

using namespace kw::tuner;
using namespace kw::tuner::test;
using kw::TrialStatus;

namespace {

constexpr std::int64_t kLength = 4 << 20;

std::string kernel_source(const std::string& body) {
  return "extern \"C\" __global__ void k(const float* x, float* y, long long n) {\n  const long long i = blockIdx.x * 256ll + "
         "threadIdx.x;\n" +
         body + "\n}";
}
const std::string kRight = "  if (i < n) y[i] = 2.0f * x[i];";

/// A worker and a compile pool on the first GPU of this machine.
class RealGpu {
 public:
  static std::optional<RealGpu> find() {
    const auto devices = list_devices(KW_WORKER);
    if (!devices) {
      if (std::getenv("KERNELWRIGHT_REQUIRE_GPU") != nullptr) FAIL(devices.error().message);
      WARN("not run: " + devices.error().message);
      return std::nullopt;
    }
    return RealGpu(devices->front());
  }

  KernelJob job(const std::string& body) {
    KernelJob job = sample_job("k", kLength);
    CompileOutcome outcome =
        pool_->submit({.source = kernel_source(body), .arch = arch_, .kernel_name = "k", .options = {}, .wants_ptx = false}).get();
    if (outcome.status != TrialStatus::kOk) FAIL(outcome.error);
    job.cubin = outcome.kernel.cubin;
    return job;
  }
  VerifyOutcome check(const std::string& body) { return worker_->verify(job(body), sample_fills(), samples()); }
  GpuWorker& worker() { return *worker_; }

  /// Some elements: begin, end, and every 1021st.
  static std::vector<OutputSamples> samples() {
    OutputSamples samples{.tensor = "y", .dtype = kw::DType::kF32, .offsets = {}, .coordinates = {}, .rank = 1, .values = {}, .bounds = {}};
    for (std::int64_t i = 0; i < kLength; i += i < kLength - 1022 ? 1021 : 1) {
      samples.offsets.push_back(i);
      samples.coordinates.push_back(i);
      samples.values.push_back(2 * input_element(sample_fills().front(), i));
      samples.bounds.push_back(0);
    }
    return {samples};
  }

 private:
  explicit RealGpu(const DeviceInfo& info) : arch_(*kw::arch_for_device(info.limits.compute_capability)) {
    CompilePoolOptions pool_options;
    const auto nvrtc = find_nvrtc();
    if (!nvrtc) FAIL(nvrtc.error().message);
    pool_options.nvrtc = *nvrtc;
    pool_options.num_workers = 1;
    pool_options.worker_command = KW_WORKER;
    pool_ = *CompilePool::start(pool_options);
    std::ifstream file(std::string(KW_SOURCE_DIR) + "/templates/support/fill_inputs.cuh");
    const std::string fill_source((std::istreambuf_iterator<char>(file)), {});
    GpuWorkerOptions options;
    options.worker_command = KW_WORKER;
    options.verify_limit = std::chrono::milliseconds(10000);
    options.fill_cubin = [pool = pool_, fill_source](kw::Arch arch) { return compile_fill_kernels(*pool, fill_source, arch); };
    auto worker = GpuWorker::start(options);
    if (!worker) FAIL(worker.error().message);
    worker_ = std::move(*worker);
  }
  kw::Arch arch_;
  std::shared_ptr<CompilePool> pool_;
  std::shared_ptr<GpuWorker> worker_;
};

}  // namespace

TEST_CASE("on the GPU a right kernel passes and its time is near the memory's rate", "[gpu]") {
  auto gpu = RealGpu::find();
  if (!gpu) return;
  const VerifyReport report = verify(gpu->worker(), gpu->job(kRight), sample_fills(), RealGpu::samples());
  INFO(report.outcome.error);
  REQUIRE(report.kernel.has_value());
  CHECK(report.outcome.max_error_over_bound == 0);
  const MeasureOutcome outcome = measure(gpu->worker(), *report.kernel, sample_fills(), RealGpu::samples(), Protocol::final_rung());
  INFO(outcome.error << " median " << outcome.median_us << " us, clock " << outcome.before.sm_clock_mhz << " MHz, "
                     << outcome.dirty_reason);
  REQUIRE(outcome.status == TrialStatus::kOk);
  const double rate_gb_per_s = 8.0 * kLength / outcome.median_us * 1e-3;
  WARN("streaming " << rate_gb_per_s << " GB/s, sets " << outcome.num_input_sets << ", launches a graph " << outcome.launches_per_graph
                    << ", spread " << outcome.p90_us / outcome.p10_us << ", driver " << gpu->worker().device().driver_text);
  CHECK(rate_gb_per_s > 0.3 * gpu->worker().device().limits.dram_gb_per_s);
  CHECK(rate_gb_per_s < 2.0 * gpu->worker().device().limits.dram_gb_per_s);
}

TEST_CASE("on the GPU each fault costs one variant and the next kernel passes", "[gpu]") {
  auto gpu = RealGpu::find();
  if (!gpu) return;
  CHECK(gpu->check("  if (i < n) y[i] = i == n - 3 ? 0.0f : 2.0f * x[i];").status == TrialStatus::kWrongResult);
  CHECK(gpu->check("  if (i < n && i != 5) y[i] = 2.0f * x[i];").status == TrialStatus::kWrongResult);
  CHECK(gpu->check("  if (i < n + 1) y[i] = 2.0f * (i < n ? x[i] : 1.0f);\n  if (i == 0) y[n] = 1.0f;").status ==
        TrialStatus::kOutOfBounds);
  CHECK(gpu->check("  y[i + (1ll << 40)] = x[i];").status == TrialStatus::kOutOfBounds);
  const VerifyOutcome misaligned = gpu->check("  ((volatile float*)((char*)y + 2))[0] = x[0];");
  INFO("misaligned store: " << misaligned.error);
  CHECK(misaligned.status == TrialStatus::kLaunchFailed);
  CHECK(gpu->check("  while (((volatile const float*)x)[0] < 1e30f) {}\n  y[i] = 1.0f;").status == TrialStatus::kHung);
  const VerifyOutcome last = gpu->check(kRight);
  INFO(last.error);
  CHECK(last.status == TrialStatus::kOk);
}

TEST_CASE("on the GPU a kernel that does more work loses the duel, and one against itself does not", "[gpu]") {
  auto gpu = RealGpu::find();
  if (!gpu) return;
  const VerifyReport a = verify(gpu->worker(), gpu->job(kRight), sample_fills(), RealGpu::samples());
  const VerifyReport b = verify(
      gpu->worker(),
      gpu->job(
          "  float v = 0.0f;\n  for (int r = 1; r < 9; ++r) v += x[(i + r * 65537ll) % n] * 0.0f;\n  if (i < n) y[i] = 2.0f * x[i] + v;"),
      sample_fills(), RealGpu::samples());
  INFO(a.outcome.error << b.outcome.error);
  REQUIRE((a.kernel && b.kernel));
  const DuelOutcome same = duel(gpu->worker(), *a.kernel, *a.kernel, sample_fills(), Protocol::final_rung());
  WARN("a kernel against itself: " << same.ratio_low << " .. " << same.ratio_high);
  CHECK(same.ratio_low < 1.02);
  CHECK(same.ratio_high > 0.98);
  CHECK(duel(gpu->worker(), *a.kernel, *b.kernel, sample_fills(), Protocol::final_rung()).ratio_low > 1.2);
}
