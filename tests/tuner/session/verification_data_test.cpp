// Which outputs a check compares. A single wrong element amid the last tile was found by one small problem of six: their outputs were
// sampled, as those of the tuning problem are.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/session/verification_data.h"

#include <set>

#include "tests/catch.h"
#include "tests/cli/sandbox.h"
#include "tests/tuner/session/specs.h"
#include "tuner/session/ranked_problem.h"
#include "tuner/session/spec_file.h"

using namespace kw::tuner;

TEST_CASE("a small problem is compared whole, the tuning problem by 4096 samples") {
  kw::Diagnostics diagnostics;
  const auto spec = load_spec(KW_SOURCE_DIR "/examples/matmul_bias_relu/matmul_bias_relu.op.toml", diagnostics);
  REQUIRE(spec != nullptr);
  const auto problems = problems_of(*spec->program, {"M=256,N=256,K=64"});
  REQUIRE(problems.has_value());
  VerificationSource source(*spec->program, problems->front(), 1);
  CHECK((*source.at_problem(0))->samples.front().offsets.size() == 4096);
  const auto all = source.at_small_problems(kw::LaunchPlan{}, 6);
  CHECK(all.size() == 6);
  for (const auto& data : all) {
    INFO(data->problem.to_text());
    const std::vector<std::int64_t>& offsets = data->samples.front().offsets;
    const std::set<std::int64_t> distinct(offsets.begin(), offsets.end());
    CHECK(static_cast<std::int64_t>(distinct.size()) == data->problem.dims.at("M") * data->problem.dims.at("N"));
  }
}

TEST_CASE("a small problem is one at which the spec's statements cover its outputs") {
  // Two halves of M // 2 rows: at an odd M nobody writes the last row.
  const kw::tests::Sandbox sandbox;
  const auto spec = kw::tuner::test::load_text(sandbox.path("halves.op.toml"), R"toml(name = "halves"
[dims]
M = 1024
N = 256
[tensors]
x = { dtype = "f32", shape = ["M", "N"] }
out = { dtype = "f32", shape = ["M", "N"], role = "out" }
[compute]
body = """
out[h,n] = x[h,n] + x[h + M // 2,n]
out[h + M // 2,n] = x[h,n] - x[h + M // 2,n]
"""
[index]
h = { extent = "M // 2" }
)toml");
  VerificationSource source(*spec->program, spec->program->problems.front(), 1);
  const auto all = source.at_small_problems(kw::LaunchPlan{}, 6);
  CHECK(all.size() >= 4);
  for (const auto& data : all) {
    INFO(data->problem.to_text());
    CHECK(data->problem.dims.at("M") % 2 == 0);
  }
  CHECK((*source.at_small_problem(kw::LaunchPlan{}))->problem.dims.at("M") % 2 == 0);
}
