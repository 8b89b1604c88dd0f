// Cuts of a program: which values are stored between kernels, and that no step reads what no step before it has written.
// SPDX-License-Identifier: Apache-2.0
#include "generator/plan/partition.h"

#include <fmt/format.h>

#include <random>
#include <set>

#include "generator/plan/expr_tools.h"
#include "tests/catch.h"
#include "tests/plan/programs.h"

using namespace kw;
using namespace kw::generator;
using namespace kw::generator::testing;
using Names = std::vector<std::string>;

namespace {

std::size_t num_reductions(const ExprRef& expr) {
  std::size_t count = expr->kind == ExprNode::Kind::kReduce ? 1 : 0;
  for (const ExprRef& operand : expr->operands) count += num_reductions(operand);
  return count;
}

/// A kernel that works out at most so many reductions.
CanMake at_most(std::size_t max_reductions) {
  return [max_reductions](const Program& step) -> Status {
    std::size_t count = 0;
    for (const Statement& statement : step.statements) count += num_reductions(statement.value);
    if (count <= max_reductions) return {};
    return fail(Stage::kPlan, Code::kNotSupported, fmt::format("{} reductions in {}", count, step.name));
  };
}

std::vector<std::string> cuts(const Program& program, const CanMake& can_make) {
  const auto partitions = partitions_of(program, can_make);
  if (!partitions) FAIL(to_text(partitions.error()));
  std::vector<std::string> texts;
  for (const Partition& partition : *partitions) texts.push_back(partition.to_text());
  return texts;
}

ExprRef product(const std::string& a, const std::string& b) {
  return reduce(ReduceOp::kSum, {"k"}, read(a, Names{"m", "k"}) * read(b, Names{"n", "k"}));
}

Builder two_products() {
  Builder builder("op");
  builder.dims({"M", "N", "K"}).index("m", "M").index("n", "N").index("k", "K");
  builder.tensor("x", DType::kF16, {"M", "K"}).tensor("gate", DType::kF16, {"N", "K"}).tensor("up", DType::kF16, {"N", "K"});
  return builder;
}

/// No step reads an intermediate, or an output, that no step before it has written; every output is written once.
void check_order(const Program& program, const Partition& partition) {
  std::multiset<std::string> written;
  for (const Program& step : partition.steps) {
    std::vector<std::string> writes;
    for (const Tensor& tensor : step.tensors) {
      if (tensor.role != TensorRole::kIn) {
        writes.push_back(tensor.name);
        continue;
      }
      const Tensor* of_op = program.find_tensor(tensor.name);
      const bool is_input = of_op != nullptr && of_op->role != TensorRole::kOut;
      CHECK((is_input || written.count(tensor.name) == 1));
    }
    written.insert(writes.begin(), writes.end());
    for (const Statement& statement : step.statements) {
      if (statement.is_tensor) CHECK(step.find_tensor(statement.target) != nullptr);
    }
  }
  for (const Tensor& tensor : program.tensors) {
    if (tensor.role == TensorRole::kOut) CHECK(written.count(tensor.name) == 1);
  }
  for (const Tensor& tensor : partition.intermediates) CHECK(written.count(tensor.name) == 1);
}

/// A program of `num_statements` over x[m,n] and w[n]: pointwise values and row reductions of what stands before, some of it stored.
Program random_program(std::uint32_t seed, int num_statements) {
  std::mt19937 random(seed);
  Builder builder("op");
  builder.dims({"M", "N"}).index("m", "M").index("n", "N").index("j", "N");
  builder.tensor("x", DType::kF32, {"M", "N"}).tensor("w", DType::kF32, {"N"});
  std::vector<std::string> wide = {"x"}, narrow;  // values over m and n, and over m
  for (int i = 0; i < num_statements; ++i) {
    const std::string name = fmt::format("v{}", i);
    const auto any = [&](const std::vector<std::string>& names) { return names[random() % names.size()]; };
    if (random() % 3 == 0) {
      builder.statement(name, {"m"}, reduce(ReduceOp::kSum, {"j"}, read(any(wide), Names{"m", "j"})), false);
      narrow.push_back(name);
      continue;
    }
    ExprRef value = read(any(wide), Names{"m", "n"}) * read("w", Names{"n"});
    if (random() % 2 == 0) value = value * read(any(wide), Names{"m", "n"});
    if (!narrow.empty() && random() % 2 == 0) value = value * read(any(narrow), Names{"m"});
    if (random() % 4 == 0) value = call(Function::kExp, {value * reduce(ReduceOp::kMax, {"j"}, read(any(wide), Names{"m", "j"}))});
    builder.statement(name, {"m", "n"}, value, false);
    wide.push_back(name);
    if (random() % 4 == 0) {
      const std::string output = fmt::format("out{}", i);
      builder.tensor(output, DType::kF32, {"M", "N"}, TensorRole::kOut);
      builder.statement(output, {"m", "n"}, read(name, Names{"m", "n"}), true);
    }
  }
  builder.tensor("out", DType::kF32, {"M", "N"}, TensorRole::kOut);
  builder.statement("out", {"m", "n"}, read(wide.back(), Names{"m", "n"}) * read("w", Names{"n"}), true);
  return builder.program;
}

}  // namespace

TEST_CASE("what one kernel makes is not cut") { CHECK(cuts(matmul_bias_relu(), at_most(1)) == std::vector<std::string>{"out"}); }

TEST_CASE("a program of two products is cut at either, and reductions inside values have names") {
  Builder builder = two_products();
  builder.tensor("out", DType::kF16, {"M", "N"}, TensorRole::kOut);
  builder.statement("out", {"m", "n"}, call(Function::kSilu, {product("x", "gate")}) * product("x", "up"), true);
  const std::vector<std::string> found = cuts(builder.program, at_most(1));
  CHECK(found == std::vector<std::string>{"out_sum2; out_sum2 -> out", "out_sum; out_sum -> out"});
  CHECK(cuts(builder.program, at_most(2)) == std::vector<std::string>{"out"});
  const auto unfused = unfused_partition(builder.program);
  REQUIRE(unfused);
  CHECK(unfused->to_text() == "out_sum; out_sum2; out_sum, out_sum2 -> out");
  check_order(builder.program, *unfused);
}

TEST_CASE("a reduction over several indices is one for each, along memory first; a contraction over two stays whole") {
  Builder builder("axes");
  builder.dims({"M", "P", "Q", "N"}).index("m", "M").index("p", "P").index("q", "Q").index("n", "N");
  builder.tensor("x", DType::kF32, {"M", "P", "Q"}).tensor("y", DType::kF32, {"P", "Q", "N"});
  builder.tensor("top", DType::kF32, {"M"}, TensorRole::kOut).tensor("out", DType::kF32, {"M", "N"}, TensorRole::kOut);
  const ExprRef x = read("x", Names{"m", "p", "q"});
  builder.statement("top", {"m"}, reduce(ReduceOp::kMax, {"q", "p"}, x), true);
  builder.statement("out", {"m", "n"}, reduce(ReduceOp::kSum, {"p", "q"}, x * read("y", Names{"p", "q", "n"})), true);
  const auto unfused = unfused_partition(builder.program);
  REQUIRE(unfused);
  CHECK(unfused->to_text() == "top_max; top_max -> top; out");
  CHECK(to_text(unfused->steps[0].statements.back().value) == "max[q](x[m,p,q])");
  CHECK(to_text(unfused->steps[1].statements.back().value) == "max[p](top_max[m,p])");
  CHECK(to_text(unfused->steps[2].statements.back().value) == "sum[p,q](x[m,p,q] * y[p,q,n])");
  check_order(builder.program, *unfused);
}

TEST_CASE("an output that holds the very value is read back, in its order of axes, and nothing is stored twice") {
  Builder builder = two_products();
  builder.tensor("total", DType::kF16, {"N", "M"}, TensorRole::kOut).tensor("out", DType::kF16, {"M", "N"}, TensorRole::kOut);
  builder.index("j", "N");
  builder.statement("rounded", {"m", "n"}, cast(DType::kF16, product("x", "gate")), false);
  builder.statement_at("total", at({"n", "m"}), {"n", "m"}, read("rounded", Names{"m", "n"}), true);
  builder.statement("out", {"m", "n"}, read("rounded", Names{"m", "n"}) * reduce(ReduceOp::kSum, {"j"}, read("rounded", Names{"m", "j"})),
                    true);
  const auto partitions = partitions_of(builder.program, at_most(1));
  REQUIRE(partitions);
  CHECK(partitions->front().to_text() == "total; total -> out");
  CHECK(partitions->front().intermediates.empty());
  const std::string reader = to_text(partitions->front().steps[1]);
  CHECK(reader.find("total[n,m]") != std::string::npos);
  CHECK(reader.find("total[j,m]") != std::string::npos);
}

TEST_CASE("a stored value has the type of its cast, else the type of the arithmetic") {
  Builder builder = two_products();
  builder.tensor("out", DType::kF16, {"M", "N"}, TensorRole::kOut);
  builder.statement("rounded", {"m", "n"}, cast(DType::kF16, product("x", "gate")), false);
  builder.statement("out", {"m", "n"}, read("rounded", Names{"m", "n"}) * product("x", "up"), true);
  const auto partitions = partitions_of(builder.program, at_most(1));
  REQUIRE(partitions);
  for (const Partition& partition : *partitions) {
    REQUIRE(partition.intermediates.size() == 1);
    CHECK(partition.intermediates[0].dtype == (partition.intermediates[0].name == "rounded" ? DType::kF16 : DType::kF32));
  }
}

TEST_CASE("a sum that is only rounded is stored as it is rounded: no cut keeps it before") {
  Builder builder = two_products();
  builder.tensor("out", DType::kF16, {"M", "N"}, TensorRole::kOut);
  builder.statement("left", {"m", "n"}, cast(DType::kF16, product("x", "gate")), false);
  builder.statement("right", {"m", "n"}, cast(DType::kF16, product("x", "up")), false);
  builder.statement("out", {"m", "n"}, read("left", Names{"m", "n"}) * read("right", Names{"m", "n"}), true);
  CHECK(cuts(builder.program, at_most(1)) == std::vector<std::string>{"right; right -> out", "left; left -> out"});
  CHECK(unfused_partition(builder.program)->to_text() == "left; right; left, right -> out");
}

TEST_CASE("who reads an old value comes before its update, in whatever order they stand; two that need each other's are refused") {
  Builder builder = two_products();
  builder.tensor("state", DType::kF32, {"M", "N"}, TensorRole::kInOut).tensor("out", DType::kF32, {"M", "N"}, TensorRole::kOut);
  builder.statement("s", {"m", "n"}, product("x", "gate"), false);
  builder.statement("state", {"m", "n"}, read("s", Names{"m", "n"}), true);
  builder.statement("out", {"m", "n"}, read("s", Names{"m", "n"}) * product("x", "up") * read("state", Names{"m", "n"}), true);
  CHECK(cuts(builder.program, at_most(1)) == std::vector<std::string>{"out_sum; out_sum -> state, out", "s; s -> state, out"});

  Builder swapped = two_products();
  swapped.tensor("a", DType::kF32, {"M", "N"}, TensorRole::kInOut).tensor("b", DType::kF32, {"M", "N"}, TensorRole::kInOut);
  swapped.statement("a", {"m", "n"}, product("x", "gate") * read("b", Names{"m", "n"}), true);
  swapped.statement("b", {"m", "n"}, product("x", "up") * read("a", Names{"m", "n"}), true);
  const auto partitions = partitions_of(swapped.program, at_most(1));
  REQUIRE_FALSE(partitions);
  CHECK_THAT(partitions.error().message, contains_text("is updated by one kernel of a plan and its old value is read by a later one"));
}

TEST_CASE("what no cut helps is refused with the judge's reason") {
  const auto partitions = partitions_of(matmul_bias_relu(), at_most(0));
  REQUIRE_FALSE(partitions);
  CHECK_THAT(partitions.error().message, contains_text("1 reductions in matmul_bias_relu"));
}

TEST_CASE("a program of 40 statements that read their predecessor twice is cut at once") {
  const Program program = doubling_rows(40, [](const ExprRef& last) {
    const ExprRef along_j = read(last->name, Names{"m", "j"});
    return last * reduce(ReduceOp::kMax, {"j"}, along_j) * reduce(ReduceOp::kSum, {"j"}, along_j * along_j);
  });
  const CanMake can_make = at_most(1);
  const auto partitions = partitions_of(program, can_make);
  REQUIRE(partitions);
  CHECK(partitions->front().steps.size() == 2);  // the sum; the maximum and the output
}

TEST_CASE("in every cut of random programs each kernel is one that can be made, and reads only what is written") {
  std::size_t num_plans = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const Program program = random_program(seed, 12);
    const CanMake can_make = at_most(1);
    const auto partitions = partitions_of(program, can_make);
    if (!partitions) FAIL(fmt::format("seed {}: {}", seed, to_text(partitions.error())));
    CHECK(partitions->size() <= 8);
    for (const Partition& partition : *partitions) {
      for (const Program& step : partition.steps) CHECK(can_make(step));
      check_order(program, partition);
      num_plans += partition.steps.size() > 1 ? 1 : 0;
    }
    const auto unfused = unfused_partition(program);
    REQUIRE(unfused);
    check_order(program, *unfused);
  }
  CHECK(num_plans > 50);
}
