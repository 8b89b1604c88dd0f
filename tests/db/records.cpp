// See records.h.
// SPDX-License-Identifier: Apache-2.0
#include "tests/db/records.h"

#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "generator/base/hash.h"

namespace kw::db::test {

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "kw_db_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = pattern;
}
TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

TrialRecord make_record(int number, double median_us) {
  const std::string text = std::to_string(number);
  TrialRecord record;
  record.key.op = {hash_hex("matmul"), "matmul_bias_relu", "acc[m,n] = sum[k](A[m,k] * B[n,k])"};
  record.key.problem = {"K=4096,M=1024,N=4096"};
  record.key.device = {"GPU-1", "NVIDIA H200", 132, 50 << 20, 141ll << 30};
  record.key.toolchain = {"12.9", "570.1", "0.1.0", 12};
  record.key.protocol = {"v1-cold", R"({"version":1})"};
  VariantRow& variant = record.key.variant;
  variant.id = "gemm_simt__m" + text;
  variant.template_name = "gemm_simt";
  variant.config = "BLOCK_M=" + text;
  variant.arch = "sm_90";
  variant.source = "// variant " + text + "\nextern \"C\" __global__ void gemm_simt() {}\n";
  variant.source_hash = hash_hex(variant.source);
  variant.plan_json = R"({"launches":[)" + text + "]}";
  variant.constraints_json = R"([{"name":"k_divisible"}])";
  variant.predicted_us = 11.25;
  record.binary = {"binary " + text,
                   std::string("\x7f"
                               "ELF\0",
                               5) +
                       text,
                   96,
                   0,
                   4,
                   8,
                   49152,
                   812.5,
                   "ptxas info: " + text};
  record.trial.reason = "checked";
  record.trial.samples_us = {median_us, median_us * 1.01, 0.1 + 0.2};
  record.trial.median_us = median_us;
  record.trial.p10_us = median_us * 0.99;
  record.trial.p90_us = median_us * 1.02;
  record.trial.max_error_over_bound = 0.25;
  record.trial.relative_norm_error = 1e-4;
  record.trial.verify_level = VerifyLevel::kDevice;
  record.trial.state_json = R"({"sm_clock_mhz":1980})";
  record.trial.session = "kernelwright tune x.op.toml";
  record.unix_time_s = 1700000000;
  return record;
}

TrialKey group_of(const TrialRecord& record) {
  TrialKey key = record.key;
  key.variant = {};
  return key;
}

BaselineRecord make_baseline(double median_us) {
  const TrialKey group = group_of(make_record(1));
  BaselineRecord record;
  record.key = {group.op, group.problem, group.device, group.protocol, group.toolchain.driver, "cublaslt", "13.0.2"};
  record.row.algorithm = "algo 66, tile 20, stages 36";
  record.row.num_tried = 32;
  record.row.num_right = 30;
  record.row.samples_us = {median_us, median_us * 1.01, 0.1 + 0.2};
  record.row.median_us = median_us;
  record.row.p10_us = median_us * 0.99;
  record.row.p90_us = median_us * 1.02;
  record.row.max_error_over_bound = 0.125;
  record.row.relative_norm_error = 2e-4;
  record.row.state_json = R"({"sm_clock_mhz":1755})";
  record.row.session = "kernelwright tune --baseline cublaslt x.op.toml";
  record.unix_time_s = 1700000000;
  return record;
}

std::unique_ptr<Database> open_or_throw(const std::string& path, OpenOptions options) {
  auto database = Database::open(path, options);
  if (!database) throw std::runtime_error(to_text(database.error()) + " | " + database.error().detail);
  return std::move(*database);
}

std::int64_t record_or_throw(Database& database, const TrialRecord& record) {
  const auto id = database.record_trial(record);
  if (!id) throw std::runtime_error(to_text(id.error()) + " | " + id.error().detail);
  return *id;
}

std::string open_error(const std::string& path, OpenOptions options) {
  const auto database = Database::open(path, options);
  return database ? std::string() : to_text(database.error());
}

void overwrite(const std::string& path, std::int64_t offset, const std::string& bytes) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(offset);
  file << bytes;
  if (!file.flush()) throw std::runtime_error("overwrite " + path);
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
}

}  // namespace kw::db::test
