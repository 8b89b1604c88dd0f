// The steps of tuning that run on the GPU: verify, early timing, final timing, duels. Each trial is stored as it ends.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "tuner/measure/measure.h"
#include "tuner/session/problem_tuner.h"

namespace kw::tuner {
namespace {

constexpr double kTieBand = 0.03;  // finalists and duellists within 3 % of the fastest
constexpr std::size_t kMaxDuellists = 4;
constexpr std::size_t kMaxStepFinalists = 4;

}  // namespace

Result<bool> ProblemTuner::verify_candidate(Candidate& candidate, std::size_t ordinal) {
  KW_TRY(GpuWorker * worker, services_.gpu_worker());
  KW_TRY(const auto small, verification_.at_small_problem(candidate.variant.plan));
  KW_TRY(const auto whole, verification_.at_problem(ordinal));
  for (const auto& data : {small, whole}) {
    if (data == nullptr) continue;
    const KernelJob job = {.label = candidate.variant.id,
                           .cubin = candidate.kernel->cubin,
                           .plan = candidate.variant.plan,
                           .problem = data->problem,
                           .scalars = data->scalars,
                           .floor_us = data == whole ? floor_us_ : 0};
    ++services_.num_launches;
    VerifyReport result = verify(*worker, job, data->fills, data->samples);
    if (result.outcome.status != TrialStatus::kOk) {
      const std::string place = data == small ? fmt::format("at {}: ", data->problem.to_text()) : "";
      KW_TRY_VOID(store_failure(candidate, result.outcome.status, place + result.outcome.error));
      return false;
    }
    if (data == whole) candidate.verified = std::move(result.kernel);
  }
  return true;
}

Result<bool> ProblemTuner::ensure_verified(Candidate& candidate, std::size_t ordinal) {
  if (candidate.verified) return true;
  KW_TRY(CompilePool * pool, services_.compile_pool());
  CompileRequest request;
  request.source = candidate.variant.source;
  request.arch = services_.arch();
  name_kernels(candidate.variant.plan, request);
  CompileOutcome outcome = pool->submit(std::move(request)).get();
  ++(outcome.kernel.is_from_cache ? services_.num_from_cache : services_.num_compiles);
  if (outcome.status != TrialStatus::kOk) {
    KW_TRY_VOID(store_compile_failure(candidate, outcome));
    return false;
  }
  candidate.kernel = std::move(outcome.kernel);
  return verify_candidate(candidate, ordinal);
}

Result<double> ProblemTuner::measure_candidate(Candidate& candidate, const Protocol& protocol) {
  KW_TRY(GpuWorker * worker, services_.gpu_worker());
  KW_TRY(const auto data, verification_.at_problem(0));
  ++services_.num_launches;
  const MeasureOutcome outcome = measure(*worker, *candidate.verified, data->fills, data->samples, protocol);
  db::TrialRow trial;
  trial.status = outcome.status;
  trial.reason = outcome.error;
  trial.verify_level = VerifyLevel::kDevice;
  trial.max_error_over_bound = candidate.verified->outcome().max_error_over_bound;
  trial.relative_norm_error = candidate.verified->outcome().relative_norm_error;
  add_measurement(outcome, trial);
  candidate.has_failed =
      trial.status != TrialStatus::kOk && trial.status != TrialStatus::kOutOfMemory && trial.status != TrialStatus::kDeviceLost;
  const bool is_ok = trial.status == TrialStatus::kOk;
  KW_TRY(const std::int64_t id, store(candidate, protocol_row(protocol), std::move(trial)));
  candidate.final_trial = id;
  return is_ok ? outcome.median_us : -1.0;
}

Status ProblemTuner::run_first_rung() {
  std::size_t ordinal = 0;
  return compile_in_order(to_compile(candidates_.size()), [&](Candidate& candidate) -> Status {
    KW_TRY(const bool is_right, verify_candidate(candidate, ordinal++));
    if (!is_right) return {};
    KW_TRY(candidate.early_us, measure_candidate(candidate, early_));
    return {};
  });
}

Status ProblemTuner::run_verification(std::size_t num_variants) {
  verification_summary_.problem = problem_;
  std::vector<std::size_t> order = to_compile(candidates_.size());
  // Batches, so that no more is compiled than the spills of the first ones make necessary.
  while (!order.empty() && verification_summary_.num_compiled < num_variants && !is_stopped_) {
    const std::size_t batch = std::min(order.size(), num_variants - verification_summary_.num_compiled);
    const std::vector<std::size_t> now(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(batch));
    order.erase(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(batch));
    KW_TRY_VOID(compile_in_order(now, [&](Candidate& candidate) -> Status {
      KW_TRY(const bool is_right, verify_candidate(candidate, verification_summary_.num_compiled++));
      if (is_right) ++verification_summary_.num_right;
      candidate.verified.reset();
      candidate.kernel.reset();
      return {};
    }));
  }
  return {};
}

Status ProblemTuner::find_baseline() {
  if (!options_.times_cublaslt || !services_.has_device()) return {};
  baseline_.emplace(BaselineRequest{.spec = spec_,
                                    .problem = problem_,
                                    .group = base_key_,
                                    .early = early_,
                                    .final = final_,
                                    .floor_us = floor_us_,
                                    .retunes = options_.retunes,
                                    .stop_requested = options_.stop_requested,
                                    .progress = options_.progress,
                                    .session = services_.options().command_line},
                    BaselineServices{.find_library = [this] { return services_.cublaslt(); },
                                     .gpu_worker = [this] { return services_.gpu_worker(); },
                                     .database = [this] { return services_.database(); },
                                     .num_launches = services_.num_launches},
                    verification_);
  return baseline_->find_stored();
}

void ProblemTuner::screen_baseline() {
  if (baseline_) baseline_->screen();
}

Status ProblemTuner::run_final_rung() {
  std::vector<double> early_us;
  for (const Candidate& candidate : candidates_) early_us.push_back(candidate.has_failed ? -1 : candidate.early_us);
  std::vector<std::size_t> finalists = choose_finalists(early_us, kTieBand);
  // Of a plan's kernel a few are enough: the plans that they make are timed again.
  if (options_.plan_kinds == PlanKinds::kSingleKernels) finalists.resize(std::min(finalists.size(), kMaxStepFinalists));
  std::size_t done = 0;
  for (const std::size_t at : finalists) {
    Candidate& candidate = candidates_[at];
    if (candidate.final_us <= 0 && (options_.stop_requested == nullptr || !options_.stop_requested->load())) {
      KW_TRY(const bool is_right, ensure_verified(candidate, done));
      if (is_right) {
        KW_TRY(candidate.final_us, measure_candidate(candidate, final_));
      }
    }
    report("timed by the full protocol", ++done, finalists.size());
    // In turn with ours, so that both meet the same clocks.
    if (baseline_) baseline_->time_next();
  }
  if (!baseline_) return {};
  while (baseline_->has_next()) baseline_->time_next();
  return baseline_->store();
}

Status ProblemTuner::run_duels() {
  if (options_.plan_kinds == PlanKinds::kSingleKernels) return {};
  std::vector<double> final_us;
  for (const Candidate& candidate : candidates_) final_us.push_back(candidate.has_failed ? -1 : candidate.final_us);
  const std::vector<std::size_t> duellists = choose_duellists(final_us, kTieBand, kMaxDuellists);
  if (duellists.size() < 2) return {};
  Candidate& best = candidates_[duellists.front()];
  for (std::size_t i = 1; i < duellists.size(); ++i) {
    Candidate& rival = candidates_[duellists[i]];
    // Rows of an earlier run were duelled then.
    if (!best.verified || !rival.verified) continue;
    if (options_.stop_requested != nullptr && options_.stop_requested->load()) break;
    KW_TRY(GpuWorker * worker, services_.gpu_worker());
    KW_TRY(const auto data, verification_.at_problem(0));
    ++services_.num_launches;
    const DuelOutcome outcome = duel(*worker, *best.verified, *rival.verified, data->fills, final_);
    if (outcome.status != TrialStatus::kOk) continue;
    KW_TRY(db::Database * database, services_.database());
    KW_TRY_VOID(database->record_duel(
        {best.final_trial, rival.final_trial, outcome.a_us, outcome.b_us, outcome.ratio_median, outcome.ratio_low, outcome.ratio_high}));
    report("duelled", i, duellists.size() - 1);
  }
  return {};
}

}  // namespace kw::tuner
