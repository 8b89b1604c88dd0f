// The line from a spec to rows, top to bottom: the page to read first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tuner/measure/protocol.h"
#include "tuner/search/search.h"
#include "tuner/session/baseline_timer.h"
#include "tuner/session/ranked_problem.h"
#include "tuner/session/services.h"
#include "tuner/session/spec_file.h"

namespace kw::tuner {

struct TuneOptions {
  SearchOptions search;
  bool retunes = false;  ///< measure again what has a row already, failed variants too
  bool is_warm_l2 = false;
  std::size_t num_predicted = 32;                     ///< without a device: how many of the model's best are compiled
  bool simulates = true;                              ///< without a device: run what compiled on the simulator, refuse what is wrong
  bool times_cublaslt = false;                        ///< `--baseline cublaslt`
  PlanKinds plan_kinds = PlanKinds::kAll;             ///< what is tried
  const std::atomic<bool>* stop_requested = nullptr;  ///< SIGINT, SIGTERM: the row in flight is finished, nothing new starts
  ProgressSink progress;
};

/// What became of one problem.
struct ProblemSummary {
  Problem problem;
  std::size_t num_configs = 0, num_kept = 0;
  std::map<TrialStatus, std::size_t> num_by_status;  ///< of the variants tried, newest rows
  std::size_t num_reused = 0;                        ///< rows found from an earlier run
  std::size_t num_passed_over = 0;                   ///< not compiled by no fault of theirs: no row, the next run tries them again
  int num_compiles = 0, num_launches = 0;            ///< really done
  int num_from_cache = 0;                            ///< not compiled: an earlier compile of the same text was kept
  double seconds = 0;
  bool is_stopped = false;                ///< by a signal or by the budget: the next run goes on
  std::string stop_reason;                ///< why, with how much is left undone
  std::optional<db::TrialRecord> winner;  ///< fastest verified row, or the best predicted one without a device
  bool is_predicted = false;
  std::optional<BaselineSummary> baseline;  ///< only when it was asked for
};

/// What a check of many variants of one problem found.
struct VerificationSummary {
  Problem problem;
  std::size_t num_compiled = 0, num_right = 0;  ///< checked on the device; right
  std::size_t num_refused = 0;                  ///< refused for spills or serialised wgmma, not counted as compiled
  std::vector<std::string> failures;            ///< "variant: status: reason"
  double seconds = 0;
};

/// Compiles random legal variants until `num_variants` are checked on the device by protocol v1 (fewer where fewer are legal), without
/// timing. A variant that is refused for spills or serialised wgmma is passed over. Needs a device.
Result<VerificationSummary> verify_problem(const LoadedSpec& spec, const Problem& problem, std::size_t num_variants,
                                           const TuneOptions& options, Services& services);

/// Tunes one problem: enumerate, rank, choose, emit, compile, verify, time, duel; each trial is stored as it ends.
Result<ProblemSummary> tune_problem(const LoadedSpec& spec, const Problem& problem, const TuneOptions& options, Services& services);

}  // namespace kw::tuner
