// Kernels of plans as ops of their own, and plans made of their times.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/session/plan_steps.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "tests/cli/sandbox.h"
#include "tests/tuner/session/specs.h"
#include "tuner/session/ranked_plans.h"
#include "tuner/session/trial_rows.h"

using namespace kw;
using namespace kw::tuner;
using kw::tests::Sandbox;

namespace {

constexpr const char* kMlp =
    "name = \"mlp\"\n[dims]\nM = 2\nD = 64\nF = 128\n[tensors]\nx = { dtype = \"bf16\", shape = [\"M\", \"D\"] }\n"
    "gate = { dtype = \"bf16\", shape = [\"F\", \"D\"] }\nup = { dtype = \"bf16\", shape = [\"F\", \"D\"] }\n"
    "down = { dtype = \"bf16\", shape = [\"D\", \"F\"] }\nout = { dtype = \"bf16\", shape = [\"M\", \"D\"], role = \"out\" }\n"
    "[scalars]\nhalf = 0.5\n[compute]\naccumulate = \"f32\"\nbody = \"\"\"\ng[m,f] = sum[k](x[m,k] * gate[f,k])\n"
    "u[m,f] = sum[k](x[m,k] * up[f,k]) * half\nh[m,f] = cast(silu(g[m,f]) * u[m,f], bf16)\n"
    "out[m,d] = sum[f](h[m,f] * down[d,f])\n\"\"\"\n"
    // Small spaces: the test is of the order, and sanitizers are slow.
    "[tune]\nBLOCK_M = [64]\nBLOCK_N = [64, 128]\nBLOCK_K = [32]\nSTAGES = [3, 4]\nGROUP_M = [1]\nSPLIT_K = [1]\nTHREADS = [64, 128]\n"
    "VEC = [8]\nITEMS = [1, 2]\nCLUSTER = [1]\nHAS_HINTS = [0]\nCTAS_PER_SM = [0]\n";

/// Services on the fake driver, which lists a device and runs nothing.
std::unique_ptr<Services> services_of(const Sandbox& sandbox, const char* device = "cuda:0") {
  setenv("KERNELWRIGHT_LIBCUDA", KW_FAKE_CUDA, 1);
  Options options;
  options.executable = KW_EXECUTABLE;
  options.device = device;
  options.arch = Arch::kSm90a;
  options.database_path = sandbox.path("tuning.db");
  auto services = Services::create(options);
  if (!services) FAIL(to_text(services.error()));
  return std::move(*services);
}

void store_time(const PlanStep& step, const RankedVariant& ranked, const RankedProblem& space, double median_us, Services& services) {
  const auto variant = space.factories[ranked.factory].emit(ranked.ranked.config);
  REQUIRE(variant);
  db::TrialRecord record;
  record.key = *key_of_problem(*step.spec, step.problem, services);
  record.key.protocol = protocol_row(Protocol::final_rung());
  record.key.variant = variant_row(*variant, services.arch(), 1);
  record.trial.verify_level = VerifyLevel::kDevice;
  record.trial.samples_us = {median_us};
  record.trial.median_us = record.trial.p10_us = record.trial.p90_us = median_us;
  REQUIRE((*services.database())->record_trial(record));
}

}  // namespace

TEST_CASE("who reads the database first does not keep others from writing") {
  const Sandbox sandbox;
  {
    REQUIRE(services_of(sandbox)->database());
  }
  const auto services = services_of(sandbox);
  if (!services->toolchain_row()) {
    WARN("no NVRTC: rows are of a toolchain");
    return;
  }
  const auto reader = services->database(true);
  REQUIRE(reader);
  const auto spec = kw::tuner::test::load_text(sandbox.path("mlp.op.toml"), kMlp);
  const auto partitions = generator::partitions_for(**services->templates(), *spec->program, Arch::kSm90a);
  REQUIRE(partitions);
  const auto steps = plan_steps(*partitions, "mlp", spec->program->problems.front());
  REQUIRE(steps);
  const PlanStep& step = steps->front();
  const auto space = rank_problem(*step.spec, *services, step.problem);
  REQUIRE(space);
  store_time(step, space->ranked.front(), *space, 10, *services);
  CHECK(*services->database(true) == *services->database());
  db::TrialKey key = *key_of_problem(*step.spec, step.problem, *services);
  key.protocol = protocol_row(Protocol::final_rung());
  const auto rows = (*reader)->trials_of(key);
  REQUIRE(rows);
  CHECK(rows->size() == 1);
}

TEST_CASE("steps of all cuts are ops of their own, each once, with the dims, indices and scalars that they use") {
  const Sandbox sandbox;
  const auto spec = kw::tuner::test::load_text(sandbox.path("mlp.op.toml"), kMlp);
  const auto services = services_of(sandbox);
  const auto partitions = generator::partitions_for(**services->templates(), *spec->program, Arch::kSm90a);
  REQUIRE(partitions);
  const auto steps = plan_steps(*partitions, "mlp", spec->program->problems.front());
  REQUIRE(steps);
  std::set<std::string> names, identities;
  for (const PlanStep& step : *steps) {
    names.insert(step.spec->program->name);
    CHECK(identities.insert(step.spec->identity).second);
    CHECK(step.problem.dims.size() == step.spec->program->dims.size());
    // Its text was read as a spec, which may state no name that it does not use.
    if (step.spec->program->name == "mlp__out") CHECK(step.spec->program->scalars.empty());
  }
  CHECK(names == std::set<std::string>{"mlp__g", "mlp__u", "mlp__u_sum", "mlp__h", "mlp__out"});
  CHECK(steps->size() >= 5);  // h from g, from u, and from both
}

TEST_CASE("plans are made of the kernels that were timed, and cuts that were not are left out") {
  const Sandbox sandbox;
  const auto spec = kw::tuner::test::load_text(sandbox.path("mlp.op.toml"), kMlp);
  const auto services = services_of(sandbox);
  if (!services->toolchain_row()) {
    WARN("no NVRTC: rows are of a toolchain");
    return;
  }
  const Problem problem = spec->program->problems.front();
  const auto before = rank_problem(*spec, *services, problem);
  REQUIRE(before);
  const auto partitions = generator::partitions_for(**services->templates(), *spec->program, Arch::kSm90a);
  std::size_t timed_cut = partitions->size();
  for (std::size_t cut = 0; cut < partitions->size(); ++cut) {
    if ((*partitions)[cut].to_text() == "u; u -> h; h -> out") timed_cut = cut;
  }
  REQUIRE(timed_cut < partitions->size());
  // Of each step the model's third is the fastest, its first a little slower, its second far off.
  std::vector<std::string> fastest;
  for (const generator::Program& program : (*partitions)[timed_cut].steps) {
    const auto step = plan_step(program, "mlp", problem);
    REQUIRE(step);
    const auto space = rank_problem(*step->spec, *services, step->problem, PlanKinds::kSingleKernels);
    REQUIRE(space);
    REQUIRE(space->ranked.size() > 3);
    store_time(*step, space->ranked[2], *space, 40, *services);
    store_time(*step, space->ranked[0], *space, 42, *services);
    store_time(*step, space->ranked[1], *space, 400, *services);
    fastest.push_back(space->ranked[2].ranked.config.to_text());
    CHECK(measured_us(*step, *services)->size() == 3);
  }
  const auto after = rank_problem(*spec, *services, problem);
  REQUIRE(after);
  const auto is_timed = [](const RankedVariant& ranked) { return !ranked.ranked.is_dominated; };
  CHECK(std::count_if(after->ranked.begin(), after->ranked.end(), is_timed) ==
        5);  // the fastest together, also without overlap, and one exchanged at a time
  CHECK(after->ranked.front().ranked.prediction.time_us == 3 * 40 + 2);
  CHECK(after->ranked.front().ranked.config.values.at("DEPENDENT") == 1);
  CHECK(std::count_if(after->ranked.begin(), after->ranked.end(), [&](const RankedVariant& ranked) {
          return is_timed(ranked) && ranked.ranked.config.values.count("DEPENDENT") == 0;
        }) == 1);
  for (const RankedVariant& ranked : after->ranked) {
    if (!is_timed(ranked)) {  // the plan for all extents
      CHECK_FALSE(after->factories[ranked.factory].is_for_one_extent(ranked.ranked.config));
      continue;
    }
    CHECK(ranked.ranked.config.values.at("CUT") == static_cast<std::int64_t>(timed_cut));
    CHECK(ranked.ranked.prediction.time_us <= 3 * 40 + 4);
  }
}

// Measured on an H200 (bench/traffic.py): 69.3 MB, 45.9 MB and 1.7 MB of DRAM traffic.
TEST_CASE("what a kernel reads of an earlier one's result does not come from DRAM where it fits the L2, nor goes a small workspace there") {
  const Sandbox sandbox;
  const auto services = services_of(sandbox, "none");
  const auto outline_of = [&](const char* op, const char* dims) {
    Diagnostics diagnostics;
    const auto spec = load_spec(std::string(KW_SOURCE_DIR) + "/bench/ops/plans/" + op + ".op.toml", diagnostics);
    REQUIRE(spec);
    const auto problem = problem_from_text(dims);
    REQUIRE(problem);
    const auto outlines = outline_plans(*spec, *services, *problem);
    REQUIRE(outlines);
    return outlines->front();
  };
  constexpr double kMb = 1024 * 1024;
  const PlanOutline stream = outline_of("projection_norm_bf16", "M=8192,D=1024,K=1024");  // x, w, residual in; stream, out
  CHECK(stream.bytes == Approx((4 + 2.0 / 16 + 1) * 16 * kMb).epsilon(0.01));
  CHECK(stream.l2_aware_bytes == Approx((4 + 2.0 / 16) * 16 * kMb).epsilon(0.01));
  const PlanOutline normed = outline_of("norm_projection_bf16", "M=8192,D=1024,K=1024");  // 50 MB are touched: normed rows go out
  CHECK(normed.l2_aware_bytes == Approx((3 + 2.0 / 16) * 16 * kMb).epsilon(0.01));
  const PlanOutline attention = outline_of("attention_in_steps_bf16", "S=2048,D=128");  // 18 MB are touched: scores stay
  CHECK(attention.l2_aware_bytes == Approx(4 * 0.5 * kMb).epsilon(0.01));
}
