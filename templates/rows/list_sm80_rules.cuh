// Rules, launch and estimates of list_sm80: which configs are legal, how a kernel is launched, and what the analytic model counts.
// Part of rows/list_sm80.cuh, which defines Config before it includes this file.
// Contract: a RULE that is false refuses the config by its name (docs/adding-a-template.md). SPDX-License-Identifier: Apache-2.0

// ---- Rules on the config ------------------------------------------------------------------------------------------------------

RULE("vectors_are_narrow", "a vector is at most 16 bytes of every tensor on average")
__host__ __device__ constexpr bool vectors_are_narrow() { return Config::VEC * sizeof(Config::Accumulator) <= 32; }

RULE("registers_fit", "a thread's vectors fit its registers, and the CTAs of an SM fit its register file")
__host__ __device__ constexpr bool registers_fit() {
  return Config::kRegisters <= 168 && Config::kRegisters * Config::THREADS * Config::CTAS_PER_SM <= DeviceLimits::registers_per_sm;
}

RULE("ctas_fit", "an SM holds 2048 threads")
__host__ __device__ constexpr bool ctas_fit() { return Config::CTAS_PER_SM * Config::THREADS <= 2048; }

// ---- Rules on the problem -------------------------------------------------------------------------------------------------------

RULE("extents_fit", "a list has at most 2^24 tensors of at most 2^40 elements")
__host__ __device__ constexpr bool extents_fit(long long extent_m, long long extent_n) {
  return extent_m <= 16777216 && extent_n <= 1099511627776;
}

// ---- Launch ---------------------------------------------------------------------------------------------------------------------

__host__ __device__ constexpr long long chunks_at_most(long long extent_m, long long extent_n) {
  return extent_m * ((extent_n + Config::kChunk - 1) / Config::kChunk);
}

/// One CTA at least: the reduction over an empty list has a value.
LAUNCH("grid_x") __host__ __device__ constexpr long long grid_x(long long extent_m, long long extent_n) {
  return chunks_at_most(extent_m, extent_n) >= DeviceLimits::num_sms * Config::CTAS_PER_SM ? DeviceLimits::num_sms * Config::CTAS_PER_SM
         : chunks_at_most(extent_m, extent_n) > 0                                          ? chunks_at_most(extent_m, extent_n)
                                                                                           : Config::PHASES;
}
LAUNCH("block_x") __host__ __device__ constexpr long long block_x() { return Config::THREADS; }
LAUNCH("is_persistent") __host__ __device__ constexpr long long is_persistent() { return 1; }
LAUNCH("workspace:parts") __host__ __device__ constexpr long long parts_bytes(long long extent_m, long long extent_n) {
  return Config::PHASES * grid_x(extent_m, extent_n) * Config::REDUCTIONS * sizeof(Config::Accumulator);
}
LAUNCH("workspace_zeroed:arrivals") __host__ __device__ constexpr long long arrivals_bytes() { return Config::PHASES * 4; }

// ---- Estimates for the analytic model: docs/adding-a-template.md --------------------------------------------------------------

ESTIMATE("threads_per_cta") __host__ __device__ constexpr long long threads_per_cta() { return Config::THREADS; }
ESTIMATE("smem_bytes_per_cta") __host__ __device__ constexpr long long smem_bytes_per_cta() { return 1024; }
ESTIMATE("registers_per_thread") __host__ __device__ constexpr long long registers_per_thread() { return Config::kRegisters; }
ESTIMATE("is_tensor_core") __host__ __device__ constexpr long long is_tensor_core() { return 0; }
ESTIMATE("math_type_bytes") __host__ __device__ constexpr long long math_type_bytes() { return 4; }
ESTIMATE("tile_m") __host__ __device__ constexpr long long tile_m() { return 1; }
ESTIMATE("tile_n") __host__ __device__ constexpr long long tile_n() { return Config::kChunk; }
ESTIMATE("ctas") __host__ __device__ constexpr long long ctas(long long extent_m, long long extent_n) { return grid_x(extent_m, extent_n); }
ESTIMATE("k_steps") __host__ __device__ constexpr long long k_steps(long long extent_m, long long extent_n) {
  return grid_x(extent_m, extent_n) > 0 ? (chunks_at_most(extent_m, extent_n) + grid_x(extent_m, extent_n) - 1) / grid_x(extent_m, extent_n)
                                        : 0;
}
ESTIMATE("math_flops_per_cta")
__host__ __device__ constexpr long long math_flops_per_cta(long long extent_m, long long extent_n) {
  return Config::kChunk * k_steps(extent_m, extent_n) * 16ll;
}
ESTIMATE("gmem_bytes_per_cta")
__host__ __device__ constexpr long long gmem_bytes_per_cta(long long extent_m, long long extent_n) {
  return Config::kChunk * k_steps(extent_m, extent_n) * Config::BYTES_PER_COLUMN;
}
/// A chunk is found, loaded, worked out and stored in turn; other CTAs of the SM fill the gaps.
ESTIMATE("lifetime_clocks_per_cta")
__host__ __device__ constexpr long long lifetime_clocks_per_cta(long long extent_m, long long extent_n) {
  return 600 + extent_m * 10 +
         (1300 + Config::kChunk * Config::BYTES_PER_COLUMN / 39 + Config::kChunk * 20 / 128) * k_steps(extent_m, extent_n);
}
