// From a program and a template to contexts and variants: what is refused and why, and what the launch plan says.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "generator/emit/tune_values.h"
#include "generator/emit/variant.h"
#include "tests/catch.h"
#include "tests/emit/golden_cases.h"
#include "tests/plan/programs.h"

using namespace kw;
using namespace kw::generator;
using namespace kw::generator::testing;
using Names = std::vector<std::string>;

namespace {

VariantFactory factory_of(const std::string& name, const Program& program, Arch arch = Arch::kSm80) {
  const auto factory = VariantFactory::create(library(), *library().find(name), program, arch);
  if (!factory) FAIL(to_text(factory.error()));
  return *factory;
}

std::string refusal(const std::string& name, const Program& program) {
  const auto factory = VariantFactory::create(library(), *library().find(name), program, Arch::kSm80);
  REQUIRE_FALSE(factory);
  CHECK(factory.error().code == Code::kNotSupported);
  return factory.error().message;
}

Problem problem(std::int64_t m, std::int64_t n, std::int64_t k) {
  Problem result;
  result.dims = {{"M", m}, {"N", n}, {"K", k}};
  return result;
}

}  // namespace

TEST_CASE("the library finds both templates and knows them by name") {
  CHECK(library().find("gemm_simt") != nullptr);
  CHECK(library().find("gemm_sm80_mma") != nullptr);
  CHECK(library().find("gemm_nothing") == nullptr);
  CHECK_FALSE(TemplateLibrary::load("/nonexistent"));
}

TEST_CASE("types that a template does not serve are refused with the rule and the types") {
  const std::string text = refusal("gemm_sm80_mma", matmul_bias_relu(DType::kF64));
  CHECK_THAT(text, contains_text("gemm_sm80_mma: A is f64, B is f64, accumulate is f32: element_types: "));
  std::vector<std::string> refusals;
  const auto factories = factories_for(library(), matmul_bias_relu(DType::kF64), Arch::kSm80, refusals);
  REQUIRE(factories.size() == 2);
  CHECK(factories[0].info().name == "gemm_simt");
  CHECK(factories[1].info().name == "row_sm80");
  REQUIRE(refusals.size() == 4);
  CHECK_THAT(refusals[0], contains_text("gemm_sm80_mma: A is f64"));
  CHECK(refusals[1] == "gemm_sm90_tma_wgmma: needs sm_90a, the target is sm_80");
  CHECK(refusals[2] == "gemm_sm90_tma_wgmma_pair: the template takes two contractions with one operand in common");
  CHECK(refusals[3] == "list_sm80: reads and writes no list of tensors, and no extent depends on data");
}

TEST_CASE("operands of two 16-bit types are refused by the tensor-core template") {
  Program program = matmul_bias_relu();
  program.tensors[1].dtype = DType::kBF16;
  CHECK_THAT(refusal("gemm_sm80_mma", program), contains_text("A is f16, B is bf16"));
  CHECK(VariantFactory::create(library(), *library().find("gemm_simt"), program, Arch::kSm80));
}

TEST_CASE("an operand with an offset is refused by name") {
  Program program = matmul_bias_relu();
  const ExprRef shifted = call(Function::kAdd, {make_index("k"), number(3, DType::kI64)}, DType::kI64);
  program.statements[0].value = reduce(ReduceOp::kSum, {"k"}, read("A", {make_index("m"), shifted}) * read("B", Names{"n", "k"}));
  CHECK_THAT(refusal("gemm_simt", program), contains_text("operand A is read from element 3 on"));
}

TEST_CASE("what no one kernel makes is refused by each template with the reason") {
  Program program = matmul_bias_relu();
  program.statements[1].value = reduce(ReduceOp::kSoftmax, {"n"}, program.statements[1].value);
  std::vector<std::string> refusals;
  CHECK(factories_for(library(), program, Arch::kSm80, refusals).empty());
  REQUIRE(refusals.size() == library().templates().size());
  CHECK_THAT(refusals[0], contains_text("gemm_simt: not made yet: softmax"));
  CHECK_THAT(refusals.back(), contains_text("row_sm80: reductions over "));
}

TEST_CASE("the context of a problem has the template's variables") {
  const VariantFactory factory = factory_of("gemm_sm80_mma", matmul_bias_relu());
  Problem odd = problem(7, 16, 100);
  odd.align_bytes["A"] = 2;
  const auto context = factory.space_context(odd, generic_device(Arch::kSm80));
  REQUIRE(context);
  CHECK(context->problem.at("extent_b") == 1);
  CHECK(context->problem.at("extent_m") == 7);
  CHECK(context->problem.at("A_stride_m") == 100);
  CHECK(context->problem.at("A_stride_k") == 1);
  CHECK(context->problem.at("A_align") == 2);
  CHECK(context->problem.at("B_align") == 16);
  CHECK(context->bindings.at("A_IS_K_CONTIGUOUS") == 1);
  CHECK(context->bindings.at("size_bytes.ElementA") == 2);
  CHECK(context->epilogue_bytes == 2 * (16 + 7 * 16));
}

TEST_CASE("a problem without a dim, or with a negative one, is an error that names it") {
  const VariantFactory factory = factory_of("gemm_simt", matmul_bias_relu());
  Problem lacking = problem(7, 16, 100);
  lacking.dims.erase("K");
  const auto without = factory.space_context(lacking, generic_device(Arch::kSm80));
  REQUIRE_FALSE(without);
  CHECK_THAT(without.error().message, contains_text("gives no value for K"));
  const auto negative = factory.space_context(problem(-1, 16, 100), generic_device(Arch::kSm80));
  REQUIRE_FALSE(negative);
  CHECK_THAT(negative.error().message, contains_text("M = -1: must not be negative"));
}

TEST_CASE("the example has at least 300 configs on every architecture that run with wide copies") {
  for (const Arch arch : {Arch::kSm80, Arch::kSm86, Arch::kSm90, Arch::kSm120}) {
    const VariantFactory factory = factory_of("gemm_sm80_mma", matmul_bias_relu(), arch);
    const auto context = factory.space_context(problem(1024, 4096, 4096), generic_device(arch));
    REQUIRE(context);
    const auto space = ConfigSpace::enumerate(*context);
    if (!space) FAIL(to_text(space.error()));
    CHECK(space->kept().size() >= 300);
  }
}

TEST_CASE("[tune] values reach the space of the template that has them") {
  Program program = matmul_bias_relu();
  program.tune.values["STAGES"] = {3};
  const auto mma = factory_of("gemm_sm80_mma", program).space_context(problem(64, 64, 64), generic_device(Arch::kSm80));
  REQUIRE(mma);
  CHECK(mma->overrides.count("STAGES") == 1);
  const auto simt = factory_of("gemm_simt", program).space_context(problem(64, 64, 64), generic_device(Arch::kSm80));
  REQUIRE(simt);
  CHECK(simt->overrides.empty());
  program.tune.values["STAGE"] = {3};
  const auto typo = factory_of("gemm_sm80_mma", program).space_context(problem(64, 64, 64), generic_device(Arch::kSm80));
  REQUIRE(typo);
  const auto space = ConfigSpace::enumerate(*typo);
  REQUIRE_FALSE(space);
  CHECK_THAT(space.error().message, contains_text("did you mean STAGES?"));
}

TEST_CASE("a [tune] value that no template of the op lists is refused with its place and the values they list") {
  Program program = matmul_bias_relu();
  program.tune.values = {{"STAGES", {0, 3}}, {"IS_STAGED", {2}}, {"BLOCK_K", {7}}, {"THREADS", {3}}, {"GROUP_M", {8}}};
  program.tune.places = {{"STAGES", {"s.op.toml", 20, 1}}, {"BLOCK_K", {"s.op.toml", 21, 1}}};
  const auto checked = check_tune_values(library(), program, Arch::kSm80);
  REQUIRE_FALSE(checked);
  CHECK(exit_code(checked.error().code) == 2);
  const std::string& text = checked.error().message;
  INFO(text);
  CHECK_THAT(text, contains_text("s.op.toml:20:1: [tune] STAGES = 0: no template has this value: gemm_sm80_mma takes 2, 3, 4, 5, 6; "
                                 "gemm_sm90_tma_wgmma takes 2, 3, 4, 5, 6, 7, 8"));
  CHECK_THAT(text, contains_text("s.op.toml:21:1: [tune] BLOCK_K = 7: no template has this value: gemm_simt takes 8, 16, 32; "));
  CHECK_THAT(text, contains_text("[tune] IS_STAGED = 2: no template has this value: gemm_sm90_tma_wgmma takes 0, 1"));
  CHECK_THAT(text, contains_text("[tune] THREADS = 3: "));  // of the row template, which does not serve the op
  CHECK(text.find("GROUP_M") == std::string::npos);
  CHECK(text.find("STAGES = 3") == std::string::npos);
  // 256 rows a tile are for tensor cores: of an f64 product no template has them.
  Program doubles = matmul_bias_relu(DType::kF64);
  doubles.tune.values = {{"BLOCK_M", {256}}};
  CHECK_FALSE(check_tune_values(library(), doubles, Arch::kSm80));
}

TEST_CASE("a [tune] value of some templates narrows those and leaves the others out, by name") {
  Program program = matmul_bias_relu();
  program.tune.values = {{"BLOCK_M", {16, 192}}, {"BLOCK_K", {32, 64}}};
  program.tune.places = {{"BLOCK_M", {"s.op.toml", 20, 1}}};
  const auto notes = check_tune_values(library(), program, Arch::kSm90a);
  REQUIRE(notes);
  const auto has_note = [&](const std::string& note) { return std::find(notes->begin(), notes->end(), note) != notes->end(); };
  CHECK(has_note("s.op.toml:20:1: [tune] BLOCK_M = 192: gemm_sm80_mma takes 16, 32, 64, 128, 256, and goes without it"));
  CHECK(has_note("s.op.toml:20:1: [tune] BLOCK_M = 16: gemm_sm90_tma_wgmma takes 64, 128, 192, 256, and goes without it"));
  CHECK(has_note("[tune] BLOCK_K = 64: gemm_simt takes 8, 16, 32, and goes without it"));
  const auto mma = factory_of("gemm_sm80_mma", program).space_context(problem(64, 64, 64), generic_device(Arch::kSm80));
  REQUIRE(mma);
  CHECK(mma->overrides.at("BLOCK_M") == std::vector<std::int64_t>{16});
  program.tune.values = {{"BLOCK_K", {64}}};
  std::vector<std::string> refusals;
  const auto factories = factories_for(library(), program, Arch::kSm80, refusals);
  REQUIRE(factories.size() == 2);
  CHECK(factories[0].info().name == "gemm_sm80_mma");
  CHECK(factories[1].info().name == "row_sm80");
  CHECK(std::find(refusals.begin(), refusals.end(), "gemm_simt: left out by [tune] BLOCK_K = 64: it takes 8, 16, 32") != refusals.end());
  CHECK(check_tune_values(library(), program, Arch::kSm80)->front() == "[tune] BLOCK_K = 64: gemm_simt takes 8, 16, 32, and is left out");
}

TEST_CASE("values shared by 40 statements, and a nest of 60 functions, become named locals") {
  const auto text_of = [](const Program& program) {
    const VariantFactory factory = factory_of("row_sm80", program);
    Config config;
    for (const Tunable& tunable : factory.info().tunables) config.values[tunable.name] = tunable.default_value;
    const auto variant = factory.emit(config);
    if (!variant) FAIL(to_text(variant.error()));
    return variant->source;
  };
  const auto num_lines = [](const std::string& text) { return std::count(text.begin(), text.end(), '\n'); };
  const std::string plain = text_of(doubling_rows(0, [](const ExprRef& last) { return last; }));
  const std::string shared = text_of(doubling_rows(40, [](const ExprRef& last) { return last; }));
  CHECK(contains_text("const float value_39 = ").match(shared));
  CHECK(num_lines(shared) < num_lines(plain) + 100);
  const auto nested = [](ExprRef value) {
    for (int level = 0; level < 60; ++level) value = call(Function::kSin, {value * make_number(0.5, DType::kF32)});
    return value;
  };
  const std::string deep = text_of(doubling_rows(0, nested));
  CHECK(contains_text("const float value_4 = sinf(").match(deep));
  CHECK(num_lines(deep) < num_lines(plain) + 200);
  // What a condition guards cannot be computed ahead of it: such a nest stays whole, whatever it looks like.
  const auto guarded = [&](const ExprRef& last) {
    const ExprRef lazy = read("x", {make_index("m"), call(Function::kMod, {make_index("n") * make_index("n"), dim("N")}, DType::kI64)});
    const ExprRef is_positive = call(Function::kGt, {last, make_number(0, DType::kF32)}, DType::kBool);
    return call(Function::kWhere, {is_positive, nested(lazy), make_number(0, DType::kF32)});
  };
  CHECK(contains_text("sinf(sinf(").match(text_of(doubling_rows(0, guarded))));
}

TEST_CASE("the plan of a variant evaluates to a launch on a problem") {
  const VariantFactory factory = factory_of("gemm_sm80_mma", matmul_bias_relu());
  const auto variant = factory.emit(default_config(factory.info()));
  if (!variant) FAIL(to_text(variant.error()) << variant.error().detail);
  const LaunchPlan& plan = variant->plan;
  REQUIRE(plan.launches.size() == 1);
  CHECK(plan.launches[0].kernel == variant->id);
  CHECK_THAT(variant->source, contains_text(variant->id + "("));
  const IntBindings bindings = problem(1000, 4096, 4096).bindings(plan);
  CHECK(*plan.launches[0].grid[0].evaluate(bindings) == 8 * 32);
  CHECK(*problem(0, 4096, 4096).bindings(plan).find("M") == std::pair<const std::string, std::int64_t>{"M", 0});
  CHECK(*plan.launches[0].grid[0].evaluate(problem(0, 4096, 4096).bindings(plan)) == 0);
  std::vector<std::string> names;
  for (const PlanParameter& parameter : plan.launches[0].parameters) names.push_back(parameter.name);
  REQUIRE(names.size() >= 4);
  CHECK(Names(names.begin(), names.begin() + 4) == Names{"A", "B", "problem", "epilogue"});
  CHECK(first_broken_constraint(plan, problem(1000, 4096, 4096)).empty());
  CHECK_THAT(first_broken_constraint(plan, problem(1000, 4096, 4097)), contains_text("a_vector_alignment"));
  CHECK(to_json(*launch_plan_from_json(to_json(plan))) == to_json(plan));
}

TEST_CASE("a tensor with strides given at launch keeps them as variables of the plan") {
  Program program = matmul_bias_relu();
  program.tensors[2].strides = {IntExpr::variable("bias.stride0")};
  program.tensors[2].has_any_strides = true;
  const VariantFactory factory = factory_of("gemm_simt", program);
  const auto variant = factory.emit(default_config(factory.info()));
  REQUIRE(variant);
  const auto& fields = variant->plan.launches[0].parameters.back().fields;
  const auto stride = std::find_if(fields.begin(), fields.end(), [](const PlanField& field) { return field.name == "bias_stride_n"; });
  REQUIRE(stride != fields.end());
  CHECK(stride->value.to_text() == "bias.stride0");
  CHECK_THAT(variant->source,
             contains_text("load_vector<kVec>(args.bias + n * args.bias_stride_n, args.bias_stride_n, count, bias_values);"));
}

TEST_CASE("a config that is not of the template is an error") {
  const VariantFactory factory = factory_of("gemm_simt", matmul_bias_relu());
  Config config = default_config(factory.info());
  config.values.erase("BLOCK_M");
  const auto lacking = factory.emit(config);
  REQUIRE_FALSE(lacking);
  CHECK_THAT(lacking.error().message, contains_text("the config has no value for BLOCK_M"));
}
