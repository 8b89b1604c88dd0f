// See op_rows.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/runtime/op_rows.h"

#include <algorithm>
#include <set>

#include "tuner/measure/protocol.h"

namespace kw::tuner {
namespace {

/// Within a class of equal constraints the library has no reason to prefer another row than the fastest: it has no model.
constexpr int kRowsPerClass = 1;

}  // namespace

Result<const LaunchPlan*> OpRow::plan() {
  if (!plan_) {
    KW_TRY(plan_, plan_of(candidate.row.record.key.variant));
  }
  return &*plan_;
}

Result<OpRows> OpRows::load(db::Database& database, const OpRowsRequest& request) {
  db::QueryRequest query;
  query.op = request.op;
  query.device_model = request.device_model;
  query.allows_other_device = request.allows_other_device;
  query.max_per_class = kRowsPerClass;
  query.has_payload = false;
  if (!request.only_dims_text.empty()) {
    query.dims_text = request.only_dims_text;
    query.only_winners = true;
    query.protocol_name = Protocol::final_rung().name();
  }
  KW_TRY(std::vector<db::QueryCandidate> all, database.candidates(query));
  // The protocol is chosen for this device by its own rows.
  std::vector<db::QueryCandidate> here, elsewhere;
  for (db::QueryCandidate& row : all) (row.is_same_device ? here : elsewhere).push_back(std::move(row));
  OpRows rows;
  for (std::vector<db::QueryCandidate>* const part : {&here, &elsewhere}) {
    drop_other_protocols(*part, false);
    for (db::QueryCandidate& candidate : *part) {
      KW_TRY(Problem problem, problem_from_text(candidate.record.key.problem.dims_text));
      OpRow row;
      row.candidate = {std::move(candidate), 0, 0, rows.rows_.size()};
      row.problem = std::move(problem);
      rows.rows_.push_back(std::move(row));
    }
  }
  return rows;
}

std::vector<OpRow*> OpRows::ranked(const Problem& asked) {
  std::vector<OpRow*> ranked;
  for (OpRow& row : rows_) {
    row.candidate.distance = problem_distance(asked, row.problem);
    row.candidate.row.is_same_problem = row.problem == asked;
    ranked.push_back(&row);
  }
  std::sort(ranked.begin(), ranked.end(), [](const OpRow* a, const OpRow* b) { return is_better(a->candidate, b->candidate); });
  return ranked;
}

Result<std::string> other_models(db::Database& database, const std::string& op) {
  db::QueryRequest query;
  query.op = op;
  query.allows_other_device = true;
  query.max_per_class = 1;
  query.has_payload = false;
  KW_TRY(const std::vector<db::QueryCandidate> candidates, database.candidates(query));
  std::set<std::string> models;
  for (const db::QueryCandidate& candidate : candidates) models.insert(candidate.record.key.device.model);
  std::string list;
  for (const std::string& model : models) list += (list.empty() ? "" : ", ") + model;
  return list;
}

}  // namespace kw::tuner
