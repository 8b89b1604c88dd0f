// Stores records: keys once, texts by content, trial last. Callers hold the connection for themselves.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "db/database.h"
#include "db/sqlite.h"

namespace kw::db {

Result<std::int64_t> write_trial(Connection& connection, const TrialRecord& record);
Status write_duel(Connection& connection, const DuelRow& duel);
Status write_refusals(Connection& connection, const TrialKey& key, const std::vector<RefusalSummary>& refusals);

/// The variant's own hash, or the hash of its text where the caller gave none.
std::string source_hash_of(const VariantRow& variant);
/// Hash of key, time, samples and texts: two equal records are one trial, here and after a merge.
std::string content_key(const TrialRecord& record);

/// JSON array that reads back to the same doubles; null for not-a-number, 1e999 for infinity.
std::string samples_text(const std::vector<double>& samples);
std::vector<double> samples_from_text(const std::string& text);

}  // namespace kw::db
