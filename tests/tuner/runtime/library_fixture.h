// An opened library over a made-up database, and kernels found in it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/tuner/runtime/fake_device.h"
#include "tests/tuner/runtime/stored_kernels.h"

namespace kw::tuner::test {

/// Outcome of a kw_find; releases the kernel.
struct FoundKernel {
  FoundKernel(kw_status found_status, kw_kernel* kernel)
      : status(found_status), handle(kernel), error(found_status == KW_OK ? "" : kw_last_error()) {}
  ~FoundKernel() { kw_kernel_release(handle); }
  FoundKernel(const FoundKernel&) = delete;
  FoundKernel& operator=(const FoundKernel&) = delete;
  std::string variant() const { return kw_kernel_variant(handle); }
  std::string explanation() const { return kw_kernel_explanation(handle); }

  kw_status status;
  kw_kernel* handle;
  std::string error;
};

/// Status and sentence of an open that fails.
inline std::pair<kw_status, std::string> open_failure(const std::string& path) {
  kw_database* database = nullptr;
  const kw_status status = kw_open(path.c_str(), &database);
  CHECK(database == nullptr);
  kw_close(database);
  return {status, kw_last_error()};
}

class LibraryFixture {
 public:
  explicit LibraryFixture(const std::vector<db::TrialRecord>& records) : path_(folder_.file("tuning.db")) {
    {
      const auto database = db::test::open_or_throw(path_);
      for (const db::TrialRecord& record : records) db::test::record_or_throw(*database, record);
    }
    if (kw_open(path_.c_str(), &database_) != KW_OK) FAIL(kw_last_error());
  }
  ~LibraryFixture() { kw_close(database_); }
  LibraryFixture(const LibraryFixture&) = delete;
  LibraryFixture& operator=(const LibraryFixture&) = delete;

  const FakeDevice& device() const { return device_; }
  const std::string& path() const { return path_; }
  kw_database* database() const { return database_; }
  void close() { kw_close(std::exchange(database_, nullptr)); }

  FoundKernel find(const char* op, const std::vector<kw_value>& values, unsigned flags = 0) const {
    kw_kernel* kernel = nullptr;
    const kw_status status = kw_find(database_, op, values.data(), values.size(), flags, &kernel);
    return FoundKernel(status, kernel);
  }
  std::string variant_of(const std::vector<kw_value>& values) const {
    const FoundKernel kernel = find("double", values);
    return kernel.status == KW_OK ? kernel.variant() : kernel.error;
  }
  kw_match match_of(const std::vector<kw_value>& values) const { return kw_kernel_match(find("double", values).handle); }

 private:
  FakeDevice device_;
  db::test::TemporaryFolder folder_;
  std::string path_;
  kw_database* database_ = nullptr;
};

}  // namespace kw::tuner::test
