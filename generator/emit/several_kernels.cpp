// Plans of several kernels: each step of a partition is emitted as a kernel of its own; here their texts become one, each in a namespace,
// and their launch plans one. What a step leaves for later ones lies in the workspace; parts whose lifetimes do not meet share memory.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "generator/base/hash.h"
#include "generator/emit/factory_impl.h"
#include "generator/emit/plan_builder.h"
#include "generator/emit/template_values.h"
#include "generator/plan/fusion_group.h"

namespace kw::generator {
namespace {

constexpr std::int64_t kWorkspaceAlignBytes = 256;  // of every workspace, as the launchers lay them out
constexpr const char* kCut = "CUT";
constexpr const char* kDependent = "DEPENDENT";

IntExpr bytes_of(const Tensor& tensor) {
  IntExpr bytes(size_bytes(tensor.dtype));
  for (const IntExpr& extent : subscripted_shape(tensor)) bytes = bytes * extent;
  return bytes;
}

std::string namespace_of(std::size_t step) { return fmt::format("step{}", step); }

/// Joins the launch plans of the steps.
class PlanJoiner {
 public:
  PlanJoiner(LaunchPlan skeleton, const Partition& partition) : plan_(std::move(skeleton)) {
    for (const WorkspacePart& part : workspace_parts(partition)) {
      plan_.workspaces.push_back({part.name, part.bytes, false});
      for (const std::string& name : part.intermediates) part_of_[name] = part.name;
    }
    for (const Tensor& tensor : partition.intermediates) known_[tensor.name + ".align"] = IntExpr(kWorkspaceAlignBytes);
  }

  Status add(std::size_t step, LaunchPlan plan, bool is_dependent) {
    for (PlanConstraint& constraint : plan.constraints) {
      constraint.rule = closed(constraint.rule);
      const bool is_stated = std::any_of(plan_.constraints.begin(), plan_.constraints.end(),
                                         [&](const PlanConstraint& other) { return other.rule == constraint.rule; });
      if (is_stated || (constraint.rule.is_constant() && constraint.rule.constant() != 0)) continue;
      constraint.name = fmt::format("{}_{}", namespace_of(step), constraint.name);
      plan_.constraints.push_back(std::move(constraint));
    }
    for (PlanWorkspace& workspace : plan.workspaces) {
      workspace.name = own_name(step, workspace.name);
      workspace.bytes = closed(workspace.bytes);
      plan_.workspaces.push_back(std::move(workspace));
    }
    for (PlanLaunch& launch : plan.launches) {
      launch.is_dependent = is_dependent;
      for (IntExpr& extent : launch.grid) extent = closed(extent);
      launch.dynamic_smem_bytes = closed(launch.dynamic_smem_bytes);
      for (PlanParameter& parameter : launch.parameters) {
        for (PlanField& field : parameter.fields) redirect(step, field);
      }
      plan_.launches.push_back(std::move(launch));
    }
    return {};
  }

  LaunchPlan take() { return std::move(plan_); }

 private:
  static std::string own_name(std::size_t step, const std::string& name) { return fmt::format("{}_{}", namespace_of(step), name); }

  IntExpr closed(const IntExpr& expr) const { return expr.substitute(known_); }

  void redirect(std::size_t step, PlanField& field) const {
    for (IntExpr* expr : {&field.value, &field.map.swizzle_bytes}) *expr = closed(*expr);
    for (std::vector<IntExpr>* list : {&field.map.extents, &field.map.strides_bytes, &field.map.box}) {
      for (IntExpr& expr : *list) expr = closed(expr);
    }
    if (field.kind == PlanField::Kind::kWorkspace) {
      field.source = own_name(step, field.source);
      return;
    }
    const auto part = part_of_.find(field.source);
    if (part == part_of_.end() || (field.kind != PlanField::Kind::kTensor && field.kind != PlanField::Kind::kTensorMap)) return;
    field.source = part->second;
    if (field.kind == PlanField::Kind::kTensor) field.kind = PlanField::Kind::kWorkspace;
    field.map.is_in_workspace = field.kind == PlanField::Kind::kTensorMap;
  }

  LaunchPlan plan_;
  std::map<std::string, std::string> part_of_;  ///< intermediate -> its part of the workspace
  std::map<std::string, IntExpr> known_;
};

/// "2.BLOCK_M" -> step 2, BLOCK_M.
bool split_key(const std::string& key, std::size_t num_steps, std::size_t& step, std::string& name) {
  const std::size_t dot = key.find('.');
  if (dot == std::string::npos) return false;
  const auto [end, error] = std::from_chars(key.data(), key.data() + dot, step);
  name = key.substr(dot + 1);
  return error == std::errc() && end == key.data() + dot && step < num_steps;
}

}  // namespace

struct VariantFactory::SeveralKernels final : VariantFactory::Impl {
  std::string op_name;
  Partition partition;
  std::size_t cut = 0;
  std::vector<VariantFactory> factories;
  Arch arch = Arch::kSm80;
  LaunchPlan skeleton;
  TemplateInfo joined_info;  ///< only its name

  const TemplateInfo& info() const override { return joined_info; }
  const std::vector<VariantFactory>& steps() const override { return factories; }

  std::string id(const Config& config) const override {
    const std::string hash = hash_hex(fmt::format("{} {}", joined_info.name, config.to_text())).substr(0, 12);
    return fmt::format("plan{}__{}", factories.size(), hash);
  }

  static bool has_binding(const VariantFactory& step, const char* source) {
    const std::vector<Binding>& bindings = step.info().bindings;
    return std::any_of(bindings.begin(), bindings.end(), [&](const Binding& binding) { return binding.source == source; });
  }
  /// The kernel of a step can wait for the one before it.
  bool can_wait(std::size_t step) const { return step > 0 && step < factories.size() && has_binding(factories[step], kIsDependent); }

  bool can_overlap() const override {
    if (compute_capability(arch) < 90) return false;
    for (std::size_t step = 1; step < factories.size(); ++step) {
      if (can_wait(step) && has_binding(factories[step - 1], kIsFollowed)) return true;
    }
    return false;
  }

  Config joined(const std::vector<Config>& of_steps, Overlap overlap) const override {
    KW_CHECK(of_steps.size() == factories.size(), "a config for each step");
    Config config;
    config.template_name = joined_info.name;
    config.values[kCut] = static_cast<std::int64_t>(cut);
    if (overlap == Overlap::kDependent) config.values[kDependent] = 1;
    for (std::size_t step = 0; step < of_steps.size(); ++step) {
      for (const auto& [name, value] : of_steps[step].values) config.values[fmt::format("{}.{}", step, name)] = value;
    }
    return config;
  }

  Result<std::vector<Config>> split(const Config& config) const {
    std::vector<Config> of_steps(factories.size());
    for (std::size_t step = 0; step < factories.size(); ++step) of_steps[step].template_name = factories[step].info().name;
    for (const auto& [key, value] : config.values) {
      std::size_t step = 0;
      std::string name;
      if (key == kCut || key == kDependent) continue;
      if (!split_key(key, factories.size(), step, name))
        return fail(Stage::kEmit, Code::kBadInput,
                    fmt::format("{}: the config's {} names no step of the plan (0 to {})", op_name, key, factories.size() - 1));
      of_steps[step].values[name] = value;
    }
    return of_steps;
  }

  bool is_for_one_extent(const Config& config) const override {
    const Result<std::vector<Config>> of_steps = split(config);
    for (std::size_t step = 0; of_steps && step < factories.size(); ++step) {
      if (factories[step].is_for_one_extent((*of_steps)[step])) return true;
    }
    return false;
  }

  Result<SpaceContext> space_context(const Problem&, const DeviceLimits&) const override {
    return fail(Stage::kSpace, Code::kInternal, fmt::format("{}: a plan of several kernels has the spaces of its steps", op_name));
  }

  KernelPlace place_of(std::size_t step, const Config& of_step, const Config& whole) const {
    const auto dependent = whole.values.find(kDependent);
    const bool overlaps = dependent != whole.values.end() && dependent->second != 0 && compute_capability(arch) >= 90;
    return {.kernel = fmt::format("{}_{}", namespace_of(step), factories[step].id(of_step)),
            .smem = fmt::format("smem_of_{}", namespace_of(step)),
            .is_dependent = overlaps && can_wait(step),
            .is_followed = overlaps && can_wait(step + 1)};
  }

  Result<LaunchPlan> plan(const Config& config, const KernelPlace&) const override {
    KW_TRY(const std::vector<Config> of_steps, split(config));
    PlanJoiner joiner(skeleton, partition);
    for (std::size_t step = 0; step < factories.size(); ++step) {
      const KernelPlace place = place_of(step, of_steps[step], config);
      KW_TRY(LaunchPlan of_step, factories[step].impl_->plan(of_steps[step], place));
      KW_TRY_VOID(joiner.add(step, std::move(of_step), place.is_dependent));
    }
    return joiner.take();
  }

  Result<Variant> emit(const Config& config, const KernelPlace&) const override {
    KW_TRY(const std::vector<Config> of_steps, split(config));
    Variant variant;
    variant.config = config;
    variant.config.template_name = joined_info.name;
    variant.id = id(config);
    PlanJoiner joiner(skeleton, partition);
    variant.source = fmt::format("// {}: a plan of {} kernels for {}. What each writes, of what kernels before it: {}.\n", op_name,
                                 factories.size(), to_text(arch), partition.to_text());
    for (std::size_t step = 0; step < factories.size(); ++step) {
      const KernelPlace place = place_of(step, of_steps[step], config);
      KW_TRY(Variant of_step, factories[step].impl_->emit(of_steps[step], place));
      KW_TRY_VOID(joiner.add(step, std::move(of_step.plan), place.is_dependent));
      if (!of_step.source.ends_with('\n')) of_step.source += '\n';
      variant.source += fmt::format("\nnamespace {0} {{\n\n{1}\n}}  // namespace {0}\nusing {0}::{2};\n", namespace_of(step),
                                    of_step.source, place.kernel);
    }
    variant.plan = joiner.take();
    variant.source_hash = hash_hex(variant.source);
    return variant;
  }
};

Result<VariantFactory> VariantFactory::create_plan(const Program& program, const Partition& partition, std::size_t cut,
                                                   std::vector<VariantFactory> steps, Arch arch) {
  KW_CHECK(steps.size() == partition.steps.size() && steps.size() > 1, "a factory for each of several steps");
  auto impl = std::make_shared<SeveralKernels>();
  impl->op_name = program.name;
  impl->partition = partition;
  impl->cut = cut;
  impl->arch = arch;
  impl->skeleton = skeleton_plan(program);
  std::vector<std::string> names;
  for (const VariantFactory& step : steps) names.push_back(step.info().name);
  impl->joined_info.name = fmt::format("{}", fmt::join(names, "+"));
  impl->factories = std::move(steps);
  VariantFactory factory;
  factory.impl_ = std::move(impl);
  return factory;
}

Result<VariantFactory> VariantFactory::create_named_plan(const TemplateLibrary& library, const Config& config, const Program& program,
                                                         Arch arch) {
  KW_TRY(const std::vector<Partition> partitions, partitions_for(library, program, arch));
  const auto cut = config.values.find(kCut);
  std::vector<std::string> names(1);
  for (const char c : config.template_name) {
    if (c == '+')
      names.emplace_back();
    else
      names.back() += c;
  }
  const bool is_known = cut != config.values.end() && cut->second >= 0 && static_cast<std::size_t>(cut->second) < partitions.size() &&
                        partitions[static_cast<std::size_t>(cut->second)].steps.size() == names.size();
  if (!is_known)
    return fail(Stage::kPlan, Code::kNotFound,
                fmt::format("{}: {} with {}: the program has no such plan", program.name, config.template_name, config.to_text()));
  const auto position = static_cast<std::size_t>(cut->second);
  std::vector<VariantFactory> steps;
  for (std::size_t step = 0; step < names.size(); ++step) {
    const TemplateInfo* info = library.find(names[step]);
    if (info == nullptr) return fail(Stage::kTemplate, Code::kNotFound, fmt::format("no template {} for {}", names[step], to_text(arch)));
    KW_TRY(VariantFactory factory, create(library, *info, partitions[position].steps[step], arch));
    steps.push_back(std::move(factory));
  }
  return create_plan(program, partitions[position], position, std::move(steps), arch);
}

Result<std::vector<Partition>> partitions_for(const TemplateLibrary& library, const Program& program, Arch arch) {
  std::vector<TemplatePattern> patterns;
  for (const TemplateInfo& info : library.templates()) {
    const std::optional<Arch> least = arch_from_text(info.min_arch);
    const bool is_for_it = !least || (is_specific(*least) ? arch == *least : compute_capability(arch) >= compute_capability(*least));
    if (!is_for_it) continue;
    KW_TRY(TemplatePattern pattern, parse_template_pattern(info.computes));
    patterns.push_back(std::move(pattern));
  }
  // What fuses less is there for problems that the rules of what fuses more refuse, and may be faster.
  enum class Fusion { kOneProduct, kPairs, kProductsAsRows };
  const auto judge = [&](const Program& step, Fusion fusion) -> Status {
    KW_TRY(const std::vector<FusionGroup> groups, plan_groups(step));
    std::string why_not = "no template is for this architecture";
    for (const TemplatePattern& pattern : patterns) {
      if (pattern.is_row && fusion != Fusion::kProductsAsRows && has_matrix_product(groups.front())) continue;
      if (pattern.operands.size() > 2 && fusion == Fusion::kOneProduct) continue;
      if (!unify(pattern, groups.front(), step, why_not).empty()) return {};
    }
    return fail(Stage::kPlan, Code::kNotSupported, fmt::format("{}: {}", step.name, why_not));
  };
  Result<std::vector<Partition>> partitions = std::vector<Partition>();
  std::optional<Error> first_error;
  for (const Fusion fusion : {Fusion::kOneProduct, Fusion::kPairs, Fusion::kProductsAsRows}) {
    const auto others = partitions_of(program, [&](const Program& step) { return judge(step, fusion); });
    if (!others && !first_error) first_error = others.error();
    if (!others) continue;
    for (const Partition& other : *others) {
      const auto is_same = [&](const Partition& known) { return known.to_text() == other.to_text(); };
      if (std::none_of(partitions->begin(), partitions->end(), is_same)) partitions->push_back(other);
    }
  }
  if (partitions->empty()) return fail(*first_error);
  return partitions;
}

std::vector<WorkspacePart> workspace_parts(const Partition& partition) {
  std::vector<WorkspacePart> parts;
  std::vector<std::size_t> last_steps;  // of each part: the last step that reads what it holds now
  for (std::size_t step = 0; step < partition.steps.size(); ++step) {
    for (const Tensor& tensor : partition.intermediates) {
      const Tensor* written = partition.steps[step].find_tensor(tensor.name);
      if (written == nullptr || written->role == TensorRole::kIn) continue;
      std::size_t last_step = step;
      for (std::size_t later = step + 1; later < partition.steps.size(); ++later) {
        if (partition.steps[later].find_tensor(tensor.name) != nullptr) last_step = later;
      }
      const auto unused = std::find_if(last_steps.begin(), last_steps.end(), [step](std::size_t last) { return last < step; });
      const auto position = static_cast<std::size_t>(unused - last_steps.begin());
      if (position == parts.size()) {
        parts.push_back({fmt::format("kept{}", position), IntExpr(0), {}});
        last_steps.push_back(0);
      }
      WorkspacePart& part = parts[position];
      const IntExpr bytes = bytes_of(tensor);
      const bool is_larger = part.intermediates.empty() || part.bytes == bytes;
      part.bytes = is_larger ? bytes : IntExpr::make(IntExpr::Op::kMax, {part.bytes, bytes});
      part.intermediates.push_back(tensor.name);
      last_steps[position] = last_step;
    }
  }
  return parts;
}

}  // namespace kw::generator
