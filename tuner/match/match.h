// Which stored kernel answers for a problem, and how good the match is: the rules that `query` and the run-time library share.
// Knows rows and launch plans; no specs, no templates, no model (its times are given by the caller, where it has them).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "db/database.h"
#include "generator/base/launch_plan.h"
#include "generator/base/status.h"

namespace kw::tuner {

/// A stored kernel with what its rank for the asked problem depends on.
struct MatchCandidate {
  db::QueryCandidate row;
  double distance = 0;     ///< problem_distance() of its own problem to the asked one
  double modelled_us = 0;  ///< the model's time at the asked problem; 0: not computed
  std::size_t place = 0;   ///< in the database's order, best first
};

MatchKind kind_of(const MatchCandidate& candidate);
/// Better kinds first; within a kind: the same problem in the database's order, near ones by distance then time, the rest by the model
/// (without it by distance).
bool is_better(const MatchCandidate& a, const MatchCandidate& b);
/// One sentence: why this match kind.
std::string explain_match(const MatchCandidate& candidate);

/// Largest |log2| ratio over the dims of two problems; infinite when the names differ.
double problem_distance(const Problem& a, const Problem& b);

/// Rows of two protocols are never compared: the full protocol's stay, an early rung's only where there are no others. Predictions stay.
void drop_other_protocols(std::vector<db::QueryCandidate>& candidates, bool is_warm_l2);

/// The op that a user names. Errors: none of this name (kNotFound, with the nearest), several (kBadInput, with their identities).
Result<db::OpRow> find_op(db::Database& database, const std::string& name);

/// The launch plan of a stored variant. Error kBadInput: it cannot be read back.
Result<LaunchPlan> plan_of(const db::VariantRow& variant);

}  // namespace kw::tuner
