// One tuner on a GPU at a time: an advisory lock on a file named after the GPU's UUID. The kernel of the operating system gives it
// back when the process ends, however it ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "generator/base/error.h"

namespace kw::tuner {

class GpuLock {
 public:
  /// Waits until the GPU is free; `notice` is told once that it is not, and who has it. `limit` 0 waits without end.
  /// Errors: kDevice when the limit is over, kIo when the file cannot be made.
  static Result<GpuLock> acquire(const std::string& uuid, const std::string& folder, std::chrono::milliseconds limit,
                                 const std::function<void(const std::string&)>& notice);
  GpuLock(GpuLock&& other) noexcept : file_(other.file_) { other.file_ = -1; }
  GpuLock& operator=(GpuLock&&) = delete;
  ~GpuLock();

 private:
  explicit GpuLock(int file) : file_(file) {}
  int file_;
};

}  // namespace kw::tuner
