// Integer normal forms: equal strides compare equal, subscripts split into coefficient and index.
// SPDX-License-Identifier: Apache-2.0
#include "generator/plan/linear_form.h"

#include "tests/catch.h"
#include "tests/plan/programs.h"

using namespace kw;
using namespace kw::generator;
using namespace kw::generator::testing;

namespace {
IntExpr expr(const char* text) { return *IntExpr::parse(text); }
}  // namespace

TEST_CASE("two spellings of one stride are equal") {
  CHECK(are_equal(expr("M * (K + 1)"), expr("K * M + M")));
  CHECK(are_equal(expr("2 * (N - 3) + 6"), expr("N * 2")));
  CHECK(are_equal(expr("(N + 7) // 8 * K"), expr("K * ((N + 7) // 8)")));
  CHECK_FALSE(are_equal(expr("M * K"), expr("M * N")));
  CHECK_FALSE(are_equal(expr("M // 2 * 2"), expr("M")));
}

TEST_CASE("a polynomial that overflows is left as it is") {
  const IntExpr huge = expr("(M + 4611686018427387904) * 4");
  CHECK(normalise(huge) == huge);
}

TEST_CASE("a subscript splits into coefficients and a constant") {
  const ExprRef subscript = call(
      Function::kAdd, {call(Function::kMul, {number(2, DType::kI64), make_index("m")}, DType::kI64), number(3, DType::kI64)}, DType::kI64);
  const LinearForm form = linear_form(subscript);
  CHECK(form.is_affine());
  CHECK(form.coefficient_of("m") == IntExpr(2));
  CHECK(form.coefficient_of("n") == IntExpr(0));
  CHECK(form.constant == IntExpr(3));
}

TEST_CASE("a division of an index is an atom, not affine") {
  const LinearForm form = linear_form(call(Function::kFloorDiv, {make_index("h"), dim("G")}, DType::kI64));
  CHECK_FALSE(form.is_affine());
  CHECK(form.terms.size() == 1);
}

TEST_CASE("quotient and remainder of one index fold back to it") {
  const ExprRef quotient = call(Function::kFloorDiv, {make_index("m"), dim("H")}, DType::kI64);
  const ExprRef remainder = call(Function::kMod, {make_index("m"), dim("H")}, DType::kI64);
  const LinearForm offset = element_offset({quotient, remainder, make_index("n")}, {expr("H * N"), expr("N"), expr("1")});
  CHECK(offset.is_affine());
  CHECK(offset.coefficient_of("m") == expr("N"));
  const LinearForm padded = element_offset({quotient, remainder}, {expr("H * N + 1"), expr("N")});
  CHECK_FALSE(padded.is_affine());
}
