// Framing of messages and the child's end of the channel. See message.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/compile/message.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "generator/base/json_text.h"

namespace kw::tuner {
namespace {

constexpr char kMagic[4] = {'K', 'W', 'M', 'S'};
constexpr std::size_t kFixedBytes = 16;
constexpr std::uint32_t kMaxBlobs = 4096;
constexpr std::uint64_t kMaxFrameBytes = 4ull << 30;

template <typename T>
void append_number(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
T number_at(const std::string& text, std::size_t position) {
  T value{};
  std::memcpy(&value, text.data() + position, sizeof value);
  return value;
}

/// Ends this process group when the parent's end of the socket is closed: a compile or a kernel in flight cannot notice by itself.
void end_with_parent(int file) {
  pollfd watched{file, 0, 0};
  while (poll(&watched, 1, -1) < 0 && errno == EINTR) {
  }
  if (getpgrp() == getpid()) kill(0, SIGKILL);
  _exit(0);
}

}  // namespace

std::string encode(const Message& message) {
  const std::string head = message.head.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string frame(kMagic, sizeof kMagic);
  append_number(frame, static_cast<std::uint32_t>(head.size()));
  append_number(frame, static_cast<std::uint32_t>(message.blobs.size()));
  append_number(frame, std::uint32_t{0});
  for (const std::string& blob : message.blobs) append_number(frame, static_cast<std::uint64_t>(blob.size()));
  frame += head;
  for (const std::string& blob : message.blobs) frame += blob;
  return frame;
}

Result<std::size_t> frame_bytes(const std::string& prefix) {
  if (prefix.size() < kFixedBytes) return std::size_t{0};
  const auto num_blobs = number_at<std::uint32_t>(prefix, 8);
  if (std::memcmp(prefix.data(), kMagic, sizeof kMagic) != 0 || num_blobs > kMaxBlobs) {
    return fail(Stage::kDevice, Code::kInternal, "message channel: bytes that are no frame");
  }
  const std::size_t sizes_end = kFixedBytes + num_blobs * sizeof(std::uint64_t);
  if (prefix.size() < sizes_end) return std::size_t{0};
  std::uint64_t total = sizes_end + number_at<std::uint32_t>(prefix, 4);
  for (std::uint32_t blob = 0; blob < num_blobs; ++blob) {
    const auto blob_bytes = number_at<std::uint64_t>(prefix, kFixedBytes + blob * sizeof(std::uint64_t));
    if (blob_bytes > kMaxFrameBytes) return fail(Stage::kDevice, Code::kInternal, "message channel: a blob above 4 GiB");
    total += blob_bytes;
  }
  if (total > kMaxFrameBytes) return fail(Stage::kDevice, Code::kInternal, "message channel: a frame above 4 GiB");
  return static_cast<std::size_t>(total);
}

Result<Message> decode(const std::string& frame) {
  KW_TRY(const std::size_t total, frame_bytes(frame));
  if (total == 0 || total != frame.size()) return fail(Stage::kDevice, Code::kInternal, "message channel: a frame of the wrong length");
  const auto head_bytes = number_at<std::uint32_t>(frame, 4);
  const auto num_blobs = number_at<std::uint32_t>(frame, 8);
  std::size_t position = kFixedBytes + num_blobs * sizeof(std::uint64_t);
  Message message;
  auto head = json_from_text(frame.substr(position, head_bytes));
  if (!head || !head->is_object()) return fail(Stage::kDevice, Code::kInternal, "message channel: a head that is no JSON object");
  message.head = std::move(*head);
  position += head_bytes;
  for (std::uint32_t blob = 0; blob < num_blobs; ++blob) {
    const auto blob_bytes = number_at<std::uint64_t>(frame, kFixedBytes + blob * sizeof(std::uint64_t));
    message.blobs.push_back(frame.substr(position, blob_bytes));
    position += blob_bytes;
  }
  return message;
}

Result<ChildChannel> ChildChannel::take_over_stdin() {
  const int file = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  int type = 0;
  socklen_t type_bytes = sizeof type;
  if (file < 0 || getsockopt(file, SOL_SOCKET, SO_TYPE, &type, &type_bytes) != 0) {
    return fail(Stage::kCommandLine, Code::kBadInput, "this command is internal: the tuner starts it with a socket as standard input");
  }
  const int null_file = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null_file >= 0) {
    dup2(null_file, STDIN_FILENO);
    close(null_file);
  }
  dup2(STDERR_FILENO, STDOUT_FILENO);
  signal(SIGINT, SIG_IGN);  // the parent decides what Ctrl-C ends
  std::thread(end_with_parent, file).detach();
  return ChildChannel(file);
}

bool ChildChannel::receive(Message& message) {
  char buffer[1 << 16];
  while (true) {
    const Result<std::size_t> total = frame_bytes(pending_);
    if (!total) return false;
    if (*total != 0 && pending_.size() >= *total) {
      Result<Message> decoded = decode(pending_.substr(0, *total));
      pending_.erase(0, *total);
      if (!decoded) return false;
      message = std::move(*decoded);
      return true;
    }
    const ssize_t count = read(file_, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    pending_.append(buffer, static_cast<std::size_t>(count));
  }
}

bool ChildChannel::send(const Message& message) {
  const std::string frame = encode(message);
  std::size_t sent = 0;
  while (sent < frame.size()) {
    const ssize_t count = ::send(file_, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    sent += static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace kw::tuner
