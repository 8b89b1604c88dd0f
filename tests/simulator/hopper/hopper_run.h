// One kernel of a PTX text on three schedules, for tests that show one behaviour of an H200 each.
// The kernel's body finds %in, %out (this CTA's part), %map0, %map1, %smem (dynamic shared memory, 1024-aligned), %bar (16 mbarriers),
// %thread, %lane, %warp, %rank (in the cluster), %lead (thread 0), and unnamed registers %p, %h, %r, %f, %d, %v.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "simulator/launch/simulation.h"
#include "simulator/ptx/parser.h"
#include "simulator/tensor/tensor_map.h"
#include "tests/catch.h"

namespace kw::simulate {

/// Of %smem in the CTA's window: the barriers come first, then the next multiple of 1024.
constexpr std::uint32_t kSmemAddress = kSharedFirstByte + 1024;

/// A tensor map whose address counts from the start of the buffer `in` or `out`.
struct CaseMap {
  TensorMap map;
  bool is_of_out = false;
};

struct HopperCase {
  std::string body;
  std::string module_text = "";
  std::uint32_t num_threads = 32;
  std::uint32_t cluster = 1;
  std::uint32_t shared_bytes = 1024;                                ///< dynamic
  std::vector<std::uint32_t> in = {0};                              ///< one buffer for all CTAs
  std::vector<std::uint32_t> out = std::vector<std::uint32_t>(64);  ///< initial words of each CTA's part
  std::vector<CaseMap> maps = {};
  bool is_dependent = false;  ///< the launch may begin while the one before it runs
};

struct HopperResult {
  LaunchReport report;
  std::vector<std::uint32_t> out;  ///< of all CTAs, one after another
};

inline std::string hopper_text(const HopperCase& one) {
  const std::string out_bytes = std::to_string(4 * one.out.size());
  std::string text = ".version 8.4\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n";
  text += one.module_text;
  text += R"(
.visible .entry k(.param .u64 in, .param .u64 out, .param .align 64 .b8 map0[128], .param .align 64 .b8 map1[128])
{
  .shared .align 8 .b8 barriers[128];
  .reg .pred %p<16>, %lead; .reg .b16 %h<8>; .reg .b32 %r<64>, %v<160>; .reg .f32 %f<160>; .reg .b64 %d<16>;
  .reg .b32 %thread, %lane, %warp, %rank, %smem, %bar; .reg .b64 %in, %out, %map0, %map1, %part;
  ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.b64 %map0, map0; mov.b64 %map1, map1;
  mov.u32 %thread, %tid.x; and.b32 %lane, %thread, 31; shr.u32 %warp, %thread, 5; mov.u32 %rank, %cluster_ctarank;
  mov.u32 %smem, smem; mov.u32 %bar, barriers; setp.eq.u32 %lead, %thread, 0;
)";
  return text + "mul.wide.u32 %part, %rank, " + out_bytes + "; add.s64 %out, %out, %part;\n" + one.body + "\nret;\n}\n";
}

/// The launch's report, or why it was refused (`refusal`).
inline Result<HopperResult> try_run(const HopperCase& one, const Schedule& schedule) {
  KW_TRY(const Module module, parse_ptx(hopper_text(one), "case.ptx"));
  Simulation simulation(SimulationOptions{.schedule = schedule, .limits = {.max_warp_instructions = 2'000'000}});
  std::vector<std::uint32_t> all_out;
  for (std::uint32_t cta = 0; cta < one.cluster; ++cta) all_out.insert(all_out.end(), one.out.begin(), one.out.end());
  const auto buffer = [&](const char* name, AllocationRole role, const std::vector<std::uint32_t>& words) {
    return simulation.allocate(
        BufferRequest{.name = name, .num_bytes = words.size() * 4, .role = role, .initial = std::as_bytes(std::span(words))});
  };
  KW_TRY(const std::uint64_t in, buffer("in", AllocationRole::kInput, one.in));
  KW_TRY(const std::uint64_t out, buffer("out", AllocationRole::kInOut, all_out));
  std::array<std::array<std::uint8_t, kTensorMapBytes>, 2> maps{};
  for (std::size_t i = 0; i < one.maps.size(); ++i) {
    TensorMap map = one.maps[i].map;
    map.global_address += one.maps[i].is_of_out ? out : in;
    KW_TRY(maps[i], encode_tensor_map(map));
  }
  KW_TRY(LaunchReport report,
         simulation.launch(module, {.kernel = "k",
                                    .grid = {one.cluster, 1, 1},
                                    .block = {one.num_threads, 1, 1},
                                    .cluster = {one.cluster, 1, 1},
                                    .dynamic_shared_bytes = one.shared_bytes,
                                    .is_dependent = one.is_dependent,
                                    .arguments = {argument(in), argument(out), argument(maps[0]), argument(maps[1])}}));
  HopperResult result{std::move(report), std::vector<std::uint32_t>(all_out.size())};
  std::memcpy(result.out.data(), simulation.bytes(out).data(), 4 * all_out.size());
  return result;
}

inline HopperResult run_case(const HopperCase& one, const Schedule& schedule) {
  const Result<HopperResult> result = try_run(one, schedule);
  INFO(one.body << (result ? "" : to_text(result.error())));
  REQUIRE(result.has_value());
  return *result;
}

inline const std::vector<Schedule>& three_schedules() {
  static const std::vector<Schedule> kAll = {{Adversary::kEager, 0}, {Adversary::kLazy, 0}, {Adversary::kRandom, 3}};
  return kAll;
}

/// The words of `out` after a run without findings, equal on every schedule.
inline std::vector<std::uint32_t> clean_out(const HopperCase& one) {
  std::vector<std::uint32_t> first;
  for (const Schedule& schedule : three_schedules()) {
    const HopperResult result = run_case(one, schedule);
    INFO(one.body << "\non " << to_text(schedule));
    for (const Finding& finding : result.report.findings) UNSCOPED_INFO(to_text(finding));
    for (const WaitingGroup& group : result.report.waiting) UNSCOPED_INFO("warp " << group.warp << ": " << group.text);
    REQUIRE(result.report.is_clean());
    if (first.empty()) first = result.out;
    CHECK(result.out == first);
  }
  return first;
}

/// A finding of this kind whose message holds `text`, on each of the schedules.
inline void check_found(FindingKind kind, const std::string& text, const HopperCase& one,
                        const std::vector<Schedule>& schedules = three_schedules()) {
  for (const Schedule& schedule : schedules) {
    const HopperResult result = run_case(one, schedule);
    INFO(one.body << "\non " << to_text(schedule));
    bool is_found = false;
    for (const Finding& finding : result.report.findings) {
      UNSCOPED_INFO(to_text(finding));
      is_found = is_found || (finding.kind == kind && finding.message.find(text) != std::string::npos);
    }
    CHECK(is_found);
  }
}

// Parts of bodies. Each is a scope of its own, so that labels and registers may repeat.

/// mbarrier `index` for `count` arrivals, known to the CTA, and in a cluster to all its CTAs.
inline std::string init_barrier(std::uint32_t count, std::uint32_t index = 0, bool has_cluster = false) {
  const std::string at = "[%bar+" + std::to_string(8 * index) + "], " + std::to_string(count);
  return "@%lead mbarrier.init.shared::cta.b64 " + at + "; fence.mbarrier_init.release.cluster; " +
         (has_cluster ? "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n" : "bar.sync 0;\n");
}
inline std::string cluster_sync() { return "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"; }

inline std::string expect_bytes(std::uint32_t num_bytes, std::uint32_t index = 0) {
  return "@%lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar+" + std::to_string(8 * index) + "], " + std::to_string(num_bytes) +
         ";\n";
}

inline std::string wait_parity(std::uint32_t parity, std::uint32_t index = 0) {
  return "{ WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p15, [%bar+" + std::to_string(8 * index) + "], " + std::to_string(parity) +
         "; @!%p15 bra WAIT; }\n";
}

/// All threads copy words between global and shared memory: `step` uses %i (word), %s (shared address) and %g (global address).
inline std::string for_words(std::uint32_t num_words, std::uint32_t num_threads, const std::string& global, const std::string& step) {
  return "{ .reg .b32 %i, %s, %w; .reg .b64 %g; .reg .pred %q; mov.u32 %i, %thread;\nMORE: setp.ge.u32 %q, %i, " +
         std::to_string(num_words) + "; @%q bra DONE; shl.b32 %s, %i, 2; cvt.u64.u32 %g, %s; add.s64 %g, %g, " + global +
         "; add.s32 %s, %s, %smem; " + step + " add.s32 %i, %i, " + std::to_string(num_threads) + "; bra MORE;\nDONE: }\n";
}
inline std::string fill_shared(std::uint32_t num_words, std::uint32_t num_threads = 32) {
  return for_words(num_words, num_threads, "%in", "ld.global.u32 %w, [%g]; st.shared.u32 [%s], %w;");
}
inline std::string copy_out(std::uint32_t num_words, std::uint32_t num_threads = 32) {
  return for_words(num_words, num_threads, "%out", "ld.shared.u32 %w, [%s]; st.global.u32 [%g], %w;");
}

/// Generic stores to shared memory become visible to the async proxy, for all threads.
inline std::string publish_shared() { return "fence.proxy.async.shared::cta; bar.sync 0;\n"; }

inline std::vector<std::uint32_t> numbered(std::size_t count, std::uint32_t first = 0) {
  std::vector<std::uint32_t> words(count);
  for (std::size_t i = 0; i < count; ++i) words[i] = first + static_cast<std::uint32_t>(i);
  return words;
}

inline std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
inline float from_bits(std::uint32_t word) { return std::bit_cast<float>(word); }
/// Two bf16 in a word; the values must be exact in bf16.
inline std::uint32_t bf16x2(float low, float high) { return bits(low) >> 16 | (bits(high) & 0xffff0000u); }

}  // namespace kw::simulate
