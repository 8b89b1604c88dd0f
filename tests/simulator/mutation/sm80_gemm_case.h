// Launches of the generated sm_80 GEMM fixtures: out = relu(A * B^T + bias), f16, at one small problem with tails.
// The arguments follow the variants' launch plans (kernelwright generate writes them to manifest.json).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "tests/simulator/kernels/kernel_case.h"
#include "tests/simulator/kernels/values.h"
#include "tests/simulator/mutation/run_mutants.h"

namespace kw::simulate {

struct Sm80Gemm {
  std::string name, fixture, kernel;
  int block_m = 0, num_splits = 1;
  std::uint32_t smem_bytes = 0;
};
constexpr int kSm80BlockN = 64;
inline Sm80Gemm plain_sm80_gemm() {
  return {"gemm_sm80", "gemm_sm80_plain.ptx", "gemm_sm80_mma__m32_n64_k32_wm2_wn2_c1_s3_sk1_g8_va8_vb16_e0", 32, 1, 18432};
}
inline Sm80Gemm split_k_sm80_gemm() {
  return {"split_k_sm80", "gemm_sm80_split_k.ptx", "gemm_sm80_mma__m16_n64_k32_wm1_wn4_c1_s3_sk2_g1_va8_vb16_e1", 16, 2, 15360};
}

/// Rows and columns end off the tile; k is 6 blocks of 32 and a part of one.
constexpr int kSm80M = 40, kSm80N = 72, kSm80K = 200;

inline std::vector<std::uint16_t> whole_f16(int count, std::uint64_t seed) {
  std::vector<std::uint16_t> bits;
  for (const float value : random_whole(count, 3, seed)) bits.push_back(static_cast<std::uint16_t>(encode(FloatFormat::kF16, value)));
  return bits;
}

inline PreparedLaunch prepare_sm80_gemm(Simulation& simulation, const Sm80Gemm& gemm) {
  const std::uint64_t a = input(simulation, "A", whole_f16(kSm80M * kSm80K, 1)), b = input(simulation, "B", whole_f16(kSm80N * kSm80K, 2)),
                      bias = input(simulation, "bias", whole_f16(kSm80N, 3)), out = output(simulation, "out", 2ull * kSm80M * kSm80N);
  const std::int64_t num_tiles = (kSm80M + gemm.block_m - 1) / gemm.block_m * ((kSm80N + kSm80BlockN - 1) / kSm80BlockN);
  std::vector<std::uint64_t> outputs = {out};
  std::uint64_t partial_sums = 0, tile_counters = 0;
  if (gemm.num_splits > 1) {
    partial_sums =
        output(simulation, "partial_sums", static_cast<std::uint64_t>(num_tiles) * gemm.num_splits * gemm.block_m * kSm80BlockN * 4);
    tile_counters = output(simulation, "tile_counters", static_cast<std::uint64_t>(num_tiles) * 4, true);
    outputs.push_back(tile_counters);  // ready for the next launch: zero again
  }
  const std::array<std::int64_t, 10> problem = {1, kSm80M, kSm80N, kSm80K, 0, kSm80K, 1, 0, 1, kSm80K};
  const std::array<std::uint64_t, 3> epilogue = {bias, out, kSm80N};
  return {{.kernel = gemm.kernel,
           .grid = {static_cast<std::uint32_t>(num_tiles), static_cast<std::uint32_t>(gemm.num_splits), 1},
           .block = {128, 1, 1},
           .dynamic_shared_bytes = gemm.smem_bytes,
           .arguments = {argument(a), argument(b), argument(problem), argument(epilogue), argument(partial_sums), argument(tile_counters)}},
          outputs};
}

inline std::vector<std::uint16_t> expected_sm80_output() {
  const auto a = whole_f16(kSm80M * kSm80K, 1), b = whole_f16(kSm80N * kSm80K, 2), bias = whole_f16(kSm80N, 3);
  std::vector<std::uint16_t> out;
  for (int row = 0; row < kSm80M; ++row) {
    for (int column = 0; column < kSm80N; ++column) {
      double sum = half_value(bias[at(column)]);
      for (int step = 0; step < kSm80K; ++step) sum += half_value(a[at(row * kSm80K + step)]) * half_value(b[at(column * kSm80K + step)]);
      out.push_back(static_cast<std::uint16_t>(encode(FloatFormat::kF16, std::max(sum, 0.0))));
    }
  }
  return out;
}

}  // namespace kw::simulate
