// Check, merge, diff and garbage collection.
// SPDX-License-Identifier: Apache-2.0
#include <ctime>

#include "db/schema.h"
#include "db/sqlite.h"
#include "tests/catch.h"
#include "tests/db/records.h"

using namespace kw;
using namespace kw::db;
using namespace kw::db::test;

namespace {

void execute(const std::string& path, const std::string& sql) {
  auto connection = Connection::open(path, {});
  REQUIRE(connection);
  REQUIRE((*connection)->execute(sql));
}

std::string first_finding(const std::string& path) {
  const auto findings = open_or_throw(path)->check();
  REQUIRE(findings);
  return findings->empty() ? "" : findings->front();
}

TrialRecord failed_record(int number) {
  TrialRecord record = make_record(number, 0);
  record.trial.status = TrialStatus::kCompileFailed;
  record.trial.verify_level = VerifyLevel::kNone;
  record.binary = {};
  record.binary.log = "error: line " + std::to_string(number);
  return record;
}

/// A database with winners, losers, failures, a duel and refusals.
void fill(const std::string& path, int first, int count) {
  const auto database = open_or_throw(path);
  std::vector<std::int64_t> ids;
  for (int number = first; number < first + count; ++number) {
    ids.push_back(record_or_throw(*database, make_record(number, 10 + number)));
    record_or_throw(*database, failed_record(1000 + number));
  }
  REQUIRE(database->record_duel({ids.front(), ids.back(), {1}, {2}, 2, 1.5, 2.5}));
  REQUIRE(database->record_refusals(group_of(make_record(1)), {{"gemm_simt", "smem_fits", "needs " + std::to_string(first), count}}));
}

}  // namespace

TEST_CASE("check is silent on a sound database and names each kind of fault") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.db");
  fill(path, 1, 4);
  CHECK(first_finding(path).empty());
  const std::string whole = folder.file("whole.db");
  std::filesystem::copy_file(path, whole);
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"UPDATE source_text SET zstd = x'00' WHERE rowid = 1", "source_text: stored content"},
      {"UPDATE blob SET num_bytes = num_bytes + 1 WHERE rowid = 1", "blob: stored content"},
      {"UPDATE source_text SET hash = 'ffffffffffffffffffffffffffffffff' WHERE rowid = 1", "foreign key"},
      {"DELETE FROM problem", "foreign key: "},
      {"UPDATE trial SET median_us = 1 WHERE trial_id = 1", "trial 1: its values are not the ones that were stored"},
      {"UPDATE device SET num_sms = 1", "its values are not the ones that were stored"},
      {"PRAGMA ignore_check_constraints = ON; UPDATE trial SET median_us = 0 WHERE trial_id = 1", "integrity: CHECK constraint failed"},
  };
  for (const auto& [sql, expected] : faults) {
    INFO(sql);
    std::filesystem::copy_file(whole, path, std::filesystem::copy_options::overwrite_existing);
    execute(path, "PRAGMA foreign_keys = OFF;" + sql);
    const std::string found = first_finding(path);
    INFO(found);
    CHECK(found.find(expected) != std::string::npos);
  }
}

TEST_CASE("a text that does not match its hash is never handed out") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.db");
  const TrialRecord record = make_record(1);
  record_or_throw(*open_or_throw(path), record);
  execute(path, "UPDATE source_text SET num_bytes = 5, zstd = x'28b52ffd200529000078787878780a'");
  const auto read = open_or_throw(path)->find_trial(record.key);
  REQUIRE_FALSE(read);
  CHECK(read.error().message.find("damaged database: stored content") != std::string::npos);
}

TEST_CASE("merge copies all rows once, keeps what is here, and a second merge adds nothing") {
  const TemporaryFolder folder;
  const std::string here = folder.file("here.db"), there = folder.file("there.db");
  fill(here, 1, 5);
  fill(there, 4, 6);  // 4 and 5 are in both
  const auto database = open_or_throw(here);
  const auto added = database->merge(there);
  REQUIRE(added);
  CHECK(*added == 8);
  CHECK(database->info()->num_trials == 18);
  CHECK(database->info()->num_variants == 18);
  CHECK(database->check()->empty());
  CHECK(*database->merge(there) == 0);
  CHECK(*database->merge(here) == 0);
  CHECK(database->info()->num_trials == 18);
  CHECK(database->info()->num_binaries == 18);
  const auto merged = database->find_trial(make_record(9, 19).key);
  REQUIRE(merged);
  REQUIRE(merged->has_value());
  CHECK((*merged)->key.variant.source == make_record(9).key.variant.source);
  CHECK((*merged)->binary.cubin == make_record(9).binary.cubin);
  CHECK(database->duels_of((*merged)->id)->size() == 1);
  CHECK((*database->find_trial(failed_record(1009).key))->binary.log == "error: line 1009");
  CHECK(open_or_throw(there)->info()->num_trials == 12);  // only read
}

TEST_CASE("merging both ways names the same winner") {
  const TemporaryFolder folder;
  const std::string a = folder.file("a.db"), b = folder.file("b.db");
  record_or_throw(*open_or_throw(a), make_record(2, 10.0));
  record_or_throw(*open_or_throw(b), make_record(1, 10.05));
  CHECK(open_or_throw(a)->diff(b)->size() == 1);
  REQUIRE(open_or_throw(a)->merge(b));
  REQUIRE(open_or_throw(b)->merge(a));
  CHECK(open_or_throw(a)->diff(b)->empty());
  CHECK((*open_or_throw(a)->winner(group_of(make_record(1))))->key.variant.config == "BLOCK_M=1");
}

TEST_CASE("merge refuses a missing, foreign, newer or damaged database and changes nothing") {
  const TemporaryFolder folder;
  const std::string here = folder.file("here.db"), there = folder.file("there.db");
  fill(here, 1, 2);
  const auto database = open_or_throw(here);
  const auto message = [&] {
    const auto refused = database->merge(there);
    return refused ? std::string() : refused.error().message;
  };
  CHECK(message().find("no such database") != std::string::npos);
  write_file(there, std::string(5000, 'x'));
  CHECK(message().find("not a database") != std::string::npos);
  std::filesystem::remove(there);
  fill(there, 10, 2);
  execute(there, "UPDATE trial SET session = session || 'x' WHERE trial_id = 1");  // no longer what was stored
  CHECK(message().find(there + ": damaged database: trial 1: its values are not the ones that were stored") != std::string::npos);
  execute(there, "UPDATE source_text SET zstd = x'00' WHERE rowid = 2");
  CHECK(message().find("damaged database") != std::string::npos);
  execute(there, "PRAGMA user_version = 99");
  CHECK(message().find("schema version 99 is newer") != std::string::npos);
  CHECK(database->info()->num_trials == 4);
  CHECK(database->check()->empty());
  CHECK(database->record_trial(make_record(50)));
}

TEST_CASE("diff names winners that differ and groups that one side lacks") {
  const TemporaryFolder folder;
  const std::string here = folder.file("here.db"), there = folder.file("there.db");
  TrialRecord only_here = make_record(5, 9);
  only_here.key.problem.dims_text = "K=1,M=1,N=1";
  record_or_throw(*open_or_throw(here), make_record(1, 10));
  record_or_throw(*open_or_throw(here), only_here);
  record_or_throw(*open_or_throw(there), make_record(2, 8));
  const auto lines = open_or_throw(here)->diff(there);
  REQUIRE(lines);
  REQUIRE(lines->size() == 2);
  CHECK(lines->at(0).find("only here: gemm_simt sm_90 BLOCK_M=5 (9.000 us)") != std::string::npos);
  CHECK(lines->at(1).find("here gemm_simt sm_90 BLOCK_M=1 (10.000 us), there gemm_simt sm_90 BLOCK_M=2 (8.000 us)") != std::string::npos);
  CHECK(open_or_throw(here)->diff(here)->empty());
  // The same program under another name has the same winners.
  const std::string renamed = folder.file("renamed.db");
  for (TrialRecord record : {make_record(1, 10), only_here}) {
    record.key.op.name = "another_name";
    record_or_throw(*open_or_throw(renamed), record);
  }
  CHECK(open_or_throw(here)->diff(renamed)->empty());
}

TEST_CASE("garbage collection takes the losers' texts and keeps rows, winners and young trials") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  for (int number = 1; number <= 10; ++number) {
    TrialRecord record = make_record(number, 10 + number);
    for (int line = 0; line < 3000; ++line) record.binary.cubin += std::to_string(line * line * number);
    record_or_throw(*database, record);
  }
  record_or_throw(*database, failed_record(100));
  TrialRecord young = make_record(50, 99);
  young.unix_time_s = static_cast<std::int64_t>(std::time(nullptr));
  record_or_throw(*database, young);
  const std::int64_t bytes_before = database->info()->file_bytes;
  const auto freed = database->collect_garbage(3, 7);
  REQUIRE(freed);
  CHECK(*freed > 7 * 4000);
  CHECK(database->info()->file_bytes < bytes_before - *freed / 2);
  CHECK(database->info()->num_trials == 12);
  CHECK(database->check()->empty());
  for (const int number : {1, 2, 3, 50}) CHECK_FALSE((*database->find_trial(make_record(number).key))->binary.cubin.empty());
  const auto loser = database->find_trial(make_record(4).key);
  CHECK((*loser)->binary.cubin.empty());
  CHECK((*loser)->key.variant.source.empty());
  CHECK((*loser)->key.variant.plan_json == make_record(4).key.variant.plan_json);
  CHECK((*loser)->trial.median_us == 14);
  CHECK((*database->find_trial(failed_record(100).key))->binary.log.empty());
  CHECK(*database->collect_garbage(3, 7) == 0);
  CHECK_FALSE(database->collect_garbage(-1, 7));
  // A new trial of a collected variant brings its texts back.
  TrialRecord again = make_record(4, 12);
  again.unix_time_s += 5;
  record_or_throw(*database, again);
  CHECK((*database->find_trial(again.key))->key.variant.source == again.key.variant.source);
  CHECK_FALSE((*database->find_trial(again.key))->binary.cubin.empty());
}

TEST_CASE("garbage collection that keeps nothing still keeps the winner and the best prediction") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  for (int number = 1; number <= 4; ++number) {
    TrialRecord predicted = make_record(20 + number, 0);
    predicted.trial.status = TrialStatus::kPredicted;
    predicted.trial.median_us = 0;
    predicted.key.variant.predicted_us = 10 - number;
    predicted.key.problem.dims_text = "K=2,M=2,N=2";
    for (const TrialRecord& record : {make_record(number, 10 + number), predicted}) record_or_throw(*database, record);
  }
  REQUIRE(database->collect_garbage(0, 0));
  const auto has_texts = [&](const TrialRecord& record) {
    const auto found = database->trials_of(record.key);
    REQUIRE(found);
    for (const TrialRecord& one : *found)
      if (one.key.variant.config == record.key.variant.config) return !one.key.variant.source.empty() && !one.binary.cubin.empty();
    return false;
  };
  CHECK(has_texts(make_record(1)));
  CHECK_FALSE(has_texts(make_record(2)));
  TrialRecord best = make_record(24), other = make_record(21);
  best.key.problem.dims_text = other.key.problem.dims_text = "K=2,M=2,N=2";
  CHECK(has_texts(best));
  CHECK_FALSE(has_texts(other));
}

TEST_CASE("info counts rows") {
  const TemporaryFolder folder;
  fill(folder.file("t.db"), 1, 3);
  const auto info = open_or_throw(folder.file("t.db"))->info();
  REQUIRE(info);
  CHECK(info->schema_version == builtin_schema().version);
  CHECK(info->num_ops == 1);
  CHECK(info->num_problems == 1);
  CHECK(info->num_variants == 6);
  CHECK(info->num_trials == 6);
  CHECK(info->num_binaries == 6);
  CHECK(info->file_bytes > 4096);
}
