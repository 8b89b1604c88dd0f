// Bounds, alignment, initialisation, roles of buffers, windows of generic addresses.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.h"
#include "tests/simulator/machine/small_machine.h"

namespace kw::simulate {
namespace {

using Kinds = std::vector<FindingKind>;
constexpr AccessKind kGlobal4 = {.space = Space::kGlobal, .bytes = 4};

TEST_CASE("a store to shared memory is read back by the same warp") {
  SmallMachine m;
  REQUIRE(m.store(m.at(0, 1), m.shared(0), 100) == Outcome::kDone);
  REQUIRE(m.load(m.at(0, 2), m.shared(0)) == Outcome::kDone);
  CHECK(m.loaded[0] == 100);
  CHECK(m.loaded[31] == 131);
  CHECK(m.text() == "");
}

TEST_CASE("lanes off the mask are not touched") {
  SmallMachine m;
  m.store(m.at(0, 1, 0x3), m.shared(0), 7);
  m.loaded.fill(55);
  m.load(m.at(0, 2, 0x2), m.shared(0));
  CHECK(m.loaded[0] == 55);
  CHECK(m.loaded[1] == 8);
  CHECK(m.loaded[2] == 55);
}

TEST_CASE("a generic address reaches shared and global memory") {
  SmallMachine m;
  const auto out = m.memory.allocate("out", 128, AllocationRole::kOutput);
  m.store(m.at(0, 1), m.shared(0), 1, {.space = Space::kShared});
  REQUIRE(m.load(m.at(0, 2), kSharedWindow + m.shared(0), {.space = Space::kGeneric}) == Outcome::kDone);
  CHECK(m.loaded[3] == 4);
  REQUIRE(m.store(m.at(0, 3), *out, 9, {.space = Space::kGeneric}) == Outcome::kDone);
  CHECK(m.memory.read(*out + 4, 4) == bytes_of({10}));
  CHECK(m.memory.num_uninitialised(*out) == 0);
  CHECK(m.text() == "");
}

TEST_CASE("an access past the end of a buffer names the buffer, the lane and the distance") {
  SmallMachine m;
  const auto in = m.memory.allocate("A", 100, AllocationRole::kInput);
  CHECK(m.load(m.at(0, 5), *in, kGlobal4) == Outcome::kFault);
  REQUIRE(m.kinds() == Kinds{FindingKind::kOutOfBounds});
  CHECK(m.machine.findings().all()[0].where.lane == 25);
  CHECK(m.machine.findings().all()[0].where.pc == 5);
  CHECK(m.text().find("0 bytes past the end of 'A' (100 bytes)") != std::string::npos);
}

TEST_CASE("an access across the end of a buffer is out of bounds") {
  SmallMachine m;
  const auto in = m.memory.allocate("A", 6, AllocationRole::kInput);
  CHECK(m.load(m.at(0, 5, 2), *in, kGlobal4) == Outcome::kFault);
  CHECK(m.kinds() == Kinds{FindingKind::kOutOfBounds});
}

TEST_CASE("null, huge and negative addresses are out of bounds") {
  for (const std::uint64_t address : {std::uint64_t{0}, ~std::uint64_t{0} - 3, std::uint64_t{1} << 63, kSharedWindow - 4}) {
    SmallMachine m;
    m.memory.allocate("A", 64, AllocationRole::kInput);
    CHECK(m.load(m.at(0, 5, 1), address, kGlobal4) == Outcome::kFault);
    CHECK(m.kinds() == Kinds{FindingKind::kOutOfBounds});
  }
}

TEST_CASE("shared memory past its size and below its first byte is out of bounds") {
  for (const std::int64_t offset : {std::int64_t{1024}, std::int64_t{1 << 20}, std::int64_t{-4}, std::int64_t{-1024}}) {
    SmallMachine m;
    const auto address = static_cast<std::uint64_t>(static_cast<std::int64_t>(m.shared(0)) + offset);
    CHECK(m.store(m.at(0, 5, 1), address, 0) == Outcome::kFault);
    CHECK(m.kinds() == Kinds{FindingKind::kOutOfBounds});
  }
}

TEST_CASE("a shared symbol gives its name to findings") {
  SmallMachine m({.block = {32, 1, 1}, .shared_bytes = 64, .shared_symbols = {{"tile_a", 0, 32}, {"tile_b", 32, 32}}});
  m.load(m.at(0, 5, 1), m.shared(40));
  REQUIRE(m.kinds() == Kinds{FindingKind::kUninitialised});
  CHECK(m.text().find("shared 'tile_b' + 8 (4 bytes) was never written") != std::string::npos);
}

TEST_CASE("a misaligned access is a fault") {
  SmallMachine m;
  CHECK(m.store(m.at(0, 1, 1), m.shared(2), 0) == Outcome::kFault);
  CHECK(m.kinds() == Kinds{FindingKind::kMisaligned});
  SmallMachine rows;
  const std::uint32_t row = rows.shared(8);
  std::array<std::byte, 16 * kLanes> data{};
  CHECK(rows.machine.load_rows(rows.at(0, 1, 1), &row, data.data()) == Outcome::kFault);
  CHECK(rows.kinds() == Kinds{FindingKind::kMisaligned});
}

TEST_CASE("reading shared memory that nobody wrote is found") {
  SmallMachine m;
  m.store(m.at(0, 1, 0x7fffffff), m.shared(0), 0);
  CHECK(m.load(m.at(0, 2), m.shared(0)) == Outcome::kDone);
  REQUIRE(m.kinds() == Kinds{FindingKind::kUninitialised});
  CHECK(m.machine.findings().all()[0].where.lane == 31);
}

TEST_CASE("reading an output before it was written is found, an inout buffer may be read") {
  SmallMachine m;
  const auto out = m.memory.allocate("C", 128, AllocationRole::kOutput);
  const auto both = m.memory.allocate("D", 128, AllocationRole::kInOut);
  m.load(m.at(0, 2), *both, kGlobal4);
  CHECK(m.text() == "");
  m.load(m.at(0, 3), *out, kGlobal4);
  CHECK(m.kinds() == Kinds{FindingKind::kUninitialised});
}

TEST_CASE("a store to an input is a fault") {
  SmallMachine m;
  const auto in = m.memory.allocate("A", 128, AllocationRole::kInput);
  CHECK(m.store(m.at(0, 1), *in, 0, kGlobal4) == Outcome::kFault);
  CHECK(m.kinds() == Kinds{FindingKind::kWriteToReadOnly});
}

TEST_CASE("local memory is a thread's own") {
  SmallMachine m({.block = {64, 1, 1}, .local_bytes_per_thread = 16});
  std::array<std::uint64_t, kLanes> address{};
  address.fill(8);
  std::array<std::uint32_t, kLanes> value{};
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) value[lane] = lane;
  m.machine.store(m.at(1, 1), {.space = Space::kLocal}, address.data(), reinterpret_cast<const std::byte*>(value.data()));
  value.fill(0);
  for (std::uint64_t& a : address) a += kLocalWindow;
  m.machine.load(m.at(1, 2), {.space = Space::kGeneric}, address.data(), reinterpret_cast<std::byte*>(value.data()));
  CHECK(value[31] == 31);
  CHECK(m.text() == "");
  address.fill(16);
  CHECK(m.machine.load(m.at(1, 3), {.space = Space::kLocal}, address.data(), reinterpret_cast<std::byte*>(value.data())) ==
        Outcome::kFault);
  CHECK(m.kinds() == Kinds{FindingKind::kOutOfBounds});
}

TEST_CASE("a buffer over the memory cap is refused by name") {
  GlobalMemory memory(1 << 20);
  CHECK(memory.allocate("small", 1 << 19, AllocationRole::kInput).has_value());
  const auto big = memory.allocate("big", 1 << 20, AllocationRole::kInput);
  REQUIRE(!big.has_value());
  CHECK(big.error().message.find("buffer 'big': 1048576 bytes: the simulation's memory cap is 1048576 bytes") == 0);
  CHECK(!memory.allocate("huge", ~std::uint64_t{0}, AllocationRole::kInput).has_value());
}

TEST_CASE("equal findings are counted, not repeated") {
  SmallMachine m;
  for (int turn = 0; turn < 5; ++turn) m.load(m.at(0, 2), m.shared(0));
  REQUIRE(m.machine.findings().all().size() == 1);
  CHECK(m.machine.findings().all()[0].count == 160);
}

}  // namespace
}  // namespace kw::simulate
