// A database with kernels of the fake driver: y[n] = 2 x[n] in f32, at several problems, for two device models.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "generator/base/hash.h"
#include "tests/db/records.h"
#include "tests/tuner/device/sample_job.h"

namespace kw::tuner::test {

struct StoredKernel {
  std::string kernel = "double_it";  ///< of the fake driver; the variant is named after it
  std::int64_t n = 1000;             ///< that it was measured at
  double median_us = 10;
  std::string device_model = "Fake H200";
  std::string arch = "sm_90";
  std::string cubin = "code";
  TrialStatus status = TrialStatus::kOk;
  std::string protocol = "v1-cold";
  std::string op = "double";
  std::string dims_text = {};  ///< empty: "n=<n>"
};

/// `change` may give the plan constraints, workspaces, strides, ...
inline db::TrialRecord record_of(const StoredKernel& stored, const std::function<void(LaunchPlan&)>& change = {}) {
  LaunchPlan plan = sample_job(stored.kernel).plan;
  if (change) change(plan);
  const nlohmann::json json = to_json(plan);
  db::TrialRecord record = db::test::make_record(1, stored.median_us);
  record.key.op = {hash_hex(stored.op), stored.op, "y[i] = 2 * x[i] of " + stored.op, "{}"};
  record.key.problem.dims_text = stored.dims_text.empty() ? "n=" + std::to_string(stored.n) : stored.dims_text;
  record.key.device.model = stored.device_model;
  record.key.protocol.name = stored.protocol;
  record.key.variant.id = stored.kernel;
  record.key.variant.arch = stored.arch;
  record.key.variant.source = "// " + stored.kernel;
  record.key.variant.source_hash = hash_hex(record.key.variant.source);
  record.key.variant.plan_json = json.dump();
  record.key.variant.constraints_json = json.at("constraints").dump();
  record.binary.key = stored.kernel + stored.cubin;
  record.binary.cubin = stored.cubin;
  record.trial.status = stored.status;
  if (stored.status == TrialStatus::kPredicted) {
    record.trial.verify_level = VerifyLevel::kNone;
    record.key.variant.predicted_us = stored.median_us;
  }
  return record;
}

/// n must be a multiple of `multiple`.
inline std::function<void(LaunchPlan&)> needs_multiple_of(int multiple) {
  return [multiple](LaunchPlan& plan) {
    plan.constraints.push_back(
        {"n_divisible",
         IntExpr::make(IntExpr::Op::kEq, {IntExpr::make(IntExpr::Op::kMod, {IntExpr::variable("n"), IntExpr(multiple)}), IntExpr(0)}),
         "vectors of x"});
  };
}

/// x is read through a tensor map.
inline void reads_by_map(LaunchPlan& plan) {
  PlanField map{.kind = PlanField::Kind::kTensorMap, .name = "x_map", .source = "x", .value = {}};
  map.map = {DType::kF32, {IntExpr::variable("n")}, {}, {IntExpr(64)}, IntExpr(0)};
  plan.launches[0].parameters[0] = {"x_map", {map}};
}

}  // namespace kw::tuner::test
