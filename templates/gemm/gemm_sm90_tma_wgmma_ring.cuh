// Which tile when, and the ring of stages that carries its operands: part of gemm/gemm_sm90_tma_wgmma.cuh and of
// gemm/gemm_sm90_tma_wgmma_pair.cuh. SPDX-License-Identifier: Apache-2.0

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
