// Programs of rows fitted to the row pattern: which index runs along the rows, reductions in phases, what is refused and why.
// SPDX-License-Identifier: Apache-2.0
#include "generator/plan/row_match.h"

#include <fmt/format.h>

#include <cmath>

#include "generator/plan/expr_tools.h"
#include "tests/catch.h"
#include "tests/plan/programs.h"

using namespace kw;
using namespace kw::generator;
using namespace kw::generator::testing;
using Names = std::vector<std::string>;

namespace {

Builder rows() {
  Builder builder("op");
  builder.dims({"B", "M", "N"}).index("b", "B").index("m", "M").index("n", "N").index("j", "N");
  builder.tensor("x", DType::kBF16, {"M", "N"}).tensor("out", DType::kBF16, {"M", "N"}, TensorRole::kOut);
  return builder;
}

ExprRef x(const std::string& column = "n") { return read("x", Names{"m", column}); }
ExprRef sum(const std::string& index, const ExprRef& value) { return reduce(ReduceOp::kSum, {index}, value); }

std::vector<PatternMatch> matches(const Program& program, std::string& why_not) {
  const TemplatePattern pattern = *parse_template_pattern("out[m,n] = row[n](m)");
  const auto groups = plan_groups(program);
  REQUIRE(groups);
  return unify(pattern, groups->front(), program, why_not);
}

PatternMatch match(const Program& program) {
  std::string why_not;
  const std::vector<PatternMatch> found = matches(program, why_not);
  INFO(why_not);
  REQUIRE(found.size() == 1);
  return found.front();
}

std::string refusal(const Program& program) {
  std::string why_not;
  CHECK(matches(program, why_not).empty());
  return why_not;
}

}  // namespace

TEST_CASE("a row pattern names the rows and the index along them") {
  const auto pattern = parse_template_pattern("out[m,n] = row[n](m)");
  REQUIRE(pattern);
  CHECK(pattern->is_row);
  CHECK(pattern->operands.empty());
  CHECK_FALSE(parse_template_pattern("out[m,n] = row[m](n)"));
  CHECK_FALSE(parse_template_pattern("out[m,n] = row[n]"));
}

TEST_CASE("a reduction over another index of the same extent runs along the row") {
  Builder builder = rows();
  builder.statement("out", {"m", "n"}, x() * sum("j", x("j") * x("j")), true);
  const PatternMatch found = match(builder.program);
  REQUIRE(found.reductions.size() == 1);
  CHECK(to_text(found.reductions[0].operand) == "x[m,n] * x[m,n]");
  CHECK(found.reductions[0].phase == 0);
  CHECK(to_text(found.outputs[0].value) == "x[m,n] * row_sum[]");
  CHECK(found.extents.at("m").to_text() == "M");
  CHECK(found.extents.at("n").to_text() == "N");
  CHECK(found.bytes_per_column == 2);
}

TEST_CASE("softmax is a maximum, then a sum; equal reductions are one") {
  Builder builder = rows();
  builder.tensor("total", DType::kF32, {"M"}, TensorRole::kOut);
  builder.statement("out", {"m", "n"}, reduce(ReduceOp::kSoftmax, {"n"}, x()), true);
  builder.statement("total", {"m"}, reduce(ReduceOp::kLogSumExp, {"j"}, x("j")), true);
  const PatternMatch found = match(builder.program);
  REQUIRE(found.reductions.size() == 2);
  CHECK(found.reductions[0].op == ReduceOp::kMax);
  CHECK(found.reductions[1].op == ReduceOp::kSum);
  CHECK(found.reductions[1].phase == 1);
  CHECK(to_text(found.reductions[1].operand) == "exp(x[m,n] - where(row_max[] == -inf, 0.0, row_max[]))");
}

TEST_CASE("a reduction inside a reduction is an earlier phase") {
  Builder builder = rows();
  const ExprRef center = call(Function::kSub, {x("n"), reduce(ReduceOp::kMean, {"j"}, x("j"))});
  builder.statement("out", {"m", "n"}, sum("n", center * center) * x(), true);
  const PatternMatch found = match(builder.program);
  REQUIRE(found.reductions.size() == 2);
  CHECK(to_text(found.reductions[1].operand) == "(x[m,n] - row_sum[] / N) * (x[m,n] - row_sum[] / N)");
  CHECK(found.reductions[1].name == "row_sum_2");
}

TEST_CASE("rows of several indices are one, by division where memory does not follow") {
  Builder builder("op");
  builder.dims({"B", "M", "N"}).index("b", "B").index("m", "M").index("n", "N");
  builder.tensor("x", DType::kF16, {"B", "M", "N"}).tensor("w", DType::kF16, {"M", "N"});
  builder.tensor("out", DType::kF16, {"B", "M", "N"}, TensorRole::kOut);
  const ExprRef value = read("x", Names{"b", "m", "n"});
  builder.statement("out", {"b", "m", "n"}, value * read("w", Names{"m", "n"}) * sum("n", value), true);
  const PatternMatch found = match(builder.program);
  CHECK(found.extents.at("m").to_text() == "B * M");
  CHECK(to_text(found.reductions[0].operand) == "x[m // M,m % M,n]");
  CHECK(to_text(found.outputs[0].value) == "x[m // M,m % M,n] * w[m % M,n] * row_sum[]");
}

TEST_CASE("a pointwise program runs along its contiguous index") {
  Builder builder = rows();
  builder.tensor("turned", DType::kBF16, {"N", "M"}, TensorRole::kOut);
  builder.statement("turned", {"n", "m"}, call(Function::kRelu, {x()}), true);
  const PatternMatch found = match(builder.program);
  CHECK(found.reductions.empty());
  CHECK(found.extents.at("n").to_text() == "M");
  CHECK(found.index_map.at("n") == "m");
}

TEST_CASE("a matrix times a vector is a function of rows") {
  Builder builder("op");
  builder.dims({"M", "N"}).index("m", "M").index("n", "N");
  builder.tensor("A", DType::kF16, {"M", "N"}).tensor("v", DType::kF16, {"N"}).tensor("out", DType::kF16, {"M"}, TensorRole::kOut);
  builder.statement("out", {"m"}, sum("n", read("A", Names{"m", "n"}) * read("v", Names{"n"})), true);
  const PatternMatch found = match(builder.program);
  CHECK(found.bytes_per_column == 4);
  CHECK(to_text(found.outputs[0].value) == "row_sum[]");
}

TEST_CASE("a product of matrices is rows of both, and says how often the operand read least often is read") {
  Builder product = rows();
  product.tensor("w", DType::kBF16, {"K", "N"}).dims({"K"}).index("k", "K").tensor("y", DType::kF32, {"M", "K"}, TensorRole::kOut);
  product.statement("y", {"m", "k"}, sum("j", x("j") * read("w", Names{"k", "j"})), true);
  const PatternMatch found = match(product.program);
  CHECK(found.extents.at("m").to_text() == "K * M");
  CHECK(found.extents.at("n").to_text() == "N");
  CHECK(found.extents.at("shared").evaluate({{"M", 3}, {"K", 50}, {"N", 7}}) == 3);
  CHECK(found.extents.at("shared").evaluate({{"M", 300}, {"K", 50}, {"N", 7}}) == 50);

  Builder plain = rows();
  plain.statement("out", {"m", "n"}, sum("j", x("j")) * x(), true);
  CHECK(match(plain.program).extents.at("shared") == IntExpr(1));
}

TEST_CASE("an infinite maximum makes a logsumexp infinite, and shares the sum with a softmax") {
  Builder builder = rows();
  builder.tensor("total", DType::kF32, {"M"}, TensorRole::kOut);
  builder.statement("total", {"m"}, reduce(ReduceOp::kLogSumExp, {"j"}, x("j")), true);
  CHECK_THAT(to_text(match(builder.program).outputs[0].value), contains_text("where(row_max[] == inf, inf, "));
}

TEST_CASE("one element a row that is updated in place is read for nothing else") {
  Builder builder = rows();
  builder.tensor("count", DType::kF32, {"M"}, TensorRole::kInOut);
  builder.statement("count", {"m"}, read("count", Names{"m"}) + sum("j", x("j")), true);
  CHECK(match(builder.program).outputs.size() == 1);
  builder.statement("out", {"m", "n"}, x() * read("count", Names{"m"}), true);
  CHECK_THAT(refusal(builder.program), contains_text("count has one element a row, is updated in place"));
}

// The product was taken at the row's own index instead of the one that the softmax runs over: a uniform softmax.
TEST_CASE("a reduction inside a softmax that depends on its index is none of the row") {
  Builder builder = rows();
  builder.tensor("square", DType::kF32, {"N", "N"}).tensor("y", DType::kF32, {"N"}, TensorRole::kOut);
  builder.statement("y", {"n"}, reduce(ReduceOp::kSoftmax, {"n"}, sum("j", read("square", Names{"n", "j"}))), true);
  CHECK_THAT(refusal(builder.program), contains_text("depends on n, over which a reduction around it runs"));
}

TEST_CASE("what is no function of rows is refused with the reason") {
  Builder two = rows();
  two.index("i", "M").statement("out", {"m", "n"}, sum("j", x("j")) + sum("i", read("x", Names{"i", "n"})), true);
  CHECK_THAT(refusal(two.program), contains_text("one kernel has rows of one length"));

  Builder order = rows();
  order.statement("out", {"m", "n"}, reduce(ReduceOp::kCumSum, {"n"}, x("n")) * x(), true);
  CHECK_THAT(refusal(order.program), contains_text("cumsum"));

  Builder shifted = rows();
  shifted.program.tensors[1].role = TensorRole::kInOut;
  const ExprRef right = read(
      "out", {make_index("m"),
              call(Function::kMod, {call(Function::kAdd, {make_index("n"), number(1, DType::kI64)}, DType::kI64), dim("N")}, DType::kI64)});
  shifted.statement("out", {"m", "n"}, x() + right, true);
  CHECK(refusal(shifted.program) == "out is written and also read at other elements: not made yet");
}

TEST_CASE("an update in place is read at its own elements, in reductions too") {
  Builder builder = rows();
  builder.program.tensors[1].role = TensorRole::kInOut;
  const auto total = [](const std::string& column) { return read("x", Names{"m", column}) + read("out", Names{"m", column}); };
  builder.statement("out", {"m", "n"}, total("n") * sum("j", total("j") * total("j")), true);
  CHECK(match(builder.program).reductions.size() == 1);
}

TEST_CASE("a norm of a value that is reached on 2^40 ways is matched at once") {
  const Program program = doubling_rows(40, [](const ExprRef& last) {
    const ExprRef along_j = read(last->name, Names{"m", "j"});
    return last * call(Function::kRsqrt, {reduce(ReduceOp::kMean, {"j"}, along_j * along_j)}) + reduce(ReduceOp::kMax, {"j"}, along_j);
  });
  const PatternMatch found = match(program);  // a walk that comes to a node more than once does not end
  CHECK(found.reductions.size() == 2);
  CHECK(found.bytes_per_column == 4);
}

// An inlined softmax kept its own index where it is read at another: the kernel took the surrounding column for it, and was wrong.
TEST_CASE("a softmax that is read at another index is written out there") {
  Builder builder = rows();
  builder.statement("t", {"m", "n"}, reduce(ReduceOp::kSoftmax, {"n"}, x()), false);
  builder.statement("out", {"m", "n"}, sum("j", read("t", Names{"m", "j"}) * x("j")), true);
  const PatternMatch found = match(builder.program);
  REQUIRE(found.reductions.size() == 3);  // maximum, sum of exponentials, sum of products
  CHECK(found.reductions[2].op == ReduceOp::kSum);
  CHECK(found.reductions[2].phase == 2);
  CHECK(depends_on(found.reductions[2].operand, {"n"}));
  CHECK(found.outputs[0].value->kind == ExprNode::Kind::kRead);  // the last sum alone
}

TEST_CASE("argmax is a maximum, then the first position that holds it; count is a sum; both hold positions as reals") {
  Builder builder = rows();
  builder.tensor("best", DType::kI64, {"M"}, TensorRole::kOut).tensor("large", DType::kI64, {"M"}, TensorRole::kOut);
  ExprNode argmax = *reduce(ReduceOp::kArgmax, {"j"}, x("j"));
  argmax.dtype = DType::kI64;
  ExprNode count = *reduce(ReduceOp::kCount, {"j"}, call(Function::kGt, {x("j"), number(1)}, DType::kBool));
  count.dtype = DType::kI64;
  builder.statement("best", {"m"}, std::make_shared<const ExprNode>(argmax), true);
  builder.statement("large", {"m"}, std::make_shared<const ExprNode>(count), true);
  std::string why_not;
  const auto found = matches(builder.program, why_not);
  INFO(why_not);
  REQUIRE(found.size() == 1);
  CHECK(found[0].counts_columns);
  REQUIRE(found[0].reductions.size() == 3);
  CHECK(found[0].reductions[0].phase == 0);
  CHECK(found[0].reductions[2].phase == 1);
  CHECK(found[0].reductions[2].op == ReduceOp::kMin);
}

TEST_CASE("topk of a known rank is the largest of what is left by the ranks before it") {
  const auto refusal_of_rank = [](const ExprRef& rank) {
    Builder builder = rows();
    ExprNode topk = *reduce(ReduceOp::kTopK, {"j"}, x("j"));
    topk.operands.push_back(rank);
    builder.statement("out", {"m", "n"}, std::make_shared<const ExprNode>(topk) * x(), true);
    std::string why_not;
    const auto found = matches(builder.program, why_not);
    return found.empty() ? why_not : fmt::format("{} phases", found[0].reductions.back().phase + 1);
  };
  CHECK(refusal_of_rank(number(0, DType::kI64)) == "1 phases");
  CHECK(refusal_of_rank(number(2, DType::kI64)) == "5 phases");
  CHECK_THAT(refusal_of_rank(number(4, DType::kI64)), contains_text("topk of a rank above 3"));
  CHECK_THAT(refusal_of_rank(make_index("n")), contains_text("topk of a rank that is no number"));
}

TEST_CASE("positions are no sums of less than 32 bits") {
  Builder builder = rows();
  builder.program.accumulate = DType::kF16;
  ExprNode argmax = *reduce(ReduceOp::kArgmax, {"j"}, x("j"));
  argmax.operands[0] = read("x", Names{"m", "j"}, DType::kF16);
  argmax.dtype = DType::kI64;
  builder.tensor("best", DType::kI64, {"M"}, TensorRole::kOut);
  builder.statement("best", {"m"}, std::make_shared<const ExprNode>(argmax), true);
  CHECK_THAT(refusal(builder.program), contains_text("argmax with sums of less than 32 bits"));
}
