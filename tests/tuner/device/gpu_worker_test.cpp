// The GPU worker against the fake driver: what goes wrong costs one variant, and the next one runs.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>

#include "tests/catch.h"
#include "tests/tuner/device/fake_gpu.h"
#include "tests/tuner/device/sample_job.h"
#include "tuner/measure/measure.h"
#include "tuner/verify/verify.h"

using namespace kw::tuner;
using namespace kw::tuner::test;
using kw::IntExpr;
using kw::TrialStatus;

namespace {

VerifyOutcome check(GpuWorker& worker, const std::string& kernel) {
  return worker.verify(sample_job(kernel), sample_fills(), sample_references());
}

}  // namespace

TEST_CASE("devices are listed with model, limits and rates") {
  FakeGpu gpu;
  const auto devices = list_devices(gpu.options.worker_command);
  REQUIRE(devices.has_value());
  REQUIRE(devices->size() == 1);
  const DeviceInfo& info = devices->front();
  CHECK(info.uuid == "GPU-10101010-1010-1010-1010-101010101010");
  CHECK(info.limits.model_name == "Fake H200");
  CHECK(info.limits.num_sms == 132);
  CHECK(info.limits.compute_capability == 90);
  CHECK(info.limits.dram_gb_per_s == Approx(4917).epsilon(0.001));
  CHECK(info.driver_text == "580.1.fake");
}

TEST_CASE("no driver and no GPU are errors that say what to do") {
  FakeGpu gpu;
  setenv("FAKE_CUDA_DEVICES", "0", 1);
  CHECK(list_devices(KW_WORKER).error().message.find("CUDA_VISIBLE_DEVICES") != std::string::npos);
  setenv("KERNELWRIGHT_LIBCUDA", "/no/such/libcuda.so.1", 1);
  const auto devices = list_devices(KW_WORKER);
  REQUIRE_FALSE(devices.has_value());
  CHECK(devices.error().message.find("--device none") != std::string::npos);
  CHECK(devices.error().code == kw::Code::kDevice);
}

TEST_CASE("a right kernel passes with its error against the bound") {
  FakeGpu gpu;
  const auto worker = gpu.start();
  const VerifyOutcome outcome = check(*worker, "double_it");
  INFO(outcome.error);
  CHECK(outcome.status == TrialStatus::kOk);
  CHECK(outcome.is_bit_stable);
  CHECK(outcome.max_error_over_bound <= 1);
  CHECK(outcome.relative_norm_error < 1e-6);
}

TEST_CASE("a wrong element is found and named with both values and the bound") {
  FakeGpu gpu;
  const auto worker = gpu.start();
  const VerifyOutcome outcome = check(*worker, "wrong");
  CHECK(outcome.status == TrialStatus::kWrongResult);
  CHECK(outcome.error.find("y[7] = ") != std::string::npos);
  CHECK(outcome.error.find("bound 1e-06") != std::string::npos);
  CHECK(outcome.error.find("1 of 1000 samples") != std::string::npos);
  const VerifyOutcome nan = check(*worker, "nan");
  CHECK(nan.status == TrialStatus::kWrongResult);
  CHECK(std::isinf(nan.max_error_over_bound));
}

TEST_CASE("an element that no sample covers is still seen to be unwritten") {
  FakeGpu gpu;
  const auto worker = gpu.start();
  std::vector<OutputSamples> samples = sample_references();
  samples[0].offsets = {5};
  samples[0].coordinates = {5};
  samples[0].values = {2 * input_element(sample_fills()[0], 5)};
  samples[0].bounds = {1e-6};
  const VerifyOutcome outcome = worker->verify(sample_job("first_element_missing"), sample_fills(), samples);
  CHECK(outcome.status == TrialStatus::kWrongResult);
  CHECK(outcome.error.find("element 0 was not written") != std::string::npos);
  CHECK(check(*worker, "nothing").status == TrialStatus::kWrongResult);
}

TEST_CASE("writes outside a buffer are found on both sides, of inputs too") {
  FakeGpu gpu;
  const auto worker = gpu.start();
  CHECK(check(*worker, "past_end").status == TrialStatus::kOutOfBounds);
  CHECK(check(*worker, "past_end").error.find("y: byte 4000") != std::string::npos);
  CHECK(check(*worker, "before_begin").error.find("y: byte -") != std::string::npos);
  CHECK(check(*worker, "past_input").error.find("x: byte 4000") != std::string::npos);
  CHECK(check(*worker, "double_it").status == TrialStatus::kOk);
}

TEST_CASE("what is read outside an input spoils the result") {
  FakeGpu gpu;
  CHECK(check(*gpu.start(), "reads_past_input").status == TrialStatus::kWrongResult);
}

TEST_CASE("two launches with different bits are refused") {
  FakeGpu gpu;
  const VerifyOutcome outcome = check(*gpu.start(), "unstable");
  CHECK(outcome.status == TrialStatus::kWrongResult);
  CHECK_FALSE(outcome.is_bit_stable);
}

// Two launches on the same inputs, into poisoned outputs, pass a kernel that keeps its results by the addresses of its inputs and one that
// leaves alone what holds a number. In an application both give old results.
TEST_CASE("results that depend on an earlier launch are wrong: kept by address, left in the output, made once") {
  FakeGpu gpu;
  const bool fills_on_device = GENERATE(false, true);
  std::vector<OutputSamples> samples = sample_references();
  if (fills_on_device) {
    gpu.options.fill_cubin = [](kw::Arch) { return kw::Result<std::string>("fake fill"); };
    for (std::size_t i = 0; i < samples[0].offsets.size(); ++i)
      samples[0].values[i] = 2.0 * static_cast<double>(7 + samples[0].offsets[i] % 1000);
  }
  const auto worker = gpu.start();
  const auto check_kernel = [&](const char* kernel) { return worker->verify(sample_job(kernel), sample_fills(), samples); };
  const VerifyOutcome cached = check_kernel("cached_by_pointer");
  CHECK(cached.status == TrialStatus::kWrongResult);
  CHECK(cached.error.find("1000 of 1000 samples are wrong") != std::string::npos);
  const VerifyOutcome kept = check_kernel("keeps_old");
  CHECK(kept.status == TrialStatus::kWrongResult);
  CHECK(kept.error.find("differs between two launches on the same inputs") != std::string::npos);
  CHECK(check_kernel("right_once").status == TrialStatus::kWrongResult);
  CHECK(check_kernel("double_it").status == TrialStatus::kOk);
}

TEST_CASE("a kernel that spoils its inputs does not make the next one fail") {
  FakeGpu gpu;
  const auto worker = gpu.start();
  check(*worker, "changes_input");
  CHECK(check(*worker, "double_it").status == TrialStatus::kOk);
}

TEST_CASE("an in-out tensor is restored before each launch") {
  FakeGpu gpu;
  const auto worker = gpu.start();
  KernelJob job = sample_job("in_place");
  job.plan.tensors[1].role = kw::TensorRole::kInOut;
  std::vector<InputFill> fills = sample_fills();
  fills.push_back(fills[0]);
  fills[1].tensor = "y";
  const VerifyOutcome outcome = worker->verify(job, fills, sample_references());
  INFO(outcome.error);
  CHECK(outcome.status == TrialStatus::kOk);
}

TEST_CASE("pointers are aligned to what the problem says and no better") {
  FakeGpu gpu;
  const auto worker = gpu.start();
  KernelJob job = sample_job("alignment");
  const int align_bytes = GENERATE(4, 8, 16, 128);
  job.problem.align_bytes["x"] = align_bytes;
  std::vector<OutputSamples> samples = sample_references();
  samples[0].offsets = {0};
  samples[0].values = {static_cast<double>(align_bytes)};
  samples[0].bounds = {0};
  const VerifyOutcome outcome = worker->verify(job, sample_fills(), samples);
  INFO(outcome.error);
  CHECK(outcome.status == TrialStatus::kOk);
  job = sample_job("vector_load");
  job.problem.align_bytes["x"] = align_bytes;
  CHECK(worker->verify(job, sample_fills(), sample_references()).status ==
        (align_bytes >= 16 ? TrialStatus::kOk : TrialStatus::kLaunchFailed));
}

TEST_CASE("a workspace is zero before the first launch and must be left zero") {
  FakeGpu gpu;
  const auto worker = gpu.start();
  const auto with_workspace = [](const std::string& kernel) {
    KernelJob job = sample_job(kernel);
    job.plan.workspaces = {{"counters", IntExpr(64), true}};
    job.plan.launches[0].parameters.push_back(
        {"counters", {{.kind = kw::PlanField::Kind::kWorkspace, .name = "counters", .source = "counters", .value = {}}}});
    return job;
  };
  CHECK(worker->verify(with_workspace("workspace"), sample_fills(), sample_references()).status == TrialStatus::kOk);
  CHECK(worker->verify(with_workspace("workspace_left"), sample_fills(), sample_references()).status == TrialStatus::kWrongResult);
}

TEST_CASE("a plan that disagrees with the kernel's parameters is refused before the launch") {
  FakeGpu gpu;
  KernelJob job = sample_job("double_it");
  job.plan.launches[0].parameters[2].fields[0].kind = kw::PlanField::Kind::kInt32;
  const VerifyOutcome outcome = gpu.start()->verify(job, sample_fills(), sample_references());
  CHECK(outcome.status == TrialStatus::kLaunchFailed);
  CHECK(outcome.error.find("parameter 2 (n): 4 B in the launch plan, 8 B in the kernel") != std::string::npos);
}

TEST_CASE("an image or kernel that does not load costs only its variant") {
  FakeGpu gpu;
  const auto worker = gpu.start();
  KernelJob job = sample_job("double_it");
  job.cubin = "bad image";
  CHECK(worker->verify(job, sample_fills(), sample_references()).status == TrialStatus::kLaunchFailed);
  CHECK(check(*worker, "missing").status == TrialStatus::kLaunchFailed);
  CHECK(check(*worker, "double_it").status == TrialStatus::kOk);
}

TEST_CASE("an illegal access ends the child, and a fresh one takes the next variant") {
  FakeGpu gpu;
  const auto worker = gpu.start();
  const VerifyOutcome outcome = check(*worker, "illegal");
  CHECK(outcome.status == TrialStatus::kOutOfBounds);
  CHECK(outcome.error.find("(700)") != std::string::npos);
  CHECK_FALSE(outcome.is_transient);
  CHECK(check(*worker, "double_it").status == TrialStatus::kOk);
}

TEST_CASE("a child that dies in the driver costs one variant") {
  FakeGpu gpu;
  const auto worker = gpu.start();
  const VerifyOutcome outcome = check(*worker, "segfault");
  CHECK(outcome.status == TrialStatus::kLaunchFailed);
  // AddressSanitizer turns the signal into an exit code of the child.
  CHECK((kIsSanitized || outcome.error.find("signal 11") != std::string::npos));
  CHECK(check(*worker, "double_it").status == TrialStatus::kOk);
}

TEST_CASE("a hanging kernel is killed at the limit and the next one runs") {
  FakeGpu gpu;
  const auto worker = gpu.start();
  const auto start = std::chrono::steady_clock::now();
  const VerifyOutcome outcome = check(*worker, "hang");
  CHECK(outcome.status == TrialStatus::kHung);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
  CHECK(check(*worker, "double_it").status == TrialStatus::kOk);
}

TEST_CASE("memory that is out is transient and the worker goes on") {
  FakeGpu gpu;
  setenv("FAKE_CUDA_MEMORY", "1000000", 1);
  const auto worker = gpu.start();
  const VerifyOutcome outcome = worker->verify(sample_job("double_it", 1000000), sample_fills(), sample_references());
  CHECK(outcome.status == TrialStatus::kOutOfMemory);
  CHECK(outcome.is_transient);
  CHECK(check(*worker, "double_it").status == TrialStatus::kOk);
}

TEST_CASE("an empty problem launches nothing and passes") {
  FakeGpu gpu;
  const VerifyOutcome outcome = gpu.start()->verify(sample_job("illegal", 0), sample_fills(), {});
  INFO(outcome.error);
  CHECK(outcome.status == TrialStatus::kOk);
}

TEST_CASE("a problem that breaks a constraint is not launched") {
  FakeGpu gpu;
  KernelJob job = sample_job("illegal");
  job.plan.constraints = {{"n_even", *IntExpr::parse("n % 7 == 0"), "n must be a multiple of 7"}};
  const VerifyOutcome outcome = gpu.start()->verify(job, sample_fills(), sample_references());
  CHECK(outcome.status == TrialStatus::kLaunchFailed);
  CHECK(outcome.error.find("n_even") != std::string::npos);
}

TEST_CASE("inputs are filled by the device's kernel when there is one") {
  FakeGpu gpu;
  gpu.options.fill_cubin = [](kw::Arch) { return kw::Result<std::string>("fake fill"); };
  std::vector<OutputSamples> samples = sample_references();
  for (std::size_t i = 0; i < samples[0].offsets.size(); ++i)
    samples[0].values[i] = 2.0 * static_cast<double>(7 + samples[0].offsets[i] % 1000);
  const VerifyOutcome outcome = gpu.start()->verify(sample_job("double_it"), sample_fills(), samples);
  INFO(outcome.error);
  CHECK(outcome.status == TrialStatus::kOk);
}

TEST_CASE("a measurement gives the time of a launch, rotates inputs past L2 and reads the clocks") {
  FakeGpu gpu;
  const auto worker = gpu.start();
  const MeasureOutcome outcome = worker->measure(sample_job("double_it_50us", 10000), sample_fills(), {}, quick_protocol());
  INFO(outcome.error);
  REQUIRE(outcome.status == TrialStatus::kOk);
  CHECK(outcome.median_us == Approx(50).epsilon(1e-4));
  CHECK(outcome.samples_us.size() == 3);
  CHECK(outcome.num_input_sets == 58);  // ceil(2.2 * 1 MiB / 40000 B)
  CHECK(outcome.launches_per_graph % outcome.num_input_sets == 0);
  CHECK(outcome.before.sm_clock_mhz == 1755);
  CHECK(outcome.after.power_w == 512);
  CHECK(outcome.before.num_other_processes == 0);
  CHECK_FALSE(outcome.is_dirty);  // the power limit alone is noted
  CHECK(outcome.after.throttle_reasons == 4);
}

TEST_CASE("one graph is at least as long as the protocol asks, and a warm measurement keeps one set") {
  FakeGpu gpu;
  Protocol protocol = quick_protocol();
  protocol.is_cold_l2 = false;
  const MeasureOutcome outcome = gpu.start()->measure(sample_job("double_it_2us"), sample_fills(), {}, protocol);
  CHECK(outcome.num_input_sets == 1);
  CHECK(outcome.launches_per_graph == 100);
}

TEST_CASE("throttling or a neighbour makes a measurement dirty, and measure repeats it once") {
  FakeGpu gpu;
  const auto worker_of = [&](const char* name, const char* value) {
    setenv(name, value, 1);
    return gpu.start();
  };
  const MeasureOutcome throttled =
      worker_of("FAKE_NVML_THROTTLE", "0x48")->measure(sample_job("double_it"), sample_fills(), {}, quick_protocol());
  CHECK(throttled.is_dirty);
  CHECK(throttled.dirty_reason.find("0x48") != std::string::npos);
  setenv("FAKE_NVML_THROTTLE", "0", 1);
  const MeasureOutcome shared =
      worker_of("FAKE_NVML_PROCESSES", "3")->measure(sample_job("double_it"), sample_fills(), {}, quick_protocol());
  CHECK(shared.is_dirty);
  CHECK(shared.dirty_reason == "2 other process(es) on the GPU");
}

TEST_CASE("a time under the floor is refused") {
  FakeGpu gpu;
  KernelJob job = sample_job("double_it_3us");
  job.floor_us = 5;
  CHECK(gpu.start()->measure(job, sample_fills(), {}, quick_protocol()).status == TrialStatus::kUnderFloor);
}

// A kernel that counts its launches is right as long as it is checked. Where it then leaves out so little that it stays above the floor, it
// won its tune.
TEST_CASE("a kernel that leaves work out when it is timed is refused, above the floor too") {
  FakeGpu gpu;
  const auto measure_kernel = [&](const char* name, double floor_us, bool is_in_place) {
    const auto worker = gpu.start();
    KernelJob job = sample_job(name, 10000);
    job.floor_us = floor_us;
    std::vector<InputFill> fills = sample_fills();
    if (is_in_place) {
      job.plan.tensors[1].role = kw::TensorRole::kInOut;
      fills.push_back(fills[0]);
      fills[1].tensor = "y";
    }
    CHECK(worker->verify(job, fills, sample_references(10000)).status == TrialStatus::kOk);
    return worker->measure(job, fills, sample_references(10000), quick_protocol());
  };
  const MeasureOutcome half = measure_kernel("half_when_timed_50us", 5, false);
  CHECK(half.status == TrialStatus::kWrongResult);
  CHECK(half.error.find("right when it was checked, wrong when it was timed: y[") == 0);
  CHECK(measure_kernel("half_when_timed_3us", 5, false).status == TrialStatus::kUnderFloor);
  CHECK(measure_kernel("double_it_50us", 5, false).status == TrialStatus::kOk);
  CHECK(measure_kernel("in_place_50us", 5, true).status == TrialStatus::kOk);
}

TEST_CASE("a duel gives the ratio of times with its interval") {
  FakeGpu gpu;
  const auto worker = gpu.start();
  const VerifyReport a = verify(*worker, sample_job("double_it_20us"), sample_fills(), sample_references());
  const VerifyReport b = verify(*worker, sample_job("double_it_25us"), sample_fills(), sample_references());
  REQUIRE((a.kernel && b.kernel));
  const DuelOutcome outcome = duel(*worker, *a.kernel, *b.kernel, sample_fills(), quick_protocol());
  INFO(outcome.error);
  CHECK(outcome.status == TrialStatus::kOk);
  CHECK(outcome.ratio_median == Approx(1.25).epsilon(1e-3));
  CHECK(outcome.ratio_low <= outcome.ratio_median);
  CHECK(outcome.ratio_high >= outcome.ratio_median);
  CHECK(outcome.a_us.size() == 7);
}

TEST_CASE("an output without reference values is not verified") {
  FakeGpu gpu;
  const VerifyReport report = verify(*gpu.start(), sample_job("double_it"), sample_fills(), {});
  CHECK_FALSE(report.kernel.has_value());
  CHECK(report.outcome.status == TrialStatus::kWrongResult);
}

TEST_CASE("a second tuner on the same GPU waits, says so, and gives up at its limit") {
  FakeGpu gpu;
  auto first = gpu.start();
  GpuWorkerOptions second = gpu.options;
  std::string said;
  second.notice = [&](const std::string& text) { said = text; };
  second.lock_limit = std::chrono::milliseconds(200);
  const auto refused = GpuWorker::start(second);
  REQUIRE_FALSE(refused.has_value());
  CHECK(said.find("in use by another tuner (process " + std::to_string(getpid()) + "): waiting") != std::string::npos);
  first.reset();
  CHECK(GpuWorker::start(second).has_value());
}
