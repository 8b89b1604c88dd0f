// Contract: out[b, m, n] = epilogue(sum over k of A[b, m, k] * B[b, k, n]) on the CUDA cores, wrong in one way: FAULT says in which.
//   Any strides, alignment and extents, sums in float. For tests of the tuner alone, never shipped: each value of FAULT must end as one
//   row with its status and leave the other variants of the run alone. The list of values with their statuses is in
//   scripts/planted_faults_test.py. The output tensor of the op must be called `out`, with a row stride: kKeepsOldOutput reads it back.
// Technique: the plainest tiled product, 64 x 64 outputs a CTA, 4 x 4 a thread, one panel of 16 k in smem. Each fault is a few lines.
// SPDX-License-Identifier: Apache-2.0

#include "parts/annotations.cuh"
#include "parts/gemm_problem.cuh"
#include "parts/tile_raster.cuh"
#include "parts/types.cuh"
#include "ptx/global.cuh"
#include "ptx/trap.cuh"

// ---- Config -----------------------------------------------------------------------------------------------------------------

struct Config {
  using ElementA BIND("dtype:A") = float;
  using ElementB BIND("dtype:B") = float;
  using Accumulator BIND("dtype:accumulate") = float;
  TUNE("fault", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)
  static constexpr int FAULT = 1;  ///< one of the kinds below

  static constexpr bool kWritesNothing = FAULT == 1;       ///< the output stays as it was
  static constexpr bool kReadsFarOutside = FAULT == 2;     ///< an address that no allocation holds
  static constexpr bool kReadsPastEnd = FAULT == 3;        ///< A is not masked along k: the last row's tail lies past the tensor, times 0
  static constexpr bool kWritesPastEnd = FAULT == 4;       ///< one element behind the output
  static constexpr bool kHangs = FAULT == 5;               ///< waits for what nobody writes
  static constexpr bool kIsRightOnce = FAULT == 6;         ///< writes in its first launch alone
  static constexpr bool kKeepsOldOutput = FAULT == 7;      ///< writes only where the output holds no number yet
  static constexpr bool kCachesByPointer = FAULT == 8;     ///< remembers sums by the addresses of A and B: new inputs there give old sums
  static constexpr bool kDropsTailOfK = FAULT == 9;        ///< k beyond the last whole panel is left out
  static constexpr bool kIsWrongInLastRow = FAULT == 10;   ///< by one
  static constexpr bool kIsWrongInLastTile = FAULT == 11;  ///< in a single element amid it
  static constexpr bool kTakesTooMuchSmem = FAULT == 12;   ///< more than any device has
  static constexpr bool kTraps = FAULT == 13;              ///< an instruction that ends the context
  static constexpr bool kIsMisaligned = FAULT == 14;       ///< 16 bytes from an address that is no multiple of 16
  static constexpr bool kCrashesCompiler = FAULT == 15;    ///< deep_index below
  static constexpr bool kHangsCompiler = FAULT == 16;      ///< long_chain below
  static constexpr bool kSpills = FAULT == 17;             ///< asks for more CTAs an SM than its registers allow
  static constexpr bool kStopsWhenTimed = FAULT == 18;     ///< right in its first launches, then does nothing
  static constexpr bool kHalvesWhenTimed = FAULT == 19;    ///< right in its first launches, then leaves every other tile out
  static constexpr bool kReadsPastEndIdly = FAULT == 20;   ///< an element behind A that changes nothing

  static constexpr int BLOCK_M = 64;
  static constexpr int BLOCK_N = 64;
  static constexpr int BLOCK_K = 16;
  static constexpr int kThreads = 256;
  static constexpr int kThreadM = 4;
  static constexpr int kThreadN = 4;
  static constexpr int kThreadsN = BLOCK_N / kThreadN;
  static constexpr int kLoads = BLOCK_M * BLOCK_K / kThreads;  ///< elements of a panel, of A and of B, that one thread brings
  static constexpr bool kCountsLaunches = kIsRightOnce || kStopsWhenTimed || kHalvesWhenTimed;
  /// A check launches a kernel six times, a measurement thousands of times.
  static constexpr unsigned kRightLaunches = kIsRightOnce ? 1 : 16;
  static constexpr int kCachedTiles = 256;
  static constexpr int kMinCtasPerSm = kSpills ? 8 : 1;  ///< 8 x 256 threads: 32 registers each
};

#include "parts/epilogue.cuh"

// ---- Rules: which configs exist ---------------------------------------------------------------------------------------------

RULE("sums_are_float", "the planted faults are written for sums in float")
__host__ __device__ constexpr bool sums_are_float() { return sizeof(Config::Accumulator) == 4; }

// ---- Launch -----------------------------------------------------------------------------------------------------------------

__host__ __device__ constexpr long long tiles_m(long long extent_m) { return (extent_m + Config::BLOCK_M - 1) / Config::BLOCK_M; }
__host__ __device__ constexpr long long tiles_n(long long extent_n) { return (extent_n + Config::BLOCK_N - 1) / Config::BLOCK_N; }

LAUNCH("grid_x")
__host__ __device__ constexpr long long grid_x(long long extent_b, long long extent_m, long long extent_n) {
  return tiles_m(extent_m) * tiles_n(extent_n) * extent_b;
}
LAUNCH("block_x") __host__ __device__ constexpr long long block_x() { return Config::kThreads; }

__host__ __device__ constexpr long long smem_bytes() { return 4 * Config::BLOCK_K * (Config::BLOCK_M + Config::BLOCK_N); }
LAUNCH("dynamic_smem_bytes")
__host__ __device__ constexpr long long dynamic_smem_bytes() { return Config::kTakesTooMuchSmem ? 524288 : smem_bytes(); }

// ---- Estimates for the analytic model: docs/adding-a-template.md --------------------------------------------------------------

// Those of a tensor core, so that the model ranks the faults before most variants, which are then measured after them.
ESTIMATE("threads_per_cta") __host__ __device__ constexpr long long threads_per_cta() { return Config::kThreads; }
ESTIMATE("smem_bytes_per_cta") __host__ __device__ constexpr long long smem_bytes_per_cta() { return smem_bytes(); }
ESTIMATE("registers_per_thread") __host__ __device__ constexpr long long registers_per_thread() { return 64; }
ESTIMATE("is_tensor_core") __host__ __device__ constexpr long long is_tensor_core() { return 1; }
ESTIMATE("math_type_bytes") __host__ __device__ constexpr long long math_type_bytes() { return 2; }
ESTIMATE("tile_m") __host__ __device__ constexpr long long tile_m() { return Config::BLOCK_M; }
ESTIMATE("tile_n") __host__ __device__ constexpr long long tile_n() { return Config::BLOCK_N; }
ESTIMATE("tile_k") __host__ __device__ constexpr long long tile_k() { return Config::BLOCK_K; }
ESTIMATE("warps_m") __host__ __device__ constexpr long long warps_m() { return 2; }
ESTIMATE("warps_n") __host__ __device__ constexpr long long warps_n() { return 4; }
ESTIMATE("ctas")
__host__ __device__ constexpr long long ctas(long long extent_b, long long extent_m, long long extent_n) {
  return grid_x(extent_b, extent_m, extent_n);
}
ESTIMATE("k_steps")
__host__ __device__ constexpr long long k_steps(long long extent_k) { return (extent_k + Config::BLOCK_K - 1) / Config::BLOCK_K; }
ESTIMATE("math_flops_per_cta")
__host__ __device__ constexpr long long math_flops_per_cta(long long extent_k) {
  return 2ll * Config::BLOCK_M * Config::BLOCK_N * Config::BLOCK_K * k_steps(extent_k);
}
ESTIMATE("gmem_bytes_per_cta")
__host__ __device__ constexpr long long gmem_bytes_per_cta(long long extent_k) {
  return k_steps(extent_k) * Config::BLOCK_K * (Config::BLOCK_M + Config::BLOCK_N) * static_cast<long long>(sizeof(Config::ElementA));
}
ESTIMATE("smem_bytes_read_per_cta")
__host__ __device__ constexpr long long smem_bytes_read_per_cta(long long extent_k) { return gmem_bytes_per_cta(extent_k); }
ESTIMATE("smem_bytes_written_per_cta")
__host__ __device__ constexpr long long smem_bytes_written_per_cta(long long extent_k) { return gmem_bytes_per_cta(extent_k); }
ESTIMATE("copy_instructions_per_cta")
__host__ __device__ constexpr long long copy_instructions_per_cta(long long extent_k) {
  return k_steps(extent_k) * 2 * Config::kLoads * Config::kThreads / 32;
}

// ---- What outlives a launch -----------------------------------------------------------------------------------------------------

/// Launches that have ended, and CTAs of this launch that have.
__device__ unsigned num_ended_launches;
__device__ unsigned num_ended_ctas;

/// Sums of the tiles computed last, and the operands' addresses and the extent of k that they were computed from.
__device__ float cached_sums[Config::kCachedTiles][Config::BLOCK_M * Config::BLOCK_N];
__device__ unsigned long long cached_key[Config::kCachedTiles][3];

// ---- Too much for a compiler ----------------------------------------------------------------------------------------------------

/// 2^kDoublings steps in a row once all calls are inlined. As an address that is formed in a loop it takes NVVM's scalar evolution as many
/// calls deep: its stack of 8 MB overflows (NVRTC 12.9 and 13.0: signal 11 from 2^14 steps on, after a second).
template <int kDoublings>
__device__ __forceinline__ int deep_index(int index, int step) {
  if constexpr (kDoublings == 0) {
    return index * 3 + step;
  } else {
    return deep_index<kDoublings - 1>(deep_index<kDoublings - 1>(index, step), step);
  }
}

/// The same for values: no recursion, but a time that grows with the square (NVRTC 13.0: 2^14 steps 3 s, 2^16 steps more than 130 s, in
/// less than 400 MB).
template <int kDoublings>
__device__ __forceinline__ float long_chain(float value, float factor) {
  if constexpr (kDoublings == 0) {
    return value * factor + factor;
  } else {
    return long_chain<kDoublings - 1>(long_chain<kDoublings - 1>(value, factor), factor);
  }
}

// ---- Device parts ---------------------------------------------------------------------------------------------------------------

/// The panels of A [BLOCK_K][BLOCK_M] and B [BLOCK_K][BLOCK_N] at k; what lies outside the problem is 0.
__device__ __forceinline__ void load_panels(const Config::ElementA* A, const Config::ElementB* B, const GemmProblem& problem,
                                            long long first_m, long long first_n, long long k, float* panel_a, float* panel_b) {
#pragma unroll
  for (int load = 0; load < Config::kLoads; ++load) {
    const int at = static_cast<int>(threadIdx.x) + load * Config::kThreads;
    const long long in_k = k + at / Config::BLOCK_M;
    const long long m = first_m + at % Config::BLOCK_M;
    const long long n = first_n + at % Config::BLOCK_N;
    const bool is_in_k = in_k < problem.extent_k;
    panel_a[at] = 0.0f;
    panel_b[at] = 0.0f;
    if (m < problem.extent_m && (is_in_k || Config::kReadsPastEnd)) {
      panel_a[at] = to_accumulator<float>(A[m * problem.A_stride_m + in_k * problem.A_stride_k]);
    }
    if (n < problem.extent_n && is_in_k) {
      panel_b[at] = to_accumulator<float>(B[in_k * problem.B_stride_k + n * problem.B_stride_n]);
    }
  }
}

/// sums = rows of A times columns of B, over the first extent_k of k.
__device__ __forceinline__ void multiply(const Config::ElementA* A, const Config::ElementB* B, const GemmProblem& problem,
                                         long long first_m, long long first_n, long long extent_k, float* smem,
                                         float (&sums)[Config::kThreadM][Config::kThreadN]) {
  float* panel_a = smem;
  float* panel_b = smem + Config::BLOCK_K * Config::BLOCK_M;
  const int row = static_cast<int>(threadIdx.x) / Config::kThreadsN * Config::kThreadM;
  const int column = static_cast<int>(threadIdx.x) % Config::kThreadsN * Config::kThreadN;
#pragma unroll 1
  for (long long k = 0; k < extent_k; k += Config::BLOCK_K) {
    load_panels(A, B, problem, first_m, first_n, k, panel_a, panel_b);
    __syncthreads();
#pragma unroll
    for (int in_panel = 0; in_panel < Config::BLOCK_K; ++in_panel) {
#pragma unroll
      for (int i = 0; i < Config::kThreadM; ++i) {
#pragma unroll
        for (int j = 0; j < Config::kThreadN; ++j) {
          sums[i][j] += panel_a[in_panel * Config::BLOCK_M + row + i] * panel_b[in_panel * Config::BLOCK_N + column + j];
        }
      }
    }
    __syncthreads();
  }
}

/// Takes the tile's sums from the cache when they were computed from operands at these addresses; else false.
__device__ __forceinline__ bool take_cached(unsigned long long a, unsigned long long b, unsigned long long extent_k,
                                            float (&sums)[Config::kThreadM][Config::kThreadN]) {
  if (blockIdx.x >= Config::kCachedTiles) {
    return false;
  }
  const unsigned long long(&key)[3] = cached_key[blockIdx.x];
  if (key[0] != a || key[1] != b || key[2] != extent_k) {
    return false;
  }
#pragma unroll
  for (int i = 0; i < Config::kThreadM * Config::kThreadN; ++i) {
    sums[i / Config::kThreadN][i % Config::kThreadN] = cached_sums[blockIdx.x][i * Config::kThreads + threadIdx.x];
  }
  return true;
}

__device__ __forceinline__ void put_in_cache(unsigned long long a, unsigned long long b, unsigned long long extent_k,
                                             const float (&sums)[Config::kThreadM][Config::kThreadN]) {
  if (blockIdx.x >= Config::kCachedTiles) {
    return;
  }
#pragma unroll
  for (int i = 0; i < Config::kThreadM * Config::kThreadN; ++i) {
    cached_sums[blockIdx.x][i * Config::kThreads + threadIdx.x] = sums[i / Config::kThreadN][i % Config::kThreadN];
  }
  if (threadIdx.x == 0) {
    cached_key[blockIdx.x][0] = a;
    cached_key[blockIdx.x][1] = b;
    cached_key[blockIdx.x][2] = extent_k;
  }
}

/// Faults that strike before the product is formed.
__device__ __forceinline__ void strike_early(const Config::ElementA* A, const GemmProblem& problem, float* smem) {
  if constexpr (Config::kHangs) {
    if (threadIdx.x == 0) {
      smem[0] = 0.0f;
    }
    __syncthreads();
    const volatile float* flag = smem;
    while (*flag == 0.0f) {
    }
    __syncthreads();
  }
  if constexpr (Config::kReadsFarOutside) {
    const volatile char* far = reinterpret_cast<const volatile char*>(A) + (1ll << 44);
    if (*far == 1 && threadIdx.x == 0) {
      smem[0] = 0.0f;
    }
  }
  if constexpr (Config::kReadsPastEndIdly) {
    const long long end = (problem.extent_m - 1) * problem.A_stride_m + (problem.extent_k - 1) * problem.A_stride_k + 1;
    const volatile char* behind = reinterpret_cast<const volatile char*>(A + end);
    if (*behind == 1 && threadIdx.x == 0) {
      smem[0] = 0.0f;
    }
  }
  if constexpr (Config::kTraps) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      trap();
    }
  }
  if constexpr (Config::kIsMisaligned) {
    unsigned words[4];
    ld_global_v4_b32(reinterpret_cast<const char*>(A) + 2, words[0], words[1], words[2], words[3]);
    if (words[0] == 1u && threadIdx.x == 0) {
      smem[0] = 0.0f;
    }
  }
}

/// Faults in one sum.
__device__ __forceinline__ float spoilt(float sum, const GemmProblem& problem, long long first_m, long long first_n, long long m,
                                        long long n) {
  if constexpr (Config::kIsWrongInLastRow) {
    return m == problem.extent_m - 1 ? sum + 1.0f : sum;
  }
  if constexpr (Config::kIsWrongInLastTile) {
    const bool is_last_tile = first_m + Config::BLOCK_M >= problem.extent_m && first_n + Config::BLOCK_N >= problem.extent_n;
    const bool is_its_middle = m == (first_m + problem.extent_m) / 2 && n == (first_n + problem.extent_n) / 2;
    return is_last_tile && is_its_middle ? sum + 1000.0f : sum;  // so much that no relu hides it
  }
  if constexpr (Config::kCrashesCompiler) {
    float value = sum;
    for (int step = 0; step < problem.extent_k; ++step) {
      value += cached_sums[0][deep_index<15>(static_cast<int>(m), step)];
    }
    return value;
  }
  if constexpr (Config::kHangsCompiler) {
    return long_chain<17>(sum, static_cast<float>(m));
  }
  return sum;
}

__device__ __forceinline__ void store_tile(const float (&sums)[Config::kThreadM][Config::kThreadN], const GemmProblem& problem,
                                           const EpilogueArgs& epilogue, long long b, long long first_m, long long first_n) {
  const int row = static_cast<int>(threadIdx.x) / Config::kThreadsN * Config::kThreadM;
  const int column = static_cast<int>(threadIdx.x) % Config::kThreadsN * Config::kThreadN;
#pragma unroll
  for (int i = 0; i < Config::kThreadM; ++i) {
#pragma unroll
    for (int j = 0; j < Config::kThreadN; ++j) {
      const long long m = first_m + row + i;
      const long long n = first_n + column + j;
      if (m < problem.extent_m && n < problem.extent_n) {
        const float value[1] = {spoilt(sums[i][j], problem, first_m, first_n, m, n)};
        if constexpr (Config::kKeepsOldOutput) {
          const float old = to_accumulator<float>(epilogue.out[m * epilogue.out_stride_m + n]);
          if (old == old) {
            continue;
          }
        }
        epilogue_store<1>(epilogue, b, m, n, value, 1);
        if constexpr (Config::kWritesPastEnd) {
          if (m == problem.extent_m - 1 && n == problem.extent_n - 1) {
            epilogue_store<1>(epilogue, b, m, n + 1, value, 1);
          }
        }
      }
    }
  }
}

/// The last CTA of a launch counts it. All CTAs of a launch have read the count before: each counts itself when it is done.
__device__ __forceinline__ void count_launch() {
  __syncthreads();
  if (threadIdx.x == 0 && atom_inc_acq_rel(&num_ended_ctas, gridDim.x - 1) == gridDim.x - 1) {
    num_ended_launches += 1;
  }
}

// ---- Kernel -------------------------------------------------------------------------------------------------------------------

COMPUTES("out[b,m,n] = epilogue(sum[k](A[b,m,k] * B[b,k,n]))")
REQUIRES_ARCH("sm_80")
extern "C" __global__ void __launch_bounds__(Config::kThreads, Config::kMinCtasPerSm)
    planted_faults(const Config::ElementA* A, const Config::ElementB* B, GemmProblem problem, EpilogueArgs epilogue) {
  alignas(16) extern __shared__ unsigned char smem_bytes_of_cta[];
  float* smem = reinterpret_cast<float*>(smem_bytes_of_cta);
  const TileCoordinate tile =
      locate_tile(blockIdx.x, static_cast<unsigned>(tiles_m(problem.extent_m)), static_cast<unsigned>(tiles_n(problem.extent_n)), 8);
  const long long first_m = static_cast<long long>(tile.tile_m) * Config::BLOCK_M;
  const long long first_n = static_cast<long long>(tile.tile_n) * Config::BLOCK_N;
  A += tile.batch * problem.A_stride_b;
  B += tile.batch * problem.B_stride_b;

  strike_early(A, problem, smem);
  bool is_left_out = Config::kWritesNothing;
  if constexpr (Config::kCountsLaunches) {
    const bool is_late = num_ended_launches >= Config::kRightLaunches;
    is_left_out = is_late && (!Config::kHalvesWhenTimed || blockIdx.x % 2 == 1);
  }
  if (!is_left_out) {
    float sums[Config::kThreadM][Config::kThreadN] = {};
    const long long extent_k = Config::kDropsTailOfK ? problem.extent_k / Config::BLOCK_K * Config::BLOCK_K : problem.extent_k;
    if constexpr (Config::kCachesByPointer) {
      const unsigned long long a = reinterpret_cast<unsigned long long>(A);
      const unsigned long long b = reinterpret_cast<unsigned long long>(B);
      if (!take_cached(a, b, static_cast<unsigned long long>(extent_k), sums)) {
        __syncthreads();
        multiply(A, B, problem, first_m, first_n, extent_k, smem, sums);
        put_in_cache(a, b, static_cast<unsigned long long>(extent_k), sums);
      }
    } else {
      multiply(A, B, problem, first_m, first_n, extent_k, smem, sums);
    }
    store_tile(sums, problem, epilogue, tile.batch, first_m, first_n);
  }
  if constexpr (Config::kCountsLaunches) {
    count_launch();
  }
}
