// The real cuBLASLt on a real GPU: every epilogue and layout is right by protocol v1, a wrong description is found, times are sane. Without
// a GPU or the library the tests say so and pass, unless KERNELWRIGHT_REQUIRE_GPU=1.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "tests/catch.h"
#include "tests/tuner/device/baseline_case.h"

using namespace kw::tuner;
using namespace kw::tuner::test;
using kw::TrialStatus;

namespace {

/// A worker whose inputs are made on the host: the same numbers, and no compiler is needed.
std::unique_ptr<GpuWorker> start_worker() {
  GpuWorkerOptions options;
  options.worker_command = KW_WORKER;
  const auto library = find_cublaslt(KW_WORKER);
  auto worker = library ? GpuWorker::start(options) : kw::Result<std::unique_ptr<GpuWorker>>(kw::fail(library.error()));
  if (worker) return std::move(*worker);
  if (std::getenv("KERNELWRIGHT_REQUIRE_GPU") != nullptr) FAIL(worker.error().message);
  WARN("not run: " + worker.error().message);
  return nullptr;
}

}  // namespace

TEST_CASE("on the GPU cuBLASLt is right for each epilogue, layout, batch and type that is recognised", "[gpu]") {
  const auto worker = start_worker();
  if (worker == nullptr) return;
  const std::string sum = "sum[k](A[m,k] * B[n,k])";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {kPlain, kBiasRelu},
      {kPlain, "out[m,n] = " + sum + " + bias[n]"},
      {kPlain, "out[m,n] = gelu_tanh(" + sum + " + bias[n])"},
      {without_bias(kPlain), "out[m,n] = " + sum},
      {without_bias(kPlain), "out[m,n] = relu(" + sum + ")"},
      {without_bias(kPlain), "out[m,n] = gelu_tanh(" + sum + ")"},
      {without_bias(tensors(R"("K", "M")", R"("N", "K")", R"("M", "N")")), "out[m,n] = sum[k](A[k,m] * B[n,k])"},
      {without_bias(tensors(R"("M", "K")", R"("K", "N")", R"("M", "N")")), "out[m,n] = sum[k](A[m,k] * B[k,n])"},
      {without_bias(tensors(R"("K", "M")", R"("K", "N")", R"("M", "N")")), "out[m,n] = sum[k](A[k,m] * B[k,n])"},
      {tensors(R"("M", "K")", R"("N", "K")", R"("M", "N")", "bf16"), kBiasRelu},
      {tensors(R"("M", "K")", R"("N", "K")", R"("M", "N")", "f32"), kBiasRelu},
      {without_bias(tensors(R"("P", "M", "K")", R"("P", "K", "N")", R"("P", "M", "N")")), "out[b,m,n] = sum[k](A[b,m,k] * B[b,k,n])"},
  };
  for (const auto& [tensors_text, body] : cases) {
    INFO(tensors_text << "\n" << body);
    const Case one(tensors_text, body, shape(136, 264, 520));
    const BaselineList list = one.list(*worker);
    INFO(list.error);
    REQUIRE(list.status == TrialStatus::kOk);
    REQUIRE_FALSE(list.algorithms.empty());
    for (std::size_t i = 0; i < std::min<std::size_t>(3, list.algorithms.size()); ++i) {
      const BaselineOutcome outcome = one.time(*worker, list.algorithms[i]);
      INFO(list.algorithms[i].summary << ": " << outcome.error);
      // One may be refused, or sum in halves beyond the bound; the library's own first choice is right.
      if (i == 0) CHECK(outcome.status == TrialStatus::kOk);
      CHECK(outcome.status != TrialStatus::kOutOfBounds);
      CHECK(outcome.status != TrialStatus::kLaunchFailed);
    }
  }
}

TEST_CASE("on the GPU a call of cuBLASLt with the wrong epilogue is found by the comparison", "[gpu]") {
  const auto worker = start_worker();
  if (worker == nullptr) return;
  Case one(kPlain, kBiasRelu, shape(136, 264, 520));
  const BaselineAlgorithm algorithm = one.list(*worker).algorithms.at(0);
  one.job.matmul.epilogue = kw::LibraryEpilogue::kBias;
  const BaselineOutcome outcome = one.time(*worker, algorithm);
  INFO(outcome.error);
  CHECK(outcome.status == TrialStatus::kWrongResult);
  CHECK(outcome.measured.samples_us.empty());
}

TEST_CASE("on the GPU the algorithms of cuBLASLt are timed by the full protocol", "[gpu]") {
  const auto worker = start_worker();
  if (worker == nullptr) return;
  const Case one(kPlain, kBiasRelu, shape(1024, 4096, 4096));
  const BaselineList list = one.list(*worker);
  INFO(list.error);
  REQUIRE(list.status == TrialStatus::kOk);
  double best_us = 1e9;
  std::string best;
  for (const BaselineAlgorithm& algorithm : list.algorithms) {
    const BaselineOutcome outcome = worker->time_baseline(one.job, algorithm, one.fills, one.samples, Protocol::final_rung());
    if (outcome.status != TrialStatus::kOk) WARN(algorithm.summary << ": " << outcome.error);
    if (outcome.status != TrialStatus::kOk || outcome.measured.median_us >= best_us) continue;
    best_us = outcome.measured.median_us;
    best = algorithm.summary;
  }
  WARN("cuBLASLt " << list.library.version << ", " << list.algorithms.size() << " algorithms, best " << best_us << " us: " << best);
  const double tflops = 2.0 * 1024 * 4096 * 4096 / best_us * 1e-6;
  CHECK(tflops > 10);
  CHECK(tflops < 5000);  // above any tensor core of today: then the work was not done
}
