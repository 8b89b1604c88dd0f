// See worker_messages.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/device/worker_messages.h"

#include <bit>
#include <cstring>

namespace kw::tuner {
namespace {

using nlohmann::json;

std::uint64_t bits_of(double value) { return std::bit_cast<std::uint64_t>(value); }
double number_of(const json& head, const char* name) { return std::bit_cast<double>(head.value(name, std::uint64_t{0})); }

json bits_of(const std::vector<double>& values) {
  json bits = json::array();
  for (const double value : values) bits.push_back(bits_of(value));
  return bits;
}
std::vector<double> numbers_of(const json& head, const char* name) {
  std::vector<double> values;
  for (const json& bits : head.value(name, json::array())) values.push_back(std::bit_cast<double>(bits.get<std::uint64_t>()));
  return values;
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}
template <typename T>
std::vector<T> values_of(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

json state_to_json(const DeviceState& state) {
  return {{"sm_clock_mhz", state.sm_clock_mhz},
          {"memory_clock_mhz", state.memory_clock_mhz},
          {"temperature_c", state.temperature_c},
          {"power_w", state.power_w},
          {"power_limit_w", state.power_limit_w},
          {"throttle_reasons", state.throttle_reasons},
          {"num_other_processes", state.num_other_processes}};
}
DeviceState state_from_json(const json& head) {
  DeviceState state;
  state.sm_clock_mhz = head.value("sm_clock_mhz", -1);
  state.memory_clock_mhz = head.value("memory_clock_mhz", -1);
  state.temperature_c = head.value("temperature_c", -1);
  state.power_w = head.value("power_w", -1);
  state.power_limit_w = head.value("power_limit_w", -1);
  state.throttle_reasons = head.value("throttle_reasons", std::uint64_t{0});
  state.num_other_processes = head.value("num_other_processes", -1);
  return state;
}

template <typename Outcome>
json common_to_json(const Outcome& outcome) {
  return {{"status", static_cast<int>(outcome.status)}, {"error", outcome.error}, {"is_transient", outcome.is_transient}};
}
template <typename Outcome>
Outcome common_from_json(const json& head) {
  Outcome outcome;
  outcome.status = static_cast<TrialStatus>(head.value("status", static_cast<int>(TrialStatus::kDeviceLost)));
  outcome.error = head.value("error", "");
  outcome.is_transient = head.value("is_transient", false);
  return outcome;
}

}  // namespace

void add_job(Message& message, const std::string& name, const KernelJob& job) {
  json scalars = json::object();
  for (const auto& [scalar, value] : job.scalars) scalars[scalar] = bits_of(value);
  message.head[name] = {{"label", job.label}, {"plan", to_json(job.plan)},         {"problem", job.problem.to_text()},
                        {"scalars", scalars}, {"floor_us", bits_of(job.floor_us)}, {"cubin_blob", message.blobs.size()}};
  message.blobs.push_back(job.cubin);
}

Result<KernelJob> read_job(const Message& message, const std::string& name) {
  const json& head = message.head.at(name);
  KernelJob job;
  job.label = head.value("label", "");
  KW_TRY(job.plan, launch_plan_from_json(head.at("plan")));
  KW_TRY(job.problem, problem_from_text(head.value("problem", "")));
  for (const auto& [scalar, value] : head.at("scalars").items()) job.scalars[scalar] = std::bit_cast<double>(value.get<std::uint64_t>());
  job.floor_us = number_of(head, "floor_us");
  job.cubin = message.blobs.at(head.at("cubin_blob").get<std::size_t>());
  return job;
}

json to_json(const std::vector<InputFill>& fills) {
  json list = json::array();
  for (const InputFill& fill : fills) {
    list.push_back({{"tensor", fill.tensor},
                    {"dtype", std::string(to_text(fill.dtype))},
                    {"kind", static_cast<int>(fill.kind)},
                    {"low", bits_of(fill.low)},
                    {"high", bits_of(fill.high)},
                    {"seed", fill.seed},
                    {"num_elements", fill.num_elements}});
  }
  return list;
}

std::vector<InputFill> fills_from_json(const json& list) {
  std::vector<InputFill> fills;
  for (const json& head : list) {
    InputFill fill;
    fill.tensor = head.value("tensor", "");
    fill.dtype = dtype_from_text(head.value("dtype", "")).value_or(DType::kF16);
    fill.kind = static_cast<InputFill::Kind>(head.value("kind", 0));
    fill.low = number_of(head, "low");
    fill.high = number_of(head, "high");
    fill.seed = head.value("seed", std::uint64_t{0});
    fill.num_elements = head.value("num_elements", std::int64_t{0});
    fills.push_back(std::move(fill));
  }
  return fills;
}

void add_samples(Message& message, const std::vector<OutputSamples>& samples) {
  json list = json::array();
  for (const OutputSamples& entry : samples) {
    list.push_back({{"tensor", entry.tensor},
                    {"dtype", std::string(to_text(entry.dtype))},
                    {"rank", entry.rank},
                    {"first_blob", message.blobs.size()}});
    message.blobs.push_back(bytes_of(entry.offsets));
    message.blobs.push_back(bytes_of(entry.coordinates));
    message.blobs.push_back(bytes_of(entry.values));
    message.blobs.push_back(bytes_of(entry.bounds));
  }
  message.head["samples"] = list;
}

std::vector<OutputSamples> read_samples(const Message& message) {
  std::vector<OutputSamples> samples;
  for (const json& head : message.head.at("samples")) {
    const auto first_blob = head.at("first_blob").get<std::size_t>();
    OutputSamples entry;
    entry.tensor = head.value("tensor", "");
    entry.dtype = dtype_from_text(head.value("dtype", "")).value_or(DType::kF16);
    entry.rank = head.value("rank", 0);
    entry.offsets = values_of<std::int64_t>(message.blobs.at(first_blob));
    entry.coordinates = values_of<std::int64_t>(message.blobs.at(first_blob + 1));
    entry.values = values_of<double>(message.blobs.at(first_blob + 2));
    entry.bounds = values_of<double>(message.blobs.at(first_blob + 3));
    entry.values.resize(entry.offsets.size());
    entry.bounds.resize(entry.offsets.size());
    samples.push_back(std::move(entry));
  }
  return samples;
}

json to_json(const DeviceInfo& info) {
  const DeviceLimits& limits = info.limits;
  return {{"uuid", info.uuid},
          {"ordinal", info.ordinal},
          {"driver_version", info.driver_version},
          {"driver_text", info.driver_text},
          {"memory_bytes", info.memory_bytes},
          {"model_name", limits.model_name},
          {"compute_capability", limits.compute_capability},
          {"num_sms", limits.num_sms},
          {"max_smem_bytes_per_cta", limits.max_smem_bytes_per_cta},
          {"smem_bytes_per_sm", limits.smem_bytes_per_sm},
          {"registers_per_sm", limits.registers_per_sm},
          {"max_threads_per_sm", limits.max_threads_per_sm},
          {"max_ctas_per_sm", limits.max_ctas_per_sm},
          {"l2_bytes", limits.l2_bytes},
          {"max_clock_ghz", limits.max_clock_ghz},
          {"dram_gb_per_s", limits.dram_gb_per_s}};
}

DeviceInfo device_info_from_json(const json& head) {
  DeviceInfo info;
  info.uuid = head.value("uuid", "");
  info.ordinal = head.value("ordinal", 0);
  info.driver_version = head.value("driver_version", 0);
  info.driver_text = head.value("driver_text", "");
  info.memory_bytes = head.value("memory_bytes", std::int64_t{0});
  const int capability = head.value("compute_capability", 80);
  DeviceLimits limits = generic_device(arch_for_device(capability).value_or(Arch::kSm80));
  limits.model_name = head.value("model_name", limits.model_name);
  limits.compute_capability = capability;
  limits.num_sms = head.value("num_sms", limits.num_sms);
  limits.max_smem_bytes_per_cta = head.value("max_smem_bytes_per_cta", limits.max_smem_bytes_per_cta);
  limits.smem_bytes_per_sm = head.value("smem_bytes_per_sm", limits.smem_bytes_per_sm);
  limits.registers_per_sm = head.value("registers_per_sm", limits.registers_per_sm);
  limits.max_threads_per_sm = head.value("max_threads_per_sm", limits.max_threads_per_sm);
  limits.max_ctas_per_sm = head.value("max_ctas_per_sm", limits.max_ctas_per_sm);
  limits.l2_bytes = head.value("l2_bytes", limits.l2_bytes);
  limits.max_clock_ghz = head.value("max_clock_ghz", limits.max_clock_ghz);
  limits.dram_gb_per_s = head.value("dram_gb_per_s", limits.dram_gb_per_s);
  info.limits = limits;
  return info;
}

json to_json(const VerifyOutcome& outcome) {
  json head = common_to_json(outcome);
  head["max_error_over_bound"] = bits_of(outcome.max_error_over_bound);
  head["relative_norm_error"] = bits_of(outcome.relative_norm_error);
  head["is_bit_stable"] = outcome.is_bit_stable;
  return head;
}

VerifyOutcome verify_outcome_from_json(const json& head) {
  auto outcome = common_from_json<VerifyOutcome>(head);
  outcome.max_error_over_bound = number_of(head, "max_error_over_bound");
  outcome.relative_norm_error = number_of(head, "relative_norm_error");
  outcome.is_bit_stable = head.value("is_bit_stable", false);
  return outcome;
}

json to_json(const MeasureOutcome& outcome) {
  json head = common_to_json(outcome);
  head["samples_us"] = bits_of(outcome.samples_us);
  head["median_us"] = bits_of(outcome.median_us);
  head["p10_us"] = bits_of(outcome.p10_us);
  head["p90_us"] = bits_of(outcome.p90_us);
  head["launches_per_graph"] = outcome.launches_per_graph;
  head["num_input_sets"] = outcome.num_input_sets;
  head["is_dirty"] = outcome.is_dirty;
  head["dirty_reason"] = outcome.dirty_reason;
  head["before"] = state_to_json(outcome.before);
  head["after"] = state_to_json(outcome.after);
  return head;
}

MeasureOutcome measure_outcome_from_json(const json& head) {
  auto outcome = common_from_json<MeasureOutcome>(head);
  outcome.samples_us = numbers_of(head, "samples_us");
  outcome.median_us = number_of(head, "median_us");
  outcome.p10_us = number_of(head, "p10_us");
  outcome.p90_us = number_of(head, "p90_us");
  outcome.launches_per_graph = head.value("launches_per_graph", 0);
  outcome.num_input_sets = head.value("num_input_sets", 0);
  outcome.is_dirty = head.value("is_dirty", false);
  outcome.dirty_reason = head.value("dirty_reason", "");
  outcome.before = state_from_json(head.value("before", json::object()));
  outcome.after = state_from_json(head.value("after", json::object()));
  return outcome;
}

json to_json(const DuelOutcome& outcome) {
  json head = common_to_json(outcome);
  head["a_us"] = bits_of(outcome.a_us);
  head["b_us"] = bits_of(outcome.b_us);
  head["ratio_median"] = bits_of(outcome.ratio_median);
  head["ratio_low"] = bits_of(outcome.ratio_low);
  head["ratio_high"] = bits_of(outcome.ratio_high);
  head["is_dirty"] = outcome.is_dirty;
  return head;
}

DuelOutcome duel_outcome_from_json(const json& head) {
  auto outcome = common_from_json<DuelOutcome>(head);
  outcome.a_us = numbers_of(head, "a_us");
  outcome.b_us = numbers_of(head, "b_us");
  outcome.ratio_median = number_of(head, "ratio_median");
  outcome.ratio_low = number_of(head, "ratio_low");
  outcome.ratio_high = number_of(head, "ratio_high");
  outcome.is_dirty = head.value("is_dirty", false);
  return outcome;
}

}  // namespace kw::tuner
