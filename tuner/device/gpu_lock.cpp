// See gpu_lock.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/device/gpu_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace kw::tuner {
namespace {

/// Another user's file in a sticky folder must not be opened with O_CREAT (fs.protected_regular); a lock needs no right to write.
int open_lock_file(const std::string& path) {
  int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (file >= 0) {
    static_cast<void>(fchmod(file, 0666));  // whatever the umask; fails on another user's file, which has it already
    return file;
  }
  return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

int holder_of(int file) {
  char text[32] = {};
  return pread(file, text, sizeof text - 1, 0) > 0 ? std::atoi(text) : 0;
}

}  // namespace

Result<GpuLock> GpuLock::acquire(const std::string& uuid, const std::string& folder, std::chrono::milliseconds limit,
                                 const std::function<void(const std::string&)>& notice) {
  const std::string path = fmt::format("{}/kernelwright-{}.lock", folder.empty() ? "/tmp" : folder, uuid);
  const int file = open_lock_file(path);
  if (file < 0)
    return fail(Stage::kDevice, Code::kIo, fmt::format("{}: cannot be opened as the GPU's lock: {}", path, std::strerror(errno)));
  const auto give_up = std::chrono::steady_clock::now() + limit;
  for (bool is_told = false; flock(file, LOCK_EX | LOCK_NB) != 0;) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      const int number = errno;
      close(file);
      return fail(Stage::kDevice, Code::kIo, fmt::format("{}: cannot be locked: {}", path, std::strerror(number)));
    }
    const std::string who = fmt::format("GPU {}: in use by another tuner (process {})", uuid, holder_of(file));
    if (!is_told && notice) notice(who + ": waiting");
    is_told = true;
    if (limit.count() > 0 && std::chrono::steady_clock::now() >= give_up) {
      close(file);
      return fail(Stage::kDevice, Code::kDevice, fmt::format("{}: waited {} ms", who, limit.count()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const std::string holder = fmt::format("{}\n", getpid());
  if (ftruncate(file, 0) == 0) static_cast<void>(pwrite(file, holder.data(), holder.size(), 0) >= 0);
  return GpuLock(file);
}

GpuLock::~GpuLock() {
  if (file_ >= 0) close(file_);
}

}  // namespace kw::tuner
