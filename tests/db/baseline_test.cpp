// Times of libraries: stored and found by their whole key, compared with the right trial, merged once, kept by garbage collection.
// SPDX-License-Identifier: Apache-2.0
#include "db/baseline.h"

#include "db/sqlite.h"
#include "tests/catch.h"
#include "tests/db/records.h"

using namespace kw;
using namespace kw::db;
using namespace kw::db::test;

namespace {

std::int64_t store(Database& database, const BaselineRecord& record) {
  const auto id = database.record_baseline(record);
  if (!id) FAIL(id.error().message);
  return *id;
}

std::optional<BaselineRecord> find(Database& database, const BaselineKey& key) {
  const auto found = database.find_baseline(key);
  if (!found) FAIL(found.error().message);
  return *found;
}

}  // namespace

TEST_CASE("a baseline is read back with every field, and the same one twice is one row") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  const BaselineRecord record = make_baseline();
  const std::int64_t id = store(*database, record);
  CHECK(store(*database, record) == id);
  CHECK(database->info()->num_baselines == 1);
  CHECK(database->info()->num_trials == 0);
  const auto found = find(*database, record.key);
  REQUIRE(found);
  CHECK(found->id == id);
  CHECK(found->unix_time_s == record.unix_time_s);
  CHECK(found->key.op.name == "matmul_bias_relu");
  CHECK(found->key.device.memory_bytes == record.key.device.memory_bytes);
  CHECK(found->key.blas_version == "13.0.2");
  CHECK(found->row.algorithm == record.row.algorithm);
  CHECK(found->row.num_tried == 32);
  CHECK(found->row.num_right == 30);
  CHECK(found->row.samples_us == record.row.samples_us);
  CHECK(found->row.median_us == 11.5);
  CHECK(found->row.p10_us == record.row.p10_us);
  CHECK(found->row.p90_us == record.row.p90_us);
  CHECK(found->row.max_error_over_bound == 0.125);
  CHECK(found->row.relative_norm_error == 2e-4);
  CHECK_FALSE(found->row.is_dirty);
  CHECK(found->row.state_json == record.row.state_json);
  CHECK(found->row.session == record.row.session);
  CHECK(database->check()->empty());
}

TEST_CASE("every field of a baseline's key takes part, the op's name does not") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  store(*database, make_baseline());
  const std::vector<std::function<void(BaselineKey&)>> changes = {
      [](BaselineKey& key) { key.op.identity = "ffffffffffffffffffffffffffffffff"; },
      [](BaselineKey& key) { key.op.canonical_text += " "; },
      [](BaselineKey& key) { key.problem.dims_text = "K=1,M=1,N=1"; },
      [](BaselineKey& key) { key.device.uuid = "GPU-2"; },
      [](BaselineKey& key) { key.device.model = "NVIDIA A100"; },
      [](BaselineKey& key) { key.device.num_sms = 1; },
      [](BaselineKey& key) { key.device.l2_bytes = 1; },
      [](BaselineKey& key) { key.device.memory_bytes = 1; },
      [](BaselineKey& key) { key.protocol.name = "v1-warm"; },
      [](BaselineKey& key) { key.protocol.json = "{}"; },
      [](BaselineKey& key) { key.driver = "580.1"; },
      [](BaselineKey& key) { key.blas = "cublas"; },
      [](BaselineKey& key) { key.blas_version = "13.0.3"; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    INFO("change " << i);
    BaselineKey key = make_baseline().key;
    changes[i](key);
    CHECK_FALSE(find(*database, key));
  }
  BaselineKey renamed = make_baseline().key;
  renamed.op.name = "other_name";
  CHECK(find(*database, renamed));
}

TEST_CASE("the newest row of a key counts, and earlier ones stay") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  BaselineRecord later = make_baseline(11);
  later.unix_time_s += 10;
  store(*database, later);
  store(*database, make_baseline(12));
  CHECK(find(*database, later.key)->row.median_us == 11);
  CHECK(database->info()->num_baselines == 2);
}

TEST_CASE("a trial is compared with its own device, driver and protocol, clean rows first, one row a library") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  const TrialKey trial = make_record(1).key;
  const auto compared = [&] {
    const auto rows = database->baselines_of(trial);
    if (!rows) FAIL(rows.error().message);
    return *rows;
  };
  CHECK(compared().empty());
  BaselineRecord warm = make_baseline(1);
  warm.key.protocol.name = "v1-warm";
  store(*database, warm);
  BaselineRecord other_model = make_baseline(2);
  other_model.key.device.model = "NVIDIA A100";
  store(*database, other_model);
  CHECK(compared().empty());
  BaselineRecord other_driver = make_baseline(3);
  other_driver.key.driver = "580.1";
  other_driver.unix_time_s += 100;
  store(*database, other_driver);
  REQUIRE(compared().size() == 1);
  CHECK(compared().front().row.median_us == 3);
  store(*database, make_baseline(4));
  CHECK(compared().front().row.median_us == 4);
  BaselineRecord dirty = make_baseline(5);
  dirty.row.is_dirty = true;
  dirty.unix_time_s += 200;
  store(*database, dirty);
  CHECK(compared().front().row.median_us == 4);
  BaselineRecord other_library = make_baseline(6);
  other_library.key.blas = "other";
  store(*database, other_library);
  CHECK(compared().size() == 2);
}

TEST_CASE("a baseline without a time or a right algorithm is refused and leaves nothing") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  CHECK(database->record_baseline(make_baseline(0)).error().message.find("must be above 0") != std::string::npos);
  BaselineRecord none = make_baseline();
  none.row.num_right = 0;
  CHECK(database->record_baseline(none).error().message.find("0 of 32 algorithms are right") != std::string::npos);
  none = make_baseline();
  none.key.blas.clear();
  CHECK_FALSE(database->record_baseline(none));
  CHECK(database->info()->num_baselines == 0);
  CHECK(database->info()->num_ops == 0);
}

TEST_CASE("a merge copies baselines once, with their keys") {
  const TemporaryFolder folder;
  const std::string there = folder.file("there.db");
  {
    const auto other = open_or_throw(there);
    BaselineRecord unrelated = make_baseline(7);  // so that the ids of the two files differ
    unrelated.key.op = {"ffffffffffffffffffffffffffffffff", "first", "out[i] = 1"};
    store(*other, unrelated);
    store(*other, make_baseline());
  }
  const auto here = open_or_throw(folder.file("here.db"));
  record_or_throw(*here, make_record(1));
  for (int time = 0; time < 2; ++time) {
    REQUIRE(here->merge(there));
    CHECK(here->info()->num_baselines == 2);
    CHECK(here->check()->empty());
  }
  CHECK(find(*here, make_baseline().key)->row.samples_us == make_baseline().row.samples_us);
  CHECK(here->baselines_of(make_record(1).key)->size() == 1);
}

TEST_CASE("garbage collection keeps baselines, and check finds one that was changed") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.db");
  {
    const auto database = open_or_throw(path);
    record_or_throw(*database, make_record(1));
    store(*database, make_baseline());
    REQUIRE(database->collect_garbage(0, 0));
    CHECK(find(*database, make_baseline().key));
    CHECK(database->check()->empty());
  }
  REQUIRE((*Connection::open(path, {}))->execute("UPDATE baseline SET median_us = 5"));
  const auto findings = open_or_throw(path)->check();
  REQUIRE(findings->size() == 1);
  CHECK(findings->front() == "baseline 1: its values are not the ones that were stored (content key differs)");
}
