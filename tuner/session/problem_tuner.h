// The steps of tuning one problem, each a method; tune_session.cpp calls them in order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tuner/session/trial_rows.h"
#include "tuner/session/tune_session.h"
#include "tuner/session/verification_data.h"
#include "tuner/verify/verify.h"

namespace kw::tuner {

/// One variant on its way through the line. Times are negative until measured (or found in the database).
struct Candidate {
  std::size_t factory = 0;
  generator::RankedConfig ranked;
  generator::Variant variant;
  std::string emit_error;
  std::future<CompileOutcome> compiling;  ///< valid: asked for ahead of its turn
  std::optional<CompiledKernel> kernel;
  std::optional<VerifiedKernel> verified;
  bool has_failed = false;  ///< a row with a failure status exists; not tried again
  double early_us = -1, final_us = -1;
  std::int64_t final_trial = 0;  ///< id of the final row
};

class ProblemTuner {
 public:
  ProblemTuner(const LoadedSpec& spec, const Problem& problem, const TuneOptions& options, Services& services);

  Status tune_steps();                          ///< the kernels of plans, each by itself: their rows are in the database then
  Status prepare();                             ///< rank_and_choose to find_baseline: what needs no device
  Status compile_ahead(std::size_t max_count);  ///< asks the compiler for the first variants to try
  Result<ProblemSummary> finish();              ///< the rest, on the device or on the simulator; the budget begins to run here
  Status rank_and_choose();                     ///< enumerate, refuse, rank, store the refusals, choose the first rung
  Status emit_chosen();                         ///< text and plan of each chosen variant, on all cores
  Status find_earlier_rows();                   ///< resume: what has a row is not done again
  Status find_baseline();                       ///< only when it was asked for: whether the library serves the op, and what is stored of it
  void screen_baseline();                       ///< the library's algorithms by the early rung
  Status predict();                             ///< no device: compile the best, simulate them at small problems, store predicted rows
  Status run_first_rung();                      ///< compile | verify | early timing, as a pipeline
  Status run_final_rung();                      ///< full protocol for the finalists
  /// compile | verify and nothing else, until so many compiled variants are checked: a right one leaves no row, a wrong one does
  Status run_verification(std::size_t num_variants);
  Status run_duels();  ///< interleaved comparison of those within the tie band
  Result<ProblemSummary> summary();
  const VerificationSummary& verification() const { return verification_summary_; }

 private:
  db::TrialKey key_of(const Candidate& candidate, const db::ProtocolRow& protocol) const;
  Result<std::int64_t> store(const Candidate& candidate, const db::ProtocolRow& protocol, db::TrialRow trial);
  Status store_failure(Candidate& candidate, TrialStatus status, const std::string& reason);
  Result<std::optional<db::TrialRecord>> find_winner();
  Status store_compile_failure(Candidate& candidate, const CompileOutcome& outcome);
  std::vector<std::size_t> to_compile(std::size_t max_count) const;
  Result<std::future<CompileOutcome>> submit(const Candidate& candidate);
  Status compile_in_order(const std::vector<std::size_t>& order, const std::function<Status(Candidate&)>& use);
  /// On the simulator, at small problems: false when it is wrong (a failure row was stored). `trial` gets the level and the errors; a
  /// kernel that the simulator cannot run keeps the level `none`, with the reason.
  Result<bool> simulate_candidate(Candidate& candidate, db::TrialRow& trial);
  /// Verifies at the problem and at a small odd one; false: a failure row was stored.
  Result<bool> verify_candidate(Candidate& candidate, std::size_t ordinal);
  Result<bool> ensure_verified(Candidate& candidate, std::size_t ordinal);
  Result<double> measure_candidate(Candidate& candidate, const Protocol& protocol);
  /// A signal stops at once; the budget only when there is something to show: one good variant, or enough that are not.
  bool must_stop() const;
  double elapsed_seconds() const;
  void report(const std::string& step, std::size_t done, std::size_t total) const;

  const LoadedSpec& spec_;
  const Problem problem_;
  const TuneOptions& options_;
  Services& services_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  db::TrialKey base_key_;
  std::optional<RankedProblem> space_;
  std::vector<Candidate> candidates_;
  VerificationSource verification_;
  Protocol early_, final_;
  double floor_us_ = 0;
  std::optional<BaselineTimer> baseline_;
  std::size_t num_reused_ = 0, num_passed_over_ = 0;
  VerificationSummary verification_summary_;
  int compiles_before_ = 0, from_cache_before_ = 0, launches_before_ = 0;
  std::size_t num_tried_ = 0;  ///< compiled in this run, whatever came of it
  mutable bool is_stopped_ = false;
  mutable std::string stop_reason_;
};

}  // namespace kw::tuner
