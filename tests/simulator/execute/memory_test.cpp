// Loads, stores, atomics, address spaces, barriers and bulk copies through the whole executor, and the decoder's refusals.
// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/execute/kernel_run.h"
#include "tests/simulator/ptx/ptx_text.h"

namespace kw::simulate {
namespace {

/// Runs `body` with %d0 = a buffer of `num_words` words set to 0, 1, 2, ...; returns the buffer. `before`: module-level text.
struct WordsRun {
  KernelRun run;
  std::vector<std::uint32_t> words;
};

WordsRun run_words(const std::string& body, std::uint32_t num_threads = 32, std::size_t num_words = 64, std::uint32_t cluster = 1,
                   const std::string& module_text = "", std::uint32_t dynamic_bytes = 0) {
  WordsRun result;
  KernelRun& run = result.run;
  run.shape.block = {num_threads, 1, 1};
  run.shape.grid = {cluster, 1, 1};
  run.shape.cluster = {cluster, 1, 1};
  run.dynamic_shared_bytes = dynamic_bytes;
  std::vector<std::uint32_t> data(num_words);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint32_t>(i);
  const std::uint64_t buffer = run.add_buffer("data", data, AllocationRole::kInOut);
  run.add_parameter(buffer);
  std::string text =
      kernel_text("ld.param.u64 %d0, [p]; mov.u32 %r30, %tid.x; mul.wide.u32 %d1, %r30, 4; add.s64 %d1, %d0, %d1;\n" + body, "sm_90a");
  text.insert(text.find(".visible"), module_text);
  run.run(text, "k", 2000);
  for (const Finding& finding : run.findings) UNSCOPED_INFO(to_text(finding));
  result.words = run.read<std::uint32_t>(buffer, num_words);
  return result;
}

std::vector<std::uint32_t> clean_words(const std::string& body, std::uint32_t num_threads = 32, std::size_t num_words = 64,
                                       std::uint32_t cluster = 1, const std::string& module_text = "", std::uint32_t dynamic_bytes = 0) {
  INFO(body);
  WordsRun result = run_words(body, num_threads, num_words, cluster, module_text, dynamic_bytes);
  CHECK(result.run.findings.empty());
  CHECK(result.run.is_finished);
  return result.words;
}

void check_finding(FindingKind kind, const std::string& body, std::uint32_t num_threads = 32) {
  INFO(body);
  const WordsRun result = run_words(body, num_threads);
  bool is_found = false;
  for (const Finding& finding : result.run.findings) is_found = is_found || finding.kind == kind;
  CHECK(is_found);
}

void check_refused(const std::string& body, const std::string& expected) {
  const Result<Module> module = parse_ptx(kernel_text(body, "sm_90a"), "a.ptx");
  INFO((module ? std::string() : to_text(module.error())));
  REQUIRE(module.has_value());
  const auto program = decode_kernel(*module, "k");
  REQUIRE(!program.has_value());
  INFO(to_text(program.error()));
  CHECK(to_text(program.error()).find(expected) != std::string::npos);
  CHECK(program.error().where.line == 6);
}

}  // namespace

TEST_CASE("loads extend, stores cut, vectors keep their order") {
  CHECK(clean_words("st.global.u32 [%d1], 0x80ff7f01; ld.global.s8 %r1, [%d1+2]; st.global.u32 [%d1], %r1;")[3] == 0xffffffff);
  CHECK(clean_words("st.global.u32 [%d1], 0x80ff7f01; ld.global.u8 %r1, [%d1+2]; st.global.u32 [%d1], %r1;")[3] == 0xff);
  CHECK(clean_words("st.global.u32 [%d1], 0x80ff7f01; ld.global.s16 %d2, [%d1+2]; shr.u64 %d2, %d2, 8; cvt.u32.u64 %r1, %d2; st.global.u32 "
                    "[%d1], %r1;")[3] == 0xffffff80);
  CHECK(clean_words("mov.u32 %r1, 0x12345678; st.global.u8 [%d1+1], %r1;")[3] == 0x7803);
  CHECK(clean_words("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d0+16]; st.global.u32 [%d1], %r3;")[0] == 6);
  CHECK(clean_words("setp.ne.s32 %p1, %r30, 0; @%p1 ret; st.global.v2.u32 [%d0+8], {7, 9};")[3] == 9);
  CHECK(clean_words("ld.global.nc.L1::no_allocate.L2::128B.u32 %r1, [%d0]; ret;")[0] == 0);
}

TEST_CASE("local, constant, module and generic memory") {
  CHECK(clean_words(".local .align 8 .b8 depot[16]; mov.u64 %d2, depot; cvta.local.u64 %d3, %d2; st.u32 [%d3+4], %r30; ld.local.u32 %r1, "
                    "[depot+4]; st.global.u32 [%d1], %r1;")[9] == 9);
  CHECK(clean_words("mov.u64 %d2, table; ld.const.u32 %r1, [%d2+4]; ld.const.u32 %r2, [table]; add.s32 %r1, %r1, %r2; st.global.u32 [%d1], "
                    "%r1;",
                    32, 64, 1, ".const .align 4 .u32 table[2] = {40, 2};\n")[9] == 42);
  CHECK(clean_words("atom.global.add.u32 %r1, [counter], 1; st.global.u32 [%d1], %r1;", 32, 64, 1, ".global .u32 counter = 5;\n")[31] ==
        36);
  CHECK(clean_words("mov.u64 %d2, tile; cvta.shared.u64 %d3, %d2; mul.wide.u32 %d4, %r30, 4; add.s64 %d3, %d3, %d4; st.u32 [%d3], %r30;"
                    "bar.warp.sync -1; isspacep.shared %p1, %d3; ld.u32 %r1, [%d3]; @%p1 st.global.u32 [%d1], %r1;",
                    32, 64, 1, ".shared .align 16 .b8 tile[128];\n")[7] == 7);
  CHECK(clean_words("cvta.param.u64 %d2, %d2; mov.b64 %d3, p; ld.param.u64 %d4, [%d3]; setp.eq.s64 %p1, %d4, %d0; selp.u32 %r1, 1, 0, %p1; "
                    "st.global.u32 [%d1], %r1;")[5] == 1);
}

TEST_CASE("atomic operations return the old value") {
  CHECK(clean_words("atom.global.inc.u32 %r1, [%d0], 9;")[0] == 2);  // 32 increments that wrap after 9
  CHECK(clean_words("atom.add.acq_rel.gpu.global.u32 %r1, [%d0+12], 2;")[3] == 67);
  CHECK(clean_words("atom.global.max.s32 %r1, [%d0+4], %r30;")[1] == 31);
  CHECK(clean_words("mov.u32 %r2, 1; red.global.add.u32 [%d0+8], %r2;")[2] == 34);
  CHECK(clean_words("atom.global.cas.b32 %r1, [%d1], %r30, 77;")[12] == 77);
  CHECK(clean_words(
            "mov.f32 %f1, 0f3F800000; mov.b32 %r5, 0; st.global.u32 [%d0+252], 0; bar.sync 0; red.global.add.f32 [%d0+128], %f1;")[32] !=
        0);
  CHECK(
      clean_words("setp.eq.u32 %p1, %r30, 0; @%p1 st.shared.u32 [n], 0; bar.sync 0; atom.shared.add.u32 %r1, [n], 1; st.global.u32 [%d1], "
                  "%r1;",
                  32, 64, 1, ".shared .u32 m; .shared .u32 n;\n")[31] == 31);
}

TEST_CASE("barriers with reductions, counts and names") {
  CHECK(clean_words("setp.lt.u32 %p1, %r30, 40; bar.red.popc.u32 %r1, 0, %p1; st.global.u32 [%d1], %r1;", 64)[50] == 40);
  CHECK(clean_words("setp.lt.u32 %p1, %r30, 40; bar.red.and.pred %p2, 1, 64, !%p1; selp.u32 %r1, 1, 0, %p2; st.global.u32 [%d1], %r1;",
                    64)[50] == 0);
  CHECK(clean_words("setp.lt.u32 %p1, %r30, 32; @%p1 bra A; bar.arrive 3, 64; ret;\nA: bar.sync 3, 64; st.global.u32 [%d1], 5;", 64)[31] ==
        5);
}

TEST_CASE("an mbarrier counts arrivals and bytes of a bulk copy") {
  const std::string shared = ".shared .align 8 .b64 bar; .shared .align 128 .b8 tile[64];\n";
  const std::vector<std::uint32_t> words = clean_words(
      "setp.ne.s32 %p1, %r30, 0; mov.u32 %r1, bar; mov.u32 %r2, tile;\n@!%p1 mbarrier.init.shared::cta.b64 [%r1], 1;\n"
      "fence.mbarrier_init.release.cluster; bar.sync 0;\n"
      "@%p1 bra WAIT; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 64;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d0+64], 64, [%r1];\n"
      "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0; @!%p2 bra WAIT;\n"
      "and.b32 %r3, %r30, 15; shl.b32 %r3, %r3, 2; add.s32 %r3, %r3, %r2; ld.shared.u32 %r4, [%r3]; st.global.u32 [%d1+128], %r4;",
      32, 64, 1, shared);
  CHECK(words[32] == 16);
  CHECK(words[47] == 31);
}

TEST_CASE("setmaxnreg moves registers between warpgroups and waits for those that are not there") {
  const std::string text =
      "setp.ge.u32 %p1, %r30, 128; @%p1 bra CONSUME; setmaxnreg.dec.sync.aligned.u32 40; ret;\nCONSUME: setmaxnreg.inc.sync.aligned.u32 "
      "232; "
      "st.global.u32 [%d1], 1;";
  CHECK(clean_words(text, 384, 384)[200] == 1);
  std::string greedy = text;
  greedy.replace(greedy.find("232"), 3, "240");
  CHECK(!run_words(greedy, 384, 384).run.is_finished);
  check_finding(FindingKind::kBadOperand, "setmaxnreg.dec.sync.aligned.u32 200;", 512);
}

TEST_CASE("a CTA of a cluster writes into its neighbour's shared memory") {
  const std::vector<std::uint32_t> words = clean_words(
      "mov.u32 %r1, %cluster_ctarank; xor.b32 %r2, %r1, 1; mov.u32 %r3, box; mapa.shared::cluster.u32 %r4, %r3, %r2;\n"
      "setp.ne.s32 %p1, %r30, 0; add.s32 %r5, %r1, 100; @!%p1 st.shared::cluster.u32 [%r4], %r5;\n"
      "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"
      "ld.shared.u32 %r6, [%r3]; mul.wide.u32 %d5, %r1, 4; add.s64 %d5, %d0, %d5; @!%p1 st.global.u32 [%d5], %r6;\n"
      "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;",
      32, 64, 2, ".shared .u32 box;\n");
  CHECK(words[0] == 101);
  CHECK(words[1] == 100);
}

TEST_CASE("lanes that never meet at a collective are reported") {
  check_finding(FindingKind::kDivergentAligned, "setp.lt.u32 %p1, %r30, 16; @%p1 bra A; bar.sync 1; ret;\nA: bar.sync 2;");
  check_finding(FindingKind::kDivergentAligned,
                "setp.lt.u32 %p1, %r30, 16; @%p1 bra A; bar.warp.sync -1; ret;\nA: shfl.sync.idx.b32 %r1, %r30, 0, 31, -1;");
  check_finding(FindingKind::kBadOperand, "shfl.sync.idx.b32 %r1, %r30, 0, 31, 0xffff;");
  check_finding(FindingKind::kTrap, "trap;");
  check_finding(FindingKind::kOutOfBounds, "ld.global.u32 %r1, [%d1+4096];");
  check_finding(FindingKind::kMisaligned, "ld.global.u64 %d2, [%d0+4];");
  check_finding(FindingKind::kBadOperand, "mov.u32 %r1, 1024; cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r1], 24;");
}

TEST_CASE("operands that contradict the instruction are refused with their line") {
  check_refused("add.s64 %d1, %d2, %r1;", "add.s64: operand %r1 has 32 bits, must have 64");
  check_refused("add.s32 %d1, %r2, %r1;", "result register %d1 has 64 bits, must have 32");
  check_refused("ld.global.v2.u32 {%r1, %r2, %r3}, [%d0];", "the vector must have 2 elements");
  check_refused("ld.param.u32 %r1, [p+8];", "outside of it or not aligned");
  check_refused("mov.b64 %d1, {%r1, %r2, %r3};", "bits");
  check_refused("setp.ltu.s32 %p1, %r1, %r2;", "integers have no unordered comparison");
  check_refused("atom.global.add.b32 %r1, [%d0], 1;", "no such atomic operation on this type");
  check_refused("cp.async.cg.shared.global [%r1], [%d0], 8;", ".cg takes 16");
  check_refused("mma.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f4},{%r1,%r2,%r3,%r4},{%r5,%r6},{%f1,%f2,%f3,%f4};",
                "no such form");
  check_refused("setmaxnreg.inc.sync.aligned.u32 41;", "multiple of 8");
  check_refused("cvt.s32.f32 %r1, %f1;", "needs .rni");
}

}  // namespace kw::simulate
