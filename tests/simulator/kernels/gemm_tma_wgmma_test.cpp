// The sm_90a GEMM with TMA multicast, wgmma, a cluster of two and a persistent loop: exact at eight shapes on three schedules with no
// report, and each planted fault in its text is found. SPDX-License-Identifier: Apache-2.0
#include <set>

#include "tests/simulator/kernels/gemm_tma_wgmma_case.h"

namespace kw::simulate {
namespace {

/// As run_gemm_on_device.cu prints it.
std::uint64_t output_digest(const Simulation& simulation, std::uint64_t address, const GemmShape& shape) {
  const auto got = values_at<std::uint16_t>(simulation, address);
  std::uint64_t digest = 0;
  for (int row = 0; row < shape.m; ++row) {
    for (int column = 0; column < shape.n; ++column) {
      const std::uint64_t place = static_cast<std::uint64_t>(row) << 32 | static_cast<unsigned>(column);
      digest += mix_bits(mix_bits(place) ^ got[at(row * shape.n + column)]);
    }
  }
  return digest;
}

int count_wrong(const Simulation& simulation, std::uint64_t address, const GemmShape& shape, const std::vector<std::uint16_t>& a,
                const std::vector<std::uint16_t>& b) {
  const auto got = values_at<std::uint16_t>(simulation, address);
  int num_wrong = 0;
  for (int row = 0; row < shape.m; ++row) {
    for (int column = 0; column < shape.n; ++column) {
      double sum = 0;
      for (int step = 0; step < shape.k; ++step)
        sum += bf16_value(a[at(row * shape.k + step)]) * bf16_value(b[at(column * shape.k + step)]);
      num_wrong += got[at(row * shape.n + column)] != encode(FloatFormat::kBF16, sum) ? 1 : 0;
    }
  }
  return num_wrong;
}

std::string fixture_text() {
  std::ifstream in(std::filesystem::path(KW_SOURCE_DIR) / "tests/simulator/kernels" / kGemmFixture);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string with_all_replaced(std::string text, const std::string& from, const std::string& to) {
  std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  for (; at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  return text;
}

/// Every schedule must find something or compute a wrong result on at least one of them; returns the kinds.
std::set<std::string> faults_of(const std::string& text) {
  const Result<Module> module = parse_ptx(text, kGemmFixture);
  if (!module) FAIL(to_text(module.error()));
  const GemmShape shape{300, 96, 5 * 64, 2};
  const std::vector<std::uint16_t> a = whole_bf16(shape.m * shape.k, 1), b = whole_bf16(shape.n * shape.k, 2);
  std::set<std::string> kinds;
  on_every_schedule([&](Simulation& simulation) {
    const GemmBuffers buffers = prepare_gemm(simulation, shape, a, b);
    const Result<LaunchReport> report = simulation.launch(*module, buffers.call);
    if (!report) FAIL(to_text(report.error()));
    for (const Finding& finding : report->findings) kinds.emplace(to_text(finding.kind));
    if (report->is_clean() && count_wrong(simulation, buffers.c, shape, a, b) != 0) kinds.emplace("wrong result");
  });
  return kinds;
}

}  // namespace

TEST_CASE("a persistent cluster GEMM with TMA multicast and wgmma is exact at eight shapes on three schedules, as on an H200") {
  const Module module = load_fixture(kGemmFixture);
  const struct {
    GemmShape shape;
    std::uint64_t h200_digest;  // printed by run_gemm_on_device.cu on an H200
  } cases[] = {{{256, 64, 64, 2}, 0x8c3d0c57e5152657},   {{256, 128, 256, 2}, 0x46bb9c282e3c547e}, {{200, 40, 72, 2}, 0x9ad25a0dc4e572e3},
               {{512, 64, 128, 4}, 0x89c4256d1c0a7cc0},  {{130, 200, 200, 2}, 0x33a7f6c1acd17390}, {{600, 72, 64, 4}, 0x0ef37b26457b43a3},
               {{256, 192, 320, 2}, 0x12c05ed1f34c2cfa}, {{8, 8, 8, 2}, 0xb390dcb91a5bd6b0}};
  for (const auto& [shape, h200_digest] : cases) {
    CAPTURE(shape.m, shape.n, shape.k);
    const std::uint64_t expected_digest = h200_digest;
    const GemmShape problem = shape;  // lambdas do not capture structured bindings in C++20's first compilers
    const std::vector<std::uint16_t> a = whole_bf16(shape.m * shape.k, 1), b = whole_bf16(shape.n * shape.k, 2);
    on_every_schedule([&](Simulation& simulation) {
      const GemmBuffers buffers = prepare_gemm(simulation, problem, a, b);
      run_clean(simulation, module, buffers.call);
      CHECK(count_wrong(simulation, buffers.c, problem, a, b) == 0);
      CHECK(output_digest(simulation, buffers.c, problem) == expected_digest);
    });
  }
}

TEST_CASE("every planted fault in the GEMM's text is found") {
  const std::string text = fixture_text();
  const struct {
    const char* name;
    const char* from;
    const char* to;
  } faults[] = {
      {"no proxy fence before the TMA store", "fence.proxy.async.shared::cta;", ""},
      {"accumulators read before their group is done", "wgmma.wait_group.sync.aligned 0;", ""},
      {"stage released before its wgmma is done", "wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 2;"},
      {"staging tile overwritten before the last store has read it", "cp.async.bulk.wait_group.read 0;", ""},
      {"no cluster barrier", "barrier.cluster.wait.acquire;", ""},
      {"multicast to one CTA only", "mbarrier::complete_tx::bytes.multicast::cluster [%r244]",
       "mbarrier::complete_tx::bytes.multicast::cluster [%r240]"},
      {"the other parity of the full barrier", "mbarrier.try_wait.parity.shared::cta.b64 done, [%r150], %r402",
       "mbarrier.try_wait.parity.shared::cta.b64 done, [%r150], 1"},
      {"no barrier before the TMA store", "bar.sync %r7, 128;", ""},
      {"no commit of the wgmma group", "wgmma.commit_group.sync.aligned;", ""},
      {"no wgmma fence", "wgmma.fence.sync.aligned;", ""},
  };
  for (const auto& fault : faults) {
    CAPTURE(fault.name);
    if (text.find(fault.from) == std::string::npos) FAIL("the fixture has no '" << fault.from << "'");
    CHECK_FALSE(faults_of(with_all_replaced(text, fault.from, fault.to)).empty());
  }
}

}  // namespace kw::simulate
