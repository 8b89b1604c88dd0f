// Integer expressions: text, evaluation, compilation and refusal.
// SPDX-License-Identifier: Apache-2.0
#include "generator/base/int_expr.h"

#include <random>

#include "tests/catch.h"

namespace kw {
namespace {

using Op = IntExpr::Op;

IntExpr parsed(std::string_view text) {
  const auto expr = IntExpr::parse(text);
  INFO(text);
  REQUIRE(expr.has_value());
  return *expr;
}

/// A random tree over the variables a, b, c.
IntExpr random_expr(std::mt19937& random, int depth) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  if (depth == 0 || pick(6) == 0)
    return pick(2) == 0 ? IntExpr(pick(7) - 3) : IntExpr::variable(std::string(1, static_cast<char>('a' + pick(3))));
  const Op op = static_cast<Op>(static_cast<int>(Op::kNeg) + pick(static_cast<int>(Op::kMax) - static_cast<int>(Op::kNeg) + 1));
  std::vector<IntExpr> operands = {random_expr(random, depth - 1)};
  if (op != Op::kNeg && op != Op::kNot) operands.push_back(random_expr(random, depth - 1));
  if (op == Op::kSelect) operands.push_back(random_expr(random, depth - 1));
  return IntExpr::make(op, std::move(operands));
}

}  // namespace

TEST_CASE("division and remainder floor, as in the notation") {
  const IntBindings values = {{"a", -7}, {"b", 2}};
  CHECK(parsed("a // b").evaluate(values).value() == -4);
  CHECK(parsed("a % b").evaluate(values).value() == 1);
  CHECK(ceil_div(IntExpr::variable("x"), IntExpr(128)).evaluate({{"x", 129}}).value() == 2);
}

TEST_CASE("conditions and selection are lazy, so a guarded division is legal") {
  CHECK(parsed("b != 0 && a // b > 1").evaluate({{"a", 4}, {"b", 0}}).value() == 0);
  CHECK(parsed("b == 0 ? 0 : a // b").evaluate({{"a", 4}, {"b", 0}}).value() == 0);
  CHECK_FALSE(parsed("a // b").evaluate({{"a", 4}, {"b", 0}}).has_value());
}

TEST_CASE("a value outside 64 bits is an error and never wraps") {
  CHECK_FALSE(parsed("a * a").evaluate({{"a", std::int64_t{1} << 40}}).has_value());
  CHECK_FALSE(parsed("-a").evaluate({{"a", INT64_MIN}}).has_value());
}

TEST_CASE("a missing variable is named") {
  const auto value = parsed("BLOCK_M + A.stride0").evaluate({{"BLOCK_M", 1}});
  REQUIRE_FALSE(value.has_value());
  CHECK(value.error().message == "A.stride0 has no value");
}

TEST_CASE("random expressions keep their value through text, compilation and substitution") {
  std::mt19937 random(7);
  const std::vector<std::string> slots = {"a", "b", "c"};
  int valid = 0;
  for (int round = 0; round < 3000; ++round) {
    const IntExpr expr = random_expr(random, 5);
    const std::vector<std::int64_t> values = {static_cast<int>(random() % 20) - 10, static_cast<int>(random() % 20) - 10,
                                              static_cast<int>(random() % 20) - 10};
    const IntBindings bindings = {{"a", values[0]}, {"b", values[1]}, {"c", values[2]}};
    const auto expected = expr.evaluate(bindings);
    const IntExpr back = parsed(expr.to_text());
    const auto again = back.evaluate(bindings);
    const auto substituted =
        expr.substitute({{"a", IntExpr(values[0])}, {"b", IntExpr(values[1])}, {"c", IntExpr(values[2])}}).evaluate({});
    bool is_valid = true;
    const std::int64_t compiled = CompiledIntExpr(expr, slots).evaluate(values, is_valid);
    INFO(expr.to_text());
    REQUIRE(again.has_value() == expected.has_value());
    REQUIRE(is_valid == expected.has_value());
    if (!expected) continue;
    ++valid;
    REQUIRE(*again == *expected);
    REQUIRE(compiled == *expected);
    REQUIRE(substituted.has_value());
    REQUIRE(*substituted == *expected);
  }
  CHECK(valid > 1000);
}

TEST_CASE("broken text is refused with the position, and deep nesting does not overflow the stack") {
  CHECK_FALSE(IntExpr::parse("").has_value());
  CHECK_FALSE(IntExpr::parse("1 +").has_value());
  CHECK_FALSE(IntExpr::parse("(1").has_value());
  CHECK_FALSE(IntExpr::parse("99999999999999999999").has_value());
  CHECK_FALSE(IntExpr::parse("a b").has_value());
  CHECK_FALSE(IntExpr::parse(std::string(100000, '(')).has_value());
  CHECK_FALSE(IntExpr::parse(std::string(100000, '-')).has_value());
  CHECK(IntExpr::parse("1 + * 2").error().message == "integer expression '1 + * 2', position 5: expected a value");
}

TEST_CASE("C++ text spells division, selection and dotted names as C++ does") {
  CHECK(parsed("(M + 127) // 128 * A.stride0").to_cpp() == "(M + 127) / 128 * A_stride0");
  CHECK(parsed("min(M, 4)").to_cpp() == "((M) < (4) ? (M) : (4))");
}

}  // namespace kw
