// Records and folders for the database tests: everything filled, so that a lost field shows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "db/baseline.h"
#include "db/database.h"

namespace kw::db::test {

/// A folder of its own, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

/// A verified, timed trial of config "BLOCK_M=`number`" with every field filled.
TrialRecord make_record(int number, double median_us = 12.5);
/// The same with no variant: the group that it belongs to.
TrialKey group_of(const TrialRecord& record);

/// A baseline of the same group, with every field filled.
BaselineRecord make_baseline(double median_us = 11.5);

std::unique_ptr<Database> open_or_throw(const std::string& path, OpenOptions options = {});
std::int64_t record_or_throw(Database& database, const TrialRecord& record);
/// Text of the error of a failed open; "" when it worked.
std::string open_error(const std::string& path, OpenOptions options = {});

/// Overwrites bytes of a file in place.
void overwrite(const std::string& path, std::int64_t offset, const std::string& bytes);
void write_file(const std::string& path, const std::string& bytes);

}  // namespace kw::db::test
