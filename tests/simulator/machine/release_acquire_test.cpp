// Order between CTAs: the last-CTA reduction of split-K, serial turns, and each way of leaving out a fence.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.h"
#include "tests/simulator/machine/small_machine.h"

namespace kw::simulate {
namespace {

using Kinds = std::vector<FindingKind>;
constexpr AccessKind kGlobal4 = {.space = Space::kGlobal, .bytes = 4};

/// Two CTAs of two warps: each writes its part, takes a ticket; the second reads both parts.
struct SplitK : SmallMachine {
  SplitK() : SmallMachine({.grid = {2, 1, 1}, .block = {64, 1, 1}, .shared_bytes = 256}), ctas_b(machine.admit(1)) {
    parts = *memory.allocate("workspace", 512, AllocationRole::kOutput);
    counter = *memory.allocate("counter", 4, AllocationRole::kInOut);
    memory.write(counter, bytes_of({0}));
  }
  Context in(std::size_t cta, std::uint32_t warp, std::uint32_t pc) { return {cta == 0 ? ctas[0] : ctas_b[0], warp, kAllLanes, pc}; }
  void sync_cta(std::size_t cta, std::uint32_t pc) {
    for (const std::uint32_t warp : {0u, 1u, 0u}) machine.barrier_sync(in(cta, warp, pc), 0, 0, true);
  }
  struct Plan {
    bool has_fence_before = true;
    Scope fence_scope = Scope::kGpu;
    Order order = Order::kRelaxed;
    Scope scope = Scope::kGpu;
    bool has_fence_after = true;
  };
  void run(const Plan& plan) {
    for (const std::size_t cta : {0u, 1u}) {
      for (const std::uint32_t warp : {0u, 1u}) {
        store(in(cta, warp, 1), parts + 256 * cta + 128 * warp, 1, kGlobal4);
        if (plan.has_fence_before) machine.fence(in(cta, warp, 2), Order::kAcqRel, plan.fence_scope);
      }
      sync_cta(cta, 3);
      const std::uint32_t ticket = atomic_add(in(cta, 0, 4), counter, 1, plan.order, plan.scope);
      REQUIRE(ticket == cta);
      sync_cta(cta, 5);
    }
    for (const std::uint32_t warp : {0u, 1u}) {
      if (plan.has_fence_after) machine.fence(in(1, warp, 6), Order::kAcqRel, plan.fence_scope);
      load(in(1, warp, 7), parts + 128 * warp, kGlobal4);
    }
  }
  std::vector<Cta*> ctas_b;
  std::uint64_t parts = 0;
  std::uint64_t counter = 0;
};

TEST_CASE("fence, barrier, relaxed ticket, barrier, fence order the parts for the last CTA") {
  SplitK m;
  m.run({});
  CHECK(m.text() == "");
}

TEST_CASE("the last CTA may reset the ticket with a plain store: its own update has observed the others") {
  SplitK m;
  m.run({});
  m.sync_cta(1, 8);
  Context resets = m.in(1, 0, 9);
  resets.lanes = 1;
  m.store(resets, m.counter, 0, kGlobal4);
  CHECK(m.text() == "");
  // Without an update of its own after the others' it may not.
  m.sync_cta(1, 8);
  m.atomic_add(m.in(1, 1, 10), m.counter, 1, Order::kRelaxed);
  m.store(resets, m.counter, 0, kGlobal4);
  CHECK(m.kinds() == Kinds{FindingKind::kRace});
}

TEST_CASE("an acq_rel ticket orders the parts without fences") {
  SplitK m;
  m.run({.has_fence_before = false, .order = Order::kAcqRel, .has_fence_after = false});
  CHECK(m.text() == "");
}

TEST_CASE("planted fault: no fence before the ticket") {
  SplitK m;
  m.run({.has_fence_before = false});
  REQUIRE(m.kinds() == Kinds{FindingKind::kRace});
  const Finding& finding = m.machine.findings().all()[0];
  CHECK(finding.where.cta == 1);
  CHECK(finding.other->cta == 0);
  CHECK(finding.remedy.find("gpu scope") != std::string::npos);
}

TEST_CASE("planted fault: no fence after the ticket") {
  SplitK m;
  m.run({.has_fence_after = false});
  CHECK(m.kinds() == Kinds{FindingKind::kRace});
}

TEST_CASE("planted fault: fences or an acq_rel ticket of CTA scope do not order other CTAs") {
  SplitK fences;
  fences.run({.fence_scope = Scope::kCta});
  CHECK(fences.kinds() == Kinds{FindingKind::kRace});
  SplitK ticket;
  ticket.run({.has_fence_before = false, .order = Order::kAcqRel, .scope = Scope::kCta, .has_fence_after = false});
  CHECK(ticket.kinds() == Kinds{FindingKind::kRace});
}

TEST_CASE("planted fault: no ticket at all, although one CTA has ended before the other starts") {
  SplitK m;
  m.store(m.in(0, 0, 1), m.parts, 1, kGlobal4);
  m.exit(0);
  m.exit(1);
  m.machine.retire(0);
  m.load(m.in(1, 0, 7), m.parts, kGlobal4);
  REQUIRE(m.kinds() == Kinds{FindingKind::kRace});
  CHECK(m.machine.findings().all()[0].other->cta == 0);
}

TEST_CASE("two CTAs that write the same word race") {
  SplitK m;
  m.store(m.in(0, 0, 1), m.parts, 1, kGlobal4);
  m.store(m.in(1, 0, 2), m.parts + 124, 1, kGlobal4);
  REQUIRE(m.kinds() == Kinds{FindingKind::kRace});
  CHECK(m.machine.findings().all()[0].count == 1);
}

TEST_CASE("st.release and ld.acquire pass a turn; relaxed forms alone do not") {
  for (const bool is_ordered : {true, false}) {
    SplitK m;
    m.store(m.in(0, 0, 1), m.parts, 1, kGlobal4);
    Context releaser = m.in(0, 0, 2);
    Context acquirer = m.in(1, 0, 3);
    releaser.lanes = acquirer.lanes = 1;
    m.store(releaser, m.counter, 1,
            {.space = Space::kGlobal, .order = is_ordered ? Order::kRelease : Order::kRelaxed, .scope = Scope::kGpu});
    m.load(acquirer, m.counter, {.space = Space::kGlobal, .order = is_ordered ? Order::kAcquire : Order::kRelaxed, .scope = Scope::kGpu});
    m.load(m.in(1, 0, 4), m.parts, kGlobal4);
    CHECK(m.kinds() == (is_ordered ? Kinds{} : Kinds{FindingKind::kRace}));
  }
}

TEST_CASE("order is handed on through a third CTA") {
  SmallMachine m({.grid = {3, 1, 1}, .block = {32, 1, 1}, .shared_bytes = 64});
  const auto b = m.machine.admit(1);
  const auto c = m.machine.admit(2);
  const auto data = *m.memory.allocate("data", 128, AllocationRole::kOutput);
  const auto flag = *m.memory.allocate("flag", 8, AllocationRole::kInOut);
  m.memory.write(flag, bytes_of({0, 0}));
  m.store(m.at(0, 1), data, 1, kGlobal4);
  m.atomic_add(m.at(0, 2), flag, 1, Order::kAcqRel);
  m.exit(0);
  m.machine.retire(0);
  m.atomic_add({b[0], 0, 1, 3}, flag, 1, Order::kAcqRel);
  m.atomic_add({b[0], 0, 1, 4}, flag + 4, 1, Order::kAcqRel);
  m.atomic_add({c[0], 0, 1, 5}, flag + 4, 1, Order::kAcqRel);
  m.load({c[0], 0, kAllLanes, 6}, data, kGlobal4);
  CHECK(m.loaded[3] == 4);
  CHECK(m.text() == "");
}

TEST_CASE("the arithmetic of atomics") {
  SmallMachine m;
  const auto at = *m.memory.allocate("x", 16, AllocationRole::kInOut);
  const auto apply = [&](AtomicOp op, AtomicType type, std::uint64_t old, std::uint64_t operand, std::uint64_t compare = 0) {
    std::vector<std::byte> bytes(8);
    std::memcpy(bytes.data(), &old, 8);
    m.memory.write(at, bytes);
    std::uint64_t returned = 0;
    m.machine.atomic(m.at(0, 1, 1), {.op = op, .type = type, .space = Space::kGlobal}, &at, reinterpret_cast<const std::byte*>(&operand),
                     reinterpret_cast<const std::byte*>(&compare), reinterpret_cast<std::byte*>(&returned));
    std::uint64_t now = 0;
    std::memcpy(&now, m.memory.read(at, 8).data(), 8);
    return now;
  };
  CHECK(apply(AtomicOp::kAdd, AtomicType::kU32, 0xffffffff, 2) == 1);
  CHECK(apply(AtomicOp::kMin, AtomicType::kS32, 5, 0xffffffff) == 0xffffffff);
  CHECK(apply(AtomicOp::kMin, AtomicType::kU32, 5, 0xffffffff) == 5);
  CHECK(apply(AtomicOp::kMax, AtomicType::kS32, 5, 0xffffffff) == 5);
  CHECK(apply(AtomicOp::kInc, AtomicType::kU32, 3, 3) == 0);
  CHECK(apply(AtomicOp::kInc, AtomicType::kU32, 2, 3) == 3);
  CHECK(apply(AtomicOp::kDec, AtomicType::kU32, 0, 9) == 9);
  CHECK(apply(AtomicOp::kDec, AtomicType::kU32, 12, 9) == 9);
  CHECK(apply(AtomicOp::kXor, AtomicType::kB64, 0xf0f0, 0xffff) == 0x0f0f);
  CHECK(apply(AtomicOp::kExch, AtomicType::kB32, 7, 9) == 9);
  CHECK(apply(AtomicOp::kCas, AtomicType::kB32, 7, 9, 7) == 9);
  CHECK(apply(AtomicOp::kCas, AtomicType::kB32, 7, 9, 8) == 7);
  CHECK(apply(AtomicOp::kAdd, AtomicType::kF32, 0x3f800000, 0x40000000) == 0x40400000);     // 1 + 2
  CHECK(apply(AtomicOp::kAdd, AtomicType::kF32, 0x00000001, 0x00000001) == 0);              // global f32 sums flush subnormals
  CHECK(apply(AtomicOp::kAdd, AtomicType::kF16x2, 0x3c003c00, 0x40003c00) == 0x42004000);   // {1, 1} + {1, 2}
  CHECK(apply(AtomicOp::kAdd, AtomicType::kBF16x2, 0x3f803f80, 0x3f804000) == 0x40004040);  // {1, 1} + {2, 1}
  CHECK(apply(AtomicOp::kAdd, AtomicType::kF64, 0x3ff0000000000000, 0x3ff0000000000000) == 0x4000000000000000);
}

TEST_CASE("a misaligned atomic and one on local memory are faults") {
  SmallMachine m;
  const auto at = *m.memory.allocate("x", 16, AllocationRole::kInOut);
  m.atomic_add(m.at(0, 1), at + 2, 1, Order::kRelaxed);
  CHECK(m.kinds() == Kinds{FindingKind::kMisaligned});
}

}  // namespace
}  // namespace kw::simulate
