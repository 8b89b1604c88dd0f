// Input that makes no good test file: too large, too deep, not UTF-8, or growing without bound. Each is refused at once, in words.
// SPDX-License-Identifier: Apache-2.0
#include "tests/spec/spec_helpers.h"

namespace kw::generator {

namespace {

bool says(const std::string& text, const std::string& part) {
  const std::string messages = check_text(text).messages;
  INFO(messages.substr(0, 2000));
  return messages.find(part) != std::string::npos;
}

std::string repeated(const std::string& part, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part;
  return text;
}

}  // namespace

TEST_CASE("a file of 10 MB is refused by its size") {
  CHECK(says(std::string(10'000'000, '#'), "t.op.toml: the file has 10000000 bytes: an op spec has at most 1048576 (1 MiB)"));
}

TEST_CASE("a file that is not UTF-8 names the byte and its place") {
  CHECK(says("name = \"t\"\n# \xff\n", "t.op.toml:2:3: byte 0xff is not UTF-8"));
  CHECK(says("name = \"\xc0\xaf\"\n", "byte 0xc0 is not UTF-8"));
  CHECK(says("name = \"\xed\xa0\x80\"\n", "byte 0xed is not UTF-8"));
}

TEST_CASE("deep nesting is refused, however it is spelled") {
  const std::string message = "nested deeper than 200 levels";
  CHECK(says(pointwise_spec("y[m,n] = " + repeated("(", 10000) + "x[m,n]" + repeated(")", 10000)), message));
  CHECK(says(pointwise_spec("y[m,n] = " + repeated("-", 10000) + "x[m,n]"), message));
  CHECK(says(pointwise_spec("y[m,n] = " + repeated("abs(", 10000) + "x[m,n]" + repeated(")", 10000)), message));
  CHECK(says(pointwise_spec("y[m,n] = x[m,n]" + repeated(" + x[m,n]", 10000)), message));
  CHECK(says(pointwise_spec("y[m,n] = " + repeated("x[m,n] ^ ", 10000) + "2"), message));
  CHECK(says(pointwise_spec("y[m,n] = where(" + repeated("not ", 10000) + "true, 1, 0)"), message));
  CHECK(says(pointwise_spec("y[m,n] = " + repeated("x[", 10000)), message));
  CHECK(says(pointwise_spec("y[m,n] = " + repeated("sum[k](", 10000)), message));
}

TEST_CASE("deep TOML nesting is refused") {
  CHECK(says("name = \"t\"\nx = " + repeated("[", 100000), "not TOML"));
  CHECK(says("name = \"t\"\nx = " + repeated("{a=", 100000), "not TOML"));
}

TEST_CASE("a body that grows without bound when written out is refused") {
  std::string body = "t0[m,n] = x[m,n] + x[m,n]\n";
  for (int i = 1; i < 64; ++i) {
    const std::string from = "t" + std::to_string(i - 1) + "[m,n]", to = "t" + std::to_string(i) + "[m,n]";
    body += to + " = " + from + " * " + from + "\n";
  }
  CHECK(says(pointwise_spec(body + "y[m,n] = t63[m,n]"), "has more than 200000 parts"));
  // Growth through subscripts.
  std::string gather = "r = { dtype = \"i32\", shape = [\"M\"] }\n";
  std::string nested = "m";
  for (int i = 0; i < 80; ++i) nested = "t[" + nested + "]";
  CHECK(says(pointwise_spec("t[i] = r[i] + r[i]\ny[m,n] = x[" + nested + ", n]", gather), "has more than 200000 parts"));
}

TEST_CASE("a long chain of statements is refused by its depth, not by the stack") {
  std::string body = "t0[m,n] = x[m,n] + 1\n";
  for (int i = 1; i < 1900; ++i) body += "t" + std::to_string(i) + "[m,n] = t" + std::to_string(i - 1) + "[m,n] + 1\n";
  CHECK(says(pointwise_spec(body + "y[m,n] = t1899[m,n]"), "500 levels"));
}

TEST_CASE("scalars and bounds that grow by naming each other are refused") {
  std::string scalars = "[scalars]\ns0 = \"1/sqrt(N)\"\n";
  for (int i = 1; i < 64; ++i)
    scalars += "s" + std::to_string(i) + " = \"s" + std::to_string(i - 1) + " * s" + std::to_string(i - 1) + "\"\n";
  CHECK(says(pointwise_spec("y[m,n] = x[m,n] * s63", scalars), "parts: at most 1000"));
}

TEST_CASE("a statement of 480 levels written out still has an identity") {
  std::string body = "t0[m,n] = x[m,n] + 1\n";
  for (int i = 1; i < 240; ++i) body += "t" + std::to_string(i) + "[m,n] = t" + std::to_string(i - 1) + "[m,n] + 1\n";
  CHECK(identity(*program_of(pointwise_spec(body + "y[m,n] = t239[m,n]"))).size() == 32);
}

TEST_CASE("a cycle of two thousand statements is one message") {
  std::string body;
  for (int i = 0; i < 1900; ++i) body += "t" + std::to_string(i) + "[m] = t" + std::to_string((i + 1) % 1900) + "[m]\n";
  CHECK(says(pointwise_spec(body + "y[m,n] = x[m,n] + t0[m]"), "a cycle: "));
}

TEST_CASE("lists of dims that multiply beyond the limit are refused") {
  std::string text = "name = \"t\"\n[dims]\n", shape, indices;
  for (int i = 0; i < 8; ++i) {
    text += "D" + std::to_string(i) + " = [1, 2, 3, 4, 5, 6, 7, 8, 9]\n";
    shape += std::string(i == 0 ? "" : ", ") + "\"D" + std::to_string(i) + "\"";
    indices += std::string(i == 0 ? "" : ",") + "i" + std::to_string(i);
  }
  text += "[tensors]\nx = { dtype = \"f32\", shape = [" + shape + "] }\ny = { dtype = \"f32\", shape = [" + shape +
          "], role = \"out\" }\n[compute]\nbody = \"y[" + indices + "] = x[" + indices + "]\"\n";
  CHECK(says(text, "multiply to more than 4096 problems"));
}

TEST_CASE("extents that overflow 64 bits are errors, never a wrap") {
  const std::string text = R"toml(name = "t"
[dims]
M = 1099511627776
[tensors]
x = { dtype = "f32", shape = ["M * M"] }
y = { dtype = "f32", shape = ["M * M"], role = "out" }
[compute]
body = "y[m] = x[m]"
)toml";
  CHECK(says(text, "axis 0 of tensor x overflows 64 bits"));
}

TEST_CASE("a letter beyond ASCII in a key is refused") {
  for (const char* letter : {"\xc3\xa9", "\xc6\xa8", "\xe2\x80\x83", "\xe2\x90\x80", "\xe3\x80\x80"}) {
    CHECK(says(std::string("name = \"t\"\nna") + letter + "body = 1\n", "not TOML"));
    CHECK(says(std::string("name = \"t\"\nna = 1") + letter + "\n", "not TOML"));
  }
}

TEST_CASE("an empty file and a file of one NUL are refused") {
  CHECK(says("", "the op spec has no name"));
  CHECK(says(std::string(1, '\0'), "not TOML"));
}

TEST_CASE("a dotted key of many parts is refused by its place") {
  const std::string parts = "a" + repeated(".a", 20000), message = ": a key of more than 16 parts joined by dots";
  CHECK(says("name = \"t\"\n[" + parts + "]\n", "t.op.toml:2:2" + message));
  CHECK(says("name = \"t\"\n" + parts + " = 1\n", "t.op.toml:2:1" + message));
  CHECK(says("x = { b = 1, " + parts + " = 1 }\n", "t.op.toml:1:14" + message));
  CHECK(says("x = [\"\xc3\xa9\", { \"b\"" + repeated(" . 'b'", 20) + " = 1 }]", "t.op.toml:1:13" + message));
  for (const std::string& quoted : {"'" + parts + "'", "\"\\\"" + parts + "\"", "\"\"\"\n\"" + parts + "\"\"\"\"", "1 # " + parts})
    CHECK(says("x = " + quoted + "\n", "t.op.toml:1:1: unknown key 'x'"));
}

TEST_CASE("a tunable with too many values and a bound that accepts anything are refused") {
  std::string list = "[tune]\nBLOCK_M = [1";
  for (int i = 2; i < 100000; ++i) list += "," + std::to_string(i);
  CHECK(says(matmul_spec("out[m,n] = sum[k](A[m,k] * B[n,k]) + bias[n]", list + "]\n"),
             "t.op.toml:12:11: tune BLOCK_M lists 99999 values: at most 256"));
  CHECK(says(matmul_spec("out[m,n] = sum[k](A[m,k] * B[n,k]) + bias[n]", "[tune]\ntolerance = 1e300\n"),
             "t.op.toml:12:13: tune tolerance = 1e+300: it multiplies the arithmetic bound, and is at most 1000"));
}

}  // namespace kw::generator
