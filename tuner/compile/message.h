// Messages between the tuner and its child processes: a JSON head and binary blobs, length-prefixed, over a socket pair.
// The child's side blocks; the parent's side has deadlines (child_process.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "generator/base/error.h"

namespace kw::tuner {

struct Message {
  nlohmann::json head = nlohmann::json::object();
  std::vector<std::string> blobs;
};

/// Frame: "KWMS", u32 head bytes, u32 number of blobs, u32 zero; u64 size of each blob; head; blobs. Little endian.
std::string encode(const Message& message);

/// Bytes of a whole frame that starts with `prefix`, or 0 when the prefix is too short to say. Error: not a frame, or larger than 4 GiB.
Result<std::size_t> frame_bytes(const std::string& prefix);
/// Decodes exactly one frame.
Result<Message> decode(const std::string& frame);

/// A child's end of the channel. Takes the socket on standard input for itself, so that a library which prints cannot break the
/// protocol: standard output becomes standard error. A thread ends the child's whole process group when the parent is gone.
class ChildChannel {
 public:
  static Result<ChildChannel> take_over_stdin();
  /// False: the parent closed the channel.
  bool receive(Message& message);
  bool send(const Message& message);

 private:
  explicit ChildChannel(int file) : file_(file) {}
  int file_ = -1;
  std::string pending_;
};

}  // namespace kw::tuner
