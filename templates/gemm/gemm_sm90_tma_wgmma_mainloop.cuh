// From full stages to sums in registers: part of gemm/gemm_sm90_tma_wgmma.cuh and of gemm/gemm_sm90_tma_wgmma_pair.cuh.
// SPDX-License-Identifier: Apache-2.0

// ---- Mainloop of a consumer -------------------------------------------------------------------------------------------------------

/// A thread's sums of kColumns columns: wgmma tile i along m, in the order of ptx/wgmma.cuh.
template <int kColumns>
struct Sums {
  float tile[Config::kMmaM][kColumns / 2];
};
using TileSums = Sums<Config::BLOCK_N>;

/// One wgmma; the last argument only names the element type.
__device__ __forceinline__ void multiply_tile(float (&d)[32], unsigned long long a, unsigned long long b, int accumulates, Half) {
  wgmma_m64n64k16_f16<TileA::kTranspose, TileB::kTranspose>(d, a, b, accumulates);
}
__device__ __forceinline__ void multiply_tile(float (&d)[64], unsigned long long a, unsigned long long b, int accumulates, Half) {
  wgmma_m64n128k16_f16<TileA::kTranspose, TileB::kTranspose>(d, a, b, accumulates);
}
__device__ __forceinline__ void multiply_tile(float (&d)[96], unsigned long long a, unsigned long long b, int accumulates, Half) {
  wgmma_m64n192k16_f16<TileA::kTranspose, TileB::kTranspose>(d, a, b, accumulates);
}
__device__ __forceinline__ void multiply_tile(float (&d)[128], unsigned long long a, unsigned long long b, int accumulates, Half) {
  wgmma_m64n256k16_f16<TileA::kTranspose, TileB::kTranspose>(d, a, b, accumulates);
}
__device__ __forceinline__ void multiply_tile(float (&d)[32], unsigned long long a, unsigned long long b, int accumulates, BFloat16) {
  wgmma_m64n64k16_bf16<TileA::kTranspose, TileB::kTranspose>(d, a, b, accumulates);
}
__device__ __forceinline__ void multiply_tile(float (&d)[64], unsigned long long a, unsigned long long b, int accumulates, BFloat16) {
  wgmma_m64n128k16_bf16<TileA::kTranspose, TileB::kTranspose>(d, a, b, accumulates);
}
__device__ __forceinline__ void multiply_tile(float (&d)[96], unsigned long long a, unsigned long long b, int accumulates, BFloat16) {
  wgmma_m64n192k16_bf16<TileA::kTranspose, TileB::kTranspose>(d, a, b, accumulates);
}
__device__ __forceinline__ void multiply_tile(float (&d)[128], unsigned long long a, unsigned long long b, int accumulates, BFloat16) {
  wgmma_m64n256k16_bf16<TileA::kTranspose, TileB::kTranspose>(d, a, b, accumulates);
}

/// Tells every CTA whose copies reach this one's stage that this warpgroup has read it; one thread for each of them.
__device__ __forceinline__ void release_stage(const Schedule& schedule, RingPosition ring, int thread) {
  if constexpr (Config::kPeers == 1) {
    if (thread == 0) {
      mbarrier_arrive(ring.empty());
    }
  } else {
    if (thread < Config::kPeers) {
      // The CTAs of this one's row of the cluster, then the others of its column.
      const int above = thread - Config::CLUSTER_N;
      const int row = above < schedule.cta_m ? above : above + 1;
      const int rank = thread < Config::CLUSTER_N ? schedule.cta_m * Config::CLUSTER_N + thread : row * Config::CLUSTER_N + schedule.cta_n;
      mbarrier_arrive_cluster(ring.empty(), static_cast<unsigned>(rank));
    }
  }
}

/// Ping-pong: whose turn it is to multiply. A consumer may not wait at a stage's barrier before the other has passed all of its own: the
/// parity tells a phase from the next one only.
__device__ __forceinline__ unsigned turn_barrier(int consumer) { return static_cast<unsigned>(4 + consumer); }  // 1 to 3: split-K
__device__ __forceinline__ void wait_for_turn(int consumer) { named_barrier_sync(turn_barrier(consumer), 256); }
__device__ __forceinline__ void give_turn_to(int consumer) { named_barrier_arrive(turn_barrier(consumer), 256); }

/// Starts sums = A tile * B tile over `num_blocks` > 0 stages, rows from `row` on. One group of wgmma stays in flight: a stage is released
/// when the group after it has been issued, the last one, which is returned, by finish_blocks().
__device__ __forceinline__ RingPosition start_blocks(const Schedule& schedule, RingPosition& ring, int num_blocks, int row, int thread,
                                                     TileSums& sums) {
  RingPosition last = ring;
#pragma unroll 1
  for (int block = 0; block < num_blocks; ++block) {
    mbarrier_wait(ring.full(), ring.phase);
    const unsigned long long a = TileA::descriptor(ring.tile_a()) + static_cast<unsigned>(TileA::offset(row, 0));
    const unsigned long long b = TileB::descriptor(ring.tile_b());
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < Config::kKSteps; ++step) {
#pragma unroll
      for (int i = 0; i < Config::kMmaM; ++i) {
        multiply_tile(sums.tile[i], a + static_cast<unsigned>(TileA::offset(i * 64, step)),
                      b + static_cast<unsigned>(TileB::offset(0, step)), block == 0 && step == 0 ? 0 : 1, Config::ElementA{});
      }
    }
    wgmma_commit_group();
    wgmma_wait_group<1>();
    if (block != 0) {
      release_stage(schedule, last, thread);
    }
    last = ring;
    ring.advance();
  }
  return last;
}

__device__ __forceinline__ void finish_blocks(const Schedule& schedule, RingPosition last, int thread, TileSums& sums) {
  wgmma_wait_group<0>();
  release_stage(schedule, last, thread);
#pragma unroll
  for (int i = 0; i < Config::kMmaM; ++i) {
    pin_registers(sums.tile[i]);
  }
}
