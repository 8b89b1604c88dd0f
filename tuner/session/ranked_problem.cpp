// Enumerating and ranking one problem, and listing the problems of a program.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/session/ranked_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "generator/base/stable_sort.h"
#include "generator/emit/tune_values.h"
#include "tuner/session/ranked_plans.h"

namespace kw::tuner {
namespace {

constexpr std::size_t kMaxProblems = 10000;

std::vector<db::RefusalSummary> summarise(const generator::TemplateInfo& info, const generator::ConfigSpace& space) {
  std::map<int, db::RefusalSummary> by_rule;
  for (const generator::RefusedConfig& refused : space.refused()) {
    db::RefusalSummary& summary = by_rule[refused.rule];
    if (summary.count++ > 0) continue;
    const std::string text = space.refusal_text(refused);
    summary.template_name = info.name;
    summary.rule = text.substr(0, text.find(':'));
    summary.example = text;
  }
  std::vector<db::RefusalSummary> list;
  for (auto& [rule, summary] : by_rule) list.push_back(std::move(summary));
  kw::stable_sort(list, [](const auto& a, const auto& b) { return a.count > b.count; });
  return list;
}

std::vector<std::string> settable_names(const generator::Program& program) {
  std::vector<std::string> names;
  for (const generator::Dim& dim : program.dims) names.push_back(dim.name);
  for (const generator::Tensor& tensor : program.tensors) {
    names.push_back(tensor.name + ".align");
    if (!tensor.has_any_strides) continue;
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) names.push_back(fmt::format("{}.stride{}", tensor.name, axis));
  }
  return names;
}

std::vector<std::string> key_names(const Problem& problem) {
  std::vector<std::string> names;
  for (const auto& [name, value] : problem.dims) names.push_back(name);
  for (const auto& [name, value] : problem.strides) names.push_back(name);
  for (const auto& [name, value] : problem.align_bytes) names.push_back(name + ".align");
  return names;
}

/// The values of one shape of --set, its names checked.
Result<Problem> values_of_shape(const generator::Program& program, const std::string& shape) {
  const std::vector<std::string> names = settable_names(program);
  KW_TRY(Problem values, problem_from_text(shape));
  for (const auto& name : key_names(values)) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string near = nearest_name(name, names);
    return fail(Stage::kCommandLine, Code::kBadInput,
                fmt::format("--set {}: {} is no dim, stride or alignment of {}{}", shape, name, program.name,
                            near.empty() ? "" : fmt::format("; did you mean {}?", near)));
  }
  return values;
}

/// Takes the strides out of `problem` that `fixed` makes stale: all of them where a dim changes its value; where only strides are set,
/// those that are what the dims alone would make.
void drop_stale_strides(const generator::Program& program, const Problem& row, const Problem& fixed, Problem& problem) {
  if (problem.dims != row.dims) {
    problem.strides.clear();
    return;
  }
  if (fixed.strides.empty()) return;
  Problem dense;
  dense.dims = problem.dims;
  generator::complete_strides(program, dense);
  std::erase_if(problem.strides, [&](const auto& stride) {
    const auto found = dense.strides.find(stride.first);
    return found != dense.strides.end() && found->second == stride.second;
  });
}

/// All strides of tensors with a free one: the free ones that have no value are row-major, the others are the spec's.
Status fill_strides(const generator::Program& program, Problem& problem) {
  generator::complete_strides(program, problem);
  for (const generator::Tensor& tensor : program.tensors) {
    if (!tensor.has_any_strides) continue;
    for (std::size_t axis = 0; axis < tensor.strides.size(); ++axis) {
      const std::string name = fmt::format("{}.stride{}", tensor.name, axis);
      if (tensor.strides[axis] == IntExpr::variable(name)) continue;
      KW_TRY(const std::int64_t stride, tensor.strides[axis].evaluate(problem.dims));
      if (problem.strides.emplace(name, stride).first->second != stride)
        return fail(Stage::kCommandLine, Code::kBadInput,
                    fmt::format("{} = {}: the spec of {} says {}", name, problem.strides[name], program.name, stride));
    }
  }
  return {};
}

/// Shapes that do not come from the spec were not checked with it.
Status check_shape(const generator::Program& program, const Problem& problem, const std::string& shape) {
  if (shape.empty()) return {};
  Diagnostics diagnostics;
  generator::check_problem(program, problem, diagnostics);
  if (!diagnostics.has_errors()) return {};
  Error error = diagnostics.errors().front();
  error.message = fmt::format("--set {}: {}", shape, error.message);
  return fail(std::move(error));
}

/// The program's problems with the values of one shape of --set.
Result<std::vector<Problem>> problems_of_shape(const generator::Program& program, const std::string& shape) {
  KW_TRY(const Problem fixed, values_of_shape(program, shape));
  std::vector<Problem> rows = program.problems;
  if (rows.empty()) rows.emplace_back();
  std::vector<Problem> problems;
  for (const Problem& row : rows) {
    std::vector<Problem> of_row = {row};
    for (const generator::Dim& dim : program.dims) {
      std::vector<std::int64_t> values = dim.values;
      if (const auto given = fixed.dims.find(dim.name); given != fixed.dims.end()) {
        values = {given->second};
      } else if (const auto stated = row.dims.find(dim.name); stated != row.dims.end()) {
        values = {stated->second};
      }
      if (values.empty())
        return fail(Stage::kCommandLine, Code::kBadInput,
                    fmt::format("{}: dim {} is \"any\": give a value with --set {}=...", program.name, dim.name, dim.name));
      std::vector<Problem> expanded;
      for (const Problem& problem : of_row) {
        for (const std::int64_t value : values) {
          expanded.push_back(problem);
          expanded.back().dims[dim.name] = value;
        }
      }
      if (problems.size() + expanded.size() > kMaxProblems)
        return fail(Stage::kCommandLine, Code::kBadInput,
                    fmt::format("{}: the dims' lists make more than {} problems, the most at once", program.name, kMaxProblems));
      of_row = std::move(expanded);
    }
    for (Problem& problem : of_row) {
      drop_stale_strides(program, row, fixed, problem);
      for (const auto& [name, value] : fixed.strides) problem.strides[name] = value;
      for (const auto& [name, value] : fixed.align_bytes) problem.align_bytes[name] = value;
      KW_TRY_VOID(fill_strides(program, problem));
      KW_TRY_VOID(check_shape(program, problem, shape));
      problems.push_back(std::move(problem));
    }
  }
  return problems;
}

}  // namespace

Result<RankedProblem> rank_problem(const LoadedSpec& spec, Services& services, const Problem& problem, PlanKinds kinds) {
  KW_TRY(const generator::TemplateLibrary* templates, services.templates());
  KW_TRY_VOID(generator::check_tune_values(*templates, *spec.program, services.arch()));
  RankedProblem result;
  result.problem = problem;
  result.factories = generator::factories_for(*templates, *spec.program, services.arch(), result.refused_templates);
  for (std::size_t index = 0; index < result.factories.size(); ++index) {
    const generator::VariantFactory& factory = result.factories[index];
    KW_TRY(generator::SpaceContext context, factory.space_context(problem, services.limits()));
    KW_TRY(generator::ConfigSpace space, generator::ConfigSpace::enumerate(context));
    for (generator::RankedConfig& ranked : generator::rank(space, context)) result.ranked.push_back({index, std::move(ranked)});
    for (db::RefusalSummary& summary : summarise(factory.info(), space)) result.refusals.push_back(std::move(summary));
    result.num_points += space.num_points();
    result.spaces.push_back(std::move(space));
  }
  const Status plans = kinds == PlanKinds::kAll ? add_plans(spec, services, result) : Status();
  if (!plans && plans.error().code != Code::kNotSupported) return fail(plans.error());
  if (result.factories.empty()) {
    std::string reasons;
    for (const std::string& line : result.refused_templates) reasons += "\n  " + line;
    if (!plans) reasons += "\n  plans of several kernels: " + plans.error().message;
    return fail(Stage::kPlan, Code::kNotSupported,
                fmt::format("{}: no template makes this op on {}:{}", spec.program->name, to_text(services.arch()), reasons));
  }
  kw::stable_sort(result.ranked, [](const RankedVariant& a, const RankedVariant& b) { return is_ranked_before(a.ranked, b.ranked); });
  if (result.ranked.empty()) {
    std::string reasons;
    for (const db::RefusalSummary& refusal : result.refusals)
      reasons += fmt::format("\n  {}: {} configs: {}", refusal.template_name, refusal.count, refusal.example);
    return fail(Stage::kSpace, Code::kNotSupported,
                fmt::format("{} at {}: every config is refused:{}", spec.program->name, problem.to_text(), reasons));
  }
  return result;
}

Result<std::vector<std::string>> shapes_of_set(const std::vector<std::string>& set) {
  std::vector<std::set<std::string>> dims_of_item;
  std::set<std::string> seen;
  bool has_repetition = false;
  for (const std::string& item : set) {
    KW_TRY(const Problem part, problem_from_text(item));
    for (const std::string& name : key_names(part)) has_repetition = !seen.insert(name).second || has_repetition;
    dims_of_item.emplace_back();
    for (const auto& [name, value] : part.dims) dims_of_item.back().insert(name);
  }
  if (!has_repetition) return std::vector<std::string>{fmt::format("{}", fmt::join(set, ","))};
  for (std::size_t i = 1; i < set.size(); ++i) {
    if (dims_of_item[i] == dims_of_item[0]) continue;
    return fail(
        Stage::kCommandLine, Code::kBadInput,
        fmt::format("--set {} and --set {}: several --set that give one name several values are a shape each and name the same dims",
                    set[0], set[i]));
  }
  return set;
}

Result<std::string> single_shape_of_set(const std::vector<std::string>& set, const std::string& command) {
  KW_TRY(const std::vector<std::string> shapes, shapes_of_set(set));
  if (shapes.size() > 1)
    return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("{}: --set gives {} shapes; it answers for one", command, shapes.size()));
  return shapes.front();
}

Result<std::vector<Problem>> problems_of(const generator::Program& program, const std::vector<std::string>& set) {
  KW_TRY(const std::vector<std::string> shapes, shapes_of_set(set));
  std::vector<Problem> distinct;
  for (const std::string& shape : shapes) {
    KW_TRY(std::vector<Problem> problems, problems_of_shape(program, shape));
    for (Problem& problem : problems)
      if (std::find(distinct.begin(), distinct.end(), problem) == distinct.end()) distinct.push_back(std::move(problem));
  }
  return distinct;
}

}  // namespace kw::tuner
