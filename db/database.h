// The tuning database: every trial of every variant, not only winners. SQLite behind one door; the schema is db/schema.sql.
// All values are base types and text: the database knows neither generator nor tuner. Thread-safe by one connection per object.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "generator/base/error.h"
#include "generator/base/status.h"

namespace kw::db {

struct OpRow {
  std::string identity, name, canonical_text;
  std::string spec_json = {};  ///< texts of the spec's files, as first stored: a query and an export need no file
};
/// `dims_text` is Problem::to_text(); alignment class is part of it.
struct ProblemRow {
  std::string dims_text;
};
struct DeviceRow {
  std::string uuid, model;  ///< a machine without a GPU stores uuid "none" and model "none:sm_90"
  int num_sms = 0;
  std::int64_t l2_bytes = 0, memory_bytes = 0;
};
struct ToolchainRow {
  std::string nvrtc, driver, generator;
  int nvrtc_major = 0;
};
struct ProtocolRow {
  std::string name, json;
};
struct VariantRow {
  std::string id, template_name, config, arch;
  std::string source, source_hash;  ///< text; stored once per hash, zstd
  std::string plan_json;
  std::string constraints_json;  ///< problem constraints again, for the query
  double predicted_us = 0;
};
struct BinaryRow {
  std::string key;  ///< empty: not compiled
  std::string cubin;
  int registers = 0, spill_store_bytes = 0, spill_load_bytes = 0, stack_bytes = 0, static_smem_bytes = 0;
  double compile_ms = 0;
  std::string log;
};
struct TrialRow {
  TrialStatus status = TrialStatus::kOk;
  VerifyLevel verify_level = VerifyLevel::kNone;
  std::string reason;  ///< rule that refused, first bad index, compiler's first line
  std::vector<double> samples_us;
  double median_us = 0, p10_us = 0, p90_us = 0;
  double max_error_over_bound = 0, relative_norm_error = 0;
  bool is_dirty = false;
  std::string state_json;  ///< clocks, power, temperature before and after
  std::string session;     ///< command line and start time
};

/// Everything that identifies a trial. Each field is part of the key: a change of any makes another row.
struct TrialKey {
  OpRow op;
  ProblemRow problem;
  DeviceRow device;
  ToolchainRow toolchain;
  ProtocolRow protocol;
  VariantRow variant;
};
struct TrialRecord {
  TrialKey key;
  BinaryRow binary;
  TrialRow trial;
  std::int64_t id = 0;
  std::int64_t unix_time_s = 0;
};

struct DuelRow {
  std::int64_t trial_a = 0, trial_b = 0;
  std::vector<double> a_us, b_us;
  double ratio_median = 0, ratio_low = 0, ratio_high = 0;
};

struct BaselineKey;  // db/baseline.h
struct BaselineRecord;

/// Counts of refused configs of one enumeration, by rule with one example each.
struct RefusalSummary {
  std::string template_name, rule, example;
  std::int64_t count = 0;
};

struct QueryRequest {
  std::string op;            ///< name or identity (a unique prefix of 8 digits and more will do)
  std::string dims_text;     ///< Problem::to_text()
  std::string device_model;  ///< empty: no GPU here, that is the models "none:..." of rows with status predicted
  bool allows_other_device = false;
  std::string protocol_name = {};  ///< empty: rows of every protocol, the early rungs of a search too
  int max_per_class = 4;  ///< rows for each (problem, device model, toolchain major, protocol, constraints): keeps every kind of legality
  bool only_winners = false;  ///< the fastest measured row of this problem alone (one per device model, toolchain major and protocol)
  bool has_payload = true;    ///< false: source and cubin stay empty; Database::cubin_of() brings the code
};
/// Candidates for a query, best class first; the caller checks the problem constraints (the database evaluates nothing).
struct QueryCandidate {
  TrialRecord record;
  bool is_same_problem = false;
  bool is_same_device = false;
};

struct OpenOptions {
  bool is_read_only = false;
  bool creates = true;    ///< the file and its folders, when missing
  bool migrates = false;  ///< a read-only opening too brings an older schema up to date, where the file may be written
  int busy_timeout_ms = 20000;
  std::int64_t max_file_bytes = 0;  ///< quota; beyond it a write fails as on a full disk; 0: none
  /// statfs f_type of a folder; empty: the system call. Tests state another file system.
  std::function<std::int64_t(const std::string& folder)> file_system_magic = {};
};

struct DatabaseInfo {
  int schema_version = 0;
  std::int64_t num_ops = 0, num_problems = 0, num_variants = 0, num_trials = 0, num_binaries = 0, num_baselines = 0, file_bytes = 0;
  std::string journal_mode;
};

class Database {
 public:
  /// Errors: missing (when not created), read-only, not a database, newer schema, corrupted, each named with the path.
  static Result<std::unique_ptr<Database>> open(const std::string& path, OpenOptions options = {});
  virtual ~Database() = default;
  virtual const std::string& path() const = 0;

  /// One transaction. Returns the trial's id. A later trial of the same key supersedes the earlier one in the winner view; both stay.
  /// The same record (key, time, samples, texts) twice is one trial. unix_time_s 0 means now. Errors: disk full, locked, read-only, status
  /// ok without a time; nothing of the trial is stored then.
  virtual Result<std::int64_t> record_trial(const TrialRecord& record) = 0;
  virtual Status record_duel(const DuelRow& duel) = 0;
  /// Replaces the earlier summary of the same key for the templates that are named.
  virtual Status record_refusals(const TrialKey& key_without_variant, const std::vector<RefusalSummary>& refusals) = 0;
  /// Newest trial of this exact key, if any: resume and bans. Every field of every row takes part, except what the design calls an alias
  /// (op.name), what is text of a hash (variant.source) and what depends on the model (variant.predicted_us); an empty plan_json or
  /// constraints_json matches any.
  virtual Result<std::optional<TrialRecord>> find_trial(const TrialKey& key) = 0;
  /// All newest trials of one (op, problem, device model, toolchain major, protocol), fastest first, then the rest.
  virtual Result<std::vector<TrialRecord>> trials_of(const TrialKey& key_without_variant) = 0;
  /// The winner among verified, timed trials of the same group: clean before dirty, ties within 1 % by the smaller variant text.
  virtual Result<std::optional<TrialRecord>> winner(const TrialKey& key_without_variant) = 0;
  /// The model's best among status predicted; never mixed with measured rows.
  virtual Result<std::optional<TrialRecord>> predicted_best(const TrialKey& key_without_variant) = 0;
  /// One trial with all its texts. Error kNotFound.
  virtual Result<TrialRecord> trial(std::int64_t id) = 0;
  /// The code of a trial; empty when it was never compiled or `gc` took it. Error kNotFound when there is no such trial.
  virtual Result<std::string> cubin_of(std::int64_t trial_id) = 0;
  /// The duels of a trial, oldest first.
  virtual Result<std::vector<DuelRow>> duels_of(std::int64_t trial_id) = 0;
  /// Rows with status ok (verified on a device) or predicted: this problem before others, this device before others, ok before predicted,
  /// then winners first. Another device model comes only when asked for. Errors: unknown op (kNotFound, nearest name), a name or prefix
  /// that means several programs (kBadInput).
  virtual Result<std::vector<QueryCandidate>> candidates(const QueryRequest& request) = 0;
  /// Ops whose name or identity matches; all when empty.
  virtual Result<std::vector<OpRow>> ops(const std::string& name_or_identity) = 0;
  /// Newest rows with status ok or predicted of an op (its identity) and of a variant (its id); an empty one means all. At least one is
  /// given.
  virtual Result<std::vector<TrialRecord>> records_of(const std::string& op_identity, const std::string& variant_id) = 0;
  virtual Result<std::vector<RefusalSummary>> refusals_of(const TrialKey& key_without_variant) = 0;

  /// One transaction; the same record twice is one row. Errors: no time, more right algorithms than tried ones.
  virtual Result<std::int64_t> record_baseline(const BaselineRecord& record) = 0;
  virtual Result<std::optional<BaselineRecord>> find_baseline(const BaselineKey& key) = 0;
  /// What a trial is compared with, one row a library.
  virtual Result<std::vector<BaselineRecord>> baselines_of(const TrialKey& trial) = 0;

  virtual Result<DatabaseInfo> info() = 0;
  /// Integrity, foreign keys, sizes of blobs, hashes of sources. Empty: clean; else one line per finding.
  virtual Result<std::vector<std::string>> check() = 0;
  /// Copies all rows of `other` that are not here. Returns the number of trials added.
  virtual Result<std::int64_t> merge(const std::string& other_path) = 0;
  /// Drops cubins, logs and sources of losers older than `keep_days`, keeping the best `keep_best` of each problem. Returns bytes freed.
  virtual Result<std::int64_t> collect_garbage(int keep_best, int keep_days) = 0;
  /// Winners that differ between here and there, one line each, sorted. Empty: the same winners.
  virtual Result<std::vector<std::string>> diff(const std::string& other_path) = 0;
};

/// $KERNELWRIGHT_DB, else $XDG_DATA_HOME/kernelwright/tuning.db, else ~/.local/share/kernelwright/tuning.db. Values are passed in.
std::string default_database_path(const char* kernelwright_db, const char* xdg_data_home, const char* home);

}  // namespace kw::db
