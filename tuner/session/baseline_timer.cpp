// See baseline_timer.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/session/baseline_timer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "generator/emit/plan_builder.h"
#include "generator/plan/library_epilogue.h"
#include "tuner/search/search.h"
#include "tuner/session/trial_rows.h"

namespace kw::tuner {
namespace {

constexpr double kTieBand = 0.03;     // as of our kernels: what may still be the fastest is timed by the full protocol
constexpr std::size_t kDataSeed = 0;  // the inputs that our kernels are timed with: VerificationSource::at_problem(0)

/// The algorithm is at fault, and the worker goes on.
bool is_of_algorithm(TrialStatus status) {
  return status == TrialStatus::kRefused || status == TrialStatus::kWrongResult || status == TrialStatus::kOutOfBounds ||
         status == TrialStatus::kUnderFloor;
}

/// A sentence in one line.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string library_title(const std::string& library) { return library == kCublasLt ? "cuBLASLt" : library; }

}  // namespace

BaselineTimer::BaselineTimer(BaselineRequest request, BaselineServices services, VerificationSource& verification)
    : request_(std::move(request)), services_(std::move(services)), verification_(verification) {
  key_ = {.op = request_.group.op,
          .problem = request_.group.problem,
          .device = request_.group.device,
          .protocol = protocol_row(request_.final),
          .driver = request_.group.toolchain.driver,
          .blas = kCublasLt,
          .blas_version = {}};
}

void BaselineTimer::give_up(const std::string& why) {
  summary_.note = "no cuBLASLt baseline: " + one_line(why);
  is_done_ = true;
}

void BaselineTimer::report(std::size_t done, std::size_t total) const {
  if (request_.progress) request_.progress("timed algorithms of cuBLASLt", done, total);
}

Status BaselineTimer::find_stored() {
  const generator::Program& program = *request_.spec.program;
  Result<LibraryMatmul> matmul = generator::library_matmul(program, request_.problem);
  if (!matmul) {
    give_up(to_text(matmul.error()));
    return {};
  }
  const Result<LibraryFile> library = services_.find_library();
  if (!library) {
    give_up(library.error().message);
    return {};
  }
  key_.blas_version = library->version;
  job_.matmul = std::move(*matmul);
  job_.problem = {.label = "cuBLASLt",
                  .cubin = {},
                  .plan = generator::skeleton_plan(program),
                  .problem = request_.problem,
                  .scalars = {},
                  .floor_us = request_.floor_us};
  if (request_.retunes) return {};
  KW_TRY(db::Database * database, services_.database());
  KW_TRY(summary_.record, database->find_baseline(key_));
  is_done_ = summary_.is_reused = summary_.record.has_value();
  return {};
}

void BaselineTimer::screen() {
  if (is_done_) return;
  if (is_stopped()) return give_up("interrupted before it was timed");
  const Result<GpuWorker*> worker = services_.gpu_worker();
  if (!worker) return give_up(worker.error().message);
  auto data = verification_.at_problem(kDataSeed);
  if (!data) return give_up(to_text(data.error()));
  data_ = std::move(*data);
  job_.problem.scalars = data_->scalars;
  const BaselineList list = (*worker)->list_baseline(job_, data_->fills, request_.early);
  if (list.status != TrialStatus::kOk) return give_up(list.error);
  for (const BaselineAlgorithm& algorithm : list.algorithms) tried_.push_back({algorithm, -1, std::nullopt});
  std::vector<double> early_us;
  for (Tried& tried : tried_) {
    if (is_stopped()) return give_up("interrupted before all of its algorithms were timed");
    if (const auto outcome = time(tried.algorithm, request_.early)) tried.early_us = outcome->measured.median_us;
    if (is_done_) return;
    early_us.push_back(tried.early_us);
    report(early_us.size(), tried_.size());
  }
  finalists_ = choose_finalists(early_us, kTieBand);
}

std::optional<BaselineOutcome> BaselineTimer::time(const BaselineAlgorithm& algorithm, const Protocol& protocol) {
  const Result<GpuWorker*> worker = services_.gpu_worker();
  if (!worker) {
    give_up(worker.error().message);
    return std::nullopt;
  }
  BaselineOutcome outcome;
  for (int attempt = 0; attempt < 2; ++attempt) {
    ++services_.num_launches;
    outcome = (*worker)->time_baseline(job_, algorithm, data_->fills, data_->samples, protocol);
    if (outcome.status != TrialStatus::kOk || !outcome.measured.is_dirty) break;
  }
  if (outcome.status == TrialStatus::kOk) return outcome;
  const std::string what = fmt::format("{}: {}: {}", algorithm.summary, to_text(outcome.status), outcome.error);
  if (!is_of_algorithm(outcome.status)) {
    // A second one may hang or spoil the context as well: the tune's time and the GPU are worth more than the comparison.
    give_up(what);
    return std::nullopt;
  }
  ++num_left_out_;
  if (first_left_out_.empty()) first_left_out_ = one_line(what);
  return std::nullopt;
}

void BaselineTimer::time_next() {
  if (!has_next()) return;
  if (is_stopped()) return give_up("interrupted before its best algorithms were timed by the full protocol");
  Tried& tried = tried_[finalists_[next_++]];
  tried.timed = time(tried.algorithm, request_.final);
  if (!is_done_) report(next_, finalists_.size());
}

db::BaselineRow BaselineTimer::row_of(const Tried& best) const {
  const MeasureOutcome& measured = best.timed->measured;
  db::BaselineRow row;
  row.algorithm = best.algorithm.summary;
  row.num_tried = static_cast<int>(tried_.size());
  row.num_right = static_cast<int>(tried_.size() - num_left_out_);
  row.samples_us = measured.samples_us;
  row.median_us = measured.median_us;
  row.p10_us = measured.p10_us;
  row.p90_us = measured.p90_us;
  row.max_error_over_bound = best.timed->verified.max_error_over_bound;
  row.relative_norm_error = best.timed->verified.relative_norm_error;
  row.is_dirty = measured.is_dirty;
  row.state_json = state_json(measured.before, measured.after);
  row.session = request_.session;
  return row;
}

Status BaselineTimer::store() {
  if (is_done_) return {};
  is_done_ = true;
  // Clean before disturbed, then the fastest.
  const auto rank = [](const Tried& tried) { return std::make_pair(tried.timed->measured.is_dirty, tried.timed->measured.median_us); };
  const Tried* best = nullptr;
  for (const Tried& tried : tried_)
    if (tried.timed && (best == nullptr || rank(tried) < rank(*best))) best = &tried;
  if (best == nullptr) {
    give_up(fmt::format("none of its {} algorithms is right, the first: {}", tried_.size(), first_left_out_));
    return {};
  }
  db::BaselineRecord record{key_, row_of(*best), 0, 0};
  KW_TRY(db::Database * database, services_.database());
  KW_TRY_VOID(database->record_baseline(record));
  KW_TRY(summary_.record, database->find_baseline(key_));
  if (num_left_out_ > 0)
    summary_.note =
        fmt::format("{} of {} algorithms of cuBLASLt were left out, the first: {}", num_left_out_, tried_.size(), first_left_out_);
  return {};
}

std::string BaselineRatio::to_text() const {
  return fmt::format("{:.2f}x {} (best of {})", ratio, library_title(record.key.blas), record.row.num_tried);
}

BaselineRatio ratio_of(const db::BaselineRecord& baseline, double median_us) { return {baseline, baseline.row.median_us / median_us}; }

Result<std::vector<BaselineRatio>> baseline_ratios(db::Database& database, const db::TrialRecord& trial) {
  std::vector<BaselineRatio> ratios;
  if (trial.trial.status != TrialStatus::kOk || !(trial.trial.median_us > 0)) return ratios;
  KW_TRY(const std::vector<db::BaselineRecord> records, database.baselines_of(trial.key));
  for (const db::BaselineRecord& record : records) ratios.push_back(ratio_of(record, trial.trial.median_us));
  return ratios;
}

nlohmann::json to_json(const BaselineRatio& ratio) {
  const db::BaselineRow& row = ratio.record.row;
  return {{"text", ratio.to_text()},
          {"ratio", ratio.ratio},
          {"library", ratio.record.key.blas},
          {"library_version", ratio.record.key.blas_version},
          {"median_us", row.median_us},
          {"p10_us", row.p10_us},
          {"p90_us", row.p90_us},
          {"algorithm", row.algorithm},
          {"num_tried", row.num_tried},
          {"num_right", row.num_right},
          {"is_dirty", row.is_dirty}};
}

}  // namespace kw::tuner
