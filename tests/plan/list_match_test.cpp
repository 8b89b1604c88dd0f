// Programs over lists of tensors, and over extents that depend on data: what the list pattern takes, what it refuses and why, and that the
// optimiser step of the examples becomes three kernels. SPDX-License-Identifier: Apache-2.0
#include "generator/plan/list_match.h"

#include <fstream>
#include <sstream>

#include "generator/plan/partition.h"
#include "generator/plan/row_match.h"
#include "tests/catch.h"
#include "tests/spec/spec_helpers.h"

using namespace kw;
using namespace kw::generator;

namespace {

Program lists(const std::string& body, const std::string& index = "", const std::string& tensors = "") {
  const bool has_size = (body + index).find("size") != std::string::npos;
  return *program_of(
      std::string("name = \"op\"\n[dims]\nL = 5\nN = 70\n[tensors]\n") +
      (has_size ? "size = { dtype = \"i32\", shape = [\"L\"], range = [0, 70] }\n" : "") +
      "g = { dtype = \"f16\", shape = [\"N\"], list = \"L\" }\np = { dtype = \"f32\", shape = [\"N\"], list = \"L\", role = \"inout\" }\n"
      "s = { dtype = \"f32\", shape = [], role = \"inout\" }\n" +
      tensors + (index.empty() ? "" : "[index]\n" + index + "\n") + "[compute]\naccumulate = \"f32\"\nbody = \"\"\"\n" + body +
      "\n\"\"\"\n");
}

std::optional<PatternMatch> matched(const Program& program, std::string& why_not) {
  const auto groups = plan_groups(program);
  if (!groups) FAIL(to_text(groups.error()));
  return match_list(groups->front(), program, why_not);
}

std::string refusal(const Program& program) {
  std::string why_not;
  CHECK_FALSE(matched(program, why_not));
  return why_not;
}

Status judge(const Program& step) {
  const auto groups = plan_groups(step);
  if (!groups) return fail(groups.error());
  std::string why_not;
  if (match_list(groups->front(), step, why_not)) return {};
  if (needs_list(step).empty() && match_row(groups->front(), step, why_not)) return {};
  return fail(Stage::kPlan, Code::kNotSupported, why_not);
}

}  // namespace

TEST_CASE("elements of a list are values over m and n; the length of a tensor is data") {
  std::string why_not;
  const auto match = matched(lists("p[l,i] = p[l,i] - 0.1 * g[l,i] * size[l]\ns = 0.5 * s + sum[a,j](abs(g[a,j]))",
                                   "i = { below = \"size[l]\" }\nj = { below = \"size[a]\" }"),
                             why_not);
  REQUIRE(match);
  CHECK(match->is_list);
  CHECK(to_text(match->length) == "size[m]");
  CHECK(match->extents.at("m") == IntExpr::variable("L"));
  CHECK(match->extents.at("n") == IntExpr::variable("N"));
  REQUIRE(match->outputs.size() == 2);
  CHECK(to_text(match->outputs[0].value) == "p[m,n] - 0.1 * g[m,n] * size[m]");
  CHECK(to_text(match->outputs[1].value) == "0.5 * s[] + list_sum[]");
  REQUIRE(match->reductions.size() == 1);
  CHECK(to_text(match->reductions[0].operand) == "abs(g[m,n])");
  CHECK(match->bytes_per_column == 6);
}

TEST_CASE("what a kernel over a list does not make is refused by name") {
  const auto refused = [](const std::string& body, const std::string& index = "", const std::string& tensors = "") {
    return refusal(lists(body, index, tensors));
  };
  CHECK(refused("p[l,i] = g[l,i] / sum[a,j](g[a,j])\ns = 1") == "p needs the reduction over the whole list: a later kernel makes it");
  CHECK(refused("p[l,i] = g[l,i] * s\ns = 2 * s") == "s is a single value that no reduction over the list makes: a kernel of its own");
  CHECK(refused("p[l,i] = g[l,i] * s\ns = max[a,j](g[a,j])") == "s is written and also read at other elements: not made yet");
  CHECK(refused("p[l,i] = p[l, 69 - i]\ns = max[a,j](g[a,j])") == "p is written and also read at other elements: not made yet");
  CHECK(refused("p[l,i] = g[4 - l, i]\ns = max[a,j](g[a,j])") == "g[4 - l,i] is read at another position of the list: not made yet");
  CHECK(refused("p[l,i] = g[l,i]\ns = mean[a,j](g[a,j])") ==
        "mean over a list of tensors, or over an extent that depends on data: not made yet");
  CHECK(refused("p[l,i] = g[l,i]\ns = max[a,j](g[a,j])", "i = { below = \"size[l]\" }") ==
        "[a,j] and [l,i] have other extents: one kernel has one list");
  CHECK(refused("p[l,i] = g[l,i]\ns = 1\nq[l,i,j] = w[l,i,j]", "",
                "w = { dtype = \"f32\", shape = [\"N\", \"N\"], list = \"L\" }\nq = { dtype = \"f32\", shape = [\"N\", \"N\"], list = "
                "\"L\", role = "
                "\"out\" }\n")
            .find("single value") != std::string::npos);
  CHECK(refusal(*program_of(
            "name = \"op\"\n[dims]\nM = 3\nN = 4\n[tensors]\nx = { dtype = \"f32\", shape = [\"M\", \"N\"] }\ny = { dtype = \"f32\", "
            "shape = [\"M\", \"N\"], role = \"out\" }\n[compute]\naccumulate = \"f32\"\nbody = \"y[m,n] = x[m,n]\"\n")) ==
        "reads and writes no list of tensors, and no extent depends on data");
}

TEST_CASE("templates without lists refuse them by name") {
  const Program program = lists("p[l,i] = g[l,i]\ns = 1", "i = { below = \"size[l]\" }");
  CHECK(needs_list(program) == "tensor p: lists of tensors (list = \"L\"): not made by this template");
  std::string why_not;
  const auto pattern = parse_template_pattern("out[m,n] = row[n](m)");
  REQUIRE(pattern);
  CHECK(unify(*pattern, plan_groups(program)->front(), program, why_not).empty());
  CHECK(why_not == needs_list(program));
  const Program dense = *program_of(
      "name = \"op\"\n[dims]\nB = 3\nN = 4\n[tensors]\nlen = { dtype = \"i32\", shape = [\"B\"] }\nx = { dtype = \"f32\", shape = [\"B\", "
      "\"N\"], role = \"inout\" }\n[index]\nn = { below = \"len[b]\" }\n[compute]\naccumulate = \"f32\"\nbody = \"x[b,n] = 2 * x[b,n]\"\n");
  CHECK(needs_list(dense) == "index n: an extent that depends on data (below = len[b]): not made by this template");
  CHECK(matched(dense, why_not));
}

TEST_CASE("elements that nothing writes are not read, nor left open in an output") {
  const auto refused = [](const Program& program) {
    const auto groups = plan_groups(program);
    return groups ? std::string() : groups.error().message;
  };
  CHECK(refused(lists("t[l,i] = 2 * g[l,i]\np[l,j] = t[l,j]\ns = 1", "i = { below = \"size[l]\" }\nj = { extent = \"N\" }")) ==
        "not made yet: t is written along i up to size[l], and read at j, which has another bound");
  CHECK(refused(lists("t[l,i] = 2 * g[l,i]\np[a,j] = t[a,j]\ns = 1", "i = { below = \"size[l]\" }\nj = { below = \"size[a]\" }")).empty());
  CHECK(refused(lists("q[l,i] = g[l,i]\np[l,j] = 1\ns = 1", "i = { below = \"size[l]\" }",
                      "q = { dtype = \"f32\", shape = [\"N\"], list = \"L\", role = \"out\" }\n"))
            .find("q has role out and index i: an extent that depends on data") != std::string::npos);
}

TEST_CASE("an optimiser step with loss scaling is three kernels; what is updated is read before") {
  std::ostringstream text;
  text << std::ifstream(std::string(KW_SOURCE_DIR) + "/examples/optimizer_step/adamw_step.op.toml").rdbuf();
  const auto partitions = partitions_of(*program_of(text.str()), judge);
  if (!partitions) FAIL(to_text(partitions.error()));
  CHECK(partitions->front().to_text() == "found_inf, is_bad; is_bad -> param, exp_avg, exp_avg_sq, copy; is_bad -> scale, num_good, step");
}
