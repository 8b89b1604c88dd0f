// Frames between the tuner and its children.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/compile/message.h"
#include "tests/catch.h"

using namespace kw::tuner;

TEST_CASE("a message with binary blobs survives encoding") {
  Message message;
  message.head = {{"op", "compile"}, {"number", 7}};
  message.blobs = {std::string("\0\1\2", 3), "", std::string(100000, 'x')};
  const std::string frame = encode(message);
  REQUIRE(*frame_bytes(frame) == frame.size());
  const kw::Result<Message> back = decode(frame);
  REQUIRE(back.has_value());
  CHECK(back->head == message.head);
  CHECK(back->blobs == message.blobs);
}

TEST_CASE("a prefix of a frame asks for more, and foreign bytes are refused") {
  Message message;
  message.blobs = {"abc"};
  const std::string frame = encode(message);
  CHECK(*frame_bytes(frame.substr(0, 5)) == 0);
  CHECK(*frame_bytes(frame.substr(0, 18)) == 0);
  CHECK_FALSE(frame_bytes("this is no frame of ours").has_value());
  CHECK_FALSE(decode(frame.substr(0, frame.size() - 1)).has_value());
}
