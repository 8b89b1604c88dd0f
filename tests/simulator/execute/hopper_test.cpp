// A pipeline of TMA loads with multicast, mbarriers, wgmma and a cluster of two, written for this test: right on every schedule, and the
// usual faults are found. C[M,N] = A[M,K] * B[N,K]^T, bf16 in, f32 out, exact because the inputs are small integers.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "simulator/launch/simulation.h"
#include "simulator/ptx/parser.h"
#include "simulator/tensor/tensor_map.h"
#include "tests/catch.h"
#include "tests/simulator/ptx/ptx_text.h"

namespace kw::simulate {
namespace {

constexpr int kM = 100;
constexpr int kN = 130;
constexpr int kK = 456;  // 8 blocks of 64, the last one short; the ring of three stages wraps twice

std::uint16_t bf16(float value) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16); }

float small_integer(std::size_t i, std::uint32_t seed) {
  const auto hash = static_cast<std::uint32_t>(i) * 2654435761u + seed * 40503u;
  return static_cast<float>(static_cast<int>((hash >> 13) % 5) - 2);
}

std::array<std::uint8_t, kTensorMapBytes> map_of(std::uint64_t address, std::uint64_t rows, std::uint32_t box_rows) {
  TensorMap map;
  map.global_address = address;
  map.extents = {kK, rows, 1, 1, 1};
  map.strides_bytes = {kK * 2, 0, 0, 0};
  map.box = {64, box_rows, 1, 1, 1};
  map.swizzle = TensorMapSwizzle::k128B;
  return encode_tensor_map(map).value();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

struct Outcome90 {
  LaunchReport report;
  std::size_t num_wrong = 0;
};

Outcome90 run(const std::string& text, Schedule schedule) {
  const Result<Module> module = parse_ptx(text, "gemm_sm90_tma_wgmma.ptx");
  INFO((module ? std::string() : to_text(module.error())));
  REQUIRE(module.has_value());
  std::vector<std::uint16_t> a(kM * kK);
  std::vector<std::uint16_t> b(kN * kK);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = bf16(small_integer(i, 1));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = bf16(small_integer(i, 2));
  Simulation simulation(SimulationOptions{.schedule = schedule});
  const auto buffer = [&](const char* name, std::uint64_t bytes, AllocationRole role, std::span<const std::byte> initial) {
    return simulation.allocate(BufferRequest{.name = name, .num_bytes = bytes, .role = role, .initial = initial}).value();
  };
  const std::uint64_t at_a = buffer("A", a.size() * 2, AllocationRole::kInput, std::as_bytes(std::span(a)));
  const std::uint64_t at_b = buffer("B", b.size() * 2, AllocationRole::kInput, std::as_bytes(std::span(b)));
  const std::uint64_t at_c = buffer("C", kM * kN * 4, AllocationRole::kOutput, {});
  const Result<LaunchReport> report =
      simulation.launch(*module, LaunchCall{.kernel = "gemm_sm90",
                                            .grid = {2, 3, 1},
                                            .block = {256, 1, 1},
                                            .dynamic_shared_bytes = 3 * 16384,
                                            .arguments = {argument(map_of(at_a, kM, 64)), argument(map_of(at_b, kN, 32)), argument(at_c),
                                                          argument(kM), argument(kN), argument(kK)}});
  INFO((report ? std::string() : to_text(report.error())));
  REQUIRE(report.has_value());
  std::vector<float> c(kM * kN);
  std::memcpy(c.data(), simulation.bytes(at_c).data(), c.size() * 4);
  Outcome90 outcome{*report};
  for (std::size_t i = 0; i < c.size(); ++i) {
    float sum = 0;
    for (std::size_t k = 0; k < kK; ++k) sum += small_integer(i / kN * kK + k, 1) * small_integer(i % kN * kK + k, 2);
    if (c[i] != sum) ++outcome.num_wrong;
  }
  return outcome;
}

const Schedule kSchedules[] = {{Adversary::kEager, 0}, {Adversary::kLazy, 0}, {Adversary::kRandom, 3}};

/// The change is found on every schedule: by a finding, a stand-still, or at least a wrong result.
void check_found(const std::string& from, const std::string& to, std::optional<FindingKind> kind = std::nullopt) {
  const std::string text = replaced(read_ptx("gemm_sm90_tma_wgmma.ptx"), from, to);
  for (const Schedule& schedule : kSchedules) {
    const Outcome90 outcome = run(text, schedule);
    INFO(from << " -> " << to << " on " << to_text(schedule));
    CHECK(!outcome.report.is_clean());
    if (kind && !outcome.report.findings.empty()) {
      INFO(to_text(outcome.report.findings.front()));
      bool is_there = false;
      for (const Finding& finding : outcome.report.findings) is_there = is_there || finding.kind == *kind;
      CHECK(is_there);
    }
  }
}

}  // namespace

TEST_CASE("a TMA and wgmma pipeline with a cluster is right on every schedule") {
  for (const Schedule& schedule : kSchedules) {
    const Outcome90 outcome = run(read_ptx("gemm_sm90_tma_wgmma.ptx"), schedule);
    INFO(to_text(schedule));
    for (const Finding& finding : outcome.report.findings) UNSCOPED_INFO(to_text(finding));
    for (const WaitingGroup& group : outcome.report.waiting) UNSCOPED_INFO("warp " << group.warp << ": " << group.text);
    CHECK(outcome.report.is_clean());
    CHECK(outcome.num_wrong == 0);
    CHECK(outcome.report.coverage.num_executed >= outcome.report.coverage.num_blocks * 8 / 10);
  }
}

TEST_CASE("faults planted in the pipeline are found") {
  check_found("wgmma.fence.sync.aligned;", ";", FindingKind::kAsyncMisuse);
  check_found("wgmma.wait_group.sync.aligned 0;", ";", FindingKind::kAsyncMisuse);
  check_found("mbarrier.arrive.shared::cluster.b64 _, [", "mov.u32 %r1, %r1; // [");
  check_found("wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 2;");
  check_found("fence.mbarrier_init.release.cluster;", "mbarrier.arrive.shared::cta.b64 _, [%r1];");
}

}  // namespace kw::simulate
