// Choosing the stored kernel for a shape.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/session/query_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "generator/base/json_text.h"
#include "tuner/session/ranked_problem.h"

namespace kw::tuner {
namespace {

constexpr std::string_view kNoDevicePrefix = "none:";  // the device model of rows made without a GPU: "none:sm_90"
constexpr double kNearDistance = 1.0;                  // every dim within a factor of two of the measured shape

/// A stored kernel that is legal at the asked problem.
struct Legal {
  db::QueryCandidate candidate;
  LaunchPlan plan;
  double distance = 0;
  double modelled_us = 0;
  std::size_t place = 0;  ///< in the database's order, best first
};

std::vector<Legal> legal_candidates(std::vector<db::QueryCandidate> candidates, const Problem& asked, std::string& first_refusal) {
  std::vector<Legal> legal;
  for (db::QueryCandidate& candidate : candidates) {
    const auto json = json_from_text(candidate.record.key.variant.plan_json);
    if (!json) continue;
    auto plan = launch_plan_from_json(*json);
    if (!plan) continue;
    const std::string broken = first_broken_constraint(*plan, asked);
    if (!broken.empty()) {
      if (first_refusal.empty()) first_refusal = candidate.record.key.variant.id + ": " + broken;
      continue;
    }
    const auto problem = problem_from_text(candidate.record.key.problem.dims_text);
    if (!problem) continue;
    legal.push_back({std::move(candidate), std::move(*plan), problem_distance(asked, *problem), 0, legal.size()});
  }
  return legal;
}

/// The model's time of each legal kernel at the asked problem; kernels of configs the model refuses keep 0 and sort last.
void add_model_times(std::vector<Legal>& legal, const LoadedSpec& spec, const Problem& asked, Services& services) {
  const auto space = rank_problem(spec, services, asked);
  if (!space) return;
  std::map<std::pair<std::string, std::string>, double> time_us;
  for (const RankedVariant& variant : space->ranked)
    time_us[{variant.ranked.config.template_name, variant.ranked.config.to_text()}] = variant.ranked.prediction.time_us;
  for (Legal& entry : legal) {
    const auto found = time_us.find({entry.candidate.record.key.variant.template_name, entry.candidate.record.key.variant.config});
    if (found != time_us.end()) entry.modelled_us = found->second;
  }
}

bool is_measured(const Legal& entry) { return entry.candidate.record.trial.status == TrialStatus::kOk; }

MatchKind kind_of(const Legal& entry) {
  if (!entry.candidate.is_same_device) return MatchKind::kOtherDevice;
  if (!is_measured(entry)) return MatchKind::kModelled;
  if (entry.candidate.is_same_problem) return MatchKind::kExact;
  return entry.distance <= kNearDistance ? MatchKind::kNear : MatchKind::kModelled;
}

/// Rows of two protocols are never compared: the full protocol's stay, an early rung's only where there are no others. Predictions stay.
void drop_other_protocols(std::vector<db::QueryCandidate>& candidates, bool is_warm_l2) {
  Protocol wanted = Protocol::final_rung();
  Protocol early = Protocol::early_rung();
  wanted.is_cold_l2 = early.is_cold_l2 = !is_warm_l2;
  const auto has = [](const std::string& name) {
    return [name](const db::QueryCandidate& candidate) { return candidate.record.key.protocol.name == name; };
  };
  const std::string kept = std::any_of(candidates.begin(), candidates.end(), has(wanted.name())) ? wanted.name() : early.name();
  std::erase_if(candidates, [&](const db::QueryCandidate& candidate) {
    return candidate.record.trial.status == TrialStatus::kOk && candidate.record.key.protocol.name != kept;
  });
}

/// Better kinds first; within a kind: the same problem by time, near ones by distance then time, the rest by the model.
bool is_better(const Legal& a, const Legal& b) {
  const auto rank = [](const Legal& e) {
    const double far = std::numeric_limits<double>::infinity();
    const MatchKind kind = kind_of(e);
    const double modelled = e.modelled_us > 0 ? e.modelled_us : far;
    const double measured = is_measured(e) ? e.candidate.record.trial.median_us : far;
    // The database's own order decides: fastest, with ties inside 1 % broken by the config, as in its view `winner`.
    if (kind == MatchKind::kExact) return std::make_tuple(static_cast<int>(kind), static_cast<double>(e.place), 0.0);
    if (kind == MatchKind::kNear) return std::make_tuple(static_cast<int>(kind), e.distance, measured);
    if (kind == MatchKind::kOtherDevice) return std::make_tuple(static_cast<int>(kind), e.distance, std::min(measured, modelled));
    return std::make_tuple(static_cast<int>(kind), modelled, e.distance);
  };
  const auto ka = rank(a), kb = rank(b);
  if (ka != kb) return ka < kb;
  return a.candidate.record.key.variant.id < b.candidate.record.key.variant.id;
}

std::string explain(const Legal& entry, MatchKind kind) {
  const db::TrialKey& key = entry.candidate.record.key;
  switch (kind) {
    case MatchKind::kExact:
      return fmt::format("measured at this shape on this device model ({})", key.device.model);
    case MatchKind::kNear:
      return fmt::format("legal here; measured at {}, every dim within a factor of two", key.problem.dims_text);
    case MatchKind::kModelled:
      return is_measured(entry) ? fmt::format("legal here; measured only at {}, chosen by the model", key.problem.dims_text)
             : entry.candidate.is_same_problem
                 ? "predicted at this shape, not measured: chosen by the model"
                 : fmt::format("legal here; predicted for {}, not measured: chosen by the model", key.problem.dims_text);
    case MatchKind::kOtherDevice:
      return fmt::format("{} {} at {}", is_measured(entry) ? "measured on another device:" : "predicted for another device, not measured:",
                         key.device.model, key.problem.dims_text);
    case MatchKind::kNone:
      break;
  }
  return "";
}

Result<db::OpRow> find_op(db::Database& database, const std::string& name) {
  KW_TRY(std::vector<db::OpRow> rows, database.ops(name));
  const auto same_op = [](const db::OpRow& a, const db::OpRow& b) { return a.identity == b.identity; };
  std::sort(rows.begin(), rows.end(), [](const db::OpRow& a, const db::OpRow& b) { return a.identity < b.identity; });
  rows.erase(std::unique(rows.begin(), rows.end(), same_op), rows.end());  // an op has a row for each of its names
  if (rows.size() == 1) return rows.front();
  if (rows.size() > 1) {
    std::string list;
    for (const db::OpRow& row : rows) list += fmt::format("\n  {} {}", row.identity, row.name);
    return fail(Stage::kDatabase, Code::kBadInput, fmt::format("'{}' names {} ops; use the identity:{}", name, rows.size(), list));
  }
  KW_TRY(const std::vector<db::OpRow> all, database.ops(""));
  std::vector<std::string> names;
  for (const db::OpRow& row : all) names.push_back(row.name);
  const std::string near = nearest_name(name, names);
  return fail(Stage::kDatabase, Code::kNotFound,
              fmt::format("no op '{}' in the database ({} ops){}", name, all.size(),
                          near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

/// Why no row was found for `model`, and what is stored for other device models.
Result<std::string> explain_absence(db::Database& database, const db::OpRow& op, const std::string& model) {
  KW_TRY(const std::vector<db::TrialRecord> records, database.records_of(op.identity, ""));
  std::set<std::string> models;
  for (const db::TrialRecord& record : records) models.insert(record.key.device.model);
  if (models.empty()) return fmt::format("no kernel of '{}' was tuned for {}", op.name, model);
  std::string list;
  for (const std::string& other : models) {
    const bool is_prediction = other.rfind(kNoDevicePrefix, 0) == 0;
    list +=
        fmt::format("{}{} ({})", list.empty() ? "" : ", ", other,
                    is_prediction ? "--arch " + other.substr(kNoDevicePrefix.size()) : "--any-device, or --device-model with this name");
  }
  return fmt::format("no kernel of '{}' was tuned for {}; the database has it for {}", op.name, model, list);
}

}  // namespace

double problem_distance(const Problem& a, const Problem& b) {
  double distance = 0;
  if (a.dims.size() != b.dims.size()) return std::numeric_limits<double>::infinity();
  for (const auto& [name, value] : a.dims) {
    const auto other = b.dims.find(name);
    if (other == b.dims.end()) return std::numeric_limits<double>::infinity();
    if (value == other->second) continue;
    if (value == 0 || other->second == 0) return std::numeric_limits<double>::infinity();
    distance = std::max(distance, std::fabs(std::log2(static_cast<double>(value) / static_cast<double>(other->second))));
  }
  return distance;
}

Status require_source(const db::VariantRow& variant) {
  if (!variant.source.empty()) return {};
  return fail(Stage::kDatabase, Code::kNotFound,
              fmt::format("{}: its source was taken by `db gc`, plan and times are kept; `tune --retune` brings it back", variant.id));
}

Result<QueryAnswer> answer_query(const QueryOptions& options, Services& services) {
  KW_TRY(db::Database * database, services.database(true));
  KW_TRY(const db::OpRow op, find_op(*database, options.op));
  QueryAnswer answer;
  Diagnostics diagnostics;
  answer.spec = load_spec_from_json(op.spec_json, diagnostics);
  if (answer.spec == nullptr)
    return fail(Stage::kDatabase, Code::kBadInput,
                fmt::format("op '{}': its stored spec does not parse: {}", op.name, diagnostics.to_text()));
  KW_TRY(const std::vector<Problem> problems,
         problems_of(*answer.spec->program, options.set.empty() ? std::vector<std::string>{} : std::vector<std::string>{options.set}));
  if (problems.size() != 1)
    return fail(Stage::kCommandLine, Code::kBadInput,
                fmt::format("{} problems match; a query asks for one: give every dim with --set", problems.size()));
  answer.asked = problems.front();

  db::QueryRequest request;
  request.op = op.identity;
  request.dims_text = answer.asked.to_text();
  request.device_model = options.device_model.empty() ? services.device_row().model : options.device_model;
  request.allows_other_device = options.allows_other_device;
  KW_TRY(std::vector<db::QueryCandidate> candidates, database->candidates(request));
  drop_other_protocols(candidates, options.is_warm_l2);
  std::string first_refusal;
  const std::size_t num_stored = candidates.size();
  std::vector<Legal> legal = legal_candidates(std::move(candidates), answer.asked, first_refusal);
  if (legal.empty()) {
    answer.explanation = fmt::format("none of {} stored kernels is legal here; the first: {}", num_stored, first_refusal);
    if (num_stored == 0) {
      KW_TRY(answer.explanation, explain_absence(*database, op, request.device_model));
    }
    return answer;
  }
  const bool has_exact = std::any_of(legal.begin(), legal.end(), [](const Legal& entry) { return kind_of(entry) == MatchKind::kExact; });
  if (!has_exact) add_model_times(legal, *answer.spec, answer.asked, services);
  const Legal& best = *std::min_element(legal.begin(), legal.end(), is_better);
  answer.match = kind_of(best);
  answer.explanation = explain(best, answer.match);
  answer.record = best.candidate.record;
  answer.plan = best.plan;
  answer.modelled_us = best.modelled_us;
  answer.is_predicted = !is_measured(best);
  answer.time_us = answer.is_predicted ? best.candidate.record.key.variant.predicted_us : best.candidate.record.trial.median_us;
  const bool is_warm = best.candidate.record.key.protocol.name.find("warm") != std::string::npos;
  const auto roofline_at = [&](const Problem& problem) -> std::optional<Roofline> {
    const auto work = generator::count_work(*answer.spec->program, problem, services.limits().l2_bytes);
    if (!work) return std::nullopt;
    return roofline_of(*answer.spec->program, *work, services.limits(), is_warm);
  };
  if (const auto problem = problem_from_text(best.candidate.record.key.problem.dims_text)) answer.roofline = roofline_at(*problem);
  answer.roofline_here = roofline_at(answer.asked);
  return answer;
}

}  // namespace kw::tuner
