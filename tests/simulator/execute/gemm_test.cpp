// End to end: the compiler's PTX of our two templates runs on the machine with all checks, on several schedules, and is right.
// Small integers make every sum exact, so results are compared bit by bit (bf16) or within tanh's error (f32).
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cmath>
#include <cstring>

#include "simulator/launch/simulation.h"
#include "simulator/ptx/parser.h"
#include "tests/catch.h"
#include "tests/simulator/ptx/ptx_text.h"

namespace kw::simulate {
namespace {

struct Problem {
  long long batch = 1, m = 1, n = 1, k = 1;
  long long a_stride_b = 0, a_stride_m = 0, a_stride_k = 0;
  long long b_stride_b = 0, b_stride_k = 0, b_stride_n = 0;
};

std::uint16_t bf16(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  bits += 0x7fff + (bits >> 16 & 1);
  return static_cast<std::uint16_t>(bits >> 16);
}

float small_integer(std::size_t i, std::uint32_t seed) {
  const auto hash = static_cast<std::uint32_t>(i) * 2654435761u + seed * 40503u;
  return static_cast<float>(static_cast<int>((hash >> 13) % 5) - 2);
}

template <typename T>
std::span<const std::byte> as_bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

template <typename T>
std::vector<T> values_at(const Simulation& simulation, std::uint64_t address) {
  const std::span<const std::byte> bytes = simulation.bytes(address);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

LaunchReport launch(Simulation& simulation, const Module& module, const LaunchCall& call) {
  const auto start = std::chrono::steady_clock::now();
  Result<LaunchReport> report = simulation.launch(module, call);
  INFO((report ? std::string() : to_text(report.error())));
  REQUIRE(report.has_value());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  UNSCOPED_INFO(call.kernel << " on " << to_text(simulation.options().schedule) << ": " << report->num_warp_instructions
                            << " warp instructions in " << seconds << " s");
  for (const Finding& finding : report->findings) UNSCOPED_INFO(to_text(finding));
  for (const WaitingGroup& group : report->waiting) UNSCOPED_INFO("cta " << group.cta << " warp " << group.warp << ": " << group.text);
  return std::move(*report);
}

struct Epilogue {
  float alpha;
  std::uint64_t residual;
  long long residual_stride_b, residual_stride_m;
  std::uint64_t out;
  long long out_stride_b, out_stride_m;
};

/// out[b,m,n] = alpha * sum(A[b,m,k] * B[b,k,n]) + residual[b,m,n], all bf16.
void check_batched(const char* file, std::uint32_t tile_m, std::uint32_t tile_n, std::uint32_t dynamic_bytes, std::uint32_t split_k,
                   long long m, long long n, long long k, Schedule schedule) {
  const Result<Module> module = parse_ptx(read_ptx(file), file);
  REQUIRE(module.has_value());
  constexpr long long kBatch = 2;
  std::vector<std::uint16_t> a(static_cast<std::size_t>(kBatch * m * k));
  std::vector<std::uint16_t> b(static_cast<std::size_t>(kBatch * k * n));
  std::vector<std::uint16_t> residual(static_cast<std::size_t>(kBatch * m * n));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = bf16(small_integer(i, 1));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = bf16(small_integer(i, 2));
  for (std::size_t i = 0; i < residual.size(); ++i) residual[i] = bf16(small_integer(i, 3));
  Simulation simulation(SimulationOptions{.schedule = schedule});
  const auto buffer = [&](const char* name, std::uint64_t bytes, AllocationRole role, std::span<const std::byte> initial) {
    return simulation.allocate(BufferRequest{.name = name, .num_bytes = bytes, .role = role, .initial = initial}).value();
  };
  const auto tiles = static_cast<std::uint32_t>((m + tile_m - 1) / tile_m * ((n + tile_n - 1) / tile_n) * kBatch);
  const std::uint64_t out = buffer("out", residual.size() * 2, AllocationRole::kOutput, {});
  const std::uint64_t at_a = buffer("A", a.size() * 2, AllocationRole::kInput, as_bytes_of(a));
  const std::uint64_t at_b = buffer("B", b.size() * 2, AllocationRole::kInput, as_bytes_of(b));
  const std::uint64_t at_residual = buffer("residual", residual.size() * 2, AllocationRole::kInput, as_bytes_of(residual));
  std::uint64_t partial = 0;
  std::uint64_t counters = 0;
  if (split_k > 1) {
    partial = buffer("partial_sums", std::uint64_t{tiles} * split_k * tile_m * tile_n * 4, AllocationRole::kOutput, {});
    counters = buffer("tile_counters", tiles * 4, AllocationRole::kInOut, {});
  }
  const Problem problem{kBatch, m, n, k, m * k, k, 1, k * n, n, 1};
  const Epilogue epilogue{0.5f, at_residual, m * n, n, out, m * n, n};
  const LaunchReport report = launch(simulation, *module,
                                     LaunchCall{.kernel = module->kernels[0].name,
                                                .grid = {tiles, split_k, 1},
                                                .block = {256, 1, 1},
                                                .dynamic_shared_bytes = dynamic_bytes,
                                                .arguments = {argument(at_a), argument(at_b), argument(problem), argument(epilogue),
                                                              argument(partial), argument(counters)}});
  CHECK(report.is_clean());
  const std::vector<std::uint16_t> result = values_at<std::uint16_t>(simulation, out);
  std::size_t num_wrong = 0;
  for (long long i = 0; i < kBatch * m * n; ++i) {
    const long long batch = i / (m * n);
    const long long row = i / n % m;
    const long long column = i % n;
    float sum = 0;
    for (long long at = 0; at < k; ++at) {
      sum += small_integer(static_cast<std::size_t>((batch * m + row) * k + at), 1) *
             small_integer(static_cast<std::size_t>((batch * k + at) * n + column), 2);
    }
    const std::uint16_t expected = bf16(0.5f * sum + small_integer(static_cast<std::size_t>(i), 3));
    if (result[static_cast<std::size_t>(i)] != expected) ++num_wrong;
  }
  CHECK(num_wrong == 0);
}

const Schedule kSchedules[] = {{Adversary::kEager, 0}, {Adversary::kLazy, 0}, {Adversary::kRandom, 7}};

}  // namespace

TEST_CASE("the tensor-core template is right on every schedule") {
  for (const Schedule& schedule : kSchedules) {
    check_batched("gemm_sm80_mma.ptx", 32, 64, 49152, 1, 64, 64, 320, schedule);
    check_batched("gemm_sm80_mma.ptx", 32, 64, 49152, 1, 45, 68, 90, schedule);  // off the tile grid
  }
}

TEST_CASE("split-K with a reduction by the last CTA is right on every schedule") {
  for (const Schedule& schedule : kSchedules) check_batched("gemm_sm80_mma_split_k.ptx", 64, 64, 32768, 2, 70, 72, 200, schedule);
}

TEST_CASE("the SIMT template is right on every schedule") {
  // x[m,n] += tanh(sum(A[k,m] * B[n,k]) * rows[m]), f32.
  const Result<Module> module = parse_ptx(read_ptx("gemm_simt.ptx"), "gemm_simt.ptx");
  REQUIRE(module.has_value());
  constexpr long long kM = 45;
  constexpr long long kN = 70;
  constexpr long long kK = 37;
  std::vector<float> a(kK * kM);
  std::vector<float> b(kN * kK);
  std::vector<float> rows(kM);
  std::vector<float> x(kM * kN);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = small_integer(i, 1);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = small_integer(i, 2);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = 0.03125f * small_integer(i, 3);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = small_integer(i, 4);
  struct {
    std::uint64_t x;
    long long stride;
    std::uint64_t rows;
  } epilogue{};
  for (const Schedule& schedule : kSchedules) {
    Simulation simulation(SimulationOptions{.schedule = schedule});
    const auto buffer = [&](const char* name, AllocationRole role, const std::vector<float>& values) {
      return simulation
          .allocate(
              BufferRequest{.name = name, .num_bytes = values.size() * 4, .role = role, .align_bytes = 16, .initial = as_bytes_of(values)})
          .value();
    };
    const std::uint64_t at_a = buffer("A", AllocationRole::kInput, a);
    const std::uint64_t at_b = buffer("B", AllocationRole::kInput, b);
    epilogue = {buffer("x", AllocationRole::kInOut, x), kN, buffer("rows", AllocationRole::kInput, rows)};
    const Problem problem{1, kM, kN, kK, 0, 1, kM, 0, 1, kK};
    const LaunchReport report = launch(simulation, *module,
                                       LaunchCall{.kernel = module->kernels[0].name,
                                                  .grid = {4, 1, 1},
                                                  .block = {128, 1, 1},
                                                  .dynamic_shared_bytes = 13312,
                                                  .arguments = {argument(at_a), argument(at_b), argument(problem), argument(epilogue)}});
    CHECK(report.is_clean());
    const std::vector<float> result = values_at<float>(simulation, epilogue.x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t m = i / kN;
      const std::size_t n = i % kN;
      float sum = 0;
      for (std::size_t k = 0; k < kK; ++k) sum += a[k * kM + m] * b[n * kK + k];
      REQUIRE(std::fabs(result[i] - (x[i] + std::tanh(sum * rows[m]))) < 2e-6f);
    }
  }
}

}  // namespace kw::simulate
