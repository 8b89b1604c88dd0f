// See baseline.h.
// SPDX-License-Identifier: Apache-2.0
#include "db/baseline.h"

#include <ctime>
#include <set>

#include <fmt/format.h>

#include "db/natural_keys.h"
#include "db/writer.h"
#include "generator/base/hash.h"

namespace kw::db {
namespace {

constexpr const char* kSelect =
    "SELECT baseline_id, unix_time_s, op_identity, coalesce(op_name, ''), canonical_text, dims_text, device_uuid, device_model, num_sms, "
    "l2_bytes, memory_bytes, protocol_name, protocol_json, driver, library, library_version, algorithm, num_tried, num_right, samples_us, "
    "median_us, p10_us, p90_us, max_error_over_bound, relative_norm_error, is_dirty, state_json, session, content_key FROM "
    "baseline_details ";

BaselineRecord record_of(const Statement& row) {
  int next = 0;
  const auto text = [&] { return row.text(next++); };
  const auto integer = [&] { return row.integer(next++); };
  const auto real = [&] { return row.real(next++); };
  BaselineRecord record;
  record.id = integer();
  record.unix_time_s = integer();
  BaselineKey& key = record.key;
  key.op.identity = text();
  key.op.name = text();
  key.op.canonical_text = text();
  key.problem.dims_text = text();
  key.device.uuid = text();
  key.device.model = text();
  key.device.num_sms = static_cast<int>(integer());
  key.device.l2_bytes = integer();
  key.device.memory_bytes = integer();
  key.protocol.name = text();
  key.protocol.json = text();
  key.driver = text();
  key.blas = text();
  key.blas_version = text();
  BaselineRow& values = record.row;
  values.algorithm = text();
  values.num_tried = static_cast<int>(integer());
  values.num_right = static_cast<int>(integer());
  values.samples_us = samples_from_text(text());
  values.median_us = real();
  values.p10_us = real();
  values.p90_us = real();
  values.max_error_over_bound = real();
  values.relative_norm_error = real();
  values.is_dirty = integer() != 0;
  values.state_json = text();
  values.session = text();
  return record;
}

constexpr int kContentKeyColumn = 28;

std::string content_key(const BaselineRecord& record) {
  const BaselineKey& key = record.key;
  const BaselineRow& row = record.row;
  KeyHasher hasher;
  hasher.add("op", key.op.identity).add("problem", key.problem.dims_text);
  hasher.add("uuid", key.device.uuid).add("model", key.device.model).add("sms", std::to_string(key.device.num_sms));
  hasher.add("l2", std::to_string(key.device.l2_bytes)).add("memory", std::to_string(key.device.memory_bytes));
  hasher.add("protocol", key.protocol.name).add("protocol_json", key.protocol.json).add("driver", key.driver);
  hasher.add("library", key.blas).add("version", key.blas_version).add("time", std::to_string(record.unix_time_s));
  hasher.add("algorithm", row.algorithm).add("tried", std::to_string(row.num_tried)).add("right", std::to_string(row.num_right));
  hasher.add("samples", samples_text(row.samples_us));
  hasher.add("times", samples_text({row.median_us, row.p10_us, row.p90_us, row.max_error_over_bound, row.relative_norm_error}));
  hasher.add("dirty", row.is_dirty ? "1" : "0").add("state", row.state_json).add("session", row.session);
  return hasher.hex();
}

Status check_row(const Connection& connection, const BaselineRecord& record) {
  const auto refuse = [&](const std::string& why) {
    return fail(Stage::kDatabase, Code::kBadInput, fmt::format("{}: baseline {}: {}", connection.path(), record.key.blas, why));
  };
  if (record.key.op.identity.empty()) return refuse("needs the identity of its op");
  if (record.key.blas.empty()) return refuse("needs the name of its library");
  if (!(record.row.median_us > 0)) return refuse(fmt::format("median time {} us: must be above 0", record.row.median_us));
  if (record.row.num_right < 1 || record.row.num_tried < record.row.num_right)
    return refuse(fmt::format("{} of {} algorithms are right: at least one must be", record.row.num_right, record.row.num_tried));
  return {};
}

}  // namespace

Result<std::int64_t> write_baseline(Connection& connection, const BaselineRecord& record) {
  KW_TRY_VOID(check_row(connection, record));
  BaselineRecord dated = record;
  if (dated.unix_time_s == 0) dated.unix_time_s = static_cast<std::int64_t>(std::time(nullptr));
  const std::string content = content_key(dated);
  const BaselineKey& key = dated.key;
  const BaselineRow& row = dated.row;
  KW_TRY(Transaction transaction, Transaction::write(connection));
  KW_TRY(const auto found, connection.integer("SELECT baseline_id FROM baseline WHERE content_key = ?", content));
  if (found) return *found;
  KW_TRY(const std::int64_t problem, problem_id_of(connection, key.op, key.problem));
  KW_TRY(const std::int64_t device, device_id_of(connection, key.device));
  KW_TRY(const std::int64_t protocol, protocol_id_of(connection, key.protocol));
  KW_TRY_VOID(connection.run(
      "INSERT INTO baseline (content_key, problem_id, device_id, protocol_id, driver, library, library_version, unix_time_s, algorithm, "
      "num_tried, num_right, samples_us, median_us, p10_us, p90_us, max_error_over_bound, relative_norm_error, is_dirty, state_json, "
      "session) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      content, problem, device, protocol, key.driver, key.blas, key.blas_version, dated.unix_time_s, row.algorithm, row.num_tried,
      row.num_right, samples_text(row.samples_us), row.median_us, row.p10_us, row.p90_us, row.max_error_over_bound, row.relative_norm_error,
      row.is_dirty, row.state_json, row.session));
  const std::int64_t id = connection.last_insert_id();
  KW_TRY_VOID(transaction.commit());
  return id;
}

Result<std::optional<BaselineRecord>> find_baseline(Connection& connection, const BaselineKey& key) {
  std::optional<BaselineRecord> found;
  KW_TRY_VOID(connection.each(
      std::string(kSelect) +
          "WHERE op_identity = ? AND canonical_text = ? AND dims_text = ? AND device_uuid = ? AND device_model = ? AND num_sms = ? AND "
          "l2_bytes = ? AND memory_bytes = ? AND protocol_name = ? AND protocol_json = ? AND driver = ? AND library = ? AND "
          "library_version = ? ORDER BY unix_time_s DESC, baseline_id DESC LIMIT 1",
      [&found](const Statement& row) {
        found = record_of(row);
        return Status();
      },
      key.op.identity, key.op.canonical_text, key.problem.dims_text, key.device.uuid, key.device.model, key.device.num_sms,
      key.device.l2_bytes, key.device.memory_bytes, key.protocol.name, key.protocol.json, key.driver, key.blas, key.blas_version));
  return found;
}

Result<std::vector<BaselineRecord>> find_baselines_of(Connection& connection, const TrialKey& trial) {
  std::vector<BaselineRecord> found;
  std::set<std::string> libraries;
  KW_TRY_VOID(connection.each(
      std::string(kSelect) +
          "WHERE op_identity = ? AND dims_text = ? AND device_model = ? AND protocol_name = ? AND protocol_json = ? ORDER BY library, "
          "is_dirty, device_uuid <> ?, driver <> ?, unix_time_s DESC, baseline_id DESC",
      [&](const Statement& row) {
        BaselineRecord record = record_of(row);
        if (libraries.insert(record.key.blas).second) found.push_back(std::move(record));
        return Status();
      },
      trial.op.identity, trial.problem.dims_text, trial.device.model, trial.protocol.name, trial.protocol.json, trial.device.uuid,
      trial.toolchain.driver));
  return found;
}

Result<std::vector<std::string>> check_baselines(Connection& connection) {
  std::vector<std::string> findings;
  KW_TRY_VOID(connection.each(std::string(kSelect) + "ORDER BY baseline_id", [&findings](const Statement& row) {
    const BaselineRecord record = record_of(row);
    if (content_key(record) != row.text(kContentKeyColumn))
      findings.push_back(fmt::format("baseline {}: its values are not the ones that were stored (content key differs)", record.id));
    return Status();
  }));
  return findings;
}

}  // namespace kw::db
