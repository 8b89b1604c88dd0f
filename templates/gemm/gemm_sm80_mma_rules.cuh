// Rules, launch and estimates of gemm_sm80_mma: which configs are legal for which problem, how a kernel is launched, and what the
// analytic model counts. Part of gemm/gemm_sm80_mma.cuh, which defines Config before it includes this file.
// Contract: a RULE that is false refuses the config by its name (docs/adding-a-template.md). SPDX-License-Identifier: Apache-2.0

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

/// Copies of a thread that are narrower than 16 bytes: there are many, and the compiler keeps about one register for each.
__host__ __device__ constexpr int narrow_copies() {
  return (Config::A_VEC_BYTES < 16 ? Config::kVectorsA : 0) + (Config::B_VEC_BYTES < 16 ? Config::kVectorsB : 0);
}

__host__ __device__ constexpr int registers_needed() {
  return Config::kSums + 2 * (Config::kMmaM * 4 + Config::kMmaN * 2) + narrow_copies() + 40;
}

__host__ __device__ constexpr int registers_allowed() {
  const int share = DeviceLimits::registers_per_sm / (Config::kThreads * Config::MIN_CTAS_PER_SM) / 8 * 8;
  return share < DeviceLimits::max_registers_per_thread ? share : DeviceLimits::max_registers_per_thread;
}

RULE("registers_fit", "sums, two sets of fragments, copies and addresses must fit a thread's registers")
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
