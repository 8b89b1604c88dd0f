// Recording version of templates/ptx/mbarrier.cuh: tests/templates/ring/ring_record.h. SPDX-License-Identifier: Apache-2.0
#pragma once

inline kw::ring::Barrier& own_barrier(unsigned smem) { return kw::ring::current().ctas[blockIdx.x][smem]; }
/// Block number of CTA `rank` of this CTA's cluster.
inline unsigned peer(unsigned rank) {
  const unsigned size = static_cast<unsigned>(kw::ring::current().cluster_size);
  return blockIdx.x / size * size + rank;
}

inline void mbarrier_init(unsigned smem, unsigned arrivals) { own_barrier(smem).init_count = static_cast<int>(arrivals); }
inline void fence_mbarrier_init() {}
inline unsigned last_waited = 0;  ///< of the running thread
inline void mbarrier_wait(unsigned smem, unsigned parity) {
  own_barrier(smem).waited_parities.push_back(parity);
  last_waited = smem;
}
inline void mbarrier_arrive_expect_tx(unsigned smem, unsigned bytes) {
  own_barrier(smem).expected_bytes.push_back(bytes);
  ++own_barrier(smem).arrivals;
}
inline void mbarrier_arrive(unsigned smem) { ++own_barrier(smem).arrivals; }
inline void mbarrier_arrive_cluster(unsigned smem, unsigned rank) { ++kw::ring::current().ctas.at(peer(rank))[smem].arrivals; }
