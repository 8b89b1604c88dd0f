// The rules of a match: kinds, their order, protocols, names of ops.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/catch.h"
#include "tests/db/records.h"
#include "tuner/match/match.h"

using namespace kw;
using namespace kw::tuner;
using kw::db::test::make_record;

namespace {

struct Given {
  double median_us = 10, distance = 0, modelled_us = 0;
  bool is_same_problem = false, is_same_device = true, is_predicted = false;
  std::size_t place = 0;
};
MatchCandidate candidate(const Given& given) {
  MatchCandidate made;
  made.row = {make_record(1, given.median_us), given.is_same_problem, given.is_same_device};
  if (given.is_predicted) made.row.record.trial.status = TrialStatus::kPredicted;
  made.distance = given.distance;
  made.modelled_us = given.modelled_us;
  made.place = given.place;
  return made;
}

Problem problem(const std::string& text) { return *problem_from_text(text); }

}  // namespace

TEST_CASE("a match is exact, near within a factor of two, modelled beyond it or when predicted, or another device's") {
  CHECK(kind_of(candidate({.is_same_problem = true})) == MatchKind::kExact);
  CHECK(kind_of(candidate({.distance = 1})) == MatchKind::kNear);
  CHECK(kind_of(candidate({.distance = 1.01})) == MatchKind::kModelled);
  CHECK(kind_of(candidate({.is_same_problem = true, .is_predicted = true})) == MatchKind::kModelled);
  CHECK(kind_of(candidate({.is_same_problem = true, .is_same_device = false})) == MatchKind::kOtherDevice);
}

TEST_CASE("kinds go before times, the database's order decides among exact rows, the distance among near ones") {
  CHECK(is_better(candidate({.median_us = 90, .is_same_problem = true}), candidate({.median_us = 1, .distance = 0.5})));
  CHECK(is_better(candidate({.median_us = 10.05, .is_same_problem = true, .place = 0}),
                  candidate({.median_us = 10, .is_same_problem = true, .place = 1})));
  CHECK(is_better(candidate({.median_us = 90, .distance = 0.2}), candidate({.median_us = 1, .distance = 0.5})));
  CHECK(is_better(candidate({.median_us = 1, .distance = 0.5}), candidate({.median_us = 2, .distance = 0.5})));
}

TEST_CASE("the model decides among far rows; without it the distance, then the database's order") {
  CHECK(is_better(candidate({.distance = 9, .modelled_us = 5}), candidate({.distance = 3, .modelled_us = 6})));
  CHECK(is_better(candidate({.distance = 9, .modelled_us = 5}), candidate({.distance = 3})));
  CHECK(is_better(candidate({.distance = 3}), candidate({.distance = 9})));
  CHECK(is_better(candidate({.distance = 3, .place = 1}), candidate({.distance = 3, .place = 2})));
  CHECK_THAT(explain_match(candidate({.distance = 3})), contains_text("chosen by its distance"));
  CHECK_THAT(explain_match(candidate({.distance = 3, .modelled_us = 5})), contains_text("chosen by the model"));
}

TEST_CASE("the distance of two problems is the largest ratio of a dim, and infinite when dims differ") {
  CHECK(problem_distance(problem("K=64,M=128"), problem("K=64,M=128")) == 0);
  CHECK(problem_distance(problem("K=64,M=128"), problem("K=16,M=64")) == Approx(2));
  CHECK(std::isinf(problem_distance(problem("K=64"), problem("M=64"))));
  CHECK(std::isinf(problem_distance(problem("K=0"), problem("K=64"))));
}

TEST_CASE("rows of an early rung stay only where the full protocol has none, predictions always") {
  const auto row = [](const std::string& protocol, TrialStatus status) {
    db::TrialRecord record = make_record(1);
    record.key.protocol.name = protocol;
    record.trial.status = status;
    return db::QueryCandidate{record, true, true};
  };
  std::vector<db::QueryCandidate> rows = {row("v1-cold-early", TrialStatus::kOk), row("v1-warm", TrialStatus::kOk),
                                          row("model", TrialStatus::kPredicted)};
  drop_other_protocols(rows, false);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].record.key.protocol.name == "v1-cold-early");
  rows.push_back(row("v1-cold", TrialStatus::kOk));
  drop_other_protocols(rows, false);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].record.key.protocol.name == "model");
  CHECK(rows[1].record.key.protocol.name == "v1-cold");
}

TEST_CASE("an op is found by its name; a wrong one gives the nearest, a shared one the identities") {
  const db::test::TemporaryFolder folder;
  const auto database = db::test::open_or_throw(folder.file("t.db"));
  db::test::record_or_throw(*database, make_record(1));
  CHECK(find_op(*database, "matmul_bias_relu")->identity == make_record(1).key.op.identity);
  const auto unknown = find_op(*database, "matmul_bias_rel");
  CHECK(unknown.error().code == Code::kNotFound);
  CHECK_THAT(unknown.error().message, contains_text("did you mean 'matmul_bias_relu'?"));
  db::TrialRecord other = make_record(2);
  other.key.op.identity = "0123456789abcdef";
  db::test::record_or_throw(*database, other);
  const auto shared = find_op(*database, "matmul_bias_relu");
  CHECK(shared.error().code == Code::kBadInput);
  CHECK_THAT(shared.error().message, contains_text("names 2 ops") && contains_text("0123456789abcdef"));
}
