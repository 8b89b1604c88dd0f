// Contract: out[b, m, n] = epilogue(sum over k of A[b, m, k] * B[b, k, n]) on Hopper's tensor cores by wgmma, f32 sums. sm_90a only.
//   A [B, M, K] and B [B, K, N]: both f16 or both bf16. Each has one contiguous axis (k, or m and n): all four transpositions, any extents
//   with K >= 1; TMA asks for pointers and strides that are multiples of 16 bytes. Refuses: other types, strides that TMA cannot take
//   (gemm_sm80_mma serves both).
// Technique: warpgroup 0 produces: one thread of it starts TMA copies into a ring of STAGES smem buffers. The other warpgroups consume:
//   wgmma reads the buffers, the sums stay in registers. Barriers of the ring, for each stage:
//     full:   1 arrival (the producer, which announces the stage's bytes); the bytes of A's and B's tile, from whichever CTA copies them
//     empty:  1 arrival from each consumer warpgroup that reads the stage, of each CTA that this CTA's copies reach
//   Clusters: CTAs of one row share their tile of A, those of one column their tile of B; each copies its part to all of them (multicast).
//   Persistent: a cluster takes tile after tile; the producer runs ahead into the next tile while the consumers store the last one.
//   Ping-pong: the two consumers take whole tiles in turn, so that one multiplies while the other stores.
//   Split-K: parts of k are multiplied by different CTAs, which add up through gmem, or as one cluster through each other's smem.
//   Staged epilogue: results pass through smem, so that a warp stores whole lines of 128 bytes.
// Reading order: Config; gemm_sm90_tma_wgmma_rules.cuh (rules, launch, estimates); then schedule, ring, producer, mainloop; split-K in
// gemm_sm90_tma_wgmma_splits.cuh; the epilogue in gemm_sm90_tma_wgmma_store.cuh; consumer, kernel. SPDX-License-Identifier: Apache-2.0

#include "parts/annotations.cuh"
#include "parts/gemm_problem.cuh"
#include "parts/swizzled_tile.cuh"
#include "parts/tile_raster.cuh"
#include "parts/types.cuh"
#include "ptx/distributed_smem.cuh"
#include "ptx/global.cuh"
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
  BIND("unit_stride:B:n") static constexpr bool B_IS_N_CONTIGUOUS = false;  ///< read only when B is not contiguous along k
  BIND("is_same_dtype:A:B") static constexpr bool HAS_ONE_OPERAND_TYPE = true;
  BIND("is_float:A") static constexpr bool OPERANDS_ARE_FLOAT = true;
  BIND("is_float:accumulate") static constexpr bool SUMS_ARE_FLOAT = true;
  using Output BIND("dtype:out") = Half;  ///< of the first output
  BIND("num_outputs") static constexpr int NUM_OUTPUTS = 1;
  BIND("unit_stride:out:n") static constexpr bool OUTPUT_IS_N_CONTIGUOUS = true;
  BIND("is_float:out") static constexpr bool OUTPUT_IS_FLOAT = true;
  TUNE("m", 64, 128, 192, 256) static constexpr int BLOCK_M = 128;   ///< rows of a CTA's output tile
  TUNE("n", 64, 128, 192, 256) static constexpr int BLOCK_N = 128;   ///< columns of a CTA's output tile
  TUNE("k", 32, 64, 128) static constexpr int BLOCK_K = 64;          ///< elements of k in one stage
  TUNE("w", 1, 2, 3) static constexpr int CONSUMERS = 2;             ///< warpgroups that multiply
  TUNE("p", 0, 1) static constexpr bool IS_PINGPONG = false;         ///< consumers take tiles in turn instead of sharing each
  TUNE("cm", 1, 2, 4) static constexpr int CLUSTER_M = 1;            ///< CTAs of a cluster along m
  TUNE("cn", 1, 2) static constexpr int CLUSTER_N = 1;               ///< CTAs of a cluster along n
  TUNE("s", 2, 3, 4, 5, 6, 7, 8) static constexpr int STAGES = 4;    ///< smem buffers
  TUNE("sk", 1, 2, 4) static constexpr int SPLIT_K = 1;              ///< parts of k that are multiplied by different CTAs
  TUNE("d", 0, 1) static constexpr bool SPLITS_ARE_CLUSTER = false;  ///< they are one cluster and add up through smem; else through gmem
  TUNE("g", 1, 4, 8) static constexpr int GROUP_M = 8;               ///< raster of clusters: parts/tile_raster.cuh
  TUNE("z", 32, 64, 128) static constexpr int SWIZZLE_BYTES = 128;   ///< width of a panel: parts/swizzled_tile.cuh
  TUNE("e", 0, 1) static constexpr bool IS_STAGED = false;           ///< results go to gmem by way of smem

  static constexpr int kConsumersPerTile = IS_PINGPONG ? 1 : CONSUMERS;
  static constexpr int kThreads = 128 * (CONSUMERS + 1);
  static constexpr int kConsumerRows = BLOCK_M / kConsumersPerTile;
  static constexpr int kMmaM = kConsumerRows / 64;                                         ///< wgmma tiles of a consumer along m
  static constexpr int kSums = kMmaM * BLOCK_N / 2;                                        ///< f32 sums of a consumer's thread
  static constexpr int kOutputColumns = SPLITS_ARE_CLUSTER ? BLOCK_N / SPLIT_K : BLOCK_N;  ///< of its tile that a CTA stores
  static constexpr int kKSteps = BLOCK_K / 16;                                             ///< wgmma steps of a stage
  static constexpr int kClusterSize = SPLITS_ARE_CLUSTER ? SPLIT_K : CLUSTER_M * CLUSTER_N;
  static constexpr int kContiguousA = A_IS_K_CONTIGUOUS ? BLOCK_K : BLOCK_M;  ///< a tile's extent along its contiguous axis
  static constexpr int kContiguousB = B_IS_K_CONTIGUOUS ? BLOCK_K : BLOCK_N;
  static constexpr int kLinesA = A_IS_K_CONTIGUOUS ? BLOCK_M : BLOCK_K;  ///< and along the other one
  static constexpr int kLinesB = B_IS_K_CONTIGUOUS ? BLOCK_N : BLOCK_K;
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

#include "parts/epilogue_values.cuh"

// ---- The problem in tiles ---------------------------------------------------------------------------------------------------------

__host__ __device__ constexpr long long cluster_tiles_m(long long extent_m) {
  return (extent_m + Config::BLOCK_M * Config::CLUSTER_M - 1) / (Config::BLOCK_M * Config::CLUSTER_M);
}
__host__ __device__ constexpr long long cluster_tiles_n(long long extent_n) {
  return (extent_n + Config::BLOCK_N * Config::CLUSTER_N - 1) / (Config::BLOCK_N * Config::CLUSTER_N);
}
__host__ __device__ constexpr long long k_blocks(long long extent_k) { return (extent_k + Config::BLOCK_K - 1) / Config::BLOCK_K; }
__host__ __device__ constexpr long long k_blocks_per_split(long long extent_k) {
  return (k_blocks(extent_k) + Config::SPLIT_K - 1) / Config::SPLIT_K;
}

#include "gemm/gemm_sm90_tma_wgmma_rules.cuh"

// ---- Schedule: which tile when ------------------------------------------------------------------------------------------------------

/// One piece of work of a CTA: an output tile and a part of k.
struct WorkItem {
  int batch;
  int first_m;
  int first_n;
  int first_block;  ///< of k
  int num_blocks;
  int output_tile;  ///< counts the tiles of all CTAs of all clusters
  int split;
};

/// The items of one CTA, in order: every role walks through the same ones.
struct Schedule {
  int tiles_m;  ///< of clusters
  int tiles_n;
  int num_tiles;
  int num_blocks;
  int cta_m;  ///< this CTA's place in its cluster
  int cta_n;

  __device__ __forceinline__ explicit Schedule(const GemmProblem& problem)
      : tiles_m(static_cast<int>(cluster_tiles_m(problem.extent_m))),
        tiles_n(static_cast<int>(cluster_tiles_n(problem.extent_n))),
        num_tiles(static_cast<int>(tiles_m * tiles_n * problem.extent_b)),
        num_blocks(static_cast<int>(k_blocks(problem.extent_k))),
        cta_m(Config::SPLITS_ARE_CLUSTER ? 0 : static_cast<int>(blockIdx.x) % Config::kClusterSize / Config::CLUSTER_N),
        cta_n(Config::SPLITS_ARE_CLUSTER ? 0 : static_cast<int>(blockIdx.x) % Config::CLUSTER_N) {}

  __device__ __forceinline__ int first() const { return static_cast<int>(blockIdx.x) / Config::kClusterSize; }
  __device__ __forceinline__ int step() const { return static_cast<int>(gridDim.x) / Config::kClusterSize; }
  __device__ __forceinline__ int end() const { return Config::SPLITS_ARE_CLUSTER ? num_tiles : num_tiles * Config::SPLIT_K; }

  __device__ __forceinline__ WorkItem item(int index) const {
    const int tile_index = index % num_tiles;
    const TileCoordinate tile =
        locate_tile(static_cast<unsigned>(tile_index), static_cast<unsigned>(tiles_m), static_cast<unsigned>(tiles_n), Config::GROUP_M);
    WorkItem item;
    item.batch = tile.batch;
    item.first_m = (tile.tile_m * Config::CLUSTER_M + cta_m) * Config::BLOCK_M;
    item.first_n = (tile.tile_n * Config::CLUSTER_N + cta_n) * Config::BLOCK_N;
    item.output_tile = (tile_index * Config::CLUSTER_M + cta_m) * Config::CLUSTER_N + cta_n;
    item.split = Config::SPLITS_ARE_CLUSTER ? static_cast<int>(blockIdx.x) % Config::SPLIT_K : index / num_tiles;
    const int per_split = (num_blocks + Config::SPLIT_K - 1) / Config::SPLIT_K;
    item.first_block = item.split * per_split;
    item.num_blocks = num_blocks - item.first_block < per_split ? num_blocks - item.first_block : per_split;
    return item;
  }
};

// ---- The ring of stages ---------------------------------------------------------------------------------------------------------

using TileA = SwizzledTile<Config::kContiguousA, Config::kLinesA, Config::SWIZZLE_BYTES, Config::A_IS_K_CONTIGUOUS>;
using TileB = SwizzledTile<Config::kContiguousB, Config::kLinesB, Config::SWIZZLE_BYTES, Config::B_IS_K_CONTIGUOUS>;

/// Where a role stands in the ring. A stage holds the tile of A, then the tile of B; behind the stages lie the results on their way out,
/// then `full` and `empty` of each stage.
struct RingPosition {
  unsigned smem;
  int stage;
  unsigned phase;

  __device__ __forceinline__ unsigned tile_a() const { return smem + stage * Config::kStageBytes; }
  __device__ __forceinline__ unsigned tile_b() const { return tile_a() + Config::kTileBytesA; }
  __device__ __forceinline__ unsigned results() const { return smem + Config::STAGES * Config::kStageBytes; }
  __device__ __forceinline__ unsigned full() const { return results() + Config::kAllResultBytes + stage * 16; }
  __device__ __forceinline__ unsigned empty() const { return full() + 8; }
  __device__ __forceinline__ void advance() {
    ++stage;
    if (stage == Config::STAGES) {
      stage = 0;
      phase ^= 1u;
    }
  }
  __device__ __forceinline__ void advance_by(int count) {
    const int sum = stage + count;
    stage = sum % Config::STAGES;
    phase ^= static_cast<unsigned>(sum / Config::STAGES) & 1u;
  }
};

/// By one thread, before any role begins.
__device__ __forceinline__ void init_barriers(RingPosition ring) {
#pragma unroll 1
  for (int stage = 0; stage < Config::STAGES; ++stage) {
    mbarrier_init(ring.full(), 1);
    mbarrier_init(ring.empty(), Config::kEmptyArrivals);
    ring.advance();
  }
  fence_mbarrier_init();
}

// ---- Producer -------------------------------------------------------------------------------------------------------------------

/// By one thread: fills stage after stage, for all items.
__device__ __forceinline__ void produce(const Schedule& schedule, const TensorMap& map_a, const TensorMap& map_b, RingPosition ring) {
  // CTA (m, n) of the cluster has rank m * CLUSTER_N + n.
  const unsigned short row_mask = static_cast<unsigned short>(((1 << Config::CLUSTER_N) - 1) << schedule.cta_m * Config::CLUSTER_N);
  constexpr int kFirstColumn = Config::CLUSTER_M == 1 ? 1 : Config::CLUSTER_M == 2 ? 1 + (1 << Config::CLUSTER_N) : 15;
  const unsigned short column_mask = static_cast<unsigned short>(kFirstColumn << schedule.cta_n);
#pragma unroll 1
  for (int index = schedule.first(); index < schedule.end(); index += schedule.step()) {
    const WorkItem item = schedule.item(index);
#pragma unroll 1
    for (int block = item.first_block; block < item.first_block + item.num_blocks; ++block) {
      mbarrier_wait(ring.empty(), ring.phase ^ 1u);
      mbarrier_arrive_expect_tx(ring.full(), Config::kStageBytes);
      const int k = block * Config::BLOCK_K;
      TileA::start_copy<Config::CLUSTER_N>(ring.tile_a(), map_a, ring.full(), Config::A_IS_K_CONTIGUOUS ? k : item.first_m,
                                           Config::A_IS_K_CONTIGUOUS ? item.first_m : k, item.batch, schedule.cta_n, row_mask);
      TileB::start_copy<Config::CLUSTER_M>(ring.tile_b(), map_b, ring.full(), Config::B_IS_K_CONTIGUOUS ? k : item.first_n,
                                           Config::B_IS_K_CONTIGUOUS ? item.first_n : k, item.batch, schedule.cta_m, column_mask);
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

#include "gemm/gemm_sm90_tma_wgmma_splits.cuh"
#include "gemm/gemm_sm90_tma_wgmma_store.cuh"

// ---- Consumer -------------------------------------------------------------------------------------------------------------------

/// By a whole warpgroup, `consumer` = 0 .. CONSUMERS - 1.
__device__ __forceinline__ void consume(const Schedule& schedule, const GemmProblem& problem, const EpilogueArgs& epilogue,
                                        float* partial_sums, unsigned* tile_counters, RingPosition ring, int consumer) {
  const int thread = static_cast<int>(threadIdx.x) % 128;
  const int part = Config::IS_PINGPONG ? 0 : consumer;  // of the tile
  const int row = part * Config::kConsumerRows;
  const unsigned results = ring.results() + static_cast<unsigned>(threadIdx.x / 32 - 4) * Config::kResultBytes;
  const bool is_aligned = epilogue_is_aligned<8>(epilogue);
  int turn = 0;  // which consumer takes the item
  if constexpr (Config::IS_PINGPONG) {
    if (consumer == 1) {
      give_turn_to(0);
    }
  }
#pragma unroll 1
  for (int index = schedule.first(); index < schedule.end(); index += schedule.step()) {
    WorkItem item = schedule.item(index);
    if constexpr (Config::IS_PINGPONG) {
      const bool is_others = turn != consumer;
      turn ^= 1;
      if (is_others) {
        ring.advance_by(item.num_blocks);
        continue;
      }
      wait_for_turn(consumer);
    }
    TileSums sums;
    const RingPosition last = start_blocks(schedule, ring, item.num_blocks, row, thread, sums);
    if constexpr (Config::IS_PINGPONG) {
      if (index + schedule.step() < schedule.end()) {
        give_turn_to(1 - consumer);
      }
    }
    PartReads reads = {};
    const bool is_whole = is_whole_tile(problem, item, is_aligned);
    if constexpr (Config::IS_STAGED && Config::SPLIT_K == 1) {
      if (is_whole) {
        // While the last products are still being made.
        read_part(epilogue, item, part_at<Config::BLOCK_N>(item, row, thread, 0), read_lane(), reads);
      }
    }
    finish_blocks(schedule, last, thread, sums);
    if constexpr (Config::SPLITS_ARE_CLUSTER) {
      Sums<Config::kOutputColumns> share;
      add_splits_of_cluster(item, ring.smem, sums, share);
      item.first_n += item.split * Config::kOutputColumns;
      store_tile<Config::kOutputColumns>(share, epilogue, problem, item, row, thread, is_whole_tile(problem, item, is_aligned), reads,
                                         results);
    } else {
      if constexpr (Config::SPLIT_K > 1) {
        if (!add_splits(item, part, thread, sums, partial_sums, tile_counters)) {
          continue;
        }
      }
      store_tile<Config::BLOCK_N>(sums, epilogue, problem, item, row, thread, is_whole, reads, results);
    }
  }
}

// ---- Kernel -----------------------------------------------------------------------------------------------------------------------

COMPUTES("out[b,m,n] = epilogue(sum[k](A[b,m,k] * B[b,k,n]))")
REQUIRES_ARCH("sm_90a")
extern "C" __global__ void __launch_bounds__(Config::kThreads, 1)
    gemm_sm90_tma_wgmma(const __grid_constant__ TensorMap A_map, const __grid_constant__ TensorMap B_map, GemmProblem problem,
                        EpilogueArgs epilogue, float* partial_sums, unsigned* tile_counters) {
  alignas(1024) extern __shared__ unsigned char smem[];
  const RingPosition ring = {shared_address(smem), 0, 0u};
  if (threadIdx.x == 0) {
    prefetch_tensor_map(A_map);
    prefetch_tensor_map(B_map);
    init_barriers(ring);
  }
  if constexpr (Config::kClusterSize == 1) {
    __syncthreads();
  } else {
    cluster_sync();  // a peer may copy into this CTA's stages from here on
  }

  const Schedule schedule(problem);
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  if (warpgroup == 0) {
    setmaxnreg_dec<Config::kProducerRegisters>();
    if (threadIdx.x < 32 && elect_one()) {
      produce(schedule, A_map, B_map, ring);
    }
    if constexpr (Config::SPLITS_ARE_CLUSTER) {
      cluster_sync();  // the two of add_splits_of_cluster()
      cluster_sync();
    }
  } else {
    setmaxnreg_inc<Config::kConsumerRegisters>();
    consume(schedule, problem, epilogue, partial_sums, tile_counters, ring, warpgroup - 1);
  }
}
