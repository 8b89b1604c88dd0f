// One launch of the sm_90a GEMM fixture: its buffers, tensor maps and arguments.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simulator/tensor/tensor_map.h"
#include "tests/simulator/kernels/kernel_case.h"
#include "tests/simulator/kernels/values.h"

namespace kw::simulate {

constexpr char kGemmFixture[] = "gemm_tma_wgmma_sm90a.ptx";
constexpr std::uint32_t kGemmSmemBytes = 3 * (128 * 64 + 64 * 64) * 2 + 2 * 64 * 64 * 2 + 2 * 3 * 8;

struct GemmShape {
  int m, n, k;
  std::uint32_t num_ctas;
};

inline std::vector<std::byte> map_argument(std::uint64_t address, int inner, int outer, std::uint32_t box_outer) {
  const auto bytes = encode_tensor_map({.type = TensorMapType::kBF16,
                                        .rank = 2,
                                        .global_address = address,
                                        .extents = {static_cast<std::uint64_t>(inner), static_cast<std::uint64_t>(outer)},
                                        .strides_bytes = {static_cast<std::uint64_t>(inner) * 2},
                                        .box = {64, box_outer},
                                        .swizzle = TensorMapSwizzle::k128B});
  REQUIRE(bytes.has_value());
  const auto view = std::as_bytes(std::span(*bytes));
  return {view.begin(), view.end()};
}

inline std::vector<std::uint16_t> whole_bf16(int count, std::uint64_t seed) {
  std::vector<std::uint16_t> bits;
  for (const float value : random_whole(count, 3, seed)) bits.push_back(static_cast<std::uint16_t>(encode(FloatFormat::kBF16, value)));
  return bits;
}

struct GemmBuffers {
  std::uint64_t c = 0;
  LaunchCall call;
};

inline GemmBuffers prepare_gemm(Simulation& simulation, const GemmShape& shape, const std::vector<std::uint16_t>& a,
                                const std::vector<std::uint16_t>& b) {
  const std::uint64_t from_a = input(simulation, "a", a), from_b = input(simulation, "b", b);
  const std::uint64_t c = output(simulation, "c", 2ull * static_cast<unsigned>(shape.m * shape.n));
  return {c,
          {.kernel = "gemm_tma_wgmma",
           .grid = {shape.num_ctas, 1, 1},
           .block = {384, 1, 1},
           .cluster = {2, 1, 1},
           .dynamic_shared_bytes = kGemmSmemBytes,
           .arguments = {map_argument(from_a, shape.k, shape.m, 128), map_argument(from_b, shape.k, shape.n, 32),
                         map_argument(c, shape.n, shape.m, 64), argument(shape.m), argument(shape.n), argument(shape.k)}}};
}

}  // namespace kw::simulate
