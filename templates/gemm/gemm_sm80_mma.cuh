// Contract: out[b, m, n] = epilogue(sum over k of A[b, m, k] * B[b, k, n]) on the tensor cores by mma.sync, f32 sums. sm_80 and up.
//   A [B, M, K] and B [B, K, N]: both f16, both bf16, or both f32 when the op allows tf32. Each has one contiguous axis (k, or m and n);
//   all four transpositions, any extents (tails are filled with zeros; K = 0 gives epilogue(0)), any leading dimension: an odd one
//   needs A_VEC_BYTES or B_VEC_BYTES down to one element. Refuses: other types, operands with no contiguous axis (gemm_simt serves them).
// Technique: STAGES smem buffers filled by cp.async ahead of use; XOR-swizzled tiles read by ldmatrix without bank conflicts;
//   fragments of the next k step are loaded while this one is multiplied; split-K adds up f32 partial sums in a fixed order.
// Reading order: Config; gemm_sm80_mma_rules.cuh (rules, launch, estimates); then copy (gmem -> smem), fragments (smem -> registers),
// mainloop, split-K, epilogue, kernel. SPDX-License-Identifier: Apache-2.0

#include "parts/annotations.cuh"
#include "parts/gemm_problem.cuh"
#include "parts/swizzle.cuh"
#include "parts/tile_copy.cuh"
#include "parts/tile_raster.cuh"
#include "parts/types.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/global.cuh"
#include "ptx/grid_dependency.cuh"
#include "ptx/ldmatrix.cuh"
#include "ptx/mma.cuh"
#include "ptx/shared.cuh"

// ---- Config -----------------------------------------------------------------------------------------------------------------

struct Config {
  using ElementA BIND("dtype:A") = Half;
  using ElementB BIND("dtype:B") = Half;
  using Accumulator BIND("dtype:accumulate") = float;
  BIND("unit_stride:A:k") static constexpr bool A_IS_K_CONTIGUOUS = true;
  BIND("unit_stride:A:m") static constexpr bool A_IS_M_CONTIGUOUS = false;  ///< read only when A is not contiguous along k
  BIND("unit_stride:B:k") static constexpr bool B_IS_K_CONTIGUOUS = true;
  BIND("unit_stride:B:n") static constexpr bool B_IS_N_CONTIGUOUS = false;  ///< read only when B is not contiguous along k
  BIND("uses_tf32") static constexpr bool USES_TF32 = false;                ///< f32 operands may be rounded to tf32
  BIND("is_same_dtype:A:B") static constexpr bool HAS_ONE_OPERAND_TYPE = true;
  BIND("is_float:A") static constexpr bool OPERANDS_ARE_FLOAT = true;
  BIND("is_float:accumulate") static constexpr bool SUMS_ARE_FLOAT = true;
  BIND("is_dependent") static constexpr bool IS_DEPENDENT = false;     ///< begins while the kernel before it in a plan runs
  BIND("is_followed") static constexpr bool IS_FOLLOWED = false;       ///< the kernel after it in a plan may begin while it runs
  TUNE("m", 16, 32, 64, 128, 256) static constexpr int BLOCK_M = 128;  ///< rows of a CTA's output tile
  TUNE("n", 64, 128, 256) static constexpr int BLOCK_N = 128;          ///< columns of a CTA's output tile
  TUNE("k", 32, 64) static constexpr int BLOCK_K = 32;                 ///< elements of k in one stage
  TUNE("wm", 1, 2, 4) static constexpr int WARPS_M = 2;                ///< warps along m
  TUNE("wn", 1, 2, 4) static constexpr int WARPS_N = 2;                ///< warps along n
  TUNE("c", 1, 2) static constexpr int MIN_CTAS_PER_SM = 1;            ///< registers are limited so that so many CTAs fit an SM
  TUNE("s", 2, 3, 4, 5, 6) static constexpr int STAGES = 4;            ///< smem buffers
  TUNE("sk", 1, 2, 4, 8) static constexpr int SPLIT_K = 1;             ///< CTAs that share one output tile, each a part of k
  TUNE("g", 1, 8) static constexpr int GROUP_M = 8;                    ///< raster: parts/tile_raster.cuh
  TUNE("va", 2, 4, 8, 16) static constexpr int A_VEC_BYTES = 16;       ///< bytes of A that one copy moves
  TUNE("vb", 2, 4, 8, 16) static constexpr int B_VEC_BYTES = 16;       ///< bytes of B that one copy moves
  TUNE("e", 0, 1) static constexpr bool STAGED_EPILOGUE = true;        ///< sums go through smem to reach the epilogue 8 in a row

  static constexpr int kThreads = WARPS_M * WARPS_N * 32;
  static constexpr int kWarpM = BLOCK_M / WARPS_M;  ///< rows of a warp's part of the tile
  static constexpr int kWarpN = BLOCK_N / WARPS_N;
  static constexpr int kMmaM = kWarpM / 16;  ///< mma.sync tiles of a warp along m
  static constexpr int kMmaN = kWarpN / 8;
  static constexpr int kSums = kMmaM * kMmaN * 4;  ///< f32 sums of a thread
  static constexpr int kElementBytes = sizeof(ElementA);
  static constexpr int kKSteps = BLOCK_K * kElementBytes / 32;  ///< mma.sync steps of a stage: 32 bytes of k each, whatever the type
  static constexpr int kTileBytesA = BLOCK_M * BLOCK_K * kElementBytes;
  static constexpr int kTileBytesB = BLOCK_N * BLOCK_K * kElementBytes;
  static constexpr int kLineBytesA =
      (A_IS_K_CONTIGUOUS ? BLOCK_K : BLOCK_M) * kElementBytes;  ///< a tile's extent along its contiguous axis
  static constexpr int kLineBytesB = (B_IS_K_CONTIGUOUS ? BLOCK_K : BLOCK_N) * kElementBytes;
  static constexpr int kStageBytes = kTileBytesA + kTileBytesB;
  static constexpr int kStagingPitch = kWarpN + 8;  ///< f32 from row to row; 8 more than a multiple of 16: no bank conflicts
  static constexpr int kStagingBytesPerWarp = 16 * kStagingPitch * 4;     ///< 16 rows of a warp's part at a time
  static constexpr int kVectorsA = kTileBytesA / A_VEC_BYTES / kThreads;  ///< copies of one thread a stage
  static constexpr int kVectorsB = kTileBytesB / B_VEC_BYTES / kThreads;
};

#include "parts/epilogue.cuh"

#include "gemm/gemm_sm80_mma_rules.cuh"

// ---- Copy: gmem -> smem ---------------------------------------------------------------------------------------------------------

/// A tile in smem is stored as it lies in gmem: lines along the contiguous axis, one after another, each line's 16-byte chunks
/// swizzled (parts/swizzle.cuh). A stage holds the tile of A, then the tile of B.
using CopyA = TileCopy<Config::kThreads, Config::A_IS_K_CONTIGUOUS ? Config::BLOCK_M : Config::BLOCK_K, Config::kLineBytesA,
                       Config::kElementBytes, Config::A_VEC_BYTES, Config::A_IS_K_CONTIGUOUS>;
using CopyB = TileCopy<Config::kThreads, Config::B_IS_K_CONTIGUOUS ? Config::BLOCK_N : Config::BLOCK_K, Config::kLineBytesB,
                       Config::kElementBytes, Config::B_VEC_BYTES, Config::B_IS_K_CONTIGUOUS>;

// ---- Fragments: smem -> registers -------------------------------------------------------------------------------------------------

/// Operands of one k step (32 bytes of k) of a warp, in mma.sync's layout: ptx/mma.cuh.
struct Fragments {
  unsigned a[Config::kMmaM][4];
  unsigned b[Config::kMmaN][2];
};

/// Rounds f32 bits to tf32; 16-bit pairs pass as they are.
__device__ __forceinline__ unsigned round_operand(unsigned bits) {
  if constexpr (Config::USES_TF32) {
    return cvt_rna_tf32_f32(bits);
  } else {
    return bits;
  }
}

/// Where a lane reads in a tile. parts/swizzle.cuh says why this is enough for all its reads.
struct LaneAddress {
  int line;    ///< offset of the line's start
  int column;  ///< masked
};

/// Offset of the byte `columns` further along the line, a constant. The mask reaches 128 bytes; beyond, columns are simply added, so
/// that at most 8 masked columns are ever kept.
__device__ __forceinline__ int lane_offset(LaneAddress address, int columns) {
  return address.line + (address.column ^ columns % 128) + columns / 128 * 128;
}

/// For the warp whose rows start at `row` of A's tile.
__device__ __forceinline__ LaneAddress lane_address_a(int row) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (Config::A_IS_K_CONTIGUOUS) {
    // ldmatrix, matrices 0..3: rows 0-7 and 8-15 of the first 16 bytes of k, then of the second.
    return LaneAddress{(row + lane % 16) * Config::kLineBytesA, lane / 16 * 16 ^ CopyA::mask(lane % 16)};
  } else if constexpr (Config::kElementBytes == 2) {
    // Lines run along m: the same four matrices lie transposed.
    const int line = lane % 8 + lane / 16 * 8;
    return LaneAddress{line * Config::kLineBytesA, (row * 2 + lane / 8 % 2 * 16) ^ CopyA::mask(line)};
  } else {
    // ldmatrix transposes 16-bit elements only: f32 elements are loaded one by one, k = lane % 4, m = lane / 4.
    return LaneAddress{lane % 4 * Config::kLineBytesA, (row + lane / 4) * 4 ^ CopyA::mask(lane % 4)};
  }
}

/// For the warp whose columns start at `column` of B's tile.
__device__ __forceinline__ LaneAddress lane_address_b(int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (Config::B_IS_K_CONTIGUOUS) {
    // ldmatrix, matrices 0..3: both halves of k of columns 0-7, then of columns 8-15.
    const int line = lane % 8 + lane / 16 * 8;
    return LaneAddress{(column + line) * Config::kLineBytesB, lane / 8 % 2 * 16 ^ CopyB::mask(line)};
  } else if constexpr (Config::kElementBytes == 2) {
    return LaneAddress{lane % 16 * Config::kLineBytesB, (column * 2 + lane / 16 * 16) ^ CopyB::mask(lane % 16)};
  } else {
    return LaneAddress{lane % 4 * Config::kLineBytesB, (column + lane / 4) * 4 ^ CopyB::mask(lane % 4)};
  }
}

/// A's fragments of k step `step` from the tile at smem address `tile`.
__device__ __forceinline__ void load_fragments_a(unsigned tile, LaneAddress address, int step, Fragments& fragments) {
#pragma unroll
  for (int i = 0; i < Config::kMmaM; ++i) {
    unsigned(&a)[4] = fragments.a[i];
    if constexpr (Config::A_IS_K_CONTIGUOUS) {
      ldmatrix_x4(tile + lane_offset(address, step * 32) + i * (16 * Config::kLineBytesA), a[0], a[1], a[2], a[3]);
    } else if constexpr (Config::kElementBytes == 2) {
      ldmatrix_x4_trans(tile + lane_offset(address, i * 32) + step * (16 * Config::kLineBytesA), a[0], a[1], a[2], a[3]);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        a[j] = ld_shared_b32(tile + lane_offset(address, i * 64 + j % 2 * 32) + (step * 8 + j / 2 * 4) * Config::kLineBytesA);
      }
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      a[j] = round_operand(a[j]);
    }
  }
}

/// B's fragments of k step `step`; two neighbouring 8-column blocks a load.
__device__ __forceinline__ void load_fragments_b(unsigned tile, LaneAddress address, int step, Fragments& fragments) {
#pragma unroll
  for (int i = 0; i < Config::kMmaN; i += 2) {
    unsigned(&b0)[2] = fragments.b[i];
    unsigned(&b1)[2] = fragments.b[i + 1];
    if constexpr (Config::B_IS_K_CONTIGUOUS) {
      ldmatrix_x4(tile + lane_offset(address, step * 32) + i * (8 * Config::kLineBytesB), b0[0], b0[1], b1[0], b1[1]);
    } else if constexpr (Config::kElementBytes == 2) {
      ldmatrix_x4_trans(tile + lane_offset(address, i * 16) + step * (16 * Config::kLineBytesB), b0[0], b0[1], b1[0], b1[1]);
    } else {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        b0[j] = ld_shared_b32(tile + lane_offset(address, i * 32) + (step * 8 + j * 4) * Config::kLineBytesB);
        b1[j] = ld_shared_b32(tile + lane_offset(address, i * 32 + 32) + (step * 8 + j * 4) * Config::kLineBytesB);
      }
    }
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      b0[j] = round_operand(b0[j]);
      b1[j] = round_operand(b1[j]);
    }
  }
}

// ---- Mainloop -------------------------------------------------------------------------------------------------------------------

/// A thread's sums: mma.sync tile (i, j), element e is row 16 i + lane / 4 + 8 (e / 2), column 8 j + 2 (lane % 4) + e % 2 of the warp's
/// part.
struct Sums {
  float tile[Config::kMmaM][Config::kMmaN][4];
};

/// One mma.sync; the last two arguments only name the element types.
__device__ __forceinline__ void multiply_tile(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], Half, Half) {
  mma_m16n8k16_f16(d, a, b);
}
__device__ __forceinline__ void multiply_tile(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], BFloat16, BFloat16) {
  mma_m16n8k16_bf16(d, a, b);
}
__device__ __forceinline__ void multiply_tile(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], float, float) {
  mma_m16n8k8_tf32(d, a, b);
}

__device__ __forceinline__ void multiply_fragments(const Fragments& fragments, Sums& sums) {
#pragma unroll
  for (int i = 0; i < Config::kMmaM; ++i) {
#pragma unroll
    for (int j = 0; j < Config::kMmaN; ++j) {
      // Every second row of tiles is walked backwards: its first tile uses the B fragment that the last one just used.
      const int column = i % 2 == 0 ? j : Config::kMmaN - 1 - j;
      multiply_tile(sums.tile[i][column], fragments.a[i], fragments.b[column], Config::ElementA{}, Config::ElementB{});
    }
  }
}

/// sums += A tile * B tile over the k elements that the copies see, `num_blocks` > 0 blocks of BLOCK_K.
///   copies:       block t + STAGES - 1 starts while block t is multiplied, into the stage that block t - 1 has left.
///   one barrier:  the wait and barrier at the end of block t make block t + 1 visible to all warps, and mean that all warps have
///                 read block t's fragments, so its stage may be filled again.
__device__ __forceinline__ void multiply_blocks(CopyA copy_a, CopyB copy_b, unsigned smem, int num_blocks, int k_left,
                                                LaneAddress address_a, LaneAddress address_b, Sums& sums) {
#pragma unroll
  for (int stage = 0; stage < Config::STAGES - 1; ++stage) {
    copy_a.start<1>(smem + stage * Config::kStageBytes, k_left, Config::BLOCK_K, 0);
    copy_b.start<1>(smem + stage * Config::kStageBytes + Config::kTileBytesA, k_left, Config::BLOCK_K, 0);
    k_left -= Config::BLOCK_K;
    cp_async_commit_group();
  }
  cp_async_wait_group<Config::STAGES - 2>();
  __syncthreads();

  Fragments fragments[2];
  unsigned read_stage = smem;
  unsigned write_stage = smem + (Config::STAGES - 1) * Config::kStageBytes;
  load_fragments_a(read_stage, address_a, 0, fragments[0]);
  load_fragments_b(read_stage + Config::kTileBytesA, address_b, 0, fragments[0]);
#pragma unroll 1
  for (int block = 0; block < num_blocks; ++block) {
#pragma unroll
    for (int step = 0; step < Config::kKSteps; ++step) {
      if (step == Config::kKSteps - 1) {
        cp_async_commit_group();
        cp_async_wait_group<Config::STAGES - 2>();
        __syncthreads();
        k_left -= Config::BLOCK_K;
        write_stage = read_stage;
        read_stage = read_stage == smem + (Config::STAGES - 1) * Config::kStageBytes ? smem : read_stage + Config::kStageBytes;
      }
      load_fragments_a(read_stage, address_a, (step + 1) % Config::kKSteps, fragments[(step + 1) % 2]);
      load_fragments_b(read_stage + Config::kTileBytesA, address_b, (step + 1) % Config::kKSteps, fragments[(step + 1) % 2]);
      if (step < Config::kKSteps - 1) {
        // The copies are spread over all steps but the last. Past the last block k_left is not positive: they only fill zeros and
        // keep the count of groups in step.
        copy_a.start<Config::kKSteps - 1>(write_stage, k_left, Config::BLOCK_K, step);
        copy_b.start<Config::kKSteps - 1>(write_stage + Config::kTileBytesA, k_left, Config::BLOCK_K, step);
      }
      multiply_fragments(fragments[step % 2], sums);
    }
  }
  cp_async_wait_group<0>();
  __syncthreads();  // the epilogue writes over the stages
}

// ---- Split-K ----------------------------------------------------------------------------------------------------------------------

/// Where a thread's first group of 4 sums lies in partial_sums; the next group lies 4 * kThreads further: neighbouring threads write 16
/// bytes each.
__device__ __forceinline__ long long split_k_offset(unsigned output_tile, unsigned split) {
  return (static_cast<long long>(output_tile) * Config::SPLIT_K + split) * (Config::BLOCK_M * Config::BLOCK_N) + threadIdx.x * 4;
}

/// Delivers this CTA's sums. The CTA that delivers last gets the sums of all splits, added in the order of k, and true.
///   hand-off: every thread writes, fences; barrier; one thread counts (release, acquire); barrier; fence; reads past L1.
__device__ __forceinline__ bool add_splits(Sums& sums, float* partial_sums, unsigned* tile_counters, unsigned char* smem) {
  float* own = partial_sums + split_k_offset(blockIdx.x, blockIdx.y);
#pragma unroll
  for (int i = 0; i < Config::kMmaM; ++i) {
#pragma unroll
    for (int j = 0; j < Config::kMmaN; ++j) {
      const float(&part)[4] = sums.tile[i][j];
      st_global_cg_v4(own + (i * Config::kMmaN + j) * (4 * Config::kThreads), part[0], part[1], part[2], part[3]);
    }
  }
  __threadfence();
  __syncthreads();
  unsigned* is_last = reinterpret_cast<unsigned*>(smem);
  if (threadIdx.x == 0) {
    // The increment wraps to 0 at the last CTA: the counter is ready for the next launch.
    *is_last = atom_inc_acq_rel(tile_counters + blockIdx.x, Config::SPLIT_K - 1) == Config::SPLIT_K - 1 ? 1u : 0u;
  }
  __syncthreads();
  if (*is_last == 0u) {
    return false;
  }
  __threadfence();
  sums = Sums{};
#pragma unroll 1
  for (unsigned split = 0; split < Config::SPLIT_K; ++split) {
    const float* other = partial_sums + split_k_offset(blockIdx.x, split);
#pragma unroll
    for (int i = 0; i < Config::kMmaM; ++i) {
#pragma unroll
      for (int j = 0; j < Config::kMmaN; ++j) {
        float part[4];
        ld_global_cg_v4(other + (i * Config::kMmaN + j) * (4 * Config::kThreads), part);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          sums.tile[i][j][e] += part[e];
        }
      }
    }
  }
  __syncthreads();  // the epilogue writes over is_last
  return true;
}

// ---- Epilogue ---------------------------------------------------------------------------------------------------------------------

/// Where a warp's part of the output lies, and where the problem ends.
struct OutputPart {
  long long b;
  long long first_m;
  long long first_n;
  long long extent_m;
  long long extent_n;
};

/// Through smem: each warp lays 16 rows of its sums down as rows, then every lane takes 8 neighbouring columns.
/// Only the warp's own corner of smem is touched, so warps do not wait for each other.
__device__ __forceinline__ void store_staged(const Sums& sums, const OutputPart& part, const EpilogueArgs& epilogue, float* staging) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  constexpr int kVectorsPerRow = Config::kWarpN / 8;
#pragma unroll
  for (int i = 0; i < Config::kMmaM; ++i) {
#pragma unroll
    for (int j = 0; j < Config::kMmaN; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        staging[(lane / 4 + e / 2 * 8) * Config::kStagingPitch + j * 8 + lane % 4 * 2 + e % 2] = sums.tile[i][j][e];
      }
    }
    __syncwarp();
#pragma unroll 1
    for (int vector = lane; vector < 16 * kVectorsPerRow; vector += 32) {
      const int row = vector / kVectorsPerRow;
      const int column = vector % kVectorsPerRow * 8;
      const long long m = part.first_m + i * 16 + row;
      const long long n = part.first_n + column;
      if (m < part.extent_m && n < part.extent_n) {
        float values[8];
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          values[v] = staging[row * Config::kStagingPitch + column + v];
        }
        epilogue_store<8>(epilogue, part.b, m, n, values, part.extent_n - n < 8 ? static_cast<int>(part.extent_n - n) : 8);
      }
    }
    __syncwarp();
  }
}

/// Straight from the fragments, two neighbouring columns at a time.
__device__ __forceinline__ void store_direct(const Sums& sums, const OutputPart& part, const EpilogueArgs& epilogue) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < Config::kMmaM; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const long long m = part.first_m + i * 16 + lane / 4 + half * 8;
#pragma unroll
      for (int j = 0; j < Config::kMmaN; ++j) {
        const long long n = part.first_n + j * 8 + lane % 4 * 2;
        if (m < part.extent_m && n < part.extent_n) {
          const float values[2] = {sums.tile[i][j][half * 2], sums.tile[i][j][half * 2 + 1]};
          epilogue_store<2>(epilogue, part.b, m, n, values, part.extent_n - n < 2 ? 1 : 2);
        }
      }
    }
  }
}

// ---- Kernel -----------------------------------------------------------------------------------------------------------------------

COMPUTES("out[b,m,n] = epilogue(sum[k](A[b,m,k] * B[b,k,n]))")
REQUIRES_ARCH("sm_80")
extern "C" __global__ void __launch_bounds__(Config::kThreads, Config::MIN_CTAS_PER_SM)
    gemm_sm80_mma(const Config::ElementA* A, const Config::ElementB* B, GemmProblem problem, EpilogueArgs epilogue, float* partial_sums,
                  unsigned* tile_counters) {
  alignas(16) extern __shared__ unsigned char smem[];
  if constexpr (Config::IS_FOLLOWED) {
    let_next_grid_begin();
  }
  if constexpr (Config::IS_DEPENDENT) {
    wait_for_grid_before();
  }
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int row = warp / Config::WARPS_N * Config::kWarpM;
  const int column = warp % Config::WARPS_N * Config::kWarpN;
  const TileCoordinate tile = locate_tile(blockIdx.x, static_cast<unsigned>(tiles_m(problem.extent_m)),
                                          static_cast<unsigned>(tiles_n(problem.extent_n)), Config::GROUP_M);
  const long long first_m = static_cast<long long>(tile.tile_m) * Config::BLOCK_M;
  const long long first_n = static_cast<long long>(tile.tile_n) * Config::BLOCK_N;

  // This CTA's part of k.
  const long long first_k = k_blocks_per_split(problem.extent_k) * Config::BLOCK_K * blockIdx.y;
  const long long end_k = first_k + k_blocks_per_split(problem.extent_k) * Config::BLOCK_K;
  const int k_left = static_cast<int>((end_k < problem.extent_k ? end_k : problem.extent_k) - first_k);

  Sums sums = {};
  if (k_left > 0) {
    const CopyA copy_a(A + tile.batch * problem.A_stride_b + first_m * problem.A_stride_m + first_k * problem.A_stride_k,
                       Config::A_IS_K_CONTIGUOUS ? problem.A_stride_m : problem.A_stride_k, problem.extent_m - first_m, Config::BLOCK_K);
    const CopyB copy_b(B + tile.batch * problem.B_stride_b + first_n * problem.B_stride_n + first_k * problem.B_stride_k,
                       Config::B_IS_K_CONTIGUOUS ? problem.B_stride_n : problem.B_stride_k, problem.extent_n - first_n, Config::BLOCK_K);
    multiply_blocks(copy_a, copy_b, shared_address(smem), (k_left + Config::BLOCK_K - 1) / Config::BLOCK_K, k_left, lane_address_a(row),
                    lane_address_b(column), sums);
  }

  if constexpr (Config::SPLIT_K > 1) {
    if (!add_splits(sums, partial_sums, tile_counters, smem)) {
      return;
    }
  }
  const OutputPart part = {tile.batch, first_m + row, first_n + column, problem.extent_m, problem.extent_n};
  if constexpr (Config::STAGED_EPILOGUE) {
    store_staged(sums, part, epilogue, reinterpret_cast<float*>(smem + warp * Config::kStagingBytesPerWarp));
  } else {
    store_direct(sums, part, epilogue);
  }
}
