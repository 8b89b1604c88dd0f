// Reports as a reader gets them: what lies between two accesses, who waits and who has arrived, quotes of source and PTX, the HTML page.
// The pages in tests/golden/reports are read by a person when they change: KW_UPDATE_GOLDEN=1 test_simulate_launch writes them anew.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "simulator/launch/report_html.h"
#include "simulator/launch/symbol_name.h"
#include "tests/catch.h"
#include "tests/simulator/launch/small_kernels.h"

namespace kw::simulate {
namespace {

/// 64 threads fill a tile, thread 0 copies it out by the async proxy; `fence` stands before the barrier.
std::string staged_store_text(const std::string& fence) {
  return kernel_text(".param .u64 out", R"(
  .reg .pred %p1; .reg .b32 %r<4>; .reg .b64 %rd1;
  .shared .align 128 .b8 tile[256];
  .loc 1 3 1
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, tile;
  add.s32 %r3, %r3, %r2;
  .loc 1 4 1
  st.shared.u32 [%r3], %r1;
  )" + fence + R"(
  .loc 1 5 1
  bar.sync 0;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra DONE;
  .loc 1 1 1, function_name $L__info_string0, inlined_at 1 6 9
  cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 256;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
DONE:
  ret;)",
                     ".file 1 \"staged.cu\"");
}

constexpr char kSource[] =
    "__device__ void store(int* out, const int* tile) { /* <inline & asm> */ }\n"
    "__global__ void k(int* out) {\n"
    "  const int i = threadIdx.x;\n"
    "  tile[i] = i;\n"
    "  __syncthreads();\n"
    "  if (i == 0) store(out, tile);\n"
    "}\n";

struct Run {
  LaunchReport report;
  ReportTexts texts;
};

Run run_staged_store(const std::string& fence) {
  const std::string text = staged_store_text(fence);
  KernelRun k(text);
  const auto out = k.buffer("out", std::vector<std::uint32_t>(64), AllocationRole::kOutput);
  k.call.block = {64, 1, 1};
  k.call.arguments = {argument(out)};
  Run run{k.run(), {}};
  run.texts.ptx = TextLines(text);
  run.texts.sources.emplace("staged.cu", TextLines(kSource));
  return run;
}

/// Warp 0 waits for two arrivals, warp 1 arrives once; `arrive` is what warp 1 does.
std::string waiting_text(const std::string& arrive) {
  return kernel_text("", R"(
  .reg .pred %p<3>; .reg .b32 %r<3>;
  .shared .align 8 .b64 full;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra READY;
  mbarrier.init.shared::cta.b64 [full], 2;
READY:
  bar.sync 0;
  setp.lt.u32 %p1, %r1, 32;
  @%p1 bra WAIT;
  setp.ne.u32 %p2, %r1, 32;
  @%p2 bra DONE;
  )" + arrive + R"(
DONE:
  ret;
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;
  @!%p2 bra WAIT;
  ret;)");
}

LaunchReport run_waiting(const std::string& arrive) {
  KernelRun k(waiting_text(arrive));
  k.call.block = {64, 1, 1};
  return k.run();
}

std::string page_path(const std::string& name) { return std::string(KW_SOURCE_DIR) + "/tests/golden/reports/" + name; }

void check_page(const std::string& name, const std::string& text) {
  if (std::getenv("KW_UPDATE_GOLDEN") != nullptr) std::ofstream(page_path(name)) << text;
  std::ifstream in(page_path(name));
  const std::string expected{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  INFO("differs from " << page_path(name) << "; if it is meant to: KW_UPDATE_GOLDEN=1 test_simulate_launch");
  CHECK(text == expected);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("a missing proxy fence shows the write, the barrier that both pass, the copy, and their callers") {
  const Run run = run_staged_store("");
  REQUIRE(kinds_of(run.report) == std::vector<FindingKind>{FindingKind::kMissingProxyFence});
  const Finding& finding = run.report.findings[0];
  REQUIRE(finding.passed.size() == 1);
  CHECK(finding.passed[0].place.role == "arrives at barrier 0 (generation 0)");
  check_page("missing_fence.txt", to_text(run.report, run.texts));
  CHECK(run_staged_store("fence.proxy.async;").report.is_clean());
}

TEST_CASE("barriers that only one of two racing warps knows of are shown in its column") {
  KernelRun k(reverse_text("bar.arrive 1, 96;"));
  const auto out = k.buffer("out", std::vector<std::uint32_t>(64), AllocationRole::kOutput);
  k.call.block = {96, 1, 1};
  k.call.arguments = {argument(out)};
  const LaunchReport report = k.run();
  bool has_race = false;
  for (const Finding& finding : report.findings) {
    if (finding.kind != FindingKind::kRace || finding.where.role.find("reads") == std::string::npos) continue;
    has_race = true;
    REQUIRE(finding.passed.size() == 1);
    CHECK(finding.passed[0].is_of_earlier);
    CHECK(finding.passed[0].place.role == "arrives at barrier 1 (generation 0)");
    CHECK(finding.passed[0].place.warp == finding.other->warp);
  }
  CHECK(has_race);
}

TEST_CASE("a barrier passed before the earlier access is not shown between the two") {
  KernelRun k(kernel_text("", R"(
  .reg .pred %p1; .reg .b32 %r<3>;
  .shared .align 4 .b8 word[4];
  mov.u32 %r1, %tid.x;
  setp.ge.u32 %p1, %r1, 32;
  bar.sync 0;
  @%p1 bra READ;
  st.shared.u32 [word], 7;
  ret;
READ:
  ld.shared.u32 %r2, [word];
  ret;)"));
  k.call.block = {64, 1, 1};
  const LaunchReport report = k.run();
  REQUIRE(!report.findings.empty());
  for (const Finding& finding : report.findings) CHECK(finding.passed.empty());
}

TEST_CASE("a copy that completes on an mbarrier is told by the warp that issued it") {
  KernelRun k(kernel_text(".param .u64 in", R"(
  .reg .pred %p<3>; .reg .b32 %r<3>; .reg .b64 %rd1;
  .shared .align 128 .b8 tile[256];
  .shared .align 8 .b64 full;
  ld.param.u64 %rd1, [in];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 64;
  @%p1 bra READY;
  mbarrier.init.shared::cta.b64 [full], 1;
  fence.proxy.async;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 256, [full];
READY:
  bar.sync 0;
  ld.shared.u32 %r2, [tile];
  ret;)"));
  const auto in = k.buffer("in", std::vector<std::uint32_t>(64, 5));
  k.call.block = {96, 1, 1};
  k.call.arguments = {argument(in)};
  const LaunchReport report = k.run();
  REQUIRE(!report.findings.empty());
  CHECK(report.findings[0].kind == FindingKind::kRace);
  REQUIRE(report.findings[0].other.has_value());
  CHECK(report.findings[0].other->warp == 2);
}

TEST_CASE("a deadlock tells who initialised the barrier and who has arrived at it") {
  const LaunchReport once = run_waiting("mbarrier.arrive.shared::cta.b64 _, [full];");
  const std::string text = to_text(once);
  INFO(text);
  CHECK(has(text, "initialised it, count 2 by CTA 0 warp 0"));
  CHECK(has(text, "arrived in phase 0: CTA 0 warp 1, at"));
  CHECK(has(text, "mbarrier.arrive.shared::cta.b64"));
  CHECK_FALSE(has(text, "NOBODY"));
  const LaunchReport never = run_waiting("");
  CHECK(has(to_text(never), "NOBODY HAS ARRIVED at this barrier"));
  CHECK(has(to_html("k", {{"k", nullptr, {&never}, {}}}), "Nobody has arrived at this barrier so far"));
  CHECK(to_json(once)["waiting"][0]["history"].size() == 2);
}

TEST_CASE("findings of several schedules are told once, each with its schedules") {
  std::vector<LaunchReport> reports;
  for (const Schedule& schedule : all_schedules()) {
    KernelRun k(reverse_text(""), {.schedule = schedule});
    const auto out = k.buffer("out", std::vector<std::uint32_t>(64), AllocationRole::kOutput);
    k.call.block = {64, 1, 1};
    k.call.arguments = {argument(out)};
    reports.push_back(k.run());
  }
  std::vector<const LaunchReport*> all;
  for (const LaunchReport& report : reports) all.push_back(&report);
  const std::string text = to_text(all, {});
  CHECK(has(text, "on schedule eager, lazy"));
  const std::size_t first = text.find("race: ");
  REQUIRE(first != std::string::npos);
  const std::string same = text.substr(first, text.find('\n', first) - first);
  INFO(text);
  CHECK(text.find("  seen", first) != std::string::npos);
}

TEST_CASE("the page of a finding quotes the lines, escapes what it quotes and needs no script") {
  const Run run = run_staged_store("");
  const std::string html = to_html("k in staged.cu", {{"k", &run.texts, {&run.report}, {"buffer '<out>' is wrong"}}});
  check_page("missing_fence.html", html);
  CHECK(has(html, "/* &lt;inline &amp; asm&gt; */"));
  CHECK(has(html, "buffer &#39;&lt;out&gt;&#39; is wrong"));
  CHECK_FALSE(has(html, "<script"));
  CHECK_FALSE(has(html, "http"));
}

TEST_CASE("names of kernels are shortened to what a source says") {
  CHECK(function_name("saxpy") == "saxpy");
  CHECK(function_name("_Z5saxpyifPKfPf") == "saxpy");
  CHECK(function_name("_ZN2ns5scaleIfEEvPT_") == "scale<float>");
  CHECK(function_name("_ZN12_GLOBAL__N_15scaleIN2ns1AIiEEEEvT_") == "scale<ns::A<int> >");
}

}  // namespace
}  // namespace kw::simulate
