// Programs become one group of one contraction, and what is not made yet is refused by name and line.
// SPDX-License-Identifier: Apache-2.0
#include "generator/plan/fusion_group.h"

#include "tests/catch.h"
#include "tests/plan/programs.h"

using namespace kw;
using namespace kw::generator;
using namespace kw::generator::testing;
using Names = std::vector<std::string>;

namespace {

ExprRef product() { return reduce(ReduceOp::kSum, {"k"}, read("A", Names{"m", "k"}) * read("B", Names{"n", "k"})); }

Builder matmul() {
  Builder builder("op");
  builder.dims({"M", "N", "K"}).index("m", "M").index("n", "N").index("k", "K");
  builder.tensor("A", DType::kF16, {"M", "K"})
      .tensor("B", DType::kF16, {"N", "K"})
      .tensor("out", DType::kF16, {"M", "N"}, TensorRole::kOut);
  return builder;
}

std::string refusal(const Program& program) {
  const auto groups = plan_groups(program);
  if (!groups) CHECK(groups.error().code == Code::kNotSupported);
  const std::string why = groups ? groups->front().why_no_contraction : groups.error().message;
  CHECK(why.rfind("not made yet: ", 0) == 0);
  return why;
}

}  // namespace

TEST_CASE("a matmul with an epilogue is one group with its intermediates inlined") {
  const auto groups = plan_groups(matmul_bias_relu());
  REQUIRE(groups);
  REQUIRE(groups->size() == 1);
  const FusionGroup& group = groups->front();
  REQUIRE(group.outputs.size() == 1);
  CHECK(group.contractions.size() == 1);
  CHECK(to_text(group.outputs[0].value) == "relu(sum[k](A[m,k] * B[n,k]) + bias[n])");
}

TEST_CASE("a contraction used twice in one epilogue is one contraction") {
  Builder builder = matmul();
  builder.statement("acc", {"m", "n"}, product(), false);
  builder.statement("out", {"m", "n"}, read("acc", Names{"m", "n"}) * call(Function::kSigmoid, {read("acc", Names{"m", "n"})}), true);
  const auto groups = plan_groups(builder.program);
  REQUIRE(groups);
  CHECK(groups->front().contractions.size() == 1);
}

TEST_CASE("outputs that name their indices differently share the contraction") {
  Builder builder = matmul();
  builder.index("i", "M").index("j", "N").tensor("other", DType::kF32, {"N", "M"}, TensorRole::kOut);
  builder.statement("acc", {"m", "n"}, product(), false);
  builder.statement("out", {"m", "n"}, read("acc", Names{"m", "n"}), true);
  builder.statement_at("other", at({"j", "i"}), {"j", "i"}, read("acc", Names{"i", "j"}), true);
  const auto groups = plan_groups(builder.program);
  REQUIRE(groups);
  CHECK(groups->front().contractions.size() == 1);
  REQUIRE(groups->front().outputs.size() == 2);
  CHECK(to_text(groups->front().outputs[1].subscripts[0]) == "n");
  CHECK(to_text(groups->front().outputs[1].value) == "sum[k](A[m,k] * B[n,k])");
}

TEST_CASE("an output without the contraction is written along with the others") {
  Builder builder = matmul();
  builder.tensor("copy", DType::kF16, {"M", "N"}, TensorRole::kOut);
  builder.statement("copy", {"m", "n"}, number(1), true).statement("out", {"m", "n"}, product(), true);
  const auto groups = plan_groups(builder.program);
  REQUIRE(groups);
  CHECK(groups->front().outputs.size() == 2);
  CHECK(groups->front().contractions.size() == 1);
}

TEST_CASE("an index that is bound in the contraction may be free in the reader") {
  Builder builder("op");
  builder.dims({"M", "K"}).index("m", "M").index("n", "K").index("k", "K");
  builder.tensor("A", DType::kF16, {"M", "K"})
      .tensor("B", DType::kF16, {"K", "K"})
      .tensor("out", DType::kF16, {"M", "K"}, TensorRole::kOut);
  builder.statement("acc", {"m", "n"}, product(), false);
  builder.statement("out", {"m", "k"}, read("acc", Names{"m", "k"}), true);
  const auto groups = plan_groups(builder.program);
  REQUIRE(groups);
  CHECK(to_text(groups->front().outputs[0].value) == "sum[k'](A[m,k'] * B[k,k'])");
}

TEST_CASE("two contractions are refused with both lines") {
  Builder builder = matmul();
  builder.index("d", "K").tensor("C", DType::kF16, {"N", "K"});
  builder.statement("s", {"m", "n"}, product(), false);
  builder.statement("t", {"m", "n"}, reduce(ReduceOp::kSum, {"d"}, read("A", Names{"m", "d"}) * read("C", Names{"n", "d"})), false);
  builder.statement("out", {"m", "n"}, read("s", Names{"m", "n"}) + read("t", Names{"m", "n"}), true);
  CHECK(refusal(builder.program) == "not made yet: two contractions (line 1: s, line 2: t) in one kernel");
}

TEST_CASE("the transpose of a contraction beside it is another contraction") {
  Builder builder("op");
  builder.dims({"M", "K"}).index("m", "M").index("n", "M").index("k", "K");
  builder.tensor("A", DType::kF16, {"M", "K"})
      .tensor("B", DType::kF16, {"M", "K"})
      .tensor("out", DType::kF16, {"M", "M"}, TensorRole::kOut);
  builder.statement("acc", {"m", "n"}, product(), false);
  builder.statement("out", {"m", "n"}, read("acc", Names{"m", "n"}) + read("acc", Names{"n", "m"}), true);
  CHECK(refusal(builder.program).find("two contractions") != std::string::npos);
}

TEST_CASE("pointwise programs and row reductions are groups without a contraction") {
  Builder pointwise = matmul();
  pointwise.statement("out", {"m", "n"}, read("A", Names{"m", "n"}) + number(1), true);
  Builder rows = matmul();
  rows.statement("out", {"m", "n"}, reduce(ReduceOp::kSum, {"k"}, read("A", Names{"m", "k"})), true);
  for (const Builder* builder : {&pointwise, &rows}) {
    const auto groups = plan_groups(builder->program);
    REQUIRE(groups);
    REQUIRE(groups->size() == 1);
    CHECK(groups->front().contractions.empty());
    CHECK_FALSE(has_matrix_product(groups->front()));
  }
}

TEST_CASE("softmax of a product of matrices and nested products are refused by name") {
  Builder softmax = matmul();
  softmax.statement("out", {"m", "n"}, reduce(ReduceOp::kSoftmax, {"n"}, product()), true);
  CHECK(refusal(softmax.program) == "not made yet: softmax (line 1: out): reductions other than a sum of products");

  Builder nested = matmul();
  nested.index("j", "K").statement(
      "out", {"m", "n"},
      reduce(ReduceOp::kSum, {"j"},
             read("A", Names{"m", "j"}) * reduce(ReduceOp::kSum, {"k"}, read("A", Names{"j", "k"}) * read("B", Names{"n", "k"}))),
      true);
  CHECK(refusal(nested.program).find("a reduction inside a reduction") != std::string::npos);
}

TEST_CASE("ragged extents are refused by name") {
  Program ragged = matmul_bias_relu();
  ragged.indices[0].ragged_offsets = "offsets";
  CHECK(refusal(ragged).find("index m: a ragged extent") != std::string::npos);
}

TEST_CASE("40 statements that read their predecessor twice are planned at once, and their text stays short") {
  // Written out as a tree they have 2^40 parts: a walk that does not know where it was never ends.
  const Program program = doubling_rows(40, [](const ExprRef& last) { return call(Function::kRelu, {last}); });
  const auto groups = plan_groups(program);
  REQUIRE(groups);
  const std::string text = to_text(groups->front().outputs[0].value);
  CHECK(text.size() < 2000);
  CHECK(text.rfind("relu(", 0) == 0);
  const Program other = doubling_rows(40, [](const ExprRef& last) { return call(Function::kRelu, {last + make_number(1, DType::kF32)}); });
  CHECK(to_text(plan_groups(other)->front().outputs[0].value) != text);
}

TEST_CASE("values that are different parts by the thousand are refused, not planned for ever") {
  // Each statement reads the one before at two places, the second one of its own: no two parts are equal.
  Builder builder("gathers");
  builder.dims({"M"}).index("m", "M");
  builder.tensor("x", DType::kF32, {"M"}).tensor("out", DType::kF32, {"M"}, TensorRole::kOut);
  std::string before = "x";
  for (int number = 0; number < 40; ++number) {
    const ExprRef shifted = call(Function::kMod, {make_index("m") + make_number(number + 1, DType::kI64), dim("M")}, DType::kI64);
    const std::string target = "t" + std::to_string(number);
    builder.statement(target, {"m"}, read(before, Names{"m"}) * read(before, {shifted}), false);
    before = target;
  }
  builder.statement("out", {"m"}, read(before, Names{"m"}), true);
  CHECK(refusal(builder.program).find("has more than 200000 different parts when its intermediates are written out") != std::string::npos);
}
