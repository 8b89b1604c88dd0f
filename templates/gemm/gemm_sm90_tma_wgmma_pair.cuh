// Contract: out[b, m, n] = epilogue(sum over k of A[b, m, k] * B[b, k, n], sum over k of A[b, m, k] * B2[b, k, n]) on Hopper's tensor
// cores:
//   two products with one left operand, as a gated linear unit has, in one pass over A. sm_90a only.
//   A [B, M, K], B and B2 [B, K, N]: all f16 or all bf16. A has one contiguous axis (k or m), B and B2 have the same one (k or n); any
//   extents with K >= 1; TMA asks for pointers and strides that are multiples of 16 bytes. Refuses: other types and layouts.
// Technique: gemm_sm90_tma_wgmma with tiles of B whose columns come half from B and half from B2. One wgmma multiplies both halves, and a
//   thread's sums of column n of B and of B2 lie BLOCK_N / 4 registers apart: the epilogue needs no exchange. In what follows a tile's
//   columns are those of both: BLOCK_N of them make BLOCK_N / 2 columns of the output, and WorkItem::first_n counts them so.
// Reading order: gemm_sm90_tma_wgmma first; then Config, producer and kernel here, gemm_sm90_tma_wgmma_pair_rules.cuh and _pair_store.cuh.
// SPDX-License-Identifier: Apache-2.0

#include "parts/annotations.cuh"
#include "parts/gemm_problem.cuh"
#include "parts/swizzled_tile.cuh"
#include "parts/tile_raster.cuh"
#include "parts/types.cuh"
#include "ptx/distributed_smem.cuh"
#include "ptx/global.cuh"
#include "ptx/grid_dependency.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/shared.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/tma.cuh"
#include "ptx/warp_roles.cuh"
#include "ptx/wgmma.cuh"

// ---- Config -----------------------------------------------------------------------------------------------------------------

struct Config {
  using ElementA BIND("dtype:A") = Half;
  using ElementB BIND("dtype:B") = Half;
  using Accumulator BIND("dtype:accumulate") = float;
  BIND("unit_stride:A:k") static constexpr bool A_IS_K_CONTIGUOUS = true;
  BIND("unit_stride:A:m") static constexpr bool A_IS_M_CONTIGUOUS = false;  ///< read only when A is not contiguous along k
  BIND("unit_stride:B:k") static constexpr bool B_IS_K_CONTIGUOUS = true;
  BIND("unit_stride:B:n") static constexpr bool B_IS_N_CONTIGUOUS = false;   ///< read only when B is not contiguous along k
  BIND("unit_stride:B2:k") static constexpr bool B2_IS_K_CONTIGUOUS = true;  ///< the same of B2
  BIND("unit_stride:B2:n") static constexpr bool B2_IS_N_CONTIGUOUS = false;
  BIND("is_same_dtype:A:B") static constexpr bool HAS_ONE_OPERAND_TYPE = true;
  BIND("is_same_dtype:A:B2") static constexpr bool HAS_ONE_PAIR_TYPE = true;
  BIND("is_float:A") static constexpr bool OPERANDS_ARE_FLOAT = true;
  BIND("is_float:accumulate") static constexpr bool SUMS_ARE_FLOAT = true;
  using Output BIND("dtype:out") = Half;  ///< of the first output
  BIND("num_outputs") static constexpr int NUM_OUTPUTS = 1;
  BIND("unit_stride:out:n") static constexpr bool OUTPUT_IS_N_CONTIGUOUS = true;
  BIND("is_float:out") static constexpr bool OUTPUT_IS_FLOAT = true;
  BIND("is_dependent") static constexpr bool IS_DEPENDENT = false;  ///< begins while the kernel before it in a plan runs
  BIND("is_followed") static constexpr bool IS_FOLLOWED = false;    ///< the kernel after it in a plan may begin while it runs
  TUNE("m", 64, 128, 192, 256) static constexpr int BLOCK_M = 128;  ///< rows of a CTA's output tile
  TUNE("n", 128, 192, 256) static constexpr int BLOCK_N = 256;      ///< columns of both products in a CTA's tile
  TUNE("k", 32, 64, 128) static constexpr int BLOCK_K = 64;         ///< elements of k in one stage
  TUNE("w", 1, 2, 3) static constexpr int CONSUMERS = 2;            ///< warpgroups that multiply
  TUNE("p", 0, 1) static constexpr bool IS_PINGPONG = false;        ///< consumers take tiles in turn instead of sharing each
  TUNE("cm", 1, 2, 4) static constexpr int CLUSTER_M = 1;           ///< CTAs of a cluster along m
  TUNE("cn", 1, 2) static constexpr int CLUSTER_N = 1;              ///< CTAs of a cluster along n
  TUNE("s", 2, 3, 4, 5, 6, 7, 8) static constexpr int STAGES = 4;   ///< smem buffers
  TUNE("sk", 1, 2, 4) static constexpr int SPLIT_K = 1;             ///< parts of k that are multiplied by different CTAs
  TUNE("g", 1, 4, 8) static constexpr int GROUP_M = 8;              ///< raster of clusters: parts/tile_raster.cuh
  TUNE("z", 32, 64, 128) static constexpr int SWIZZLE_BYTES = 128;  ///< width of a panel: parts/swizzled_tile.cuh
  TUNE("e", 0, 1) static constexpr bool IS_STAGED = false;          ///< results go to gmem by way of smem

  static constexpr bool IS_PAIR = true;  ///< tiles of B hold the columns of two products
  static constexpr bool SPLITS_ARE_CLUSTER = false;
  static constexpr int kConsumersPerTile = IS_PINGPONG ? 1 : CONSUMERS;
  static constexpr int kThreads = 128 * (CONSUMERS + 1);
  static constexpr int kConsumerRows = BLOCK_M / kConsumersPerTile;
  static constexpr int kMmaM = kConsumerRows / 64;    ///< wgmma tiles of a consumer along m
  static constexpr int kSums = kMmaM * BLOCK_N / 2;   ///< f32 sums of a consumer's thread
  static constexpr int kOutputColumns = BLOCK_N / 2;  ///< columns of a tile's outputs
  static constexpr int kKSteps = BLOCK_K / 16;        ///< wgmma steps of a stage
  static constexpr int kClusterSize = CLUSTER_M * CLUSTER_N;
  static constexpr int kContiguousA = A_IS_K_CONTIGUOUS ? BLOCK_K : BLOCK_M;  ///< a tile's extent along its contiguous axis
  static constexpr int kContiguousB = B_IS_K_CONTIGUOUS ? BLOCK_K : BLOCK_N;
  static constexpr int kLinesA = A_IS_K_CONTIGUOUS ? BLOCK_M : BLOCK_K;  ///< and along the other one
  static constexpr int kLinesB = B_IS_K_CONTIGUOUS ? BLOCK_N : BLOCK_K;
  static constexpr int kBoxLinesB =
      (B_IS_K_CONTIGUOUS ? BLOCK_N / 2 : BLOCK_K) / CLUSTER_M;  ///< lines of B, or of B2, that one copy brings
  static constexpr int kTileColumns = kOutputColumns;
  static constexpr int kTileBytesA = BLOCK_M * BLOCK_K * 2;
  static constexpr int kTileBytesB = BLOCK_N * BLOCK_K * 2;
  static constexpr int kStageBytes = kTileBytesA + kTileBytesB;
  /// Results of a warp on their way out: 16 rows of 64 elements of 16 bits.
  static constexpr int kResultBytes = 2048;
  static constexpr int kAllResultBytes = IS_STAGED ? CONSUMERS * 4 * kResultBytes : 0;
  /// setmaxnreg, multiples of 8: 65536 registers an SM are shared so that the producer's addresses fit too.
  static constexpr int kConsumerRegisters = CONSUMERS == 1 ? 240 : CONSUMERS == 2 ? (kSums <= 128 ? 216 : 232) : (kSums <= 96 ? 152 : 160);
  static constexpr int kProducerRegisters = CONSUMERS == 1 ? 72 : CONSUMERS == 2 ? (kSums <= 128 ? 72 : 40) : (kSums <= 96 ? 56 : 32);
  /// Arrivals at `empty`: consumers of one stage, times the CTAs that share the stage's row or column of the cluster.
  static constexpr int kPeers = CLUSTER_M + CLUSTER_N - 1;
  static constexpr int kEmptyArrivals = kConsumersPerTile * kPeers;
};

#include "parts/epilogue_pair.cuh"

// ---- The problem in tiles ---------------------------------------------------------------------------------------------------------

__host__ __device__ constexpr long long cluster_tiles_m(long long extent_m) {
  return (extent_m + Config::BLOCK_M * Config::CLUSTER_M - 1) / (Config::BLOCK_M * Config::CLUSTER_M);
}
__host__ __device__ constexpr long long cluster_tiles_n(long long extent_n) {
  return (extent_n + Config::kOutputColumns * Config::CLUSTER_N - 1) / (Config::kOutputColumns * Config::CLUSTER_N);
}
__host__ __device__ constexpr long long k_blocks(long long extent_k) { return (extent_k + Config::BLOCK_K - 1) / Config::BLOCK_K; }
__host__ __device__ constexpr long long k_blocks_per_split(long long extent_k) {
  return (k_blocks(extent_k) + Config::SPLIT_K - 1) / Config::SPLIT_K;
}

#include "gemm/gemm_sm90_tma_wgmma_rules.cuh"

#include "gemm/gemm_sm90_tma_wgmma_pair_rules.cuh"

#include "gemm/gemm_sm90_tma_wgmma_ring.cuh"

// ---- Producer -------------------------------------------------------------------------------------------------------------------

/// By one thread: fills stage after stage, for all items.
__device__ __forceinline__ void produce(const Schedule& schedule, const TensorMap& map_a, const TensorMap& map_b, const TensorMap& map_b2,
                                        RingPosition ring) {
  // CTA (m, n) of the cluster has rank m * CLUSTER_N + n.
  const unsigned short row_mask = static_cast<unsigned short>(((1 << Config::CLUSTER_N) - 1) << schedule.cta_m * Config::CLUSTER_N);
  constexpr int kFirstColumn = Config::CLUSTER_M == 1 ? 1 : Config::CLUSTER_M == 2 ? 1 + (1 << Config::CLUSTER_N) : 15;
  const unsigned short column_mask = static_cast<unsigned short>(kFirstColumn << schedule.cta_n);
#pragma unroll 1
  for (int index = schedule.first(); index < schedule.end(); index += schedule.step()) {
    const WorkItem item = schedule.item(index);
    const int n = item.first_n / 2;
#pragma unroll 1
    for (int block = item.first_block; block < item.first_block + item.num_blocks; ++block) {
      mbarrier_wait(ring.empty(), ring.phase ^ 1u);
      mbarrier_arrive_expect_tx(ring.full(), Config::kStageBytes);
      const int k = block * Config::BLOCK_K;
      TileA::start_copy<Config::CLUSTER_N>(ring.tile_a(), map_a, ring.full(), Config::A_IS_K_CONTIGUOUS ? k : item.first_m,
                                           Config::A_IS_K_CONTIGUOUS ? item.first_m : k, item.batch, schedule.cta_n, row_mask);
      TileB::start_copy_of_pair<Config::CLUSTER_M>(ring.tile_b(), map_b, map_b2, ring.full(), Config::B_IS_K_CONTIGUOUS ? k : n,
                                                   Config::B_IS_K_CONTIGUOUS ? n : k, item.batch, schedule.cta_m, column_mask);
      ring.advance();
    }
  }
  if constexpr (Config::kPeers > 1) {
    // A CTA may leave when no peer will arrive at its barriers any more.
#pragma unroll 1
    for (int stage = 0; stage < Config::STAGES; ++stage) {
      mbarrier_wait(ring.empty(), ring.phase ^ 1u);
      ring.advance();
    }
  }
}

#include "gemm/gemm_sm90_tma_wgmma_mainloop.cuh"

#include "gemm/gemm_sm90_tma_wgmma_splits.cuh"

#include "gemm/gemm_sm90_tma_wgmma_pair_store.cuh"

#include "gemm/gemm_sm90_tma_wgmma_consumer.cuh"

// ---- Kernel -----------------------------------------------------------------------------------------------------------------------

COMPUTES("out[b,m,n] = epilogue(sum[k](A[b,m,k] * B[b,k,n]), sum[k](A[b,m,k] * B2[b,k,n]))")
REQUIRES_ARCH("sm_90a")
extern "C" __global__ void __launch_bounds__(Config::kThreads, 1)
    gemm_sm90_tma_wgmma_pair(const __grid_constant__ TensorMap A_map, const __grid_constant__ TensorMap B_map,
                             const __grid_constant__ TensorMap B2_map, GemmProblem problem, EpilogueArgs epilogue, float* partial_sums,
                             unsigned* tile_counters) {
  alignas(1024) extern __shared__ unsigned char smem[];
  const RingPosition ring = {shared_address(smem), 0, 0u};
  if (threadIdx.x == 0) {
    prefetch_tensor_map(A_map);
    prefetch_tensor_map(B_map);
    prefetch_tensor_map(B2_map);
    init_barriers(ring);
  }
  if constexpr (Config::kClusterSize == 1) {
    __syncthreads();
  } else {
    cluster_sync();  // a peer may copy into this CTA's stages from here on
  }

  if constexpr (Config::IS_FOLLOWED) {
    let_next_grid_begin();
  }
  if constexpr (Config::IS_DEPENDENT) {
    wait_for_grid_before();
  }

  const Schedule schedule(problem);
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  if (warpgroup == 0) {
    setmaxnreg_dec<Config::kProducerRegisters>();
    if (threadIdx.x < 32 && elect_one()) {
      produce(schedule, A_map, B_map, B2_map, ring);
    }
  } else {
    setmaxnreg_inc<Config::kConsumerRegisters>();
    consume(schedule, problem, epilogue, partial_sums, tile_counters, ring, warpgroup - 1);
  }
}
