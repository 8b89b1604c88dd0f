// Rules, launch and estimates of gemm_sm90_tma_wgmma: which configs are legal for which problem, how a kernel is launched, and what the
// analytic model counts. Part of gemm/gemm_sm90_tma_wgmma.cuh and its pair, which define Config before they include this file.
// Contract: a RULE that is false refuses the config by its name (docs/adding-a-template.md). SPDX-License-Identifier: Apache-2.0

// ---- Rules on the config ------------------------------------------------------------------------------------------------------

RULE("arch_is_sm_90", "wgmma and setmaxnreg are instructions of sm_90a alone")
__host__ __device__ constexpr bool arch_is_sm_90() { return DeviceLimits::arch == 90; }

RULE("element_types", "A and B are of one 16-bit float type; sums are f32")
__host__ __device__ constexpr bool element_types() {
  return Config::HAS_ONE_OPERAND_TYPE && Config::OPERANDS_ARE_FLOAT && Config::SUMS_ARE_FLOAT && sizeof(Config::Accumulator) == 4 &&
         sizeof(Config::ElementA) == 2;
}

RULE("a_has_contiguous_axis", "A must be contiguous along k or m")
__host__ __device__ constexpr bool a_has_contiguous_axis() { return Config::A_IS_K_CONTIGUOUS || Config::A_IS_M_CONTIGUOUS; }

RULE("b_has_contiguous_axis", "B must be contiguous along k or n")
__host__ __device__ constexpr bool b_has_contiguous_axis() { return Config::B_IS_K_CONTIGUOUS || Config::B_IS_N_CONTIGUOUS; }

RULE("consumer_rows", "each consumer multiplies 64 or 128 rows")
__host__ __device__ constexpr bool consumer_rows() {
  return Config::kConsumerRows * Config::kConsumersPerTile == Config::BLOCK_M &&
         (Config::kConsumerRows == 64 || Config::kConsumerRows == 128);
}

RULE("pingpong_has_two", "the ping-pong schedule alternates between two consumers")
__host__ __device__ constexpr bool pingpong_has_two() { return !Config::IS_PINGPONG || Config::CONSUMERS == 2; }

RULE("panels_fill_tiles", "the extents of a tile along its contiguous axis are multiples of SWIZZLE_BYTES")
__host__ __device__ constexpr bool panels_fill_tiles() {
  return Config::kContiguousA * 2 % Config::SWIZZLE_BYTES == 0 && Config::kContiguousB * 2 % Config::SWIZZLE_BYTES == 0;
}

RULE("cluster_fits", "a cluster has at most 4 CTAs")
__host__ __device__ constexpr bool cluster_fits() { return Config::CLUSTER_M * Config::CLUSTER_N <= 4; }

RULE("multicast_parts", "each CTA of a cluster copies whole groups of 8 lines for its peers, at most 256 a box")
__host__ __device__ constexpr bool multicast_parts() {
  return Config::kLinesA % (8 * Config::CLUSTER_N) == 0 && Config::kBoxLinesB % 8 == 0;
}

RULE("splits_are_cluster", "splits that add up as a cluster are two or more CTAs of one tile that they finish together")
__host__ __device__ constexpr bool splits_are_cluster() {
  return !Config::SPLITS_ARE_CLUSTER ||
         (Config::SPLIT_K > 1 && Config::CLUSTER_M * Config::CLUSTER_N == 1 && !Config::IS_PINGPONG && Config::GROUP_M == 1);
}

RULE("stores_whole_parts", "a CTA stores whole parts of its tile: 32 columns directly, 64 staged")
__host__ __device__ constexpr bool stores_whole_parts() { return Config::kOutputColumns % (Config::IS_STAGED ? 64 : 32) == 0; }

RULE("cluster_sums_fit", "the sums of such a cluster's tile pass through the stages")
__host__ __device__ constexpr bool cluster_sums_fit() {
  return !Config::SPLITS_ARE_CLUSTER || Config::BLOCK_M * Config::BLOCK_N * 4 <= Config::STAGES * Config::kStageBytes;
}

/// Adding up the splits keeps loads of other splits in flight, staged results the epilogue's own.
__host__ __device__ constexpr int registers_needed() {
  return Config::kSums + 48 + (Config::SPLIT_K > 1 && !Config::SPLITS_ARE_CLUSTER ? 64 : 0) + (Config::IS_STAGED ? 24 : 0);
}

RULE("registers_fit", "the sums and addresses of a consumer must fit the registers that the producer leaves it")
__host__ __device__ constexpr bool registers_fit() { return registers_needed() <= Config::kConsumerRegisters; }

RULE("sums_fit", "a consumer thread holds at least 32 sums: fewer leave wgmma waiting for its barriers")
__host__ __device__ constexpr bool sums_fit() { return Config::kSums >= 32; }

/// One output of 16-bit floats, contiguous along n.
__host__ __device__ constexpr bool can_be_staged() {
  return Config::NUM_OUTPUTS == 1 && Config::OUTPUT_IS_N_CONTIGUOUS && Config::OUTPUT_IS_FLOAT && sizeof(Config::Output) == 2;
}

RULE("staged_output", "results go by way of smem when there is one output, of 16-bit floats and contiguous along n")
__host__ __device__ constexpr bool staged_output() { return !Config::IS_STAGED || can_be_staged(); }

__host__ __device__ constexpr long long smem_bytes() {
  return static_cast<long long>(Config::STAGES) * (Config::kStageBytes + 16) + Config::kAllResultBytes;
}

RULE("smem_fits", "the stages and their barriers must fit one CTA's shared memory")
__host__ __device__ constexpr bool smem_fits() { return smem_bytes() <= DeviceLimits::max_smem_bytes; }

// ---- Rules on the problem: what cuTensorMapEncodeTiled takes (CUDA Driver API) ------------------------------------------------------

RULE("a_is_aligned", "TMA needs A's pointer and its row and batch strides to be multiples of 16 bytes")
__host__ __device__ constexpr bool a_is_aligned(long long extent_b, long long A_stride_b, long long A_stride_m, long long A_stride_k,
                                                long long A_align) {
  return A_align % 16 == 0 && (Config::A_IS_K_CONTIGUOUS ? A_stride_m : A_stride_k) % 8 == 0 && (extent_b <= 1 || A_stride_b % 8 == 0);
}

RULE("b_is_aligned", "TMA needs B's pointer and its row and batch strides to be multiples of 16 bytes")
__host__ __device__ constexpr bool b_is_aligned(long long extent_b, long long B_stride_b, long long B_stride_n, long long B_stride_k,
                                                long long B_align) {
  return B_align % 16 == 0 && (Config::B_IS_K_CONTIGUOUS ? B_stride_n : B_stride_k) % 8 == 0 && (extent_b <= 1 || B_stride_b % 8 == 0);
}

RULE("strides_fit", "TMA's strides are below 2^40 bytes")
__host__ __device__ constexpr bool strides_fit(long long A_stride_b, long long A_stride_m, long long A_stride_k, long long B_stride_b,
                                               long long B_stride_n, long long B_stride_k) {
  return A_stride_b < 549755813888 && A_stride_m < 549755813888 && A_stride_k < 549755813888 && B_stride_b < 549755813888 &&
         B_stride_n < 549755813888 && B_stride_k < 549755813888;
}

RULE("extents_fit", "K is at least 1, and no extent is above 2^30")
__host__ __device__ constexpr bool extents_fit(long long extent_b, long long extent_m, long long extent_n, long long extent_k) {
  return extent_k >= 1 && extent_b <= 1073741824 && extent_m <= 1073741824 && extent_n <= 1073741824 && extent_k <= 1073741824;
}

RULE("split_k_has_work", "every one of the SPLIT_K parts gets at least one block of k")
__host__ __device__ constexpr bool split_k_has_work(long long extent_k) {
  return Config::SPLIT_K == 1 || k_blocks_per_split(extent_k) * (Config::SPLIT_K - 1) < k_blocks(extent_k);
}

// ---- Launch -----------------------------------------------------------------------------------------------------------------

/// Output tiles of all clusters, those that reach over the edge too.
__host__ __device__ constexpr long long output_tiles(long long extent_b, long long extent_m, long long extent_n) {
  return cluster_tiles_m(extent_m) * cluster_tiles_n(extent_n) * extent_b * Config::CLUSTER_M * Config::CLUSTER_N;
}

/// How many CTAs run at the same time: one on each SM; clusters of four leave about one SM in eleven without a place (H200: 120 of 132).
__host__ __device__ constexpr long long resident_ctas() {
  return Config::kClusterSize < 4 ? DeviceLimits::num_sms / Config::kClusterSize * Config::kClusterSize
                                  : DeviceLimits::num_sms * 10 / 11 / Config::kClusterSize * Config::kClusterSize;
}

LAUNCH("grid_x")
__host__ __device__ constexpr long long grid_x(long long extent_b, long long extent_m, long long extent_n) {
  const long long all = output_tiles(extent_b, extent_m, extent_n) * Config::SPLIT_K;
  return Config::SPLITS_ARE_CLUSTER || all < resident_ctas() ? all : resident_ctas();
}
/// A cluster takes tile after tile: any number of whole clusters does all the work. One that adds up splits leaves its stages to the sums.
LAUNCH("is_persistent") __host__ __device__ constexpr long long is_persistent() { return Config::SPLITS_ARE_CLUSTER ? 0 : 1; }
LAUNCH("block_x") __host__ __device__ constexpr long long block_x() { return Config::kThreads; }
LAUNCH("cluster_x") __host__ __device__ constexpr long long cluster_x() { return Config::kClusterSize; }
LAUNCH("dynamic_smem_bytes") __host__ __device__ constexpr long long dynamic_smem_bytes() { return smem_bytes(); }

// A as a tensor of three dimensions, the contiguous axis, the lines and the batch, in boxes of one part of one panel.
LAUNCH("tensor_map:A_map:extent_0")
__host__ __device__ constexpr long long a_map_contiguous(long long extent_m, long long extent_k) {
  return Config::A_IS_K_CONTIGUOUS ? extent_k : extent_m;
}
LAUNCH("tensor_map:A_map:extent_1")
__host__ __device__ constexpr long long a_map_lines(long long extent_m, long long extent_k) {
  return Config::A_IS_K_CONTIGUOUS ? extent_m : extent_k;
}
LAUNCH("tensor_map:A_map:extent_2") __host__ __device__ constexpr long long a_map_batches(long long extent_b) { return extent_b; }
LAUNCH("tensor_map:A_map:stride_1")
__host__ __device__ constexpr long long a_map_line_bytes(long long A_stride_m, long long A_stride_k) {
  return (Config::A_IS_K_CONTIGUOUS ? A_stride_m : A_stride_k) * 2;
}
LAUNCH("tensor_map:A_map:stride_2")
__host__ __device__ constexpr long long a_map_batch_bytes(long long extent_b, long long A_stride_b) {
  return extent_b <= 1 ? 16 : A_stride_b * 2;
}
LAUNCH("tensor_map:A_map:box_0") __host__ __device__ constexpr long long a_map_box_contiguous() { return Config::SWIZZLE_BYTES / 2; }
LAUNCH("tensor_map:A_map:box_1")
__host__ __device__ constexpr long long a_map_box_lines() { return Config::kLinesA / Config::CLUSTER_N; }
LAUNCH("tensor_map:A_map:box_2") __host__ __device__ constexpr long long a_map_box_batches() { return 1; }
LAUNCH("tensor_map:A_map:swizzle") __host__ __device__ constexpr long long a_map_swizzle() { return Config::SWIZZLE_BYTES; }

LAUNCH("tensor_map:B_map:extent_0")
__host__ __device__ constexpr long long b_map_contiguous(long long extent_n, long long extent_k) {
  return Config::B_IS_K_CONTIGUOUS ? extent_k : extent_n;
}
LAUNCH("tensor_map:B_map:extent_1")
__host__ __device__ constexpr long long b_map_lines(long long extent_n, long long extent_k) {
  return Config::B_IS_K_CONTIGUOUS ? extent_n : extent_k;
}
LAUNCH("tensor_map:B_map:extent_2") __host__ __device__ constexpr long long b_map_batches(long long extent_b) { return extent_b; }
LAUNCH("tensor_map:B_map:stride_1")
__host__ __device__ constexpr long long b_map_line_bytes(long long B_stride_n, long long B_stride_k) {
  return (Config::B_IS_K_CONTIGUOUS ? B_stride_n : B_stride_k) * 2;
}
LAUNCH("tensor_map:B_map:stride_2")
__host__ __device__ constexpr long long b_map_batch_bytes(long long extent_b, long long B_stride_b) {
  return extent_b <= 1 ? 16 : B_stride_b * 2;
}
LAUNCH("tensor_map:B_map:box_0") __host__ __device__ constexpr long long b_map_box_contiguous() { return Config::SWIZZLE_BYTES / 2; }
LAUNCH("tensor_map:B_map:box_1")
__host__ __device__ constexpr long long b_map_box_lines() { return Config::kBoxLinesB; }
LAUNCH("tensor_map:B_map:box_2") __host__ __device__ constexpr long long b_map_box_batches() { return 1; }
LAUNCH("tensor_map:B_map:swizzle") __host__ __device__ constexpr long long b_map_swizzle() { return Config::SWIZZLE_BYTES; }

__host__ __device__ constexpr bool splits_use_workspace() { return Config::SPLIT_K > 1 && !Config::SPLITS_ARE_CLUSTER; }

/// f32 [output tile][split][sums of a tile], in the order of split_k_offset().
LAUNCH("workspace:partial_sums")
__host__ __device__ constexpr long long partial_sums_bytes(long long extent_b, long long extent_m, long long extent_n) {
  return !splits_use_workspace() ? 0 : output_tiles(extent_b, extent_m, extent_n) * Config::SPLIT_K * Config::BLOCK_M * Config::BLOCK_N * 4;
}
/// u32 [output tile][consumer]: how many of the splits have delivered. Zero before and after every launch.
LAUNCH("workspace_zeroed:tile_counters")
__host__ __device__ constexpr long long tile_counters_bytes(long long extent_b, long long extent_m, long long extent_n) {
  return !splits_use_workspace() ? 0 : output_tiles(extent_b, extent_m, extent_n) * Config::kConsumersPerTile * 4;
}

RULE("tiles_fit", "there are at most 2^31 - 1 output tiles, all splits counted")
__host__ __device__ constexpr bool tiles_fit(long long extent_b, long long extent_m, long long extent_n) {
  return output_tiles(extent_b, extent_m, extent_n) * Config::SPLIT_K <= 2147483647;
}

RULE("workspace_is_small", "split-K may use at most 256 MiB of partial sums")
__host__ __device__ constexpr bool workspace_is_small(long long extent_b, long long extent_m, long long extent_n) {
  return partial_sums_bytes(extent_b, extent_m, extent_n) <= 268435456;
}

// ---- Estimates for the analytic model: docs/adding-a-template.md --------------------------------------------------------------

ESTIMATE("threads_per_cta") __host__ __device__ constexpr long long threads_per_cta() { return Config::kThreads; }
ESTIMATE("smem_bytes_per_cta") __host__ __device__ constexpr long long smem_bytes_per_cta() { return smem_bytes(); }
ESTIMATE("registers_per_thread")
__host__ __device__ constexpr long long registers_per_thread() { return DeviceLimits::registers_per_sm / Config::kThreads / 8 * 8; }
ESTIMATE("is_tensor_core") __host__ __device__ constexpr long long is_tensor_core() { return 1; }
ESTIMATE("is_warpgroup_mma") __host__ __device__ constexpr long long is_warpgroup_mma() { return 1; }
ESTIMATE("math_type_bytes") __host__ __device__ constexpr long long math_type_bytes() { return 2; }
ESTIMATE("tile_m") __host__ __device__ constexpr long long tile_m() { return Config::BLOCK_M; }
ESTIMATE("tile_n") __host__ __device__ constexpr long long tile_n() { return Config::kTileColumns; }
ESTIMATE("tile_k") __host__ __device__ constexpr long long tile_k() { return Config::BLOCK_K; }
ESTIMATE("warps_m") __host__ __device__ constexpr long long warps_m() { return Config::CONSUMERS * 4; }
ESTIMATE("warps_n") __host__ __device__ constexpr long long warps_n() { return 1; }
ESTIMATE("stages") __host__ __device__ constexpr long long stages() { return Config::STAGES; }
ESTIMATE("group_m") __host__ __device__ constexpr long long group_m() { return Config::GROUP_M * Config::CLUSTER_M; }
ESTIMATE("cluster_m") __host__ __device__ constexpr long long cluster_m() { return Config::CLUSTER_M; }
ESTIMATE("cluster_n") __host__ __device__ constexpr long long cluster_n() { return Config::CLUSTER_N; }
ESTIMATE("ctas")
__host__ __device__ constexpr long long ctas(long long extent_b, long long extent_m, long long extent_n) {
  return output_tiles(extent_b, extent_m, extent_n) * Config::SPLIT_K;
}
ESTIMATE("resident_ctas") __host__ __device__ constexpr long long concurrent_ctas() { return resident_ctas(); }
ESTIMATE("k_steps") __host__ __device__ constexpr long long k_steps(long long extent_k) { return k_blocks_per_split(extent_k); }
ESTIMATE("math_flops_per_cta")
__host__ __device__ constexpr long long math_flops_per_cta(long long extent_k) {
  return 2ll * Config::BLOCK_M * Config::BLOCK_N * Config::BLOCK_K * k_blocks_per_split(extent_k);
}
ESTIMATE("gmem_bytes_per_cta")
__host__ __device__ constexpr long long gmem_bytes_per_cta(long long extent_k) {
  return k_blocks_per_split(extent_k) * (Config::kTileBytesA / Config::CLUSTER_N + Config::kTileBytesB / Config::CLUSTER_M);
}
ESTIMATE("smem_bytes_read_per_cta")
__host__ __device__ constexpr long long smem_bytes_read_per_cta(long long extent_k) {
  return k_blocks_per_split(extent_k) * (Config::kTileBytesA + static_cast<long long>(Config::BLOCK_M) / 64 * Config::kTileBytesB);
}
ESTIMATE("smem_bytes_written_per_cta")
__host__ __device__ constexpr long long smem_bytes_written_per_cta(long long extent_k) {
  return k_blocks_per_split(extent_k) * Config::kStageBytes;
}
ESTIMATE("copy_instructions_per_cta")
__host__ __device__ constexpr long long copy_instructions_per_cta(long long extent_k) { return k_blocks_per_split(extent_k) * 4; }
ESTIMATE("workspace_traffic_bytes")
__host__ __device__ constexpr long long workspace_traffic_bytes(long long extent_b, long long extent_m, long long extent_n) {
  return 2 * partial_sums_bytes(extent_b, extent_m, extent_n);
}
/// The last of a tile's CTAs adds up the other parts; in a cluster each adds a share.
ESTIMATE("split_bytes_per_cta")
__host__ __device__ constexpr long long split_bytes_per_cta() {
  return (Config::SPLIT_K - 1) * 4ll * Config::BLOCK_M * Config::BLOCK_N / (Config::SPLITS_ARE_CLUSTER ? Config::SPLIT_K : 1);
}
/// A wider swizzle costs fewer copies and fewer bank conflicts, and results that pass through smem fewer transactions.
ESTIMATE("is_dominated")
__host__ __device__ constexpr long long is_dominated() {
  const bool has_wider_swizzle = Config::SWIZZLE_BYTES < 128 && Config::kContiguousA * 2 % (2 * Config::SWIZZLE_BYTES) == 0 &&
                                 Config::kContiguousB * 2 % (2 * Config::SWIZZLE_BYTES) == 0;
  const bool has_staged = !Config::IS_STAGED && can_be_staged() && Config::kOutputColumns % 64 == 0 &&
                          smem_bytes() + Config::CONSUMERS * 4 * Config::kResultBytes <= DeviceLimits::max_smem_bytes;
  return has_wider_swizzle || has_staged;
}
