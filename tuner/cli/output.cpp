// The two streams, replaced by ones whose writes do not fail. See output.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/cli/output.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

namespace kw::tuner {
namespace {

struct Sink {
  int file;
  int fault = 0;  ///< errno of the first write that failed; later ones are not tried
};

Sink output_sink{STDOUT_FILENO}, error_sink{STDERR_FILENO};

/// Says that all was written, whatever happened: fmt::print would throw, also inside a handler.
ssize_t write_to(void* cookie, const char* text, std::size_t size) {
  Sink& sink = *static_cast<Sink*>(cookie);
  std::size_t done = 0;
  while (done < size && sink.fault == 0) {
    const ssize_t count = write(sink.file, text + done, size - done);
    if (count > 0) {
      done += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      pollfd watched{sink.file, POLLOUT, 0};
      poll(&watched, 1, 1000);
    } else if (errno != EINTR) {
      sink.fault = errno;
    }
  }
  return static_cast<ssize_t>(size);
}

FILE* guarded(Sink& sink, int buffering, FILE* otherwise) {
  cookie_io_functions_t calls{};
  calls.write = write_to;
  FILE* stream = fopencookie(&sink, "w", calls);
  if (stream == nullptr) return otherwise;
  std::setvbuf(stream, nullptr, buffering, BUFSIZ);
  return stream;
}

}  // namespace

void guard_output() {
  // A closed descriptor is filled with one that cannot be written: a database must not become standard output.
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(file, F_GETFD) < 0 && errno == EBADF) (void)!open("/dev/null", file == STDIN_FILENO ? O_RDWR : O_RDONLY);
  }
  stdout = guarded(output_sink, isatty(STDOUT_FILENO) != 0 ? _IOLBF : _IOFBF, stdout);
  stderr = guarded(error_sink, _IONBF, stderr);
}

int finish_output(int code) {
  std::fflush(stdout);
  std::fflush(stderr);
  if (output_sink.fault == 0) return code;
  if (output_sink.fault == EPIPE) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  fmt::print(stderr, "kernelwright: standard output: cannot be written: {}\n", std::strerror(output_sink.fault));
  return code > 1 ? code : 3;
}

}  // namespace kw::tuner
