// write_file of command.h: a regular file is replaced in one step, anything else is written through.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tuner/cli/command.h"

namespace kw::tuner {
namespace {

namespace fs = std::filesystem;
constexpr int kMaxLinks = 40;  // as the kernel's own limit

tl::unexpected<Error> cannot_write(const std::string& path, const std::string& why, Code code = Code::kIo) {
  return fail(Stage::kCommandLine, code, fmt::format("{}: cannot be written: {}", path, why));
}

/// Writes all and closes; errno of the first fault, or 0.
int write_and_close(int file, const std::string& text) {
  std::size_t done = 0;
  int fault = 0;
  while (done < text.size() && fault == 0) {
    const ssize_t count = write(file, text.data() + done, text.size() - done);
    if (count >= 0)
      done += static_cast<std::size_t>(count);
    else if (errno != EINTR)
      fault = errno;
  }
  if (close(file) != 0 && fault == 0) fault = errno;
  return fault;
}

/// The file that a chain of symbolic links ends at; it need not exist.
Result<fs::path> end_of_links(const std::string& path) {
  fs::path target(path);
  std::error_code error;
  for (int step = 0; fs::is_symlink(fs::symlink_status(target, error)); ++step) {
    if (step == kMaxLinks) return cannot_write(path, std::strerror(ELOOP), Code::kBadInput);
    const fs::path next = fs::read_symlink(target, error);
    if (error) return cannot_write(path, error.message());
    target = next.is_absolute() ? next : target.parent_path() / next;
  }
  return target;
}

/// A device or a FIFO: written as it is, never replaced. A FIFO that nobody reads is an error, not a wait.
Status write_through(const std::string& path, const std::string& text) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return cannot_write(path, errno == ENXIO ? "nobody reads from it" : std::strerror(errno));
  fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK);
  const int fault = write_and_close(file, text);
  if (fault != 0) return cannot_write(path, std::strerror(fault));
  return {};
}

/// A temporary file beside the target, then a rename; no fault leaves the temporary behind.
Status replace(const std::string& path, const fs::path& target, mode_t mode, const std::string& text) {
  const fs::path temporary = target.parent_path() / fmt::format(".kernelwright-{}.tmp", getpid());
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file < 0) return cannot_write(path, std::strerror(errno));
  if (mode != 0) fchmod(file, mode);
  int fault = write_and_close(file, text);
  if (fault == 0 && rename(temporary.c_str(), target.c_str()) != 0) fault = errno;
  if (fault == 0) return {};
  unlink(temporary.c_str());
  return cannot_write(path, std::strerror(fault));
}

}  // namespace

Status write_file(const std::string& path, const std::string& text) {
  if (path.empty()) return cannot_write("''", "an empty path", Code::kBadInput);
  if (path.back() == '/') return cannot_write(path, "the name of a folder, not of a file", Code::kBadInput);
  KW_TRY(const fs::path target, end_of_links(path));
  std::error_code error;
  if (target.has_parent_path()) fs::create_directories(target.parent_path(), error);
  if (error) return cannot_write(path, fmt::format("{}: {}", target.parent_path().string(), error.message()));
  struct stat facts{};
  if (stat(target.c_str(), &facts) != 0) {
    if (errno != ENOENT) return cannot_write(path, std::strerror(errno));
    return replace(path, target, 0, text);
  }
  if (S_ISDIR(facts.st_mode)) return cannot_write(path, "a folder, not a file", Code::kBadInput);
  if (!S_ISREG(facts.st_mode)) return write_through(target.string(), text);
  if (access(target.c_str(), W_OK) != 0) return cannot_write(path, std::strerror(errno));
  return replace(path, target, facts.st_mode & 07777, text);
}

}  // namespace kw::tuner
