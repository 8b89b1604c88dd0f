// See maintenance.h.
// SPDX-License-Identifier: Apache-2.0
#include "db/maintenance.h"

#include <ctime>
#include <filesystem>

#include <fmt/format.h>

#include "db/baseline.h"
#include "db/reader.h"
#include "db/schema.h"
#include "db/writer.h"

namespace kw::db {
namespace {

std::int64_t size_of_file(const std::string& path) {
  std::error_code error;
  const auto num_bytes = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<std::int64_t>(num_bytes);
}

/// One line per row; a damaged page ends the statement, and that is a finding too.
void add_findings(Connection& connection, const std::string& sql, const std::string& label, std::vector<std::string>& findings) {
  const Status status = connection.each(sql, [&](const Statement& row) {
    findings.push_back(fmt::format("{}: {}", label, row.text(0)));
    return Status();
  });
  if (!status) findings.push_back(fmt::format("{}: {}", label, status.error().message));
}

/// Every trial reads back and still has the content that its key names.
void check_trials(Connection& connection, std::vector<std::string>& findings) {
  std::vector<std::pair<std::int64_t, std::string>> trials;
  const Status listed = connection.each("SELECT trial_id, content_key FROM trial ORDER BY trial_id", [&trials](const Statement& row) {
    trials.emplace_back(row.integer(0), row.text(1));
    return Status();
  });
  if (!listed) findings.push_back("trials: " + listed.error().message);
  for (const auto& [id, key] : trials) {
    Result<TrialRecord> record = read_trial(connection, id, Payload::kPlanOnly);
    if (!record) {
      findings.push_back(fmt::format("trial {}: {}", id, record.error().message));
      continue;
    }
    if (record->binary.key.empty()) {  // its log takes part in the key, and garbage collection may have taken it
      record = read_trial(connection, id, Payload::kAll);
      if (!record || record->binary.log.empty()) continue;
    }
    if (content_key(*record) != key)
      findings.push_back(fmt::format("trial {}: its values are not the ones that were stored (content key differs)", id));
  }
}

/// References are not enforced while it runs: collect.sql deletes only texts that nothing points at, and enforcing would scan both
/// referring tables for each of them.
Result<std::int64_t> delete_losers(Connection& connection, int keep_best, std::int64_t oldest_s) {
  KW_TRY_VOID(connection.execute("PRAGMA foreign_keys = OFF"));
  const Result<std::int64_t> freed_bytes = [&]() -> Result<std::int64_t> {
    KW_TRY(Transaction transaction, Transaction::write(connection));
    KW_TRY_VOID(
        connection.execute(fmt::format("CREATE TEMP TABLE collect_limit AS SELECT {} AS keep_best, {} AS oldest_s", keep_best, oldest_s)));
    KW_TRY_VOID(connection.execute(embedded_sql("collect.sql")));
    KW_TRY(const auto num_bytes, connection.integer("SELECT coalesce((SELECT sum(stored_bytes) FROM temp.loose_source), 0) + "
                                                    "coalesce((SELECT sum(stored_bytes) FROM temp.loose_blob), 0)"));
    KW_TRY_VOID(connection.execute("DROP TABLE temp.loose_source; DROP TABLE temp.loose_blob; DROP TABLE temp.collect_limit"));
    KW_TRY_VOID(transaction.commit());
    return num_bytes.value_or(0);
  }();
  KW_TRY_VOID(connection.execute("PRAGMA foreign_keys = ON"));
  return freed_bytes;
}

}  // namespace

Result<DatabaseInfo> read_info(Connection& connection) {
  DatabaseInfo info;
  KW_TRY(info.schema_version, schema_version(connection));
  const auto count = [&connection](const std::string& table) -> Result<std::int64_t> {
    KW_TRY(const auto number, connection.integer("SELECT count(*) FROM " + table));
    return number.value_or(0);
  };
  KW_TRY(info.num_ops, count("op"));
  KW_TRY(info.num_problems, count("problem"));
  KW_TRY(info.num_variants, count("variant"));
  KW_TRY(info.num_trials, count("trial"));
  KW_TRY(info.num_binaries, count("binary"));
  KW_TRY(info.num_baselines, count("baseline"));
  KW_TRY(const auto journal_mode, connection.text("PRAGMA journal_mode"));
  info.journal_mode = journal_mode.value_or("");
  info.file_bytes = size_of_file(connection.path()) + size_of_file(connection.path() + "-wal");
  return info;
}

Result<std::vector<std::string>> check_all(Connection& connection) {
  std::vector<std::string> findings;
  add_findings(connection, "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'", "integrity", findings);
  add_findings(connection,
               "SELECT \"table\" || ' row ' || coalesce(rowid, '?') || ' points at no row of ' || parent FROM pragma_foreign_key_check",
               "foreign key", findings);
  for (const std::string table : {"source_text", "blob"}) {
    add_findings(connection,
                 "SELECT fault FROM (SELECT kw_content_fault(hash, num_bytes, zstd) AS fault FROM " + table + ") WHERE fault <> ''", table,
                 findings);
  }
  check_trials(connection, findings);
  const Result<std::vector<std::string>> baselines = check_baselines(connection);
  if (baselines)
    findings.insert(findings.end(), baselines->begin(), baselines->end());
  else
    findings.push_back("baselines: " + baselines.error().message);
  return findings;
}

Result<std::int64_t> collect_losers(Connection& connection, int keep_best, int keep_days) {
  if (keep_best < 0 || keep_days < 0) {
    return fail(Stage::kDatabase, Code::kBadInput,
                fmt::format("gc: keep_best = {}, keep_days = {}: must not be negative", keep_best, keep_days));
  }
  const std::int64_t oldest_s = static_cast<std::int64_t>(std::time(nullptr)) - std::int64_t{keep_days} * 86400;
  KW_TRY(const std::int64_t freed_bytes, delete_losers(connection, keep_best, oldest_s));
  // Gives the pages back to the file system. A reader elsewhere may hold the old pages: then the next run does it.
  KW_TRY_VOID(connection.execute_patiently("PRAGMA incremental_vacuum"));
  (void)connection.execute("PRAGMA wal_checkpoint(TRUNCATE)");
  return freed_bytes;
}

}  // namespace kw::db
