// The text of the epilogue hook: what is read, how it is computed, where it goes. Whether the text compiles and computes is tested
// by the golden files (tests/emit) and on the device.
// SPDX-License-Identifier: Apache-2.0
#include "generator/lower/lower.h"
#include "generator/lower/names.h"
#include "tests/catch.h"
#include "tests/plan/programs.h"

using namespace kw;
using namespace kw::generator;
using namespace kw::generator::testing;
using Names = std::vector<std::string>;

namespace {

LoweredEpilogue lower(const Program& program) {
  const TemplatePattern pattern = *parse_template_pattern("out[b,m,n] = epilogue(sum[k](A[b,m,k] * B[b,k,n]))");
  const auto groups = plan_groups(program);
  REQUIRE(groups);
  std::string why_not;
  const auto matches = unify(pattern, groups->front(), program, why_not);
  INFO(why_not);
  REQUIRE_FALSE(matches.empty());
  const auto lowered = lower_epilogue(matches.front(), program);
  REQUIRE(lowered);
  return *lowered;
}

/// The example with another value for out.
Program with_value(const ExprRef& value, DType out = DType::kF16) {
  Program program = matmul_bias_relu();
  program.tensors[3].dtype = out;
  program.statements[1].value = value;
  return program;
}

ExprRef acc() { return read("acc", Names{"m", "n"}); }
std::string store_of(const Program& program) { return lower(program).hooks.at("epilogue_store"); }

}  // namespace

TEST_CASE("the example's epilogue reads the bias, computes and stores") {
  const LoweredEpilogue lowered = lower(matmul_bias_relu());
  CHECK(lowered.hooks.at("epilogue_args") == "{\n  const Half* bias;\n  Half* out;\n  long long out_stride_m;\n}");
  CHECK(lowered.hooks.at("epilogue_store") ==
        "{\n"
        "  float bias_values[kVec] = {};\n"
        "  load_vector<kVec>(args.bias + n, 1, count, bias_values);\n"
        "  float out_values[kVec];\n"
        "#pragma unroll\n"
        "  for (int i = 0; i < kVec; ++i) {\n"
        "    out_values[i] = relu(acc[i] + bias_values[i]);\n"
        "  }\n"
        "  store_vector<kVec>(args.out + m * args.out_stride_m + n, 1, count, out_values);\n"
        "}");
  CHECK(lowered.support == "/// max(x, 0); NaN stays NaN.\n__device__ __forceinline__ float relu(float x) { return x < 0 ? 0 : x; }\n");
  REQUIRE(lowered.fields.size() == 3);
  CHECK(lowered.fields[0].kind == PlanField::Kind::kTensor);
  CHECK(lowered.fields[0].source == "bias");
  CHECK(lowered.fields[2].kind == PlanField::Kind::kInt64);
  CHECK(lowered.fields[2].value.to_text() == "N");
}

TEST_CASE("a vector over m is read once before the loop") {
  Program program = with_value(acc() * read("rows", Names{"m"}));
  program.tensors[2] = program.tensors[0];
  program.tensors[2].name = "rows";
  program.tensors[2].shape = {IntExpr::variable("M")};
  program.tensors[2].strides = {IntExpr(1)};
  const std::string text = store_of(program);
  CHECK_THAT(text, contains_text("  const float rows_value = to_accumulator<float>(args.rows[m]);\n"));
  CHECK_THAT(text, contains_text("out_values[i] = acc[i] * rows_value;"));
}

TEST_CASE("scalars are fields, derived ones are computed once from dims") {
  Program program = with_value(acc() * scalar("scale") * scalar("alpha") + read("bias", Names{"n"}));
  program.scalars.push_back({"alpha", nullptr, DType::kF32});
  program.scalars.push_back({"scale", call(Function::kDiv, {number(1), call(Function::kSqrt, {dim("K")})}), DType::kF32});
  const LoweredEpilogue lowered = lower(program);
  CHECK_THAT(lowered.hooks.at("epilogue_store"),
             contains_text("const float scale = divide_approximate(1.0f, sqrtf(static_cast<float>(args.dim_K)));"));
  CHECK_THAT(lowered.hooks.at("epilogue_store"), contains_text("acc[i] * scale * args.alpha + bias_values[i]"));
  CHECK_THAT(lowered.hooks.at("epilogue_args"), contains_text("long long dim_K;") && contains_text("float alpha;"));
}

TEST_CASE("a read under where stays in its branch unless it is surely inside the tensor") {
  const ExprRef condition = call(Function::kLt, {make_index("n"), number(8, DType::kI64)}, DType::kBool);
  const ExprRef shifted = read("bias", {call(Function::kSub, {make_index("n"), number(8, DType::kI64)}, DType::kI64)});
  const std::string lazy = store_of(with_value(call(Function::kWhere, {condition, acc(), shifted})));
  CHECK_THAT(lazy, contains_text("out_values[i] = n + i < 8 ? acc[i] : to_accumulator<float>(args.bias["));
  CHECK_THAT(lazy, contains_text("if (i >= count)"));
  const std::string safe = store_of(with_value(call(Function::kWhere, {condition, acc(), read("bias", Names{"n"})})));
  CHECK_THAT(safe, contains_text("load_vector<kVec>(args.bias + n, 1, count, bias_values);"));
  CHECK_THAT(safe, !contains_text("if (i >= count)"));
}

TEST_CASE("an expression used twice is named, x ^ 2 is a product") {
  const std::string text = store_of(with_value(call(Function::kPow, {acc() + read("bias", Names{"n"}), number(2)})));
  CHECK_THAT(text, contains_text("    const float value = acc[i] + bias_values[i];\n"));
  CHECK_THAT(text, contains_text("out_values[i] = value * value;"));
}

TEST_CASE("exponentials and quotients are approximated for results of 16 bits alone") {
  for (const Function function : {Function::kExp, Function::kSigmoid, Function::kSilu, Function::kGeluTanh}) {
    const ExprRef value = call(Function::kDiv, {call(function, {acc()}), read("bias", Names{"n"})});
    CHECK_THAT(store_of(with_value(value)), contains_text("divide_approximate(") && contains_text("_approximate(acc[i])"));
    CHECK_THAT(store_of(with_value(value, DType::kF32)), contains_text(" / bias_values[i]") && !contains_text("approximate"));
  }
}

TEST_CASE("casts round through the element type") {
  const std::string text = store_of(with_value(cast(DType::kBF16, acc()) + read("bias", Names{"n"})));
  CHECK_THAT(text, contains_text("round_to_bf16(acc[i]) + bias_values[i]"));
}

TEST_CASE("an 8-bit integer output saturates") {
  const std::string text = store_of(with_value(acc() + read("bias", Names{"n"}), DType::kI8));
  CHECK_THAT(text, contains_text("int out_values[kVec];"));
  CHECK_THAT(text, contains_text("out_values[i] = saturate_i8(acc[i] + bias_values[i]);"));
}

TEST_CASE("max and min propagate NaN and integer division floors") {
  const ExprRef row = call(Function::kFloorDiv, {make_index("m"), number(3, DType::kI64)}, DType::kI64);
  const LoweredEpilogue lowered =
      lower(with_value(call(Function::kMax, {acc() + read("bias", Names{"n"}), call(Function::kMul, {row, number(0.5)})})));
  CHECK_THAT(lowered.hooks.at("epilogue_store"), contains_text("const float uniform = static_cast<float>(floor_div(m, 3)) * 0.5f;"));
  CHECK_THAT(lowered.hooks.at("epilogue_store"), contains_text("maximum(acc[i] + bias_values[i], uniform)"));
  CHECK_THAT(lowered.support, contains_text("long long floor_div(long long a, long long b)") && contains_text("max.NaN.f32"));
}

TEST_CASE("the steps of an epilogue: what it reads, the elements, the store") {
  const LoweredEpilogue lowered = lower(matmul_bias_relu());
  CHECK(lowered.hooks.at("epilogue_reads") == "{\n  ElementWords<Half, 2> bias;\n}");
  CHECK(lowered.hooks.at("epilogue_read") == "{\n  load_elements<2, kIsWhole>(args.bias + n, 1, count, reads.bias);\n}");
  CHECK(lowered.hooks.at("epilogue_values") ==
        "{\n"
        "#pragma unroll\n"
        "  for (int i = 0; i < 2; ++i) {\n"
        "    values[i] = from_accumulator<Element>(relu(acc[i] + to_accumulator<float>(reads.bias.elements[i])));\n"
        "  }\n"
        "}");
  CHECK(lowered.hooks.at("epilogue_store_values") ==
        "{\n  store_elements<kVec, kIsWhole>(args.out + m * args.out_stride_m + n, 1, count, values);\n}");
  CHECK(lowered.hooks.at("epilogue_is_aligned") ==
        "{\n  return is_aligned_for<kVec>(args.bias, 0) && is_aligned_for<kVec>(args.out, args.out_stride_m);\n}");
}

TEST_CASE("the steps read a row's value once and leave a lazy read where it is") {
  Program program = with_value(acc() * read("rows", Names{"m"}));
  program.tensors[2] = program.tensors[0];
  program.tensors[2].name = "rows";
  program.tensors[2].shape = {IntExpr::variable("M")};
  program.tensors[2].strides = {IntExpr(1)};
  const LoweredEpilogue rows = lower(program);
  CHECK(rows.hooks.at("epilogue_reads") == "{\n  float rows;\n}");
  CHECK(rows.hooks.at("epilogue_read") == "{\n  reads.rows = to_accumulator<float>(args.rows[m]);\n}");
  CHECK_THAT(rows.hooks.at("epilogue_values"), contains_text("from_accumulator<Element>(acc[i] * reads.rows)"));

  const ExprRef condition = call(Function::kLt, {make_index("n"), number(8, DType::kI64)}, DType::kBool);
  const ExprRef shifted = read("bias", {call(Function::kSub, {make_index("n"), number(8, DType::kI64)}, DType::kI64)});
  const LoweredEpilogue lazy = lower(with_value(call(Function::kWhere, {condition, acc(), shifted})));
  CHECK(lazy.hooks.at("epilogue_reads") == "{\n}");
  CHECK_THAT(lazy.hooks.at("epilogue_values"),
             contains_text("n + i < 8 ? acc[i] : to_accumulator<float>(args.bias[") && contains_text("if (!kIsWhole && i >= count)"));
}

TEST_CASE("the steps are of the first output; the arguments are those of all") {
  Builder builder("op");
  builder.program = matmul_bias_relu();
  builder.tensor("raw", DType::kF32, {"N", "M"}, TensorRole::kOut);
  builder.statement_at("raw", at({"n", "m"}), {"n", "m"}, acc(), true);
  const LoweredEpilogue lowered = lower(builder.program);
  CHECK_THAT(lowered.hooks.at("epilogue_args"), contains_text("  float* raw;"));
  CHECK_THAT(lowered.hooks.at("epilogue_values"), contains_text("relu(") && !contains_text("raw"));
  CHECK_THAT(lowered.hooks.at("epilogue_store_values"), contains_text("args.out") && !contains_text("raw"));
  CHECK_THAT(lowered.hooks.at("epilogue_is_aligned"), contains_text("args.out") && !contains_text("raw"));
}

TEST_CASE("the hooks of a row: what a vector needs, a step of each reduction by phase, the outputs") {
  Builder builder("op");
  builder.dims({"M", "N"}).index("m", "M").index("n", "N").index("j", "N");
  builder.tensor("x", DType::kBF16, {"M", "N"}).tensor("out", DType::kBF16, {"M", "N"}, TensorRole::kOut);
  builder.tensor("w", DType::kBF16, {"N"}).tensor("peak", DType::kF32, {"M"}, TensorRole::kOut);
  const auto x = [](const std::string& column) { return read("x", Names{"m", column}); };
  const ExprRef peak = reduce(ReduceOp::kMax, {"j"}, x("j"));
  builder.statement("out", {"m", "n"}, x("n") * reduce(ReduceOp::kSum, {"j"}, x("j") * peak) + read("w", Names{"n"}), true);
  builder.statement("peak", {"m"}, peak, true);
  const auto groups = plan_groups(builder.program);
  REQUIRE(groups);
  std::string why_not;
  const auto matches = unify(*parse_template_pattern("out[m,n] = row[n](m)"), groups->front(), builder.program, why_not);
  INFO(why_not);
  REQUIRE(matches.size() == 1);
  const auto lowered = lower_row(matches.front(), builder.program);
  REQUIRE(lowered);
  CHECK(lowered->hooks.at("row_reads") == "{\n  ElementWords<BFloat16, Config::VEC> x;\n}");
  CHECK(lowered->hooks.at("row_read") ==
        "{\n  load_row_elements<kIsWhole>(args.x + m * known<Config::EXTENT_N>(args.x_stride_m) + n, 1, count, reads.x);\n}");
  CHECK(lowered->hooks.at("row_columns") == "{\n  ElementWords<BFloat16, Config::VEC> w;\n}");
  CHECK(lowered->hooks.at("row_read_columns") == "{\n  load_elements<Config::VEC, kIsWhole>(args.w + n, 1, count, columns.w);\n}");
  CHECK(lowered->hooks.at("row_results") == "{\n  float row_max;\n  float row_sum;\n}");
  CHECK_THAT(lowered->hooks.at("row_identity"),
             contains_text("if constexpr (kPhase == 0) {\n  partial[0] = -__int_as_float(0x7f800000);\n}") &&
                 contains_text(" else {\n  partial[0] = 0.0f;\n}"));
  CHECK_THAT(lowered->hooks.at("row_accumulate"),
             contains_text("partial[0] = maximum(partial[0], to_accumulator<float>(reads.x.elements[i]));") &&
                 contains_text("partial[0] = partial[0] + to_accumulator<float>(reads.x.elements[i]) * results.row_max;") &&
                 contains_text("if (!kIsWhole && i >= count)"));
  CHECK_THAT(lowered->hooks.at("row_combine"), contains_text("maximum(partial[0], other[0])"));
  CHECK_THAT(lowered->hooks.at("row_finish"),
             contains_text("results.row_max = partial[0];") && contains_text("results.row_sum = partial[0];"));
  CHECK_THAT(lowered->hooks.at("row_store"), contains_text("from_accumulator<BFloat16>(") && !contains_text("peak"));
  CHECK(lowered->hooks.at("row_store_once") == "{\n  *(args.peak + m) = from_accumulator<float>(results.row_max);\n}");
  CHECK(lowered->hooks.at("row_is_aligned") ==
        "{\n  return is_aligned_for<kVec>(args.x, known<Config::EXTENT_N>(args.x_stride_m)) & is_aligned_for<kVec>(args.w, 0) & "
        "is_aligned_for<kVec>(args.out, known<Config::EXTENT_N>(args.out_stride_m));\n}");
  CHECK(lowered->misalignment.evaluate({{"N", 64}, {"x.align", 16}, {"w.align", 32}, {"out.align", 16}}) == 0);
  CHECK(*lowered->misalignment.evaluate({{"N", 60}, {"x.align", 16}, {"w.align", 16}, {"out.align", 16}}) > 0);
  CHECK(*lowered->misalignment.evaluate({{"N", 64}, {"x.align", 16}, {"w.align", 8}, {"out.align", 16}}) > 0);
}

TEST_CASE("in a row, numbers that follow from its length alone are known where that is; free strides are not") {
  Builder builder("op");
  builder.dims({"M", "N"}).index("m", "M").index("n", "N");
  builder.tensor("x", DType::kBF16, {"M", "2 * N"}).tensor("y", DType::kBF16, {"M", "N"});
  builder.tensor("out", DType::kBF16, {"M", "N"}, TensorRole::kOut);
  builder.program.tensors[1].strides = {IntExpr::variable("y.stride0"), IntExpr(1)};
  builder.program.tensors[1].has_any_strides = true;
  const ExprRef right = read("x", {make_index("m"), call(Function::kAdd, {make_index("n"), dim("N")}, DType::kI64)});
  builder.statement("out", {"m", "n"}, read("y", Names{"m", "n"}) * right, true);
  const auto groups = plan_groups(builder.program);
  REQUIRE(groups);
  std::string why_not;
  const auto matches = unify(*parse_template_pattern("out[m,n] = row[n](m)"), groups->front(), builder.program, why_not);
  REQUIRE(matches.size() == 1);
  const auto lowered = lower_row(matches.front(), builder.program);
  REQUIRE(lowered);
  CHECK_THAT(lowered->hooks.at("row_read"),
             contains_text("args.x + m * known<2 * Config::EXTENT_N>(args.x_stride_m) + n + known<Config::EXTENT_N>(args.x_offset)"));
  CHECK_THAT(lowered->hooks.at("row_read"), contains_text("args.y + m * args.y_stride_m + n"));
}

TEST_CASE("misaligned steps do not cancel one another, whichever way a row's tensors are walked") {
  Builder builder("op");
  builder.dims({"M", "N"}).index("m", "M").index("n", "N");
  builder.tensor("x", DType::kBF16, {"M", "N"}).tensor("out", DType::kBF16, {"M", "N"}, TensorRole::kOut);
  builder.program.tensors[0].strides = {IntExpr::variable("x.stride0"), IntExpr(1)};
  builder.program.tensors[0].has_any_strides = true;
  const ExprRef from_below =
      call(Function::kSub, {call(Function::kSub, {dim("M"), make_number(1, DType::kI64)}, DType::kI64), make_index("m")}, DType::kI64);
  builder.statement("out", {"m", "n"}, read("x", {from_below, make_index("n")}), true);
  const auto groups = plan_groups(builder.program);
  REQUIRE(groups);
  std::string why_not;
  const auto matches = unify(*parse_template_pattern("out[m,n] = row[n](m)"), groups->front(), builder.program, why_not);
  REQUIRE(matches.size() == 1);
  const auto lowered = lower_row(matches.front(), builder.program);
  REQUIRE(lowered);
  // C++ truncates: (-8) % 16 is -8. Each term is 0 or 1 there too.
  const std::string text = lowered->misalignment.to_cpp();
  CHECK_THAT(text, contains_text("x_stride0 % 16 != 0"));
  CHECK(*lowered->misalignment.evaluate({{"M", 2}, {"N", 64}, {"x.stride0", 68}, {"x.align", 16}, {"out.align", 16}}) == 2);
  CHECK(*lowered->misalignment.evaluate({{"M", 2}, {"N", 64}, {"x.stride0", 72}, {"x.align", 16}, {"out.align", 16}}) == 0);
}

TEST_CASE("several outputs are all computed before the first is stored") {
  Program program = matmul_bias_relu();
  Builder builder("op");
  builder.program = program;
  builder.tensor("raw", DType::kF32, {"N", "M"}, TensorRole::kOut);
  builder.statement_at("raw", at({"n", "m"}), {"n", "m"}, acc(), true);
  const std::string text = store_of(builder.program);
  const std::size_t store = text.find("store_vector");
  CHECK(text.find("raw_values[i] = acc[i]") < store);
  CHECK_THAT(text, contains_text("store_vector<kVec>(args.raw + m + n * args.raw_stride_n, args.raw_stride_n, count, raw_values);"));
}

TEST_CASE("a tensor that is updated in place is read before it is stored, through one pointer") {
  Program program = matmul_bias_relu();
  program.tensors[3].role = TensorRole::kInOut;
  program.statements[1].value = acc() + read("out", Names{"m", "n"}) + read("bias", Names{"n"});
  const LoweredEpilogue lowered = lower(program);
  const std::string text = lowered.hooks.at("epilogue_store");
  CHECK(text.find("load_vector<kVec>(args.out") < text.find("store_vector<kVec>(args.out"));
  CHECK_THAT(lowered.hooks.at("epilogue_args"), contains_text("  Half* out;") && !contains_text("const Half* out"));
}

TEST_CASE("a gathered read goes through its index tensor") {
  Program program = with_value(acc() + read("bias", {read("table", Names{"m"}, DType::kI64)}));
  Builder builder("op");
  builder.program = program;
  builder.tensor("table", DType::kI32, {"M"});
  const std::string text = store_of(builder.program);
  CHECK_THAT(text, contains_text("const long long table_value = to_accumulator<long long>(args.table[m]);"));
  CHECK_THAT(
      text,
      contains_text("const float bias_value = to_accumulator<float>(args.bias[table_value + in_axis(table_value, args.bias_extent0)]);"));
}

TEST_CASE("a subscript that is data is asked for its axis where it is read: inside the branch of a guard, and not where it is an index") {
  const ExprRef entry = read("table", Names{"m"}, DType::kI64);
  const ExprRef guard = call(Function::kGe, {entry, number(0, DType::kI64)}, DType::kBool);
  const ExprRef guarded = call(Function::kWhere, {guard, read("bias", {entry}), number(0)});
  Builder builder("op");
  builder.program = with_value(acc() + guarded + read("bias", Names{"n"}));
  builder.tensor("table", DType::kI32, {"M"});
  const LoweredEpilogue lowered = lower(builder.program);
  const std::string text = lowered.hooks.at("epilogue_store");
  const std::size_t check = text.find("in_axis(");
  REQUIRE(check != std::string::npos);
  CHECK(text.find("in_axis(", check + 1) == std::string::npos);
  const std::size_t question = text.rfind('?', check), statement = text.rfind(';', check);
  INFO(text);
  REQUIRE(question != std::string::npos);
  CHECK(question > statement);
  CHECK_THAT(lowered.support, contains_text("#ifdef KERNELWRIGHT_CHECKED"));
  CHECK_THAT(lower(with_value(acc() + read("bias", Names{"n"}))).support, !contains_text("in_axis"));
}

TEST_CASE("a vector whose subscript is data and n is asked for its first and its last element, outside of the loop over lanes") {
  const ExprRef shifted = call(Function::kAdd, {read("table", Names{"m"}, DType::kI64), make_index("n")}, DType::kI64);
  Builder builder("op");
  builder.program = with_value(acc() + read("bias", {shifted}));
  builder.tensor("table", DType::kI32, {"M"});
  const std::string text = store_of(builder.program);
  const std::string before_loop = text.substr(0, text.find("#pragma unroll"));
  CHECK_THAT(before_loop, contains_text("in_axis(n + table_value, args.bias_extent0)"));
  CHECK_THAT(before_loop, contains_text("in_axis(n + table_value + count - 1, args.bias_extent0)"));
  CHECK_THAT(before_loop, !contains_text("n + i"));
}

TEST_CASE("names that are words of C++ or hide a function get another spelling") {
  Program program = with_value(acc() * scalar("relu") + read("bias", Names{"n"}));
  program.scalars.push_back({"relu", call(Function::kSqrt, {dim("K")}), DType::kF32});
  program.tensors[2].name = "float";
  program.statements[1].value = rewrite(program.statements[1].value, [](const ExprRef& node) -> ExprRef {
    return node->name == "bias" ? read("float", Names{"n"}) : nullptr;
  });
  const LoweredEpilogue lowered = lower(program);
  CHECK_THAT(lowered.hooks.at("epilogue_args"), contains_text("const Half* float_2;"));
  CHECK_THAT(lowered.hooks.at("epilogue_store"), contains_text("const float relu_2 = sqrtf("));
}

TEST_CASE("literals read back to the same value") {
  CHECK(literal(0.1, "float") == "0.1f");
  CHECK(literal(1, "double") == "1.0");
  CHECK(literal(1e30, "float") == "1e+30f");
  CHECK(literal(-1e39, "float") == "-__int_as_float(0x7f800000)");
  CHECK(literal(3, "long long") == "3");
  CHECK(literal(5e9, "long long") == "5000000000ll");
  CHECK(element_type_name(DType::kE4M3) == "E4M3");
  CHECK(value_type_name(DType::kF16, DType::kF64) == "double");
}

// The kernel read the tensor in place of its sums, or stopped with an internal fault.
TEST_CASE("a tensor that is called like the sums is a tensor") {
  for (const bool is_scalar : {true, false}) {
    Builder builder("acc");
    builder.dims({"M", "N", "K"}).index("m", "M").index("n", "N").index("k", "K");
    builder.tensor("A", DType::kF16, {"M", "K"}).tensor("B", DType::kF16, {"K", "N"});
    builder.tensor("acc", DType::kF32, is_scalar ? Names{} : Names{"N"}).tensor("out", DType::kF16, {"M", "N"}, TensorRole::kOut);
    const ExprRef sum = reduce(ReduceOp::kSum, {"k"}, read("A", Names{"m", "k"}) * read("B", Names{"k", "n"}));
    builder.statement("out", {"m", "n"}, sum + read("acc", is_scalar ? Names{} : Names{"n"}), true);
    const LoweredEpilogue lowered = lower(builder.program);
    CHECK_THAT(lowered.hooks.at("epilogue_store"), contains_text("acc[i] + acc_value"));
    CHECK_THAT(lowered.hooks.at("epilogue_args"), contains_text("const float* acc;"));
  }
}
