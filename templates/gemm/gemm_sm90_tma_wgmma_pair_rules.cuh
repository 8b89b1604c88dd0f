// Rules and launch of what gemm_sm90_tma_wgmma_pair has beyond gemm_sm90_tma_wgmma: the second right operand, B2. Part of
// gemm/gemm_sm90_tma_wgmma_pair.cuh. SPDX-License-Identifier: Apache-2.0

// ---- Rules ------------------------------------------------------------------------------------------------------------------

RULE("pair_types", "B2 is of B's type")
__host__ __device__ constexpr bool pair_types() { return Config::HAS_ONE_PAIR_TYPE; }

RULE("pair_layouts", "B and B2 are contiguous along the same axis")
__host__ __device__ constexpr bool pair_layouts() {
  return Config::B_IS_K_CONTIGUOUS == Config::B2_IS_K_CONTIGUOUS &&
         (Config::B_IS_K_CONTIGUOUS || Config::B_IS_N_CONTIGUOUS == Config::B2_IS_N_CONTIGUOUS);
}

RULE("halves_are_panels", "B and B2 give whole panels each where their lines run along n")
__host__ __device__ constexpr bool halves_are_panels() {
  return Config::B_IS_K_CONTIGUOUS || Config::kOutputColumns * 2 % Config::SWIZZLE_BYTES == 0;
}

RULE("b2_is_aligned", "TMA needs B2's pointer and its row and batch strides to be multiples of 16 bytes")
__host__ __device__ constexpr bool b2_is_aligned(long long extent_b, long long B2_stride_b, long long B2_stride_n, long long B2_stride_k,
                                                 long long B2_align) {
  return B2_align % 16 == 0 && (Config::B_IS_K_CONTIGUOUS ? B2_stride_n : B2_stride_k) % 8 == 0 && (extent_b <= 1 || B2_stride_b % 8 == 0);
}

RULE("b2_strides_fit", "TMA's strides are below 2^40 bytes")
__host__ __device__ constexpr bool b2_strides_fit(long long B2_stride_b, long long B2_stride_n, long long B2_stride_k) {
  return B2_stride_b < 549755813888 && B2_stride_n < 549755813888 && B2_stride_k < 549755813888;
}

// ---- Launch -----------------------------------------------------------------------------------------------------------------

LAUNCH("tensor_map:B2_map:extent_0")
__host__ __device__ constexpr long long b2_map_contiguous(long long extent_n, long long extent_k) {
  return Config::B_IS_K_CONTIGUOUS ? extent_k : extent_n;
}
LAUNCH("tensor_map:B2_map:extent_1")
__host__ __device__ constexpr long long b2_map_lines(long long extent_n, long long extent_k) {
  return Config::B_IS_K_CONTIGUOUS ? extent_n : extent_k;
}
LAUNCH("tensor_map:B2_map:extent_2") __host__ __device__ constexpr long long b2_map_batches(long long extent_b) { return extent_b; }
LAUNCH("tensor_map:B2_map:stride_1")
__host__ __device__ constexpr long long b2_map_line_bytes(long long B2_stride_n, long long B2_stride_k) {
  return (Config::B_IS_K_CONTIGUOUS ? B2_stride_n : B2_stride_k) * 2;
}
LAUNCH("tensor_map:B2_map:stride_2")
__host__ __device__ constexpr long long b2_map_batch_bytes(long long extent_b, long long B2_stride_b) {
  return extent_b <= 1 ? 16 : B2_stride_b * 2;
}
LAUNCH("tensor_map:B2_map:box_0") __host__ __device__ constexpr long long b2_map_box_contiguous() { return Config::SWIZZLE_BYTES / 2; }
LAUNCH("tensor_map:B2_map:box_1")
__host__ __device__ constexpr long long b2_map_box_lines() { return Config::kBoxLinesB; }
LAUNCH("tensor_map:B2_map:box_2") __host__ __device__ constexpr long long b2_map_box_batches() { return 1; }
LAUNCH("tensor_map:B2_map:swizzle") __host__ __device__ constexpr long long b2_map_swizzle() { return Config::SWIZZLE_BYTES; }
