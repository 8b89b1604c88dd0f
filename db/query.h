// Look-ups: exact keys (resume), groups (report), and rows for a query with their device and problem match.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "db/database.h"
#include "db/sqlite.h"

namespace kw::db {

Result<std::optional<TrialRecord>> find_newest(Connection& connection, const TrialKey& key);
Result<std::vector<TrialRecord>> find_group(Connection& connection, const TrialKey& key);
/// `view` is "winner" or "predicted_best".
Result<std::optional<TrialRecord>> find_first(Connection& connection, const std::string& view, const TrialKey& key);
Result<std::vector<QueryCandidate>> find_candidates(Connection& connection, const QueryRequest& request);
Result<std::vector<OpRow>> find_ops(Connection& connection, const std::string& name_or_identity);
Result<std::vector<TrialRecord>> find_records(Connection& connection, const std::string& op_identity, const std::string& variant_id);
Result<std::vector<RefusalSummary>> find_refusals(Connection& connection, const TrialKey& key);

}  // namespace kw::db
