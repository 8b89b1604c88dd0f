// Happens-before on shared memory: barriers order warps, missing ones are found whatever the order of execution.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.h"
#include "tests/simulator/machine/small_machine.h"

namespace kw::simulate {
namespace {

using Kinds = std::vector<FindingKind>;

TEST_CASE("a read after a barrier is ordered after another warp's write") {
  SmallMachine m;
  m.store(m.at(0, 1), m.shared(0), 1);
  m.sync(2);
  m.load(m.at(1, 3), m.shared(0));
  CHECK(m.text() == "");
}

TEST_CASE("planted fault: without the barrier the read races, with both places and a remedy") {
  SmallMachine m;
  m.store(m.at(0, 1), m.shared(0), 1);
  m.load(m.at(1, 3), m.shared(0));
  REQUIRE(m.kinds() == Kinds{FindingKind::kRace});
  const Finding& finding = m.machine.findings().all()[0];
  CHECK(finding.where.warp == 1);
  CHECK(finding.where.pc == 3);
  REQUIRE(finding.other.has_value());
  CHECK(finding.other->warp == 0);
  CHECK(finding.other->pc == 1);
  CHECK(finding.remedy.find("bar.sync") != std::string::npos);
  CHECK(finding.count == 32);
}

TEST_CASE("planted fault: a write after another warp's read without a barrier races") {
  SmallMachine m;
  m.store(m.at(0, 1), m.shared(0), 1);
  m.sync(2);
  m.load(m.at(1, 3), m.shared(0));
  m.store(m.at(0, 4), m.shared(0), 2);
  REQUIRE(m.kinds() == Kinds{FindingKind::kRace});
  CHECK(m.machine.findings().all()[0].other->pc == 3);
}

TEST_CASE("planted fault: the second of several readers is found by the next write") {
  SmallMachine m({.block = {128, 1, 1}, .shared_bytes = 1024});
  m.store(m.at(0, 1), m.shared(0), 1);
  m.sync(2);
  for (const std::uint32_t warp : {0u, 1u, 2u, 3u}) m.load(m.at(warp, 3), m.shared(0));
  // Warps 0, 1 and 3 meet; warp 2 is left out.
  for (const std::uint32_t warp : {0u, 1u, 3u}) m.machine.barrier_sync(m.at(warp, 4), 1, 96, true);
  m.store(m.at(0, 5), m.shared(0), 2);
  REQUIRE(m.kinds() == Kinds{FindingKind::kRace});
  CHECK(m.machine.findings().all()[0].other->warp == 2);
}

TEST_CASE("a barrier that only the writer and a third warp pass does not order the reader") {
  SmallMachine m({.block = {96, 1, 1}, .shared_bytes = 1024});
  m.store(m.at(0, 1), m.shared(0), 1);
  m.machine.barrier_sync(m.at(0, 2), 1, 64, true);
  m.machine.barrier_sync(m.at(2, 2), 1, 64, true);
  m.load(m.at(1, 3), m.shared(0));
  CHECK(m.kinds() == Kinds{FindingKind::kRace});
}

TEST_CASE("order is transitive over two barriers") {
  SmallMachine m({.block = {96, 1, 1}, .shared_bytes = 1024});
  m.store(m.at(0, 1), m.shared(0), 1);
  m.machine.barrier_sync(m.at(0, 2), 1, 64, true);
  m.machine.barrier_sync(m.at(2, 2), 1, 64, true);
  m.machine.barrier_sync(m.at(2, 2), 1, 64, true);
  m.machine.barrier_sync(m.at(2, 3), 2, 64, true);
  m.machine.barrier_sync(m.at(1, 3), 2, 64, true);
  m.load(m.at(1, 4), m.shared(0));
  CHECK(m.text() == "");
}

TEST_CASE("a write after the arrival is not covered by it") {
  SmallMachine m;
  m.machine.barrier_arrive(m.at(0, 1), 1, 64, true);
  m.store(m.at(0, 2), m.shared(0), 1);
  m.machine.barrier_sync(m.at(1, 3), 1, 64, true);
  m.load(m.at(1, 4), m.shared(0));
  CHECK(m.kinds() == Kinds{FindingKind::kRace});
}

TEST_CASE("a write before the arrival is covered by it") {
  SmallMachine m;
  m.store(m.at(0, 1), m.shared(0), 1);
  m.machine.barrier_arrive(m.at(0, 2), 1, 64, true);
  m.machine.barrier_sync(m.at(1, 3), 1, 64, true);
  m.load(m.at(1, 4), m.shared(0));
  CHECK(m.text() == "");
}

TEST_CASE("two readers do not race") {
  SmallMachine m;
  m.store(m.at(0, 1), m.shared(0), 1);
  m.sync(2);
  m.load(m.at(0, 3), m.shared(0));
  m.load(m.at(1, 3), m.shared(0));
  CHECK(m.text() == "");
}

TEST_CASE("halves of a word written by two warps do not race, the same half does") {
  SmallMachine m;
  const AccessKind half = {.space = Space::kShared, .bytes = 2};
  const std::array<std::byte, 64> data{};
  std::uint64_t low = m.shared(0);
  std::uint64_t high = m.shared(2);
  m.machine.store(m.at(0, 1, 1), half, &low, data.data());
  m.machine.store(m.at(1, 2, 1), half, &high, data.data());
  m.machine.load(m.at(0, 3, 1), half, &low, reinterpret_cast<std::byte*>(m.loaded.data()));
  CHECK(m.text() == "");
  m.machine.store(m.at(0, 4, 1), half, &high, data.data());
  REQUIRE(m.kinds() == Kinds{FindingKind::kRace});
  CHECK(m.machine.findings().all()[0].other->pc == 2);
}

TEST_CASE("a whole-word read sees the race with the half that another warp wrote") {
  SmallMachine m;
  const AccessKind half = {.space = Space::kShared, .bytes = 2};
  const std::array<std::byte, 64> data{};
  std::uint64_t low = m.shared(0);
  std::uint64_t high = m.shared(2);
  m.machine.store(m.at(1, 1, 1), half, &high, data.data());
  m.machine.store(m.at(0, 2, 1), half, &low, data.data());
  m.load(m.at(0, 3, 1), m.shared(0));
  REQUIRE(m.kinds() == Kinds{FindingKind::kRace});
  CHECK(m.machine.findings().all()[0].other->pc == 1);
}

TEST_CASE("checks can be switched off") {
  SmallMachine m({.block = {64, 1, 1}, .shared_bytes = 1024}, {.checks_races = false, .checks_initialisation = false});
  m.store(m.at(0, 1), m.shared(0), 1);
  m.load(m.at(1, 3), m.shared(0));
  m.load(m.at(1, 3), m.shared(512));
  CHECK(m.text() == "");
}

TEST_CASE("atomics of two warps do not race with each other, but with a plain access") {
  SmallMachine m;
  const auto counter = m.memory.allocate("counter", 4, AllocationRole::kInOut);
  m.memory.write(*counter, bytes_of({0}));
  CHECK(m.atomic_add(m.at(0, 1), *counter, 2, Order::kRelaxed) == 0);
  CHECK(m.atomic_add(m.at(1, 1), *counter, 3, Order::kRelaxed) == 2);
  CHECK(m.text() == "");
  m.load(m.at(0, 2, 1), *counter, {.space = Space::kGlobal});
  REQUIRE(m.kinds() == Kinds{FindingKind::kRace});
  CHECK(m.machine.findings().all()[0].other->warp == 1);
  CHECK(m.loaded[0] == 5);
}

TEST_CASE("global memory inside a CTA is ordered by barriers too") {
  SmallMachine m;
  const auto scratch = m.memory.allocate("scratch", 128, AllocationRole::kOutput);
  m.store(m.at(0, 1), *scratch, 1, {.space = Space::kGlobal});
  m.sync(2);
  m.load(m.at(1, 3), *scratch, {.space = Space::kGlobal});
  CHECK(m.text() == "");
  m.store(m.at(0, 4), *scratch, 1, {.space = Space::kGlobal});
  CHECK(m.kinds() == Kinds{FindingKind::kRace});
}

}  // namespace
}  // namespace kw::simulate
