// TMA: one thread copies a box of a tensor between gmem and smem. A tensor map, made by the host (cuTensorMapEncodeTiled), describes the
// tensor, the box and the swizzle; what lies outside the tensor is read as zeros and counts as bytes all the same.
// `smem` and `barrier` are shared-space addresses; smem is 128-byte aligned. Coordinates are elements, dimension 0 is innermost.
// PTX ISA, "cp.async.bulk.tensor". sm_90. SPDX-License-Identifier: Apache-2.0
#pragma once

/// CUtensorMap: 128 bytes that only the driver and TMA read. A kernel takes it as `const __grid_constant__ TensorMap`.
struct alignas(64) TensorMap {
  unsigned char bytes[128];
};

__device__ __forceinline__ void prefetch_tensor_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// Starts the copy of one box; its bytes arrive at `barrier`.
__device__ __forceinline__ void tma_load_3d(unsigned smem, const TensorMap& map, unsigned barrier, int c0, int c1, int c2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(smem),
      "l"(&map), "r"(c0), "r"(c1), "r"(c2), "r"(barrier)
      : "memory");
}

/// The same for all CTAs of the cluster whose bit is set: each gets the box at the same place, and its bytes at its own barrier.
__device__ __forceinline__ void tma_load_3d_multicast(unsigned smem, const TensorMap& map, unsigned barrier, int c0, int c1, int c2,
                                                      unsigned short cta_mask) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], "
      "%6;" ::"r"(smem),
      "l"(&map), "r"(c0), "r"(c1), "r"(c2), "r"(barrier), "h"(cta_mask)
      : "memory");
}
