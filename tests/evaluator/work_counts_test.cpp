// Counts of work: the handbook's table for its example, and the L2-aware figure beside it.
// SPDX-License-Identifier: Apache-2.0
#include "generator/spec/evaluator.h"
#include "tests/catch.h"
#include "tests/evaluator/program_builder.h"

using namespace kw;
using namespace kw::generator;

TEST_CASE("the handbook's example moves 83.9 MB unfused and 50.3 MB fused, 40 % less") {
  const Program program = build::matmul_bias_relu();
  const auto counts = count_work(program, build::problem({{"M", 1024}, {"N", 4096}, {"K", 4096}}), 50 << 20);
  REQUIRE(counts.has_value());
  const double a = 1024.0 * 4096 * 2, b = 4096.0 * 4096 * 2, out = 1024.0 * 4096 * 2, bias = 4096.0 * 2;
  CHECK(counts->fused_bytes == a + b + out + bias);
  CHECK(counts->min_bytes == a + b + out + bias);
  CHECK(counts->unfused_bytes == a + b + out + bias + 4 * out);
  CHECK(counts->fused_bytes / 1e6 == Approx(50.3).margin(0.05));
  CHECK(counts->unfused_bytes / 1e6 == Approx(83.9).margin(0.05));
  CHECK(1 - counts->fused_bytes / counts->unfused_bytes == Approx(0.40).margin(0.005));
  // The two intermediates of 8.4 MB fit an L2 of 50 MiB: they are written, but not read back.
  CHECK(counts->unfused_l2_aware_bytes == counts->unfused_bytes - 2 * out);
  CHECK(counts->contraction_flops == 2.0 * 1024 * 4096 * 4096);
  CHECK(counts->flops == counts->contraction_flops + 2.0 * 1024 * 4096);
}

TEST_CASE("an intermediate larger than L2 is read back from memory") {
  const auto counts = count_work(build::matmul_bias_relu(), build::problem({{"M", 1024}, {"N", 4096}, {"K", 4096}}), 1 << 20);
  REQUIRE(counts.has_value());
  CHECK(counts->unfused_l2_aware_bytes == counts->unfused_bytes);
}

TEST_CASE("a reduction used by two outputs is one kernel in the unfused count") {
  Program program = build::matmul_bias_relu();
  program.tensors.push_back(build::tensor("raw", DType::kF16, {"M", "N"}, TensorRole::kOut));
  program.statements.push_back(
      build::statement("raw", true, {"m", "n"}, build::call(Function::kTanh, {build::read_at("acc", {"m", "n"})})));
  const auto counts = count_work(program, build::problem({{"M", 64}, {"N", 32}, {"K", 16}}), 0);
  REQUIRE(counts.has_value());
  CHECK(counts->contraction_flops == 2.0 * 64 * 32 * 16);
  const double out = 64.0 * 32 * 2;
  CHECK(counts->unfused_bytes == 64.0 * 16 * 2 + 32.0 * 16 * 2 + 32 * 2 + 7 * out);
}

TEST_CASE("counting needs a value of every dim and says which is missing") {
  const auto counts = count_work(build::matmul_bias_relu(), build::problem({{"M", 64}, {"N", 32}}), 0);
  REQUIRE_FALSE(counts.has_value());
  CHECK_THAT(counts.error().message, contains_text("K"));
}
