// Columns of the view trial_details to a TrialRecord; see reader.h.
// SPDX-License-Identifier: Apache-2.0
#include "db/reader.h"

#include <fmt/format.h>

#include "db/content.h"
#include "db/writer.h"

namespace kw::db {
namespace {

/// Hashes of the texts of a trial, on their way to be read.
struct TextHashes {
  OptionalText source, plan, cubin, log;
};

struct RawTrial {
  TrialRecord record;
  TextHashes hashes;
  std::string status, verify_level;
};

constexpr const char* kSelectTrial =
    "SELECT op_identity, op_name, canonical_text, dims_text, device_uuid, device_model, num_sms, l2_bytes, memory_bytes, nvrtc, "
    "nvrtc_major, "
    "driver, generator, protocol_name, protocol_json, variant_name, template_name, config, arch, source_hash, constraints_json, "
    "predicted_us, "
    "text_hash, plan_hash, cubin_hash, log_hash, binary_key, registers, spill_store_bytes, spill_load_bytes, stack_bytes, "
    "static_smem_bytes, "
    "compile_ms, status, verify_level, reason, samples_us, median_us, p10_us, p90_us, max_error_over_bound, relative_norm_error, is_dirty, "
    "state_json, session, unix_time_s, binary_id FROM trial_details WHERE trial_id = ?";

/// Columns in the order of kSelectTrial, taken from the left.
class Columns {
 public:
  explicit Columns(const Statement& row) : row_(row) {}
  std::string text() { return row_.text(next_++); }
  OptionalText optional_text() { return row_.optional_text(next_++); }
  std::int64_t integer() { return row_.integer(next_++); }
  int small() { return static_cast<int>(integer()); }
  double real() { return row_.real(next_++); }

 private:
  const Statement& row_;
  int next_ = 0;
};

void read_key(Columns& columns, RawTrial& raw) {
  TrialKey& key = raw.record.key;
  key.op.identity = columns.text();
  key.op.name = columns.text();
  key.op.canonical_text = columns.text();
  key.problem.dims_text = columns.text();
  key.device.uuid = columns.text();
  key.device.model = columns.text();
  key.device.num_sms = columns.small();
  key.device.l2_bytes = columns.integer();
  key.device.memory_bytes = columns.integer();
  key.toolchain.nvrtc = columns.text();
  key.toolchain.nvrtc_major = columns.small();
  key.toolchain.driver = columns.text();
  key.toolchain.generator = columns.text();
  key.protocol.name = columns.text();
  key.protocol.json = columns.text();
  key.variant.id = columns.text();
  key.variant.template_name = columns.text();
  key.variant.config = columns.text();
  key.variant.arch = columns.text();
  key.variant.source_hash = columns.text();
  key.variant.constraints_json = columns.text();
  key.variant.predicted_us = columns.real();
}

void read_results(Columns& columns, RawTrial& raw) {
  raw.hashes.source = columns.optional_text();
  raw.hashes.plan = columns.optional_text();
  raw.hashes.cubin = columns.optional_text();
  raw.hashes.log = columns.optional_text();
  BinaryRow& binary = raw.record.binary;
  binary.key = columns.text();
  binary.registers = columns.small();
  binary.spill_store_bytes = columns.small();
  binary.spill_load_bytes = columns.small();
  binary.stack_bytes = columns.small();
  binary.static_smem_bytes = columns.small();
  binary.compile_ms = columns.real();
  raw.status = columns.text();
  raw.verify_level = columns.text();
  TrialRow& trial = raw.record.trial;
  trial.reason = columns.text();
  trial.samples_us = samples_from_text(columns.text());
  trial.median_us = columns.real();
  trial.p10_us = columns.real();
  trial.p90_us = columns.real();
  trial.max_error_over_bound = columns.real();
  trial.relative_norm_error = columns.real();
  trial.is_dirty = columns.integer() != 0;
  trial.state_json = columns.text();
  trial.session = columns.text();
  raw.record.unix_time_s = columns.integer();
  if (columns.integer() == 0) binary.compile_ms = 0;  // no binary at all
}

Error no_trial(const Connection& connection, std::int64_t trial_id) {
  return {Stage::kDatabase, Code::kNotFound, fmt::format("{}: no trial {}", connection.path(), trial_id), {}, {}};
}

Result<std::string> read_content(Connection& connection, const std::string& table, const OptionalText& hash) {
  if (!hash) return std::string();
  std::optional<Result<std::string>> found;
  KW_TRY_VOID(connection.each(
      "SELECT num_bytes, zstd FROM " + table + " WHERE hash = ?",
      [&](const Statement& row) {
        found = decompress(*hash, row.integer(0), row.text(1));
        return Status();
      },
      *hash));
  if (!found)
    return fail(Stage::kDatabase, Code::kBadInput,
                fmt::format("{}: {} {} is missing: run `kernelwright db check`", connection.path(), table, *hash));
  if (!*found)
    return fail(Stage::kDatabase, Code::kBadInput, fmt::format("{}: damaged database: {}", connection.path(), found->error().message));
  return std::move(**found);
}

Status read_texts(Connection& connection, RawTrial& raw, Payload payload) {
  KW_TRY(raw.record.key.variant.plan_json, read_content(connection, "blob", raw.hashes.plan));
  if (payload == Payload::kPlanOnly) return {};
  KW_TRY(raw.record.key.variant.source, read_content(connection, "source_text", raw.hashes.source));
  KW_TRY(raw.record.binary.cubin, read_content(connection, "blob", raw.hashes.cubin));
  KW_TRY(raw.record.binary.log, read_content(connection, "blob", raw.hashes.log));
  return {};
}

}  // namespace

Result<TrialRecord> read_trial(Connection& connection, std::int64_t trial_id, Payload payload) {
  std::optional<RawTrial> raw;
  KW_TRY_VOID(connection.each(
      kSelectTrial,
      [&raw](const Statement& row) {
        raw.emplace();
        Columns columns(row);
        read_key(columns, *raw);
        read_results(columns, *raw);
        return Status();
      },
      trial_id));
  if (!raw) return fail(no_trial(connection, trial_id));
  const auto status = trial_status_from_text(raw->status);
  const auto level = verify_level_from_text(raw->verify_level);
  if (!status || !level) {
    return fail(
        Stage::kDatabase, Code::kBadInput,
        fmt::format("{}: trial {}: status '{}' with level '{}' is unknown", connection.path(), trial_id, raw->status, raw->verify_level));
  }
  raw->record.trial.status = *status;
  raw->record.trial.verify_level = *level;
  raw->record.id = trial_id;
  KW_TRY_VOID(read_texts(connection, *raw, payload));
  return std::move(raw->record);
}

Result<std::string> read_cubin(Connection& connection, std::int64_t trial_id) {
  std::optional<OptionalText> hash;
  KW_TRY_VOID(connection.each(
      "SELECT b.cubin_hash FROM trial AS t LEFT JOIN binary AS b ON b.binary_id = t.binary_id WHERE t.trial_id = ?",
      [&hash](const Statement& row) {
        hash = row.optional_text(0);
        return Status();
      },
      trial_id));
  if (!hash) return fail(no_trial(connection, trial_id));
  return read_content(connection, "blob", *hash);
}

Result<std::vector<DuelRow>> read_duels(Connection& connection, std::int64_t trial_id) {
  std::vector<DuelRow> duels;
  KW_TRY_VOID(connection.each(
      "SELECT trial_a, trial_b, a_us, b_us, ratio_median, ratio_low, ratio_high FROM duel WHERE ?1 IN (trial_a, trial_b) ORDER BY duel_id",
      [&duels](const Statement& row) {
        duels.push_back({row.integer(0), row.integer(1), samples_from_text(row.text(2)), samples_from_text(row.text(3)), row.real(4),
                         row.real(5), row.real(6)});
        return Status();
      },
      trial_id));
  return duels;
}

}  // namespace kw::db
