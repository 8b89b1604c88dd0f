// One transaction per record. Texts are compressed before the write lock is taken, so that writers wait little for each other.
// SPDX-License-Identifier: Apache-2.0
#include "db/writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <limits>

#include <fmt/format.h>

#include "db/content.h"
#include "db/natural_keys.h"
#include "generator/base/hash.h"

namespace kw::db {
namespace {

std::string number_text(double value) {
  if (std::isnan(value)) return "null";
  if (std::isinf(value)) return value > 0 ? "1e999" : "-1e999";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  return std::string(text, end);
}

/// A text on its way into `source_text` or `blob`; compressed unless it is there already.
struct PendingContent {
  std::string table;
  std::string_view plain;
  Content content;
};

Result<bool> is_stored(Connection& connection, const PendingContent& pending) {
  KW_TRY(const auto found, connection.integer("SELECT 1 FROM " + pending.table + " WHERE hash = ?", pending.content.hash));
  return found.has_value();
}

Result<PendingContent> prepare_content(Connection& connection, std::string table, std::string_view plain) {
  PendingContent pending{std::move(table), plain, {hash_hex(plain), static_cast<std::int64_t>(plain.size()), {}}};
  KW_TRY(const bool is_there, is_stored(connection, pending));
  if (!is_there) {
    KW_TRY(pending.content, compress(plain));
  }
  return pending;
}

Status put_content(Connection& connection, PendingContent& pending) {
  KW_TRY(const bool is_there, is_stored(connection, pending));
  if (is_there) return {};
  if (pending.content.zstd.empty()) {  // garbage collection took it since prepare_content
    KW_TRY(pending.content, compress(pending.plain));
  }
  return connection.run("INSERT INTO " + pending.table + " (hash, num_bytes, zstd) VALUES (?, ?, ?)", pending.content.hash,
                        pending.content.num_bytes, Bytes{pending.content.zstd});
}

struct PendingTexts {
  std::optional<PendingContent> source, plan, cubin, log;
};

Result<PendingTexts> prepare_texts(Connection& connection, const TrialRecord& record) {
  PendingTexts texts;
  KW_TRY(texts.plan, prepare_content(connection, "blob", record.key.variant.plan_json));
  if (!record.key.variant.source.empty()) {
    KW_TRY(texts.source, prepare_content(connection, "source_text", record.key.variant.source));
  }
  if (!record.binary.cubin.empty()) {
    KW_TRY(texts.cubin, prepare_content(connection, "blob", record.binary.cubin));
  }
  if (!record.binary.log.empty()) {
    KW_TRY(texts.log, prepare_content(connection, "blob", record.binary.log));
  }
  return texts;
}

OptionalText hash_of(const std::optional<PendingContent>& content) {
  return content ? OptionalText(content->content.hash) : OptionalText();
}

struct GroupIds {
  std::int64_t problem = 0, device = 0, toolchain = 0, protocol = 0;
};

Result<GroupIds> group_ids_of(Connection& connection, const TrialKey& key) {
  GroupIds ids;
  KW_TRY(ids.problem, problem_id_of(connection, key.op, key.problem));
  KW_TRY(ids.device, device_id_of(connection, key.device));
  const ToolchainRow& toolchain = key.toolchain;
  KW_TRY(ids.toolchain,
         id_of(connection, "SELECT toolchain_id FROM toolchain WHERE nvrtc = ? AND nvrtc_major = ? AND driver = ? AND generator = ?",
               "INSERT INTO toolchain (nvrtc, nvrtc_major, driver, generator) VALUES (?, ?, ?, ?)", toolchain.nvrtc, toolchain.nvrtc_major,
               toolchain.driver, toolchain.generator));
  KW_TRY(ids.protocol, protocol_id_of(connection, key.protocol));
  return ids;
}

Result<std::int64_t> variant_id_of(Connection& connection, const VariantRow& variant, PendingTexts& texts) {
  KW_TRY_VOID(put_content(connection, *texts.plan));
  if (texts.source) KW_TRY_VOID(put_content(connection, *texts.source));
  KW_TRY(
      const std::int64_t id,
      id_of(
          connection,
          "SELECT variant_id FROM variant WHERE name = ? AND template_name = ? AND config = ? AND arch = ? AND source_hash = ? AND "
          "plan_hash = ? AND constraints_json = ?",
          "INSERT INTO variant (name, template_name, config, arch, source_hash, plan_hash, constraints_json) VALUES (?, ?, ?, ?, ?, ?, ?)",
          variant.id, variant.template_name, variant.config, variant.arch, source_hash_of(variant), texts.plan->content.hash,
          variant.constraints_json));
  if (texts.source) {
    KW_TRY_VOID(
        connection.run("UPDATE variant SET text_hash = ? WHERE variant_id = ? AND text_hash IS NULL", texts.source->content.hash, id));
  }
  return id;
}

/// None where the variant never met the compiler.
Result<std::optional<std::int64_t>> binary_id_of(Connection& connection, const BinaryRow& binary, PendingTexts& texts) {
  if (binary.key.empty() && !texts.cubin && !texts.log) return std::optional<std::int64_t>();
  if (texts.cubin) KW_TRY_VOID(put_content(connection, *texts.cubin));
  if (texts.log) KW_TRY_VOID(put_content(connection, *texts.log));
  if (!binary.key.empty()) {
    KW_TRY(const auto found, connection.integer("SELECT binary_id FROM binary WHERE key = ? AND key <> ''", binary.key));
    if (found) {
      // Brings back what garbage collection took.
      KW_TRY_VOID(
          connection.run("UPDATE binary SET cubin_hash = coalesce(cubin_hash, ?), log_hash = coalesce(log_hash, ?) WHERE binary_id = ?",
                         hash_of(texts.cubin), hash_of(texts.log), *found));
      return found;
    }
  }
  KW_TRY_VOID(
      connection.run("INSERT INTO binary (key, cubin_hash, log_hash, registers, spill_store_bytes, spill_load_bytes, stack_bytes, "
                     "static_smem_bytes, compile_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                     binary.key, hash_of(texts.cubin), hash_of(texts.log), binary.registers, binary.spill_store_bytes,
                     binary.spill_load_bytes, binary.stack_bytes, binary.static_smem_bytes, binary.compile_ms));
  return std::optional<std::int64_t>(connection.last_insert_id());
}

Result<std::int64_t> insert_trial(Connection& connection, const TrialRecord& record, PendingTexts& texts, const std::string& key) {
  KW_TRY(const GroupIds ids, group_ids_of(connection, record.key));
  KW_TRY(const std::int64_t variant_id, variant_id_of(connection, record.key.variant, texts));
  KW_TRY(const std::optional<std::int64_t> binary_id, binary_id_of(connection, record.binary, texts));
  const TrialRow& trial = record.trial;
  KW_TRY_VOID(connection.run(
      "INSERT INTO trial (content_key, problem_id, device_id, toolchain_id, protocol_id, variant_id, binary_id, unix_time_s, status, "
      "verify_level, reason, predicted_us, samples_us, median_us, p10_us, p90_us, max_error_over_bound, relative_norm_error, is_dirty, "
      "state_json, session) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      key, ids.problem, ids.device, ids.toolchain, ids.protocol, variant_id, binary_id, record.unix_time_s, to_text(trial.status),
      to_text(trial.verify_level), trial.reason, record.key.variant.predicted_us, samples_text(trial.samples_us), trial.median_us,
      trial.p10_us, trial.p90_us, trial.max_error_over_bound, trial.relative_norm_error, trial.is_dirty, trial.state_json, trial.session));
  return connection.last_insert_id();
}

Status check_trial(const Connection& connection, const TrialRecord& record) {
  if (record.key.op.identity.empty()) {
    return fail(Stage::kDatabase, Code::kBadInput, fmt::format("{}: a trial needs the identity of its op", connection.path()));
  }
  if (record.trial.status == TrialStatus::kOk && !(record.trial.median_us > 0)) {
    return fail(Stage::kDatabase, Code::kBadInput,
                fmt::format("{}: trial of {}: status ok with median time {} us: must be above 0", connection.path(), record.key.variant.id,
                            record.trial.median_us));
  }
  return {};
}

}  // namespace

std::string source_hash_of(const VariantRow& variant) {
  return variant.source_hash.empty() && !variant.source.empty() ? hash_hex(variant.source) : variant.source_hash;
}

std::string samples_text(const std::vector<double>& samples) {
  std::string text = "[";
  for (const double sample : samples) text += (text.size() > 1 ? "," : "") + number_text(sample);
  return text + "]";
}

std::vector<double> samples_from_text(const std::string& text) {
  std::vector<double> samples;
  std::size_t begin = 1;
  while (begin + 1 < text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size() - 1);
    double value = std::numeric_limits<double>::quiet_NaN();
    const auto result = std::from_chars(text.data() + begin, text.data() + end, value);
    if (result.ec == std::errc::result_out_of_range) {
      value = text[begin] == '-' ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    }
    samples.push_back(value);
    begin = end + 1;
  }
  return samples;
}

std::string content_key(const TrialRecord& record) {
  const TrialKey& key = record.key;
  const TrialRow& trial = record.trial;
  KeyHasher hasher;
  hasher.add("op", key.op.identity).add("problem", key.problem.dims_text);
  hasher.add("uuid", key.device.uuid).add("model", key.device.model).add("sms", std::to_string(key.device.num_sms));
  hasher.add("l2", std::to_string(key.device.l2_bytes)).add("memory", std::to_string(key.device.memory_bytes));
  hasher.add("nvrtc", key.toolchain.nvrtc).add("major", std::to_string(key.toolchain.nvrtc_major)).add("driver", key.toolchain.driver);
  hasher.add("generator", key.toolchain.generator).add("protocol", key.protocol.name).add("protocol_json", key.protocol.json);
  hasher.add("variant", key.variant.id).add("template", key.variant.template_name).add("config", key.variant.config);
  hasher.add("arch", key.variant.arch).add("source", source_hash_of(key.variant)).add("plan", key.variant.plan_json);
  hasher.add("constraints", key.variant.constraints_json).add("predicted", number_text(key.variant.predicted_us));
  hasher.add("binary", record.binary.key).add("log", record.binary.key.empty() ? record.binary.log : "");
  hasher.add("time", std::to_string(record.unix_time_s)).add("status", to_text(trial.status)).add("level", to_text(trial.verify_level));
  hasher.add("reason", trial.reason).add("samples", samples_text(trial.samples_us));
  hasher.add("times", samples_text({trial.median_us, trial.p10_us, trial.p90_us, trial.max_error_over_bound, trial.relative_norm_error}));
  hasher.add("dirty", trial.is_dirty ? "1" : "0").add("state", trial.state_json).add("session", trial.session);
  return hasher.hex();
}

Result<std::int64_t> write_trial(Connection& connection, const TrialRecord& record) {
  KW_TRY_VOID(check_trial(connection, record));
  TrialRecord dated;
  const TrialRecord* stored = &record;
  if (record.unix_time_s == 0) {
    dated = record;
    dated.unix_time_s = static_cast<std::int64_t>(std::time(nullptr));
    stored = &dated;
  }
  const std::string key = content_key(*stored);
  KW_TRY(PendingTexts texts, prepare_texts(connection, *stored));
  KW_TRY(Transaction transaction, Transaction::write(connection));
  KW_TRY(const auto found, connection.integer("SELECT trial_id FROM trial WHERE content_key = ?", key));
  if (found) return *found;
  KW_TRY(const std::int64_t id, insert_trial(connection, *stored, texts, key));
  KW_TRY_VOID(transaction.commit());
  return id;
}

Status write_duel(Connection& connection, const DuelRow& duel) {
  const std::string a_us = samples_text(duel.a_us), b_us = samples_text(duel.b_us);
  KW_TRY(Transaction transaction, Transaction::write(connection));
  KeyHasher hasher;
  for (const std::int64_t trial : {duel.trial_a, duel.trial_b}) {
    KW_TRY(const auto key, connection.text("SELECT content_key FROM trial WHERE trial_id = ?", trial));
    if (!key) {
      return fail(Stage::kDatabase, Code::kBadInput,
                  fmt::format("{}: a duel names trial {}, which is not stored", connection.path(), trial));
    }
    hasher.add("trial", *key);
  }
  hasher.add("a", a_us).add("b", b_us);
  KW_TRY_VOID(
      connection.run("INSERT INTO duel (content_key, trial_a, trial_b, a_us, b_us, ratio_median, ratio_low, ratio_high) "
                     "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                     hasher.hex(), duel.trial_a, duel.trial_b, a_us, b_us, duel.ratio_median, duel.ratio_low, duel.ratio_high));
  return transaction.commit();
}

Status write_refusals(Connection& connection, const TrialKey& key, const std::vector<RefusalSummary>& refusals) {
  KW_TRY(Transaction transaction, Transaction::write(connection));
  KW_TRY(const GroupIds ids, group_ids_of(connection, key));
  for (const RefusalSummary& refusal : refusals) {
    KW_TRY_VOID(connection.run(
        "DELETE FROM refusal WHERE problem_id = ? AND device_id = ? AND toolchain_id = ? AND protocol_id = ? AND template_name = ?",
        ids.problem, ids.device, ids.toolchain, ids.protocol, refusal.template_name));
  }
  const auto now_s = static_cast<std::int64_t>(std::time(nullptr));
  for (const RefusalSummary& refusal : refusals) {
    KW_TRY_VOID(connection.run(
        "INSERT INTO refusal (problem_id, device_id, toolchain_id, protocol_id, template_name, rule, example, count, unix_time_s) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (problem_id, device_id, toolchain_id, protocol_id, template_name, rule) "
        "DO UPDATE SET count = count + excluded.count",
        ids.problem, ids.device, ids.toolchain, ids.protocol, refusal.template_name, refusal.rule, refusal.example, refusal.count, now_s));
  }
  return transaction.commit();
}

}  // namespace kw::db
