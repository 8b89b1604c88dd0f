// C[M,N] = A[M,K] * B[N,K]^T, bf16 in, f32 sums, bf16 out: TMA loads with multicast in a cluster of two along M, wgmma, a persistent loop
// over tiles, stmatrix and TMA stores. Written for the simulator's tests after the pipeline that ran exact on an H200; small tiles, plain
// code. Roles: warpgroup 0 produces (one elected lane), warpgroups 1 and 2 consume 64 rows each. Fixture of tests/simulator/kernels;
// compiled to gemm_tma_wgmma_sm90a.ptx by compile_fixtures.sh. SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>

#include <cstdint>

namespace {

constexpr int BLOCK_M = 128, BLOCK_N = 64, BLOCK_K = 64;
constexpr int kNumStages = 3, kClusterSize = 2, kNumConsumers = 2;
constexpr int kABytes = BLOCK_M * BLOCK_K * 2, kBBytes = BLOCK_N * BLOCK_K * 2;
constexpr int kBPartBytes = kBBytes / kClusterSize;  // each CTA loads its part of B for both

struct alignas(64) TensorMap {
  unsigned char bytes[128];
};

struct SharedStorage {  // 1024-byte aligned for the 128-byte swizzle
  unsigned char a[kNumStages][kABytes];
  unsigned char b[kNumStages][kBBytes];
  unsigned char c[kNumConsumers][64 * BLOCK_N * 2];
  alignas(8) uint64_t full[kNumStages];   // 1 arrival: the producing thread; plus the bytes of A and B
  alignas(8) uint64_t empty[kNumStages];  // 1 arrival of each consumer warpgroup of each CTA of the cluster
};

__device__ uint32_t shared_address(const void* pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }

__device__ uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ void mbarrier_init(uint64_t* barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
}

__device__ void mbarrier_wait(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

__device__ void mbarrier_expect(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
}

__device__ void mbarrier_arrive_remote(uint64_t* barrier, uint32_t rank) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(rank)
      : "memory");
}

__device__ void tma_load(const TensorMap* map, void* to, uint64_t* barrier, int c0, int c1) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                   shared_address(to)),
               "l"(map), "r"(c0), "r"(c1), "r"(shared_address(barrier))
               : "memory");
}

__device__ void tma_load_multicast(const TensorMap* map, void* to, uint64_t* barrier, int c0, int c1, uint16_t mask) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], "
      "%5;" ::"r"(shared_address(to)),
      "l"(map), "r"(c0), "r"(c1), "r"(shared_address(barrier)), "h"(mask)
      : "memory");
}

__device__ void tma_store(const TensorMap* map, const void* from, int c0, int c1) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(c0), "r"(c1),
               "r"(shared_address(from))
               : "memory");
}

__device__ void cluster_sync() { asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory"); }

__device__ uint64_t k_major_descriptor(const void* tile) {  // 128-byte swizzle, 8 rows are 1024 bytes
  return 1ull << 62 | 64ull << 32 | 1ull << 16 | (shared_address(tile) & 0x3ffff) >> 4;
}

__device__ void wgmma_m64n64k16(float (&d)[32], uint64_t a, uint64_t b, int accumulates) {
#define KW_X8(B) "+f"(d[B]), "+f"(d[B + 1]), "+f"(d[B + 2]), "+f"(d[B + 3]), "+f"(d[B + 4]), "+f"(d[B + 5]), "+f"(d[B + 6]), "+f"(d[B + 7])
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
      "%32, %33, p, 1, 1, 0, 0;\n"
      "}\n"
      : KW_X8(0), KW_X8(8), KW_X8(16), KW_X8(24)
      : "l"(a), "l"(b), "r"(accumulates));
}

/// Which tile a cluster works on in its turn; rows of the two CTAs follow each other.
struct TileScheduler {
  int num_m_pairs, num_tiles, step, index;
  __device__ bool has_next() const { return index < num_tiles; }
  __device__ int row(uint32_t rank) const { return (index % num_m_pairs * kClusterSize + static_cast<int>(rank)) * BLOCK_M; }
  __device__ int column() const { return index / num_m_pairs * BLOCK_N; }
};

__device__ void produce(SharedStorage& smem, TileScheduler tiles, const TensorMap* map_a, const TensorMap* map_b, int num_k_blocks) {
  const uint32_t rank = cluster_rank();
  int stage = 0;
  uint32_t phase = 0;
  for (; tiles.has_next(); tiles.index += tiles.step) {
    for (int k_block = 0; k_block < num_k_blocks; ++k_block) {
      mbarrier_wait(&smem.empty[stage], phase ^ 1);
      mbarrier_expect(&smem.full[stage], kABytes + kBBytes);
      tma_load(map_a, smem.a[stage], &smem.full[stage], k_block * BLOCK_K, tiles.row(rank));
      tma_load_multicast(map_b, smem.b[stage] + rank * kBPartBytes, &smem.full[stage], k_block * BLOCK_K,
                         tiles.column() + static_cast<int>(rank) * (BLOCK_N / kClusterSize), (1 << kClusterSize) - 1);
      if (++stage == kNumStages) stage = 0, phase ^= 1;
    }
  }
}

__device__ void store_tile(unsigned char* staging, const float (&d)[32], const TensorMap* map_c, int row, int column, int consumer) {
  const int thread = static_cast<int>(threadIdx.x) % 128, warp = thread / 32, lane = thread % 32;
  if (thread == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  // the last store has read the staging tile
  asm volatile("bar.sync %0, 128;" ::"r"(1 + consumer) : "memory");
  for (int block = 0; block < BLOCK_N / 16; ++block) {
    uint32_t packed[4];
    for (int pair = 0; pair < 4; ++pair) {
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed[pair]) : "f"(d[8 * block + 2 * pair + 1]), "f"(d[8 * block + 2 * pair]));
    }
    const int tile_row = 16 * warp + lane % 8 + 8 * (lane / 8 % 2), tile_column = 16 * block + 8 * (lane / 16);
    uint32_t address = shared_address(staging) + tile_row * 128 + tile_column * 2;
    address ^= (address >> 7 & 7) << 4;
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(packed[0]), "r"(packed[1]),
                 "r"(packed[2]), "r"(packed[3])
                 : "memory");
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("bar.sync %0, 128;" ::"r"(1 + consumer) : "memory");
  if (thread == 0) {
    tma_store(map_c, staging, column, row);
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  }
}

__device__ void consume(SharedStorage& smem, TileScheduler tiles, const TensorMap* map_c, int num_k_blocks, int consumer) {
  const uint32_t rank = cluster_rank();
  const int thread = static_cast<int>(threadIdx.x) % 128;
  int stage = 0;
  uint32_t phase = 0;
  for (; tiles.has_next(); tiles.index += tiles.step) {
    float d[32];
    int last_stage = stage;
#pragma unroll 1
    for (int k_block = 0; k_block < num_k_blocks; ++k_block) {
      mbarrier_wait(&smem.full[stage], phase);
      const uint64_t a = k_major_descriptor(smem.a[stage] + consumer * 64 * 128), b = k_major_descriptor(smem.b[stage]);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      for (int step = 0; step < BLOCK_K / 16; ++step) wgmma_m64n64k16(d, a + 2 * step, b + 2 * step, k_block != 0 || step != 0);
      asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" ::: "memory");
      if (k_block != 0 && thread < kClusterSize) mbarrier_arrive_remote(&smem.empty[last_stage], thread);
      last_stage = stage;
      if (++stage == kNumStages) stage = 0, phase ^= 1;
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (thread < kClusterSize) mbarrier_arrive_remote(&smem.empty[last_stage], thread);
    for (int index = 0; index < 32; ++index) asm volatile("" : "+f"(d[index])::"memory");
    store_tile(smem.c[consumer], d, map_c, tiles.row(rank) + 64 * consumer, tiles.column(), consumer);
  }
  if (thread == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

}  // namespace

extern "C" __global__ void __cluster_dims__(kClusterSize, 1, 1) __launch_bounds__(384, 1)
    gemm_tma_wgmma(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                   const __grid_constant__ TensorMap map_c, int m, int n, int k) {
  extern __shared__ __align__(1024) unsigned char dynamic_smem[];
  SharedStorage& smem = *reinterpret_cast<SharedStorage*>(dynamic_smem);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kNumStages; ++stage) {
      mbarrier_init(&smem.full[stage], 1);
      mbarrier_init(&smem.empty[stage], kNumConsumers * kClusterSize);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  cluster_sync();
  const int num_m_pairs = (m + BLOCK_M * kClusterSize - 1) / (BLOCK_M * kClusterSize), num_n = (n + BLOCK_N - 1) / BLOCK_N;
  const int num_k_blocks = (k + BLOCK_K - 1) / BLOCK_K;
  const TileScheduler tiles{num_m_pairs, num_m_pairs * num_n, static_cast<int>(gridDim.x) / kClusterSize,
                            static_cast<int>(blockIdx.x) / kClusterSize};
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  if (warpgroup == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x < 32) {
      uint32_t is_elected;
      asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.b32 %0, 1, 0, p;\n}\n" : "=r"(is_elected));
      if (is_elected != 0) produce(smem, tiles, &map_a, &map_b, num_k_blocks);
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    consume(smem, tiles, &map_c, num_k_blocks, warpgroup - 1);
  }
  cluster_sync();  // no peer may still arrive at barriers of a CTA that has left
}
