// See golden_cases.h.
// SPDX-License-Identifier: Apache-2.0
#include "tests/emit/golden_cases.h"

#include <cmath>

#include "tests/plan/programs.h"

namespace kw::generator::testing {
namespace {

using Names = std::vector<std::string>;

ExprRef acc(const Names& indices) { return read("acc", indices); }

Builder operands(const std::string& name, DType dtype, DType accumulate, const Names& a, const Names& b) {
  Builder builder(name);
  builder.dims({"G", "M", "N", "K"}).index("g", "G").index("m", "M").index("n", "N").index("k", "K");
  const auto upper = [](const Names& indices) {
    Names extents;
    for (const std::string& index : indices) extents.push_back(std::string(1, static_cast<char>(index[0] - 'a' + 'A')));
    return extents;
  };
  builder.tensor("A", dtype, upper(a)).tensor("B", dtype, upper(b));
  builder.program.accumulate = accumulate;
  const bool is_batched = a.front() == "g";
  builder.statement("acc", is_batched ? Names{"g", "m", "n"} : Names{"m", "n"},
                    reduce(ReduceOp::kSum, {"k"}, read("A", a, accumulate) * read("B", b, accumulate)), false);
  return builder;
}

/// gelu of a batched product with scalars, a residual and the raw sums beside it, transposed: split-K.
Program batched_two_outputs() {
  const Names full = {"g", "m", "n"};
  Builder builder = operands("batched_two_outputs", DType::kBF16, DType::kF32, {"g", "k", "m"}, {"g", "k", "n"});
  builder.tensor("residual", DType::kBF16, {"G", "M", "N"}).tensor("out", DType::kBF16, {"G", "M", "N"}, TensorRole::kOut);
  builder.tensor("raw", DType::kF32, {"G", "N", "M"}, TensorRole::kOut);
  builder.scalar("alpha").scalar("scale", call(Function::kDiv, {number(1), call(Function::kSqrt, {dim("K")})}));
  const ExprRef scaled = acc(full) * scalar("scale");
  builder.statement("out", full, call(Function::kGelu, {scaled}) * scalar("alpha") + read("residual", full), true);
  builder.statement_at("raw", at({"g", "n", "m"}), {"g", "n", "m"}, acc(full), true);
  return builder.program;
}

/// A causal mask and a clamp: index values as numbers, lazy reads, NaN-propagating min and max.
Program masked() {
  const Names full = {"m", "n"};
  Builder builder = operands("masked", DType::kF16, DType::kF32, {"m", "k"}, {"k", "n"});
  builder.tensor("shift", DType::kF32, {"N - 8"}).tensor("out", DType::kF16, {"M", "N"}, TensorRole::kOut);
  const ExprRef is_late = call(Function::kGe, {make_index("n"), number(8, DType::kI64)}, DType::kBool);
  const ExprRef shifted = acc(full) + read("shift", {call(Function::kSub, {make_index("n"), number(8, DType::kI64)}, DType::kI64)});
  const ExprRef is_seen = call(Function::kLe, {make_index("n"), make_index("m")}, DType::kBool);
  const ExprRef kept = call(Function::kWhere, {is_late, shifted, acc(full)});
  const ExprRef clamped = call(Function::kMax, {call(Function::kMin, {kept, number(6)}), number(-6)});
  builder.statement("out", full, call(Function::kWhere, {is_seen, clamped, number(-HUGE_VAL)}), true);
  return builder.program;
}

Program f32_residual_in_place() {
  const Names full = {"m", "n"};
  Builder builder = operands("f32_residual_in_place", DType::kF32, DType::kF32, {"k", "m"}, {"n", "k"});
  builder.tensor("rows", DType::kF32, {"M"}).tensor("x", DType::kF32, {"M", "N"}, TensorRole::kInOut);
  builder.statement("x", full, read("x", full) + call(Function::kTanh, {acc(full) * read("rows", Names{"m"})}), true);
  return builder.program;
}

Program tf32_silu() {
  Builder builder = operands("tf32_silu", DType::kF32, DType::kF32, {"m", "k"}, {"n", "k"});
  builder.tensor("out", DType::kF32, {"M", "N"}, TensorRole::kOut);
  builder.program.uses_tf32 = true;
  builder.statement("out", {"m", "n"}, call(Function::kSilu, {acc({"m", "n"})}), true);
  return builder.program;
}

Program f64_softplus() {
  Builder builder = operands("f64_softplus", DType::kF64, DType::kF64, {"m", "k"}, {"k", "n"});
  builder.tensor("out", DType::kF64, {"M", "N"}, TensorRole::kOut);
  const auto f64 = [](Function function, std::vector<ExprRef> values) { return call(function, std::move(values), DType::kF64); };
  const ExprRef sum = read("acc", Names{"m", "n"}, DType::kF64);
  builder.statement("out", {"m", "n"}, f64(Function::kLog, {f64(Function::kAdd, {number(1, DType::kF64), f64(Function::kExp, {sum})})}),
                    true);
  return builder.program;
}

Program i8_exact() {
  Builder builder = operands("i8_exact", DType::kI8, DType::kI32, {"m", "k"}, {"n", "k"});
  builder.tensor("out", DType::kI32, {"M", "N"}, TensorRole::kOut).tensor("low", DType::kI8, {"M", "N"}, TensorRole::kOut);
  const ExprRef sum = read("acc", Names{"m", "n"}, DType::kI32);
  builder.statement("out", {"m", "n"}, sum, true);
  builder.statement("low", {"m", "n"}, call(Function::kMax, {sum, number(0, DType::kI32)}, DType::kI32), true);
  return builder.program;
}

/// Three phases: softmax of a row, and the largest of its results beside it.
Program softmax_and_scale() {
  Builder builder("softmax_and_scale");
  builder.dims({"M", "N"}).index("m", "M").index("n", "N").index("j", "N");
  builder.tensor("x", DType::kBF16, {"M", "N"}).tensor("out", DType::kBF16, {"M", "N"}, TensorRole::kOut);
  builder.tensor("peak", DType::kF32, {"M"}, TensorRole::kOut);
  const auto softmax = [](const std::string& index) { return reduce(ReduceOp::kSoftmax, {index}, read("x", Names{"m", index})); };
  builder.statement("out", {"m", "n"}, softmax("n"), true);
  builder.statement("peak", {"m"}, reduce(ReduceOp::kMax, {"j"}, softmax("j")), true);
  return builder.program;
}

/// Pointwise, of two halves of one tensor, with a table of positions.
Program gated() {
  Builder builder("gated");
  builder.dims({"M", "N"}).index("m", "M").index("n", "N");
  builder.tensor("x", DType::kF16, {"M", "2 * N"}).tensor("table", DType::kI32, {"M"}).tensor("scale", DType::kF32, {"M", "N"});
  builder.tensor("out", DType::kF16, {"M", "N"}, TensorRole::kOut);
  const ExprRef right = read("x", {make_index("m"), call(Function::kAdd, {make_index("n"), dim("N")}, DType::kI64)});
  const ExprRef scale = read("scale", {read("table", Names{"m"}, DType::kI64), make_index("n")});
  builder.statement("out", {"m", "n"}, call(Function::kSilu, {read("x", Names{"m", "n"})}) * right * scale, true);
  return builder.program;
}

/// A gated linear unit whose products are rounded, with a bias of the gate.
Program glu() {
  const Names full = {"m", "n"};
  Builder builder("glu");
  builder.dims({"M", "N", "K"}).index("m", "M").index("n", "N").index("k", "K");
  builder.tensor("x", DType::kBF16, {"M", "K"}).tensor("gate", DType::kBF16, {"N", "K"}).tensor("up", DType::kBF16, {"N", "K"});
  builder.tensor("bias", DType::kBF16, {"N"}).tensor("h", DType::kBF16, {"M", "N"}, TensorRole::kOut);
  const auto product = [](const char* weights) {
    return reduce(ReduceOp::kSum, {"k"}, read("x", Names{"m", "k"}) * read(weights, Names{"n", "k"}));
  };
  builder.statement("g", full, cast(DType::kBF16, product("gate")), false).statement("u", full, cast(DType::kBF16, product("up")), false);
  builder.statement("h", full, call(Function::kSilu, {read("g", full) + read("bias", Names{"n"})}) * read("u", full), true);
  return builder.program;
}

}  // namespace

std::vector<GoldenCase> golden_cases() {
  std::vector<GoldenCase> cases;
  cases.push_back({"gemm_sm80_mma", matmul_bias_relu(), {}});
  cases.push_back({"gemm_simt", matmul_bias_relu(), {}});
  cases.push_back({"gemm_sm80_mma", batched_two_outputs(), {{"SPLIT_K", 2}, {"WARPS_N", 4}}});
  cases.push_back({"gemm_sm80_mma", masked(), {{"BLOCK_M", 64}, {"BLOCK_N", 64}, {"A_VEC_BYTES", 2}}});
  cases.push_back({"gemm_sm80_mma", tf32_silu(), {{"STAGES", 3}}});
  cases.push_back({"gemm_simt", f32_residual_in_place(), {{"BLOCK_M", 32}}});
  cases.push_back({"gemm_simt", f64_softplus(), {{"BLOCK_N", 32}}});
  cases.push_back({"gemm_simt", i8_exact(), {{"BLOCK_K", 8}}});
  cases.push_back({"gemm_sm90_tma_wgmma", matmul_bias_relu(), {{"BLOCK_M", 256}, {"CLUSTER_N", 2}, {"IS_STAGED", 1}}, Arch::kSm90a});
  cases.push_back(
      {"gemm_sm90_tma_wgmma", batched_two_outputs(), {{"SPLIT_K", 2}, {"SPLITS_ARE_CLUSTER", 1}, {"GROUP_M", 1}}, Arch::kSm90a});
  cases.push_back({"gemm_sm90_tma_wgmma_pair", glu(), {{"BLOCK_N", 256}, {"CLUSTER_M", 2}, {"IS_STAGED", 1}}, Arch::kSm90a});
  cases.push_back({"row_sm80", softmax_and_scale(), {{"THREADS", 64}, {"CTAS_PER_SM", 2}}});
  cases.push_back({"row_sm80", gated(), {{"VEC", 8}, {"ITEMS", 2}}});
  cases.push_back({"row_sm80", gated(), {{"VEC", 8}, {"ITEMS", 1}, {"EXTENT_N", 2048}}});
  return cases;
}

const TemplateLibrary& library() {
  static const TemplateLibrary loaded = [] {
    Result<TemplateLibrary> result = TemplateLibrary::load(std::string(KW_SOURCE_DIR) + "/templates");
    if (!result) throw std::runtime_error(to_text(result.error()) + "\n" + result.error().detail);
    return *result;
  }();
  return loaded;
}

Config default_config(const TemplateInfo& info) {
  Config config;
  config.template_name = info.name;
  for (const Tunable& tunable : info.tunables) config.values[tunable.name] = tunable.default_value;
  return config;
}

Result<Variant> emit(const GoldenCase& golden) {
  const TemplateInfo* info = library().find(golden.template_name);
  KW_CHECK(info != nullptr, "golden cases name templates that exist");
  KW_TRY(const VariantFactory factory, VariantFactory::create(library(), *info, golden.program, golden.arch));
  Config config = default_config(*info);
  for (const auto& [name, value] : golden.changes) config.values[name] = value;
  return factory.emit(config);
}

}  // namespace kw::generator::testing
