// Answers "which kernel for this shape?" from the database, and says how good the match is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "tuner/measure/protocol.h"
#include "tuner/session/baseline_timer.h"
#include "tuner/session/roofline.h"
#include "tuner/session/services.h"
#include "tuner/session/spec_file.h"

namespace kw::tuner {

struct QueryOptions {
  std::string op;            ///< name or identity
  std::string set;           ///< "M=1024,N=4096,K=4096"
  std::string device_model;  ///< empty: the device of this machine, or the predictions for --arch
  bool allows_other_device = false;
  bool is_warm_l2 = false;  ///< ask for rows timed with the inputs in L2
};

struct QueryAnswer {
  MatchKind match = MatchKind::kNone;
  std::string explanation;  ///< one sentence: why this match kind, or why there is none
  Problem asked;
  std::shared_ptr<const LoadedSpec> spec;
  std::optional<db::TrialRecord> record;
  LaunchPlan plan;
  double time_us = 0;      ///< measured at the record's own problem; the model's for a predicted row
  double modelled_us = 0;  ///< the model's time at the asked problem; 0: not computed
  bool is_predicted = false;
  std::optional<Roofline> roofline;       ///< of the record's problem: belongs to time_us
  std::optional<Roofline> roofline_here;  ///< of the asked problem: belongs to modelled_us
  std::vector<BaselineRatio> baselines;   ///< of the record's problem: libraries that were timed there by the same protocol
  /// time_us is a time of the asked problem, not only of another one.
  bool is_time_here() const { return record && record->key.problem.dims_text == asked.to_text(); }
};

/// Error kNotFound names the nearest op when the database has none of this name. A match of kind `none` is an answer, not an error.
Result<QueryAnswer> answer_query(const QueryOptions& options, Services& services);

/// Error kNotFound when garbage collection took the source: says so, and what brings it back.
Status require_source(const db::VariantRow& variant);

}  // namespace kw::tuner
