// Export: checks the request and puts kernels, tuned shapes and arguments in order.
// SPDX-License-Identifier: Apache-2.0
#include "generator/emit/export/model.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "generator/emit/export/names.h"

namespace kw::generator {
namespace {

auto refuse(Code code, std::string message) { return fail(Stage::kEmit, code, std::move(message)); }

/// All expressions of a plan that the launcher evaluates.
std::vector<IntExpr> all_expressions(const LaunchPlan& plan) {
  std::vector<IntExpr> all;
  for (const PlanTensor& tensor : plan.tensors) {
    all.insert(all.end(), tensor.shape.begin(), tensor.shape.end());
    all.insert(all.end(), tensor.strides.begin(), tensor.strides.end());
  }
  for (const PlanWorkspace& workspace : plan.workspaces) all.push_back(workspace.bytes);
  for (const PlanConstraint& constraint : plan.constraints) all.push_back(constraint.rule);
  for (const PlanLaunch& launch : plan.launches) {
    all.insert(all.end(), launch.grid.begin(), launch.grid.end());
    all.insert(all.end(), launch.block.begin(), launch.block.end());
    all.insert(all.end(), launch.cluster.begin(), launch.cluster.end());
    all.push_back(launch.dynamic_smem_bytes);
    for (const PlanParameter& parameter : launch.parameters) {
      for (const PlanField& field : parameter.fields) {
        const std::vector<IntExpr> of_field = expressions_of(field);
        all.insert(all.end(), of_field.begin(), of_field.end());
      }
    }
  }
  return all;
}

Status check_kernel(const ExportModel& model, const ExportKernel& kernel) {
  const std::string who = fmt::format("export of {}: kernel {}", model.op, kernel.variant_id);
  if (kernel.source.empty()) return refuse(Code::kBadInput, who + ": its source is not in the database any more (collected?)");
  if (kernel.plan.launches.empty()) return refuse(Code::kBadInput, who + ": its launch plan has no launch");
  for (const PlanLaunch& launch : kernel.plan.launches) {
    if (!is_identifier(launch.kernel) || kernel.source.find(launch.kernel) == std::string::npos) {
      return refuse(Code::kBadInput, fmt::format("{}: kernel symbol '{}' is not in its source", who, launch.kernel));
    }
  }
  const auto same_tensor = [](const PlanTensor& a, const PlanTensor& b) {
    return a.name == b.name && a.dtype == b.dtype && a.role == b.role;
  };
  if (!std::equal(kernel.plan.tensors.begin(), kernel.plan.tensors.end(), model.plan->tensors.begin(), model.plan->tensors.end(),
                  same_tensor)) {
    return refuse(Code::kBadInput, who + ": its tensors are not those of the fall-back: kernels of two different ops in one export");
  }
  for (const PlanConstraint& constraint : kernel.plan.constraints) {
    if (constraint.rule.is_constant() && constraint.rule.constant() == 0) {
      return refuse(Code::kBadInput, fmt::format("{}: constraint {} never holds", who, constraint.name));
    }
  }
  return {};
}

Status check_program(const ExportModel& model) {
  for (const Index& index : model.program->indices) {
    if (!index.ragged_offsets.empty()) {
      return refuse(Code::kNotSupported, fmt::format("export of {}: index {} is ragged: not exported yet", model.op, index.name));
    }
  }
  return {};
}

void add_kernel(ExportModel& model, const ExportKernel& kernel, bool is_tuned) {
  for (UniqueKernel& known : model.kernels) {
    if (known.kernel->source == kernel.source && known.kernel->arch == kernel.arch && to_json(known.kernel->plan) == to_json(kernel.plan)) {
      if (is_tuned) known.tuned_for.push_back(&kernel);
      if (!is_tuned) model.kernels.push_back({known.scope, &kernel, {}});  // the fall-back is listed last, its source once
      return;
    }
  }
  model.kernels.push_back({fmt::format("k{}", model.kernels.size()), &kernel, {}});
  if (is_tuned) model.kernels.back().tuned_for.push_back(&kernel);
}

void collect_arguments(ExportModel& model) {
  std::set<std::string> tensor_names;
  for (const Dim& dim : model.program->dims) model.dims.push_back(dim.name);
  for (const PlanTensor& tensor : model.plan->tensors) tensor_names.insert(tensor.name);
  std::set<std::string> seen(model.dims.begin(), model.dims.end());
  const auto add = [&](const std::vector<IntExpr>& expressions) {
    std::set<std::string> names;
    for (const IntExpr& expression : expressions) expression.collect_variables(names);
    for (const std::string& name : names) {
      const std::size_t dot = name.find('.');
      const bool is_of_tensor = dot != std::string::npos && tensor_names.count(name.substr(0, dot)) != 0;
      if (!is_of_tensor && seen.insert(name).second) model.strides.push_back(name);
    }
  };
  for (const PlanTensor& tensor : model.plan->tensors) {
    for (std::size_t axis = 0; axis < tensor.strides.size(); ++axis) {
      const IntExpr& stride = tensor.strides[axis];
      const std::string own = fmt::format("{}.stride{}", tensor.name, axis);
      if (stride.op() == IntExpr::Op::kVar && stride.name() == own && seen.insert(own).second) model.strides.push_back(own);
    }
    add(tensor.strides);
  }
  for (const UniqueKernel& unique : model.kernels) add(all_expressions(unique.kernel->plan));
}

}  // namespace

Result<ExportModel> build_export_model(const ExportRequest& request) {
  KW_CHECK(request.program != nullptr, "an export needs the op's program");
  ExportModel model;
  model.request = &request;
  model.program = request.program;
  model.op = request.op_name;
  if (!is_identifier(request.op_name) || safe_name(request.op_name) != request.op_name) {
    return refuse(Code::kBadInput, fmt::format("export: op name '{}' is no C identifier: rename the op in its spec", request.op_name));
  }
  model.type_prefix = camel_case(request.op_name);
  model.plan = &request.fallback.plan;
  if (request.fallback.source.empty() || request.fallback.plan.launches.empty()) {
    return refuse(Code::kBadInput, fmt::format("export of {}: no fall-back kernel that is legal for every shape", request.op_name));
  }
  KW_TRY_VOID(check_program(model));
  for (const ExportKernel& kernel : request.kernels) {
    KW_TRY_VOID(check_kernel(model, kernel));
    add_kernel(model, kernel, true);
  }
  KW_TRY_VOID(check_kernel(model, request.fallback));
  add_kernel(model, request.fallback, false);
  collect_arguments(model);

  std::set<Arch> arches;
  for (const UniqueKernel& unique : model.kernels) {
    arches.insert(unique.kernel->arch);
    for (const PlanWorkspace& workspace : unique.kernel->plan.workspaces) {
      if (workspace.bytes.is_constant() && workspace.bytes.constant() == 0) continue;
      (workspace.is_zeroed_once ? model.has_zeroed_workspace : model.has_workspace) = true;
    }
  }
  model.arches.assign(arches.begin(), arches.end());
  std::sort(model.arches.begin(), model.arches.end(),
            [](Arch a, Arch b) { return std::pair(compute_capability(a), a) < std::pair(compute_capability(b), b); });
  return model;
}

std::string timing_text(const ExportKernel& kernel) {
  if (kernel.is_predicted || kernel.median_us <= 0) return "predicted, not measured";
  return fmt::format("measured {:.2f} us (median) on {}", kernel.median_us, kernel.device_model);
}

bool has_checks(const ExportModel& model) {
  return std::any_of(model.kernels.begin(), model.kernels.end(),
                     [](const UniqueKernel& unique) { return unique.kernel->source.find("KERNELWRIGHT_CHECKED") != std::string::npos; });
}

std::string nvcc_arch_flags(const ExportModel& model) {
  std::string text;
  for (const Arch arch : model.arches) {
    const std::string number(to_text(arch).substr(3));  // after "sm_"
    const bool is_specific = number.back() == 'a';      // code for one architecture only: no PTX that a later one could load
    text += fmt::format("{}-gencode arch=compute_{},code={}", text.empty() ? "" : " ", number,
                        is_specific ? "sm_" + number : fmt::format("'[sm_{0},compute_{0}]'", number));
  }
  return text;
}

Result<std::map<std::string, std::string>> export_files(const ExportRequest& request) {
  KW_TRY(const ExportModel model, build_export_model(request));
  KW_TRY(const std::string test, test_text(model));
  return std::map<std::string, std::string>{
      {model.op + ".h", header_text(model)}, {model.op + ".cu", source_text(model)}, {"test_" + model.op + ".cu", test},
      {"CMakeLists.txt", cmake_text(model)}, {"README.md", readme_text(model)},
  };
}

}  // namespace kw::generator
