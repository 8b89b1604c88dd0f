// Recording version of templates/ptx/tma.cuh: a map is the number of bytes of its box. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ptx/mbarrier.cuh"

struct TensorMap {
  unsigned box_bytes;
  unsigned char rest[124];
};

inline void prefetch_tensor_map(const TensorMap&) {}

inline void land(unsigned block, unsigned smem, const TensorMap& map, unsigned barrier) {
  const int use = static_cast<int>(own_barrier(barrier).expected_bytes.size()) - 1;
  kw::ring::current().ctas.at(block)[barrier].landing[use].push_back({smem, map.box_bytes});
}
inline void tma_load_3d(unsigned smem, const TensorMap& map, unsigned barrier, int, int, int) { land(blockIdx.x, smem, map, barrier); }
inline void tma_load_3d_multicast(unsigned smem, const TensorMap& map, unsigned barrier, int, int, int, unsigned short cta_mask) {
  for (unsigned rank = 0; rank < 16; ++rank) {
    if ((cta_mask >> rank & 1) != 0) land(peer(rank), smem, map, barrier);
  }
}
