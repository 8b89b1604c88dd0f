// Times of a library's call for a problem: what a user would take instead of our kernel, by the same protocol. Not trials: they have no
// variant and win nothing. Rows and look-ups; the callers of the functions hold the connection for themselves.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "db/database.h"

namespace kw::db {

class Connection;

/// Everything that identifies a baseline.
struct BaselineKey {
  OpRow op;
  ProblemRow problem;
  DeviceRow device;
  ProtocolRow protocol;
  std::string driver, blas, blas_version;  ///< "580.95.05", "cublaslt", "13.0.2"
};
struct BaselineRow {
  std::string algorithm;             ///< of the best one: "algo 66, tile 20, stages 36"
  int num_tried = 0, num_right = 0;  ///< algorithms of the library; those that were right and could be timed
  std::vector<double> samples_us;
  double median_us = 0, p10_us = 0, p90_us = 0;
  double max_error_over_bound = 0, relative_norm_error = 0;
  bool is_dirty = false;
  std::string state_json;
  std::string session;
};
struct BaselineRecord {
  BaselineKey key;
  BaselineRow row;
  std::int64_t id = 0;
  std::int64_t unix_time_s = 0;
};

Result<std::int64_t> write_baseline(Connection& connection, const BaselineRecord& record);
/// Newest row of this exact key.
Result<std::optional<BaselineRecord>> find_baseline(Connection& connection, const BaselineKey& key);
/// For each library the row that a trial of this op, problem, device model and protocol is compared with: clean before dirty, the trial's
/// own device and driver before others, then the newest.
Result<std::vector<BaselineRecord>> find_baselines_of(Connection& connection, const TrialKey& trial);
/// One line for each row whose values are not the ones that were stored.
Result<std::vector<std::string>> check_baselines(Connection& connection);

}  // namespace kw::db
