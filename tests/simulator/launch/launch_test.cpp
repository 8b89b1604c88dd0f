// Launches from request to results: right values on every schedule, coverage, several launches over one set of buffers, refusals.
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include <nlohmann/json.hpp>

#include "simulator/launch/symbol_name.h"
#include "tests/catch.h"
#include "tests/simulator/launch/small_kernels.h"

namespace kw::simulate {
namespace {

using Kinds = std::vector<FindingKind>;

std::vector<std::uint32_t> floats(std::size_t count, float first, float step) {
  std::vector<std::uint32_t> words;
  for (std::size_t i = 0; i < count; ++i) words.push_back(std::bit_cast<std::uint32_t>(first + step * static_cast<float>(i)));
  return words;
}

TEST_CASE("saxpy gives the right values, with a tail, on every schedule") {
  for (const Schedule& schedule : all_schedules()) {
    KernelRun k(saxpy_text(), {.schedule = schedule});
    const auto x = k.buffer("x", floats(100, 1, 1));
    const auto y = k.buffer("y", floats(100, 0.5f, 0), AllocationRole::kInOut);
    k.call.grid = {2, 1, 1};
    k.call.block = {64, 1, 1};
    k.call.arguments = {argument(100), argument(2.0f), argument(x), argument(y)};
    const LaunchReport report = k.run();
    CHECK(to_text(report).find(": clean\n") != std::string::npos);
    CHECK(report.is_clean());
    CHECK(report.num_ctas_run == 2);
    CHECK(to_text(report).find("block not executed: k.ptx:20") == std::string::npos);
    CHECK(k.words(y) == floats(100, 2.5f, 2));
  }
}

TEST_CASE("a block that no input reaches is listed with its line") {
  KernelRun k(saxpy_text());
  const auto x = k.buffer("x", floats(64, 1, 1));
  k.call.block = {64, 1, 1};
  k.call.arguments = {argument(0), argument(2.0f), argument(x), argument(x)};
  const LaunchReport report = k.run();
  CHECK(report.is_clean());
  CHECK(to_text(report).find("block not executed: k.ptx:20 mul.wide.s32") != std::string::npos);
}

TEST_CASE("the blocks of several launches add up") {
  CoverageUnion together;
  CHECK(together.coverage().num_blocks == 0);
  for (const int n : {0, 64}) {
    KernelRun k(saxpy_text());
    const auto x = k.buffer("x", floats(64, 1, 1), AllocationRole::kInOut);
    k.call.block = {64, 1, 1};
    k.call.arguments = {argument(n), argument(2.0f), argument(x), argument(x)};
    const LaunchReport report = k.run();
    const std::size_t num_before = together.coverage().num_executed;
    together.add(report);
    CHECK(together.coverage().num_executed > num_before);
    CHECK(together.coverage().num_executed >= report.coverage.num_executed);
  }
}

TEST_CASE("shared memory and a barrier move values between warps") {
  for (const Schedule& schedule : all_schedules()) {
    KernelRun k(reverse_text(), {.schedule = schedule});
    const auto out = k.buffer("out", std::vector<std::uint32_t>(64), AllocationRole::kOutput);
    k.call.block = {64, 1, 1};
    k.call.arguments = {argument(out)};
    const LaunchReport report = k.run();
    CHECK(report.is_clean());
    CHECK(report.unwritten.empty());
    for (std::uint32_t i = 0; i < 64; ++i) CHECK(k.words(out)[i] == 63 - i);
  }
}

TEST_CASE("planted fault: without bar.sync the race names both instructions and the remedy, on every schedule") {
  for (const Schedule& schedule : all_schedules()) {
    KernelRun k(reverse_text(""), {.schedule = schedule});
    const auto out = k.buffer("out", std::vector<std::uint32_t>(64), AllocationRole::kOutput);
    k.call.block = {64, 1, 1};
    k.call.arguments = {argument(out)};
    const LaunchReport report = k.run();
    CHECK(report.has_ended);
    bool has_race = false;
    for (const Finding& finding : report.findings) has_race = has_race || finding.kind == FindingKind::kRace;
    CHECK(has_race);
    const std::string text = to_text(report);
    CHECK(text.find("k.ptx:16 st.shared.u32") != std::string::npos);
    CHECK(text.find("k.ptx:20 ld.shared.u32") != std::string::npos);
    CHECK(text.find("shared 'tile'") != std::string::npos);
    CHECK(text.find("remedy:  a barrier") != std::string::npos);
  }
}

TEST_CASE("an access past a buffer ends the launch at its PTX line") {
  KernelRun k(saxpy_text());
  const auto x = k.buffer("x", floats(100, 1, 1));
  const auto y = k.buffer("y", floats(128, 1, 1), AllocationRole::kInOut);
  k.call.grid = {2, 1, 1};
  k.call.block = {64, 1, 1};
  k.call.arguments = {argument(128), argument(2.0f), argument(x), argument(y)};
  const LaunchReport report = k.run();
  CHECK(!report.has_ended);
  REQUIRE(kinds_of(report) == Kinds{FindingKind::kOutOfBounds});
  CHECK(report.findings[0].where.lane == 4);
  CHECK(to_text(report).find("k.ptx:23 ld.global.f32") != std::string::npos);
  CHECK(to_text(report).find("past the end of 'x' (400 bytes)") != std::string::npos);
}

TEST_CASE("outputs that were not written are listed") {
  KernelRun k(reverse_text());
  const auto out = k.buffer("out", std::vector<std::uint32_t>(80), AllocationRole::kOutput);
  k.call.block = {64, 1, 1};
  k.call.arguments = {argument(out)};
  const LaunchReport report = k.run();
  REQUIRE(report.unwritten.size() == 1);
  CHECK(report.unwritten[0].num_unwritten_bytes == 64);
  CHECK(k.simulation.num_unwritten_bytes(out) == 64);
}

TEST_CASE("a second launch reads what the first wrote") {
  KernelRun first(reverse_text());
  const auto out = first.buffer("out", std::vector<std::uint32_t>(64), AllocationRole::kOutput);
  const auto sum = first.buffer("sum", std::vector<std::uint32_t>(64), AllocationRole::kInOut);
  first.call.block = {64, 1, 1};
  first.call.arguments = {argument(out)};
  CHECK(first.run().is_clean());
  first.module = *parse_ptx(saxpy_text(), "k.ptx");
  first.call.arguments = {argument(64), argument(1.0f), argument(out), argument(sum)};
  CHECK(first.run().is_clean());
  CHECK(first.words(sum)[1] == 62);  // subnormal floats add as their bits
}

TEST_CASE("module variables are placed, initialised and reported by name") {
  KernelRun k(kernel_text(".param .u64 out", R"(
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.const.u32 %r1, [table+4];
  mov.u64 %rd2, counter;
  atom.global.add.u32 %r2, [%rd2], %r1;
  st.global.u32 [%rd1], %r2;
  ld.const.u32 %r3, [table+8];
  ret;)",
                          ".const .align 4 .u32 table[2] = {5, 7};\n.global .align 4 .u32 counter = 30;"));
  const auto out = k.buffer("out", {0}, AllocationRole::kOutput);
  k.call.arguments = {argument(out)};
  const LaunchReport report = k.run();
  CHECK(k.words(out)[0] == 30);
  REQUIRE(kinds_of(report) == Kinds{FindingKind::kOutOfBounds});
  CHECK(report.findings[0].message.find("'table'") != std::string::npos);
}

TEST_CASE("a second launch of a module finds its variables as the first left them") {
  KernelRun k(kernel_text(".param .u64 out", R"(
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u64 %rd2, counter;
  atom.global.add.u32 %r2, [%rd2], 1;
  st.global.u32 [%rd1], %r2;
  ret;)",
                          ".global .align 4 .u32 counter = 30;"));
  const auto out = k.buffer("out", {0}, AllocationRole::kOutput);
  k.call.arguments = {argument(out)};
  for (std::uint32_t launch = 0; launch < 3; ++launch) {
    CHECK(k.run().is_clean());
    CHECK(k.words(out)[0] == 30 + launch);
  }
}

TEST_CASE("a buffer with less alignment than a vector access needs is found") {
  KernelRun k(saxpy_text());
  const auto y = *k.simulation.allocate({"y", 256, AllocationRole::kInOut, 2});
  CHECK(y % 4 == 2);
  k.call.block = {32, 1, 1};
  k.call.arguments = {argument(1), argument(2.0f), argument(y), argument(y)};
  CHECK(kinds_of(k.run()) == Kinds{FindingKind::kMisaligned});
  CHECK(!k.simulation.allocate({"z", 4, AllocationRole::kInput, 3}));
  CHECK(!k.simulation.allocate({"z", 4, AllocationRole::kInput, 512}));
}

TEST_CASE("launches that the driver would refuse are refused by name") {
  KernelRun k(saxpy_text());
  k.call.block = {64, 1, 1};
  k.call.arguments = {argument(0), argument(2.0f), argument(std::uint64_t{0}), argument(std::uint64_t{0})};
  CHECK(k.refusal() == "");
  const LaunchCall good = k.call;
  const auto refuses = [&](auto change, const std::string& expected) {
    k.call = good;
    change(k.call);
    CHECK(k.refusal() == expected);
  };
  refuses([](LaunchCall& call) { call.kernel.back() = 'g'; }, "kernel g is not in the text (nearest: k)");
  refuses([](LaunchCall& call) { call.grid = {0, 1, 1}; }, "kernel 'k': grid 0 x 1 x 1: axis 0 must be 1 to 2147483647");
  refuses([](LaunchCall& call) { call.grid = {1, 65536, 1}; }, "kernel 'k': grid 1 x 65536 x 1: axis 1 must be 1 to 65535");
  refuses([](LaunchCall& call) { call.block = {1, 1, 65}; }, "kernel 'k': block 1 x 1 x 65: axis 2 must be 1 to 64");
  refuses([](LaunchCall& call) { call.block = {512, 4, 1}; }, "kernel 'k': block 512 x 4 x 1 has 2048 threads: the limit is 1024");
  refuses([](LaunchCall& call) { call.cluster = {2, 1, 1}; }, "kernel 'k': grid 1 x 1 x 1 is not a multiple of the cluster 2 x 1 x 1");
  refuses([](LaunchCall& call) { call.grid = call.cluster = {17, 1, 1}; },
          "kernel 'k': cluster 17 x 1 x 1: the limit is 16 CTAs, and 1 before sm_90");
  refuses([](LaunchCall& call) { call.dynamic_shared_bytes = 232449; },
          "kernel 'k': 232449 bytes of shared memory (0 static, 232449 dynamic): the limit of sm_90 is 232448");
  refuses([](LaunchCall& call) { call.dynamic_shared_bytes = 0xffffffff; },
          "kernel 'k': 4294967295 bytes of shared memory (0 static, 4294967295 dynamic): the limit of sm_90 is 232448");
  refuses([](LaunchCall& call) { call.arguments.pop_back(); }, "kernel 'k': 3 arguments given, it has 4 parameters");
  refuses([](LaunchCall& call) { call.arguments[0] = argument(std::uint64_t{1}); },
          "kernel 'k': argument 0 has 8 bytes, the parameter n has 4");
}

TEST_CASE("the kernel's own directives are kept") {
  KernelRun k(kernel_text("", "ret;", "", ".reqntid 64, 1, 1"));
  k.call.block = {32, 1, 1};
  CHECK(k.refusal() == "kernel 'k': block 32 x 1 x 1: the kernel needs 64 x 1 x 1 (.reqntid)");
  KernelRun max(kernel_text("", "ret;", "", ".maxntid 64, 1, 1"));
  max.call.block = {96, 1, 1};
  CHECK(max.refusal() == "kernel 'k': block 96 x 1 x 1: the kernel allows at most 64 threads (.maxntid)");
}

TEST_CASE("a resident cluster over the host's memory cap is refused") {
  SimulationOptions options;
  options.limits.max_resident_bytes = 1 << 20;
  KernelRun k(kernel_text("", "ret;"), options);
  k.call.dynamic_shared_bytes = 200'000;
  CHECK(k.refusal().find("one resident cluster needs") != std::string::npos);
}

TEST_CASE("mangled names of variables are shortened to what the source says") {
  CHECK(short_name("_ZZ6reducePKfE8partials") == "partials");
  CHECK(short_name("tile") == "tile");
  CHECK(short_name("_Zgarbage") == "_Zgarbage");
}

TEST_CASE("the JSON report has the finding's places with lines") {
  KernelRun k(reverse_text(""));
  const auto out = k.buffer("out", std::vector<std::uint32_t>(64), AllocationRole::kOutput);
  k.call.block = {64, 1, 1};
  k.call.arguments = {argument(out)};
  const nlohmann::json json = to_json(k.run());
  CHECK(json["format"] == "kernelwright.simulation");
  CHECK(json["is_clean"] == false);
  bool has_race = false;
  for (const auto& finding : json["findings"]) {
    if (finding["kind"] != "race" || finding["where"]["form"] != "ld.shared.u32") continue;
    has_race = true;
    CHECK(finding["where"]["ptx_line"] == 20);
    CHECK(finding["earlier"]["ptx_line"] == 16);
    CHECK(finding["earlier"]["form"] == "st.shared.u32");
  }
  CHECK(has_race);
  CHECK(json["blocks"]["num_executed"] >= 1);
}

}  // namespace
}  // namespace kw::simulate
