// The baseline of one problem, on the fake driver with a cuBLASLt of host memory: what is stored, what a second run does, and that
// whatever goes wrong is a sentence.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/session/baseline_timer.h"

#include "tests/catch.h"
#include "tests/tuner/device/fake_gpu.h"
#include "tests/tuner/session/specs.h"

using namespace kw;
using namespace kw::tuner;
using namespace kw::tuner::test;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// A problem of the small op with everything that a BaselineTimer works with.
class Run {
 public:
  explicit Run(const std::string& value = "relu(acc[m,n] + bias[n])") {
    gpu.options.measure_limit = std::chrono::milliseconds(3000);
    spec = load(gpu.file("small.op.toml"), value);
    problem = *problem_from_text("K=16,M=8,N=24");
    database = *db::Database::open(gpu.file("t.db"));
    early.is_cold_l2 = final.is_cold_l2 = false;
    final.num_rounds = 5;
  }

  /// All steps, as a tune takes them; a fresh worker each time.
  BaselineSummary time(bool retunes = false) {
    num_launches = 0;
    worker.reset();
    VerificationSource verification(*spec->program, problem, 11);
    db::TrialKey group;
    group.op = {spec->identity, spec->program->name, spec->canonical_text, spec->files_json()};
    group.problem = {problem.to_text()};
    group.device = {"GPU-1", "Fake H200", 132, 1 << 20, 1ll << 37};
    group.toolchain = {"13.0", "580.1.fake", "0.1.0", 13};
    BaselineTimer timer({.spec = *spec,
                         .problem = problem,
                         .group = group,
                         .early = early,
                         .final = final,
                         .floor_us = floor_us,
                         .retunes = retunes,
                         .stop_requested = &stop,
                         .progress = {},
                         .session = "test"},
                        {.find_library = [] { return find_cublaslt(KW_WORKER); },
                         .gpu_worker = [this]() -> Result<GpuWorker*> {
                           if (worker == nullptr) worker = gpu.start();
                           return worker.get();
                         },
                         .database = [this]() -> Result<db::Database*> { return database.get(); },
                         .num_launches = num_launches},
                        verification);
    REQUIRE(timer.find_stored());
    timer.screen();
    while (timer.has_next()) timer.time_next();
    REQUIRE(timer.store());
    return timer.summary();
  }
  std::int64_t num_stored() const { return database->info()->num_baselines; }

  FakeGpu gpu;
  std::shared_ptr<const LoadedSpec> spec;
  Problem problem;
  std::unique_ptr<db::Database> database;
  std::unique_ptr<GpuWorker> worker;
  Protocol early = quick_protocol(), final = quick_protocol();
  double floor_us = 0;
  std::atomic<bool> stop{false};
  int num_launches = 0;
};

}  // namespace

TEST_CASE("the fastest right algorithm of the library is stored with its samples, its settings and how many were tried") {
  Run run;
  setenv("FAKE_CUBLASLT_COUNT", "100", 1);
  const BaselineSummary summary = run.time();
  INFO(summary.note);
  REQUIRE(summary.record);
  CHECK(summary.note.empty());
  CHECK_FALSE(summary.is_reused);
  const db::BaselineRecord& record = *summary.record;
  CHECK(record.row.median_us == Approx(20).epsilon(1e-4));
  CHECK(has(record.row.algorithm, "algo 1, tile "));
  CHECK(record.row.num_tried == 32);
  CHECK(record.row.num_right == 32);
  CHECK(record.row.samples_us.size() == 4);  // of the full protocol
  CHECK(record.row.max_error_over_bound > 0);
  CHECK(has(record.row.state_json, "1755"));
  CHECK(record.key.blas == "cublaslt");
  CHECK(record.key.blas_version == "13.0.2");
  CHECK(record.key.driver == "580.1.fake");
  CHECK(record.key.protocol.name == run.final.name());
  CHECK(run.num_launches >= 32 + 4);  // the early rung, and those near the best again
  CHECK(run.database->check()->empty());
}

TEST_CASE("a second run launches nothing, another version of the library or --retune does") {
  Run run;
  REQUIRE(run.time().record);
  const BaselineSummary again = run.time();
  CHECK(again.is_reused);
  CHECK(again.record->row.median_us == Approx(20).epsilon(1e-4));
  CHECK(run.num_launches == 0);
  CHECK(run.worker == nullptr);
  CHECK(run.num_stored() == 1);
  CHECK_FALSE(run.time(/*retunes=*/true).is_reused);
  setenv("FAKE_CUBLASLT_VERSION", "130003", 1);
  const BaselineSummary newer = run.time();
  CHECK_FALSE(newer.is_reused);
  CHECK(newer.record->key.blas_version == "13.0.3");
}

TEST_CASE("an algorithm that fails or is wrong is left out, told, and not the winner") {
  for (const char* mode : {"refuse:1", "wrong:1", "past_end:1", "illegal:1"}) {
    Run run;
    setenv("FAKE_CUBLASLT", mode, 1);
    const BaselineSummary summary = run.time();
    INFO(mode << ": " << summary.note);
    REQUIRE(summary.record);
    CHECK(summary.record->row.median_us == Approx(25).epsilon(1e-4));
    CHECK(summary.record->row.num_tried == 3);
    CHECK(summary.record->row.num_right == 2);
    CHECK(has(summary.note, "1 of 3 algorithms of cuBLASLt were left out, the first: algo 1"));
    CHECK_FALSE(has(summary.note, "\n"));
  }
}

TEST_CASE("a hang or a crash gives the baseline up in one sentence and stores nothing") {
  for (const auto& [mode, part] :
       {std::pair{"hang:0", "hung: no end after"}, std::pair{"segfault:0", "launch_failed: the GPU worker was"}}) {
    Run run;
    setenv("FAKE_CUBLASLT", mode, 1);
    const BaselineSummary summary = run.time();
    INFO(mode << ": " << summary.note);
    CHECK_FALSE(summary.record);
    CHECK(summary.note.starts_with("no cuBLASLt baseline: algo 0"));
    CHECK(has(summary.note, part));
    CHECK_FALSE(has(summary.note, "\n"));
    CHECK(run.num_launches == 1);
    CHECK(run.num_stored() == 0);
  }
}

TEST_CASE("an op that is no call of the library, a missing library and a refused product say why") {
  {
    Run run("silu(acc[m,n] + bias[n])");
    const BaselineSummary summary = run.time();
    CHECK(has(summary.note, "cuBLASLt has no epilogue for `out[m,n] = silu(acc[m,n] + bias[n])`"));
    CHECK(has(summary.note, ":"));
    CHECK(run.worker == nullptr);
  }
  {
    Run run;
    setenv("KERNELWRIGHT_CUBLASLT", "/no/such/folder", 1);
    CHECK(has(run.time().note, "cuBLASLt: not found: looked at /no/such/folder"));
  }
  {
    Run run;
    setenv("FAKE_CUBLASLT", "null_heuristics", 1);
    CHECK(has(run.time().note, "no algorithm for this product"));
    CHECK(run.num_stored() == 0);
  }
  {
    Run run;
    run.floor_us = 1000;
    const BaselineSummary summary = run.time();
    CHECK(has(summary.note, "none of its 3 algorithms is right, the first: algo 0"));
    CHECK(has(summary.note, "under_floor"));
    CHECK(run.num_stored() == 0);
  }
}

TEST_CASE("a signal stores nothing: the best of a part is not the best of all") {
  Run run;
  run.stop = true;
  const BaselineSummary summary = run.time();
  CHECK_FALSE(summary.record);
  CHECK(has(summary.note, "interrupted"));
  CHECK(run.num_launches == 0);
  CHECK(run.num_stored() == 0);
}

TEST_CASE("a disturbed measurement is repeated once and stored as disturbed") {
  Run run;
  setenv("FAKE_NVML_THROTTLE", "0x48", 1);
  const BaselineSummary summary = run.time();
  REQUIRE(summary.record);
  CHECK(summary.record->row.is_dirty);
  CHECK(run.num_launches == 12);  // three algorithms, two rungs, twice each
}

TEST_CASE("the ratio is the library's time over ours, with as many algorithms as were tried") {
  db::BaselineRecord baseline;
  baseline.key.blas = "cublaslt";
  baseline.row.median_us = 52;
  baseline.row.num_tried = 32;
  CHECK(ratio_of(baseline, 50).to_text() == "1.04x cuBLASLt (best of 32)");
  baseline.row.num_tried = 7;
  CHECK(ratio_of(baseline, 65).to_text() == "0.80x cuBLASLt (best of 7)");
}
