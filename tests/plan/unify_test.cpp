// A group is fitted to the gemm pattern: transpositions, batches, strides, factors, flattened indices; what does not fit says why.
// SPDX-License-Identifier: Apache-2.0
#include "generator/plan/fusion_group.h"
#include "tests/catch.h"
#include "tests/plan/programs.h"

using namespace kw;
using namespace kw::generator;
using namespace kw::generator::testing;
using Names = std::vector<std::string>;

namespace {

std::vector<PatternMatch> match(const Program& program, std::string* reason = nullptr) {
  const TemplatePattern pattern = *parse_template_pattern("out[b,m,n] = epilogue(sum[k](A[b,m,k] * B[b,k,n]))");
  const auto groups = plan_groups(program);
  if (!groups) INFO(groups.error().message);
  REQUIRE(groups);
  std::string why_not;
  std::vector<PatternMatch> matches = unify(pattern, groups->front(), program, why_not);
  CHECK(matches.empty() == !why_not.empty());
  if (reason != nullptr) *reason = why_not;
  return matches;
}

std::string text(const IntExpr& expr) { return expr.to_text(); }

/// out[<left>] = sum[<reduced>](X[<x>] * Y[<y>]) with row-major tensors of the indices' extents (upper case).
Program contraction(const Names& left, const Names& reduced, const Names& x, const Names& y) {
  Builder builder("op");
  std::set<std::string> names;
  for (const Names& list : {left, reduced}) names.insert(list.begin(), list.end());
  const auto extents = [](const Names& indices) {
    Names result;
    for (const std::string& index : indices) result.push_back(std::string(1, static_cast<char>(std::toupper(index[0]))));
    return result;
  };
  for (const std::string& name : names) builder.dims(extents({name})).index(name, extents({name})[0]);
  builder.tensor("X", DType::kF16, extents(x))
      .tensor("Y", DType::kF16, extents(y))
      .tensor("out", DType::kF16, extents(left), TensorRole::kOut);
  builder.statement("out", left, reduce(ReduceOp::kSum, reduced, read("X", x) * read("Y", y)), true);
  return builder.program;
}

}  // namespace

TEST_CASE("the example fits with both operands contiguous along k") {
  const auto matches = match(matmul_bias_relu());
  REQUIRE(matches.size() == 2);
  const PatternMatch& best = matches[0];
  CHECK(best.operands.at("A").tensor == "A");
  CHECK(text(best.operands.at("A").strides.at("m")) == "K");
  CHECK(text(best.operands.at("A").strides.at("k")) == "1");
  CHECK(text(best.operands.at("B").strides.at("k")) == "1");
  CHECK(text(best.operands.at("B").strides.at("n")) == "K");
  CHECK(best.index_map.at("b").empty());
  CHECK(text(best.extents.at("b")) == "1");
  CHECK(text(best.extents.at("n")) == "N");
  CHECK(text(best.outputs[0].strides.at("n")) == "1");
  CHECK(to_text(best.outputs[0].value) == "relu(acc'[] + bias[n])");
  CHECK(matches[1].operands.at("A").tensor == "B");
}

TEST_CASE("the best match has n as the fastest index of the first output, whatever the order of the product") {
  for (const auto& [x, y] : {std::pair{Names{"i", "k"}, Names{"j", "k"}}, std::pair{Names{"j", "k"}, Names{"i", "k"}},
                             std::pair{Names{"k", "j"}, Names{"k", "i"}}}) {
    const auto matches = match(contraction({"i", "j"}, {"k"}, x, y));
    REQUIRE(matches.size() == 2);
    CHECK(matches[0].index_map.at("n") == "j");
    CHECK(text(matches[0].outputs[0].strides.at("n")) == "1");
    CHECK(text(matches[0].outputs[0].strides.at("m")) == "J");
  }
}

TEST_CASE("a batch index is in both operands and the output") {
  const auto matches = match(contraction({"g", "i", "j"}, {"k"}, {"g", "i", "k"}, {"g", "k", "j"}));
  REQUIRE_FALSE(matches.empty());
  CHECK(matches[0].index_map.at("b") == "g");
  CHECK(text(matches[0].operands.at("A").strides.at("b")) == "I * K");
  CHECK(text(matches[0].extents.at("b")) == "G");
}

TEST_CASE("an index of one operand before its rows flattens into the rows") {
  const auto matches = match(contraction({"g", "i", "j"}, {"k"}, {"g", "i", "k"}, {"k", "j"}));
  REQUIRE_FALSE(matches.empty());
  CHECK(matches[0].index_map.at("m") == "g,i");
  CHECK(matches[0].index_map.at("b").empty());
  CHECK(text(matches[0].extents.at("m")) == "G * I");
  CHECK(text(matches[0].operands.at("A").strides.at("m")) == "K");
}

TEST_CASE("an index that does not flatten becomes a batch in which the other operand repeats") {
  const auto matches = match(contraction({"i", "g", "j"}, {"k"}, {"g", "i", "k"}, {"k", "j"}));
  REQUIRE_FALSE(matches.empty());
  CHECK_FALSE(matches[0].index_map.at("b").empty());
  CHECK(text(matches[0].operands.at("B").strides.at("b")) == "0");
}

TEST_CASE("several batch indices flatten or are refused by name") {
  const auto flat = match(contraction({"g", "h", "i", "j"}, {"k"}, {"g", "h", "i", "k"}, {"g", "h", "k", "j"}));
  REQUIRE_FALSE(flat.empty());
  CHECK(flat[0].index_map.at("b") == "g,h");
  std::string why;
  CHECK(match(contraction({"g", "h", "i", "j"}, {"k"}, {"g", "i", "h", "k"}, {"g", "j", "h", "k"}), &why).empty());
  CHECK(why == "indices g,h do not flatten into one with a common stride (in X)");
}

TEST_CASE("two reduced indices flatten into k") {
  const auto matches = match(contraction({"i", "j"}, {"p", "q"}, {"i", "p", "q"}, {"p", "q", "j"}));
  REQUIRE_FALSE(matches.empty());
  CHECK(matches[0].index_map.at("k") == "p,q");
  CHECK(text(matches[0].operands.at("A").strides.at("k")) == "1");
  CHECK(text(matches[0].operands.at("B").strides.at("k")) == "J");
}

TEST_CASE("a matrix times a vector has one column") {
  const auto matches = match(contraction({"i"}, {"k"}, {"i", "k"}, {"k"}));
  REQUIRE(matches.size() == 2);
  CHECK(matches[0].index_map.at("n") == "i");
  CHECK(text(matches[0].extents.at("m")) == "1");
}

// Its n was taken for the output's, that is for a batch over which the sum was shifted: reads beyond the tensor.
TEST_CASE("a bound index of the output's name is another index") {
  Builder builder("op");
  builder.dims({"M", "N"}).index("m", "M").index("n", "N");
  builder.tensor("x", DType::kF32, {"N"}).tensor("w", DType::kF32, {"M", "N"}).tensor("out", DType::kF32, {"M", "N"}, TensorRole::kOut);
  const ExprRef product = reduce(ReduceOp::kSum, {"n"}, read("x", Names{"n"}) * read("w", Names{"m", "n"}));
  builder.statement("out", {"m", "n"}, read("w", Names{"m", "n"}) + product * read("x", Names{"n"}), true);
  std::string reason;
  CHECK(match(builder.program, &reason).empty());
  CHECK(reason == "index n is in no operand: an output that repeats the contraction is not made yet");
  builder.tensor("y", DType::kF32, {"N", "N"});
  builder.program.statements.clear();
  builder.statement("out", {"m", "n"}, reduce(ReduceOp::kSum, {"n"}, read("w", Names{"m", "n"}) * read("y", Names{"n", "n"})), true);
  CHECK(match(builder.program).empty());
}

TEST_CASE("a tensor may be both operands") {
  const auto matches = match(contraction({"i", "j"}, {"k"}, {"i", "k"}, {"j", "k"}));
  Program program = contraction({"m", "n"}, {"k"}, {"m", "k"}, {"n", "k"});
  program.statements[0].value = reduce(ReduceOp::kSum, {"k"}, read("X", Names{"m", "k"}) * read("X", Names{"n", "k"}));
  const auto twice = match(program);
  REQUIRE_FALSE(twice.empty());
  CHECK(twice[0].operands.at("A").tensor == "X");
  CHECK(twice[0].operands.at("B").tensor == "X");
}

TEST_CASE("affine subscripts give strides and offsets") {
  Program program = contraction({"m", "n"}, {"k"}, {"m", "k"}, {"n", "k"});
  const ExprRef shifted = call(Function::kAdd, {make_index("k"), number(3, DType::kI64)}, DType::kI64);
  const ExprRef doubled = call(Function::kMul, {number(2, DType::kI64), make_index("m")}, DType::kI64);
  program.statements[0].value = reduce(ReduceOp::kSum, {"k"}, read("X", {doubled, shifted}) * read("Y", Names{"n", "k"}));
  const auto matches = match(program);
  REQUIRE_FALSE(matches.empty());
  CHECK(text(matches[0].operands.at("A").strides.at("m")) == "2 * K");
  CHECK(text(matches[0].operands.at("A").offset) == "3");
}

TEST_CASE("factors without the reduced index move to the epilogue") {
  Program program = contraction({"m", "n"}, {"k"}, {"m", "k"}, {"n", "k"});
  const ExprRef alpha = scalar("alpha");
  program.scalars.push_back({"alpha", nullptr, DType::kF32});
  program.statements[0].value =
      reduce(ReduceOp::kSum, {"k"}, call(Function::kDiv, {alpha * read("X", Names{"m", "k"}) * read("Y", Names{"n", "k"}), number(4)}));
  const auto matches = match(program);
  REQUIRE_FALSE(matches.empty());
  CHECK(to_text(matches[0].outputs[0].value) == "acc'[] * alpha / 4.0");
}

TEST_CASE("index values and reads of flattened indices become quotients and remainders") {
  Program program = contraction({"g", "i", "j"}, {"k"}, {"g", "i", "k"}, {"k", "j"});
  program.statements[0].value = program.statements[0].value + read("scale", Names{"i"});
  const auto matches = match(program);
  REQUIRE_FALSE(matches.empty());
  CHECK(to_text(matches[0].outputs[0].value) == "acc'[] + scale[m % I]");
}

TEST_CASE("what does not fit says why") {
  std::string why;
  Program gather = contraction({"m", "n"}, {"k"}, {"m", "k"}, {"n", "k"});
  gather.statements[0].value =
      reduce(ReduceOp::kSum, {"k"}, read("X", {read("idx", Names{"m"}, DType::kI64), make_index("k")}) * read("Y", Names{"n", "k"}));
  CHECK(match(gather, &why).empty());
  CHECK(why == "subscript idx[m] of X is not affine in the indices: gathered operands are not made yet");

  Program three = contraction({"m", "n"}, {"k"}, {"m", "k"}, {"n", "k"});
  three.statements[0].value =
      reduce(ReduceOp::kSum, {"k"}, read("X", Names{"m", "k"}) * read("Y", Names{"n", "k"}) * read("Y", Names{"n", "k"}));
  CHECK(match(three, &why).empty());
  CHECK(why == "the sum multiplies 3 tensors over k, the template 2");

  Program masked = contraction({"m", "n"}, {"k"}, {"m", "k"}, {"n", "k"});
  masked.statements[0].value =
      reduce(ReduceOp::kSum, {"k"}, call(Function::kExp, {read("X", Names{"m", "k"})}) * read("Y", Names{"n", "k"}));
  CHECK(match(masked, &why).empty());
  CHECK(why == "factor exp(X[m,k]) of the sum is not a plain read of a tensor");

  CHECK(match(contraction({"i"}, {"k"}, {"i", "k"}, {"i", "k"}), &why).empty());
  CHECK(why == "neither operand has an index of its own: row reductions are not made yet");

  CHECK(match(contraction({"i", "j", "r"}, {"k"}, {"i", "k"}, {"j", "k"}), &why).empty());
  CHECK(why == "index r is in no operand: an output that repeats the contraction is not made yet");
}

TEST_CASE("a tensor is updated in place only at its own element") {
  Builder builder("op");
  builder.dims({"M", "K"}).index("m", "M").index("n", "M").index("k", "K");
  builder.tensor("A", DType::kF16, {"M", "K"})
      .tensor("B", DType::kF16, {"M", "K"})
      .tensor("x", DType::kF32, {"M", "M"}, TensorRole::kInOut);
  const ExprRef sum = reduce(ReduceOp::kSum, {"k"}, read("A", Names{"m", "k"}) * read("B", Names{"n", "k"}));
  builder.statement("x", {"m", "n"}, sum + read("x", Names{"m", "n"}), true);
  CHECK_FALSE(match(builder.program).empty());
  builder.program.statements[0].value = sum + read("x", Names{"n", "m"});
  std::string why;
  CHECK(match(builder.program, &why).empty());
  CHECK(why == "x is written and also read at other elements: not made yet");
}

namespace {

constexpr const char* kPair = "out[b,m,n] = epilogue(sum[k](A[b,m,k] * B[b,k,n]), sum[k](A[b,m,k] * B2[b,k,n]))";

/// out[i,j] = X[i,k] Y[<y>] summed over k, times 2 X2 Z[<z>] summed over `reduced`.
Program pair(const Names& y, const Names& z, const std::string& reduced, const char* second_left) {
  Builder builder("pair");
  builder.dims({"I", "J", "K"}).index("i", "I").index("j", "J").index("k", "K").index("p", "K");
  const auto extents = [](const Names& indices) {
    Names result;
    for (const std::string& index : indices) result.push_back(index == "j" ? "J" : "K");
    return result;
  };
  builder.tensor("X", DType::kF16, {"I", "K"}).tensor("W", DType::kF16, {"I", "K"});
  builder.tensor("Y", DType::kF16, extents(y))
      .tensor("Z", DType::kF16, extents(z))
      .tensor("out", DType::kF16, {"I", "J"}, TensorRole::kOut);
  const ExprRef first = reduce(ReduceOp::kSum, {"k"}, read("X", Names{"i", "k"}) * read("Y", y));
  const ExprRef second = reduce(ReduceOp::kSum, {reduced}, read(second_left, Names{"i", reduced}) * number(2) * read("Z", z));
  builder.statement("out", {"i", "j"}, call(Function::kSilu, {first}) * second, true);
  return builder.program;
}

std::vector<PatternMatch> match_pair(const Program& program, std::string& why_not) {
  const auto groups = plan_groups(program);
  REQUIRE(groups);
  return unify(*parse_template_pattern(kPair), groups->front(), program, why_not);
}

}  // namespace

TEST_CASE("two contractions with one operand in common fit the pair, whatever their reduced indices are called") {
  for (const char* reduced : {"k", "p"}) {
    std::string why;
    const auto matches = match_pair(pair({"k", "j"}, {"j", reduced}, reduced, "X"), why);
    REQUIRE(matches.size() == 1);
    CHECK(matches[0].operands.at("A").tensor == "X");
    CHECK(matches[0].operands.at("B").tensor == "Y");
    CHECK(matches[0].operands.at("B2").tensor == "Z");
    CHECK(text(matches[0].operands.at("B").strides.at("n")) == "1");
    CHECK(text(matches[0].operands.at("B2").strides.at("n")) == "K");
    CHECK(to_text(matches[0].outputs[0].value) == "silu(acc'[]) * (acc2'[] * 2.0)");
  }
}

TEST_CASE("what is no pair is refused with the reason, and a pair is none of a template of one contraction") {
  std::string why;
  CHECK(match_pair(contraction({"i", "j"}, {"k"}, {"i", "k"}, {"k", "j"}), why).empty());
  CHECK(why == "the template takes two contractions with one operand in common");
  CHECK(match_pair(pair({"k", "j"}, {"k", "j"}, "k", "W"), why).empty());
  CHECK(why == "the two contractions have no operand in common");
  CHECK(match(pair({"k", "j"}, {"k", "j"}, "k", "X"), &why).empty());
  CHECK_THAT(why, contains_text("two contractions"));
}

TEST_CASE("outputs of either contraction of a pair share its kernel") {
  for (const char* second : {"Y", "Z"}) {
    Program program = pair({"k", "j"}, {"k", "j"}, "k", "X");
    Builder builder("more");
    builder.program = program;
    builder.tensor("raw", DType::kF16, {"I", "J"}, TensorRole::kOut);
    builder.statement("raw", {"i", "j"}, reduce(ReduceOp::kSum, {"k"}, read("X", Names{"i", "k"}) * read(second, Names{"k", "j"})), true);
    std::string why;
    const auto matches = match_pair(builder.program, why);
    INFO(second << ": " << why);
    // Twice Z is another sum than Z: factors are part of it.
    CHECK(matches.size() == (second == std::string("Y") ? 1 : 0));
  }
}
