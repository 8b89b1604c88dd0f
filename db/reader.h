// Reads stored trials back into records; every text is checked against its hash on the way.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "db/database.h"
#include "db/sqlite.h"

namespace kw::db {

enum class Payload { kAll = 0, kPlanOnly = 1 };  ///< kPlanOnly: no source, cubin and log

/// Error kNotFound when there is no such trial.
Result<TrialRecord> read_trial(Connection& connection, std::int64_t trial_id, Payload payload);
/// Empty when there is none. Error kNotFound when there is no such trial.
Result<std::string> read_cubin(Connection& connection, std::int64_t trial_id);
Result<std::vector<DuelRow>> read_duels(Connection& connection, std::int64_t trial_id);

}  // namespace kw::db
