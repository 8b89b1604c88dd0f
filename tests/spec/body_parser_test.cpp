// The index notation: precedence, line breaks, places of mistakes.
// SPDX-License-Identifier: Apache-2.0
#include "tests/spec/spec_helpers.h"

namespace kw::generator {

namespace {

/// The value of y[m,n] as printed after parsing and typing.
std::string printed(const std::string& value) {
  const auto program = program_of(pointwise_spec("y[m,n] = " + value + " + 0 * x[m,n]"));
  std::string text = to_text(program->statements.back().value);
  const std::string tail = " + 0.0 * x[m,n]";
  REQUIRE(text.size() > tail.size());
  return text.substr(0, text.size() - tail.size());
}

}  // namespace

TEST_CASE("operators bind as in Python, and printing keeps the grouping") {
  CHECK(printed("1.0 + 2.0 * 3.0") == "1.0 + 2.0 * 3.0");
  CHECK(printed("(1.0 + 2.0) * 3.0") == "(1.0 + 2.0) * 3.0");
  CHECK(printed("-x[m,n] ^ 2") == "-x[m,n] ^ 2.0");
  CHECK(printed("(-x[m,n]) ^ 2") == "(-x[m,n]) ^ 2.0");
  CHECK(printed("x[m,n] ^ 2 ^ 3") == "x[m,n] ^ 2.0 ^ 3.0");
  CHECK(printed("x[m,n] - (1.0 - 2.0)") == "x[m,n] - (1.0 - 2.0)");
  CHECK(printed("x[m,n] / (2.0 / 3.0)") == "x[m,n] / (2.0 / 3.0)");
  CHECK(printed("where(not (x[m,n] < 1 and m > 2) or false, 1, -inf)") == "where(not (x[m,n] < 1.0 and m > 2) or false, 1.0, -inf)");
}

TEST_CASE("a line goes on inside brackets and after an operator") {
  const auto program = program_of(pointwise_spec("y[m,n] = x[m,n] +   # comment\n  max(x[m,n],\n  0.5)"));
  CHECK(to_text(program->statements[0].value) == "x[m,n] + max(x[m,n], 0.5)");
}

TEST_CASE("a mistake in the body names its own line and column, and later statements are still read") {
  const Checked checked = check_text(pointwise_spec("t[m,n] = x[m,n] +* 2\ny[m,n] = t[m,n] $ 2"));
  CHECK(checked.program == nullptr);
  CHECK(checked.messages.find("t.op.toml:10:18: found '*' where a value should stand") != std::string::npos);
  CHECK(checked.messages.find("t.op.toml:11:17: '$': this character is not part of the notation") != std::string::npos);
}

TEST_CASE("comparisons do not chain") {
  CHECK(check_text(pointwise_spec("y[m,n] = where(0 < m < 3, x[m,n], 0)")).messages.find("write a < b and b < c") != std::string::npos);
}

TEST_CASE("a number must not run into a name, and numbers have a range") {
  CHECK(check_text(pointwise_spec("y[m,n] = 2x[m,n]")).messages.find("'2x': a number must not run into a name") != std::string::npos);
  CHECK(check_text(pointwise_spec("y[m,n] = x[m,n] + 9007199254740993")).messages.find("at most 2^53") != std::string::npos);
  CHECK(check_text(pointwise_spec("y[m,n] = x[m,n] + 1e999")).messages.find("outside the range of f64") != std::string::npos);
}

TEST_CASE("a body in one line has its column in the file") {
  const std::string text =
      "name = \"t\"\n[tensors]\nx = { dtype = \"f32\", shape = [4] }\ny = { dtype = \"f32\", shape = [4], role = \"out\" "
      "}\n[compute]\nbody = \"y[i] = z[i]\"\n";
  CHECK(check_text(text).messages.find("t.op.toml:6:16: unknown tensor 'z'") != std::string::npos);
}

}  // namespace kw::generator
