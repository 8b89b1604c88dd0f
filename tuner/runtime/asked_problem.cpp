// See asked_problem.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/runtime/asked_problem.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace kw::tuner {
namespace {

tl::unexpected<Error> bad(std::string message) { return fail(Stage::kCommandLine, Code::kBadInput, std::move(message)); }

/// What a caller may name: dims, free strides, alignments.
std::vector<std::string> names_of(const LaunchPlan& plan) {
  std::set<std::string> strides;
  for (const PlanTensor& tensor : plan.tensors) {
    for (const IntExpr& stride : tensor.strides) stride.collect_variables(strides);
  }
  std::vector<std::string> names = plan.dims;
  for (const std::string& name : strides) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  for (const PlanTensor& tensor : plan.tensors) names.push_back(tensor.name + ".align");
  return names;
}

}  // namespace

Result<Problem> problem_of(std::span<const kw_value> values) {
  std::string text;
  for (const kw_value& value : values) {
    if (value.name == nullptr) return bad(fmt::format("values[{}].name is null", &value - values.data()));
    const std::string name = value.name;
    if (name.empty() || name.find_first_of("=,") != std::string::npos)
      return bad(
          fmt::format("values[{}].name is '{}': must be a dim, as \"M\", or \"A.stride0\", or \"A.align\"", &value - values.data(), name));
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value.value);
  }
  return problem_from_text(text);
}

Status complete_problem(const std::string& op, const LaunchPlan& plan, Problem& problem) {
  const std::vector<std::string> known = names_of(plan);
  std::vector<std::string> given;
  for (const auto& [name, value] : problem.dims) given.push_back(name);
  for (const auto& [name, value] : problem.strides) given.push_back(name);
  for (const auto& [name, value] : problem.align_bytes) given.push_back(name + ".align");
  for (const std::string& name : given) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string nearest = nearest_name(name, known);
    return bad(fmt::format("{}: '{}' is no dim, free stride or alignment of it{}; it has {}", op, name,
                           nearest.empty() ? "" : fmt::format(": did you mean '{}'?", nearest), fmt::join(known, ", ")));
  }
  for (const std::string& dim : plan.dims) {
    if (!problem.dims.contains(dim))
      return bad(fmt::format("{}: dim {} has no value; its dims are {}", op, dim, fmt::join(plan.dims, ", ")));
  }
  for (const PlanTensor& tensor : plan.tensors) complete_strides(tensor.name, tensor.shape, tensor.strides, problem);
  return {};
}

}  // namespace kw::tuner
