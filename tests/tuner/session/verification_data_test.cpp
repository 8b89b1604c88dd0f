// Which outputs a check compares. A single wrong element amid the last tile was found by one small problem of six: their outputs were
// sampled, as those of the tuning problem are.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/session/verification_data.h"

#include <set>

#include "tests/catch.h"
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
