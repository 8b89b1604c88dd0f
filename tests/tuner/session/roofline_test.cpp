// The bound of a problem must lie below every kernel's time: the rate of arithmetic is that of what is multiplied.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/session/roofline.h"

#include "tests/catch.h"
#include "tests/plan/programs.h"

using namespace kw;
using namespace kw::generator;
using namespace kw::generator::testing;
using Names = std::vector<std::string>;

namespace {

/// f16 operands, and an input of another type that is only added.
Program product_plus(DType added, DType operands) {
  Builder builder("op");
  builder.dims({"M", "N", "K"}).index("m", "M").index("n", "N").index("k", "K");
  builder.tensor("A", operands, {"M", "K"}).tensor("B", operands, {"N", "K"}).tensor("residual", added, {"M", "N"});
  builder.tensor("out", DType::kF16, {"M", "N"}, TensorRole::kOut);
  builder.statement(
      "out", {"m", "n"},
      reduce(ReduceOp::kSum, {"k"}, read("A", Names{"m", "k"}) * read("B", Names{"n", "k"})) + read("residual", Names{"m", "n"}), true);
  return builder.program;
}

double math_bound_us(const Program& program) {
  WorkCounts work;
  work.contraction_flops = 1e12;
  return tuner::roofline_of(program, work, generic_device(Arch::kSm90a), false).math_bound_us;
}

}  // namespace

TEST_CASE("an f32 tensor that is only added does not take the tensor cores from a product of f16") {
  const double of_f16 = math_bound_us(product_plus(DType::kF16, DType::kF16));
  CHECK(of_f16 > 0);
  CHECK(math_bound_us(product_plus(DType::kF32, DType::kF16)) == of_f16);
  CHECK(math_bound_us(product_plus(DType::kF16, DType::kF32)) > 4 * of_f16);
}
