// Plans of several kernels: one text with a namespace for each, one launch plan in which what a kernel leaves for later ones lies in the
// workspace, and parts of the workspace that are used in turn. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "generator/emit/variant.h"
#include "tests/catch.h"
#include "tests/emit/golden_cases.h"
#include "tests/plan/programs.h"

using namespace kw;
using namespace kw::generator;
using namespace kw::generator::testing;
using Names = std::vector<std::string>;

namespace {

/// `length` products in a row: h0 = x w, h1 = h0 w, ... , out.
Program chain(int length) {
  Builder builder("chain");
  builder.dims({"M", "N"}).index("m", "M").index("n", "N").index("k", "N");
  builder.tensor("x", DType::kBF16, {"M", "N"}).tensor("w", DType::kBF16, {"N", "N"});
  builder.tensor("out", DType::kBF16, {"M", "N"}, TensorRole::kOut);
  std::string last = "x";
  for (int i = 0; i < length; ++i) {
    const ExprRef product = reduce(ReduceOp::kSum, {"k"}, read(last, Names{"m", "k"}) * read("w", Names{"n", "k"}));
    const bool is_last = i + 1 == length;
    last = is_last ? "out" : fmt::format("h{}", i);
    builder.statement(last, {"m", "n"}, is_last ? product : cast(DType::kBF16, product), is_last);
  }
  return builder.program;
}

Partition first_cut(const Program& program, Arch arch = Arch::kSm80) {
  const auto partitions = partitions_for(library(), program, arch);
  if (!partitions) FAIL(to_text(partitions.error()));
  return partitions->front();
}

VariantFactory plan_of(const Program& program, const std::string& template_name, Arch arch = Arch::kSm80) {
  const Partition partition = first_cut(program, arch);
  std::vector<VariantFactory> steps;
  for (const Program& step : partition.steps) {
    const auto factory = VariantFactory::create(library(), *library().find(template_name), step, arch);
    if (!factory) FAIL(to_text(factory.error()));
    steps.push_back(*factory);
  }
  return *VariantFactory::create_plan(program, partition, 0, std::move(steps), arch);
}

Config best_config(const VariantFactory& plan, const Problem& problem, Arch arch = Arch::kSm80) {
  std::vector<Config> configs;
  for (const VariantFactory& step : plan.steps()) {
    const auto context = step.space_context(problem, generic_device(arch));
    REQUIRE(context);
    configs.push_back(rank(*ConfigSpace::enumerate(*context), *context).front().config);
  }
  return plan.joined(configs);
}

Problem square(std::int64_t extent) {
  Problem problem;
  problem.dims = {{"M", extent}, {"N", extent}};
  return problem;
}

/// Steps in which the tensor is written, and last read.
std::pair<std::size_t, std::size_t> lifetime(const Partition& partition, const std::string& name) {
  std::pair<std::size_t, std::size_t> steps = {partition.steps.size(), 0};
  for (std::size_t step = 0; step < partition.steps.size(); ++step) {
    if (partition.steps[step].find_tensor(name) == nullptr) continue;
    steps.first = std::min(steps.first, step);
    steps.second = step;
  }
  return steps;
}

}  // namespace

TEST_CASE("a plan is for one extent when one of its kernels is") {
  Builder builder("twice");
  builder.dims({"M", "N"}).index("m", "M").index("n", "N").index("k", "N").index("j", "N");
  builder.tensor("x", DType::kBF16, {"M", "N"})
      .tensor("w", DType::kBF16, {"N", "N"})
      .tensor("out", DType::kBF16, {"M", "N"}, TensorRole::kOut);
  builder.statement("h", {"m", "n"},
                    cast(DType::kBF16, reduce(ReduceOp::kSum, {"k"}, read("x", Names{"m", "k"}) * read("w", Names{"n", "k"}))), false);
  builder.statement("out", {"m", "n"}, read("h", Names{"m", "n"}) * reduce(ReduceOp::kMax, {"j"}, read("h", Names{"m", "j"})), true);
  const Partition partition = first_cut(builder.program);
  REQUIRE(partition.steps.size() == 2);
  std::vector<VariantFactory> steps;
  steps.push_back(*VariantFactory::create(library(), *library().find("gemm_sm80_mma"), partition.steps[0], Arch::kSm80));
  steps.push_back(*VariantFactory::create(library(), *library().find("row_sm80"), partition.steps[1], Arch::kSm80));
  const auto plan = VariantFactory::create_plan(builder.program, partition, 0, steps, Arch::kSm80);
  REQUIRE(plan);
  std::vector<Config> configs = {default_config(steps[0].info()), default_config(steps[1].info())};
  CHECK_FALSE(plan->is_for_one_extent(plan->joined(configs)));
  configs[1].values["EXTENT_N"] = 64;
  CHECK(plan->is_for_one_extent(plan->joined(configs)));
}

TEST_CASE("the plan's text has a namespace for each kernel, and its launches name them in order") {
  const VariantFactory plan = plan_of(chain(3), "gemm_sm80_mma");
  CHECK(plan.info().name == "gemm_sm80_mma+gemm_sm80_mma+gemm_sm80_mma");
  const Config config = best_config(plan, square(256));
  const auto variant = plan.emit(config);
  if (!variant) FAIL(to_text(variant.error()));
  CHECK(variant->id.rfind("plan3__", 0) == 0);
  REQUIRE(variant->plan.launches.size() == 3);
  for (std::size_t step = 0; step < 3; ++step) {
    const std::string& kernel = variant->plan.launches[step].kernel;
    CHECK(kernel.rfind(fmt::format("step{}_gemm_sm80_mma__", step), 0) == 0);
    CHECK_THAT(variant->source, contains_text(fmt::format("using step{}::{};", step, kernel)));
  }
  CHECK_THAT(variant->source,
             contains_text("a plan of 3 kernels for sm_80. What each writes, of what kernels before it: h0; h0 -> h1; h1 -> out."));
  CHECK(to_json(*plan.plan(config)) == to_json(variant->plan));
  CHECK(plan.emit(config)->source_hash == variant->source_hash);
}

TEST_CASE("kernels of a plan overlap where its config says so: each waits for the one before it, and lets the next begin") {
  const VariantFactory plan = plan_of(chain(3), "gemm_sm80_mma", Arch::kSm90);
  REQUIRE(plan.can_overlap());
  const Config in_turn = best_config(plan, square(256), Arch::kSm90);
  Config overlapping = in_turn;
  overlapping.values["DEPENDENT"] = 1;
  const auto variant = plan.emit(overlapping), other = plan.emit(in_turn);
  REQUIRE(variant);
  REQUIRE(other);
  CHECK(variant->id != other->id);
  CHECK_THAT(other->source, !contains_text("griddepcontrol"));
  REQUIRE(variant->plan.launches.size() == 3);
  for (std::size_t step = 0; step < 3; ++step) {
    const std::size_t begin = variant->source.find(fmt::format("namespace step{} {{", step));
    const std::string kernel = variant->source.substr(begin, variant->source.find(fmt::format("}}  // namespace step{}", step)) - begin);
    CHECK((kernel.find("griddepcontrol.wait") != std::string::npos) == (step > 0));
    CHECK((kernel.find("griddepcontrol.launch_dependents") != std::string::npos) == (step < 2));
    CHECK(variant->plan.launches[step].is_dependent == (step > 0));
    CHECK_FALSE(other->plan.launches[step].is_dependent);
  }
  const auto stored = launch_plan_from_json(to_json(variant->plan));
  REQUIRE(stored);
  CHECK(stored->launches[1].is_dependent);
  CHECK(to_json(*plan.plan(overlapping)) == to_json(variant->plan));
}

TEST_CASE("before sm_90 kernels of a plan do not overlap") {
  const VariantFactory plan = plan_of(chain(2), "gemm_sm80_mma");
  CHECK_FALSE(plan.can_overlap());
  Config config = best_config(plan, square(256));
  config.values["DEPENDENT"] = 1;
  CHECK_THAT(plan.emit(config)->source, !contains_text("griddepcontrol"));
  CHECK_FALSE(plan.emit(config)->plan.launches[1].is_dependent);
}

TEST_CASE("a row kernel that overlaps fetches its const rows before it waits, and reads nothing before") {
  const auto last_kernel = [](bool is_const) {
    Builder builder("two_vectors");
    builder.dims({"N"}).index("n", "N").index("j", "N").index("k", "N");
    builder.tensor("x", DType::kBF16, {"N"}).tensor("v", DType::kBF16, {"N", "N"}).tensor("w", DType::kBF16, {"N", "N"});
    builder.program.tensors.back().is_const = is_const;
    builder.tensor("out", DType::kF32, {"N"}, TensorRole::kOut);
    builder.statement("h", {"j"}, reduce(ReduceOp::kSum, {"k"}, read("x", Names{"k"}) * read("v", Names{"j", "k"})), false);
    builder.statement("out", {"n"}, reduce(ReduceOp::kSum, {"j"}, read("h", Names{"j"}) * read("w", Names{"n", "j"})), true);
    const VariantFactory plan = plan_of(builder.program, "row_sm80", Arch::kSm90);
    const Config config =
        plan.joined({default_config(plan.steps()[0].info()), default_config(plan.steps()[1].info())}, Overlap::kDependent);
    const auto variant = plan.emit(config);
    if (!variant) FAIL(to_text(variant.error()));
    return variant->source.substr(variant->source.find("namespace step1 {"));
  };
  const std::string of_const = last_kernel(true), of_others = last_kernel(false);
  CHECK_THAT(of_const, contains_text("prefetch_to_l2(args.w + "));
  CHECK_THAT(of_const, !contains_text("prefetch_to_l2(args.h"));
  CHECK_THAT(of_others, !contains_text("prefetch_to_l2"));
  for (const std::string& text : {of_const, of_others}) {
    // The kernel: it knows its place, waits, and then reads at addresses that are made of what the wait gives back.
    const std::string kernel = text.substr(text.find("__global__"));
    CHECK(kernel.find("prefetch_and_wait(row, problem, place);") < kernel.find("make<"));
    CHECK_THAT(text, contains_text("place.m = wait_for_grid_before(place.m);"));
    CHECK_THAT(text, contains_text("place.first_n = wait_for_grid_before(place.first_n);"));
  }
}

TEST_CASE("what a kernel leaves for the next lies in the workspace, tensor maps too, and the op's tensors stay the plan's") {
  const VariantFactory plan = plan_of(chain(3), "gemm_sm90_tma_wgmma", Arch::kSm90a);
  const auto joined = plan.plan(best_config(plan, square(512), Arch::kSm90a));
  if (!joined) FAIL(to_text(joined.error()));
  CHECK(joined->tensors.size() == 3);
  std::set<std::string> workspaces, in_workspace, of_op;
  for (const PlanWorkspace& workspace : joined->workspaces) workspaces.insert(workspace.name);
  for (const PlanLaunch& launch : joined->launches) {
    for (const PlanParameter& parameter : launch.parameters) {
      for (const PlanField& field : parameter.fields) {
        if (is_of_workspace(field)) in_workspace.insert(field.source);
        if (field.kind == PlanField::Kind::kTensor || (field.kind == PlanField::Kind::kTensorMap && !field.map.is_in_workspace))
          of_op.insert(field.source);
      }
    }
  }
  CHECK(std::includes(workspaces.begin(), workspaces.end(), in_workspace.begin(), in_workspace.end()));
  CHECK(in_workspace.count("kept0") == 1);
  CHECK(in_workspace.count("kept1") == 1);
  CHECK(of_op == std::set<std::string>{"out", "w", "x"});
  const auto again = launch_plan_from_json(to_json(*joined));
  REQUIRE(again);
  CHECK(to_json(*again) == to_json(*joined));
}

TEST_CASE("intermediates whose lifetimes do not meet share memory, others never") {
  for (int length = 2; length < 9; ++length) {
    const Program program = chain(length);
    const Partition partition = first_cut(program);
    const std::vector<WorkspacePart> parts = workspace_parts(partition);
    CHECK(parts.size() == static_cast<std::size_t>(std::min(length - 1, 2)));
    std::size_t num_intermediates = 0;
    for (const WorkspacePart& part : parts) {
      num_intermediates += part.intermediates.size();
      CHECK(part.bytes.evaluate({{"M", 3}, {"N", 5}}) == 30);
      for (std::size_t a = 0; a < part.intermediates.size(); ++a) {
        for (std::size_t b = a + 1; b < part.intermediates.size(); ++b)
          CHECK(lifetime(partition, part.intermediates[a]).second < lifetime(partition, part.intermediates[b]).first);
      }
    }
    CHECK(num_intermediates == partition.intermediates.size());
  }
}

TEST_CASE("a stored plan is made again from its name and config, and one that is no more is told") {
  const Program program = chain(2);
  const VariantFactory plan = plan_of(program, "gemm_sm80_mma");
  const Config config = best_config(plan, square(256));
  const auto again = VariantFactory::create_named(library(), config, program, Arch::kSm80);
  if (!again) FAIL(to_text(again.error()));
  CHECK(again->emit(config)->source_hash == plan.emit(config)->source_hash);
  Config other = config;
  other.values["CUT"] = 7;
  const auto unknown = VariantFactory::create_named(library(), other, program, Arch::kSm80);
  REQUIRE_FALSE(unknown);
  CHECK_THAT(unknown.error().message, contains_text("the program has no such plan"));
  other = config;
  other.values["2.BLOCK_M"] = 64;
  CHECK_THAT(plan.emit(other).error().message, contains_text("the config's 2.BLOCK_M names no step of the plan (0 to 1)"));
}

TEST_CASE("forty statements over one row are one kernel") {
  Builder builder("long");
  builder.dims({"M", "N"}).index("m", "M").index("n", "N").index("j", "N");
  builder.tensor("x", DType::kBF16, {"M", "N"}).tensor("out", DType::kBF16, {"M", "N"}, TensorRole::kOut);
  std::string last = "x";
  for (int i = 0; i < 39; ++i) {
    const std::string name = fmt::format("v{}", i);
    ExprRef value = read(last, Names{"m", "n"}) * make_number(1.5, DType::kF32);
    if (i % 8 == 7) value = value * reduce(ReduceOp::kMax, {"j"}, read(last, Names{"m", "j"}));
    builder.statement(name, {"m", "n"}, value, false);
    last = name;
  }
  builder.statement("out", {"m", "n"}, read(last, Names{"m", "n"}), true);
  CHECK(first_cut(builder.program).steps.size() == 1);
}
