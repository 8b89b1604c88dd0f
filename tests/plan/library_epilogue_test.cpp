// Which programs are one call of cuBLASLt, and which call: layouts, batches, epilogues, types; what is not says which statement.
// SPDX-License-Identifier: Apache-2.0
#include "generator/plan/library_epilogue.h"

#include "tests/catch.h"
#include "tests/plan/programs.h"

using namespace kw;
using namespace kw::generator;
using namespace kw::generator::testing;
using Names = std::vector<std::string>;

namespace {

Problem shape(std::int64_t m, std::int64_t n, std::int64_t k) {
  Problem problem;
  problem.dims = {{"M", m}, {"N", n}, {"K", k}, {"B", 3}};
  return problem;
}

LibraryMatmul call_of(const Program& program, const Problem& problem = shape(64, 96, 128)) {
  const auto matmul = library_matmul(program, problem);
  if (!matmul) FAIL(matmul.error().message);
  return *matmul;
}

std::string refusal(const Program& program, const Problem& problem = shape(64, 96, 128)) {
  const auto matmul = library_matmul(program, problem);
  REQUIRE_FALSE(matmul.has_value());
  CHECK(matmul.error().code == Code::kNotSupported);
  return to_text(matmul.error());
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct Layout {
  Names a, b, out;  ///< extents in the order of memory
  DType dtype = DType::kF16, out_dtype = DType::kF16;
};
Names lower(const Names& extents) {
  Names indices;
  for (const std::string& extent : extents) indices.push_back(extent == "M" ? "m" : extent == "N" ? "n" : extent == "K" ? "k" : "b");
  return indices;
}
ExprRef acc() { return read("acc", Names{"m", "n"}); }
ExprRef bias() { return read("bias", Names{"n"}); }

/// out = value, where acc is the product.
Program product(const ExprRef& value, const Layout& layout = {{"M", "K"}, {"N", "K"}, {"M", "N"}}, DType bias_dtype = DType::kF16) {
  Builder builder("any_name");
  builder.dims({"B", "M", "N", "K"}).index("b", "B").index("m", "M").index("n", "N").index("k", "K");
  builder.tensor("left", layout.dtype, layout.a).tensor("right", layout.dtype, layout.b).tensor("bias", bias_dtype, {"N"});
  builder.tensor("column", bias_dtype, {"M"}).tensor("scale", DType::kF32, {});
  builder.tensor("result", layout.out_dtype, layout.out, TensorRole::kOut);
  const bool has_batch = layout.out.size() == 3;
  const Names indices = has_batch ? Names{"b", "m", "n"} : Names{"m", "n"};
  const ExprRef sum = reduce(ReduceOp::kSum, {"k"}, read("left", lower(layout.a)) * read("right", lower(layout.b)), 1);
  if (has_batch) {
    builder.statement_at("result", at(lower(layout.out)), indices, sum, true);
    return builder.program;
  }
  builder.statement("acc", indices, sum, false);
  builder.statement_at("result", at(lower(layout.out)), indices, value, true);
  return builder.program;
}

}  // namespace

TEST_CASE("a row-major product is the transposed column-major one with its operands exchanged") {
  const LibraryMatmul matmul = call_of(matmul_bias_relu());
  CHECK(matmul.rows == 96);
  CHECK(matmul.cols == 64);
  CHECK(matmul.depth == 128);
  CHECK(matmul.num_batches == 1);
  CHECK(matmul.first.tensor == "B");  // [N, K] row-major: rows n are its columns
  CHECK(matmul.first.is_transposed);
  CHECK(matmul.first.leading_dimension == 128);
  CHECK(matmul.second.tensor == "A");
  CHECK_FALSE(matmul.second.is_transposed);
  CHECK(matmul.second.leading_dimension == 128);
  CHECK(matmul.out.tensor == "out");
  CHECK(matmul.out.leading_dimension == 96);
  CHECK(matmul.epilogue == LibraryEpilogue::kReluBias);
  CHECK(matmul.bias == "bias");
}

TEST_CASE("each transposition of the operands is told by their layout") {
  const Names a = GENERATE(Names{"M", "K"}, Names{"K", "M"}), b = GENERATE(Names{"K", "N"}, Names{"N", "K"});
  const LibraryMatmul matmul = call_of(product(acc(), {a, b, {"M", "N"}}));
  CHECK(matmul.first.tensor == "right");
  CHECK(matmul.first.is_transposed == (b.front() == "N"));
  CHECK(matmul.first.leading_dimension == (b.front() == "N" ? 128 : 96));
  CHECK(matmul.second.tensor == "left");
  CHECK(matmul.second.is_transposed == (a.front() == "K"));
  CHECK(matmul.second.leading_dimension == (a.front() == "K" ? 64 : 128));
}

TEST_CASE("a column-major result keeps the order of the operands, and its bias runs along its rows") {
  const Layout layout = {{"M", "K"}, {"N", "K"}, {"N", "M"}};
  const LibraryMatmul matmul = call_of(product(acc() + read("column", Names{"m"}), layout));
  CHECK(matmul.rows == 64);
  CHECK(matmul.first.tensor == "left");
  CHECK(matmul.first.is_transposed);
  CHECK(matmul.out.leading_dimension == 64);
  CHECK(matmul.bias == "column");
  const std::string text = refusal(product(acc() + bias(), layout));
  INFO(text);
  CHECK(has(text, "along m, the contiguous axis of result; bias is not"));
}

TEST_CASE("a batch becomes strides of the batch, a broadcast operand has stride 0") {
  const LibraryMatmul matmul = call_of(product(nullptr, {{"B", "M", "K"}, {"B", "K", "N"}, {"B", "M", "N"}}));
  CHECK(matmul.num_batches == 3);
  CHECK(matmul.first.batch_stride == 128 * 96);
  CHECK(matmul.second.batch_stride == 64 * 128);
  CHECK(matmul.out.batch_stride == 64 * 96);
}

TEST_CASE("every epilogue of cuBLASLt is recognised in each spelling") {
  const ExprRef zero = number(0);
  const std::vector<std::pair<ExprRef, LibraryEpilogue>> cases = {
      {acc(), LibraryEpilogue::kNone},
      {acc() + bias(), LibraryEpilogue::kBias},
      {cast(DType::kF32, bias()) + acc(), LibraryEpilogue::kBias},
      {call(Function::kRelu, {acc()}), LibraryEpilogue::kRelu},
      {call(Function::kMax, {zero, acc()}), LibraryEpilogue::kRelu},
      {call(Function::kMax, {bias() + acc(), zero}), LibraryEpilogue::kReluBias},
      {cast(DType::kF16, call(Function::kRelu, {acc() + bias()})), LibraryEpilogue::kReluBias},
      {call(Function::kGeluTanh, {acc()}), LibraryEpilogue::kGeluTanh},
      {call(Function::kGeluTanh, {acc() + bias()}), LibraryEpilogue::kGeluTanhBias},
  };
  for (const auto& [value, epilogue] : cases) {
    INFO(to_text(value));
    const LibraryMatmul matmul = call_of(product(value));
    CHECK(matmul.epilogue == epilogue);
    CHECK(matmul.bias == (has_bias(epilogue) ? "bias" : ""));
  }
}

TEST_CASE("another function of the product is refused with the statement and its line") {
  const std::vector<ExprRef> values = {
      acc() * number(0.5),
      call(Function::kSilu, {acc() + bias()}),
      call(Function::kRelu, {acc()}) + bias(),
      acc() + acc(),
      acc() + number(1),
      call(Function::kMax, {acc(), number(0.1)}),
      call(Function::kRelu, {cast(DType::kF16, acc())}),
      acc() + bias() + bias(),
  };
  for (const ExprRef& value : values) {
    const std::string text = refusal(product(value));
    INFO(text);
    CHECK(has(text, "test.op.toml:2:1: cuBLASLt has no epilogue for `result[m,n] = "));
    CHECK(has(text, "it fuses a bias vector, relu, gelu_tanh"));
  }
}

TEST_CASE("gelu by erf is not the library's") {
  CHECK(has(refusal(product(call(Function::kGelu, {acc()}))), "its GELU is the tanh approximation, in this notation gelu_tanh"));
}

TEST_CASE("what is added must be a vector along the contiguous axis, of the result's type") {
  CHECK(has(refusal(product(acc() + read("column", Names{"m"}))), "along n, the contiguous axis of result; column is not"));
  CHECK(has(refusal(product(acc() + bias(), {{"M", "K"}, {"N", "K"}, {"M", "N"}}, DType::kF32)), "bias is f32, result is f16"));
  CHECK(has(refusal(product(acc() + read("scale", Names{}))), "scale is not"));
}

TEST_CASE("types of the library are served, others are refused by name") {
  for (const auto& [in, out] : {std::pair{DType::kF16, DType::kF16}, std::pair{DType::kBF16, DType::kBF16},
                                std::pair{DType::kF32, DType::kF32}, std::pair{DType::kBF16, DType::kF32}})
    CHECK(call_of(product(acc(), {{"M", "K"}, {"N", "K"}, {"M", "N"}, in, out})).out.dtype == out);
  CHECK(has(refusal(product(acc(), {{"M", "K"}, {"N", "K"}, {"M", "N"}, DType::kF16, DType::kBF16})), "result is bf16"));
  CHECK(has(refusal(product(acc(), {{"M", "K"}, {"N", "K"}, {"M", "N"}, DType::kI8, DType::kF32})), "left is i8"));
  Program wide = matmul_bias_relu(DType::kF32);
  CHECK_FALSE(call_of(wide).multiplies_tf32);
  wide.uses_tf32 = true;
  CHECK(call_of(wide).multiplies_tf32);
  wide.accumulate = DType::kF64;
  CHECK(has(refusal(wide), "sums in f32: this op in f64"));
}

TEST_CASE("strides that the problem gives become leading dimensions, and a tensor without a contiguous axis is refused") {
  Builder builder("strided");
  builder.dims({"M", "N", "K"}).index("m", "M").index("n", "N").index("k", "K");
  builder.tensor("A", DType::kF16, {"M", "K"}).strides({"A.stride0", "A.stride1"});
  builder.tensor("B", DType::kF16, {"N", "K"}).tensor("out", DType::kF16, {"M", "N"}, TensorRole::kOut);
  builder.statement("out", {"m", "n"}, reduce(ReduceOp::kSum, {"k"}, read("A", Names{"m", "k"}) * read("B", Names{"n", "k"})), true);
  Problem problem = shape(64, 96, 128);
  problem.strides = {{"A.stride0", 136}, {"A.stride1", 1}};
  CHECK(call_of(builder.program, problem).second.leading_dimension == 136);
  problem.strides = {{"A.stride0", 1}, {"A.stride1", 72}};
  CHECK(call_of(builder.program, problem).second.is_transposed);
  problem.strides = {{"A.stride0", 256}, {"A.stride1", 2}};
  CHECK(has(refusal(builder.program, problem), "A: cuBLASLt needs a contiguous axis"));
  problem.strides = {{"A.stride0", 0}, {"A.stride1", 1}};  // every row the same: no leading dimension
  CHECK(has(refusal(builder.program, problem), "rows that do not overlap"));
}

TEST_CASE("extents of 1 fit both ways, and the bias decides which") {
  const LibraryMatmul one_row = call_of(matmul_bias_relu(), shape(1, 96, 128));
  CHECK(one_row.rows == 96);
  CHECK(one_row.cols == 1);
  CHECK(one_row.out.leading_dimension >= 96);
  const LibraryMatmul one_column = call_of(product(acc() + read("column", Names{"m"})), shape(64, 1, 128));
  CHECK(one_column.rows == 64);
  CHECK(one_column.bias == "column");
  const LibraryMatmul one_product = call_of(matmul_bias_relu(), shape(64, 96, 1));
  CHECK(one_product.first.leading_dimension >= (one_product.first.is_transposed ? 1 : 96));
}

TEST_CASE("an empty product, two results and two contractions are no call") {
  CHECK(has(refusal(matmul_bias_relu(), shape(64, 96, 0)), "an empty product"));
  Program two = product(acc());
  Builder builder("two");
  builder.program = two;
  builder.tensor("other", DType::kF16, {"M", "N"}, TensorRole::kOut);
  builder.statement("other", {"m", "n"}, call(Function::kRelu, {acc()}), true);
  CHECK(has(refusal(builder.program), "cuBLASLt has no epilogue for `other[m,n] = relu(acc[m,n])`: a call writes one result"));
  Builder rows("rows");
  rows.dims({"M", "K"}).index("m", "M").index("k", "K").tensor("x", DType::kF16, {"M", "K"});
  rows.tensor("out", DType::kF16, {"M"}, TensorRole::kOut);
  rows.statement("out", {"m"}, reduce(ReduceOp::kSum, {"k"}, read("x", Names{"m", "k"})), true);
  CHECK(has(refusal(rows.program), "not a matrix product"));
}

TEST_CASE("a result that is updated in place is refused") {
  Program program = matmul_bias_relu();
  program.tensors.back().role = TensorRole::kInOut;
  CHECK(has(refusal(program), "out is updated in place"));
}
