// Jobs and outcomes as messages between the tuner and the GPU's worker. Numbers that may be NaN or infinite travel as bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tuner/compile/message.h"
#include "tuner/device/gpu_worker.h"

namespace kw::tuner {

/// Appends a job, its blobs included, under `name` of the head.
void add_job(Message& message, const std::string& name, const KernelJob& job);
Result<KernelJob> read_job(const Message& message, const std::string& name);

nlohmann::json to_json(const std::vector<InputFill>& fills);
std::vector<InputFill> fills_from_json(const nlohmann::json& json);

void add_samples(Message& message, const std::vector<OutputSamples>& samples);
std::vector<OutputSamples> read_samples(const Message& message);

nlohmann::json to_json(const DeviceInfo& info);
DeviceInfo device_info_from_json(const nlohmann::json& json);

nlohmann::json to_json(const VerifyOutcome& outcome);
VerifyOutcome verify_outcome_from_json(const nlohmann::json& json);
nlohmann::json to_json(const MeasureOutcome& outcome);
MeasureOutcome measure_outcome_from_json(const nlohmann::json& json);
nlohmann::json to_json(const DuelOutcome& outcome);
DuelOutcome duel_outcome_from_json(const nlohmann::json& json);

}  // namespace kw::tuner
