// Round trip of records, and the property that every input of a key flips it.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <set>

#include "db/writer.h"
#include "tests/catch.h"
#include "tests/db/records.h"

using namespace kw;
using namespace kw::db;
using namespace kw::db::test;

namespace {

using Flip = std::pair<const char*, std::function<void(TrialKey&)>>;

std::vector<Flip> key_flips() {
  return {
      {"op.identity", [](TrialKey& key) { key.op.identity = "0123456789abcdef"; }},
      {"op.canonical_text", [](TrialKey& key) { key.op.canonical_text += " "; }},
      {"problem.dims_text", [](TrialKey& key) { key.problem.dims_text = "K=4096,M=1025,N=4096"; }},
      {"device.uuid", [](TrialKey& key) { key.device.uuid = "GPU-2"; }},
      {"device.model", [](TrialKey& key) { key.device.model = "NVIDIA H100"; }},
      {"device.num_sms", [](TrialKey& key) { key.device.num_sms += 1; }},
      {"device.l2_bytes", [](TrialKey& key) { key.device.l2_bytes += 1; }},
      {"device.memory_bytes", [](TrialKey& key) { key.device.memory_bytes += 1; }},
      {"toolchain.nvrtc", [](TrialKey& key) { key.toolchain.nvrtc = "12.8"; }},
      {"toolchain.driver", [](TrialKey& key) { key.toolchain.driver = "570.2"; }},
      {"toolchain.generator", [](TrialKey& key) { key.toolchain.generator = "0.1.1"; }},
      {"toolchain.nvrtc_major", [](TrialKey& key) { key.toolchain.nvrtc_major = 13; }},
      {"protocol.name", [](TrialKey& key) { key.protocol.name = "v1-warm"; }},
      {"protocol.json", [](TrialKey& key) { key.protocol.json = R"({"version":2})"; }},
      {"variant.id", [](TrialKey& key) { key.variant.id += "x"; }},
      {"variant.template_name", [](TrialKey& key) { key.variant.template_name = "gemm_sm80_mma"; }},
      {"variant.config", [](TrialKey& key) { key.variant.config = "BLOCK_M=2"; }},
      {"variant.arch", [](TrialKey& key) { key.variant.arch = "sm_90a"; }},
      {"variant.source_hash", [](TrialKey& key) { key.variant.source_hash[0] = key.variant.source_hash[0] == '0' ? '1' : '0'; }},
      {"variant.plan_json", [](TrialKey& key) { key.variant.plan_json += " "; }},
      {"variant.constraints_json", [](TrialKey& key) { key.variant.constraints_json += " "; }},
  };
}

/// Text that does not compress.
std::string random_text(std::size_t num_bytes) {
  std::mt19937 random(1);
  std::string text(num_bytes, ' ');
  for (char& c : text) c = static_cast<char>(random() & 0xff);
  return text;
}

}  // namespace

TEST_CASE("a trial reads back with every field as it was recorded") {
  const TemporaryFolder folder;
  const TrialRecord record = make_record(1);
  const auto database = open_or_throw(folder.file("t.db"));
  const std::int64_t id = record_or_throw(*database, record);
  const auto read = database->trial(id);
  REQUIRE(read);
  CHECK(content_key(*read) == content_key(record));
  CHECK(read->key.op.name == record.key.op.name);
  CHECK(read->key.op.canonical_text == record.key.op.canonical_text);
  CHECK(read->key.device.memory_bytes == record.key.device.memory_bytes);
  CHECK(read->key.variant.source == record.key.variant.source);
  CHECK(read->key.variant.plan_json == record.key.variant.plan_json);
  CHECK(read->key.variant.predicted_us == record.key.variant.predicted_us);
  CHECK(read->binary.cubin == record.binary.cubin);
  CHECK(database->cubin_of(id) == record.binary.cubin);
  CHECK(database->cubin_of(id + 1).error().message.find(fmt::format("no trial {}", id + 1)) != std::string::npos);
  CHECK(read->binary.log == record.binary.log);
  CHECK(read->binary.registers == 96);
  CHECK(read->binary.spill_load_bytes == 4);
  CHECK(read->binary.stack_bytes == 8);
  CHECK(read->binary.static_smem_bytes == 49152);
  CHECK(read->binary.compile_ms == 812.5);
  CHECK(read->trial.samples_us == record.trial.samples_us);
  CHECK(read->trial.state_json == record.trial.state_json);
  CHECK(read->unix_time_s == record.unix_time_s);
  CHECK(read->id == id);
}

TEST_CASE("every status and level is stored and reads back") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  int number = 0;
  for (const TrialStatus status : all_trial_statuses()) {
    for (const VerifyLevel level : {VerifyLevel::kNone, VerifyLevel::kSimulated, VerifyLevel::kDevice}) {
      TrialRecord record = make_record(++number);
      record.trial.status = status;
      record.trial.verify_level = level;
      const auto read = database->trial(record_or_throw(*database, record));
      REQUIRE(read);
      CHECK(read->trial.status == status);
      CHECK(read->trial.verify_level == level);
    }
  }
}

TEST_CASE("empty texts, texts with zero bytes and numbers that are no numbers survive") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  TrialRecord record;
  record.key.op.identity = "only an identity";
  record.trial.status = TrialStatus::kWrongResult;
  record.trial.reason = std::string("a\0b\xff", 4);
  record.trial.max_error_over_bound = std::numeric_limits<double>::infinity();
  record.trial.relative_norm_error = std::numeric_limits<double>::quiet_NaN();
  record.trial.samples_us = {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity(), 5e-324};
  record.unix_time_s = 7;
  const auto read = database->trial(record_or_throw(*database, record));
  REQUIRE(read);
  CHECK(read->trial.reason == record.trial.reason);
  CHECK(std::isinf(read->trial.max_error_over_bound));
  CHECK(std::isnan(read->trial.relative_norm_error));
  REQUIRE(read->trial.samples_us.size() == 3);
  CHECK(std::isnan(read->trial.samples_us[0]));
  CHECK(read->trial.samples_us[1] == -std::numeric_limits<double>::infinity());
  CHECK(read->trial.samples_us[2] == 5e-324);
  CHECK(content_key(*read) == content_key(record));
}

TEST_CASE("every input of a key flips it") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  const TrialRecord record = make_record(1);
  record_or_throw(*database, record);
  const auto hit = database->find_trial(record.key);
  REQUIRE(hit);
  REQUIRE(hit->has_value());
  std::set<std::string> content_keys{content_key(record)};
  for (const auto& [name, flip] : key_flips()) {
    INFO(name);
    TrialRecord other = record;
    flip(other.key);
    const auto miss = database->find_trial(other.key);
    REQUIRE(miss);
    CHECK_FALSE(miss->has_value());
    if (std::string(name) == "op.canonical_text") continue;  // identity is its hash: such a record is refused, see below
    CHECK(content_keys.insert(content_key(other)).second);
    record_or_throw(*database, other);
    const auto now_hit = database->find_trial(other.key);
    REQUIRE(now_hit);
    CHECK(now_hit->has_value());
  }
}

TEST_CASE("an alias, the text behind a hash and the model's number are no part of the key") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  const TrialRecord record = make_record(1);
  record_or_throw(*database, record);
  TrialKey key = record.key;
  key.op.name = "another_name";
  key.variant.source.clear();
  key.variant.plan_json.clear();
  key.variant.constraints_json.clear();
  key.variant.predicted_us = 99;
  const auto hit = database->find_trial(key);
  REQUIRE(hit);
  REQUIRE(hit->has_value());
  CHECK((*hit)->key.op.name == "another_name");
  CHECK((*hit)->key.variant.source == record.key.variant.source);
}

TEST_CASE("one identity with two programs is refused") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  record_or_throw(*database, make_record(1));
  TrialRecord other = make_record(2);
  other.key.op.canonical_text = "something else";
  const auto refused = database->record_trial(other);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kBadInput);
  CHECK(refused.error().message.find("another canonical program") != std::string::npos);
  CHECK(database->info()->num_trials == 1);
}

TEST_CASE("status ok without a time is refused") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  TrialRecord record = make_record(1, 0);
  CHECK_FALSE(database->record_trial(record));
  record.trial.status = TrialStatus::kHung;
  CHECK(database->record_trial(record));
}

TEST_CASE("the same record twice is one trial, a later one is another and the newest is found") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  TrialRecord record = make_record(1);
  const std::int64_t first = record_or_throw(*database, record);
  CHECK(record_or_throw(*database, record) == first);
  record.trial.status = TrialStatus::kHung;
  record.unix_time_s += 60;
  const std::int64_t second = record_or_throw(*database, record);
  CHECK(second != first);
  record.unix_time_s -= 120;  // arrives last, for example by a merge, but is older
  record_or_throw(*database, record);
  CHECK((*database->find_trial(record.key))->id == second);
  CHECK(database->info()->num_trials == 3);
}

TEST_CASE("equal texts are stored once") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  TrialRecord record = make_record(1);
  record.key.variant.source = random_text(1000000);
  record.key.variant.source_hash = "given by the generator";
  for (int number = 0; number < 5; ++number) {
    record.key.variant.config = "BLOCK_M=" + std::to_string(number);
    record_or_throw(*database, record);
  }
  CHECK(database->info()->num_variants == 5);
  CHECK(database->info()->file_bytes < 2500000);  // file and WAL: two copies of the one text
  CHECK((*database->find_trial(record.key))->key.variant.source == record.key.variant.source);
}

TEST_CASE("duels are kept once and need their trials") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  const std::int64_t a = record_or_throw(*database, make_record(1));
  const std::int64_t b = record_or_throw(*database, make_record(2));
  const DuelRow duel{a, b, {1.5, 1.25}, {1.75, 2}, 1.25, 1.125, 1.5};
  CHECK(database->record_duel(duel));
  CHECK(database->record_duel(duel));
  const auto duels = database->duels_of(b);
  REQUIRE(duels);
  REQUIRE(duels->size() == 1);
  CHECK(duels->front().a_us == duel.a_us);
  CHECK(duels->front().ratio_high == 1.5);
  const Status refused = database->record_duel({a, 777, {}, {}, 1, 1, 1});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("777") != std::string::npos);
}

TEST_CASE("refusals of an enumeration replace the earlier ones of that template") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  const TrialKey group = group_of(make_record(1));
  CHECK(database->record_refusals(group, {{"gemm_simt", "smem_fits", "needs 1", 10}, {"gemm_simt", "threads", "needs 2", 5}}));
  CHECK(database->record_refusals(group, {{"gemm_sm80_mma", "smem_fits", "needs 3", 7}}));
  CHECK(database->record_refusals(group, {{"gemm_simt", "smem_fits", "needs 4", 11}}));
  const auto refusals = database->refusals_of(group);
  REQUIRE(refusals);
  REQUIRE(refusals->size() == 2);
  CHECK(refusals->at(0).template_name == "gemm_simt");
  CHECK(refusals->at(0).count == 11);
  CHECK(refusals->at(0).example == "needs 4");
  CHECK(refusals->at(1).count == 7);
  TrialKey other = group;
  other.problem.dims_text = "K=1";
  CHECK(database->refusals_of(other)->empty());
}
