// Content-addressed store of compiled kernels: one file a key, written to a temporary name and renamed, with a hash over its
// content. Many processes share a folder. A damaged entry is a miss. The total size stays under a quota, oldest use goes first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tuner/compile/compiler.h"

namespace kw::tuner {

/// Key of a compile: source, kernel name, every option in order, arch, and the NVRTC build. No path takes part.
std::string cubin_key(const CompileRequest& request, const NvrtcInfo& nvrtc);

/// An exclusive lock on one key among all processes; gives it back when destroyed.
class KeyLock {
 public:
  explicit KeyLock(int file = -1, std::string path = {}) : file_(file), path_(std::move(path)) {}
  KeyLock(KeyLock&& other) noexcept : file_(other.file_), path_(std::move(other.path_)) { other.file_ = -1; }
  KeyLock& operator=(KeyLock&&) = delete;
  ~KeyLock();
  bool is_held() const { return file_ >= 0; }

 private:
  int file_;
  std::string path_;
};

class CubinCache {
 public:
  /// Makes the folder. Error kIo when it cannot be written. An empty folder name gives a cache that is always empty.
  static Result<CubinCache> open(const std::string& folder, std::int64_t quota_bytes);

  /// The entry with is_from_cache set, or nothing: also when it is damaged (it is removed then), is no regular file, or does not read.
  std::optional<CompiledKernel> find(const std::string& key) const;
  /// Failures are not errors: the kernel is there, only the next run compiles again.
  void insert(const CompiledKernel& kernel);
  /// Waits for the key's lock as long as `keeps_waiting` says so. Without it (or on a file system without locks) the lock is not held.
  KeyLock lock(const std::string& key, const std::function<bool()>& keeps_waiting) const;
  /// Drops the entries that were used longest ago until the quota holds; returns bytes freed.
  std::int64_t evict();

 private:
  std::string entry_path(const std::string& key) const;
  std::string folder_;
  std::int64_t quota_bytes_ = 0;
  std::int64_t inserted_bytes_ = 0;  ///< since the last look at the folder
};

}  // namespace kw::tuner
