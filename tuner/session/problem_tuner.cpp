// Ranking, choosing, emitting, resuming, predicting: the steps that need no GPU. The steps on the device are in problem_tuner_device.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/session/problem_tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <tuple>

#include "simulator/ptx/parser.h"
#include "tuner/session/plan_steps.h"
#include "tuner/session/roofline.h"
#include "tuner/session/simulate_session.h"

namespace kw::tuner {
namespace {

constexpr double kStepsShare = 0.6;  // of the budget, for the kernels of plans by themselves
constexpr double kNearTemplate = 2;  // a template's best is tried where the model gives it no more than so many times the best time
constexpr std::size_t kFirstOfTemplate = 4;
constexpr std::size_t kMaxForAllExtents = 3;
constexpr std::size_t kCompiledAhead = 8;  // variants of each of these kernels
constexpr std::size_t kMinTries = 8;       // past the budget so many variants are tried to find one that is right
constexpr std::size_t kMinPlans = 2;       // and so many plans of several kernels: the best one, overlapping and in turn

/// Faults that may pass: the variant is tried again in a later run.
bool is_transient(TrialStatus status) { return status == TrialStatus::kOutOfMemory || status == TrialStatus::kDeviceLost; }

/// Configs of one template with the same bounds of arithmetic and shared memory are one shape to the model (stages, raster and the like
/// differ): they are one class of the search.
std::vector<std::size_t> classes_of(const std::vector<RankedVariant>& ranked) {
  std::map<std::tuple<std::size_t, double, double>, std::size_t> numbers;
  std::vector<std::size_t> classes;
  classes.reserve(ranked.size());
  for (const RankedVariant& variant : ranked) {
    const generator::Prediction& prediction = variant.ranked.prediction;
    classes.push_back(
        numbers.emplace(std::make_tuple(variant.factory, prediction.math_us, prediction.smem_us), numbers.size()).first->second);
  }
  return classes;
}

/// The model's best of each template whose hopes are near the best: templates are compared by times, not by a model that may like one.
std::vector<std::size_t> best_of_templates(const std::vector<RankedVariant>& ranked) {
  std::vector<std::size_t> best;
  std::map<std::size_t, std::size_t> num_of_factory;
  for (std::size_t at = 0; at < ranked.size(); ++at) {
    const bool is_near = ranked[at].ranked.prediction.time_us <= kNearTemplate * ranked.front().ranked.prediction.time_us;
    if (is_near && num_of_factory[ranked[at].factory]++ < kFirstOfTemplate) best.push_back(at);
  }
  return num_of_factory.size() > 1 ? best : std::vector<std::size_t>();
}

/// Where the model's best are for one extent: the first of them as they are for all extents. Other shapes find those in the database. More
/// than one, for the first may spill.
std::vector<std::size_t> best_for_all_extents(const RankedProblem& space) {
  const auto free_config = [&](const RankedVariant& variant) {
    Config config = variant.ranked.config;
    for (const generator::Tunable& tunable : space.factories[variant.factory].info().tunables) {
      if (!tunable.problem_variable.empty()) config.values[tunable.name] = tunable.default_value;
    }
    return config;
  };
  std::vector<std::size_t> found;
  for (const RankedVariant& bound : space.ranked) {
    if (found.size() == kMaxForAllExtents || !space.factories[bound.factory].is_for_one_extent(bound.ranked.config)) break;
    const Config wanted = free_config(bound);
    if (space.factories[bound.factory].is_for_one_extent(wanted)) continue;  // a plan has its own way: ranked_plans
    const auto is_wanted = [&](const RankedVariant& other) { return other.factory == bound.factory && other.ranked.config == wanted; };
    const auto other = std::find_if(space.ranked.begin(), space.ranked.end(), is_wanted);
    if (other != space.ranked.end()) found.push_back(static_cast<std::size_t>(other - space.ranked.begin()));
  }
  return found;
}

std::uint64_t fresh_seed() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

}  // namespace

ProblemTuner::ProblemTuner(const LoadedSpec& spec, const Problem& problem, const TuneOptions& options, Services& services)
    : spec_(spec),
      problem_(problem),
      options_(options),
      services_(services),
      verification_(*spec.program, problem, fresh_seed()),
      early_(Protocol::early_rung()),
      final_(Protocol::final_rung()),
      compiles_before_(services.num_compiles),
      from_cache_before_(services.num_from_cache),
      launches_before_(services.num_launches) {
  early_.is_cold_l2 = final_.is_cold_l2 = !options.is_warm_l2;
}

double ProblemTuner::elapsed_seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

bool ProblemTuner::must_stop() const {
  const auto stop = [&](std::string reason) {
    if (!is_stopped_) stop_reason_ = std::move(reason);
    is_stopped_ = true;
  };
  if (options_.stop_requested != nullptr && options_.stop_requested->load()) stop("interrupted by a signal");
  if (elapsed_seconds() > options_.search.budget_seconds) {
    const bool has_good = std::any_of(candidates_.begin(), candidates_.end(),
                                      [](const Candidate& candidate) { return !candidate.has_failed && candidate.early_us >= 0; });
    // A run that is to go on where an earlier one stopped tries one of its own.
    const bool has_plans = has_good && services_.has_device() && !space_->factories[candidates_.front().factory].steps().empty();
    if ((has_good && num_tried_ >= (has_plans ? kMinPlans : 1)) || num_tried_ >= kMinTries)
      stop(fmt::format("the budget of {:g} s is used up", options_.search.budget_seconds));
  }
  return is_stopped_;
}

void ProblemTuner::report(const std::string& step, std::size_t done, std::size_t total) const {
  if (options_.progress) options_.progress(step, done, total);
}

Status ProblemTuner::tune_steps() {
  if (!services_.has_device() || options_.plan_kinds == PlanKinds::kSingleKernels) return {};
  KW_TRY(const generator::TemplateLibrary* templates, services_.templates());
  const auto partitions = generator::partitions_for(*templates, *spec_.program, services_.arch());
  if (!partitions) return {};  // rank_problem says why, with what else there is
  KW_TRY(const std::vector<PlanStep> steps, plan_steps(*partitions, spec_.program->name, problem_));
  TuneOptions alone = options_;
  alone.plan_kinds = PlanKinds::kSingleKernels;
  alone.times_cublaslt = false;
  alone.search.budget_seconds = kStepsShare * options_.search.budget_seconds / static_cast<double>(std::max<std::size_t>(steps.size(), 1));
  std::vector<std::unique_ptr<ProblemTuner>> tuners;
  std::vector<TuneOptions> options(steps.size(), alone);
  for (std::size_t at = 0; at < steps.size(); ++at) {
    options[at].progress = [this, name = steps[at].spec->program->name](const std::string& what, std::size_t done, std::size_t total) {
      report(name + " " + what, done, total);
    };
    auto tuner = std::make_unique<ProblemTuner>(*steps[at].spec, steps[at].problem, options[at], services_);
    const Status prepared = tuner->prepare();
    if (!prepared && prepared.error().code == Code::kNotSupported) continue;  // costs the cuts that need this kernel
    KW_TRY_VOID(prepared);
    // While one kernel is timed, the compiler works on those of the next.
    KW_TRY_VOID(tuner->compile_ahead(kCompiledAhead));
    tuners.push_back(std::move(tuner));
  }
  for (std::size_t at = 0; at < tuners.size(); ++at) {
    if (options_.stop_requested != nullptr && options_.stop_requested->load()) break;
    tuners[at]->start_ = std::chrono::steady_clock::now();
    KW_TRY_VOID(tuners[at]->finish());
    report("kernels of plans tuned", at + 1, tuners.size());
  }
  return {};
}

Status ProblemTuner::compile_ahead(std::size_t max_count) {
  for (const std::size_t at : to_compile(max_count)) {
    KW_TRY(candidates_[at].compiling, submit(candidates_[at]));
  }
  return {};
}

Result<std::future<CompileOutcome>> ProblemTuner::submit(const Candidate& candidate) {
  KW_TRY(CompilePool * pool, services_.compile_pool());
  CompileRequest request;
  request.source = candidate.variant.source;
  request.arch = services_.arch();
  name_kernels(candidate.variant.plan, request);
  request.wants_ptx = !services_.has_device() && options_.simulates;
  return pool->submit(std::move(request));
}

Status ProblemTuner::rank_and_choose() {
  KW_TRY(base_key_, key_of_problem(spec_, problem_, services_));
  KW_TRY(space_, rank_problem(spec_, services_, problem_, options_.plan_kinds));
  KW_TRY(const generator::WorkCounts work, generator::count_work(*spec_.program, problem_, services_.limits().l2_bytes));
  floor_us_ = roofline_of(*spec_.program, work, services_.limits(), options_.is_warm_l2).floor_us;
  KW_TRY(db::Database * database, services_.database());
  KW_TRY_VOID(database->record_refusals(base_key_, space_->refusals));
  SearchOptions search = options_.search;
  if (!services_.has_device() && search.kind == SearchKind::kHalving) search.max_first_rung = static_cast<int>(options_.num_predicted);
  if (!services_.has_device() && search.kind == SearchKind::kHalving) search.budget_seconds = 1e9;
  std::vector<std::size_t> chosen = choose_first_rung(classes_of(space_->ranked), search);
  if (search.kind == SearchKind::kHalving) {
    std::size_t place = 0;
    for (const std::size_t position : best_for_all_extents(*space_)) {
      place = std::min(place + kFirstOfTemplate, chosen.size());
      if (std::find(chosen.begin(), chosen.end(), position) != chosen.end()) continue;
      chosen.insert(chosen.begin() + static_cast<std::ptrdiff_t>(place), position);
    }
    chosen = put_first(chosen, best_of_templates(space_->ranked));
    const auto most = static_cast<std::size_t>(search.max_first_rung);
    if (chosen.size() > most) chosen.resize(most);
  }
  for (const std::size_t position : chosen) {
    Candidate candidate;
    candidate.factory = space_->ranked[position].factory;
    candidate.ranked = space_->ranked[position].ranked;
    candidates_.push_back(std::move(candidate));
  }
  return {};
}

Status ProblemTuner::emit_chosen() {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t at = next++; at < candidates_.size(); at = next++) {
      Candidate& candidate = candidates_[at];
      auto variant = space_->factories[candidate.factory].emit(candidate.ranked.config);
      if (variant)
        candidate.variant = std::move(*variant);
      else
        candidate.emit_error = variant.error().message;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  for (Candidate& candidate : candidates_) {
    if (candidate.emit_error.empty()) continue;
    candidate.variant.config = candidate.ranked.config;
    candidate.variant.id = space_->factories[candidate.factory].id(candidate.ranked.config);
    KW_TRY_VOID(store_failure(candidate, TrialStatus::kEmitFailed, candidate.emit_error));
  }
  report("generated", candidates_.size(), candidates_.size());
  return {};
}

db::TrialKey ProblemTuner::key_of(const Candidate& candidate, const db::ProtocolRow& protocol) const {
  db::TrialKey key = base_key_;
  key.protocol = protocol;
  key.variant = variant_row(candidate.variant, services_.arch(), candidate.ranked.prediction.time_us);
  return key;
}

Status ProblemTuner::find_earlier_rows() {
  if (options_.retunes) return {};
  KW_TRY(db::Database * database, services_.database());
  const db::ProtocolRow first = services_.has_device() ? protocol_row(early_) : model_protocol_row();
  KW_TRY(const auto best, find_winner());
  for (Candidate& candidate : candidates_) {
    if (candidate.has_failed) continue;
    // A winner whose source was collected is no answer to a query: it is made again.
    if (best && best->key.variant.source.empty() && best->key.variant.id == candidate.variant.id) continue;
    KW_TRY(const auto early, database->find_trial(key_of(candidate, first)));
    if (!early) continue;
    const TrialStatus status = early->trial.status;
    if (is_transient(status)) continue;
    ++num_reused_;
    if (status != TrialStatus::kOk && status != TrialStatus::kPredicted) {
      candidate.has_failed = true;
      continue;
    }
    candidate.early_us = status == TrialStatus::kPredicted ? candidate.ranked.prediction.time_us : early->trial.median_us;
    if (!services_.has_device()) continue;
    KW_TRY(const auto final_row, database->find_trial(key_of(candidate, protocol_row(final_))));
    if (!final_row || is_transient(final_row->trial.status)) continue;
    if (final_row->trial.status == TrialStatus::kOk) {
      candidate.final_us = final_row->trial.median_us;
      candidate.final_trial = final_row->id;
    } else {
      candidate.has_failed = true;
    }
  }
  return {};
}

Result<std::optional<db::TrialRecord>> ProblemTuner::find_winner() {
  KW_TRY(db::Database * database, services_.database());
  db::TrialKey key = base_key_;
  key.protocol = services_.has_device() ? protocol_row(final_) : model_protocol_row();
  return services_.has_device() ? database->winner(key) : database->predicted_best(key);
}

Result<std::int64_t> ProblemTuner::store(const Candidate& candidate, const db::ProtocolRow& protocol, db::TrialRow trial) {
  KW_TRY(db::Database * database, services_.database());
  db::TrialRecord record;
  record.key = key_of(candidate, protocol);
  if (candidate.kernel) record.binary = binary_row(*candidate.kernel);
  record.trial = std::move(trial);
  record.trial.session = services_.options().command_line;
  return database->record_trial(record);
}

Status ProblemTuner::store_failure(Candidate& candidate, TrialStatus status, const std::string& reason) {
  candidate.has_failed = !is_transient(status);
  verification_summary_.failures.push_back(fmt::format("{}: {}: {}", candidate.variant.id, to_text(status), reason));
  if (is_refusal(status)) ++verification_summary_.num_refused;
  db::TrialRow trial;
  trial.status = status;
  trial.reason = reason;
  KW_TRY_VOID(store(candidate, services_.has_device() ? protocol_row(early_) : model_protocol_row(), std::move(trial)));
  return {};
}

Status ProblemTuner::store_compile_failure(Candidate& candidate, const CompileOutcome& outcome) {
  // A row with a failure bans the variant for good: it needs a compiler that works, and a fault of the variant.
  if (!is_refusal(outcome.status)) {
    KW_TRY(CompilePool * pool, services_.compile_pool());
    KW_TRY_VOID(check_compiler(*pool, services_.arch()));
  }
  if (outcome.is_transient) {
    ++num_passed_over_;
    verification_summary_.failures.push_back(
        fmt::format("{}: {}: {} (not kept: not the variant's fault)", candidate.variant.id, to_text(outcome.status), outcome.error));
    return {};
  }
  candidate.kernel = outcome.kernel;
  candidate.kernel->cubin.clear();
  const Status stored = store_failure(candidate, outcome.status, outcome.error);
  candidate.kernel.reset();
  return stored;
}

std::vector<std::size_t> ProblemTuner::to_compile(std::size_t max_count) const {
  std::vector<std::size_t> order;
  for (std::size_t at = 0; at < candidates_.size() && order.size() < max_count; ++at)
    if (!candidates_[at].has_failed && candidates_[at].early_us < 0) order.push_back(at);
  return order;
}

Status ProblemTuner::compile_in_order(const std::vector<std::size_t>& order, const std::function<Status(Candidate&)>& use) {
  if (order.empty()) return {};
  KW_TRY(CompilePool * pool, services_.compile_pool());
  // A window of jobs keeps every core busy while a stop costs only what is in flight.
  const std::size_t window = static_cast<std::size_t>(pool->num_workers()) * 2;
  std::vector<std::future<CompileOutcome>> futures(order.size());
  std::size_t submitted = 0;
  for (std::size_t at = 0; at < order.size(); ++at) {
    if (must_stop()) break;
    while (submitted < order.size() && submitted < at + window) {
      Candidate& next = candidates_[order[submitted]];
      if (!next.compiling.valid()) {
        KW_TRY(next.compiling, submit(next));
      }
      futures[submitted++] = std::move(next.compiling);
    }
    Candidate& candidate = candidates_[order[at]];
    CompileOutcome outcome = futures[at].get();
    ++num_tried_;
    ++(outcome.kernel.is_from_cache ? services_.num_from_cache : services_.num_compiles);
    if (outcome.status != TrialStatus::kOk) {
      KW_TRY_VOID(store_compile_failure(candidate, outcome));
    } else {
      candidate.kernel = std::move(outcome.kernel);
      KW_TRY_VOID(use(candidate));
    }
    report(services_.has_device() ? "compiled, verified, timed"
           : options_.simulates   ? "compiled, simulated"
                                  : "compiled",
           at + 1, order.size());
  }
  return {};
}

Result<bool> ProblemTuner::simulate_candidate(Candidate& candidate, db::TrialRow& trial) {
  const auto data = verification_.at_small_problems(candidate.variant.plan, SimulateOptions().num_problems);
  const auto module = simulate::parse_ptx(candidate.kernel->ptx, candidate.variant.id + ".ptx");
  if (data.empty() || !module) {
    trial.reason = "not simulated: " + (data.empty() ? "no small problem is legal" : module.error().message);
    return true;
  }
  SimulateOptions options;
  options.schedules = all_schedules();
  const auto cases = simulate_variant(candidate.variant, *module, data, options);
  if (!cases) {
    trial.reason = "not simulated: " + cases.error().message;
    return true;
  }
  for (const SimulatedCase& one : *cases) {
    const VerifyOutcome& outcome = one.result.outcome;
    if (outcome.status != TrialStatus::kOk) {
      const std::string where = fmt::format("simulated at {}, {}", one.problem, simulate::to_text(one.schedule));
      KW_TRY_VOID(store_failure(candidate, outcome.status, where + ": " + outcome.error));
      return false;
    }
    trial.max_error_over_bound = std::max(trial.max_error_over_bound, outcome.max_error_over_bound);
    trial.relative_norm_error = std::max(trial.relative_norm_error, outcome.relative_norm_error);
  }
  trial.verify_level = VerifyLevel::kSimulated;
  return true;
}

Status ProblemTuner::predict() {
  return compile_in_order(to_compile(candidates_.size()), [&](Candidate& candidate) -> Status {
    db::TrialRow trial;
    trial.status = TrialStatus::kPredicted;
    trial.median_us = 0;
    if (options_.simulates) {
      KW_TRY(const bool is_right, simulate_candidate(candidate, trial));
      if (!is_right) return {};
    }
    KW_TRY_VOID(store(candidate, model_protocol_row(), std::move(trial)));
    candidate.early_us = candidate.ranked.prediction.time_us;
    return {};
  });
}

Result<ProblemSummary> ProblemTuner::summary() {
  ProblemSummary summary;
  summary.problem = problem_;
  summary.num_configs = space_->num_points;
  summary.num_kept = space_->ranked.size();
  summary.num_reused = num_reused_;
  summary.num_passed_over = num_passed_over_;
  summary.num_compiles = services_.num_compiles - compiles_before_;
  summary.num_from_cache = services_.num_from_cache - from_cache_before_;
  summary.num_launches = services_.num_launches - launches_before_;
  summary.seconds = elapsed_seconds();
  summary.is_stopped = is_stopped_;
  if (is_stopped_) {
    const auto num_left = std::count_if(candidates_.begin(), candidates_.end(),
                                        [](const Candidate& candidate) { return !candidate.has_failed && candidate.early_us < 0; });
    summary.stop_reason = fmt::format("{}, {} of {} variants are left", stop_reason_, num_left, candidates_.size());
  }
  summary.is_predicted = !services_.has_device();
  KW_TRY(db::Database * database, services_.database());
  db::TrialKey key = base_key_;
  key.protocol = services_.has_device() ? protocol_row(final_) : model_protocol_row();
  KW_TRY(const std::vector<db::TrialRecord> rows, database->trials_of(key));
  for (const db::TrialRecord& row : rows) ++summary.num_by_status[row.trial.status];
  if (services_.has_device()) {
    key.protocol = protocol_row(early_);
    KW_TRY(const std::vector<db::TrialRecord> early_rows, database->trials_of(key));
    for (const db::TrialRecord& row : early_rows)
      if (row.trial.status != TrialStatus::kOk) ++summary.num_by_status[row.trial.status];
  }
  KW_TRY(summary.winner, find_winner());
  if (baseline_) summary.baseline = baseline_->summary();
  if (options_.times_cublaslt && !baseline_)
    summary.baseline = {std::nullopt, false, "no cuBLASLt baseline: there is no GPU to time it on"};
  return summary;
}

}  // namespace kw::tuner
