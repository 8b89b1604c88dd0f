// Rows on mbarriers of the own CTA: forms, parity, when a phase ends, a wait that returns false.
// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/hopper/hopper_run.h"

namespace kw::simulate {
namespace {

/// Predicate p as a bit of `out`: word `word` gets 0 or 1.
std::string note(const std::string& predicate, int word) {
  return "selp.u32 %r1, 1, 0, " + predicate + "; @%lead st.global.u32 [%out+" + std::to_string(4 * word) + "], %r1;\n";
}
/// Word 2 n is whether a wait for parity 0 passes now, word 2 n + 1 the same for parity 1.
std::string probe(int n) {
  std::string text;
  for (int parity = 0; parity < 2; ++parity) {
    text += "mbarrier.test_wait.parity.shared::cta.b64 %p1, [%bar], " + std::to_string(parity) + ";\n" + note("%p1", 2 * n + parity);
  }
  return text;
}

}  // namespace

TEST_CASE("every form of an own CTA's mbarrier counts as it says", "[V:mbarrier-forms]") {
  HopperCase one{.body = init_barrier(4)};
  one.body +=
      "@%lead mbarrier.arrive.shared::cta.b64 _, [%bar], 2; @%lead mbarrier.arrive.shared::cta.b64 _, [%bar];\n"
      "@%lead mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%bar], 64;\n" +
      expect_bytes(64) + "@%lead cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%smem], [%in], 128, [%bar];\n" +
      wait_parity(0) + copy_out(32);
  one.in = numbered(32, 40);
  CHECK(clean_out(one)[31] == 71);
  const Result<HopperResult> remote_wait = try_run({.body = "mbarrier.try_wait.parity.shared::cluster.b64 %p1, [%bar], 0;"}, {});
  REQUIRE_FALSE(remote_wait.has_value());
  CHECK(remote_wait.error().message.find("not with these modifiers") != std::string::npos);
}

TEST_CASE("a wait for parity P passes while the current phase's parity is not P", "[V:parity-rule]") {
  HopperCase one{.body = init_barrier(1) + probe(0)};
  const std::string arrive = "@%lead mbarrier.arrive.shared::cta.b64 _, [%bar]; bar.warp.sync -1;\n";
  for (int phase = 1; phase <= 4; ++phase) one.body += arrive + probe(phase);
  const std::vector<std::uint32_t> out = clean_out(one);
  for (std::uint32_t k = 0; k <= 4; ++k) {
    CHECK(out[2 * k] == k % 2);  // fresh: parity 0 blocks, parity 1 passes; after k phases (k - 1) & 1 passes
    CHECK(out[2 * k + 1] == 1 - k % 2);
  }
}

TEST_CASE("a phase ends when pending arrivals and bytes are both zero, bytes alone do not end it", "[V:phase-end]") {
  const std::string complete = "@%lead mbarrier.complete_tx.shared::cta.b64 [%bar], 64; bar.warp.sync -1;\n";
  HopperCase one{.body = init_barrier(1) + "@%lead mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%bar], 64;\n" + complete + probe(0) +
                         "@%lead mbarrier.arrive.shared::cta.b64 _, [%bar]; bar.warp.sync -1;\n" + probe(1) + expect_bytes(64) + probe(2) +
                         complete + probe(3)};
  const std::vector<std::uint32_t> out = clean_out(one);
  CHECK(out[0] == 0);  // all bytes, no arrival
  CHECK(out[2] == 1);
  CHECK(out[5] == 0);  // the arrival, no bytes
  CHECK(out[7] == 1);
}

TEST_CASE("a try_wait may return false whatever its time hint, so a kernel without the loop is found", "[V:try-wait-loops]") {
  for (const char* hint : {"", ", 20", ", 2000000"}) {
    const auto waiting = [&](const std::string& loop) {
      HopperCase one{.body = init_barrier(1) + expect_bytes(128) +
                             "@%lead cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%smem], [%in], 128, [%bar];\nWAIT: "
                             "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%bar], 0" +
                             hint + ";\n" + loop + copy_out(32)};
      one.in = numbered(32, 40);
      return one;
    };
    CHECK(clean_out(waiting("@!%p1 bra WAIT;\n"))[31] == 71);
    check_found(FindingKind::kRace, "nothing orders", waiting(""), {{Adversary::kLazy, 0}});
  }
}

TEST_CASE("a consumer starts at parity 0 and a producer at 1, both flip when the stage index wraps", "[V:pipeline-parity]") {
  // Two stages, five blocks: warp 0 produces with bulk loads, warp 1 sums. Barriers 0, 1: full; 2, 3: empty.
  const auto pipeline = [](int producer_parity) {
    HopperCase one{.body =
                       "@%lead mbarrier.init.shared::cta.b64 [%bar], 1; @%lead mbarrier.init.shared::cta.b64 [%bar+8], 1;\n"
                       "@%lead mbarrier.init.shared::cta.b64 [%bar+16], 1; " +
                       init_barrier(1, 3)};
    one.body += "setp.eq.u32 %p1, %lane, 0; setp.eq.u32 %p2, %warp, 1; mov.u32 %r10, 0; @%p2 bra CONSUME;\n@!%p1 bra END;\n";
    for (int block = 0; block < 5; ++block) {
      const std::uint32_t stage = static_cast<std::uint32_t>(block % 2), phase = static_cast<std::uint32_t>(block / 2 % 2);
      one.body += wait_parity(phase ^ static_cast<std::uint32_t>(producer_parity), 2 + stage) + expect_bytes(128, stage) +
                  "add.s32 %r1, %smem, " + std::to_string(128 * stage) +
                  "; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%in+" + std::to_string(128 * block) +
                  "], 128, [%bar+" + std::to_string(8 * stage) + "];\n";
    }
    one.body += "bra END;\nCONSUME:\n";
    for (int block = 0; block < 5; ++block) {
      const std::uint32_t stage = static_cast<std::uint32_t>(block % 2), phase = static_cast<std::uint32_t>(block / 2 % 2);
      one.body += wait_parity(phase, stage) + "shl.b32 %r2, %lane, 2; add.s32 %r2, %r2, %smem; ld.shared.u32 %r3, [%r2+" +
                  std::to_string(128 * stage) +
                  "]; add.s32 %r10, %r10, %r3; bar.warp.sync -1;\n@%p1 mbarrier.arrive.shared::cta.b64 _, [%bar+" +
                  std::to_string(8 * (2 + stage)) + "];\n";
    }
    one.body += "mul.wide.u32 %d1, %lane, 4; add.s64 %d1, %d1, %out; st.global.u32 [%d1], %r10;\nEND:\n";
    one.num_threads = 64;
    one.in = numbered(160);
    return one;
  };
  const std::vector<std::uint32_t> out = clean_out(pipeline(1));
  for (std::uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == 5 * lane + 32 * (0 + 1 + 2 + 3 + 4));
  check_found(FindingKind::kDeadlock, "no warp can go on", pipeline(0));
}

}  // namespace kw::simulate
