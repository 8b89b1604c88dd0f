// See plan_builder.h. Every expression of the template is closed over three things: the config's values, the bindings and limits as
// constants, and the problem variables as expressions of the op. What remains ranges over dims, strides and alignments.
// SPDX-License-Identifier: Apache-2.0
#include "generator/emit/plan_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace kw::generator {
namespace {

constexpr std::string_view kWorkspace = "workspace:";
constexpr std::string_view kZeroedWorkspace = "workspace_zeroed:";
constexpr std::string_view kTensorMapSuffix = "_map";  // of a kernel parameter: the tensor map of the operand before it
constexpr int kMaxTensorMapRank = 5;

class PlanBuilder {
 public:
  explicit PlanBuilder(const PlanRequest& request) : request_(request), info_(*request.info), plan_(*request.skeleton) {
    for (const auto& [name, value] : limit_bindings(generic_device(request.arch))) replacements_[name] = IntExpr(value);
    for (const auto& [name, value] : request.values->variables) replacements_[name] = value;
    for (const auto& [name, value] : request.values->numbers) replacements_[name] = IntExpr(value);
    for (const auto& [name, value] : request.config->values) replacements_[name] = IntExpr(value);
    for (const PlanTensor& tensor : plan_.tensors) {
      known_.insert(tensor.name + ".align");
      for (const IntExpr& stride : tensor.strides) stride.collect_variables(known_);
    }
    known_.insert(plan_.dims.begin(), plan_.dims.end());
  }

  Result<LaunchPlan> build() {
    KW_TRY_VOID(add_constraints());
    KW_TRY_VOID(add_workspaces());
    PlanLaunch launch;
    launch.kernel = request_.kernel_name;
    const char* axes[] = {"x", "y", "z"};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      KW_TRY(launch.grid[axis], launch_quantity(fmt::format("grid_{}", axes[axis]), 1));
      KW_TRY(launch.block[axis], launch_quantity(fmt::format("block_{}", axes[axis]), 1));
      KW_TRY(launch.cluster[axis], launch_quantity(fmt::format("cluster_{}", axes[axis]), 1));
    }
    KW_TRY(launch.dynamic_smem_bytes, launch_quantity("dynamic_smem_bytes", 0));
    KW_TRY(const IntExpr is_persistent, launch_quantity("is_persistent", 0));
    launch.is_persistent = is_persistent.is_constant() && is_persistent.constant() != 0;
    for (const KernelParameter& parameter : info_.parameters) {
      KW_TRY(PlanParameter filled, fill(parameter));
      launch.parameters.push_back(std::move(filled));
    }
    plan_.launches.push_back(std::move(launch));
    return std::move(plan_);
  }

 private:
  Result<IntExpr> closed(const IntExpr& expr, const std::string& subject) const {
    const IntExpr result = expr.substitute(replacements_);
    std::set<std::string> names;
    result.collect_variables(names);
    for (const std::string& name : names) {
      if (known_.count(name) == 0)
        return fail(Stage::kEmit, Code::kInternal, fmt::format("{}: {} names {}, which nothing gives", info_.name, subject, name));
    }
    return result;
  }

  const Quantity* find_quantity(const std::string& name) const {
    const auto found =
        std::find_if(info_.launch.begin(), info_.launch.end(), [&](const Quantity& quantity) { return quantity.name == name; });
    return found == info_.launch.end() ? nullptr : &*found;
  }

  Result<IntExpr> launch_quantity(const std::string& name, std::int64_t fallback) const {
    const Quantity* quantity = find_quantity(name);
    if (quantity == nullptr) return IntExpr(fallback);
    return closed(quantity->expression, name);
  }

  Status add_constraints() {
    for (const Rule& rule : info_.rules) {
      if (!rule.is_on_problem) continue;
      KW_TRY(IntExpr expression, closed(rule.expression, "rule " + rule.name));
      if (expression.is_constant() && expression.constant() != 0) continue;
      if (expression.is_constant()) {
        return fail(Stage::kEmit, Code::kBadInput,
                    fmt::format("{} with {}: breaks {} on every problem: {}", info_.name, request_.config->to_text(), rule.name, rule.why));
      }
      plan_.constraints.push_back({rule.name, std::move(expression), rule.why});
    }
    return {};
  }

  Status add_workspaces() {
    for (const Quantity& quantity : info_.launch) {
      const bool is_zeroed = quantity.name.starts_with(kZeroedWorkspace);
      if (!is_zeroed && !quantity.name.starts_with(kWorkspace)) continue;
      PlanWorkspace workspace;
      workspace.name = quantity.name.substr(is_zeroed ? kZeroedWorkspace.size() : kWorkspace.size());
      workspace.is_zeroed_once = is_zeroed;
      KW_TRY(workspace.bytes, closed(quantity.expression, quantity.name));
      plan_.workspaces.push_back(std::move(workspace));
    }
    return {};
  }

  tl::unexpected<Error> unfilled(const std::string& name, const std::string& type) const {
    return fail(Stage::kEmit, Code::kInternal, fmt::format("{}: nothing fills the kernel parameter {} {}", info_.name, type, name));
  }

  Result<PlanField> number_field(const std::string& type, const std::string& name) const {
    const auto value = request_.values->variables.find(name);
    if (value == request_.values->variables.end()) return unfilled(name, type);
    PlanField field;
    field.name = name;
    field.value = value->second;
    if (type == "long long") {
      field.kind = PlanField::Kind::kInt64;
    } else if (type == "int") {
      field.kind = PlanField::Kind::kInt32;
    } else {
      return unfilled(name, type);
    }
    return field;
  }

  Result<PlanField> pointer_field(const KernelParameter& parameter) const {
    PlanField field;
    field.name = parameter.name;
    const auto operand = request_.match->operands.find(parameter.name);
    if (operand != request_.match->operands.end()) {
      field.kind = PlanField::Kind::kTensor;
      field.source = operand->second.tensor;
      return field;
    }
    const auto& workspaces = plan_.workspaces;
    if (std::none_of(workspaces.begin(), workspaces.end(),
                     [&](const PlanWorkspace& workspace) { return workspace.name == parameter.name; })) {
      return unfilled(parameter.name, parameter.type);
    }
    field.kind = PlanField::Kind::kWorkspace;
    field.source = parameter.name;
    return field;
  }

  /// A parameter "A_map" of type TensorMap: LAUNCH("tensor_map:A_map:extent_0"), stride_1 (bytes), box_0, swizzle ... describe it.
  Result<PlanField> tensor_map_field(const KernelParameter& parameter) const {
    const std::string operand_name =
        parameter.name.substr(0, parameter.name.size() - std::min(parameter.name.size(), kTensorMapSuffix.size()));
    const auto operand = request_.match->operands.find(operand_name);
    if (!parameter.name.ends_with(kTensorMapSuffix) || operand == request_.match->operands.end())
      return unfilled(parameter.name, parameter.type);
    PlanField field;
    field.kind = PlanField::Kind::kTensorMap;
    field.name = parameter.name;
    field.source = operand->second.tensor;
    field.map.dtype = operand->second.dtype;
    const std::string prefix = "tensor_map:" + parameter.name + ":";
    for (int i = 0; i < kMaxTensorMapRank; ++i) {
      if (find_quantity(fmt::format("{}extent_{}", prefix, i)) == nullptr) break;
      const auto add = [&](const char* what, std::vector<IntExpr>& list) -> Status {
        const std::string name = fmt::format("{}{}_{}", prefix, what, i);
        if (find_quantity(name) == nullptr)
          return fail(Stage::kEmit, Code::kInternal, fmt::format("{}: LAUNCH(\"{}\") is missing", info_.name, name));
        KW_TRY(IntExpr expression, launch_quantity(name, 0));
        list.push_back(std::move(expression));
        return {};
      };
      KW_TRY_VOID(add("extent", field.map.extents));
      if (i > 0) KW_TRY_VOID(add("stride", field.map.strides_bytes));
      KW_TRY_VOID(add("box", field.map.box));
    }
    if (field.map.extents.empty()) return unfilled(parameter.name, parameter.type);
    KW_TRY(field.map.swizzle_bytes, launch_quantity(prefix + "swizzle", 0));
    return field;
  }

  Result<PlanParameter> fill(const KernelParameter& parameter) const {
    PlanParameter result;
    result.name = parameter.name;
    if (parameter.name == "epilogue" || parameter.name == "row") {
      result.fields = *request_.epilogue_fields;
    } else if (parameter.type == "TensorMap" || parameter.type == "const TensorMap") {
      KW_TRY(PlanField field, tensor_map_field(parameter));
      result.fields.push_back(std::move(field));
    } else if (parameter.is_pointer) {
      KW_TRY(PlanField field, pointer_field(parameter));
      result.fields.push_back(std::move(field));
    } else if (parameter.fields.empty()) {
      KW_TRY(PlanField field, number_field(parameter.type, parameter.name));
      result.fields.push_back(std::move(field));
    } else {
      for (const auto& [type, name] : parameter.fields) {
        KW_TRY(PlanField field, number_field(type, name));
        result.fields.push_back(std::move(field));
      }
    }
    return result;
  }

  const PlanRequest& request_;
  const TemplateInfo& info_;
  LaunchPlan plan_;
  std::map<std::string, IntExpr> replacements_;
  std::set<std::string> known_;
};

}  // namespace

LaunchPlan skeleton_plan(const Program& program) {
  LaunchPlan plan;
  for (const Dim& dim : program.dims) plan.dims.push_back(dim.name);
  for (const Tensor& tensor : program.tensors)
    plan.tensors.push_back({tensor.name, tensor.dtype, tensor.role, subscripted_shape(tensor), subscripted_strides(tensor),
                            tensor.align_bytes, !tensor.list_dim.empty()});
  for (const Scalar& scalar : program.scalars) {
    if (!scalar.value) plan.scalars.push_back({scalar.name, scalar.dtype});
  }
  return plan;
}

Result<LaunchPlan> build_plan(const PlanRequest& request) { return PlanBuilder(request).build(); }

}  // namespace kw::generator
