// Winners, groups and the rows of a query: ties, dirty samples, other devices, predicted rows, names of ops.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/catch.h"
#include "tests/db/records.h"

using namespace kw;
using namespace kw::db;
using namespace kw::db::test;

namespace {

std::string winner_config(Database& database, const TrialRecord& like) {
  const auto winner = database.winner(group_of(like));
  REQUIRE(winner);
  return winner->has_value() ? (*winner)->key.variant.config : "none";
}

std::vector<std::string> configs_of(const Result<std::vector<QueryCandidate>>& candidates) {
  REQUIRE(candidates);
  std::vector<std::string> configs;
  for (const QueryCandidate& candidate : *candidates) configs.push_back(candidate.record.key.variant.config);
  return configs;
}

QueryRequest request_like(const TrialRecord& record) {
  return {.op = record.key.op.name, .dims_text = record.key.problem.dims_text, .device_model = record.key.device.model};
}

}  // namespace

TEST_CASE("the fastest verified trial wins") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  CHECK(winner_config(*database, make_record(1)) == "none");
  record_or_throw(*database, make_record(1, 12));
  record_or_throw(*database, make_record(2, 10));
  record_or_throw(*database, make_record(3, 14));
  CHECK(winner_config(*database, make_record(1)) == "BLOCK_M=2");
}

TEST_CASE("times within one per cent are a tie that the smaller variant text wins, in any order of recording") {
  for (const bool is_reversed : {false, true}) {
    const TemporaryFolder folder;
    const auto database = open_or_throw(folder.file("t.db"));
    std::vector<TrialRecord> records{make_record(1, 10.09), make_record(2, 10.0), make_record(3, 10.05), make_record(0, 10.11)};
    if (is_reversed) std::reverse(records.begin(), records.end());
    for (const TrialRecord& record : records) record_or_throw(*database, record);
    CHECK(winner_config(*database, make_record(1)) == "BLOCK_M=1");
  }
}

TEST_CASE("a dirty trial wins only where there is no clean one") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  TrialRecord dirty = make_record(1, 5);
  dirty.trial.is_dirty = true;
  record_or_throw(*database, dirty);
  CHECK(winner_config(*database, dirty) == "BLOCK_M=1");
  record_or_throw(*database, make_record(2, 9));
  CHECK(winner_config(*database, dirty) == "BLOCK_M=2");
}

TEST_CASE("trials that are not verified on a device never win") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  int number = 10;
  for (const TrialStatus status : all_trial_statuses()) {
    TrialRecord record = make_record(++number, 1);
    record.trial.status = status;
    record.trial.verify_level = status == TrialStatus::kOk ? VerifyLevel::kSimulated : VerifyLevel::kDevice;
    record_or_throw(*database, record);
  }
  CHECK(winner_config(*database, make_record(1)) == "none");
  const auto predicted = database->predicted_best(group_of(make_record(1)));
  REQUIRE(predicted);
  REQUIRE(predicted->has_value());
  CHECK((*predicted)->trial.status == TrialStatus::kPredicted);
}

TEST_CASE("a later trial of the same variant supersedes its earlier time") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  record_or_throw(*database, make_record(2, 11));
  TrialRecord lucky = make_record(1, 8);
  record_or_throw(*database, lucky);
  CHECK(winner_config(*database, lucky) == "BLOCK_M=1");
  lucky = make_record(1, 13);
  lucky.unix_time_s += 1;
  record_or_throw(*database, lucky);
  CHECK(winner_config(*database, lucky) == "BLOCK_M=2");
}

TEST_CASE("winners are apart by problem, device model, toolchain major and protocol") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  const TrialRecord base = make_record(1, 10);
  std::vector<TrialRecord> others(4, make_record(2, 5));
  others[0].key.problem.dims_text = "K=1,M=1,N=1";
  others[1].key.device.model = "NVIDIA H100";
  others[2].key.toolchain.nvrtc_major = 13;
  others[3].key.protocol.name = "v1-cold-early";
  record_or_throw(*database, base);
  for (const TrialRecord& other : others) record_or_throw(*database, other);
  CHECK(winner_config(*database, base) == "BLOCK_M=1");
  for (const TrialRecord& other : others) CHECK(winner_config(*database, other) == "BLOCK_M=2");
  // Another GPU of the same model and another minor toolchain are the same group.
  TrialRecord same = make_record(3, 7);
  same.key.device.uuid = "GPU-9";
  same.key.toolchain.nvrtc = "12.4";
  record_or_throw(*database, same);
  CHECK(winner_config(*database, base) == "BLOCK_M=3");
}

TEST_CASE("the trials of a group come fastest first, then predictions, then the rest") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  TrialRecord hung = make_record(4, 0);
  hung.trial.status = TrialStatus::kHung;
  TrialRecord predicted = make_record(5, 0);
  predicted.trial.status = TrialStatus::kPredicted;
  for (const TrialRecord& record : {hung, predicted, make_record(1, 12), make_record(2, 10)}) record_or_throw(*database, record);
  const auto trials = database->trials_of(group_of(hung));
  REQUIRE(trials);
  std::vector<std::string> configs;
  for (const TrialRecord& trial : *trials) configs.push_back(trial.key.variant.config);
  CHECK(configs == std::vector<std::string>{"BLOCK_M=2", "BLOCK_M=1", "BLOCK_M=5", "BLOCK_M=4"});
}

TEST_CASE("a row of another device model comes back only when asked for, and is marked") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  TrialRecord foreign = make_record(1, 5);
  foreign.key.device.model = "NVIDIA A100";
  TrialRecord predicted = make_record(2);
  predicted.trial.status = TrialStatus::kPredicted;
  predicted.key.device = {"none", "none:sm_90", 0, 0, 0};
  record_or_throw(*database, foreign);
  record_or_throw(*database, predicted);
  QueryRequest request = request_like(make_record(1));
  CHECK(configs_of(database->candidates(request)).empty());
  request.device_model = "";  // no GPU here
  CHECK(configs_of(database->candidates(request)) == std::vector<std::string>{"BLOCK_M=2"});
  request.device_model = "none:sm_90";
  CHECK(configs_of(database->candidates(request)) == std::vector<std::string>{"BLOCK_M=2"});
  request.device_model = "none:sm_80";
  CHECK(configs_of(database->candidates(request)).empty());
  request.device_model = "NVIDIA H200";
  request.allows_other_device = true;
  const auto both = database->candidates(request);
  CHECK(configs_of(both) == std::vector<std::string>{"BLOCK_M=1", "BLOCK_M=2"});
  CHECK_FALSE(both->front().is_same_device);
  request.device_model = "NVIDIA A100";
  CHECK(database->candidates(request)->front().is_same_device);
}

TEST_CASE("rows of the asked problem come first, then other problems, winners before losers") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  TrialRecord elsewhere = make_record(3, 1);
  elsewhere.key.problem.dims_text = "K=4096,M=2048,N=4096";
  TrialRecord predicted = make_record(4);
  predicted.trial.status = TrialStatus::kPredicted;
  TrialRecord failed = make_record(5, 1);
  failed.trial.status = TrialStatus::kWrongResult;
  for (const TrialRecord& record : {elsewhere, predicted, failed, make_record(1, 12), make_record(2, 10)})
    record_or_throw(*database, record);
  const auto candidates = database->candidates(request_like(make_record(1)));
  CHECK(configs_of(candidates) == std::vector<std::string>{"BLOCK_M=2", "BLOCK_M=1", "BLOCK_M=4", "BLOCK_M=3"});
  CHECK(candidates->front().is_same_problem);
  CHECK_FALSE(candidates->back().is_same_problem);
  CHECK(candidates->front().record.binary.cubin == make_record(2).binary.cubin);
}

TEST_CASE("a query keeps the best of every set of problem constraints") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  for (int number = 0; number < 20; ++number) record_or_throw(*database, make_record(100 + number, 10 + number));
  TrialRecord slow_but_general = make_record(1, 500);
  slow_but_general.key.variant.constraints_json = "[]";
  record_or_throw(*database, slow_but_general);
  QueryRequest request = request_like(slow_but_general);
  request.max_per_class = 2;
  request.has_payload = false;
  const auto candidates = database->candidates(request);
  CHECK(configs_of(candidates) == std::vector<std::string>{"BLOCK_M=100", "BLOCK_M=101", "BLOCK_M=1"});
  CHECK(candidates->front().record.key.variant.source.empty());
  CHECK_FALSE(candidates->front().record.key.variant.plan_json.empty());
}

TEST_CASE("a query of the winners reads one row of the problem and no other problem's") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  TrialRecord elsewhere = make_record(3, 1);
  elsewhere.key.problem.dims_text = "K=4096,M=2048,N=4096";
  for (const TrialRecord& record : {elsewhere, make_record(1, 12), make_record(2, 10)}) record_or_throw(*database, record);
  QueryRequest request = request_like(make_record(1));
  request.only_winners = true;
  CHECK(configs_of(database->candidates(request)) == std::vector<std::string>{"BLOCK_M=2"});
  TrialRecord early = make_record(4, 9);
  early.key.protocol.name = "v1-cold-early";
  record_or_throw(*database, early);
  CHECK(configs_of(database->candidates(request)) == std::vector<std::string>{"BLOCK_M=2", "BLOCK_M=4"});
  request.protocol_name = "v1-cold-early";
  CHECK(configs_of(database->candidates(request)) == std::vector<std::string>{"BLOCK_M=4"});
  request.dims_text = "K=1,M=1,N=1";
  CHECK(database->candidates(request)->empty());
}

TEST_CASE("a query of one protocol leaves the early rungs out") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  TrialRecord early = make_record(1, 1);
  early.key.protocol.name = "v1-cold-early";
  record_or_throw(*database, early);
  record_or_throw(*database, make_record(2, 10));
  QueryRequest request = request_like(early);
  CHECK(configs_of(database->candidates(request)) == std::vector<std::string>{"BLOCK_M=2", "BLOCK_M=1"});
  request.protocol_name = "v1-cold";
  CHECK(configs_of(database->candidates(request)) == std::vector<std::string>{"BLOCK_M=2"});
}

TEST_CASE("an op is found by name, by alias, by identity and by a unique prefix of it") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  TrialRecord record = make_record(1);
  record.key.op.identity = "abcdef0123456789";
  record_or_throw(*database, record);
  record.key.op.name = "linear_relu";
  record.key.variant.config = "BLOCK_M=9";
  record_or_throw(*database, record);
  QueryRequest request = request_like(record);
  for (const std::string op : {"matmul_bias_relu", "linear_relu", "abcdef0123456789", "abcdef01"}) {
    request.op = op;
    INFO(op);
    CHECK(configs_of(database->candidates(request)).size() == 2);
  }
  CHECK(database->ops("")->size() == 2);
  CHECK(database->ops("abcdef01")->size() == 2);
  CHECK(database->ops("linear_relu")->size() == 1);
  CHECK(database->ops("abcdef0")->empty());  // too short a prefix
  request.op = "matmul_bias_rel";
  const auto unknown = database->candidates(request);
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == Code::kNotFound);
  CHECK(unknown.error().message.find("did you mean 'matmul_bias_relu'") != std::string::npos);
}

TEST_CASE("a name or a prefix that means two programs is refused with both identities") {
  const TemporaryFolder folder;
  const auto database = open_or_throw(folder.file("t.db"));
  for (const std::string identity : {"abcdef0123", "abcdef0199"}) {
    TrialRecord record = make_record(1);
    record.key.op.identity = identity;
    record_or_throw(*database, record);
  }
  for (const std::string op : {"matmul_bias_relu", "abcdef01"}) {
    QueryRequest request = request_like(make_record(1));
    request.op = op;
    const auto refused = database->candidates(request);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Code::kBadInput);
    CHECK(refused.error().message.find("abcdef0123, abcdef0199") != std::string::npos);
  }
}

TEST_CASE("an op keeps the texts of its spec, and its records are found by op or by variant") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.db"), other_path = folder.file("merged.db");
  TrialRecord record = make_record(1);
  record.key.op.spec_json = R"({"x.op.toml":"name"})";
  TrialRecord elsewhere = make_record(2);
  elsewhere.key.op.identity = "another op";
  TrialRecord failed = make_record(3);
  failed.trial.status = TrialStatus::kHung;
  {
    const auto database = open_or_throw(path);
    for (const TrialRecord& each : {record, elsewhere, failed}) record_or_throw(*database, each);
  }
  const auto merged = open_or_throw(other_path);
  REQUIRE(merged->merge(path));
  CHECK(merged->path() == other_path);
  CHECK(merged->ops(record.key.op.identity)->front().spec_json == record.key.op.spec_json);
  CHECK(merged->records_of(record.key.op.identity, "")->size() == 1);
  const auto by_variant = merged->records_of("", elsewhere.key.variant.id);
  REQUIRE(by_variant);
  REQUIRE(by_variant->size() == 1);
  CHECK(by_variant->front().key.variant.source == elsewhere.key.variant.source);
}
