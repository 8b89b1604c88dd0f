// mbarrier phases, parities, tx counts, clocks carried by them, misuse.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.h"
#include "tests/simulator/machine/small_machine.h"

namespace kw::simulate {
namespace {

using Kinds = std::vector<FindingKind>;

struct BarrierMachine : SmallMachine {
  explicit BarrierMachine(std::uint32_t count) : barrier(shared(64)) {
    init(at(0, 0), barrier, count);
    sync(1);
  }
  std::uint32_t barrier;
};

TEST_CASE("a fresh barrier: waiting for parity 1 passes at once, for parity 0 it parks") {
  BarrierMachine m(1);
  CHECK(m.wait_parity(m.at(1, 2), m.barrier, 1) == Outcome::kDone);
  CHECK(m.completed == 1);
  CHECK(m.wait_parity(m.at(1, 3), m.barrier, 0) == Outcome::kParked);
}

TEST_CASE("after k completed phases a wait for parity (k-1)&1 passes and the other one parks") {
  BarrierMachine m(1);
  for (std::uint32_t k = 1; k <= 5; ++k) {
    m.arrive(m.at(0, 2), m.barrier);
    CHECK(m.wait_parity(m.at(1, 3), m.barrier, (k - 1) & 1) == Outcome::kDone);
    CHECK(m.wait_parity(m.at(1, 4), m.barrier, k & 1) == Outcome::kParked);
  }
}

TEST_CASE("a phase needs all arrivals and all bytes") {
  BarrierMachine m(2);
  m.arrive(m.at(0, 2), m.barrier, 1, 64);
  m.arrive(m.at(1, 3), m.barrier, 1);
  CHECK(m.wait_parity(m.at(1, 4), m.barrier, 0) == Outcome::kParked);
  const std::uint64_t address = m.barrier;
  std::uint32_t bytes = 32;
  m.machine.mbarrier_complete_tx(m.at(0, 5, 1), Space::kShared, &address, &bytes);
  CHECK(m.wait_parity(m.at(1, 4), m.barrier, 0) == Outcome::kParked);
  m.machine.mbarrier_complete_tx(m.at(0, 5, 1), Space::kShared, &address, &bytes);
  CHECK(m.wait_parity(m.at(1, 4), m.barrier, 0) == Outcome::kDone);
  CHECK(m.text() == "");
}

TEST_CASE("bytes may be completed before they are expected, and bytes alone do not end a phase") {
  BarrierMachine m(1);
  const std::uint64_t address = m.barrier;
  const std::uint32_t bytes = 128;
  m.machine.mbarrier_complete_tx(m.at(0, 2, 1), Space::kShared, &address, &bytes);
  CHECK(m.wait_parity(m.at(1, 3), m.barrier, 0) == Outcome::kParked);
  m.arrive(m.at(0, 4), m.barrier, 1, 128);
  CHECK(m.wait_parity(m.at(1, 3), m.barrier, 0) == Outcome::kDone);
  CHECK(m.text() == "");
}

TEST_CASE("a wait carries what the arriver wrote before its arrive") {
  BarrierMachine m(1);
  m.store(m.at(0, 2), m.shared(256), 1);
  m.arrive(m.at(0, 3), m.barrier);
  m.wait_parity(m.at(1, 4), m.barrier, 0);
  m.load(m.at(1, 5), m.shared(256));
  CHECK(m.text() == "");
}

TEST_CASE("planted fault: without the wait, or with a store after the arrive, the read races") {
  BarrierMachine no_wait(1);
  no_wait.store(no_wait.at(0, 2), no_wait.shared(256), 1);
  no_wait.arrive(no_wait.at(0, 3), no_wait.barrier);
  no_wait.load(no_wait.at(1, 5), no_wait.shared(256));
  CHECK(no_wait.kinds() == Kinds{FindingKind::kRace});
  BarrierMachine late(1);
  late.arrive(late.at(0, 3), late.barrier);
  late.store(late.at(0, 2), late.shared(256), 1);
  late.wait_parity(late.at(1, 4), late.barrier, 0);
  late.load(late.at(1, 5), late.shared(256));
  CHECK(late.kinds() == Kinds{FindingKind::kRace});
}

TEST_CASE("planted fault: waiting for the wrong parity passes and the read races") {
  BarrierMachine m(1);
  m.store(m.at(0, 2), m.shared(256), 1);
  CHECK(m.wait_parity(m.at(1, 4), m.barrier, 1) == Outcome::kDone);
  m.load(m.at(1, 5), m.shared(256));
  CHECK(m.kinds() == Kinds{FindingKind::kRace});
}

TEST_CASE("lanes of one warp arrive one by one, and a state token waits for its own phase") {
  BarrierMachine m(64);
  std::array<std::uint64_t, kLanes> address{};
  std::array<std::uint64_t, kLanes> state{};
  address.fill(m.barrier);
  m.machine.mbarrier_arrive(m.at(0, 2), {}, address.data(), nullptr, nullptr, state.data());
  std::array<std::uint32_t, kLanes> pending{};
  m.machine.mbarrier_pending_count(m.at(0, 2), state.data(), pending.data());
  CHECK(pending[0] == 64);
  CHECK(pending[31] == 33);
  LaneMask completed = 0;
  CHECK(m.machine.mbarrier_wait(m.at(0, 3), {.is_parity = false}, address.data(), state.data(), completed) == Outcome::kParked);
  CHECK(m.machine.mbarrier_wait(m.at(0, 3), {.is_parity = false, .may_park = false}, address.data(), state.data(), completed) ==
        Outcome::kDone);
  CHECK(completed == 0);
  m.machine.mbarrier_arrive(m.at(1, 2), {}, address.data(), nullptr, nullptr, nullptr);
  CHECK(m.machine.mbarrier_wait(m.at(0, 3), {.is_parity = false}, address.data(), state.data(), completed) == Outcome::kDone);
  CHECK(completed == kAllLanes);
}

TEST_CASE("arrive_drop lowers the count of the next phases") {
  BarrierMachine m(2);
  const std::uint64_t address = m.barrier;
  m.machine.mbarrier_arrive(m.at(0, 2, 1), {.is_drop = true}, &address, nullptr, nullptr, nullptr);
  m.arrive(m.at(1, 3), m.barrier);
  CHECK(m.wait_parity(m.at(1, 4), m.barrier, 0) == Outcome::kDone);
  m.arrive(m.at(1, 5), m.barrier);
  CHECK(m.wait_parity(m.at(1, 6), m.barrier, 1) == Outcome::kDone);
  CHECK(m.text() == "");
}

TEST_CASE("planted fault: one arrival too many for the count is a fault") {
  BarrierMachine m(1);
  m.arrive(m.at(0, 2), m.barrier, 1, 64);
  CHECK(m.arrive(m.at(1, 3), m.barrier) == Outcome::kFault);
  REQUIRE(m.kinds() == Kinds{FindingKind::kMbarrierMisuse});
  CHECK(m.text().find("1 arrivals, but phase 0 has 0 of 1 pending (64 bytes outstanding)") != std::string::npos);
}

TEST_CASE("planted fault: a barrier that nobody initialised, or that a store destroyed") {
  SmallMachine none;
  CHECK(none.arrive(none.at(0, 1), none.shared(64)) == Outcome::kFault);
  CHECK(none.wait_parity(none.at(0, 2), none.shared(64), 0) == Outcome::kFault);
  CHECK(none.kinds() == Kinds{FindingKind::kMbarrierMisuse, FindingKind::kMbarrierMisuse});
  BarrierMachine m(1);
  m.store(m.at(0, 2, 1), m.barrier, 0);
  CHECK(m.arrive(m.at(0, 3), m.barrier) == Outcome::kFault);
  CHECK(m.text().find("overwritten") != std::string::npos);
}

TEST_CASE("planted fault: a user that is not ordered after mbarrier.init") {
  SmallMachine m;
  m.init(m.at(0, 0), m.shared(64), 1);
  m.arrive(m.at(1, 2), m.shared(64));
  REQUIRE(m.kinds() == Kinds{FindingKind::kRace});
  CHECK(m.machine.findings().all()[0].other->pc == 0);
}

TEST_CASE("init, expect and arrive outside of their ranges are faults") {
  SmallMachine m;
  CHECK(m.init(m.at(0, 0), m.shared(64), 0) == Outcome::kFault);
  CHECK(m.init(m.at(0, 1), m.shared(64), 1u << 20) == Outcome::kFault);
  CHECK(m.init(m.at(0, 2), m.shared(68), 1) == Outcome::kFault);
  CHECK(m.init(m.at(0, 3), m.shared(64), 1) == Outcome::kDone);
  CHECK(m.init(m.at(0, 4), m.shared(64), 1) == Outcome::kFault);
  const std::uint64_t address = m.shared(64);
  std::uint32_t bytes = 1u << 20;
  CHECK(m.machine.mbarrier_expect_tx(m.at(0, 5, 1), Space::kShared, &address, &bytes) == Outcome::kFault);
  CHECK(m.arrive(m.at(0, 6), m.shared(64), 0) == Outcome::kFault);
}

TEST_CASE("mbarrier.inval makes a barrier unusable and its place free for another init") {
  BarrierMachine m(1);
  const std::uint64_t address = m.barrier;
  CHECK(m.machine.mbarrier_inval(m.at(0, 2, 1), &address) == Outcome::kDone);
  CHECK(m.arrive(m.at(0, 3), m.barrier) == Outcome::kFault);
  CHECK(m.init(m.at(0, 4), m.barrier, 1) == Outcome::kDone);
  CHECK(m.arrive(m.at(0, 5), m.barrier) == Outcome::kDone);
}

TEST_CASE("a parked wait prints the barrier's phase, arrivals and bytes") {
  BarrierMachine m(2);
  m.arrive(m.at(0, 2), m.barrier, 1, 4096);
  m.wait_parity(m.at(1, 3), m.barrier, 0);
  CHECK(m.machine.describe_wait(m.at(1, 3, 1)) ==
        "mbarrier at shared + 64: waits for parity 0; it is in phase 0 (parity 0) with 1 of 2 arrivals pending and 4096 bytes outstanding");
}

// CUTLASS starts its clusters so: fence.mbarrier_init, a relaxed arrive, a wait. The fence was read as nothing and the init as a race.
TEST_CASE("fence.mbarrier_init lets a relaxed cluster arrive carry the init, and nothing else") {
  for (const bool has_fence : {true, false}) {
    SmallMachine m({.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}, .shared_bytes = 1024});
    m.init(m.at(0, 0), m.shared(64), 1);
    m.store(m.at(0, 1), m.shared(256), 9);
    if (has_fence) m.machine.fence_mbarrier_init(m.at(0, 2));
    for (const std::size_t cta : {0u, 1u}) m.machine.cluster_arrive(m.at(0, 3, kAllLanes, cta), Order::kRelaxed);
    for (const std::size_t cta : {0u, 1u}) m.machine.cluster_wait(m.at(0, 4, kAllLanes, cta), Order::kAcquire);
    m.arrive(m.at(0, 5, kAllLanes, 1), m.shared(64, 0));
    CHECK(m.kinds() == (has_fence ? Kinds{} : Kinds{FindingKind::kRace}));
    m.load(m.at(0, 6, kAllLanes, 1), m.shared(256, 0), {.space = Space::kSharedCluster});
    CHECK(m.machine.findings().all().back().where.pc == 6);
  }
}

TEST_CASE("a remote arrive releases a wait in another CTA of the cluster") {
  SmallMachine m({.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}, .shared_bytes = 1024});
  m.init(m.at(0, 0), m.shared(64), 1);
  for (const std::size_t cta : {0u, 1u}) m.machine.cluster_arrive(m.at(0, 1, kAllLanes, cta), Order::kRelease);
  for (const std::size_t cta : {0u, 1u}) m.machine.cluster_wait(m.at(0, 2, kAllLanes, cta), Order::kAcquire);
  m.store(m.at(0, 3, kAllLanes, 1), m.shared(256, 0), 9, {.space = Space::kSharedCluster});
  m.arrive(m.at(0, 4, kAllLanes, 1), m.shared(64, 0));
  CHECK(m.wait_parity(m.at(0, 5), m.shared(64), 0) == Outcome::kDone);
  m.load(m.at(0, 6), m.shared(256));
  CHECK(m.loaded[0] == 9);
  CHECK(m.text() == "");
}

TEST_CASE("a try_wait returns false without the phase: never on eager, once on lazy, then it parks") {
  for (const Adversary adversary : {Adversary::kEager, Adversary::kLazy}) {
    SmallMachine m({.block = {64, 1, 1}, .shared_bytes = 1024}, {.schedule = {adversary, 0}});
    m.init(m.at(0, 0), m.shared(64), 1);
    m.sync(1);
    if (adversary == Adversary::kLazy) {
      CHECK(m.wait_parity(m.at(1, 2), m.shared(64), 0) == Outcome::kDone);
      CHECK(m.completed == 0);
    }
    CHECK(m.wait_parity(m.at(1, 2), m.shared(64), 0) == Outcome::kParked);
    CHECK(m.wait_parity(m.at(1, 2), m.shared(64), 0) == Outcome::kParked);
    m.arrive(m.at(0, 3), m.shared(64));
    CHECK(m.wait_parity(m.at(1, 2), m.shared(64), 0) == Outcome::kDone);
    CHECK(m.completed == 1);
    CHECK(m.text() == "");
  }
}

TEST_CASE("an mbarrier.init reaches another CTA by its fence and a relaxed cluster barrier, and not without the fence") {
  for (const bool has_fence : {true, false}) {
    SmallMachine m({.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}, .shared_bytes = 1024});
    m.init(m.at(0, 0), m.shared(64), 1);
    if (has_fence) m.machine.fence_mbarrier_init(m.at(0, 1));
    for (const std::size_t cta : {0u, 1u}) m.machine.cluster_arrive(m.at(0, 2, kAllLanes, cta), Order::kRelaxed);
    for (const std::size_t cta : {0u, 1u}) m.machine.cluster_wait(m.at(0, 3, kAllLanes, cta), Order::kAcquire);
    m.arrive(m.at(0, 4, kAllLanes, 1), m.shared(64, 0));
    CHECK(m.kinds() == (has_fence ? Kinds{} : Kinds{FindingKind::kRace}));
  }
}

}  // namespace
}  // namespace kw::simulate
