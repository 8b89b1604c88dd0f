// Deadlocks, livelocks, budgets: every parked role is printed, and nothing hangs.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.h"
#include "tests/simulator/launch/small_kernels.h"

namespace kw::simulate {
namespace {

using Kinds = std::vector<FindingKind>;

TEST_CASE("planted fault: a barrier with a count that nobody completes is a deadlock with its state") {
  for (const Schedule& schedule : all_schedules()) {
    KernelRun k(reverse_text("bar.sync 1, 96;"), {.schedule = schedule});
    const auto out = k.buffer("out", std::vector<std::uint32_t>(64), AllocationRole::kOutput);
    k.call.block = {128, 1, 1};
    k.call.arguments = {argument(out)};
    k.module = *parse_ptx(kernel_text(".param .u64 out", R"(
  .reg .pred %p1; .reg .b32 %r1;
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 64;
  @%p1 bra WAIT;
  ret;
WAIT:
  bar.sync 1, 96;
  ret;)"),
                          "k.ptx");
    const LaunchReport report = k.run();
    CHECK(!report.has_ended);
    REQUIRE(kinds_of(report) == Kinds{FindingKind::kDeadlock});
    REQUIRE(report.waiting.size() == 2);
    CHECK(report.waiting[1].warp == 1);
    CHECK(report.waiting[0].text == "barrier 1: 64 of 96 threads have arrived, generation 0; warps that have not: none");
    CHECK(to_text(report).find("k.ptx:15 bar.sync") != std::string::npos);
    CHECK(to_text(report).find("CTA 0 warps 0-1") != std::string::npos);
  }
}

TEST_CASE("planted fault: an mbarrier whose second arrival never comes") {
  for (const Schedule& schedule : all_schedules()) {
    KernelRun k(kernel_text("", R"(
  .reg .pred %p<3>; .reg .b32 %r<3>;
  .shared .align 8 .b64 full[2];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra READY;
  mbarrier.init.shared::cta.b64 [full+8], 2;
READY:
  bar.sync 0;
  @%p1 bra WAIT;
  mbarrier.arrive.shared::cta.b64 _, [full+8];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [full+8], 0;
  @!%p2 bra WAIT;
  ret;)"),
                {.schedule = schedule});
    k.call.block = {64, 1, 1};
    const LaunchReport report = k.run();
    REQUIRE(kinds_of(report) == Kinds{FindingKind::kDeadlock});
    REQUIRE(!report.waiting.empty());
    CHECK(report.waiting.back().text ==
          "mbarrier at shared 'full' + 8: waits for parity 0; it is in phase 0 (parity 0) with 1 of 2 arrivals pending and 0 bytes "
          "outstanding");
    CHECK(to_text(report).find("mbarrier.try_wait.parity") != std::string::npos);
  }
}

TEST_CASE("a copy that lands after the last warp's step is no deadlock, whatever the seed") {
  // Eight copies, so that warps are woken by some of them and park again.
  std::string copies;
  for (int i = 0; i < 8; ++i) {
    const std::string at = std::to_string(16 * i);
    copies += "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3+" + at + "], [%rd1+" + at + "], 16, [%r2];\n";
  }
  const Result<Module> module = parse_ptx(kernel_text(".param .u64 in", R"(
  .shared .align 8 .b64 bar;
  .shared .align 128 .b8 tile[128];
  .reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [in];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, bar;
  mov.u32 %r3, tile;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
  @%p1 fence.mbarrier_init.release.cluster;
  bar.sync 0;
  @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
)" + copies + R"(
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
  @!%p2 bra WAIT;
  ret;)"),
                                          "k.ptx");
  REQUIRE(module.has_value());
  const std::vector<std::byte> zeros(128);
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Simulation simulation(SimulationOptions{.schedule = {Adversary::kRandom, seed}});
    const std::uint64_t in = simulation.allocate({"in", 128, AllocationRole::kInput, 256, zeros}).value();
    const Result<LaunchReport> report = simulation.launch(*module, {.kernel = "k", .block = {128, 1, 1}, .arguments = {argument(in)}});
    REQUIRE(report.has_value());
    CHECK(report->is_clean());
  }
}

TEST_CASE("planted fault: a spin on a flag that nobody sets is a livelock") {
  for (const Schedule& schedule : all_schedules()) {
    KernelRun k(kernel_text(".param .u64 flag", R"(
  .reg .pred %p1; .reg .b32 %r1; .reg .b64 %rd1;
  ld.param.u64 %rd1, [flag];
SPIN:
  ld.acquire.gpu.global.u32 %r1, [%rd1];
  setp.eq.s32 %p1, %r1, 0;
  @%p1 bra SPIN;
  ret;)"),
                {.schedule = schedule});
    const auto flag = k.buffer("flag", {0}, AllocationRole::kInOut);
    k.call.grid = {3, 1, 1};
    k.call.block = {64, 1, 1};
    k.call.arguments = {argument(flag)};
    const LaunchReport report = k.run();
    REQUIRE(kinds_of(report) == Kinds{FindingKind::kLivelock});
    CHECK(report.waiting.size() == 6);  // all CTAs were admitted before
    CHECK(report.num_warp_instructions < 2'000'000);
  }
}

TEST_CASE("CTAs that take turns by a flag end, in whatever order they are admitted") {
  for (const Schedule& schedule : all_schedules()) {
    KernelRun k(kernel_text(".param .u64 turn", R"(
  .reg .pred %p1; .reg .b32 %r<4>; .reg .b64 %rd1;
  ld.param.u64 %rd1, [turn];
  mov.u32 %r2, %ctaid.x;
SPIN:
  ld.acquire.gpu.global.u32 %r1, [%rd1];
  setp.ne.s32 %p1, %r1, %r2;
  @%p1 bra SPIN;
  ld.global.u32 %r3, [%rd1+4];
  add.s32 %r3, %r3, %r2;
  st.global.u32 [%rd1+4], %r3;
  add.s32 %r2, %r2, 1;
  st.release.gpu.global.u32 [%rd1], %r2;
  ret;)"),
                {.schedule = schedule});
    const auto turn = k.buffer("turn", {0, 0}, AllocationRole::kInOut);
    k.call.grid = {40, 1, 1};
    k.call.arguments = {argument(turn)};
    const LaunchReport report = k.run();
    CHECK(to_text(report).find(": clean\n") != std::string::npos);
    CHECK(k.words(turn) == std::vector<std::uint32_t>{40, 780});
  }
}

TEST_CASE("planted fault: turns without the release, or with a plain flag, race") {
  const auto text = [](const std::string& load, const std::string& store) {
    std::string body = R"(
  .reg .pred %p1; .reg .b32 %r<4>; .reg .b64 %rd1;
  ld.param.u64 %rd1, [turn];
  mov.u32 %r2, %ctaid.x;
SPIN:
  )";
    body.append(load).append(R"( %r1, [%rd1];
  setp.ne.s32 %p1, %r1, %r2;
  @%p1 bra SPIN;
  ld.global.u32 %r3, [%rd1+4];
  add.s32 %r3, %r3, 1;
  st.global.u32 [%rd1+4], %r3;
  add.s32 %r2, %r2, 1;
  )");
    body.append(store).append(" [%rd1], %r2;\n  ret;");
    return kernel_text(".param .u64 turn", body);
  };
  for (const auto& [load, store] :
       {std::pair{"ld.acquire.gpu.global.u32", "st.relaxed.gpu.global.u32"}, {"ld.volatile.global.u32", "st.volatile.global.u32"}}) {
    KernelRun k(text(load, store));
    const auto turn = k.buffer("turn", {0, 0}, AllocationRole::kInOut);
    k.call.grid = {3, 1, 1};
    k.call.arguments = {argument(turn)};
    const LaunchReport report = k.run();
    CHECK(report.has_ended);
    REQUIRE(!report.findings.empty());
    for (const Finding& finding : report.findings) CHECK(finding.kind == FindingKind::kRace);
  }
}

TEST_CASE("a grid barrier holds all CTAs, more than run interleaved at first") {
  KernelRun k(kernel_text(".param .u64 count", R"(
  .reg .pred %p1; .reg .b32 %r<4>; .reg .b64 %rd1;
  ld.param.u64 %rd1, [count];
  mov.u32 %r2, %nctaid.x;
  mov.u32 %r3, %tid.x;
  setp.ne.u32 %p1, %r3, 0;
  @%p1 ret;
  atom.acq_rel.gpu.global.add.u32 %r1, [%rd1], 1;
SPIN:
  ld.acquire.gpu.global.u32 %r1, [%rd1];
  setp.lt.u32 %p1, %r1, %r2;
  @%p1 bra SPIN;
  ret;)"));
  const auto count = k.buffer("count", {0}, AllocationRole::kInOut);
  k.call.grid = {30, 1, 1};
  k.call.arguments = {argument(count)};
  CHECK(k.run().is_clean());
}

TEST_CASE("planted fault: a grid barrier of more CTAs than the device holds is a livelock") {
  KernelRun k(kernel_text(".param .u64 count", R"(
  .reg .pred %p1; .reg .b32 %r<4>; .reg .b64 %rd1;
  ld.param.u64 %rd1, [count];
  mov.u32 %r2, %nctaid.x;
  mov.u32 %r3, %tid.x;
  setp.ne.u32 %p1, %r3, 0;
  @%p1 ret;
  atom.acq_rel.gpu.global.add.u32 %r1, [%rd1], 1;
SPIN:
  ld.acquire.gpu.global.u32 %r1, [%rd1];
  setp.lt.u32 %p1, %r1, %r2;
  @%p1 bra SPIN;
  ret;)"));
  const auto count = k.buffer("count", {0}, AllocationRole::kInOut);
  k.call.block = {1024, 1, 1};
  k.call.grid = {132 * 2 + 1, 1, 1};
  k.call.arguments = {argument(count)};
  const LaunchReport report = k.run();
  CHECK(kinds_of(report) == std::vector<FindingKind>{FindingKind::kLivelock});
  CHECK(k.words(count)[0] == 132 * 2);
}

TEST_CASE("a compare-and-swap lock that is never given back is a livelock") {
  KernelRun k(kernel_text(".param .u64 lock", R"(
  .reg .pred %p1; .reg .b32 %r<4>; .reg .b64 %rd1;
  ld.param.u64 %rd1, [lock];
SPIN:
  atom.global.cas.b32 %r1, [%rd1], 0, 1;
  setp.ne.s32 %p1, %r1, 0;
  @%p1 bra SPIN;
  ret;)"));
  const auto lock = k.buffer("lock", {0}, AllocationRole::kInOut);
  k.call.grid = {2, 1, 1};
  k.call.arguments = {argument(lock)};
  CHECK(kinds_of(k.run()) == Kinds{FindingKind::kLivelock});
}

TEST_CASE("a loop that never ends is stopped by the instruction budget") {
  SimulationOptions options;
  options.limits.max_warp_instructions = 1'000'000;
  KernelRun k(kernel_text("", R"(
  .reg .b32 %r1;
  mov.u32 %r1, 0;
LOOP:
  add.s32 %r1, %r1, 1;
  bra LOOP;)"),
              options);
  const LaunchReport report = k.run();
  REQUIRE(kinds_of(report) == Kinds{FindingKind::kBudget});
  CHECK(report.findings[0].message.find("the budget is 1000000") != std::string::npos);
  CHECK(report.waiting.size() == 1);
}

TEST_CASE("a loop of one jump to itself is a livelock at once, not after the budget") {
  KernelRun k(kernel_text("", "LOOP:\n  bra LOOP;"));
  const LaunchReport report = k.run();
  CHECK(kinds_of(report) == Kinds{FindingKind::kLivelock});
  CHECK(report.num_warp_instructions < 1'000'000);
}

TEST_CASE("a long loop on registers is no livelock") {
  KernelRun k(kernel_text(".param .u64 out", R"(
  .reg .pred %p1; .reg .b32 %r1; .reg .b64 %rd1;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, 0;
LOOP:
  add.s32 %r1, %r1, 1;
  setp.lt.s32 %p1, %r1, 300000;
  @%p1 bra LOOP;
  st.global.u32 [%rd1], %r1;
  ret;)"));
  const auto out = k.buffer("out", {0}, AllocationRole::kOutput);
  k.call.arguments = {argument(out)};
  CHECK(k.run().is_clean());
  CHECK(k.words(out)[0] == 300000);
}

// A mutant of the sm_90a GEMM was called a deadlock although its last copies had just landed: in the turn that landed them no warp moved.
TEST_CASE("copies that land in a turn in which no warp moves are no deadlock") {
  const std::string text = kernel_text(".param .u64 in", R"(
  .reg .pred %p<3>; .reg .b32 %r<3>; .reg .b64 %rd<2>;
  .shared .align 128 .b8 tiles[256];
  .shared .align 8 .b64 full[2];
  mov.u32 %r1, %laneid;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra DONE;
  ld.param.u64 %rd1, [in];
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.init.shared::cta.b64 [full+8], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full+8], 128;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tiles], [%rd1], 128, [full];
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tiles+128], [%rd1], 128, [full+8];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [full+8], 0;
  @!%p2 bra WAIT;
OTHER:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;
  @!%p2 bra OTHER;
DONE:
  ret;)");
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    KernelRun k(text, {.schedule = {Adversary::kRandom, seed}});
    const auto in = k.buffer("in", std::vector<std::uint32_t>(32, 1));
    k.call.block = {32, 1, 1};
    k.call.arguments = {argument(in)};
    REQUIRE(kinds_of(k.run()) == Kinds{});
  }
}

TEST_CASE("planted fault: bar.sync in a branch that half of a warp takes is a divergent .aligned") {
  KernelRun k(kernel_text("", R"(
  .reg .pred %p1; .reg .b32 %r1;
  mov.u32 %r1, %laneid;
  setp.lt.u32 %p1, %r1, 16;
  @%p1 bra LOW;
  bar.sync 1;
  ret;
LOW:
  bar.sync 0;
  ret;)"));
  k.call.block = {32, 1, 1};
  const LaunchReport report = k.run();
  bool has_divergence = false;
  for (const Finding& finding : report.findings) has_divergence = has_divergence || finding.kind == FindingKind::kDivergentAligned;
  CHECK(has_divergence);
  CHECK(!report.has_ended);
}

}  // namespace
}  // namespace kw::simulate
