// Every pointwise function, cast and output type of the notation gives text that the compiler of the tool takes: one kernel with one
// output for each, in f32, f64 and integers.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/catch.h"
#include "tests/emit/golden_cases.h"
#include "tests/plan/programs.h"
#include "tests/templates/nvrtc.h"

using namespace kw;
using namespace kw::generator;
using namespace kw::generator::testing;
using Names = std::vector<std::string>;

namespace {

class ManyOutputs {
 public:
  ManyOutputs(const std::string& name, DType operands, DType accumulate) : accumulate_(accumulate), builder_(name) {
    builder_.dims({"M", "N", "K"}).index("m", "M").index("n", "N").index("k", "K");
    builder_.tensor("A", operands, {"M", "K"})
        .tensor("B", operands, {"K", "N"})
        .tensor("x", DType::kF16, {"M", "N"})
        .tensor("table", DType::kI32, {"M"});
    builder_.tensor("bias", DType::kF32, {"N + 8"}).tensor("flag", DType::kBool, {"N"}).tensor("one", DType::kF32, {});
    builder_.program.accumulate = accumulate;
    builder_.scalar("alpha");
    builder_.statement("acc", {"m", "n"},
                       reduce(ReduceOp::kSum, {"k"}, read("A", Names{"m", "k"}, accumulate) * read("B", Names{"k", "n"}, accumulate)),
                       false);
  }

  ExprRef acc() const { return read("acc", Names{"m", "n"}, accumulate_); }
  ExprRef x() const { return read("x", Names{"m", "n"}, accumulate_); }
  ExprRef apply(Function function, std::vector<ExprRef> operands) const { return call(function, std::move(operands), accumulate_); }

  void add(const ExprRef& value, DType dtype) {
    const std::string name = "out" + std::to_string(num_outputs_++);
    builder_.tensor(name, dtype, {"M", "N"}, TensorRole::kOut).statement(name, {"m", "n"}, value, true);
  }
  const Program& program() const { return builder_.program; }

 private:
  DType accumulate_;
  Builder builder_;
  int num_outputs_ = 0;
};

ExprRef compare(Function function, const ExprRef& a, const ExprRef& b) { return call(function, {a, b}, DType::kBool); }
ExprRef integer(Function function, const ExprRef& a, const ExprRef& b) { return call(function, {a, b}, DType::kI64); }

void add_integers_and_reads(ManyOutputs& many, DType accumulate) {
  const ExprRef row = make_index("m"), column = make_index("n"), three = number(3, DType::kI64);
  many.add(integer(Function::kFloorDiv, column, three), DType::kI64);
  many.add(integer(Function::kMod, integer(Function::kSub, row, column), three), DType::kI32);
  many.add(integer(Function::kMin, row, integer(Function::kMax, column, dim("K"))), DType::kI64);
  many.add(call(Function::kAbs, {integer(Function::kSub, row, column)}, DType::kI64), DType::kI8);
  many.add(many.apply(Function::kAdd, {many.acc(), read("table", Names{"m"}, DType::kI64)}), DType::kF32);
  many.add(many.apply(Function::kAdd, {many.acc(), read("bias", {integer(Function::kAdd, column, number(8, DType::kI64))}, accumulate)}),
           DType::kF32);
  many.add(many.apply(Function::kAdd, {many.acc(), read("bias", {integer(Function::kMod, column, three)}, accumulate)}), DType::kF32);
  many.add(many.apply(Function::kAdd, {many.acc(), read("x", {read("table", Names{"m"}, DType::kI64), column}, accumulate)}), DType::kF32);
  many.add(many.apply(Function::kMul, {many.acc(), read("one", std::vector<ExprRef>{}, accumulate)}), DType::kF32);
  many.add(many.apply(Function::kWhere, {read("flag", Names{"n"}, DType::kBool), many.acc(), number(0, accumulate)}), DType::kF32);
}

void add_reals(ManyOutputs& many, DType accumulate) {
  for (const Function function : {Function::kNeg, Function::kAbs, Function::kExp, Function::kLog, Function::kSqrt, Function::kRsqrt,
                                  Function::kTanh, Function::kSigmoid, Function::kRelu, Function::kGelu, Function::kGeluTanh,
                                  Function::kSilu, Function::kErf, Function::kSin, Function::kCos, Function::kFloor}) {
    many.add(many.apply(function, {many.acc()}), DType::kF32);
  }
  for (const Function function : {Function::kAdd, Function::kSub, Function::kMul, Function::kDiv, Function::kFloorDiv, Function::kMod,
                                  Function::kPow, Function::kMin, Function::kMax}) {
    many.add(many.apply(function, {many.acc(), many.x()}), DType::kBF16);
  }
  for (const Function function : {Function::kLt, Function::kLe, Function::kGt, Function::kGe, Function::kEq, Function::kNe})
    many.add(compare(function, many.acc(), many.x()), DType::kBool);
  const ExprRef low = compare(Function::kLt, many.acc(), number(-1, accumulate)),
                high = compare(Function::kGt, many.acc(), number(1, accumulate));
  const ExprRef both = call(
      Function::kAnd, {call(Function::kNot, {low}, DType::kBool), call(Function::kIsFinite, {many.acc()}, DType::kBool)}, DType::kBool);
  many.add(call(Function::kOr, {both, high}, DType::kBool), DType::kBool);
  many.add(many.apply(Function::kWhere, {both, number(INFINITY, accumulate), number(NAN, accumulate)}), DType::kF16);
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64, DType::kTF32, DType::kE4M3, DType::kE5M2, DType::kI8,
                            DType::kI32, DType::kI64, DType::kBool}) {
    many.add(cast(dtype, many.acc()), dtype == DType::kTF32 ? DType::kF32 : dtype);
  }
  many.add(many.apply(Function::kMul, {scalar("alpha"), many.acc()}), DType::kE4M3);
  many.add(many.acc(), DType::kE5M2);
  many.add(many.acc(), DType::kI8);
}

void check_compiles(const Program& program) {
  const Result<Variant> variant = emit({"gemm_simt", program, {{"BLOCK_M", 32}, {"BLOCK_N", 32}, {"BLOCK_K", 8}, {"THREAD_M", 2}}});
  if (!variant) FAIL(program.name << ": " << to_text(variant.error()) << "\n" << variant.error().detail);
  const kw::template_tests::NvrtcResult result = kw::template_tests::compile(variant->source, "sm_80");
  INFO(program.name << "\n" << result.log << "\n" << variant->source);
  CHECK(result.is_compiled);
}

}  // namespace

TEST_CASE("every function of reals compiles in f32 and f64") {
  for (const DType accumulate : {DType::kF32, DType::kF64}) {
    ManyOutputs many(accumulate == DType::kF32 ? "all_f32" : "all_f64", accumulate, accumulate);
    add_reals(many, accumulate);
    add_integers_and_reads(many, accumulate);
    check_compiles(many.program());
  }
}

TEST_CASE("integer contractions and epilogues compile") {
  ManyOutputs many("all_i32", DType::kI8, DType::kI32);
  add_integers_and_reads(many, DType::kI32);
  for (const DType dtype : {DType::kI8, DType::kI32, DType::kI64, DType::kF16, DType::kF32, DType::kBool}) many.add(many.acc(), dtype);
  many.add(call(Function::kRelu, {many.acc()}, DType::kI32), DType::kI32);
  check_compiles(many.program());
}
