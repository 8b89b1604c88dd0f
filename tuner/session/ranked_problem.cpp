// Enumerating and ranking one problem, and listing the problems of a program.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/session/ranked_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "generator/base/stable_sort.h"

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

/// Strides declared "any" without a value are row-major.
void fill_strides(const generator::Program& program, Problem& problem) {
  for (const generator::Tensor& tensor : program.tensors) {
    if (!tensor.has_any_strides) continue;
    std::int64_t stride = 1;
    for (std::size_t axis = tensor.shape.size(); axis-- > 0;) {
      const std::string name = fmt::format("{}.stride{}", tensor.name, axis);
      if (const auto given = problem.strides.find(name); given != problem.strides.end()) stride = given->second;
      problem.strides[name] = stride;
      const auto extent = tensor.shape[axis].evaluate(problem.dims);
      stride *= extent ? std::max<std::int64_t>(*extent, 1) : 1;
    }
  }
}

}  // namespace

Result<RankedProblem> rank_problem(const LoadedSpec& spec, Services& services, const Problem& problem) {
  KW_TRY(const generator::TemplateLibrary* templates, services.templates());
  RankedProblem result;
  result.problem = problem;
  result.factories = generator::factories_for(*templates, *spec.program, services.arch(), result.refused_templates);
  if (result.factories.empty()) {
    std::string reasons;
    for (const std::string& line : result.refused_templates) reasons += "\n  " + line;
    return fail(Stage::kPlan, Code::kNotSupported,
                fmt::format("{}: no template makes this op on {}:{}", spec.program->name, to_text(services.arch()), reasons));
  }
  for (std::size_t index = 0; index < result.factories.size(); ++index) {
    const generator::VariantFactory& factory = result.factories[index];
    KW_TRY(generator::SpaceContext context, factory.space_context(problem, services.limits()));
    KW_TRY(generator::ConfigSpace space, generator::ConfigSpace::enumerate(context));
    for (generator::RankedConfig& ranked : generator::rank(space, context)) result.ranked.push_back({index, std::move(ranked)});
    for (db::RefusalSummary& summary : summarise(factory.info(), space)) result.refusals.push_back(std::move(summary));
    result.spaces.push_back(std::move(space));
  }
  kw::stable_sort(result.ranked,
                  [](const RankedVariant& a, const RankedVariant& b) { return a.ranked.prediction.time_us < b.ranked.prediction.time_us; });
  if (result.ranked.empty()) {
    std::string reasons;
    for (const db::RefusalSummary& refusal : result.refusals)
      reasons += fmt::format("\n  {}: {} configs: {}", refusal.template_name, refusal.count, refusal.example);
    return fail(Stage::kSpace, Code::kNotSupported,
                fmt::format("{} at {}: every config is refused:{}", spec.program->name, problem.to_text(), reasons));
  }
  return result;
}

Result<std::vector<Problem>> problems_of(const generator::Program& program, const std::vector<std::string>& set) {
  Problem fixed;
  const std::vector<std::string> names = settable_names(program);
  for (const std::string& item : set) {
    KW_TRY(const Problem part, problem_from_text(item));
    for (const auto& name : key_names(part)) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      const std::string near = nearest_name(name, names);
      return fail(Stage::kCommandLine, Code::kBadInput,
                  fmt::format("--set {}: {} is no dim, stride or alignment of {}{}", item, name, program.name,
                              near.empty() ? "" : fmt::format("; did you mean {}?", near)));
    }
    for (const auto& [name, value] : part.dims) fixed.dims[name] = value;
    for (const auto& [name, value] : part.strides) fixed.strides[name] = value;
    for (const auto& [name, value] : part.align_bytes) fixed.align_bytes[name] = value;
  }
  std::vector<Problem> problems = program.problems;
  if (problems.empty()) problems.emplace_back();
  for (const generator::Dim& dim : program.dims) {
    std::vector<Problem> expanded;
    for (const Problem& problem : problems) {
      std::vector<std::int64_t> values = dim.values;
      if (const auto given = fixed.dims.find(dim.name); given != fixed.dims.end()) {
        values = {given->second};
      } else if (const auto row = problem.dims.find(dim.name); row != problem.dims.end()) {
        values = {row->second};
      }
      if (values.empty())
        return fail(Stage::kCommandLine, Code::kBadInput,
                    fmt::format("{}: dim {} is \"any\": give a value with --set {}=...", program.name, dim.name, dim.name));
      for (const std::int64_t value : values) {
        expanded.push_back(problem);
        expanded.back().dims[dim.name] = value;
      }
    }
    if (expanded.size() > kMaxProblems)
      return fail(Stage::kCommandLine, Code::kBadInput,
                  fmt::format("{}: the dims' lists make {} problems; at most {} at once", program.name, expanded.size(), kMaxProblems));
    problems = std::move(expanded);
  }
  std::vector<Problem> distinct;
  for (Problem& problem : problems) {
    for (const auto& [name, value] : fixed.strides) problem.strides[name] = value;
    for (const auto& [name, value] : fixed.align_bytes) problem.align_bytes[name] = value;
    fill_strides(program, problem);
    if (std::find(distinct.begin(), distinct.end(), problem) == distinct.end()) distinct.push_back(std::move(problem));
  }
  return distinct;
}

}  // namespace kw::tuner
