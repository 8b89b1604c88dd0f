// kernelwright query: the tuned kernel for a shape.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tuner/cli/command.h"
#include "tuner/session/query_session.h"
#include "tuner/session/ranked_problem.h"

namespace kw::tuner {
namespace po = boost::program_options;
namespace {

/// Type of a field: of what the pointer points to, or of the value; "" for scratch memory, which has none.
std::string dtype_of(const LaunchPlan& plan, const PlanField& field) {
  switch (field.kind) {
    case PlanField::Kind::kTensor:
    case PlanField::Kind::kTensorMap:
      for (const PlanTensor& tensor : plan.tensors)
        if (tensor.name == field.source) return std::string(kw::to_text(tensor.dtype));
      return "";
    case PlanField::Kind::kWorkspace:
      return "";
    case PlanField::Kind::kInt32:
      return "i32";
    case PlanField::Kind::kInt64:
      return "i64";
    case PlanField::Kind::kScalar:
      return std::string(kw::to_text(field.scalar_dtype));
  }
  return "";
}

/// The arguments of cuTensorMapEncodeTiled.
Result<nlohmann::json> evaluated_map(const PlanTensorMap& map, const IntBindings& bindings) {
  nlohmann::json out;
  const std::pair<const char*, const std::vector<IntExpr>*> lists[] = {
      {"extents", &map.extents}, {"strides_bytes", &map.strides_bytes}, {"box", &map.box}};
  for (const auto& [name, list] : lists) {
    out[name] = nlohmann::json::array();
    for (const IntExpr& expression : *list) {
      KW_TRY(const std::int64_t value, expression.evaluate(bindings));
      out[name].push_back(value);
    }
  }
  KW_TRY(const std::int64_t swizzle_bytes, map.swizzle_bytes.evaluate(bindings));
  out["swizzle_bytes"] = swizzle_bytes;
  return out;
}

/// The launch plan with every expression evaluated at the asked problem: what another program needs to launch the cubin.
Result<nlohmann::json> evaluated_plan(const QueryAnswer& answer) {
  const IntBindings bindings = answer.asked.bindings(answer.plan);
  nlohmann::json out = {{"workspaces", nlohmann::json::array()}, {"launches", nlohmann::json::array()}};
  for (const PlanWorkspace& workspace : answer.plan.workspaces) {
    KW_TRY(const std::int64_t bytes, workspace.bytes.evaluate(bindings));
    out["workspaces"].push_back({{"name", workspace.name}, {"bytes", bytes}, {"is_zeroed_once", workspace.is_zeroed_once}});
  }
  for (const PlanLaunch& launch : answer.plan.launches) {
    nlohmann::json item = {{"kernel", launch.kernel}, {"is_dependent", launch.is_dependent}};
    const std::pair<const char*, const std::array<IntExpr, 3>*> extents[] = {
        {"grid", &launch.grid}, {"block", &launch.block}, {"cluster", &launch.cluster}};
    for (const auto& [name, triple] : extents) {
      for (const IntExpr& extent : *triple) {
        KW_TRY(const std::int64_t value, extent.evaluate(bindings));
        item[name].push_back(value);
      }
    }
    KW_TRY(const std::int64_t smem_bytes, launch.dynamic_smem_bytes.evaluate(bindings));
    item["dynamic_smem_bytes"] = smem_bytes;
    for (const PlanParameter& parameter : launch.parameters) {
      nlohmann::json fields = nlohmann::json::array();
      for (const PlanField& field : parameter.fields) {
        const bool is_number = field.kind == PlanField::Kind::kInt32 || field.kind == PlanField::Kind::kInt64;
        nlohmann::json entry = {{"kind", kw::to_text(field.kind)}, {"name", field.name}};
        if (field.kind == PlanField::Kind::kTensorMap) {
          KW_TRY(entry["map"], evaluated_map(field.map, bindings));
        }
        if (!is_number) entry["source"] = field.source;
        const std::string dtype = dtype_of(answer.plan, field);
        if (!dtype.empty()) entry["dtype"] = dtype;
        if (is_number) {
          KW_TRY(const std::int64_t value, field.value.evaluate(bindings));
          entry["value"] = value;
        }
        fields.push_back(entry);
      }
      item["parameters"].push_back(fields);
    }
    out["launches"].push_back(item);
  }
  return out;
}

nlohmann::json to_json(const QueryAnswer& answer) {
  nlohmann::json out = {{"match", kw::to_text(answer.match)}, {"explanation", answer.explanation}, {"problem", answer.asked.to_text()}};
  if (!answer.record) return out;
  const db::TrialKey& key = answer.record->key;
  out["variant"] = key.variant.id;
  out["template"] = key.variant.template_name;
  out["config"] = key.variant.config;
  out["arch"] = key.variant.arch;
  out["device"] = key.device.model;
  out["measured_problem"] = key.problem.dims_text;
  out["is_predicted"] = answer.is_predicted;
  out["verification"] = kw::to_text(answer.record->trial.verify_level);
  out[answer.is_predicted ? "predicted_us" : "median_us"] = answer.time_us;
  out["is_time_here"] = answer.is_time_here();  // false: the time, tflops and roofline_share belong to measured_problem
  if (answer.modelled_us > 0) out["modelled_us_here"] = answer.modelled_us;
  if (answer.roofline_here) out["roofline_bound_us_here"] = answer.roofline_here->bound_us;
  out["record"] = answer.record->id;
  for (const BaselineRatio& baseline : answer.baselines) out["baselines"].push_back(to_json(baseline));
  if (answer.roofline && answer.time_us > 0) {
    out["tflops"] = answer.roofline->flops / answer.time_us * 1e-6;
    out["roofline_share"] = answer.roofline->bound_us / answer.time_us;
  }
  return out;
}

const char* bound_name(const Roofline& roofline) { return roofline.math_bound_us >= roofline.memory_bound_us ? "arithmetic" : "memory"; }

void print(const QueryAnswer& answer) {
  fmt::print("{} at {}\n", answer.spec->program->name, answer.asked.to_text());
  fmt::print("  match    {}: {}\n", kw::to_text(answer.match), answer.explanation);
  if (!answer.record) return;
  const db::TrialKey& key = answer.record->key;
  fmt::print("  kernel   {} (record {})\n", key.variant.id, answer.record->id);
  if (answer.plan.launches.size() > 1) fmt::print("  plan     {}\n", key.variant.template_name);
  fmt::print("  config   {}\n", key.variant.config);
  fmt::print("  built    {} with NVRTC {}, {} registers\n", key.variant.arch, key.toolchain.nvrtc, answer.record->binary.registers);
  const double tflops = answer.roofline && answer.time_us > 0 ? answer.roofline->flops / answer.time_us * 1e-6 : 0;
  const std::string place = answer.is_time_here() ? "" : fmt::format(" at {}", key.problem.dims_text);
  if (answer.is_predicted) {
    fmt::print("  time     {:.2f} us{}, predicted, not measured ({:.1f} TFLOP/s)\n", answer.time_us, place, tflops);
    if (answer.record->trial.verify_level == VerifyLevel::kSimulated)
      fmt::print("  right on the simulator at small problems, not run on a device: worst error {:.3f} of the bound\n",
                 answer.record->trial.max_error_over_bound);
  } else {
    fmt::print("  time     {:.2f} us{} (p10 {:.2f}, p90 {:.2f}), {:.1f} TFLOP/s, protocol {}\n", answer.time_us, place,
               answer.record->trial.p10_us, answer.record->trial.p90_us, tflops, key.protocol.name);
    fmt::print("  verified on the {}: worst error {:.3f} of the bound, relative norm {:.2e}\n",
               kw::to_text(answer.record->trial.verify_level), answer.record->trial.max_error_over_bound,
               answer.record->trial.relative_norm_error);
  }
  for (const BaselineRatio& baseline : answer.baselines)
    fmt::print("  baseline {}{}: {:.2f} us (p10 {:.2f}, p90 {:.2f}), version {}, {}\n", baseline.to_text(), place,
               baseline.record.row.median_us, baseline.record.row.p10_us, baseline.record.row.p90_us, baseline.record.key.blas_version,
               baseline.record.row.algorithm);
  if (answer.roofline && answer.time_us > 0)
    fmt::print("  roofline {:.1f} % of the bound of {:.2f} us{} ({} bound)\n", 100 * answer.roofline->bound_us / answer.time_us,
               answer.roofline->bound_us, place, bound_name(*answer.roofline));
  if (answer.is_time_here()) return;
  const std::string model =
      answer.modelled_us > 0 ? fmt::format("{:.2f} us by the model, not measured", answer.modelled_us) : "no time by the model";
  if (answer.roofline_here)
    fmt::print("  here     {}; bound of {:.2f} us ({} bound)\n", model, answer.roofline_here->bound_us, bound_name(*answer.roofline_here));
  else
    fmt::print("  here     {}\n", model);
}

}  // namespace

Result<int> run_query(const Invocation& invocation) {
  po::options_description described("options");
  add_service_options(described);
  described.add_options()("set", po::value<std::vector<std::string>>(), "dims of the problem: M=1024,N=4096");
  described.add_options()("device-model", po::value<std::string>(), "ask for this device model, for example \"NVIDIA H200\"");
  described.add_options()("any-device", po::bool_switch(), "accept a kernel measured on another device model");
  described.add_options()("warm", po::bool_switch(), "rows timed with the inputs in L2");
  described.add_options()("cubin", po::value<std::string>(), "write the compiled kernel to this file");
  described.add_options()("json", po::bool_switch(), "answer as JSON, with the launch plan evaluated at the shape");
  KW_TRY(const ParsedOptions parsed, parse_options(invocation, "query", std::move(described), {"op"}));
  if (parsed.is_help) return 0;
  if (!parsed.has("op")) return fail(Stage::kCommandLine, Code::kBadInput, "query: give the name of an op");
  KW_TRY(const std::unique_ptr<Services> services, make_services(invocation, parsed));
  QueryOptions options;
  options.op = parsed.text("op");
  KW_TRY(options.set, single_shape_of_set(parsed.list("set"), "query"));
  options.device_model = parsed.text("device-model");
  options.allows_other_device = parsed.flag("any-device");
  options.is_warm_l2 = parsed.flag("warm");
  KW_TRY(const QueryAnswer answer, answer_query(options, *services));
  if (parsed.has("cubin") && answer.record) {
    if (answer.record->binary.cubin.empty())
      return fail(Stage::kDatabase, Code::kNotFound, fmt::format("the cubin of {} is not kept", answer.record->key.variant.id));
    KW_TRY_VOID(write_file(parsed.text("cubin"), answer.record->binary.cubin));
  }
  if (parsed.flag("json")) {
    nlohmann::json out = to_json(answer);
    if (answer.record) {
      KW_TRY(out["plan"], evaluated_plan(answer));
    }
    fmt::print("{}\n", out.dump(2));
  } else {
    print(answer);
  }
  return answer.match == MatchKind::kNone ? 1 : 0;
}

}  // namespace kw::tuner
