// Rows on cp.async, named barriers, elect, cache policies and hints, vector reductions, shared memory's limit.
// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/hopper/hopper_run.h"

namespace kw::simulate {
namespace {

/// %d2 = %in + 16 thread, %d3 = %out + 16 thread, %r2 = %smem + 16 thread.
const std::string kOwn16 =
    "mul.wide.u32 %d1, %thread, 16; add.s64 %d2, %in, %d1; add.s64 %d3, %out, %d1; shl.b32 %r1, %thread, 4; "
    "add.s32 %r2, %r1, %smem;\n";

HopperCase own16_case(const std::string& body) {
  HopperCase one{.body = kOwn16 + body};
  one.in = numbered(128, 300);
  one.out.assign(128, 0);
  return one;
}

}  // namespace

TEST_CASE("cp.async of 4, 8 and 16 bytes, .ca and .cg, with an L2 hint", "[V:cp-async-forms]") {
  for (const auto& [form, bytes] : {std::pair{"cg.shared.global.L2::128B", 16u},
                                    {"cg.shared.global", 16u},
                                    {"ca.shared.global", 4u},
                                    {"ca.shared.global", 8u},
                                    {"ca.shared.global", 16u}}) {
    std::string copies;
    for (std::uint32_t at = 0; at < 16; at += bytes) {
      copies += "cp.async." + std::string(form) + " [%r2+" + std::to_string(at) + "], [%d2+" + std::to_string(at) + "], " +
                std::to_string(bytes) + ";\n";
    }
    CHECK(clean_out(own16_case(copies + "cp.async.commit_group; cp.async.wait_group 0; bar.warp.sync -1;\n" + copy_out(128))) ==
          numbered(128, 300));
  }
}

TEST_CASE("cp.async fills with zeros what its source size leaves out, for every size from 0 to 16", "[V:cp-async-zero-fill]") {
  for (std::uint32_t size = 0; size <= 16; ++size) {
    const std::vector<std::uint32_t> out =
        clean_out(own16_case("mov.u32 %r3, " + std::to_string(size) +
                             "; cp.async.cg.shared.global [%r2], [%d2], 16, %r3;\ncp.async.commit_group; "
                             "cp.async.wait_group 0; bar.warp.sync -1;\n" +
                             copy_out(128)));
    for (std::uint32_t word = 0; word < 4; ++word) {
      const std::uint32_t num_kept = std::min(4u, size > 4 * word ? size - 4 * word : 0u);
      const std::uint32_t mask = num_kept == 4 ? ~0u : (1u << 8 * num_kept) - 1;
      CHECK(out[4 * 7 + word] == ((300 + 4 * 7 + word) & mask));
    }
  }
}

TEST_CASE("cp.async.mbarrier.arrive.noinc counts against the init count: 32 lanes, init 32", "[V:cp-async-mbarrier-noinc]") {
  const auto copied = [](std::uint32_t count) {
    return own16_case(init_barrier(count) +
                      "cp.async.cg.shared.global [%r2], [%d2], 16; cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%bar];\n" +
                      wait_parity(0) + copy_out(128));
  };
  CHECK(clean_out(copied(32)) == numbered(128, 300));
  check_found(FindingKind::kDeadlock, "no warp can go on", copied(33));
}

TEST_CASE("bar.sync and bar.arrive of one id together make up its count", "[V:named-barrier-counts]") {
  for (const char* sync : {"bar.sync 5, 96;", "barrier.cta.sync 5, 96;"}) {
    HopperCase one{.body =
                       "setp.eq.u32 %p1, %warp, 2; @%p1 bra WAIT;\nmov.u32 %r1, 7; shl.b32 %r2, %thread, 2; add.s32 %r2, %r2, %smem; "
                       "st.shared.u32 [%r2], %r1; bar.arrive 5, 96;\nret;\nWAIT: " +
                       std::string(sync) +
                       " shl.b32 %r2, %lane, 2; add.s32 %r2, %r2, %smem; ld.shared.u32 %r3, [%r2+128]; mul.wide.u32 %d1, %lane, 4; "
                       "add.s64 %d1, %d1, %out; st.global.u32 [%d1], %r3;\n"};
    one.num_threads = 96;
    CHECK(clean_out(one)[31] == 7);
  }
  HopperCase one_missing{.body = "setp.eq.u32 %p1, %warp, 0; @%p1 ret;\nbar.sync 5, 96;"};
  one_missing.num_threads = 96;
  check_found(FindingKind::kDeadlock, "no warp can go on", one_missing);
  check_found(FindingKind::kBarrierMisuse, "barrier 16", {.body = "bar.sync 16, 32;"});
  check_found(FindingKind::kBarrierMisuse, "multiple", {.body = "bar.sync 1, 40;"});
}

TEST_CASE("elect takes the lowest lane of its mask", "[V:elect]") {
  const auto elected = [](const std::string& mask, const std::string& guard) {
    return clean_out({.body = "mov.u32 %r1, 99; mov.u32 %r2, 0;\n" + guard + "elect.sync %r1|%p2, " + mask +
                              "; selp.u32 %r2, 1, 0, %p2;\nEND: mul.wide.u32 %d1, %lane, 8; add.s64 %d1, %d1, %out; "
                              "st.global.v2.u32 [%d1], {%r1, %r2};\n"});
  };
  std::vector<std::uint32_t> out = elected("0xffffffff", "");
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    CHECK(out[2 * lane] == 0);
    CHECK(out[2 * lane + 1] == (lane == 0 ? 1 : 0));
  }
  out = elected("0x000fffe0", "sub.u32 %r3, %lane, 5; setp.ge.u32 %p1, %r3, 15; @%p1 bra END;\n");
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    CHECK(out[2 * lane] == (lane >= 5 && lane < 20 ? 5 : 99));
    CHECK(out[2 * lane + 1] == (lane == 5 ? 1 : 0));
  }
}

TEST_CASE("the register splits that ran on an H200 run: one producer warpgroup and one, two or three consumers", "[V:setmaxnreg-splits]") {
  struct Split {
    std::uint32_t num_consumers, producer_registers, consumer_registers;
  };
  for (const Split& split : {Split{2, 40, 232}, {2, 24, 240}, {3, 32, 160}, {1, 56, 256}}) {
    HopperCase one{.body = "setp.ge.u32 %p1, %thread, 128; @%p1 bra CONSUME;\nsetmaxnreg.dec.sync.aligned.u32 " +
                           std::to_string(split.producer_registers) + ";\nret;\nCONSUME: setmaxnreg.inc.sync.aligned.u32 " +
                           std::to_string(split.consumer_registers) + ";\n" +
                           "mul.wide.u32 %d1, %thread, 4; add.s64 %d1, %d1, %out; st.global.u32 [%d1], %thread;"};
    one.num_threads = 128 * (1 + split.num_consumers);
    one.out.assign(one.num_threads, 0);
    CHECK(clean_out(one)[one.num_threads - 1] == one.num_threads - 1);
  }
}

TEST_CASE("griddepcontrol is taken in a launch of its own", "[V:griddepcontrol]") {
  CHECK(clean_out({.body = "griddepcontrol.wait; griddepcontrol.launch_dependents; @%lead st.global.u32 [%out], 3;"})[0] == 3);
}

TEST_CASE("in a dependent launch global memory that is touched before griddepcontrol.wait is a race", "[V:pdl-stale-reads]") {
  const auto dependent = [](const std::string& body) {
    HopperCase one{.body = body};
    one.is_dependent = true;
    return one;
  };
  const std::string wait = "griddepcontrol.wait;\n";
  CHECK(clean_out(
            dependent("griddepcontrol.launch_dependents;\n" + wait + "ld.global.u32 %r1, [%in]; @%lead st.global.u32 [%out], 3;"))[0] == 3);
  CHECK(clean_out(dependent("prefetch.global.L2 [%in];\n" + wait + "@%lead st.global.u32 [%out], 3;"))[0] == 3);
  for (const char* access :
       {"ld.global.u32 %r1, [%in];", "ld.u32 %r1, [%in];", "@%lead st.global.u32 [%out], 3;", "@%lead red.global.add.u32 [%out], 1;",
        "@%lead cp.async.ca.shared.global [%smem], [%in], 4; cp.async.wait_all;",
        // One lane has not waited.
        "setp.ne.u32 %p1, %lane, 5; @%p1 griddepcontrol.wait; ld.global.u32 %r1, [%in];"}) {
    check_found(FindingKind::kRace, "the grid before this one may still run", dependent(access + ("\n" + wait)));
    if (std::string(access).find("griddepcontrol") == std::string::npos) clean_out({.body = access + ("\n" + wait)});
  }
  // So is what TMA copies.
  HopperCase bulk = dependent(init_barrier(1) +
                              "@!%lead bra DONE; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 16;\n"
                              "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%smem], [%in], 16, [%bar];\nDONE:\n" +
                              wait);
  bulk.in = std::vector<std::uint32_t>(4, 7);
  check_found(FindingKind::kRace, "the grid before this one may still run", bulk);
}

TEST_CASE("a block has 232448 bytes of shared memory, static ones included, and no byte more", "[V:smem-limit]") {
  constexpr std::uint32_t kStaticBytes = 1024;  // the barriers, up to the alignment of the dynamic part
  HopperCase one{.body = "add.s32 %r1, %smem, " + std::to_string(232448 - kStaticBytes - 4) +
                         "; @%lead st.shared.u32 [%r1], 8; @%lead ld.shared.u32 %r2, [%r1]; @%lead st.global.u32 [%out], %r2;"};
  one.shared_bytes = 232448 - kStaticBytes;
  CHECK(clean_out(one)[0] == 8);
  ++one.shared_bytes;
  const Result<HopperResult> refused = try_run(one, {});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("the limit of sm_90 is 232448") != std::string::npos);
}

TEST_CASE("vector reductions and the vector atomic add element by element", "[V:red-vector]") {
  const auto reduced = [](const std::string& body, std::uint32_t initial) {
    HopperCase one{.body = "mov.f32 %f0, 0f3f800000; mov.f32 %f1, 0f40000000; mov.f32 %f2, 0f40400000; mov.f32 %f3, 0f40800000;\n" + body};
    one.out.assign(64, initial);
    return clean_out(one);
  };
  std::vector<std::uint32_t> out = reduced("red.global.add.v2.f32 [%out], {%f0, %f1};", bits(0.5f));
  CHECK(from_bits(out[0]) == 32.5f);
  CHECK(from_bits(out[1]) == 64.5f);
  CHECK(from_bits(out[2]) == 0.5f);
  out = reduced("red.global.add.v4.f32 [%out+16], {%f0, %f1, %f2, %f3};", bits(0.5f));
  for (std::size_t i = 0; i < 4; ++i) CHECK(from_bits(out[4 + i]) == 32 * static_cast<float>(i + 1) + 0.5f);
  out = reduced("mov.b32 %r1, 0x40003f80; red.global.add.noftz.bf16x2 [%out], %r1;", bf16x2(4, 8));
  CHECK(out[0] == bf16x2(36, 72));
  out = reduced("mov.b32 %r1, 0x40003c00; red.global.add.noftz.f16x2 [%out], %r1;", 0x48004400);  // f16: (1, 2) to (4, 8)
  CHECK(out[0] == 0x54805080);                                                                    // (36, 72)
  out = reduced("mov.b32 %r1, 0x40003f80; red.global.add.noftz.v4.bf16x2 [%out], {%r1, %r1, %r1, %r1};", bf16x2(4, 8));
  for (std::size_t i = 0; i < 4; ++i) CHECK(out[i] == bf16x2(36, 72));
  out = reduced("@%lead atom.global.add.v2.f32 {%f4, %f5}, [%out], {%f0, %f1}; @%lead st.global.v2.f32 [%out+16], {%f4, %f5};", bits(0.5f));
  CHECK(from_bits(out[0]) == 1.5f);
  CHECK(from_bits(out[1]) == 2.5f);
  CHECK(from_bits(out[4]) == 0.5f);
  CHECK(from_bits(out[5]) == 0.5f);
}

TEST_CASE("loads and stores with cache words and policies move the same bytes", "[V:cache-forms]") {
  const std::string policy = "createpolicy.fractional.L2::evict_last.b64 %d5, 1.0;\n";
  for (const char* load :
       {"ld.global.nc.L1::no_allocate.v4.f32 {%f0, %f1, %f2, %f3}, [%d2];",
        "ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%f0, %f1, %f2, %f3}, [%d2];",
        "ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {%f0, %f1, %f2, %f3}, [%d2];",
        "ld.global.nc.L1::no_allocate.L2::cache_hint.L2::256B.v4.f32 {%f0, %f1, %f2, %f3}, [%d2], %d5;",
        "ld.global.L1::evict_last.v4.f32 {%f0, %f1, %f2, %f3}, [%d2];", "ld.global.cs.v4.f32 {%f0, %f1, %f2, %f3}, [%d2];"}) {
    CHECK(clean_out(own16_case(policy + load + "st.global.v4.f32 [%d3], {%f0, %f1, %f2, %f3};")) == numbered(128, 300));
  }
  for (const char* store : {"st.global.cs.v4.f32 [%d3], {%f0, %f1, %f2, %f3};", "st.global.wt.v4.f32 [%d3], {%f0, %f1, %f2, %f3};",
                            "st.global.L1::no_allocate.v4.f32 [%d3], {%f0, %f1, %f2, %f3};",
                            "st.global.L1::no_allocate.L2::cache_hint.v4.f32 [%d3], {%f0, %f1, %f2, %f3}, %d5;"}) {
    CHECK(clean_out(own16_case(policy + "ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%d2];" + store)) == numbered(128, 300));
  }
}

TEST_CASE("createpolicy gives the constants seen on an H200", "[V:createpolicy]") {
  const std::vector<std::uint32_t> out =
      clean_out({.body = "createpolicy.fractional.L2::evict_first.b64 %d1, 1.0; createpolicy.fractional.L2::evict_last.b64 %d2, 1.0;\n"
                         "@%lead st.global.v2.u64 [%out], {%d1, %d2};"});
  CHECK(out[0] == 0);
  CHECK(out[1] == 0x12f00000);
  CHECK(out[2] == 0);
  CHECK(out[3] == 0x14f00000);
}

TEST_CASE("prefetches and priorities run and change nothing", "[V:prefetch-forms]") {
  HopperCase one{.body =
                     "prefetch.global.L2::evict_last [%in]; applypriority.global.L2::evict_normal [%in], 128;\n"
                     "cp.async.bulk.prefetch.L2.global [%in], 128;"};
  one.in = numbered(32);
  CHECK(clean_out(one) == std::vector<std::uint32_t>(64, 0));
}

}  // namespace kw::simulate
