// See match.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/match/match.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>

#include "generator/base/json_text.h"
#include "tuner/measure/protocol.h"

namespace kw::tuner {
namespace {

constexpr double kNearDistance = 1.0;  // every dim within a factor of two of the measured shape

bool is_measured(const MatchCandidate& entry) { return entry.row.record.trial.status == TrialStatus::kOk; }

}  // namespace

MatchKind kind_of(const MatchCandidate& entry) {
  if (!entry.row.is_same_device) return MatchKind::kOtherDevice;
  if (!is_measured(entry)) return MatchKind::kModelled;
  if (entry.row.is_same_problem) return MatchKind::kExact;
  return entry.distance <= kNearDistance ? MatchKind::kNear : MatchKind::kModelled;
}

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

bool is_better(const MatchCandidate& a, const MatchCandidate& b) {
  const auto rank = [](const MatchCandidate& e) {
    const double far = std::numeric_limits<double>::infinity();
    const MatchKind kind = kind_of(e);
    const double modelled = e.modelled_us > 0 ? e.modelled_us : far;
    const double measured = is_measured(e) ? e.row.record.trial.median_us : far;
    // The database's own order decides: fastest, with ties inside 1 % broken by the config, as in its view `winner`.
    if (kind == MatchKind::kExact) return std::make_tuple(static_cast<int>(kind), static_cast<double>(e.place), 0.0);
    if (kind == MatchKind::kNear) return std::make_tuple(static_cast<int>(kind), e.distance, measured);
    if (kind == MatchKind::kOtherDevice) return std::make_tuple(static_cast<int>(kind), e.distance, std::min(measured, modelled));
    return std::make_tuple(static_cast<int>(kind), modelled, e.distance);
  };
  const auto rank_a = rank(a), rank_b = rank(b);
  return rank_a != rank_b ? rank_a < rank_b : a.place < b.place;
}

std::string explain_match(const MatchCandidate& entry) {
  const db::TrialKey& key = entry.row.record.key;
  const std::string chosen_by = entry.modelled_us > 0 ? "chosen by the model" : "chosen by its distance";
  switch (kind_of(entry)) {
    case MatchKind::kExact:
      return fmt::format("measured at this shape on this device model ({})", key.device.model);
    case MatchKind::kNear:
      return fmt::format("legal here; measured at {}, every dim within a factor of two", key.problem.dims_text);
    case MatchKind::kModelled:
      return is_measured(entry)          ? fmt::format("legal here; measured only at {}, {}", key.problem.dims_text, chosen_by)
             : entry.row.is_same_problem ? fmt::format("predicted at this shape, not measured: {}", chosen_by)
                                         : fmt::format("legal here; predicted for {}, not measured: {}", key.problem.dims_text, chosen_by);
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
    return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("'{}' names {} ops; use the identity:{}", name, rows.size(), list));
  }
  KW_TRY(const std::vector<db::OpRow> all, database.ops(""));
  std::vector<std::string> names;
  for (const db::OpRow& row : all) names.push_back(row.name);
  const std::string near = nearest_name(name, names);
  return fail(Stage::kDatabase, Code::kNotFound,
              fmt::format("no op '{}' in the database ({} ops){}", name, all.size(),
                          near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

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

Result<LaunchPlan> plan_of(const db::VariantRow& variant) {
  KW_TRY(const nlohmann::json json, json_from_text(variant.plan_json));
  return launch_plan_from_json(json);
}

}  // namespace kw::tuner
