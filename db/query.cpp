// SQL of the look-ups; see query.h. Ids first, records afterwards: a statement is never left open while another reads.
// SPDX-License-Identifier: Apache-2.0
#include "db/query.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "db/reader.h"
#include "db/writer.h"
#include "generator/base/hash.h"

namespace kw::db {
namespace {

constexpr std::size_t kMinIdentityPrefix = 8;

/// Rows of one (op, problem, device model, toolchain major, protocol) of a view with the columns of trial_details.
constexpr const char* kGroupFilter =
    "op_id = (SELECT op_id FROM op WHERE identity = ?1) AND problem_id = (SELECT problem_id FROM problem WHERE dims_text = ?2 AND op_id = "
    "(SELECT op_id FROM op WHERE identity = ?1)) AND device_model = ?3 AND nvrtc_major = ?4 AND protocol_id = (SELECT protocol_id FROM "
    "protocol "
    "WHERE name = ?5 AND json = ?6)";

Result<std::vector<std::int64_t>> group_ids(Connection& connection, const std::string& sql, const TrialKey& key) {
  std::vector<std::int64_t> ids;
  KW_TRY_VOID(connection.each(
      sql,
      [&ids](const Statement& row) {
        ids.push_back(row.integer(0));
        return Status();
      },
      key.op.identity, key.problem.dims_text, key.device.model, key.toolchain.nvrtc_major, key.protocol.name, key.protocol.json));
  return ids;
}

/// The op that a user names. A text that means several programs is refused: choosing for the user would answer for another kernel.
Result<std::int64_t> resolve_op(Connection& connection, const std::string& text) {
  KW_TRY(const auto exact, connection.integer("SELECT op_id FROM op WHERE identity = ?", text));
  if (exact) return *exact;
  std::vector<std::int64_t> ids;
  std::string identities;
  const auto collect = [&](const Statement& row) {
    ids.push_back(row.integer(0));
    identities += (identities.empty() ? "" : ", ") + row.text(1);
    return Status();
  };
  KW_TRY_VOID(connection.each("SELECT op_id, identity FROM op WHERE op_id IN (SELECT op_id FROM op_alias WHERE name = ?) ORDER BY identity",
                              collect, text));
  if (ids.empty() && text.size() >= kMinIdentityPrefix) {
    KW_TRY_VOID(
        connection.each("SELECT op_id, identity FROM op WHERE substr(identity, 1, length(?1)) = ?1 ORDER BY identity", collect, text));
  }
  if (ids.size() == 1) return ids.front();
  if (ids.size() > 1) {
    return fail(Stage::kDatabase, Code::kBadInput,
                fmt::format("op '{}' means {} different programs: ask by identity, one of {}", text, ids.size(), identities));
  }
  std::vector<std::string> names;
  KW_TRY_VOID(connection.each("SELECT DISTINCT name FROM op_alias ORDER BY name", [&names](const Statement& row) {
    names.push_back(row.text(0));
    return Status();
  }));
  const std::string nearest = nearest_name(text, names);
  return fail(
      Stage::kDatabase, Code::kNotFound,
      fmt::format("{}: no op '{}'{}", connection.path(), text, nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
}

struct CandidateRow {
  std::int64_t trial_id = 0;
  bool is_other_problem = false, is_other_device = false, is_prediction = false;
  std::string protocol_name, dims_text, device_model;
  std::int64_t place = 0;
  auto order() const {
    return std::tie(is_other_problem, is_other_device, is_prediction, protocol_name, dims_text, device_model, place, trial_id);
  }
};

constexpr const char* kCandidateColumns = "k.trial_id, p.dims_text, k.device_model, d.uuid, c.name, k.place";
constexpr const char* kCandidateKeys =
    "JOIN problem AS p ON p.problem_id = k.problem_id JOIN device AS d ON d.device_id = k.device_id JOIN protocol AS c ON c.protocol_id = "
    "k.protocol_id";

/// Best rows of each class of legality in `view`, for one op.
std::string best_of_classes_sql(const std::string& view) {
  return fmt::format(
      "SELECT {} FROM (SELECT r.*, row_number() OVER (PARTITION BY r.problem_id, r.device_model, r.nvrtc_major, r.protocol_id, "
      "r.constraints_json ORDER BY r.place) AS place_in_class FROM {} AS r JOIN protocol AS c ON c.protocol_id = r.protocol_id WHERE "
      "r.op_id = ?1 AND (?2 = '' OR c.name = ?2)) AS k {} WHERE k.place_in_class <= ?3",
      kCandidateColumns, view, kCandidateKeys);
}

/// The winners of one problem by one protocol. Both by their numbers, which reach the tables under the view before anything is ranked (a
/// name or a subquery in their place would rank all of the op first): a problem has many more trials of early rungs than of its last.
std::string winners_sql() {
  return fmt::format("SELECT {} FROM ranked_trial AS k {} WHERE k.op_id = ?1 AND k.problem_id = ?2 AND k.protocol_id = ?3 AND k.place = 1",
                     kCandidateColumns, kCandidateKeys);
}

}  // namespace

Result<std::optional<TrialRecord>> find_newest(Connection& connection, const TrialKey& key) {
  const VariantRow& variant = key.variant;
  // Order of the placeholders: op, problem, device, toolchain, protocol, variant.
  KW_TRY(
      const auto id,
      connection.integer(
          "SELECT t.trial_id FROM op AS o JOIN problem AS p ON p.op_id = o.op_id CROSS JOIN variant AS v JOIN trial AS t ON t.problem_id = "
          "p.problem_id AND t.variant_id = v.variant_id JOIN device AS d ON d.device_id = t.device_id JOIN toolchain AS c ON "
          "c.toolchain_id = "
          "t.toolchain_id JOIN protocol AS r ON r.protocol_id = t.protocol_id WHERE o.identity = ?1 AND o.canonical_text = ?2 AND "
          "p.dims_text = "
          "?3 AND d.uuid = ?4 AND d.model = ?5 AND d.num_sms = ?6 AND d.l2_bytes = ?7 AND d.memory_bytes = ?8 AND c.nvrtc = ?9 AND "
          "c.nvrtc_major = ?10 AND c.driver = ?11 AND c.generator = ?12 AND r.name = ?13 AND r.json = ?14 AND v.name = ?15 AND "
          "v.template_name "
          "= ?16 AND v.config = ?17 AND v.arch = ?18 AND v.source_hash = ?19 AND (?20 = '' OR v.plan_hash = ?20) AND (?21 = '' OR "
          "v.constraints_json = ?21) ORDER BY t.unix_time_s DESC, t.trial_id DESC LIMIT 1",
          key.op.identity, key.op.canonical_text, key.problem.dims_text, key.device.uuid, key.device.model, key.device.num_sms,
          key.device.l2_bytes, key.device.memory_bytes, key.toolchain.nvrtc, key.toolchain.nvrtc_major, key.toolchain.driver,
          key.toolchain.generator, key.protocol.name, key.protocol.json, variant.id, variant.template_name, variant.config, variant.arch,
          source_hash_of(variant), variant.plan_json.empty() ? std::string() : hash_hex(variant.plan_json), variant.constraints_json));
  if (!id) return std::optional<TrialRecord>();
  KW_TRY(TrialRecord record, read_trial(connection, *id, Payload::kAll));
  if (!key.op.name.empty()) record.key.op.name = key.op.name;
  return std::optional<TrialRecord>(std::move(record));
}

Result<std::vector<TrialRecord>> find_group(Connection& connection, const TrialKey& key) {
  // Measured rows by time, predicted ones by prediction, the rest by status and config.
  const std::string sql = fmt::format(
      "SELECT trial_id FROM trial_details WHERE {} AND trial_id IN (SELECT trial_id FROM newest_trial WHERE problem_id = (SELECT "
      "problem_id FROM "
      "problem WHERE dims_text = ?2 AND op_id = (SELECT op_id FROM op WHERE identity = ?1))) ORDER BY CASE status WHEN 'ok' THEN 0 WHEN "
      "'predicted' THEN 1 ELSE 2 END, CASE status WHEN 'ok' THEN median_us WHEN 'predicted' THEN predicted_us END, status, template_name, "
      "config, "
      "arch, content_key",
      kGroupFilter);
  KW_TRY(const std::vector<std::int64_t> ids, group_ids(connection, sql, key));
  std::vector<TrialRecord> records;
  for (const std::int64_t id : ids) {
    KW_TRY(TrialRecord record, read_trial(connection, id, Payload::kAll));
    if (!key.op.name.empty()) record.key.op.name = key.op.name;
    records.push_back(std::move(record));
  }
  return records;
}

Result<std::optional<TrialRecord>> find_first(Connection& connection, const std::string& view, const TrialKey& key) {
  const std::string ranked = view == "winner" ? "ranked_trial" : "ranked_prediction";
  KW_TRY(const std::vector<std::int64_t> ids,
         group_ids(connection, fmt::format("SELECT trial_id FROM {} WHERE {} AND place = 1", ranked, kGroupFilter), key));
  if (ids.empty()) return std::optional<TrialRecord>();
  KW_TRY(TrialRecord record, read_trial(connection, ids.front(), Payload::kAll));
  if (!key.op.name.empty()) record.key.op.name = key.op.name;
  return std::optional<TrialRecord>(std::move(record));
}

Result<std::vector<QueryCandidate>> find_candidates(Connection& connection, const QueryRequest& request) {
  KW_TRY(const std::int64_t op_id, resolve_op(connection, request.op));
  std::vector<CandidateRow> rows;
  const auto collect_rows = [&](bool is_prediction) {
    return [&, is_prediction](const Statement& row) {
      const bool is_same_device = request.device_model.empty() ? row.text(3) == "none" : row.text(2) == request.device_model;
      if (!is_same_device && !request.allows_other_device) return Status();
      rows.push_back({row.integer(0), row.text(1) != request.dims_text, !is_same_device, is_prediction, row.text(4), row.text(1),
                      row.text(2), row.integer(5)});
      return Status();
    };
  };
  if (request.only_winners) {
    KW_TRY(const auto problem_id,
           connection.integer("SELECT problem_id FROM problem WHERE op_id = ? AND dims_text = ?", op_id, request.dims_text));
    if (!problem_id) return std::vector<QueryCandidate>();
    std::vector<std::int64_t> protocol_ids;
    const auto collect_protocol = [&protocol_ids](const Statement& row) {
      protocol_ids.push_back(row.integer(0));
      return Status();
    };
    KW_TRY_VOID(connection.each("SELECT protocol_id FROM protocol WHERE ?1 = '' OR name = ?1", collect_protocol, request.protocol_name));
    for (const std::int64_t protocol_id : protocol_ids)
      KW_TRY_VOID(connection.each(winners_sql(), collect_rows(false), op_id, *problem_id, protocol_id));
  } else {
    for (const bool is_prediction : {false, true}) {
      KW_TRY_VOID(connection.each(best_of_classes_sql(is_prediction ? "ranked_prediction" : "ranked_trial"), collect_rows(is_prediction),
                                  op_id, request.protocol_name, request.max_per_class));
    }
  }
  std::sort(rows.begin(), rows.end(), [](const CandidateRow& a, const CandidateRow& b) { return a.order() < b.order(); });
  KW_TRY(const auto is_alias, connection.integer("SELECT 1 FROM op_alias WHERE op_id = ? AND name = ?", op_id, request.op));
  std::vector<QueryCandidate> candidates;
  for (const CandidateRow& row : rows) {
    KW_TRY(TrialRecord record, read_trial(connection, row.trial_id, request.has_payload ? Payload::kAll : Payload::kPlanOnly));
    if (is_alias) record.key.op.name = request.op;
    candidates.push_back({std::move(record), !row.is_other_problem, !row.is_other_device});
  }
  return candidates;
}

Result<std::vector<OpRow>> find_ops(Connection& connection, const std::string& name_or_identity) {
  std::vector<OpRow> ops;
  KW_TRY_VOID(connection.each(
      "SELECT o.identity, coalesce(a.name, ''), o.canonical_text, o.spec_json FROM op AS o LEFT JOIN op_alias AS a ON a.op_id = o.op_id "
      "WHERE ?1 = '' "
      "OR a.name "
      "= ?1 OR o.identity = ?1 OR (length(?1) >= ?2 AND substr(o.identity, 1, length(?1)) = ?1) ORDER BY 2, 1",
      [&ops](const Statement& row) {
        ops.push_back({row.text(0), row.text(1), row.text(2), row.text(3)});
        return Status();
      },
      name_or_identity, static_cast<std::int64_t>(kMinIdentityPrefix)));
  return ops;
}

Result<std::vector<TrialRecord>> find_records(Connection& connection, const std::string& op_identity, const std::string& variant_id) {
  std::vector<std::int64_t> ids;
  KW_TRY_VOID(connection.each(
      "SELECT n.trial_id FROM newest_trial AS n JOIN problem AS p ON p.problem_id = n.problem_id JOIN op AS o ON o.op_id = p.op_id JOIN "
      "variant AS v ON v.variant_id = n.variant_id WHERE n.status IN ('ok', 'predicted') AND (?1 = '' OR o.identity = ?1) AND (?2 = '' OR "
      "v.name = ?2) ORDER BY n.unix_time_s DESC, n.trial_id DESC",
      [&ids](const Statement& row) {
        ids.push_back(row.integer(0));
        return Status();
      },
      op_identity, variant_id));
  std::vector<TrialRecord> records;
  for (const std::int64_t id : ids) {
    KW_TRY(TrialRecord record, read_trial(connection, id, variant_id.empty() ? Payload::kPlanOnly : Payload::kAll));
    records.push_back(std::move(record));
  }
  return records;
}

Result<std::vector<RefusalSummary>> find_refusals(Connection& connection, const TrialKey& key) {
  std::vector<RefusalSummary> refusals;
  KW_TRY_VOID(connection.each(
      "SELECT f.template_name, f.rule, f.example, f.count FROM refusal AS f JOIN problem AS p ON p.problem_id = f.problem_id JOIN op AS o "
      "ON o.op_id "
      "= p.op_id JOIN device AS d ON d.device_id = f.device_id JOIN toolchain AS c ON c.toolchain_id = f.toolchain_id JOIN protocol AS r "
      "ON "
      "r.protocol_id = f.protocol_id WHERE o.identity = ? AND p.dims_text = ? AND d.uuid = ? AND d.model = ? AND c.nvrtc = ? AND c.driver "
      "= ? AND "
      "c.generator = ? AND r.name = ? AND r.json = ? ORDER BY f.template_name, f.rule",
      [&refusals](const Statement& row) {
        refusals.push_back({row.text(0), row.text(1), row.text(2), row.integer(3)});
        return Status();
      },
      key.op.identity, key.problem.dims_text, key.device.uuid, key.device.model, key.toolchain.nvrtc, key.toolchain.driver,
      key.toolchain.generator, key.protocol.name, key.protocol.json));
  return refusals;
}

}  // namespace kw::db
