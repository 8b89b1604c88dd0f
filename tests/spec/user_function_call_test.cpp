// Calls of user functions: inlined with the arguments in place, types checked, sizes limited.
// SPDX-License-Identifier: Apache-2.0
#include "tests/spec/spec_helpers.h"

namespace kw::generator {

namespace {

ExprRef parameter(int number, DType dtype) {
  ExprNode node;
  node.kind = ExprNode::Kind::kParameter;
  node.parameter = number;
  node.dtype = dtype;
  return std::make_shared<const ExprNode>(std::move(node));
}

/// square(float x) = x * x; pick(int i, float x, bool c) = c ? x : i.
UserFunctions functions() {
  UserFunction square{
      "square", {DType::kF32}, DType::kF32, make_call(Function::kMul, {parameter(0, DType::kF32), parameter(0, DType::kF32)}, DType::kF32)};
  UserFunction pick{
      "pick",
      {DType::kI32, DType::kF32, DType::kBool},
      DType::kF32,
      make_call(Function::kWhere, {parameter(2, DType::kBool), parameter(1, DType::kF32), parameter(0, DType::kI32)}, DType::kF32)};
  return {{"square", square}, {"pick", pick}};
}

std::string messages(const std::string& body) { return check_text(pointwise_spec(body), functions()).messages; }

}  // namespace

TEST_CASE("a user function is written out in place of its call") {
  const auto program = program_of(pointwise_spec("y[m,n] = square(x[m,n] + 1) - pick(m, 2, n < 3)"), functions());
  CHECK(to_text(program->statements[0].value) == "(x[m,n] + 1.0) * (x[m,n] + 1.0) - where(n < 3, 2.0, m)");
  CHECK(identity(*program) == identity(*program_of(pointwise_spec("y[m,n] = (x[m,n] + 1) * (x[m,n] + 1) - where(n < 3, 2.0, m)"))));
}

TEST_CASE("arguments of user functions are checked") {
  CHECK(messages("y[m,n] = square(x[m,n], 1)").find("takes 1 arguments") != std::string::npos);
  CHECK(messages("y[m,n] = square(m < 2)").find("argument 1 of square is m < 2, of type bool: the function takes f32") !=
        std::string::npos);
  CHECK(messages("y[m,n] = pick(x[m,n], 1, true)").find("the function takes i32") != std::string::npos);
  CHECK(messages("y[m,n] = sqare(x[m,n])").find("did you mean 'square'?") != std::string::npos);
}

TEST_CASE("an f32 parameter rounds an f64 argument") {
  std::string text = pointwise_spec("y[m,n] = square(x[m,n])");
  text.replace(text.find("[compute]"), 9, "[compute]\naccumulate = \"f64\"");
  CHECK(to_text(program_of(text, functions())->statements[0].value) == "cast(x[m,n], f32) * cast(x[m,n], f32)");
}

TEST_CASE("nested calls that would grow without bound are refused") {
  std::string body = "x[m,n]";
  for (int i = 0; i < 60; ++i) body = "square(" + body + ")";
  CHECK(messages("y[m,n] = " + body).find("has more than 200000 parts") != std::string::npos);
}

TEST_CASE("nested calls that would get too deep are refused before the stack is") {
  ExprRef deep = parameter(0, DType::kF32);
  for (int i = 0; i < 400; ++i) deep = make_call(Function::kNeg, {deep}, DType::kF32);
  std::string body = "x[m,n]";
  for (int i = 0; i < 20; ++i) body = "deep(" + body + ")";
  const UserFunctions all = {{"deep", {"deep", {DType::kF32}, DType::kF32, deep}}};
  CHECK_THAT(check_text(pointwise_spec("y[m,n] = " + body), all).messages, contains_text("or 500 levels"));
}

TEST_CASE("what follows from a refused function is not reported") {
  const UserFunctions refused = {{"broken", {"broken", {}, DType::kF32, nullptr}}};
  const Checked checked = check_text(pointwise_spec("t[m,n] = broken(x[m,n])\ny[m,n] = t[m,n]"), refused);
  CHECK(checked.program == nullptr);
  CHECK(checked.messages.empty());  // told where the function was read
  CHECK(check_text(pointwise_spec("y[m,n] = broken(x[m,n]) + z[m]"), refused).messages.find("unknown tensor 'z'") != std::string::npos);
}

}  // namespace kw::generator
