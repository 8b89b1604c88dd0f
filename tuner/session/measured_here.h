// What the database knows of one problem of a spec on one device model: the measured kernel that a query would answer with, and how it
// compares with libraries. For explain, which needs no database and says nothing where there is none.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "tuner/session/baseline_timer.h"

namespace kw::tuner {

struct MeasuredHere {
  db::TrialRecord record;
  std::vector<BaselineRatio> baselines;
};

/// Nothing: no database, op, or measured row of this very problem on this device model (empty: the one of this machine).
/// Errors: of a database that is there.
Result<std::optional<MeasuredHere>> measured_here(const LoadedSpec& spec, const Problem& problem, const std::string& device_model,
                                                  bool is_warm_l2, Services& services);

}  // namespace kw::tuner
