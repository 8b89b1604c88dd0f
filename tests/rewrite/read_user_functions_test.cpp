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
  CHECK(refusal("struct Half { unsigned short bits; };\n__device__ Half f(Half x, unsigned n) { return x; }") ==
        "my_ops.cuh:2:17: f(): returns Half: float, double, int, long long or bool\n"
        "my_ops.cuh:2:24: f(): parameter x has type Half: float, double, int, long long or bool, by value\n"
        "my_ops.cuh:2:36: f(): parameter n has type unsigned int: float, double, int, long long or bool, by value");
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

}  // namespace kw::generator
