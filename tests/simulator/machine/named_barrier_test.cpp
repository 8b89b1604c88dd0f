// bar.sync, bar.arrive, bar.red: parking, counts, reductions, misuse, what a deadlock report says.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.h"
#include "tests/simulator/machine/small_machine.h"

namespace kw::simulate {
namespace {

using Kinds = std::vector<FindingKind>;

TEST_CASE("bar.sync parks until all warps are there, and repeating the call is free of effects") {
  SmallMachine m;
  const std::uint64_t before = m.machine.wake_count();
  CHECK(m.machine.barrier_sync(m.at(0, 1), 0, 0, true) == Outcome::kParked);
  CHECK(m.machine.barrier_sync(m.at(0, 1), 0, 0, true) == Outcome::kParked);
  CHECK(m.machine.wake_count() == before);
  CHECK(m.machine.barrier_sync(m.at(1, 1), 0, 0, true) == Outcome::kDone);
  CHECK(m.machine.wake_count() != before);
  CHECK(m.machine.barrier_sync(m.at(0, 1), 0, 0, true) == Outcome::kDone);
  CHECK(m.machine.barrier_sync(m.at(0, 2), 0, 0, true) == Outcome::kParked);
  CHECK(m.text() == "");
}

TEST_CASE("a warp that has exited is not waited for") {
  SmallMachine m;
  CHECK(m.machine.barrier_sync(m.at(0, 1), 0, 0, true) == Outcome::kParked);
  m.exit(1);
  CHECK(m.machine.barrier_sync(m.at(0, 1), 0, 0, true) == Outcome::kDone);
}

TEST_CASE("a CTA whose last warp is not full passes its barrier") {
  SmallMachine m({.block = {40, 1, 1}, .shared_bytes = 64});
  CHECK(m.machine.barrier_sync(m.at(0, 1), 0, 64, true) == Outcome::kParked);
  CHECK(m.machine.barrier_sync(m.at(1, 1, 0xff), 0, 64, true) == Outcome::kDone);
}

TEST_CASE("lanes of a diverged warp arrive one group after the other at the form without .aligned") {
  SmallMachine m({.block = {32, 1, 1}, .shared_bytes = 64});
  CHECK(m.machine.barrier_sync(m.at(0, 1, 0xffff), 0, 0, false) == Outcome::kParked);
  CHECK(m.machine.barrier_sync(m.at(0, 2, 0xffff0000), 0, 0, false) == Outcome::kDone);
  CHECK(m.machine.barrier_sync(m.at(0, 1, 0xffff), 0, 0, false) == Outcome::kDone);
}

TEST_CASE("bar.arrive does not wait, and counts") {
  SmallMachine m({.block = {96, 1, 1}, .shared_bytes = 64});
  CHECK(m.machine.barrier_arrive(m.at(0, 1), 3, 96, true) == Outcome::kDone);
  CHECK(m.machine.barrier_sync(m.at(1, 2), 3, 96, true) == Outcome::kParked);
  CHECK(m.machine.barrier_arrive(m.at(2, 1), 3, 96, true) == Outcome::kDone);
  CHECK(m.machine.barrier_sync(m.at(1, 2), 3, 96, true) == Outcome::kDone);
}

TEST_CASE("bar.red counts and combines the predicates of all threads") {
  for (const auto& [op, expected] : {std::pair{BarrierReduction::kPopc, 35u}, {BarrierReduction::kAnd, 0u}, {BarrierReduction::kOr, 1u}}) {
    SmallMachine m;
    std::uint32_t result = 99;
    CHECK(m.machine.barrier_reduce(m.at(0, 1), 0, 0, true, op, kAllLanes, result) == Outcome::kParked);
    CHECK(m.machine.barrier_reduce(m.at(1, 1), 0, 0, true, op, 0x7, result) == Outcome::kDone);
    CHECK(result == expected);
    result = 99;
    CHECK(m.machine.barrier_reduce(m.at(0, 1), 0, 0, true, op, kAllLanes, result) == Outcome::kDone);
    CHECK(result == expected);
  }
}

TEST_CASE("different thread counts in one generation are a fault that names both places") {
  SmallMachine m({.block = {128, 1, 1}, .shared_bytes = 64});
  m.machine.barrier_sync(m.at(0, 1), 1, 128, true);
  CHECK(m.machine.barrier_sync(m.at(1, 2), 1, 64, true) == Outcome::kFault);
  REQUIRE(m.kinds() == Kinds{FindingKind::kBarrierMisuse});
  CHECK(m.text().find("barrier 1: arrival for 64 threads, but this generation was opened for 128") != std::string::npos);
  CHECK(m.machine.findings().all()[0].other->pc == 1);
}

TEST_CASE("barrier ids and counts outside of their range are faults") {
  SmallMachine m;
  CHECK(m.machine.barrier_sync(m.at(0, 1), 16, 0, true) == Outcome::kFault);
  CHECK(m.machine.barrier_sync(m.at(0, 2), 0, 33, true) == Outcome::kFault);
  CHECK(m.machine.barrier_sync(m.at(0, 3), 0, 96, true) == Outcome::kFault);
  CHECK(m.machine.barrier_arrive(m.at(0, 4), 0, 0, true) == Outcome::kFault);
  CHECK(m.machine.findings().all().size() == 4);
}

TEST_CASE("a parked warp says which warps are missing") {
  SmallMachine m({.block = {96, 1, 1}, .shared_bytes = 64});
  m.machine.barrier_sync(m.at(1, 7), 0, 0, true);
  CHECK(m.machine.describe_wait(m.at(1, 7)) == "barrier 0: 32 of 96 threads have arrived, generation 0; warps that have not: 0, 2");
}

TEST_CASE("the cluster barrier waits for all threads of all CTAs and orders them") {
  SmallMachine m({.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}, .shared_bytes = 128});
  const Context a = m.at(0, 1, kAllLanes, 0);
  const Context b = m.at(0, 1, kAllLanes, 1);
  m.store(a, m.shared(0, 0), 5, {.space = Space::kShared});
  CHECK(m.machine.cluster_arrive(a, Order::kRelease) == Outcome::kDone);
  CHECK(m.machine.cluster_wait(a, Order::kAcquire) == Outcome::kParked);
  CHECK(m.machine.describe_wait(a) == "cluster barrier: 32 of 64 threads have arrived, generation 0");
  CHECK(m.machine.cluster_arrive(b, Order::kRelease) == Outcome::kDone);
  CHECK(m.machine.cluster_wait(b, Order::kAcquire) == Outcome::kDone);
  CHECK(m.machine.cluster_wait(a, Order::kAcquire) == Outcome::kDone);
  m.load(b, m.shared(0, 0), {.space = Space::kSharedCluster});
  CHECK(m.loaded[0] == 5);
  CHECK(m.text() == "");
}

TEST_CASE("planted fault: distributed shared memory read without the cluster barrier races") {
  SmallMachine m({.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}, .shared_bytes = 128});
  m.store(m.at(0, 1, kAllLanes, 0), m.shared(0, 0), 5, {.space = Space::kShared});
  m.load(m.at(0, 2, kAllLanes, 1), m.shared(0, 0), {.space = Space::kSharedCluster});
  REQUIRE(m.kinds() == Kinds{FindingKind::kRace});
  CHECK(m.machine.findings().all()[0].where.cta == 1);
  CHECK(m.machine.findings().all()[0].other->cta == 0);
}

TEST_CASE("a relaxed cluster arrive orders nothing") {
  SmallMachine m({.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}, .shared_bytes = 128});
  m.store(m.at(0, 1, kAllLanes, 0), m.shared(0, 0), 5, {.space = Space::kShared});
  for (const std::size_t cta : {0u, 1u}) m.machine.cluster_arrive(m.at(0, 2, kAllLanes, cta), Order::kRelaxed);
  for (const std::size_t cta : {0u, 1u}) CHECK(m.machine.cluster_wait(m.at(0, 3, kAllLanes, cta), Order::kAcquire) == Outcome::kDone);
  m.load(m.at(0, 4, kAllLanes, 1), m.shared(0, 0), {.space = Space::kSharedCluster});
  CHECK(m.kinds() == Kinds{FindingKind::kRace});
}

TEST_CASE("cluster arrive and wait must come in pairs") {
  SmallMachine m;
  CHECK(m.machine.cluster_wait(m.at(0, 1), Order::kAcquire) == Outcome::kFault);
  SmallMachine twice;
  twice.machine.cluster_arrive(twice.at(0, 1), Order::kRelease);
  CHECK(twice.machine.cluster_arrive(twice.at(0, 2), Order::kRelease) == Outcome::kFault);
  CHECK(twice.kinds() == Kinds{FindingKind::kBarrierMisuse});
}

TEST_CASE("shared memory of a CTA that has exited cannot be reached") {
  SmallMachine m({.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}, .shared_bytes = 128});
  m.exit(0, 0);
  CHECK(m.load(m.at(0, 2, 1, 1), m.shared(0, 0), {.space = Space::kSharedCluster}) == Outcome::kFault);
  CHECK(m.kinds() == Kinds{FindingKind::kBadAddress});
}

TEST_CASE("a rank outside of the cluster, and another CTA's memory as .shared::cta, are faults") {
  SmallMachine m({.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}, .shared_bytes = 128});
  std::uint32_t mapped = 0;
  CHECK(m.machine.map_to_rank(m.at(0, 1), m.shared(16), 1, mapped) == Outcome::kDone);
  CHECK(mapped == m.shared(16, 1));
  CHECK(m.machine.map_to_rank(m.at(0, 1), m.shared(16), 2, mapped) == Outcome::kFault);
  CHECK(m.store(m.at(0, 2, 1), m.shared(0, 1), 0, {.space = Space::kShared}) == Outcome::kFault);
  CHECK(m.store(m.at(0, 3, 1), m.shared(0, 0) + (5u << 24), 0, {.space = Space::kSharedCluster}) == Outcome::kFault);
}

}  // namespace
}  // namespace kw::simulate
