// Choosing the stored kernel for a shape.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/session/query_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "tuner/match/match.h"
#include "tuner/session/ranked_problem.h"

namespace kw::tuner {
namespace {

constexpr std::string_view kNoDevicePrefix = "none:";  // the device model of rows made without a GPU: "none:sm_90"

/// A stored kernel that is legal at the asked problem.
struct Legal {
  MatchCandidate candidate;
  LaunchPlan plan;
};

std::vector<Legal> legal_candidates(std::vector<db::QueryCandidate> rows, const Problem& asked, std::string& first_refusal) {
  std::vector<Legal> legal;
  for (db::QueryCandidate& row : rows) {
    auto plan = plan_of(row.record.key.variant);
    if (!plan) continue;
    const std::string broken = first_broken_constraint(*plan, asked);
    if (!broken.empty()) {
      if (first_refusal.empty()) first_refusal = row.record.key.variant.id + ": " + broken;
      continue;
    }
    const auto problem = problem_from_text(row.record.key.problem.dims_text);
    if (!problem) continue;
    legal.push_back({{std::move(row), problem_distance(asked, *problem), 0, legal.size()}, std::move(*plan)});
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
    const auto found = time_us.find({entry.candidate.row.record.key.variant.template_name, entry.candidate.row.record.key.variant.config});
    if (found != time_us.end()) entry.candidate.modelled_us = found->second;
  }
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
  const bool has_exact =
      std::any_of(legal.begin(), legal.end(), [](const Legal& entry) { return kind_of(entry.candidate) == MatchKind::kExact; });
  if (!has_exact) add_model_times(legal, *answer.spec, answer.asked, services);
  const Legal& best =
      *std::min_element(legal.begin(), legal.end(), [](const Legal& a, const Legal& b) { return is_better(a.candidate, b.candidate); });
  const db::TrialRecord& record = best.candidate.row.record;
  answer.match = kind_of(best.candidate);
  answer.explanation = explain_match(best.candidate);
  answer.record = record;
  answer.plan = best.plan;
  answer.modelled_us = best.candidate.modelled_us;
  answer.is_predicted = record.trial.status != TrialStatus::kOk;
  answer.time_us = answer.is_predicted ? record.key.variant.predicted_us : record.trial.median_us;
  KW_TRY(answer.baselines, baseline_ratios(*database, record));
  const bool is_warm = record.key.protocol.name.find("warm") != std::string::npos;
  const auto roofline_at = [&](const Problem& problem) -> std::optional<Roofline> {
    const auto work = generator::count_work(*answer.spec->program, problem, services.limits().l2_bytes);
    if (!work) return std::nullopt;
    return roofline_of(*answer.spec->program, *work, services.limits(), is_warm);
  };
  if (const auto problem = problem_from_text(record.key.problem.dims_text)) answer.roofline = roofline_at(*problem);
  answer.roofline_here = roofline_at(answer.asked);
  return answer;
}

}  // namespace kw::tuner
