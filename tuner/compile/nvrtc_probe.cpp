// One fork, one pipe, one deadline. See nvrtc_probe.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/compile/nvrtc_probe.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tuner/compile/nvrtc_api.h"

namespace kw::tuner {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMaxAnswerBytes = 64 << 10;

Error fault(const std::string& path, const std::string& why) {
  return {Stage::kCompile, Code::kToolchain, fmt::format("{}: cannot be used as NVRTC: {}", path, why), {}, {}};
}

/// The child: "+major minor capability...", or "-message". Never returns, runs no destructor and flushes nothing of the parent's.
[[noreturn]] void answer(const std::string& path, int pipe_end) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  for (const int number : {SIGBUS, SIGSEGV, SIGABRT, SIGILL, SIGFPE, SIGTERM, SIGINT}) std::signal(number, SIG_DFL);
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, standard);  // a library may print
  std::string text;
  if (const auto library = NvrtcLibrary::load(path)) {
    text = fmt::format("+{} {}", (*library)->major(), (*library)->minor());
    for (const int capability : (*library)->compute_capabilities()) text += fmt::format(" {}", capability);
  } else {
    text = "-" + library.error().message;
  }
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t count = write(pipe_end, text.data() + sent, text.size() - sent);
    if (count <= 0 && errno != EINTR) break;
    if (count > 0) sent += static_cast<std::size_t>(count);
  }
  _exit(sent == text.size() ? 0 : 1);
}

/// Reads to the end of the pipe; false when the deadline passes first.
bool read_all(int pipe_end, Clock::time_point deadline, std::string& text) {
  char buffer[4096];
  while (text.size() < kMaxAnswerBytes) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd watched{pipe_end, POLLIN, 0};
    if (poll(&watched, 1, static_cast<int>(left)) <= 0) continue;
    const ssize_t count = read(pipe_end, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return true;
}

Result<NvrtcFacts> ask_child(const std::string& path, std::chrono::milliseconds limit) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail(fault(path, fmt::format("no pipe to ask it: {}", std::strerror(errno))));
  const pid_t pid = fork();
  if (pid == 0) answer(path, ends[1]);
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return fail(fault(path, fmt::format("no process to ask it: {}", std::strerror(errno))));
  }
  std::string text;
  const bool is_in_time = read_all(ends[0], Clock::now() + limit, text);
  close(ends[0]);
  if (!is_in_time) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!is_in_time) return fail(fault(path, fmt::format("it did not load within {} s", limit.count() / 1000)));
  if (WIFSIGNALED(status))
    return fail(
        fault(path, fmt::format("loading it ends with signal {} ({}): a damaged file?", WTERMSIG(status), strsignal(WTERMSIG(status)))));
  if (text.starts_with('-')) return fail(Error{Stage::kCompile, Code::kToolchain, text.substr(1), {}, {}});
  NvrtcFacts facts;
  std::istringstream words(text.empty() ? text : text.substr(1));
  if (!(words >> facts.major >> facts.minor)) return fail(fault(path, "it ends this program when it is loaded"));
  for (int capability = 0; words >> capability;) facts.compute_capabilities.push_back(capability);
  return facts;
}

/// Path, size and time of the file behind it: what an answer holds for.
std::string file_state(const std::string& path) {
  std::error_code ignored;
  const auto size = std::filesystem::file_size(path, ignored);
  const auto time = std::filesystem::last_write_time(path, ignored);
  return fmt::format("{} {} {}", path, size, time.time_since_epoch().count());
}

}  // namespace

Result<NvrtcFacts> probe_nvrtc(const std::string& path, std::chrono::milliseconds limit) {
  static std::mutex mutex;
  static std::map<std::string, Result<NvrtcFacts>> answers;
  const std::lock_guard lock(mutex);
  const std::string state = file_state(path);
  if (const auto known = answers.find(state); known != answers.end()) return known->second;
  return answers.emplace(state, ask_child(path, limit)).first->second;
}

}  // namespace kw::tuner
