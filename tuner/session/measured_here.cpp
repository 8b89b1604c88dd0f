// See measured_here.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/session/measured_here.h"

#include "tuner/match/match.h"

namespace kw::tuner {

Result<std::optional<MeasuredHere>> measured_here(const LoadedSpec& spec, const Problem& problem, const std::string& device_model,
                                                  bool is_warm_l2, Services& services) {
  const Result<db::Database*> database = services.database(true);
  if (!database && database.error().code == Code::kNotFound) return std::nullopt;
  if (!database) return fail(database.error());
  db::QueryRequest request;
  request.op = spec.identity;
  request.dims_text = problem.to_text();
  request.device_model = device_model.empty() ? services.device_row().model : device_model;
  request.only_winners = true;
  request.has_payload = false;
  auto candidates = (*database)->candidates(request);
  if (!candidates && candidates.error().code == Code::kNotFound) return std::nullopt;
  if (!candidates) return fail(candidates.error());
  drop_other_protocols(*candidates, is_warm_l2);
  for (const db::QueryCandidate& candidate : *candidates) {  // best first
    if (!candidate.is_same_problem || candidate.record.trial.status != TrialStatus::kOk) continue;
    MeasuredHere found{candidate.record, {}};
    KW_TRY(found.baselines, baseline_ratios(**database, found.record));
    return found;
  }
  return std::nullopt;
}

}  // namespace kw::tuner
