// Export: C++ of one kernel, printed from its launch plan.
// SPDX-License-Identifier: Apache-2.0
#include "generator/emit/export/kernel_text.h"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "generator/emit/export/names.h"

namespace kw::generator {
namespace {

std::string extents_text(const std::array<IntExpr, 3>& extents) {
  return fmt::format("{{{}, {}, {}}}", cpp_text(extents[0]), cpp_text(extents[1]), cpp_text(extents[2]));
}

std::string accepts_text(const UniqueKernel& unique) {
  const LaunchPlan& plan = unique.kernel->plan;
  std::vector<IntExpr> used;
  std::string body;
  for (const PlanConstraint& constraint : plan.constraints) {
    if (constraint.rule.is_constant()) continue;  // holds always; one that never holds is refused before
    used.push_back(constraint.rule);
    body += fmt::format("  if (!({})) return false;  // {}\n", cpp_text(constraint.rule), constraint.name);
  }
  for (const PlanLaunch& launch : plan.launches) {
    used.insert(used.end(), launch.grid.begin(), launch.grid.end());
    used.push_back(launch.dynamic_smem_bytes);
    body += fmt::format("  if (!fits_grid({})) return false;\n", extents_text(launch.grid));
    if (!launch.dynamic_smem_bytes.is_constant() || launch.dynamic_smem_bytes.constant() > 0) {
      body += fmt::format("  if ({} > device.max_smem_bytes) return false;\n", cpp_text(launch.dynamic_smem_bytes));
    }
  }
  return fmt::format(
      "inline bool {}_accepts([[maybe_unused]] const Variables& v, [[maybe_unused]] const Device& device) {{\n{}{}  return true;\n}}\n",
      unique.scope, locals_text(used), body);
}

std::string workspace_text(const UniqueKernel& unique) {
  std::vector<IntExpr> used;
  std::string scratch, zeroed;
  for (const PlanWorkspace& workspace : unique.kernel->plan.workspaces) {
    if (workspace.bytes.is_constant() && workspace.bytes.constant() == 0) continue;
    used.push_back(workspace.bytes);
    std::string& sum = workspace.is_zeroed_once ? zeroed : scratch;
    sum += fmt::format("{}round_up({})", sum.empty() ? "" : " + ", cpp_text(workspace.bytes));
  }
  return fmt::format("inline Workspace {}_workspace([[maybe_unused]] const Variables& v) {{\n{}  return {{{}, {}}};\n}}\n", unique.scope,
                     locals_text(used), scratch.empty() ? "0" : scratch, zeroed.empty() ? "0" : zeroed);
}

/// The expression of a field's value in k0_launch().
std::string field_value(const PlanField& field) {
  switch (field.kind) {
    case PlanField::Kind::kTensor:
      return "arguments." + safe_name(field.source);
    case PlanField::Kind::kWorkspace:
      return fmt::format("{}_part", safe_name(field.source));
    case PlanField::Kind::kInt32:
    case PlanField::Kind::kInt64:
      return cpp_text(field.value);
    case PlanField::Kind::kTensorMap:
      return is_of_workspace(field) ? fmt::format("{}_part", safe_name(field.source)) : "arguments." + safe_name(field.source);
    case PlanField::Kind::kScalar:
      return "arguments." + safe_name(field.source);
  }
  return "0";
}

/// CUtensorMapDataType of the CUDA Driver API. TMA copies 16-bit floats as they are.
int tensor_map_type(DType dtype) { return dtype == DType::kF16 ? 6 : dtype == DType::kBF16 ? 9 : dtype == DType::kF64 ? 8 : 7; }

std::string list_text(const std::vector<IntExpr>& expressions) {
  std::vector<std::string> texts;
  for (const IntExpr& expression : expressions) texts.push_back(cpp_text(expression));
  return fmt::format("{{{}}}", fmt::join(texts, ", "));
}

std::string set_tensor_map_text(const std::string& target, const PlanField& field) {
  return fmt::format("    if (const cudaError_t error = set_tensor_map({}, {}, {}, {}, {}, {}, {}); error != cudaSuccess) return error;\n",
                     target, tensor_map_type(field.map.dtype), field_value(field), list_text(field.map.extents),
                     list_text(field.map.strides_bytes), list_text(field.map.box), cpp_text(field.map.swizzle_bytes));
}

std::string set_parameter_text(const PlanParameter& parameter) {
  const std::string target = "p_" + safe_name(parameter.name);
  const bool is_plain = parameter.fields.size() == 1 && (parameter.fields[0].name == parameter.name || parameter.fields[0].name.empty());
  std::string text;
  for (const PlanField& field : parameter.fields) {
    if (field.kind == PlanField::Kind::kTensorMap) {
      text += set_tensor_map_text(target, field);
      continue;
    }
    text += fmt::format("    set({}{}, {});\n", target, is_plain ? "" : "." + field.name, field_value(field));
  }
  return text;
}

std::string one_launch_text(const UniqueKernel& unique, const PlanLaunch& launch) {
  std::vector<std::string> names;
  std::string sets;
  for (const PlanParameter& parameter : launch.parameters) {
    names.push_back("p_" + safe_name(parameter.name));
    sets += set_parameter_text(parameter);
  }
  std::string text = "  {\n";
  text += fmt::format("    KernelParameters<decltype(&{}::{})>::Tuple parameters{{}};\n", unique.scope, launch.kernel);
  if (!names.empty()) text += fmt::format("    auto& [{}] = parameters;\n", fmt::join(names, ", "));
  text += sets;
  text += fmt::format(
      "    const cudaError_t error = launch_kernel(&{}::{}, {}, {}, {}, {}, {}, stream, parameters);\n"
      "    if (error != cudaSuccess) return error;\n  }}\n",
      unique.scope, launch.kernel, "Extents" + extents_text(launch.grid), "Extents" + extents_text(launch.block),
      "Extents" + extents_text(launch.cluster), cpp_text(launch.dynamic_smem_bytes),
      launch.is_dependent ? "Begin::kEarly" : "Begin::kInTurn");
  return text;
}

std::string launch_text(const ExportModel& model, const UniqueKernel& unique) {
  const LaunchPlan& plan = unique.kernel->plan;
  std::vector<IntExpr> used;
  std::string carve;
  bool has_scratch = false, has_zeroed = false;
  for (const PlanWorkspace& workspace : plan.workspaces) {
    const std::string part = safe_name(workspace.name) + "_part";
    if (workspace.bytes.is_constant() && workspace.bytes.constant() == 0) {
      carve += fmt::format("  void* const {} = nullptr;\n", part);
      continue;
    }
    used.push_back(workspace.bytes);
    (workspace.is_zeroed_once ? has_zeroed : has_scratch) = true;
    carve +=
        fmt::format("  void* const {} = {}.take({});\n", part, workspace.is_zeroed_once ? "zeroed" : "scratch", cpp_text(workspace.bytes));
  }
  std::string launches;
  for (const PlanLaunch& launch : plan.launches) {
    used.insert(used.end(), launch.grid.begin(), launch.grid.end());
    used.insert(used.end(), launch.block.begin(), launch.block.end());
    used.insert(used.end(), launch.cluster.begin(), launch.cluster.end());
    used.push_back(launch.dynamic_smem_bytes);
    for (const PlanParameter& parameter : launch.parameters) {
      for (const PlanField& field : parameter.fields) {
        const std::vector<IntExpr> of_field = expressions_of(field);
        used.insert(used.end(), of_field.begin(), of_field.end());
      }
    }
    launches += one_launch_text(unique, launch);
  }
  std::string text = fmt::format(
      "inline cudaError_t {}_launch([[maybe_unused]] const Variables& v, [[maybe_unused]] const {}Arguments& arguments, cudaStream_t "
      "stream) {{\n",
      unique.scope, model.type_prefix);
  text += locals_text(used);
  if (has_scratch) text += "  Carver scratch{static_cast<char*>(arguments.workspace)};\n";
  if (has_zeroed) text += "  Carver zeroed{static_cast<char*>(arguments.zeroed_workspace)};\n";
  return text + carve + launches + "  return cudaSuccess;\n}\n";
}

}  // namespace

std::string scoped_source_text(const UniqueKernel& unique) {
  std::string source = unique.kernel->source;
  constexpr std::string_view kLinkage = "extern \"C\" ";
  for (std::size_t at = source.find(kLinkage); at != std::string::npos; at = source.find(kLinkage, at)) source.erase(at, kLinkage.size());
  if (source.back() != '\n') source += '\n';
  return fmt::format("namespace {} {{\n\n{}\n}}  // namespace {}\n", unique.scope, source, unique.scope);
}

std::string kernel_functions_text(const ExportModel& model, const UniqueKernel& unique) {
  std::string text = comment(unique.kernel->variant_id);
  for (const ExportKernel* tuned : unique.tuned_for) {
    text += comment(fmt::format("  tuned for {}: {}{}", tuned->problem.to_text(), timing_text(*tuned),
                                tuned->record_id.empty() ? "" : fmt::format(" (record {})", tuned->record_id)));
  }
  return text + accepts_text(unique) + workspace_text(unique) + launch_text(model, unique);
}

}  // namespace kw::generator
