// The stored kernels of one op that may serve a device, in memory and ranked for a problem without asking the database again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tuner/match/match.h"

namespace kw::tuner {

struct OpRow {
  MatchCandidate candidate;
  Problem problem;  ///< that it was measured at
  /// The plan, read at its first use. Error: it cannot be read back.
  Result<const LaunchPlan*> plan();

 private:
  std::optional<LaunchPlan> plan_;
};

struct OpRowsRequest {
  std::string op;  ///< identity
  std::string device_model;
  bool allows_other_device = false;
  std::string only_dims_text = {};  ///< the winner of this problem by the full protocol alone; empty: all rows
};

class OpRows {
 public:
  static Result<OpRows> load(db::Database& database, const OpRowsRequest& request);

  bool empty() const { return rows_.empty(); }
  /// Any row: tensors and dims are the same in all plans of an op. Needs a row.
  Result<const LaunchPlan*> any_plan() { return rows_.front().plan(); }
  /// Best first. The pointers are valid until the next call.
  std::vector<OpRow*> ranked(const Problem& asked);

 private:
  std::vector<OpRow> rows_;
};

/// Other device models that the op has kernels for, as a list; empty: none.
Result<std::string> other_models(db::Database& database, const std::string& op);

}  // namespace kw::tuner
