// The Database of the interface: one connection, one mutex, one transaction a call. The work is in writer, reader, query,
// maintenance and merge.
// SPDX-License-Identifier: Apache-2.0
#include "db/database.h"

#include <mutex>

#include "db/baseline.h"
#include "db/maintenance.h"
#include "db/merge.h"
#include "db/open.h"
#include "db/query.h"
#include "db/reader.h"
#include "db/writer.h"

namespace kw::db {
namespace {

class SqliteDatabase final : public Database {
 public:
  explicit SqliteDatabase(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}

  const std::string& path() const override { return connection_->path(); }

  Result<std::int64_t> record_trial(const TrialRecord& record) override {
    const std::lock_guard lock(mutex_);
    return write_trial(*connection_, record);
  }
  Status record_duel(const DuelRow& duel) override {
    const std::lock_guard lock(mutex_);
    return write_duel(*connection_, duel);
  }
  Status record_refusals(const TrialKey& key, const std::vector<RefusalSummary>& refusals) override {
    const std::lock_guard lock(mutex_);
    return write_refusals(*connection_, key, refusals);
  }

  Result<std::optional<TrialRecord>> find_trial(const TrialKey& key) override {
    return reading([&] { return find_newest(*connection_, key); });
  }
  Result<std::vector<TrialRecord>> trials_of(const TrialKey& key) override {
    return reading([&] { return find_group(*connection_, key); });
  }
  Result<std::optional<TrialRecord>> winner(const TrialKey& key) override {
    return reading([&] { return find_first(*connection_, "winner", key); });
  }
  Result<std::optional<TrialRecord>> predicted_best(const TrialKey& key) override {
    return reading([&] { return find_first(*connection_, "predicted_best", key); });
  }
  Result<TrialRecord> trial(std::int64_t id) override {
    return reading([&] { return read_trial(*connection_, id, Payload::kAll); });
  }
  Result<std::string> cubin_of(std::int64_t trial_id) override {
    return reading([&] { return read_cubin(*connection_, trial_id); });
  }
  Result<std::vector<DuelRow>> duels_of(std::int64_t trial_id) override {
    return reading([&] { return read_duels(*connection_, trial_id); });
  }
  Result<std::vector<QueryCandidate>> candidates(const QueryRequest& request) override {
    return reading([&] { return find_candidates(*connection_, request); });
  }
  Result<std::vector<OpRow>> ops(const std::string& name_or_identity) override {
    return reading([&] { return find_ops(*connection_, name_or_identity); });
  }
  Result<std::vector<TrialRecord>> records_of(const std::string& op_identity, const std::string& variant_id) override {
    return reading([&] { return find_records(*connection_, op_identity, variant_id); });
  }
  Result<std::vector<RefusalSummary>> refusals_of(const TrialKey& key) override {
    return reading([&] { return find_refusals(*connection_, key); });
  }

  Result<std::int64_t> record_baseline(const BaselineRecord& record) override {
    const std::lock_guard lock(mutex_);
    return write_baseline(*connection_, record);
  }
  Result<std::optional<BaselineRecord>> find_baseline(const BaselineKey& key) override {
    return reading([&] { return db::find_baseline(*connection_, key); });
  }
  Result<std::vector<BaselineRecord>> baselines_of(const TrialKey& trial) override {
    return reading([&] { return find_baselines_of(*connection_, trial); });
  }

  Result<DatabaseInfo> info() override {
    return reading([&] { return read_info(*connection_); });
  }
  Result<std::vector<std::string>> check() override {
    return reading([&] { return check_all(*connection_); });
  }
  Result<std::int64_t> merge(const std::string& other_path) override {
    const std::lock_guard lock(mutex_);
    return merge_from(*connection_, other_path);
  }
  Result<std::int64_t> collect_garbage(int keep_best, int keep_days) override {
    const std::lock_guard lock(mutex_);
    return collect_losers(*connection_, keep_best, keep_days);
  }
  Result<std::vector<std::string>> diff(const std::string& other_path) override {
    const std::lock_guard lock(mutex_);
    return diff_with(*connection_, other_path);
  }

 private:
  /// Under the mutex and in one snapshot.
  template <typename Read>
  auto reading(Read read) -> decltype(read()) {
    const std::lock_guard lock(mutex_);
    KW_TRY(const Transaction transaction, Transaction::read(*connection_));
    return read();
  }

  std::mutex mutex_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace

Result<std::unique_ptr<Database>> Database::open(const std::string& path, OpenOptions options) {
  KW_TRY(std::unique_ptr<Connection> connection, open_connection(path, options));
  return std::make_unique<SqliteDatabase>(std::move(connection));
}

}  // namespace kw::db
