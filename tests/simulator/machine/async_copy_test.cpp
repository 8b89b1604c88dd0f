// Bulk loads, multicast, bulk stores and reductions, st.async, wgmma reads: completion, proxies, order under the adversaries.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.h"
#include "tests/simulator/machine/small_machine.h"

namespace kw::simulate {
namespace {

using Kinds = std::vector<FindingKind>;
constexpr Adversary kAdversaries[] = {Adversary::kEager, Adversary::kLazy, Adversary::kRandom};
constexpr AccessKind kShared4 = {.space = Space::kShared, .bytes = 4};

struct BulkMachine : SmallMachine {
  explicit BulkMachine(Adversary adversary, std::uint32_t cluster = 1)
      : SmallMachine({.grid = {cluster, 1, 1}, .block = {64, 1, 1}, .cluster = {cluster, 1, 1}, .shared_bytes = 1024},
                     {.schedule = {adversary, 5}}) {
    std::vector<std::uint32_t> words(64);
    for (std::uint32_t word = 0; word < 64; ++word) words[word] = 1000 + word;
    source = *memory.allocate("A", 256, AllocationRole::kInput);
    memory.write(source, bytes_of(words));
    result = *memory.allocate("C", 256, AllocationRole::kInOut);
    memory.write(result, bytes_of(std::vector<std::uint32_t>(64, 1)));
    for (std::size_t cta = 0; cta < cluster; ++cta) {
      init(at(0, 0, kAllLanes, cta), shared(512, cta), 1);
      machine.fence_mbarrier_init(at(0, 1, kAllLanes, cta));
    }
    if (cluster == 1) sync(2);
    for (std::size_t cta = 0; cta < cluster && cluster > 1; ++cta) {
      for (const std::uint32_t warp : {0u, 1u}) machine.cluster_arrive(at(warp, 2, kAllLanes, cta), Order::kRelease);
    }
    for (std::size_t cta = 0; cta < cluster && cluster > 1; ++cta) {
      for (const std::uint32_t warp : {0u, 1u}) machine.cluster_wait(at(warp, 3, kAllLanes, cta), Order::kAcquire);
    }
  }
  Outcome load128(Context ctx, std::uint32_t to, std::uint32_t barrier, std::uint16_t mask = 0) {
    const std::array<CopyPiece, 2> pieces = {CopyPiece{source, to, 64}, CopyPiece{source + 64, to + 64, 64}};
    ctx.lanes = 1;
    return machine.bulk_load(ctx, pieces, barrier, 128, mask);
  }
  std::uint64_t source = 0;
  std::uint64_t result = 0;
};

TEST_CASE("a bulk load is there after the wait on its mbarrier, on every schedule") {
  for (const Adversary adversary : kAdversaries) {
    BulkMachine m(adversary);
    m.arrive(m.at(0, 4), m.shared(512), 1, 128);
    CHECK(m.load128(m.at(0, 5), m.shared(0), m.shared(512)) == Outcome::kDone);
    m.wait_until(m.at(1, 6), m.shared(512), 0);
    m.load(m.at(1, 7), m.shared(0));
    CHECK(m.loaded[17] == 1017);
    CHECK(m.text() == "");
  }
}

TEST_CASE("planted fault: a bulk load completes on an mbarrier whose init no fence has made known to the async proxy") {
  enum class Fence { kNone, kInit, kProxyByAnother };
  for (const Fence fence : {Fence::kNone, Fence::kInit, Fence::kProxyByAnother}) {
    BulkMachine m(Adversary::kLazy);
    m.init(m.at(0, 4), m.shared(520), 1);
    if (fence == Fence::kInit) m.machine.fence_mbarrier_init(m.at(0, 5));
    m.sync(6);
    if (fence == Fence::kProxyByAnother) m.machine.fence_proxy_async(m.at(1, 7));
    m.arrive(m.at(1, 8), m.shared(520), 1, 128);
    m.load128(m.at(1, 9), m.shared(0), m.shared(520));
    CHECK(m.kinds() == (fence == Fence::kNone ? Kinds{FindingKind::kMissingProxyFence} : Kinds{}));
  }
}

TEST_CASE("planted fault: reading a bulk load without the wait races on every schedule") {
  for (const Adversary adversary : kAdversaries) {
    BulkMachine m(adversary);
    m.arrive(m.at(0, 4), m.shared(512), 1, 128);
    m.load128(m.at(0, 5), m.shared(0), m.shared(512));
    m.load(m.at(0, 7), m.shared(0));
    REQUIRE(m.kinds() == Kinds{FindingKind::kRace});
    CHECK(m.machine.findings().all()[0].remedy.find("mbarrier") != std::string::npos);
  }
}

TEST_CASE("the completion carries only the copy: other writes of the issuer travel with its arrive") {
  BulkMachine m(Adversary::kEager);
  m.arrive(m.at(0, 4), m.shared(512), 1, 128);
  m.store(m.at(0, 5), m.shared(256), 1);  // after the arrive, before the copy
  m.load128(m.at(0, 6), m.shared(0), m.shared(512));
  m.wait_until(m.at(1, 7), m.shared(512), 0);
  m.load(m.at(1, 8), m.shared(0));
  CHECK(m.text() == "");
  m.load(m.at(1, 9), m.shared(256));
  CHECK(m.kinds() == Kinds{FindingKind::kRace});
}

TEST_CASE("planted fault: expecting 16 bytes too many never completes, too few is found when the rest lands") {
  BulkMachine more(Adversary::kEager);
  more.arrive(more.at(0, 4), more.shared(512), 1, 144);
  more.load128(more.at(0, 5), more.shared(0), more.shared(512));
  CHECK(more.wait_parity(more.at(1, 6), more.shared(512), 0) == Outcome::kParked);
  CHECK(!more.machine.force_one_completion());
  CHECK(more.machine.describe_wait(more.at(1, 6, 1)).find("0 of 1 arrivals pending and 16 bytes outstanding") != std::string::npos);
  BulkMachine fewer(Adversary::kLazy);
  fewer.arrive(fewer.at(0, 4), fewer.shared(512), 1, 128);
  fewer.load128(fewer.at(0, 5), fewer.shared(0), fewer.shared(512));
  fewer.load128(fewer.at(0, 5), fewer.shared(128), fewer.shared(512));
  while (fewer.machine.force_one_completion()) {
  }
  CHECK(fewer.kinds() == Kinds{FindingKind::kMbarrierMisuse});
  CHECK(fewer.text().find("128 bytes issued in phase 0 land in phase 1") != std::string::npos);
}

TEST_CASE("planted fault: refilling a stage that the consumer still reads") {
  BulkMachine m(Adversary::kEager);
  m.arrive(m.at(0, 4), m.shared(512), 1, 128);
  m.load128(m.at(0, 5), m.shared(0), m.shared(512));
  m.wait_until(m.at(1, 6), m.shared(512), 0);
  m.load(m.at(1, 7), m.shared(0));
  m.arrive(m.at(0, 8), m.shared(512), 1, 128);
  m.load128(m.at(0, 9), m.shared(0), m.shared(512));
  // Against the consumer's read, and against the first copy, for which the producer never waited.
  for (const Finding& finding : m.machine.findings().all()) CHECK(finding.kind == FindingKind::kRace);
  CHECK(m.text().find("pc 7") != std::string::npos);
}

TEST_CASE("a bulk load over bytes that plain stores wrote needs a proxy fence") {
  for (const bool has_fence : {true, false}) {
    BulkMachine m(Adversary::kEager);
    m.store(m.at(1, 4), m.shared(0), 1);
    if (has_fence) m.machine.fence_proxy_async(m.at(1, 5));
    m.sync(6);
    m.arrive(m.at(0, 7), m.shared(512), 1, 128);
    m.load128(m.at(0, 8), m.shared(0), m.shared(512));
    CHECK(m.kinds() == (has_fence ? Kinds{} : Kinds{FindingKind::kMissingProxyFence}));
  }
}

TEST_CASE("a multicast fills the same place of every CTA of the mask and signals each one's barrier") {
  for (const Adversary adversary : kAdversaries) {
    BulkMachine m(adversary, 4);
    for (const std::size_t cta : {1u, 3u}) m.arrive(m.at(0, 4, kAllLanes, cta), m.shared(512, cta), 1, 128);
    CHECK(m.load128(m.at(0, 5, kAllLanes, 1), m.shared(0, 1), m.shared(512, 1), 0b1010) == Outcome::kDone);
    for (const std::size_t cta : {1u, 3u}) {
      m.wait_until(m.at(1, 6, kAllLanes, cta), m.shared(512, cta), 0);
      m.load(m.at(1, 7, kAllLanes, cta), m.shared(0, cta));
      CHECK(m.loaded[31] == 1031);
    }
    CHECK(m.text() == "");
  }
}

TEST_CASE("a multicast mask that names a CTA outside of the cluster is a fault") {
  BulkMachine m(Adversary::kEager, 2);
  CHECK(m.load128(m.at(0, 5), m.shared(0), m.shared(512), 0b100) == Outcome::kFault);
  CHECK(m.kinds() == Kinds{FindingKind::kBadOperand});
}

TEST_CASE("a copy that lands after its CTA has exited is found") {
  BulkMachine m(Adversary::kLazy);
  m.arrive(m.at(0, 4), m.shared(512), 1, 128);
  m.load128(m.at(0, 5), m.shared(0), m.shared(512));
  m.exit(0);
  m.exit(1);
  m.machine.retire(0);
  CHECK(m.kinds() == Kinds{FindingKind::kAsyncMisuse});
}

TEST_CASE("a bulk store takes its bytes after the fence, and its source may be reused after wait_group.read") {
  for (const Adversary adversary : kAdversaries) {
    BulkMachine m(adversary);
    m.store(m.at(0, 4), m.shared(0), 70);
    m.machine.fence_proxy_async(m.at(0, 5));
    const CopyPiece piece{m.result, m.shared(0), 128};
    m.machine.bulk_store(m.at(0, 6, 1), {&piece, 1}, nullptr);
    m.machine.bulk_commit(m.at(0, 7, 1));
    m.machine.bulk_wait(m.at(0, 8, 1), 0, true);
    m.store(m.at(0, 9), m.shared(0), 5);
    CHECK(m.memory.read(m.result + 4, 4) == bytes_of({71}));
    CHECK(m.text() == "");
  }
}

TEST_CASE("planted fault: no proxy fence before a bulk store, or reuse of its source before the wait") {
  BulkMachine no_fence(Adversary::kEager);
  const CopyPiece piece{no_fence.result, no_fence.shared(0), 128};
  no_fence.store(no_fence.at(0, 4), no_fence.shared(0), 70);
  no_fence.machine.bulk_store(no_fence.at(0, 6, 1), {&piece, 1}, nullptr);
  CHECK(no_fence.kinds() == Kinds{FindingKind::kMissingProxyFence});
  for (const Adversary adversary : kAdversaries) {
    BulkMachine m(adversary);
    m.store(m.at(0, 4), m.shared(0), 70);
    m.machine.fence_proxy_async(m.at(0, 5));
    m.machine.bulk_store(m.at(0, 6, 1), {&piece, 1}, nullptr);
    m.machine.bulk_commit(m.at(0, 7, 1));
    m.store(m.at(0, 9), m.shared(0), 5);
    CHECK(m.kinds() == Kinds{FindingKind::kRace});
  }
}

TEST_CASE("planted fault: reading global memory after wait_group.read only") {
  for (const bool is_read_only : {true, false}) {
    BulkMachine m(Adversary::kEager);
    m.store(m.at(0, 4), m.shared(0), 70);
    m.machine.fence_proxy_async(m.at(0, 5));
    const CopyPiece piece{m.result, m.shared(0), 128};
    m.machine.bulk_store(m.at(0, 6, 1), {&piece, 1}, nullptr);
    m.machine.bulk_commit(m.at(0, 7, 1));
    m.machine.bulk_wait(m.at(0, 8, 1), 0, is_read_only);
    m.load(m.at(0, 9), m.result, {.space = Space::kGlobal});
    CHECK(m.kinds() == (is_read_only ? Kinds{FindingKind::kRace} : Kinds{}));
  }
}

TEST_CASE("a bulk reduction adds element by element") {
  BulkMachine m(Adversary::kLazy);
  m.store(m.at(0, 4), m.shared(0), 10);
  m.machine.fence_proxy_async(m.at(0, 5));
  const CopyPiece piece{m.result, m.shared(0), 64};
  const AtomicKind add{.op = AtomicOp::kAdd, .type = AtomicType::kU32};
  m.machine.bulk_store(m.at(0, 6, 1), {&piece, 1}, &add);
  m.machine.bulk_commit(m.at(0, 7, 1));
  m.machine.bulk_wait(m.at(0, 8, 1), 0, false);
  CHECK(m.memory.read(m.result + 60, 8) == bytes_of({26, 1}));
}

TEST_CASE("out-of-bounds parts of a box are filled") {
  BulkMachine m(Adversary::kEager);
  const std::array<CopyPiece, 2> pieces = {CopyPiece{m.source, m.shared(0), 8}, CopyPiece{0, m.shared(8), 8, true, 0x7ff7}};
  m.arrive(m.at(0, 4), m.shared(512), 1, 16);
  m.machine.bulk_load(m.at(0, 5, 1), pieces, m.shared(512), 16, 0);
  m.wait_until(m.at(0, 6), m.shared(512), 0);
  m.load(m.at(0, 7, 0xf), m.shared(0));
  CHECK(m.loaded[1] == 1001);
  CHECK(m.loaded[2] == 0x7ff77ff7);
  CHECK(m.text() == "");
}

TEST_CASE("copies between CTAs and st.async complete on the destination's barrier") {
  for (const Adversary adversary : kAdversaries) {
    BulkMachine m(adversary, 2);
    m.store(m.at(0, 4), m.shared(0), 40);
    m.machine.fence_proxy_async(m.at(0, 5));
    m.arrive(m.at(0, 5, kAllLanes, 1), m.shared(512, 1), 1, 132);
    CHECK(m.machine.bulk_copy_shared(m.at(0, 6, 1), m.shared(0, 1), m.shared(0), 128, m.shared(512, 1)) == Outcome::kDone);
    const std::uint64_t to = m.shared(128, 1);
    const std::uint64_t barrier = m.shared(512, 1);
    const std::uint32_t value = 77;
    m.machine.store_async(m.at(0, 7, 1), 4, &to, reinterpret_cast<const std::byte*>(&value), &barrier);
    m.wait_until(m.at(1, 8, kAllLanes, 1), m.shared(512, 1), 0);
    m.load(m.at(1, 9, kAllLanes, 1), m.shared(0, 1));
    CHECK(m.loaded[5] == 45);
    m.load(m.at(1, 9, 1, 1), m.shared(128, 1));
    CHECK(m.loaded[0] == 77);
    CHECK(m.text() == "");
  }
}

struct TensorMachine : SmallMachine {
  explicit TensorMachine(Adversary adversary) : SmallMachine({.block = {160, 1, 1}, .shared_bytes = 1024}, {.schedule = {adversary, 5}}) {}
};

TEST_CASE("wgmma reads are done for the whole warpgroup after the wait of one of its warps") {
  for (const Adversary adversary : kAdversaries) {
    TensorMachine m(adversary);
    m.store(m.at(4, 1), m.shared(0), 1);
    m.machine.fence_proxy_async(m.at(4, 2));
    m.sync(3);
    int num_run = 0;
    const SharedRange range{m.shared(0), 128};
    m.machine.tensor_issue(m.at(0, 4), {&range, 1}, [&] { ++num_run; });
    m.machine.tensor_commit(m.at(0, 5));
    if (adversary != Adversary::kRandom) CHECK(num_run == (adversary == Adversary::kEager ? 1 : 0));
    m.machine.tensor_wait(m.at(0, 6), 0);
    CHECK(num_run == 1);
    m.machine.barrier_arrive(m.at(2, 7), 1, 64, true);
    m.machine.barrier_sync(m.at(4, 8), 1, 64, true);
    m.store(m.at(4, 9), m.shared(0), 2, kShared4);
    CHECK(m.text() == "");
  }
}

TEST_CASE("planted fault: no proxy fence before wgmma, or a release before its wait") {
  TensorMachine no_fence(Adversary::kEager);
  no_fence.store(no_fence.at(0, 1), no_fence.shared(0), 1);
  no_fence.sync(3);
  const SharedRange range{no_fence.shared(0), 128};
  no_fence.machine.tensor_issue(no_fence.at(0, 4), {&range, 1}, [] {});
  CHECK(no_fence.kinds() == Kinds{FindingKind::kMissingProxyFence});
  TensorMachine early(Adversary::kEager);
  early.store(early.at(4, 1), early.shared(0), 1);
  early.machine.fence_proxy_async(early.at(4, 2));
  early.sync(3);
  early.machine.tensor_issue(early.at(0, 4), {&range, 1}, [] {});
  early.machine.tensor_commit(early.at(0, 5));
  early.machine.barrier_arrive(early.at(2, 7), 1, 64, true);
  early.machine.barrier_sync(early.at(4, 8), 1, 64, true);
  early.store(early.at(4, 9), early.shared(0), 2);
  REQUIRE(early.kinds() == Kinds{FindingKind::kRace});
  CHECK(early.machine.findings().all()[0].remedy.find("wgmma.wait_group") != std::string::npos);
}

}  // namespace
}  // namespace kw::simulate
