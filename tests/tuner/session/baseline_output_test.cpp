// What the executable prints of a stored baseline, and how it takes the option: query, explain, tune, doctor.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "db/baseline.h"
#include "tests/catch.h"
#include "tests/cli/sandbox.h"
#include "tests/tuner/session/specs.h"
#include "tuner/session/trial_rows.h"

using namespace kw;
using namespace kw::tuner;
using kw::tests::contains;
using kw::tests::Ran;
using kw::tests::Sandbox;

namespace {

constexpr const char* kModel = "Fake H200";

/// A sandbox whose database has a kernel of the small op with a time of 50 us, measured on kModel.
struct Stored {
  Sandbox sandbox;
  db::TrialRecord trial;
  std::string spec_path = sandbox.path("small.op.toml");

  Stored() {
    const auto spec = kw::tuner::test::load(spec_path, "relu(acc[m,n] + bias[n])");
    Options options;
    options.device = "none";
    options.arch = Arch::kSm80;
    options.database_path = sandbox.path("tuning.db");
    const auto services = Services::create(options);
    REQUIRE(services);
    const Problem problem = *problem_from_text("K=16,M=8,N=24");
    const auto space = rank_problem(*spec, **services, problem);
    REQUIRE(space);
    const auto takes_any_extent = [&](const RankedVariant& variant) {
      return space->factories[variant.factory].info().name.starts_with("gemm");
    };
    const auto found = std::find_if(space->ranked.begin(), space->ranked.end(), takes_any_extent);
    REQUIRE(found != space->ranked.end());
    const RankedVariant& first = *found;
    const auto variant = space->factories[first.factory].emit(first.ranked.config);
    REQUIRE(variant);
    trial.key.op = {spec->identity, spec->program->name, spec->canonical_text, spec->files_json()};
    trial.key.problem = {problem.to_text()};
    trial.key.device = {"GPU-1", kModel, 132, 1 << 20, 1ll << 37};
    trial.key.toolchain = {"13.0", "580.1", "0.1.0", 13};
    trial.key.protocol = protocol_row(Protocol::final_rung());
    trial.key.variant = variant_row(*variant, Arch::kSm80, 49);
    trial.trial.verify_level = VerifyLevel::kDevice;
    trial.trial.samples_us = {50};
    trial.trial.median_us = trial.trial.p10_us = trial.trial.p90_us = 50;
    trial.unix_time_s = 1700000000;
    REQUIRE(database()->record_trial(trial));
  }
  std::unique_ptr<db::Database> database() const { return *db::Database::open(sandbox.path("tuning.db")); }
  void add_baseline(double median_us, const db::ProtocolRow& protocol) const {
    db::BaselineRecord record;
    record.key = {trial.key.op, trial.key.problem, trial.key.device, protocol, trial.key.toolchain.driver, "cublaslt", "13.0.2"};
    record.row.algorithm = "algo 66, tile 20";
    record.row.num_tried = 32;
    record.row.num_right = 31;
    record.row.samples_us = {median_us};
    record.row.median_us = record.row.p10_us = record.row.p90_us = median_us;
    REQUIRE(database()->record_baseline(record));
  }
  Ran query(const std::string& more = "") const {
    return sandbox.run("query small --device none --device-model '" + std::string(kModel) + "' " + more);
  }
  Ran explain(const std::string& more = "") const {
    return sandbox.run("explain --device none --arch sm_80 --device-model '" + std::string(kModel) + "' " + more + " " + spec_path);
  }
};

}  // namespace

TEST_CASE("query and explain print the ratio where a baseline is stored, and nothing where none is") {
  const Stored stored;
  for (const Ran& ran : {stored.query(), stored.explain(), stored.query("--json"), stored.explain("--json")}) {
    INFO(ran.output);
    CHECK(ran.exit_code == 0);
    CHECK_FALSE(contains(ran.output, "cuBLASLt"));
    CHECK_FALSE(contains(ran.output, "baseline"));
    CHECK_FALSE(contains(ran.output, "measured on"));
  }
  Protocol warm = Protocol::final_rung();
  warm.is_cold_l2 = false;
  stored.add_baseline(10, protocol_row(warm));  // of another protocol: never compared
  CHECK_FALSE(contains(stored.query().output, "cuBLASLt"));
  stored.add_baseline(52, stored.trial.key.protocol);
  const Ran query = stored.query();
  INFO(query.output);
  CHECK(contains(query.output,
                 "  baseline 1.04x cuBLASLt (best of 32): 52.00 us (p10 52.00, p90 52.00), version 13.0.2, algo 66, tile 20\n"));
  const Ran explain = stored.explain();
  INFO(explain.output);
  CHECK(contains(explain.output,
                 "\nmeasured on Fake H200\n  50.00 us by " + stored.trial.key.variant.id + ", 1.04x cuBLASLt (best of 32)\n"));
}

TEST_CASE("the ratio is a field of the JSON of query and explain") {
  const Stored stored;
  stored.add_baseline(40, stored.trial.key.protocol);
  const auto query = nlohmann::json::parse(stored.query("--json").output);
  REQUIRE(query.at("baselines").size() == 1);
  const nlohmann::json& baseline = query.at("baselines").at(0);
  CHECK(baseline.at("text") == "0.80x cuBLASLt (best of 32)");
  CHECK(baseline.at("ratio").get<double>() == Approx(0.8));
  CHECK(baseline.at("library") == "cublaslt");
  CHECK(baseline.at("library_version") == "13.0.2");
  CHECK(baseline.at("median_us") == 40.0);
  CHECK(baseline.at("num_tried") == 32);
  CHECK(baseline.at("num_right") == 31);
  const auto explain = nlohmann::json::parse(stored.explain("--json").output);
  CHECK(explain.at(0).at("measured").at("baselines").at(0).at("text") == "0.80x cuBLASLt (best of 32)");
  CHECK(explain.at(0).at("measured").at("median_us") == 50.0);
}

TEST_CASE("a query of another problem tells where the ratio was measured") {
  const Stored stored;
  stored.add_baseline(52, stored.trial.key.protocol);
  const Ran near = stored.query("--arch sm_80 --set M=9");
  INFO(near.output);
  CHECK(contains(near.output, "1.04x cuBLASLt (best of 32) at K=16,M=8,N=24: 52.00 us"));
}

TEST_CASE("explain goes on without a database, and past one that cannot be read") {
  const Stored stored;
  CHECK(stored.explain("--db " + stored.sandbox.path("none.db")).exit_code == 0);
  stored.sandbox.write("text.db", "no database");
  const Ran ran = stored.explain("--db " + stored.sandbox.path("text.db"));
  CHECK(ran.exit_code == 0);
  CHECK(contains(ran.output, "what was measured is not shown: "));
  CHECK(contains(ran.output, "model's ranking"));
}

TEST_CASE("an unknown baseline is bad input") {
  const Stored stored;
  const Ran ran = stored.sandbox.run("tune --device none --baseline cublas " + stored.spec_path);
  CHECK(ran.exit_code == 2);
  CHECK(contains(ran.output, "--baseline cublas: unknown; one of cublaslt"));
}

TEST_CASE("doctor says whether cuBLASLt was found, and where") {
  const Sandbox sandbox;
  const Ran found = sandbox.run("doctor", "KERNELWRIGHT_CUBLASLT=" KW_FAKE_CUBLASLT);
  CHECK(contains(found.output, "cuBLASLt  13.0.2 from the KERNELWRIGHT_CUBLASLT: " KW_FAKE_CUBLASLT));
  const Ran missing = sandbox.run("doctor", "KERNELWRIGHT_CUBLASLT=/no/such/folder");
  CHECK(contains(missing.output, "cuBLASLt  missing, needed for tune --baseline cublaslt alone: "));
  CHECK(missing.exit_code == found.exit_code);
}
