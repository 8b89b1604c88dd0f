// Starting, asking, watching and killing of child processes. See child_process.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/compile/child_process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;  // NOLINT: POSIX

namespace kw::tuner {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kTickPeriod{25};

Error spawn_error(const std::string& executable, const char* step, int number) {
  return Error{
      Stage::kDevice, Code::kIo, fmt::format("{}: cannot start a child process: {}: {}", executable, step, std::strerror(number)), {}, {}};
}

/// The environment of the child: ours plus what it lacks.
std::vector<char*> child_environment(const std::vector<std::string>& extra) {
  std::vector<char*> result;
  for (char** entry = environ; *entry != nullptr; ++entry) result.push_back(*entry);
  for (const std::string& addition : extra) {
    const std::size_t name_bytes = addition.find('=') + 1;
    const bool is_set = std::any_of(result.begin(), result.end(),
                                    [&](const char* entry) { return std::strncmp(entry, addition.c_str(), name_bytes) == 0; });
    if (!is_set) result.push_back(const_cast<char*>(addition.c_str()));
  }
  result.push_back(nullptr);
  return result;
}

std::string describe_exit(int status) {
  if (WIFSIGNALED(status)) return fmt::format("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

int spawn_child(const std::string& executable, const std::string& command, const std::vector<std::string>& environment, int socket,
                int error_file, int& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, error_file, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, error_file, STDERR_FILENO);
  // Its own group, so that a kill takes what the compiler may have started; default signals, whatever the parent blocks or ignores.
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (const int signal_number : {SIGINT, SIGTERM, SIGPIPE, SIGHUP, SIGCHLD}) sigaddset(&defaults, signal_number);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  char* arguments[] = {const_cast<char*>(executable.c_str()), const_cast<char*>(command.c_str()), nullptr};
  std::vector<char*> variables = child_environment(environment);
  const int code = posix_spawnp(&pid, executable.c_str(), &actions, &attributes, arguments, variables.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return code;
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const std::string& executable, const std::string& command,
                                                          const std::vector<std::string>& extra_environment) {
  if (executable.empty()) return fail(Stage::kDevice, Code::kInternal, "worker_command: empty: must be the path of this executable");
  std::unique_ptr<ChildProcess> child(new ChildProcess);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return fail(spawn_error(executable, "socketpair", errno));
  child->socket_ = ends[0];
  child->error_file_ = memfd_create("kernelwright-child-log", MFD_CLOEXEC);
  fcntl(child->socket_, F_SETFL, fcntl(child->socket_, F_GETFL) | O_NONBLOCK);
  const int code =
      child->error_file_ < 0 ? errno : spawn_child(executable, command, extra_environment, ends[1], child->error_file_, child->pid_);
  close(ends[1]);
  if (code != 0) {
    child->pid_ = -1;
    return fail(spawn_error(executable, "posix_spawn", code));
  }
  return child;
}

ChildProcess::~ChildProcess() {
  if (socket_ >= 0) close(socket_);
  if (pid_ > 0) kill_group();
  if (error_file_ >= 0) close(error_file_);
}

bool ChildProcess::send_until(const std::string& frame, Clock::time_point deadline) {
  std::size_t sent = 0;
  while (sent < frame.size()) {
    const ssize_t count = send(socket_, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
    if (count > 0) {
      sent += static_cast<std::size_t>(count);
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return false;
    if (Clock::now() >= deadline) return false;
    pollfd watched{socket_, POLLOUT, 0};
    poll(&watched, 1, static_cast<int>(kTickPeriod.count()));
  }
  return true;
}

Reply ChildProcess::ask(const Message& message, std::chrono::milliseconds limit, const std::function<bool()>& tick) {
  const Clock::time_point start = Clock::now();
  // A failed send is not judged here: the wait below tells a dead child from one that does not listen.
  if (!send_until(encode(message), start + limit) && Clock::now() >= start + limit)
    return Reply{.kind = ReplyKind::kTimeout, .message = {}, .how_died = {}};
  return wait(limit - std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start), tick);
}

Reply ChildProcess::wait(std::chrono::milliseconds limit, const std::function<bool()>& tick) {
  const Clock::time_point deadline = Clock::now() + limit;
  char buffer[1 << 16];
  while (true) {
    const Result<std::size_t> total = frame_bytes(pending_);
    if (!total) return Reply{.kind = ReplyKind::kDied, .message = {}, .how_died = total.error().message};
    if (*total != 0 && pending_.size() >= *total) {
      Result<Message> decoded = decode(pending_.substr(0, *total));
      pending_.erase(0, *total);
      if (!decoded) return Reply{.kind = ReplyKind::kDied, .message = {}, .how_died = decoded.error().message};
      return Reply{.kind = ReplyKind::kAnswered, .message = std::move(*decoded), .how_died = {}};
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return Reply{.kind = ReplyKind::kTimeout, .message = {}, .how_died = {}};
    if (tick && !tick()) return Reply{.kind = ReplyKind::kStopped, .message = {}, .how_died = {}};
    pollfd watched{socket_, POLLIN, 0};
    if (poll(&watched, 1, static_cast<int>(std::min(left, kTickPeriod).count()) + 1) <= 0) continue;
    const ssize_t count = read(socket_, buffer, sizeof buffer);
    if (count > 0) {
      pending_.append(buffer, static_cast<std::size_t>(count));
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
      Reply reply{.kind = ReplyKind::kDied, .message = {}, .how_died = reap(std::chrono::seconds(5))};
      if (is_reaped_ && WIFSIGNALED(exit_status_)) reply.signal = WTERMSIG(exit_status_);
      return reply;
    }
  }
}

std::string ChildProcess::reap(std::chrono::milliseconds limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  while (!is_reaped_) {
    // While the leader is a zombie its group id cannot belong to anybody else: end what it left behind, then let it go.
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid_) {
      ::kill(-pid_, SIGKILL);
      waitpid(pid_, &exit_status_, 0);
      is_reaped_ = true;
      break;
    }
    if (Clock::now() >= deadline) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return is_reaped_ ? describe_exit(exit_status_) : "closed its channel but does not end";
}

bool ChildProcess::kill_group(std::chrono::milliseconds limit) {
  if (pid_ <= 0) return true;
  if (!is_reaped_) ::kill(-pid_, SIGKILL);
  reap(limit);
  return is_reaped_;
}

std::int64_t ChildProcess::resident_bytes() const {
  std::FILE* file = std::fopen(fmt::format("/proc/{}/statm", pid_).c_str(), "re");
  if (file == nullptr) return 0;
  long total_pages = 0, resident_pages = 0;
  const int count = std::fscanf(file, "%ld %ld", &total_pages, &resident_pages);
  std::fclose(file);
  return count == 2 ? resident_pages * sysconf(_SC_PAGESIZE) : 0;
}

std::string ChildProcess::error_output(std::size_t max_bytes) const {
  struct stat file{};
  if (fstat(error_file_, &file) != 0 || file.st_size <= 0) return {};
  const off_t end = file.st_size;
  const off_t begin = end > static_cast<off_t>(max_bytes) ? end - static_cast<off_t>(max_bytes) : 0;
  std::string text(static_cast<std::size_t>(end - begin), '\0');
  const ssize_t count = pread(error_file_, text.data(), text.size(), begin);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

}  // namespace kw::tuner
