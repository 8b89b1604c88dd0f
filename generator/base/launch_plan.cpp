// JSON of a launch plan, and back. Expressions travel as text.
// SPDX-License-Identifier: Apache-2.0
#include "generator/base/launch_plan.h"

#include <nlohmann/json.hpp>

namespace kw {
namespace {

using nlohmann::json;

constexpr std::string_view kFieldKinds[] = {"tensor", "workspace", "int32", "int64", "scalar", "tensor_map"};
constexpr std::string_view kRoles[] = {"in", "out", "inout"};

json exprs_to_json(const auto& exprs) {
  json list = json::array();
  for (const IntExpr& expr : exprs) list.push_back(expr.to_text());
  return list;
}

/// Thrown inside this file only; launch_plan_from_json turns it into a Result.
struct BadPlan {
  std::string message;
};

IntExpr expr_from(const json& value) {
  auto expr = IntExpr::parse(value.get<std::string>());
  if (!expr) throw BadPlan{expr.error().message};
  return *expr;
}

template <std::size_t kCount>
int index_of(const std::string_view (&names)[kCount], const std::string& text) {
  for (std::size_t i = 0; i < kCount; ++i)
    if (names[i] == text) return static_cast<int>(i);
  throw BadPlan{"unknown word '" + text + "'"};
}

DType dtype_from(const json& value) {
  const auto dtype = dtype_from_text(value.get<std::string>());
  if (!dtype) throw BadPlan{"unknown dtype '" + value.get<std::string>() + "'"};
  return *dtype;
}

std::vector<IntExpr> expr_list_from(const json& list) {
  std::vector<IntExpr> exprs;
  for (const json& item : list) exprs.push_back(expr_from(item));
  return exprs;
}

std::array<IntExpr, 3> triple_from(const json& list) {
  if (list.size() != 3) throw BadPlan{"a launch extent has three numbers"};
  return {expr_from(list[0]), expr_from(list[1]), expr_from(list[2])};
}

json field_to_json(const PlanField& field) {
  json out = {{"kind", to_text(field.kind)}, {"name", field.name}};
  switch (field.kind) {
    case PlanField::Kind::kTensor:
    case PlanField::Kind::kWorkspace:
      out["source"] = field.source;
      break;
    case PlanField::Kind::kInt32:
    case PlanField::Kind::kInt64:
      out["value"] = field.value.to_text();
      break;
    case PlanField::Kind::kScalar:
      out["source"] = field.source;
      out["dtype"] = to_text(field.scalar_dtype);
      break;
    case PlanField::Kind::kTensorMap:
      out["source"] = field.source;
      out["map"] = {{"dtype", to_text(field.map.dtype)},
                    {"extents", exprs_to_json(field.map.extents)},
                    {"strides_bytes", exprs_to_json(field.map.strides_bytes)},
                    {"box", exprs_to_json(field.map.box)},
                    {"swizzle_bytes", field.map.swizzle_bytes.to_text()}};
      if (field.map.is_in_workspace) out["map"]["is_in_workspace"] = true;
      break;
  }
  return out;
}

PlanTensorMap map_from(const json& in) {
  PlanTensorMap map;
  map.dtype = dtype_from(in.at("dtype"));
  map.extents = expr_list_from(in.at("extents"));
  map.strides_bytes = expr_list_from(in.at("strides_bytes"));
  map.box = expr_list_from(in.at("box"));
  map.swizzle_bytes = expr_from(in.at("swizzle_bytes"));
  map.is_in_workspace = in.value("is_in_workspace", false);
  if (map.extents.empty() || map.extents.size() > 5 || map.box.size() != map.extents.size() ||
      map.strides_bytes.size() + 1 != map.extents.size())
    throw BadPlan{"a tensor map has one to five dimensions, a box of as many and one stride less"};
  return map;
}

PlanField field_from(const json& in) {
  PlanField field;
  field.kind = static_cast<PlanField::Kind>(index_of(kFieldKinds, in.at("kind").get<std::string>()));
  field.name = in.at("name").get<std::string>();
  if (in.contains("source")) field.source = in.at("source").get<std::string>();
  if (in.contains("value")) field.value = expr_from(in.at("value"));
  if (in.contains("dtype")) field.scalar_dtype = dtype_from(in.at("dtype"));
  if (field.kind == PlanField::Kind::kTensorMap) field.map = map_from(in.at("map"));
  return field;
}

json launch_to_json(const PlanLaunch& launch) {
  json parameters = json::array();
  for (const PlanParameter& parameter : launch.parameters) {
    json fields = json::array();
    for (const PlanField& field : parameter.fields) fields.push_back(field_to_json(field));
    parameters.push_back({{"name", parameter.name}, {"fields", fields}});
  }
  json out = {{"kernel", launch.kernel},
              {"grid", exprs_to_json(launch.grid)},
              {"block", exprs_to_json(launch.block)},
              {"cluster", exprs_to_json(launch.cluster)},
              {"dynamic_smem_bytes", launch.dynamic_smem_bytes.to_text()},
              {"parameters", parameters}};
  if (launch.is_persistent) out["is_persistent"] = true;
  if (launch.is_dependent) out["is_dependent"] = true;
  return out;
}

PlanLaunch launch_from(const json& in) {
  PlanLaunch launch;
  launch.kernel = in.at("kernel").get<std::string>();
  launch.grid = triple_from(in.at("grid"));
  launch.block = triple_from(in.at("block"));
  launch.cluster = triple_from(in.at("cluster"));
  launch.dynamic_smem_bytes = expr_from(in.at("dynamic_smem_bytes"));
  launch.is_persistent = in.value("is_persistent", false);  // plans of older databases do not say
  launch.is_dependent = in.value("is_dependent", false);
  for (const json& item : in.at("parameters")) {
    PlanParameter parameter{item.at("name").get<std::string>(), {}};
    for (const json& field : item.at("fields")) parameter.fields.push_back(field_from(field));
    launch.parameters.push_back(std::move(parameter));
  }
  return launch;
}

}  // namespace

std::string_view to_text(TensorRole role) { return kRoles[static_cast<int>(role)]; }

std::string_view to_text(PlanField::Kind kind) { return kFieldKinds[static_cast<int>(kind)]; }

bool is_of_workspace(const PlanField& field) {
  return field.kind == PlanField::Kind::kWorkspace || (field.kind == PlanField::Kind::kTensorMap && field.map.is_in_workspace);
}

std::vector<IntExpr> expressions_of(const PlanField& field) {
  if (field.kind == PlanField::Kind::kInt32 || field.kind == PlanField::Kind::kInt64) return {field.value};
  if (field.kind != PlanField::Kind::kTensorMap) return {};
  std::vector<IntExpr> all = field.map.extents;
  all.insert(all.end(), field.map.strides_bytes.begin(), field.map.strides_bytes.end());
  all.insert(all.end(), field.map.box.begin(), field.map.box.end());
  all.push_back(field.map.swizzle_bytes);
  return all;
}

nlohmann::json to_json(const LaunchPlan& plan) {
  json out = {{"dims", plan.dims},           {"tensors", json::array()},     {"scalars", json::array()},
              {"workspaces", json::array()}, {"constraints", json::array()}, {"launches", json::array()}};
  for (const PlanTensor& tensor : plan.tensors) {
    out["tensors"].push_back({{"name", tensor.name},
                              {"dtype", to_text(tensor.dtype)},
                              {"role", to_text(tensor.role)},
                              {"shape", exprs_to_json(tensor.shape)},
                              {"strides", exprs_to_json(tensor.strides)},
                              {"align_bytes", tensor.align_bytes}});
    if (tensor.is_list) out["tensors"].back()["is_list"] = true;
  }
  for (const PlanScalar& scalar : plan.scalars) out["scalars"].push_back({{"name", scalar.name}, {"dtype", to_text(scalar.dtype)}});
  for (const PlanWorkspace& workspace : plan.workspaces)
    out["workspaces"].push_back(
        {{"name", workspace.name}, {"bytes", workspace.bytes.to_text()}, {"is_zeroed_once", workspace.is_zeroed_once}});
  for (const PlanConstraint& constraint : plan.constraints)
    out["constraints"].push_back({{"name", constraint.name}, {"rule", constraint.rule.to_text()}, {"why", constraint.why}});
  for (const PlanLaunch& launch : plan.launches) out["launches"].push_back(launch_to_json(launch));
  return out;
}

Result<LaunchPlan> launch_plan_from_json(const nlohmann::json& in) {
  try {
    LaunchPlan plan;
    plan.dims = in.at("dims").get<std::vector<std::string>>();
    for (const json& item : in.at("tensors")) {
      PlanTensor tensor;
      tensor.name = item.at("name").get<std::string>();
      tensor.dtype = dtype_from(item.at("dtype"));
      tensor.role = static_cast<TensorRole>(index_of(kRoles, item.at("role").get<std::string>()));
      tensor.shape = expr_list_from(item.at("shape"));
      tensor.strides = expr_list_from(item.at("strides"));
      tensor.align_bytes = item.at("align_bytes").get<int>();
      tensor.is_list = item.value("is_list", false);
      plan.tensors.push_back(std::move(tensor));
    }
    for (const json& item : in.at("scalars")) plan.scalars.push_back({item.at("name").get<std::string>(), dtype_from(item.at("dtype"))});
    for (const json& item : in.at("workspaces"))
      plan.workspaces.push_back({item.at("name").get<std::string>(), expr_from(item.at("bytes")), item.at("is_zeroed_once").get<bool>()});
    for (const json& item : in.at("constraints"))
      plan.constraints.push_back({item.at("name").get<std::string>(), expr_from(item.at("rule")), item.at("why").get<std::string>()});
    for (const json& item : in.at("launches")) plan.launches.push_back(launch_from(item));
    return plan;
  } catch (const BadPlan& bad) {
    return fail(Stage::kEmit, Code::kBadInput, "launch plan: " + bad.message);
  } catch (const json::exception& bad) {
    return fail(Stage::kEmit, Code::kBadInput, std::string("launch plan: ") + bad.what());
  }
}

}  // namespace kw
