// One template's reading of a program: match, bindings, epilogue text. From there each config becomes a variant: the specialised
// text and its launch plan. Refusals carry the template's name and the reason.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "generator/base/hash.h"
#include "generator/emit/factory_impl.h"
#include "generator/emit/plan_builder.h"
#include "generator/emit/template_values.h"
#include "generator/emit/tune_values.h"
#include "generator/lower/lower.h"
#include "generator/plan/fusion_group.h"
#include "generator/rewrite/specialise.h"
#include "generator/spec/walk.h"

namespace kw::generator {
namespace {

tl::unexpected<Error> refused(const TemplateInfo& info, const std::string& reason, Code code = Code::kNotSupported) {
  return fail(Stage::kPlan, code, fmt::format("{}: {}", info.name, reason));
}

/// Error when a rule that no tunable can mend does not hold: the template does not serve these types or layouts.
Status check_fixed_rules(const TemplateInfo& info, const PatternMatch& match, const TemplateValues& values) {
  for (const Rule& rule : info.rules) {
    if (rule.is_on_problem) continue;
    std::set<std::string> names;
    rule.expression.collect_variables(names);
    const bool is_fixed = std::all_of(names.begin(), names.end(), [&](const std::string& name) { return values.numbers.count(name) != 0; });
    if (!is_fixed) continue;
    const Result<std::int64_t> holds = rule.expression.evaluate(values.numbers);
    if (!holds || *holds == 0) return refused(info, fmt::format("{}: {}: {}", types_text(match), rule.name, rule.why));
  }
  return {};
}

Status check_offsets(const TemplateInfo& info, const PatternMatch& match) {
  for (const auto& [name, operand] : match.operands) {
    if (operand.offset == IntExpr(0)) continue;
    return refused(info, fmt::format("operand {} is read from element {} on: operands with an offset are not made yet", operand.tensor,
                                     operand.offset.to_text()));
  }
  return {};
}

/// Error when the template needs another architecture.
Status check_template_arch(const TemplateInfo& info, Arch arch) {
  const std::optional<Arch> least = arch_from_text(info.min_arch);
  if (least && is_specific(*least) && arch != *least)
    return refused(info, fmt::format("needs {}, the target is {}", info.min_arch, to_text(arch)));
  if (least && compute_capability(arch) < compute_capability(*least))
    return refused(info, fmt::format("needs {} or later, the target is {}", info.min_arch, to_text(arch)));
  return {};
}

void collect_read_tensors(const ExprRef& expr, std::set<std::string>& names) {
  visit_nodes(expr, [&](const ExprRef& node) {
    if (node->kind == ExprNode::Kind::kRead && !is_accumulator(node->name)) names.insert(node->name);
    return true;
  });
}

}  // namespace

struct VariantFactory::OneKernel final : VariantFactory::Impl {
  TemplateLibrary library;
  const TemplateInfo* template_info = nullptr;
  std::string op_name;
  std::string op_text;
  Arch arch = Arch::kSm80;
  PatternMatch match;
  TemplateValues values;
  LoweredEpilogue epilogue;
  LaunchPlan skeleton;
  std::map<std::string, std::vector<std::int64_t>> overrides;
  std::map<std::string, SourceRange> override_places;
  std::set<std::string> read_tensors;  ///< by the epilogue

  static Result<std::shared_ptr<const Impl>> create(const TemplateLibrary& library, const TemplateInfo& info, const Program& program,
                                                    Arch arch, const PatternMatch& match, bool is_row) {
    auto impl = std::make_shared<OneKernel>();
    impl->library = library;
    impl->template_info = library.find(info.name);
    KW_CHECK(impl->template_info != nullptr, "the template is one of the library's");
    impl->op_name = program.name;
    for (const Statement& statement : program.statements) impl->op_text += "  " + to_text(statement) + "\n";
    impl->arch = arch;
    impl->match = match;
    KW_TRY_VOID(check_offsets(info, match));
    KW_TRY(impl->values, template_values(info, match));
    KW_TRY_VOID(check_fixed_rules(info, match, impl->values));
    KW_TRY(impl->epilogue, is_row ? lower_row(match, program) : lower_epilogue(match, program));
    if (is_row) impl->values.variables["misalignment"] = impl->epilogue.misalignment;
    std::erase_if(impl->epilogue.hooks,
                  [&](const auto& hook) { return std::find(info.hooks.begin(), info.hooks.end(), hook.first) == info.hooks.end(); });
    impl->skeleton = skeleton_plan(program);
    KW_TRY(impl->overrides, narrowed_values(library, info, program));
    impl->override_places = program.tune.places;
    for (const PatternMatch::Output& output : match.outputs) collect_read_tensors(output.value, impl->read_tensors);
    for (const PatternMatch::Reduction& reduction : match.reductions) collect_read_tensors(reduction.operand, impl->read_tensors);
    return std::shared_ptr<const Impl>(std::move(impl));
  }

  const TemplateInfo& info() const override { return *template_info; }
  std::string id(const Config& config) const override { return variant_id(*template_info, config); }

  std::string banner(const Config& config) const {
    std::string settings;
    for (const Tunable& tunable : template_info->tunables)
      settings += fmt::format("{}{} = {}", settings.empty() ? "" : ", ", tunable.name, config.values.at(tunable.name));
    return fmt::format("{}, made from the template {} for {}.\n\n{}\nConfig: {}\n", op_name, template_info->name, to_text(arch), op_text,
                       settings);
  }

  /// Bytes of the outputs and of what the epilogue reads, each once.
  std::int64_t epilogue_bytes(const IntBindings& bindings) const {
    double total = 0;
    for (const PlanTensor& tensor : skeleton.tensors) {
      const bool is_output = std::any_of(match.outputs.begin(), match.outputs.end(),
                                         [&](const PatternMatch::Output& output) { return output.tensor == tensor.name; });
      const int num_passes = (is_output ? 1 : 0) + (read_tensors.count(tensor.name) != 0 ? 1 : 0);
      double bytes = num_passes * size_bytes(tensor.dtype);
      for (const IntExpr& extent : tensor.shape) bytes *= static_cast<double>(extent.evaluate(bindings).value_or(0));
      total += bytes;
    }
    return total < 9e18 ? static_cast<std::int64_t>(total) : INT64_MAX;
  }

  Result<SpaceContext> space_context(const Problem& problem, const DeviceLimits& limits) const override {
    SpaceContext context;
    context.info = template_info;
    context.bindings = values.numbers;
    context.limits = limits;
    context.overrides = overrides;
    context.override_places = override_places;
    const IntBindings bindings = problem.bindings(skeleton);
    for (const std::string& dim : skeleton.dims) {
      const auto value = bindings.find(dim);
      if (value == bindings.end())
        return fail(Stage::kSpace, Code::kBadInput,
                    fmt::format("{}: the problem {} gives no value for {}", op_name, problem.to_text(), dim));
      if (value->second < 0)
        return fail(Stage::kSpace, Code::kBadInput, fmt::format("{}: {} = {}: must not be negative", op_name, dim, value->second));
    }
    for (const auto& [name, expr] : values.variables) {
      Result<std::int64_t> value = expr.evaluate(bindings);
      if (!value)
        return fail(Stage::kSpace, Code::kBadInput,
                    fmt::format("{}: problem {}: {} = {}: {}", op_name, problem.to_text(), name, expr.to_text(), value.error().message));
      context.problem[name] = *value;
    }
    context.epilogue_bytes = epilogue_bytes(bindings);
    return context;
  }

  Result<LaunchPlan> plan(const Config& config, const KernelPlace& place) const override {
    return build_plan({.skeleton = &skeleton,
                       .info = template_info,
                       .match = &match,
                       .values = &values,
                       .epilogue_fields = &epilogue.fields,
                       .config = &config,
                       .arch = arch,
                       .kernel_name = place.kernel.empty() ? id(config) : place.kernel});
  }

  Result<Variant> emit(const Config& config, const KernelPlace& place) const override {
    const TemplateInfo& info = *template_info;
    SpecialiseRequest request;
    request.sources = &library.sources();
    request.info = template_info;
    for (const auto& [name, value] : values.numbers) {
      if (name.find('.') == std::string::npos) request.values[name] = value;  // size_bytes.X and dtype_code.X are no members of Config
    }
    for (const Binding& binding : info.bindings) {
      if (binding.source == kIsDependent) request.values[binding.name] = place.is_dependent ? 1 : 0;
      if (binding.source == kIsFollowed) request.values[binding.name] = place.is_followed ? 1 : 0;
    }
    for (const Tunable& tunable : info.tunables) {
      const auto value = config.values.find(tunable.name);
      if (value == config.values.end())
        return fail(Stage::kEmit, Code::kBadInput, fmt::format("{}: the config has no value for {}", info.name, tunable.name));
      request.values[tunable.name] = value->second;
    }
    if (config.values.size() != info.tunables.size())
      return fail(Stage::kEmit, Code::kBadInput,
                  fmt::format("{}: the config {} names more than the tunables", info.name, config.to_text()));
    request.types = values.types;
    request.hooks = epilogue.hooks;
    request.prologue = epilogue.support;
    request.banner = banner(config);
    request.kernel_name = place.kernel.empty() ? id(config) : place.kernel;
    request.smem_name = place.smem;

    Variant variant;
    variant.config = config;
    variant.config.template_name = info.name;
    variant.id = id(config);
    KW_TRY(variant.plan, plan(config, place));
    KW_TRY(variant.source, specialise(request));
    variant.source_hash = hash_hex(variant.source);
    return variant;
  }
};

Result<VariantFactory> VariantFactory::create(const TemplateLibrary& library, const TemplateInfo& info, const Program& program, Arch arch) {
  KW_TRY(const std::vector<FusionGroup> groups, plan_groups(program));
  KW_TRY(const TemplatePattern pattern, parse_template_pattern(info.computes));
  std::string why_not;
  const std::vector<PatternMatch> matches = unify(pattern, groups.front(), program, why_not);
  if (matches.empty()) return refused(info, why_not);
  KW_TRY_VOID(check_template_arch(info, arch));
  std::optional<Error> first_error;
  for (const PatternMatch& match : matches) {
    Result<std::shared_ptr<const Impl>> impl = OneKernel::create(library, info, program, arch, match, pattern.is_row || pattern.is_list);
    if (impl) {
      VariantFactory factory;
      factory.impl_ = std::move(*impl);
      return factory;
    }
    if (!first_error) first_error = impl.error();
  }
  return fail(*first_error);
}

Result<VariantFactory> VariantFactory::create_named(const TemplateLibrary& library, const Config& config, const Program& program,
                                                    Arch arch) {
  if (config.template_name.find('+') != std::string::npos) return create_named_plan(library, config, program, arch);
  const TemplateInfo* info = library.find(config.template_name);
  if (info == nullptr)
    return fail(Stage::kTemplate, Code::kNotFound, fmt::format("no template {} for {}", config.template_name, to_text(arch)));
  return create(library, *info, program, arch);
}

const TemplateInfo& VariantFactory::info() const { return impl_->info(); }
bool VariantFactory::is_for_one_extent(const Config& config) const { return impl_->is_for_one_extent(config); }
const std::vector<VariantFactory>& VariantFactory::steps() const { return impl_->steps(); }
Config VariantFactory::joined(const std::vector<Config>& of_steps, Overlap overlap) const { return impl_->joined(of_steps, overlap); }
bool VariantFactory::can_overlap() const { return impl_->can_overlap(); }
std::string VariantFactory::id(const Config& config) const { return impl_->id(config); }

Result<SpaceContext> VariantFactory::space_context(const Problem& problem, const DeviceLimits& limits) const {
  return impl_->space_context(problem, limits);
}

Result<LaunchPlan> VariantFactory::plan(const Config& config) const { return impl_->plan(config, {}); }
Result<Variant> VariantFactory::emit(const Config& config) const { return impl_->emit(config, {}); }

std::vector<VariantFactory> factories_for(const TemplateLibrary& library, const Program& program, Arch arch,
                                          std::vector<std::string>& refusals) {
  std::vector<VariantFactory> factories;
  for (const TemplateInfo& info : library.templates()) {
    Result<VariantFactory> factory = VariantFactory::create(library, info, program, arch);
    if (factory) {
      factories.push_back(std::move(*factory));
      continue;
    }
    // What the plan cannot make, no template makes: one line is enough.
    const std::string line = to_text(factory.error());
    if (std::find(refusals.begin(), refusals.end(), line) == refusals.end()) refusals.push_back(line);
  }
  return factories;
}

}  // namespace kw::generator
