// User functions: what a __device__ function becomes in the notation, and which constructs are refused where.
// SPDX-License-Identifier: Apache-2.0
#include "generator/rewrite/read_user_functions.h"

#include <cmath>

#include "tests/catch.h"

namespace kw::generator {
namespace {

/// Value of a lowered body in double, for comparing with what C++ computes.
double evaluate(const ExprRef& node, const std::vector<double>& parameters) {
  const auto operand = [&](std::size_t i) { return evaluate(node->operands.at(i), parameters); };
  switch (node->kind) {
    case ExprNode::Kind::kNumber:
      return node->number;
    case ExprNode::Kind::kParameter:
      return parameters.at(static_cast<std::size_t>(node->parameter));
    case ExprNode::Kind::kCast:
      return is_float(node->dtype) ? operand(0) : std::trunc(operand(0));
    default:
      break;
  }
  switch (node->function) {
    case Function::kAdd:
      return operand(0) + operand(1);
    case Function::kSub:
      return operand(0) - operand(1);
    case Function::kMul:
      return operand(0) * operand(1);
    case Function::kDiv:
      return operand(0) / operand(1);
    case Function::kFloorDiv:
      return std::floor(operand(0) / operand(1));
    case Function::kNeg:
      return -operand(0);
    case Function::kAbs:
      return std::fabs(operand(0));
    case Function::kLt:
      return operand(0) < operand(1) ? 1 : 0;
    case Function::kGt:
      return operand(0) > operand(1) ? 1 : 0;
    case Function::kNe:
      return operand(0) != operand(1) ? 1 : 0;
    case Function::kWhere:
      return operand(0) != 0 ? operand(1) : operand(2);
    case Function::kMax:
      return std::max(operand(0), operand(1));
    case Function::kExp:
      return std::exp(operand(0));
    default:
      throw std::runtime_error("the test's evaluator lacks " + std::string(to_text(node->function)));
  }
}

UserFunction read(const std::string& text, const std::string& name) {
  Diagnostics diagnostics;
  const UserFunctions functions = read_user_functions(text, "my_ops.cuh", {name}, diagnostics);
  if (diagnostics.has_errors()) FAIL(diagnostics.to_text());
  return functions.at(name);
}

std::string refusal(const std::string& text, const std::string& name = "f") {
  Diagnostics diagnostics;
  const UserFunctions functions = read_user_functions(text, "my_ops.cuh", {name}, diagnostics);
  if (functions.contains(name)) CHECK(functions.at(name).body == nullptr);
  std::string out = diagnostics.to_text();
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

}  // namespace

TEST_CASE("a user function becomes one expression of its parameters") {
  const UserFunction function =
      read("__device__ float swish(float x, float beta) {\n  const float e = expf(-beta * x);\n  return x / (1.0f + e);\n}", "swish");
  CHECK(function.parameter_types == std::vector<DType>{DType::kF32, DType::kF32});
  CHECK(function.return_type == DType::kF32);
  for (const double x : {-2.0, 0.0, 1.5}) CHECK(evaluate(function.body, {x, 0.5}) == Approx(x / (1 + std::exp(-0.5 * x))));
}

TEST_CASE("ifs, assignments, early returns and calls of other functions are followed") {
  const std::string text = R"(
__device__ float clip(float x, float high) { return x > high ? high : x; }
__device__ float f(float x, int mode) {
  float y = x;
  if (mode == 1 + 1 - 1 * 1) return -1.0f;
  if (x < 0) {
    y = -x;
    y *= 2;
  } else if (mode > 3) {
    y += 10;
  }
  ++y;
  return clip(y, 8.0f);
})";
  std::string comparable = text;
  comparable.replace(comparable.find("mode == 1 + 1 - 1 * 1"), 21, "mode < 1");
  const UserFunction function = read(comparable, "f");
  const auto expected = [](double x, int mode) {
    double y = x;
    if (mode < 1) return -1.0;
    if (x < 0) {
      y = -x * 2;
    } else if (mode > 3) {
      y += 10;
    }
    ++y;
    return y > 8 ? 8.0 : y;
  };
  for (const double x : {-3.0, -5.0, 0.0, 2.0, 9.0}) {
    for (const int mode : {0, 1, 4}) CHECK(evaluate(function.body, {x, static_cast<double>(mode)}) == expected(x, mode));
  }
}

TEST_CASE("integer division and remainder go toward zero, as in C") {
  const UserFunction quotient = read("__device__ int f(int a, int b) { return a / b; }", "f");
  const UserFunction remainder = read("__device__ int f(int a, int b) { return a % b; }", "f");
  for (const int a : {-7, -6, 0, 6, 7}) {
    for (const int b : {-3, -2, 2, 3}) {
      CHECK(evaluate(quotient.body, {static_cast<double>(a), static_cast<double>(b)}) == a / b);
      CHECK(evaluate(remainder.body, {static_cast<double>(a), static_cast<double>(b)}) == a % b);
    }
  }
}

TEST_CASE("conversions have C's meaning") {
  const UserFunction function = read("__device__ float f(float x, bool on) { return (int)x + (on ? 1 : 0) + (float)on; }", "f");
  CHECK(evaluate(function.body, {2.75, 1}) == 4);
  CHECK(evaluate(function.body, {-2.75, 0}) == -2);
}

TEST_CASE("side effects are refused by name with their place") {
  CHECK(refusal("__device__ float f(float* p) { return *p; }") ==
        "my_ops.cuh:1:27: f(): parameter p has type float *: float, double, int, long long or bool, by value");
  CHECK(refusal("__device__ float total;\n__device__ float f(float x) {\n  total = x;\n  return x;\n}") ==
        "my_ops.cuh:3:3: f(): a store to global total: user functions have no side effects");
  CHECK(refusal("__device__ float total;\n__device__ float f(float x) { return x + total; }") ==
        "my_ops.cuh:2:42: f(): reads total, which is neither a parameter, a local nor a constant");
  CHECK(refusal("__device__ float g(float* p) { *p = 1; return 1; }\n__device__ float f(float x) { float y = x; return g(&y); }") ==
        "my_ops.cuh:2:53: f(): an argument of g() that is passed by reference or is no scalar");
  CHECK(refusal("__device__ void log_it(float x);\n__device__ float f(float x) {\n  printf(\"x\");\n  return x;\n}") ==
        "my_ops.cuh:3:3: f(): a call of printf() for its side effect");
  CHECK(refusal("__device__ float f(float x) { asm(\"\"); return x; }") == "my_ops.cuh:1:31: f(): inline assembly");
}

TEST_CASE("recursion, loops and unknown calls are refused by name with their place") {
  CHECK(refusal("__device__ float f(float x) { return x < 0 ? x : f(x - 1); }") == "my_ops.cuh:1:50: f(): recursion");
  CHECK(
      refusal("__device__ float g(float x);\n__device__ float f(float x) { return g(x); }\n__device__ float g(float x) { return f(x); }") ==
      "my_ops.cuh:3:38: f(): recursion");
  CHECK(refusal("__device__ float f(float x) {\n  for (int i = 0; i < 3; ++i) x += i;\n  return x;\n}") == "my_ops.cuh:2:3: f(): a loop");
  CHECK(refusal("__device__ float f(float x) { return sinhf(x); }") ==
        "my_ops.cuh:1:38: f(): unknown call of sinhf(): the notation has no such function");
  CHECK(refusal("__device__ float f(float x) { return mystery(x); }") == "my_ops.cuh:1:38: use of undeclared identifier 'mystery'");
}

TEST_CASE("a wrong signature is refused, every mistake of it") {
  CHECK(refusal("\n__device__ short f(char x, unsigned n) { return x; }") ==
        "my_ops.cuh:2:18: f(): returns short: float, double, int, long long or bool\n"
        "my_ops.cuh:2:25: f(): parameter x has type char: float, double, int, long long or bool, by value\n"
        "my_ops.cuh:2:37: f(): parameter n has type unsigned int: float, double, int, long long or bool, by value");
  CHECK(refusal("float f(float x) { return x; }") == "my_ops.cuh:1:7: f(): not a __device__ function");
  CHECK(refusal("template <typename T> __device__ T f(T x) { return x; }").find("a C++ template") != std::string::npos);
  CHECK(refusal("__device__ float f(float x) { return x; }\n__device__ double f(double x) { return x; }") ==
        "my_ops.cuh:2:19: f(): 2 overloads: a called function has one");
  CHECK(refusal("__device__ float gelu_fast(float x) { return x; }", "gelu_fats") ==
        "my_ops.cuh: gelu_fats: no such function in the file; did you mean gelu_fast?");
}

TEST_CASE("a path without return and a local without value are refused") {
  CHECK(refusal("__device__ float f(float x) {\n  if (x > 0) return x;\n}") == "my_ops.cuh:3:1: f(): a path that ends without return");
  CHECK(refusal("__device__ float f(float x) {\n  float y;\n  if (x > 0) y = 1;\n  return y;\n}") ==
        "my_ops.cuh:4:10: y is read before it has a value");
}

TEST_CASE("ifs that return on every side are refused when their paths are too many") {
  std::string text = "__device__ float f(float x) {\n";
  for (int i = 0; i < 40; ++i) text += "  if (x > " + std::to_string(i) + ") { if (x < 0) return 1; } else { x += 1; }\n";
  CHECK(refusal(text + "  return x;\n}").find("too many paths through its ifs") != std::string::npos);
}

namespace {

std::string repeated(const std::string& part, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part;
  return text;
}

std::string returning(const std::string& value) { return "__device__ float f(float x) {\n  return " + value + ";\n}"; }

}  // namespace

TEST_CASE("a file, a function or a statement past the limits is refused before it is parsed") {
  CHECK(refusal("//" + std::string(1 << 20, 'x')) == "my_ops.cuh: 1048578 bytes: a file of user functions has at most 65536 (64 KiB)");
  CHECK(refusal(repeated("int a;\n", 4000)).find("my_ops.cuh:3334:5: 12000 words and signs: a file of user functions has at most 10000") ==
        0);
  CHECK(refusal(returning("x" + repeated("+x", 5000))).find("my_ops.cuh:2:2007: a statement of more than 2000 words and signs") == 0);
  CHECK(refusal(returning(repeated("- ", 5000) + "x")).find("a statement of more than 2000 words and signs") != std::string::npos);
  CHECK(refusal(returning(repeated("(", 101) + "x" + repeated(")", 101))).find("my_ops.cuh:2:109: (: brackets nest at most 100 deep") == 0);
  CHECK(refusal("__device__ float f(float x) {\n" + repeated("if (x>1) return x; else ", 400) + "return 0;\n}") ==
        "my_ops.cuh:2:4820: else: a function has at most 200 of them: each may nest in the one before");
}

TEST_CASE("what passes the limits is followed or refused, never too deep for the stack") {
  CHECK(refusal(returning("x" + repeated("+x", 990))) == "my_ops.cuh:2:10: f() nests deeper than 500 levels when written out");
  CHECK(refusal(returning(repeated("- ", 1990) + "x")).find("nests deeper than 500 levels") != std::string::npos);
  CHECK(read("__device__ float f(float x) {\n" + repeated("if (x>1) return x; else ", 190) + "return 0;\n}", "f").body != nullptr);
  CHECK(read(returning("x" + repeated("+x", 490)), "f").body != nullptr);
  std::string doubling = "constexpr float c0 = 1;\n", calls = "__device__ float g0(float x) { return -x; }\n";
  for (int i = 1; i < 60; ++i) {
    const std::string number = std::to_string(i), last = std::to_string(i - 1);
    doubling += "constexpr float c" + number + " = c" + last + " + c" + last + ";\n";
    calls += "__device__ float g" + number + "(float x) { return g" + last + "(g" + last + "(x)); }\n";
  }
  CHECK(refusal(doubling + returning("x * c59")).find("more than 200000 parts when its calls are written out") != std::string::npos);
  CHECK(refusal(calls + returning("g59(x)")).find("nests deeper than 500 levels") != std::string::npos);
}

TEST_CASE("directives, templates and what else could grow in clang are refused by name with their place") {
  const std::string body = "\n__device__ float f(float x) { return x; }";
  CHECK(refusal("// ops\n#define TWICE(x) x x" + body) ==
        "my_ops.cuh:2:1: #define TWICE(x) x x: a file of user functions has no preprocessor directive but #pragma once; write constants as "
        "constexpr");
  for (const char* hidden : {"/**/ #define A 1", "%:define A 1", "#include \"other.cuh\"", "#embed \"a\"", "#pragma GCC poison x"})
    CHECK(refusal(hidden + body).find("no preprocessor directive but #pragma once") != std::string::npos);
  CHECK(refusal("#def\\\nine A 1" + body).find("my_ops.cuh:1:1: #def") == 0);
  CHECK(refusal("%\\\n:define A 1" + body).find("my_ops.cuh:1:2: \\: a line that goes on") == 0);
  CHECK(refusal("template <int N> int g();" + body).find("my_ops.cuh:1:1: template: a C++ template is no part") == 0);
  CHECK(refusal("int g(auto x);" + body).find("my_ops.cuh:1:7: auto: a parameter without a type") == 0);
  CHECK(refusal("struct A { int a; };" + body).find("struct: a class is no part") != std::string::npos);
  CHECK(refusal("int g() { int a[9] = {}; return 0; }" + body).find("an array, a subscript or a lambda") != std::string::npos);
  CHECK(refusal("typedef void F(int);" + body).find("an alias of a function's type") != std::string::npos);
  CHECK(refusal("const char* a = u8R\"(\" )\";" + body).find("a raw string") != std::string::npos);
  CHECK(refusal(std::string("int a;\0", 7) + body).find("my_ops.cuh:1:7: byte 0x00") == 0);
  CHECK(read("#pragma once\nusing real = float;\n[[nodiscard]] __device__ real f(real x) { return x; }", "f").body != nullptr);
}

TEST_CASE("a constant that takes long to compute is refused") {
  const std::string text =
      "constexpr long h() { long s = 0; for (long i = 0; i < 100000000; i++) s += i; return s; }\nconstexpr long z = h();\n";
  CHECK(refusal(text + returning("x * z")).find("my_ops.cuh:2:16: constexpr variable 'z' must be initialized by a constant expression") !=
        std::string::npos);
}

TEST_CASE("an integer division by the constant zero is refused") {
  CHECK(refusal(returning("x / (1 / 0)")) == "my_ops.cuh:2:17: f(): '/' by zero");
  CHECK(refusal(returning("x * (7 % (2 - 2))")) == "my_ops.cuh:2:17: f(): '%' by zero");
  CHECK(refusal("__device__ int f(int i) {\n  i /= 0;\n  return i;\n}") == "my_ops.cuh:2:5: f(): '/=' by zero");
  CHECK(read(returning("x / 0"), "f").body != nullptr);  // real: an infinity
}

}  // namespace kw::generator
