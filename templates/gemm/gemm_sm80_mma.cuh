// Contract: out[b, m, n] = epilogue(sum over k of A[b, m, k] * B[b, k, n]) on the tensor cores by mma.sync, f32 sums. sm_80 and up.
//   A [B, M, K] and B [B, K, N]: both f16, both bf16, or both f32 when the op allows tf32. Each has one contiguous axis (k, or m and n);
//   all four transpositions, any extents (tails are filled with zeros; K = 0 gives epilogue(0)), any leading dimension: an odd one
//   needs A_VEC_BYTES or B_VEC_BYTES down to one element. Refuses: other types, operands with no contiguous axis (gemm_simt serves them).
// Technique: STAGES smem buffers filled by cp.async ahead of use; XOR-swizzled tiles read by ldmatrix without bank conflicts;
//   fragments of the next k step are loaded while this one is multiplied; split-K adds up f32 partial sums in a fixed order.
// Reading order: Config, rules, launch, estimates; then copy (gmem -> smem), fragments (smem -> registers), mainloop, split-K, epilogue,
// kernel. SPDX-License-Identifier: Apache-2.0

#include "parts/annotations.cuh"
#include "parts/gemm_problem.cuh"
#include "parts/swizzle.cuh"
#include "parts/tile_copy.cuh"
#include "parts/tile_raster.cuh"
#include "parts/types.cuh"
#include "ptx/cp_async.cuh"
#include "ptx/global.cuh"
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

// ---- Rules on the config ------------------------------------------------------------------------------------------------------

RULE("element_types", "A and B are of one 16-bit type, or f32 computed as tf32; sums are f32")
__host__ __device__ constexpr bool element_types() {
  return Config::HAS_ONE_OPERAND_TYPE && Config::OPERANDS_ARE_FLOAT && Config::SUMS_ARE_FLOAT && sizeof(Config::Accumulator) == 4 &&
         (sizeof(Config::ElementA) == 2 || (sizeof(Config::ElementA) == 4 && Config::USES_TF32));
}

RULE("a_has_contiguous_axis", "A must be contiguous along k or m")
__host__ __device__ constexpr bool a_has_contiguous_axis() { return Config::A_IS_K_CONTIGUOUS || Config::A_IS_M_CONTIGUOUS; }

RULE("b_has_contiguous_axis", "B must be contiguous along k or n")
__host__ __device__ constexpr bool b_has_contiguous_axis() { return Config::B_IS_K_CONTIGUOUS || Config::B_IS_N_CONTIGUOUS; }

RULE("warp_tile_shape", "a warp's part is a multiple of 16 rows and 16 columns")
__host__ __device__ constexpr bool warp_tile_shape() {
  return Config::kWarpM >= 16 && Config::kWarpN >= 16 && Config::kWarpM % 16 == 0 && Config::kWarpN % 16 == 0;
}

RULE("sums_fit", "a thread holds 4 to 128 sums: fewer feed the tensor cores too slowly, more spill")
__host__ __device__ constexpr bool sums_fit() { return Config::kSums >= 8 && Config::kSums <= 128; }

RULE("threads_fit", "a CTA has 4 to 16 warps")
__host__ __device__ constexpr bool threads_fit() {
  return Config::kThreads >= 128 && Config::kThreads <= 512 && Config::kThreads <= DeviceLimits::max_threads_per_cta;
}

__host__ __device__ constexpr int registers_needed() { return Config::kSums + 2 * (Config::kMmaM * 4 + Config::kMmaN * 2) + 40; }

__host__ __device__ constexpr int registers_allowed() {
  const int share = DeviceLimits::registers_per_sm / (Config::kThreads * Config::MIN_CTAS_PER_SM) / 8 * 8;
  return share < DeviceLimits::max_registers_per_thread ? share : DeviceLimits::max_registers_per_thread;
}

RULE("registers_fit", "sums, two sets of fragments and addresses must fit a thread's registers")
__host__ __device__ constexpr bool registers_fit() { return registers_needed() <= registers_allowed(); }

RULE("min_ctas_matters", "MIN_CTAS_PER_SM = 2 is spelled only where it limits the registers below the device's own limit")
__host__ __device__ constexpr bool min_ctas_matters() {
  return Config::MIN_CTAS_PER_SM == 1 || registers_allowed() < DeviceLimits::max_registers_per_thread;
}

__host__ __device__ constexpr long long smem_bytes() {
  const long long stages = static_cast<long long>(Config::STAGES) * Config::kStageBytes;
  const long long staging = Config::STAGED_EPILOGUE ? Config::kStagingBytesPerWarp * Config::WARPS_M * Config::WARPS_N : 16;
  return stages > staging ? stages : staging;
}

RULE("smem_fits", "the stages must fit one CTA's shared memory")
__host__ __device__ constexpr bool smem_fits() { return smem_bytes() <= DeviceLimits::max_smem_bytes; }

constexpr long long kReservedSmemBytes = 1024;  // taken by the driver from each CTA: CUDA Programming Guide, technical specifications

RULE("ctas_fit", "MIN_CTAS_PER_SM CTAs must fit one SM's shared memory")
__host__ __device__ constexpr bool ctas_fit() {
  return Config::MIN_CTAS_PER_SM * (smem_bytes() + kReservedSmemBytes) <= DeviceLimits::smem_bytes_per_sm;
}

RULE("vectors_hold_elements", "A_VEC_BYTES and B_VEC_BYTES hold at least one element")
__host__ __device__ constexpr bool vectors_hold_elements() {
  return Config::A_VEC_BYTES >= Config::kElementBytes && Config::B_VEC_BYTES >= Config::kElementBytes;
}

RULE("copies_are_shared_evenly", "a tile is 1 to 32 copies of every thread")
__host__ __device__ constexpr bool copies_are_shared_evenly() {
  return Config::kTileBytesA % (Config::A_VEC_BYTES * Config::kThreads) == 0 &&
         Config::kTileBytesB % (Config::B_VEC_BYTES * Config::kThreads) == 0 && Config::kVectorsA >= 1 && Config::kVectorsB >= 1 &&
         Config::kVectorsA <= 32 && Config::kVectorsB <= 32;
}

RULE("direct_epilogue_is_short", "without staging every pair of sums is stored by its own copy of the epilogue's code: at most 32 sums")
__host__ __device__ constexpr bool direct_epilogue_is_short() { return Config::STAGED_EPILOGUE || Config::kSums <= 32; }

// ---- Rules on the problem -------------------------------------------------------------------------------------------------------

__host__ __device__ constexpr bool a_fits_vectors(long long vec_bytes, long long extent_b, long long extent_m, long long extent_k,
                                                  long long A_stride_b, long long A_stride_m, long long A_stride_k, long long A_align) {
  const long long line_stride = Config::A_IS_K_CONTIGUOUS ? A_stride_m : A_stride_k;
  const long long lines = Config::A_IS_K_CONTIGUOUS ? extent_m : extent_k;
  return A_align % vec_bytes == 0 && (lines <= 1 || line_stride * Config::kElementBytes % vec_bytes == 0) &&
         (extent_b <= 1 || A_stride_b * Config::kElementBytes % vec_bytes == 0);
}

__host__ __device__ constexpr bool b_fits_vectors(long long vec_bytes, long long extent_b, long long extent_n, long long extent_k,
                                                  long long B_stride_b, long long B_stride_n, long long B_stride_k, long long B_align) {
  const long long line_stride = Config::B_IS_K_CONTIGUOUS ? B_stride_n : B_stride_k;
  const long long lines = Config::B_IS_K_CONTIGUOUS ? extent_n : extent_k;
  return B_align % vec_bytes == 0 && (lines <= 1 || line_stride * Config::kElementBytes % vec_bytes == 0) &&
         (extent_b <= 1 || B_stride_b * Config::kElementBytes % vec_bytes == 0);
}

RULE("a_vector_alignment", "A's pointer, row stride and batch stride are multiples of A_VEC_BYTES")
__host__ __device__ constexpr bool a_vector_alignment(long long extent_b, long long extent_m, long long extent_k, long long A_stride_b,
                                                      long long A_stride_m, long long A_stride_k, long long A_align) {
  return a_fits_vectors(Config::A_VEC_BYTES, extent_b, extent_m, extent_k, A_stride_b, A_stride_m, A_stride_k, A_align);
}

RULE("b_vector_alignment", "B's pointer, row stride and batch stride are multiples of B_VEC_BYTES")
__host__ __device__ constexpr bool b_vector_alignment(long long extent_b, long long extent_n, long long extent_k, long long B_stride_b,
                                                      long long B_stride_n, long long B_stride_k, long long B_align) {
  return b_fits_vectors(Config::B_VEC_BYTES, extent_b, extent_n, extent_k, B_stride_b, B_stride_n, B_stride_k, B_align);
}

RULE("a_tile_offsets_fit", "offsets inside a tile of A are 32-bit: BLOCK lines of A span less than 2 GiB")
__host__ __device__ constexpr bool a_tile_offsets_fit(long long A_stride_m, long long A_stride_k) {
  return (Config::A_IS_K_CONTIGUOUS ? A_stride_m * Config::BLOCK_M : A_stride_k * Config::BLOCK_K) * Config::kElementBytes < 2147483648;
}

RULE("b_tile_offsets_fit", "offsets inside a tile of B are 32-bit: BLOCK lines of B span less than 2 GiB")
__host__ __device__ constexpr bool b_tile_offsets_fit(long long B_stride_n, long long B_stride_k) {
  return (Config::B_IS_K_CONTIGUOUS ? B_stride_n * Config::BLOCK_N : B_stride_k * Config::BLOCK_K) * Config::kElementBytes < 2147483648;
}

RULE("extents_fit", "M, N and K are at most 2^30")
__host__ __device__ constexpr bool extents_fit(long long extent_m, long long extent_n, long long extent_k) {
  return extent_m <= 1073741824 && extent_n <= 1073741824 && extent_k <= 1073741824;
}

RULE("split_k_has_work", "every one of the SPLIT_K parts gets at least one block of k")
__host__ __device__ constexpr bool split_k_has_work(long long extent_k) {
  return Config::SPLIT_K == 1 || extent_k > (Config::SPLIT_K - 1ll) * Config::BLOCK_K;
}

// ---- Launch -----------------------------------------------------------------------------------------------------------------

__host__ __device__ constexpr long long tiles_m(long long extent_m) { return (extent_m + Config::BLOCK_M - 1) / Config::BLOCK_M; }
__host__ __device__ constexpr long long tiles_n(long long extent_n) { return (extent_n + Config::BLOCK_N - 1) / Config::BLOCK_N; }
__host__ __device__ constexpr long long k_blocks(long long extent_k) { return (extent_k + Config::BLOCK_K - 1) / Config::BLOCK_K; }
__host__ __device__ constexpr long long k_blocks_per_split(long long extent_k) {
  return (k_blocks(extent_k) + Config::SPLIT_K - 1) / Config::SPLIT_K;
}
__host__ __device__ constexpr long long output_tiles(long long extent_b, long long extent_m, long long extent_n) {
  return tiles_m(extent_m) * tiles_n(extent_n) * extent_b;
}

LAUNCH("grid_x")
__host__ __device__ constexpr long long grid_x(long long extent_b, long long extent_m, long long extent_n) {
  return output_tiles(extent_b, extent_m, extent_n);
}
LAUNCH("grid_y") __host__ __device__ constexpr long long grid_y() { return Config::SPLIT_K; }
LAUNCH("block_x") __host__ __device__ constexpr long long block_x() { return Config::kThreads; }
LAUNCH("dynamic_smem_bytes") __host__ __device__ constexpr long long dynamic_smem_bytes() { return smem_bytes(); }
/// f32 [output tile][split][sums of a tile], in the order of split_k_offset().
LAUNCH("workspace:partial_sums")
__host__ __device__ constexpr long long partial_sums_bytes(long long extent_b, long long extent_m, long long extent_n) {
  return Config::SPLIT_K == 1 ? 0 : output_tiles(extent_b, extent_m, extent_n) * Config::SPLIT_K * Config::BLOCK_M * Config::BLOCK_N * 4;
}
/// u32 [output tile]: how many of its CTAs have delivered. Zero before and after every launch.
LAUNCH("workspace_zeroed:tile_counters")
__host__ __device__ constexpr long long tile_counters_bytes(long long extent_b, long long extent_m, long long extent_n) {
  return Config::SPLIT_K == 1 ? 0 : output_tiles(extent_b, extent_m, extent_n) * 4;
}

RULE("grid_fits", "the grid has at most 2^31 - 1 output tiles")
__host__ __device__ constexpr bool grid_fits(long long extent_b, long long extent_m, long long extent_n) {
  return output_tiles(extent_b, extent_m, extent_n) <= 2147483647;
}

RULE("workspace_is_small", "split-K may use at most 256 MiB of partial sums")
__host__ __device__ constexpr bool workspace_is_small(long long extent_b, long long extent_m, long long extent_n) {
  return partial_sums_bytes(extent_b, extent_m, extent_n) <= 268435456;
}

// ---- Estimates for the analytic model: docs/adding-a-template.md --------------------------------------------------------------

ESTIMATE("threads_per_cta") __host__ __device__ constexpr long long threads_per_cta() { return Config::kThreads; }
ESTIMATE("smem_bytes_per_cta") __host__ __device__ constexpr long long smem_bytes_per_cta() { return smem_bytes(); }
ESTIMATE("registers_per_thread") __host__ __device__ constexpr long long registers_per_thread() { return registers_needed(); }
ESTIMATE("is_tensor_core") __host__ __device__ constexpr long long is_tensor_core() { return 1; }
ESTIMATE("math_type_bytes") __host__ __device__ constexpr long long math_type_bytes() { return Config::kElementBytes; }
ESTIMATE("tile_m") __host__ __device__ constexpr long long tile_m() { return Config::BLOCK_M; }
ESTIMATE("tile_n") __host__ __device__ constexpr long long tile_n() { return Config::BLOCK_N; }
ESTIMATE("tile_k") __host__ __device__ constexpr long long tile_k() { return Config::BLOCK_K; }
ESTIMATE("warps_m") __host__ __device__ constexpr long long warps_m() { return Config::WARPS_M; }
ESTIMATE("warps_n") __host__ __device__ constexpr long long warps_n() { return Config::WARPS_N; }
ESTIMATE("stages") __host__ __device__ constexpr long long stages() { return Config::STAGES; }
ESTIMATE("group_m") __host__ __device__ constexpr long long group_m() { return Config::GROUP_M; }
ESTIMATE("ctas")
__host__ __device__ constexpr long long ctas(long long extent_b, long long extent_m, long long extent_n) {
  return output_tiles(extent_b, extent_m, extent_n) * Config::SPLIT_K;
}
ESTIMATE("k_steps") __host__ __device__ constexpr long long k_steps(long long extent_k) { return k_blocks_per_split(extent_k); }
ESTIMATE("math_flops_per_cta")
__host__ __device__ constexpr long long math_flops_per_cta(long long extent_k) {
  return 2ll * Config::BLOCK_M * Config::BLOCK_N * Config::BLOCK_K * k_blocks_per_split(extent_k);
}
ESTIMATE("gmem_bytes_per_cta")
__host__ __device__ constexpr long long gmem_bytes_per_cta(long long extent_k) {
  return k_blocks_per_split(extent_k) * Config::kStageBytes;
}
ESTIMATE("smem_bytes_read_per_cta")
__host__ __device__ constexpr long long smem_bytes_read_per_cta(long long extent_k) {
  return k_blocks_per_split(extent_k) *
         (static_cast<long long>(Config::WARPS_N) * Config::kTileBytesA + static_cast<long long>(Config::WARPS_M) * Config::kTileBytesB);
}
ESTIMATE("smem_bytes_written_per_cta")
__host__ __device__ constexpr long long smem_bytes_written_per_cta(long long extent_k) {
  return k_blocks_per_split(extent_k) * Config::kStageBytes;
}
ESTIMATE("copy_instructions_per_cta")
__host__ __device__ constexpr long long copy_instructions_per_cta(long long extent_k) {
  return k_blocks_per_split(extent_k) * (Config::kVectorsA + Config::kVectorsB) * Config::kThreads / 32;
}
ESTIMATE("workspace_traffic_bytes")
__host__ __device__ constexpr long long workspace_traffic_bytes(long long extent_b, long long extent_m, long long extent_n) {
  return 2 * partial_sums_bytes(extent_b, extent_m, extent_n);
}
ESTIMATE("is_dominated")
__host__ __device__ constexpr long long is_dominated(long long extent_b, long long extent_m, long long extent_n, long long extent_k,
                                                     long long A_stride_b, long long A_stride_m, long long A_stride_k, long long A_align,
                                                     long long B_stride_b, long long B_stride_n, long long B_stride_k, long long B_align) {
  const bool a_could_be_wider = Config::A_VEC_BYTES < 16 && a_fits_vectors(2 * Config::A_VEC_BYTES, extent_b, extent_m, extent_k,
                                                                           A_stride_b, A_stride_m, A_stride_k, A_align);
  const bool b_could_be_wider = Config::B_VEC_BYTES < 16 && b_fits_vectors(2 * Config::B_VEC_BYTES, extent_b, extent_n, extent_k,
                                                                           B_stride_b, B_stride_n, B_stride_k, B_align);
  return a_could_be_wider || b_could_be_wider;
}

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
