// Enumeration, refusals with their numbers, overrides, variant ids, and the order that the model gives. The template is made by hand.
// SPDX-License-Identifier: Apache-2.0
#include "generator/space/config_space.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "tests/catch.h"

using namespace kw;
using namespace kw::generator;

namespace {

IntExpr expr(const std::string& text) {
  const Result<IntExpr> result = IntExpr::parse(text);
  REQUIRE(result);
  return *result;
}

TemplateInfo small_template() {
  TemplateInfo info;
  info.name = "gemm_test";
  info.tunables = {{"BLOCK_M", "m", {64, 128, 256}, 128, ""}, {"BLOCK_N", "n", {64, 128}, 128, ""}, {"STAGES", "s", {2, 4, 8}, 4, ""}};
  info.rules = {{"smem_fits", "the stages must fit one CTA's shared memory",
                 expr("STAGES * (BLOCK_M + BLOCK_N) * 64 * size_bytes.ElementA <= max_smem_bytes"), false},
                {"k_is_divisible", "K is a multiple of 64", expr("extent_k % 64 == 0"), true},
                {"tile_fits", "the tile is not larger than the output", expr("BLOCK_M <= extent_m && BLOCK_N <= extent_n"), true}};
  return info;
}

SpaceContext context_of(const TemplateInfo& info) {
  SpaceContext context;
  context.info = &info;
  context.bindings = {{"size_bytes.ElementA", 2}, {"size_bytes.ElementB", 2}};
  context.problem = {{"extent_b", 1}, {"extent_m", 1024}, {"extent_n", 4096}, {"extent_k", 4096}};
  context.limits = generic_device(Arch::kSm80);
  return context;
}

std::size_t position_of(const std::vector<RankedConfig>& ranked, const std::string& config) {
  const auto found =
      std::find_if(ranked.begin(), ranked.end(), [&](const RankedConfig& entry) { return entry.config.to_text() == config; });
  REQUIRE(found != ranked.end());
  return static_cast<std::size_t>(found - ranked.begin());
}

}  // namespace

TEST_CASE("every point is kept or refused by its first failing rule") {
  const TemplateInfo info = small_template();
  const auto space = ConfigSpace::enumerate(context_of(info));
  REQUIRE(space);
  CHECK(space->num_points() == 18);
  CHECK(space->kept().size() + space->refused().size() == 18);
  CHECK(space->config_at(0).to_text() == "BLOCK_M=64,BLOCK_N=64,STAGES=2");
  CHECK(space->config_at(1).to_text() == "BLOCK_M=64,BLOCK_N=64,STAGES=4");
  CHECK(space->config_at(17).to_text() == "BLOCK_M=256,BLOCK_N=128,STAGES=8");
  std::set<std::uint64_t> ordinals(space->kept().begin(), space->kept().end());
  for (const RefusedConfig& refused : space->refused()) {
    CHECK(refused.rule == 0);
    CHECK(ordinals.insert(refused.ordinal).second);
  }
}

TEST_CASE("a refusal shows the numbers that broke the rule") {
  const TemplateInfo info = small_template();
  const auto space = ConfigSpace::enumerate(context_of(info));
  REQUIRE(space);
  CHECK(space->refusal_text(space->refused().back()) ==
        "smem_fits: the stages must fit one CTA's shared memory: needs 393216 <= 166912 (BLOCK_M = 256, BLOCK_N = 128, STAGES = 8, "
        "max_smem_bytes = 166912, size_bytes.ElementA = 2)");
}

TEST_CASE("problem rules refuse for this problem and are told apart from config rules") {
  const TemplateInfo info = small_template();
  SpaceContext context = context_of(info);
  context.problem["extent_k"] = 100;
  const auto odd = ConfigSpace::enumerate(context);
  REQUIRE(odd);
  CHECK(odd->kept().empty());
  const auto problem_rule =
      std::find_if(odd->refused().begin(), odd->refused().end(), [](const RefusedConfig& refused) { return refused.rule == -1; });
  REQUIRE(problem_rule != odd->refused().end());
  CHECK(odd->refusal_text(*problem_rule) == "k_is_divisible: K is a multiple of 64: needs extent_k % 64 == 0 (extent_k = 100)");

  context.problem["extent_k"] = 128;
  context.problem["extent_n"] = 100;
  const auto narrow = ConfigSpace::enumerate(context);
  REQUIRE(narrow);
  const auto tile_rule =
      std::find_if(narrow->refused().begin(), narrow->refused().end(), [](const RefusedConfig& refused) { return refused.rule == -2; });
  REQUIRE(tile_rule != narrow->refused().end());
  CHECK(narrow->refusal_text(*tile_rule) ==
        "tile_fits: the tile is not larger than the output: needs 128 <= 100 (BLOCK_N = 128, extent_n = 100)");
}

TEST_CASE("a tunable with a variable of the problem takes its value too, once, and such a config is for one extent") {
  TemplateInfo info = small_template();
  info.tunables.push_back({"EXTENT_N", "en", {0}, 0, "", "extent_n"});
  SpaceContext context = context_of(info);
  context.problem["extent_n"] = 300;
  const auto space = ConfigSpace::enumerate(context);
  REQUIRE(space);
  std::set<std::int64_t> values;
  for (const std::uint64_t ordinal : space->kept()) {
    const Config config = space->config_at(ordinal);
    values.insert(config.values.at("EXTENT_N"));
    CHECK(is_for_one_extent(info, config) == (config.values.at("EXTENT_N") == 300));
  }
  CHECK(values == std::set<std::int64_t>{0, 300});
  context.overrides["EXTENT_N"] = {0};
  CHECK(ConfigSpace::enumerate(context)->num_points() * 2 == space->num_points());
}

TEST_CASE("a rule that cannot be evaluated refuses and says why") {
  TemplateInfo info = small_template();
  info.rules = {{"divides", "M is shared evenly", expr("extent_m % (BLOCK_M - 64) == 0"), false}};
  const auto space = ConfigSpace::enumerate(context_of(info));
  REQUIRE(space);
  REQUIRE_FALSE(space->refused().empty());
  CHECK(space->refused().front().ordinal == 0);
  CHECK(space->refusal_text(space->refused().front()).rfind("divides: M is shared evenly: ", 0) == 0);
}

TEST_CASE("[tune] replaces values; an unknown name is an error with a suggestion") {
  const TemplateInfo info = small_template();
  SpaceContext context = context_of(info);
  context.overrides["BLOCK_M"] = {96, 96};
  const auto space = ConfigSpace::enumerate(context);
  REQUIRE(space);
  CHECK(space->num_points() == 6);
  CHECK(space->config_at(0).values.at("BLOCK_M") == 96);
  context.overrides = {{"BLOCK_W", {1}}};
  const auto unknown = ConfigSpace::enumerate(context);
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().message.find("[tune] BLOCK_W: gemm_test has no such tunable; did you mean BLOCK_") != std::string::npos);
  CHECK(unknown.error().where.line == 0);
  context.override_places = {{"BLOCK_W", {"t.op.toml", 12, 3}}};
  CHECK(ConfigSpace::enumerate(context).error().where.line == 12);
  context.overrides = {{"BLOCK_M", {}}};
  CHECK_FALSE(ConfigSpace::enumerate(context));
}

TEST_CASE("long lists of values are counted before anything is enumerated") {
  const TemplateInfo info = small_template();
  SpaceContext context = context_of(info);
  for (std::int64_t value = 1; value < 100000; ++value) context.overrides["BLOCK_M"].push_back(value);
  for (std::int64_t value = 1; value < 1000; ++value) context.overrides["BLOCK_N"].push_back(value);
  context.override_places = {{"BLOCK_M", {"t.op.toml", 12, 1}}, {"BLOCK_N", {"t.op.toml", 13, 1}}};
  const auto begin = std::chrono::steady_clock::now();
  const auto space = ConfigSpace::enumerate(context);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(2));
  REQUIRE_FALSE(space);
  CHECK(space.error().message.find("gemm_test: the space has more than ") == 0);
  CHECK(space.error().where.line == 12);
}

TEST_CASE("a rule that names nothing known is an error of the template") {
  TemplateInfo info = small_template();
  info.rules.push_back({"typo", "why", expr("BLOCK_K <= 64"), false});
  const auto space = ConfigSpace::enumerate(context_of(info));
  REQUIRE_FALSE(space);
  CHECK(space.error().message.find("gemm_test: rule typo: BLOCK_K is neither a tunable, a binding, a limit nor a problem variable") !=
        std::string::npos);
}

TEST_CASE("variant ids list keys and values in source order") {
  const TemplateInfo info = small_template();
  CHECK(variant_id(info, {"gemm_test", {{"STAGES", 4}, {"BLOCK_N", 64}, {"BLOCK_M", 128}}}) == "gemm_test__m128_n64_s4");
}

TEST_CASE("a space of 110592 points is enumerated in full") {
  TemplateInfo info = small_template();
  for (int i = 0; i < 11; ++i) {
    info.tunables.push_back({"T" + std::to_string(i), "t" + std::to_string(i), {0, 1}, 0, ""});
    if (i > 0)
      info.rules.push_back({"rule" + std::to_string(i), "why",
                            expr("T" + std::to_string(i) + " * BLOCK_M + T" + std::to_string(i - 1) + " * BLOCK_N <= 320"), false});
  }
  info.tunables.push_back({"U", "u", {1, 2, 3}, 1, ""});
  const auto begin = std::chrono::steady_clock::now();
  const auto space = ConfigSpace::enumerate(context_of(info));
  const double milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  REQUIRE(space);
  CHECK(space->num_points() == 110592);
  CHECK(space->kept().size() + space->refused().size() == 110592);
  WARN("enumerated 110592 configs under " << info.rules.size() << " rules in " << milliseconds << " ms");
}

TEST_CASE("a space of more than 2^22 points is refused") {
  TemplateInfo info = small_template();
  for (int i = 0; i < 25; ++i) info.tunables.push_back({"T" + std::to_string(i), "t", {0, 1}, 0, ""});
  const auto space = ConfigSpace::enumerate(context_of(info));
  REQUIRE_FALSE(space);
  CHECK(space.error().message.find("narrow it under [tune]") != std::string::npos);
}

namespace {

/// A tensor-core template in the terms of the model.
TemplateInfo modelled_template() {
  TemplateInfo info;
  info.name = "gemm_model";
  info.tunables = {{"BLOCK_M", "m", {16, 64, 128, 256}, 128, ""},
                   {"BLOCK_N", "n", {64, 128}, 128, ""},
                   {"SPLIT_K", "sk", {1, 4}, 1, ""},
                   {"VEC", "v", {2, 16}, 16, ""}};
  const auto estimate = [&](const std::string& name, const std::string& text) { info.estimates.push_back({name, expr(text)}); };
  const std::string steps = "(extent_k + 32 * SPLIT_K - 1) // (32 * SPLIT_K)";
  estimate("threads_per_cta", "128 + BLOCK_M // 128 * 128");
  estimate("smem_bytes_per_cta", "4 * 64 * (BLOCK_M + BLOCK_N)");
  estimate("registers_per_thread", "min(255, BLOCK_M * BLOCK_N // (128 + BLOCK_M // 128 * 128) + 64)");
  estimate("is_tensor_core", "1");
  estimate("math_type_bytes", "2");
  estimate("tile_m", "BLOCK_M");
  estimate("tile_n", "BLOCK_N");
  estimate("tile_k", "32");
  estimate("stages", "4");
  estimate("ctas", "((extent_m + BLOCK_M - 1) // BLOCK_M) * ((extent_n + BLOCK_N - 1) // BLOCK_N) * SPLIT_K");
  estimate("k_steps", steps);
  estimate("math_flops_per_cta", "2 * BLOCK_M * BLOCK_N * 32 * (" + steps + ")");
  estimate("gmem_bytes_per_cta", "(BLOCK_M + BLOCK_N) * 64 * (" + steps + ")");
  estimate("smem_bytes_read_per_cta", "(BLOCK_M * 2 + BLOCK_N * 2) * 64 * (" + steps + ")");
  estimate("workspace_traffic_bytes", "SPLIT_K == 1 ? 0 : 8 * extent_m * extent_n * SPLIT_K");
  estimate("is_dominated", "VEC == 2");
  return info;
}

std::vector<RankedConfig> ranked(const TemplateInfo& info, std::int64_t m, std::int64_t n, std::int64_t k) {
  SpaceContext context = context_of(info);
  context.limits = generic_device(Arch::kSm90);
  context.problem = {{"extent_b", 1}, {"extent_m", m}, {"extent_n", n}, {"extent_k", k}};
  const auto space = ConfigSpace::enumerate(context);
  REQUIRE(space);
  return rank(*space, context);
}

}  // namespace

TEST_CASE("the model prefers large tiles for large problems and small ones for one row") {
  const TemplateInfo info = modelled_template();
  const auto large = ranked(info, 4096, 4096, 4096);
  CHECK(large.front().config.values.at("BLOCK_M") >= 128);
  CHECK(large.front().config.values.at("SPLIT_K") == 1);
  CHECK(position_of(large, "BLOCK_M=16,BLOCK_N=64,SPLIT_K=1,VEC=16") > position_of(large, "BLOCK_M=128,BLOCK_N=128,SPLIT_K=1,VEC=16"));
  const auto row = ranked(info, 1, 4096, 4096);
  CHECK(row.front().config.values.at("BLOCK_M") == 16);
}

TEST_CASE("an output without elements leaves one config: all of them do nothing") {
  CHECK(ranked(modelled_template(), 0, 4096, 4096).size() == 1);
  CHECK(ranked(modelled_template(), 4096, 0, 4096).size() == 1);
  CHECK(ranked(modelled_template(), 4096, 4096, 0).size() > 1);  // sums of nothing are written
}

TEST_CASE("the model splits k where the tiles do not fill the device") {
  const auto deep = ranked(modelled_template(), 128, 128, 65536);
  CHECK(deep.front().config.values.at("SPLIT_K") == 4);
}

TEST_CASE("a predicted time respects the rates and dominated configs come last") {
  const auto configs = ranked(modelled_template(), 4096, 4096, 4096);
  const DeviceLimits limits = generic_device(Arch::kSm90);
  const double least_us = 2.0 * 4096 * 4096 * 4096 / (limits.mma_16bit_flops_per_clock_sm * limits.num_sms * limits.max_clock_ghz * 1000);
  bool has_seen_dominated = false;
  for (const RankedConfig& entry : configs) {
    CHECK(entry.prediction.time_us >= least_us);
    CHECK(entry.prediction.ctas_per_sm >= 1);
    const bool is_dominated = entry.config.values.at("VEC") == 2;
    CHECK((is_dominated || !has_seen_dominated));
    has_seen_dominated = has_seen_dominated || is_dominated;
  }
  CHECK(has_seen_dominated);
}

TEST_CASE("dominated configs come after those of other templates too") {
  RankedConfig fast_and_dominated, slow;
  fast_and_dominated.prediction.time_us = 1;
  fast_and_dominated.is_dominated = true;
  slow.prediction.time_us = 2;
  CHECK(is_ranked_before(slow, fast_and_dominated));
  CHECK_FALSE(is_ranked_before(fast_and_dominated, slow));
}

TEST_CASE("configs that the model cannot tell apart are ordered by their text") {
  TemplateInfo info = modelled_template();
  info.tunables.push_back({"EXTRA", "e", {3, 1, 2}, 1, ""});
  const auto configs = ranked(info, 1024, 1024, 1024);
  CHECK(configs[0].config.values.at("EXTRA") == 1);
  CHECK(configs[1].config.values.at("EXTRA") == 2);
  CHECK(configs[2].config.values.at("EXTRA") == 3);
}
