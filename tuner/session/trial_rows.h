// Rows of the database from values of the line. The only place where the two vocabularies meet.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "db/database.h"
#include "generator/emit/variant.h"
#include "tuner/compile/compiler.h"
#include "tuner/device/gpu_worker.h"
#include "tuner/measure/protocol.h"
#include "tuner/session/services.h"
#include "tuner/session/spec_file.h"

namespace kw::tuner {

/// Name and JSON of the pseudo-protocol of rows that were predicted by the model only.
db::ProtocolRow model_protocol_row();
db::ProtocolRow protocol_row(const Protocol& protocol);

/// The key without variant and protocol: op, problem, device, toolchain.
Result<db::TrialKey> key_of_problem(const LoadedSpec& spec, const Problem& problem, Services& services);
db::VariantRow variant_row(const generator::Variant& variant, Arch arch, double predicted_us);
db::BinaryRow binary_row(const CompiledKernel& kernel);

/// Median, percentiles, samples and state of a measurement into a trial row.
void add_measurement(const MeasureOutcome& outcome, db::TrialRow& trial);
std::string state_json(const DeviceState& before, const DeviceState& after);

}  // namespace kw::tuner
