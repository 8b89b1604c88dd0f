// Launch plans and problems: JSON and text round trips, constraints with their numbers.
// SPDX-License-Identifier: Apache-2.0
#include "generator/base/launch_plan.h"

#include <nlohmann/json.hpp>

#include "generator/base/config.h"
#include "tests/catch.h"

namespace kw {
namespace {

LaunchPlan sample_plan() {
  LaunchPlan plan;
  plan.dims = {"M", "K"};
  plan.tensors = {
      {"A", DType::kF16, TensorRole::kIn, {IntExpr::variable("M"), IntExpr::variable("K")}, {IntExpr::variable("K"), IntExpr(1)}, 16}};
  plan.scalars = {{"alpha", DType::kF32}};
  plan.workspaces = {{"partial_sums", IntExpr::variable("M") * IntExpr(4), true}};
  plan.constraints = {
      {"a_vector_alignment", *IntExpr::parse("A.stride0 * 2 % 16 == 0 && A.align % 16 == 0"), "16-byte loads of A need aligned rows"}};
  PlanLaunch launch;
  launch.kernel = "kernel";
  launch.grid = {ceil_div(IntExpr::variable("M"), IntExpr(128)), IntExpr(1), IntExpr(1)};
  launch.block = {IntExpr(256), IntExpr(1), IntExpr(1)};
  launch.dynamic_smem_bytes = IntExpr(49152);
  launch.parameters = {{"A", {{PlanField::Kind::kTensor, "A", "A", IntExpr(0), DType::kF32}}},
                       {"problem",
                        {{PlanField::Kind::kInt64, "extent_m", "", IntExpr::variable("M"), DType::kF32},
                         {PlanField::Kind::kScalar, "alpha", "alpha", IntExpr(0), DType::kF64}}},
                       {"partial_sums", {{PlanField::Kind::kWorkspace, "partial_sums", "partial_sums", IntExpr(0), DType::kF32}}}};
  PlanField map{PlanField::Kind::kTensorMap, "A_map", "A", IntExpr(0), DType::kF32};
  map.map = {DType::kF16,
             {IntExpr::variable("K"), IntExpr::variable("M")},
             {IntExpr::variable("A.stride0") * IntExpr(2)},
             {IntExpr(64), IntExpr(128)},
             IntExpr(128)};
  launch.parameters.push_back({"A_map", {map}});
  plan.launches = {launch};
  return plan;
}

}  // namespace

TEST_CASE("a launch plan survives the way to JSON and back") {
  const LaunchPlan plan = sample_plan();
  const auto back = launch_plan_from_json(to_json(plan));
  REQUIRE(back.has_value());
  CHECK(to_json(*back).dump() == to_json(plan).dump());
}

TEST_CASE("a plan with a missing part or an unknown word is refused, not half read") {
  nlohmann::json json = to_json(sample_plan());
  json["launches"][0].erase("grid");
  CHECK_FALSE(launch_plan_from_json(json).has_value());
  json = to_json(sample_plan());
  json["tensors"][0]["dtype"] = "f17";
  CHECK(launch_plan_from_json(json).error().message == "launch plan: unknown dtype 'f17'");
  json = to_json(sample_plan());
  json["launches"][0]["parameters"][3]["fields"][0]["map"]["box"].push_back("1");
  CHECK(launch_plan_from_json(json).error().message ==
        "launch plan: a tensor map has one to five dimensions, a box of as many and one stride less");
}

TEST_CASE("a broken constraint is named with the part that is false and its numbers") {
  Problem problem;
  problem.dims = {{"M", 4}, {"K", 100}};
  CHECK(first_broken_constraint(sample_plan(), problem) ==
        "a_vector_alignment: 16-byte loads of A need aligned rows (A.stride0 * 2 % 16 == 0: 8 == 0 is false)");
  problem.dims["K"] = 104;
  CHECK(first_broken_constraint(sample_plan(), problem).empty());
  problem.align_bytes = {{"A", 2}};
  CHECK(first_broken_constraint(sample_plan(), problem) ==
        "a_vector_alignment: 16-byte loads of A need aligned rows (A.align % 16 == 0: 2 == 0 is false)");
}

TEST_CASE("free strides that a problem leaves out are dense over those it gives, and a fixed one is kept") {
  const std::vector<IntExpr> shape = {IntExpr(2), IntExpr::variable("M"), IntExpr(8)};
  const std::vector<IntExpr> strides = {IntExpr::variable("A.stride0"), IntExpr::variable("A.stride1"), IntExpr(1)};
  Problem problem = *problem_from_text("M=3");
  complete_strides("A", shape, strides, problem);
  CHECK(problem.to_text() == "M=3,A.stride0=24,A.stride1=8");
  Problem padded = *problem_from_text("M=3,A.stride1=16");
  complete_strides("A", shape, strides, padded);
  CHECK(padded.to_text() == "M=3,A.stride0=48,A.stride1=16");
  Problem huge = *problem_from_text("M=9223372036854775807");
  complete_strides("A", shape, strides, huge);
  CHECK(huge.strides.at("A.stride0") == 0);
}

TEST_CASE("problems and configs survive the way to text and back, and bad items are named") {
  const auto problem = problem_from_text("N=4096,M=1024,A.stride0=4104,A.align=2");
  REQUIRE(problem.has_value());
  CHECK(problem->to_text() == "M=1024,N=4096,A.align=2,A.stride0=4104");
  CHECK(*problem_from_text(problem->to_text()) == *problem);
  CHECK(problem_from_text("M=x").error().message == "'M=x': 'x' is not an integer of 64 bits");
  CHECK(problem_from_text("M=1,M=2").error().message == "'M=1,M=2': M is given twice");
  CHECK(problem_from_text("M=-1").error().message == "M = -1: must not be negative");
  CHECK(problem_from_text("A.align=1073741824"));
  CHECK(problem_from_text("A.align=2147483648").error().message == "A.align = 2147483648: an alignment is at most 1073741824 bytes");
  CHECK(problem_from_text("A.align=3").error().message == "A.align = 3: an alignment is a power of two in bytes");
  const auto config = config_from_text("gemm_simt", "BLOCK_N=64,BLOCK_M=128");
  REQUIRE(config.has_value());
  CHECK(config->to_text() == "BLOCK_M=128,BLOCK_N=64");
}

}  // namespace kw
