// Rows on clusters: distributed shared memory, remote arrives, the cluster barrier, CTAs that have exited, sizes of clusters.
// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/hopper/hopper_run.h"

namespace kw::simulate {
namespace {

HopperCase pair_case(const std::string& body) {
  HopperCase one{.body = body};
  one.cluster = 2;
  return one;
}

const std::string kOther = "xor.b32 %r1, %rank, 1; mapa.shared::cluster.u32 %r2, %smem, %r1; mapa.shared::cluster.u32 %r3, %bar, %r1;\n";
const std::string kStoreWord = "mul.wide.u32 %d1, %thread, 4; add.s64 %d1, %d1, %out; st.global.u32 [%d1], %r9;\n";

/// Rank 1 lets rank 0 go and exits; rank 0 then idles for longer than rank 1 needs, and executes `late`.
HopperCase after_exit_case(const std::string& late) {
  return pair_case(init_barrier(1, 0, true) + kOther +
                   "setp.eq.u32 %p1, %rank, 0; @%p1 bra STAY;\n@%lead mbarrier.arrive.shared::cluster.b64 _, [%r3];\nret;\nSTAY:\n" +
                   wait_parity(0) + "mov.u32 %r8, 0;\nIDLE: add.s32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, 4000; @%p2 bra IDLE;\n" + late);
}

}  // namespace

TEST_CASE("stores and loads reach another CTA's shared memory through mapa", "[V:ld-shared-cluster]") {
  const std::vector<std::uint32_t> out = clean_out(pair_case(
      kOther + "shl.b32 %r4, %thread, 2; add.s32 %r5, %r4, %r2; mad.lo.s32 %r6, %rank, 100, %thread; st.shared::cluster.u32 [%r5], %r6;\n" +
      cluster_sync() + "add.s32 %r7, %r4, %r2; ld.shared::cluster.u32 %r9, [%r7];\n" + kStoreWord + cluster_sync()));
  // Each CTA wrote its numbers into the other, and reads from the other what that one got: its own.
  CHECK(out[31] == 31);
  CHECK(out[64 + 31] == 131);
}

TEST_CASE("every form of a remote arrive counts on the other CTA's barrier", "[V:remote-arrive-forms]") {
  HopperCase one =
      pair_case(init_barrier(4, 0, true) + kOther +
                "@%lead mbarrier.arrive.shared::cluster.b64 _, [%r3]; @%lead mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, "
                "[%r3]; @%lead mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3];\n@%lead "
                "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r3], 128;\n"
                "@%lead cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%smem], [%in], 128, [%bar];\n" +
                wait_parity(0) + copy_out(32) + cluster_sync());
  one.in = numbered(32, 9);
  CHECK(clean_out(one)[64 + 31] == 40);
  const Result<HopperResult> with_state = try_run(pair_case(kOther + "mbarrier.arrive.shared::cluster.b64 %d1, [%r3];"), {});
  REQUIRE_FALSE(with_state.has_value());
  CHECK(with_state.error().message.find("must be _") != std::string::npos);
}

TEST_CASE("st.async brings its bytes and completes them on the other CTA's barrier", "[V:st-async]") {
  const std::vector<std::uint32_t> out =
      clean_out(pair_case(init_barrier(1) + expect_bytes(128) + kOther + cluster_sync() +
                          "shl.b32 %r4, %thread, 2; add.s32 %r5, %r4, %r2; mad.lo.s32 %r6, %rank, 100, %thread;\n"
                          "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r5], %r6, [%r3];\n" +
                          wait_parity(0) + copy_out(32) + cluster_sync()));
  CHECK(out[31] == 131);
  CHECK(out[64 + 31] == 31);
}

TEST_CASE("the cluster barrier orders stores to another CTA, and without it they race", "[V:barrier-cluster]") {
  const auto exchange = [](const std::string& barrier) {
    return pair_case("shl.b32 %r4, %thread, 2; add.s32 %r4, %r4, %smem; st.shared.u32 [%r4], %thread;\n" + barrier + kOther +
                     "shl.b32 %r4, %thread, 2; add.s32 %r4, %r4, %r2; ld.shared::cluster.u32 %r9, [%r4];\n" + kStoreWord + cluster_sync());
  };
  CHECK(clean_out(exchange(cluster_sync()))[31] == 31);
  check_found(FindingKind::kRace, "nothing orders",
              exchange("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;\n"));
}

TEST_CASE("roles that have diverged meet at the cluster barrier without .aligned", "[V:cluster-barrier-diverged]") {
  const auto roles = [](const std::string& aligned) {
    const std::string sync = "barrier.cluster.arrive.release" + aligned + "; barrier.cluster.wait.acquire" + aligned + ";\n";
    return pair_case("@%lead bra ROLE;\n" + sync + "bra END;\nROLE:\nadd.s32 %r9, %rank, 5; st.global.u32 [%out], %r9;\n" + sync +
                     "END:\n");
  };
  CHECK(clean_out(roles(""))[64] == 6);
  check_found(FindingKind::kDivergentAligned, "barrier.cluster", roles(".aligned"));
}

TEST_CASE("init, fence.mbarrier_init and a cluster barrier, relaxed too, come before a peer's arrive", "[V:init-order]") {
  const auto start = [](const std::string& fence) {
    return pair_case("@%lead mbarrier.init.shared::cta.b64 [%bar], 1; " + fence +
                     " barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;\n" + kOther +
                     "@%lead mbarrier.arrive.shared::cluster.b64 _, [%r3];\n" + wait_parity(0) + cluster_sync());
  };
  clean_out(start("fence.mbarrier_init.release.cluster;"));
  check_found(FindingKind::kRace, "nothing orders", start(""));
  check_found(FindingKind::kMbarrierMisuse, "is not initialised",
              pair_case(kOther + "@%lead mbarrier.arrive.shared::cluster.b64 _, [%r3];\n" + cluster_sync()));
}

TEST_CASE("a remote load after the peer has left is a launch failure", "[V:exit-remote-load]") {
  check_found(FindingKind::kBadAddress, "that CTA has exited; the device ends the launch with a failure",
              after_exit_case("ld.shared::cluster.u32 %r9, [%r2];\n"));
}

TEST_CASE("a remote arrive or store after the peer has left vanishes on the device and is found here", "[V:exit-remote-write]") {
  const std::string lost = "that CTA has exited; the device drops the write silently";
  check_found(FindingKind::kBadAddress, lost, after_exit_case("st.shared::cluster.u32 [%r2], %r8;\n"));
  check_found(FindingKind::kBadAddress, lost, after_exit_case("@%lead mbarrier.arrive.shared::cluster.b64 _, [%r3];\n"));
}

TEST_CASE("an access of a peer that nothing orders before the exit is found even when it came first", "[V:exit-order]") {
  // Rank 0 touches rank 1's memory; on the eager schedule it has done so when rank 1 goes on.
  const auto at_the_end = [](const std::string& last_access, const std::string& last_act) {
    return pair_case(init_barrier(32, 0, true) + kOther + "shl.b32 %r4, %thread, 2; add.s32 %r5, %r4, %smem; st.shared.u32 [%r5], %r4; " +
                     "add.s32 %r5, %r4, %r2; mov.u32 %r9, 0; setp.eq.u32 %p1, %rank, 0;\n" + cluster_sync() + "@%p1 " + last_access +
                     kStoreWord + last_act);
  };
  const std::string arrive = "mbarrier.arrive.shared::cluster.b64 _, [%r3];\n";
  for (const std::string& access :
       {std::string("ld.shared::cluster.u32 %r9, [%r5];\n"), std::string("st.shared::cluster.u32 [%r5], %r9;\n"), arrive}) {
    clean_out(at_the_end(access, cluster_sync()));
    check_found(FindingKind::kRace, "nothing orders this access before its exit", at_the_end(access, ""), {{Adversary::kEager, 0}});
  }
  // Arrives that the other CTA waits for come before its exit.
  clean_out(at_the_end(arrive, "@%p1 bra END;\n" + wait_parity(0) + "END:\n"));
}

TEST_CASE("a multicast that lands in a CTA that has exited is found", "[V:exit-multicast]") {
  // Rank 0 issues the copy, then lets rank 1 go, which exits without waiting for its full barrier.
  HopperCase one = pair_case(
      init_barrier(1, 1) + init_barrier(1, 0, true) + kOther + "setp.eq.u32 %p1, %rank, 0; @!%p1 bra LEAVE; mov.b16 %h0, 3;\n" +
      expect_bytes(64) +
      "@%lead cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%smem], [%in], 64, [%bar], %h0;\n"
      "@%lead mbarrier.arrive.shared::cluster.b64 _, [%r3+8];\n" +
      wait_parity(0) + "ret;\nLEAVE:\n" + wait_parity(0, 1));
  one.in = numbered(16);
  check_found(FindingKind::kAsyncMisuse, "which has exited", one, {{Adversary::kLazy, 0}});
}

TEST_CASE("clusters of up to 16 CTAs run, larger ones and grids that they do not divide are refused", "[V:cluster-sizes]") {
  for (const std::uint32_t cluster : {1u, 2u, 6u, 8u, 12u, 16u}) {
    HopperCase one{.body = "mov.u32 %r9, %cluster_nctarank;\n" + kStoreWord};
    one.cluster = cluster;
    CHECK(clean_out(one)[64 * (cluster - 1)] == cluster);
  }
  HopperCase large{.body = "ret;"};
  large.cluster = 17;
  const Result<HopperResult> refused = try_run(large, {});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("the limit is 16 CTAs") != std::string::npos);
  Simulation simulation;
  const Result<LaunchReport> uneven =
      simulation.launch(parse_ptx(".version 8.4\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n", "k.ptx").value(),
                        {.kernel = "k", .grid = {3, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}});
  REQUIRE_FALSE(uneven.has_value());
  CHECK(uneven.error().message.find("is not a multiple of the cluster") != std::string::npos);
}

}  // namespace kw::simulate
