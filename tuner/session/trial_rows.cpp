// Filling rows.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/session/trial_rows.h"

#include <nlohmann/json.hpp>

namespace kw::tuner {
namespace {

nlohmann::json state_to_json(const DeviceState& state) {
  return {{"sm_clock_mhz", state.sm_clock_mhz},
          {"memory_clock_mhz", state.memory_clock_mhz},
          {"temperature_c", state.temperature_c},
          {"power_w", state.power_w},
          {"power_limit_w", state.power_limit_w},
          {"throttle_reasons", state.throttle_reasons},
          {"num_other_processes", state.num_other_processes}};
}

}  // namespace

db::ProtocolRow model_protocol_row() { return {"model", R"({"name": "model", "version": 1})"}; }
db::ProtocolRow protocol_row(const Protocol& protocol) { return {protocol.name(), to_json(protocol).dump()}; }

Result<db::TrialKey> key_of_problem(const LoadedSpec& spec, const Problem& problem, Services& services) {
  db::TrialKey key;
  key.op = {.identity = spec.identity, .name = spec.program->name, .canonical_text = spec.canonical_text, .spec_json = spec.files_json()};
  key.problem = {problem.to_text()};
  key.device = services.device_row();
  KW_TRY(key.toolchain, services.toolchain_row());
  return key;
}

db::VariantRow variant_row(const generator::Variant& variant, Arch arch, double predicted_us) {
  const nlohmann::json plan = to_json(variant.plan);
  db::VariantRow row;
  row.id = variant.id;
  row.template_name = variant.config.template_name;
  row.config = variant.config.to_text();
  row.arch = std::string(to_text(arch));
  row.source = variant.source;
  row.source_hash = variant.source_hash;
  row.plan_json = plan.dump();
  row.constraints_json = plan.at("constraints").dump();
  row.predicted_us = predicted_us;
  return row;
}

db::BinaryRow binary_row(const CompiledKernel& kernel) {
  db::BinaryRow row;
  row.key = kernel.key;
  row.cubin = kernel.cubin;
  row.registers = kernel.registers;
  row.spill_store_bytes = kernel.spill_store_bytes;
  row.spill_load_bytes = kernel.spill_load_bytes;
  row.stack_bytes = kernel.stack_bytes;
  row.static_smem_bytes = kernel.static_smem_bytes;
  row.compile_ms = kernel.compile_ms;
  row.log = kernel.log;
  return row;
}

std::string state_json(const DeviceState& before, const DeviceState& after) {
  return nlohmann::json{{"before", state_to_json(before)}, {"after", state_to_json(after)}}.dump();
}

void add_measurement(const MeasureOutcome& outcome, db::TrialRow& trial) {
  trial.samples_us = outcome.samples_us;
  trial.median_us = outcome.median_us;
  trial.p10_us = outcome.p10_us;
  trial.p90_us = outcome.p90_us;
  trial.is_dirty = outcome.is_dirty;
  trial.state_json = state_json(outcome.before, outcome.after);
}

}  // namespace kw::tuner
