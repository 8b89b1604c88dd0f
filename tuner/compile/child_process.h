// A child process of the tuner: `<executable> <command>` in its own process group, one socket for messages, standard error kept
// in memory for the log. Killing means the whole group. Used by the compile pool and by the GPU worker.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "generator/base/error.h"
#include "tuner/compile/message.h"

namespace kw::tuner {

/// How a wait for an answer ended.
enum class ReplyKind { kAnswered = 0, kTimeout = 1, kDied = 2, kStopped = 3 };

struct Reply {
  ReplyKind kind = ReplyKind::kDied;
  Message message;       ///< kAnswered
  std::string how_died;  ///< kDied: "killed by signal 6 (Aborted)", "exit code 1"
  int signal = 0;        ///< kDied: the signal that ended it, 0 when none did
};

class ChildProcess {
 public:
  /// `extra_environment` lists "NAME=value" that the child gets unless the environment has NAME already.
  static Result<std::unique_ptr<ChildProcess>> start(const std::string& executable, const std::string& command,
                                                     const std::vector<std::string>& extra_environment);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Sends a message and waits for one answer. `tick` runs about every 25 ms; when it returns false the wait ends as kStopped.
  Reply ask(const Message& message, std::chrono::milliseconds limit, const std::function<bool()>& tick = {});
  /// Waits for a message that needs no question.
  Reply wait(std::chrono::milliseconds limit, const std::function<bool()>& tick = {});

  /// SIGKILL to the group, then waits for its end at most `limit`. False: the process does not die (stuck in a driver).
  bool kill_group(std::chrono::milliseconds limit = std::chrono::seconds(20));
  int pid() const { return pid_; }
  /// Resident memory, 0 when unknown.
  std::int64_t resident_bytes() const;
  /// The last bytes that the child wrote to standard error.
  std::string error_output(std::size_t max_bytes = 4000) const;

 private:
  ChildProcess() = default;
  bool send_until(const std::string& frame, std::chrono::steady_clock::time_point deadline);
  std::string reap(std::chrono::milliseconds limit);

  int pid_ = -1;
  int socket_ = -1;
  int error_file_ = -1;
  bool is_reaped_ = false;
  int exit_status_ = 0;
  std::string pending_;
};

}  // namespace kw::tuner
