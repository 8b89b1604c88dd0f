// cp.async groups under the three adversaries, waits that are missing or off by one, zero fill.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.h"
#include "tests/simulator/machine/small_machine.h"

namespace kw::simulate {
namespace {

using Kinds = std::vector<FindingKind>;
constexpr Adversary kAdversaries[] = {Adversary::kEager, Adversary::kLazy, Adversary::kRandom};
const LaunchShape kShape = {.block = {64, 1, 1}, .shared_bytes = 1024};

struct CopyMachine : SmallMachine {
  explicit CopyMachine(Adversary adversary) : SmallMachine(kShape, {.schedule = {adversary, 3}}) {
    source = *memory.allocate("A", 256, AllocationRole::kInput);
    std::vector<std::uint32_t> words(64);
    for (std::uint32_t word = 0; word < 64; ++word) words[word] = 1000 + word;
    memory.write(source, bytes_of(words));
  }
  std::uint64_t source = 0;
};

TEST_CASE("a copy is there after its wait, on every schedule") {
  for (const Adversary adversary : kAdversaries) {
    CopyMachine m(adversary);
    m.copy16(m.at(0, 1), m.shared(0), m.source + 16);
    m.machine.cp_async_commit(m.at(0, 2));
    m.machine.cp_async_wait(m.at(0, 3), 0);
    m.load(m.at(0, 4, 0xf), m.shared(0));
    CHECK(m.loaded[0] == 1004);
    CHECK(m.loaded[3] == 1007);
    CHECK(m.text() == "");
  }
}

TEST_CASE("planted fault: reading without wait_group is found on every schedule") {
  for (const Adversary adversary : kAdversaries) {
    CopyMachine m(adversary);
    m.copy16(m.at(0, 1), m.shared(0), m.source);
    m.machine.cp_async_commit(m.at(0, 2));
    m.load(m.at(0, 4, 0xf), m.shared(0));
    REQUIRE(m.kinds() == Kinds{FindingKind::kRace});
    CHECK(m.machine.findings().all()[0].remedy.find("cp.async.wait_group") != std::string::npos);
    CHECK(m.machine.findings().all()[0].other->pc == 1);
  }
}

TEST_CASE("planted fault: wait_group off by one leaves the last group unordered") {
  for (const Adversary adversary : kAdversaries) {
    CopyMachine m(adversary);
    for (const std::uint32_t stage : {0u, 1u}) {
      m.copy16(m.at(0, 1), m.shared(16 * stage), m.source + 16 * stage);
      m.machine.cp_async_commit(m.at(0, 2));
    }
    m.machine.cp_async_wait(m.at(0, 3), 1);
    m.load(m.at(0, 4, 0xf), m.shared(0));
    CHECK(m.loaded[0] == 1000);
    CHECK(m.text() == "");
    m.load(m.at(0, 5, 0xf), m.shared(16));
    CHECK(m.kinds() == Kinds{FindingKind::kRace});
  }
}

TEST_CASE("planted fault: another warp needs the barrier after the wait") {
  for (const Adversary adversary : kAdversaries) {
    CopyMachine m(adversary);
    m.copy16(m.at(0, 1), m.shared(0), m.source);
    m.machine.cp_async_commit(m.at(0, 2));
    m.machine.cp_async_wait(m.at(0, 3), 0);
    m.load(m.at(1, 4, 0xf), m.shared(0));
    CHECK(m.kinds() == Kinds{FindingKind::kRace});
  }
}

TEST_CASE("the barrier after the wait carries the copies to the other warp; before the wait it does not") {
  for (const Adversary adversary : kAdversaries) {
    for (const bool waits_first : {true, false}) {
      CopyMachine m(adversary);
      m.copy16(m.at(0, 1), m.shared(0), m.source);
      m.machine.cp_async_commit(m.at(0, 2));
      if (waits_first) m.machine.cp_async_wait(m.at(0, 3), 0);
      m.sync(4);
      if (!waits_first) m.machine.cp_async_wait(m.at(0, 3), 0);
      m.load(m.at(1, 5, 0xf), m.shared(0));
      CHECK(m.kinds() == (waits_first ? Kinds{} : Kinds{FindingKind::kRace}));
    }
  }
}

TEST_CASE("planted fault: a copy into a stage that another warp still reads") {
  CopyMachine m(Adversary::kEager);
  m.store(m.at(1, 1), m.shared(0), 1);
  m.load(m.at(1, 2), m.shared(0));
  m.copy16(m.at(0, 3), m.shared(0), m.source);
  REQUIRE(m.kinds() == Kinds{FindingKind::kRace});
  CHECK(m.machine.findings().all()[0].where.pc == 3);
}

TEST_CASE("lazy copies land at the wait, not before") {
  CopyMachine m(Adversary::kLazy);
  m.store(m.at(0, 0, 0xf), m.shared(0), 5);
  m.copy16(m.at(0, 1), m.shared(0), m.source);
  m.machine.cp_async_commit(m.at(0, 2));
  m.load(m.at(0, 3, 0xf), m.shared(0));
  CHECK(m.loaded[0] == 5);
  m.machine.cp_async_wait_all(m.at(0, 4));
  m.load(m.at(0, 5, 0xf), m.shared(0));
  CHECK(m.loaded[0] == 1000);
}

TEST_CASE("source bytes below the size are followed by zeros, and none are read when it is zero") {
  for (const std::uint32_t num_source : {0u, 4u, 10u, 16u}) {
    CopyMachine m(Adversary::kEager);
    const std::uint64_t source = num_source == 0 ? 16 : m.source;  // an address outside of all buffers is not read
    m.copy16(m.at(0, 1), m.shared(0), source, &num_source);
    m.machine.cp_async_wait_all(m.at(0, 2));
    m.load(m.at(0, 3, 0xf), m.shared(0));
    CHECK(m.loaded[0] == (num_source >= 4 ? 1000u : 0u));
    CHECK(m.loaded[3] == (num_source == 16 ? 1003u : 0u));
    CHECK(m.text() == "");
  }
}

TEST_CASE("bad sizes, addresses and bounds of cp.async are faults") {
  CopyMachine m(Adversary::kEager);
  const std::uint32_t too_many = 17;
  CHECK(m.copy16(m.at(0, 1), m.shared(0), m.source, &too_many) == Outcome::kFault);
  CHECK(m.copy16(m.at(0, 2), m.shared(8), m.source) == Outcome::kFault);
  CHECK(m.copy16(m.at(0, 3), m.shared(0), m.source + 4) == Outcome::kFault);
  CHECK(m.copy16(m.at(0, 4), m.shared(0), m.source + 256) == Outcome::kFault);
  CHECK(m.copy16(m.at(0, 5), m.shared(1024), m.source) == Outcome::kFault);
  CHECK(m.kinds() == Kinds{FindingKind::kBadOperand, FindingKind::kMisaligned, FindingKind::kMisaligned, FindingKind::kOutOfBounds,
                           FindingKind::kOutOfBounds});
}

TEST_CASE("copies that arrive on an mbarrier are ordered for who waits on it") {
  for (const Adversary adversary : kAdversaries) {
    CopyMachine m(adversary);
    const std::uint64_t barrier = m.shared(512);
    m.init(m.at(0, 0), m.shared(512), 1);
    m.sync(1);
    m.copy16(m.at(0, 2), m.shared(0), m.source);
    m.machine.cp_async_mbarrier_arrive(m.at(0, 3, 1), &barrier, true);
    m.wait_until(m.at(1, 4), m.shared(512), 0);
    m.load(m.at(1, 5, 0xf), m.shared(0));
    CHECK(m.loaded[1] == 1001);
    CHECK(m.text() == "");
    // A copy issued after the arrive is not covered by it.
    m.copy16(m.at(0, 6), m.shared(16), m.source);
    m.load(m.at(1, 7, 0xf), m.shared(16));
    CHECK(m.kinds() == Kinds{FindingKind::kRace});
  }
}

}  // namespace
}  // namespace kw::simulate
