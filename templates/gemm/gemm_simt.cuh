// Contract: out[b, m, n] = epilogue(sum over k of A[b, m, k] * B[b, k, n]) on the CUDA cores, for every problem.
//   A [B, M, K] and B [B, K, N]: any element type of parts/types.cuh, any strides, any alignment, any extents. K = 0 gives epilogue(0).
//   Sums in Config::Accumulator (float, double, int, long long), k in ascending order. sm_80 and up. It refuses no problem:
//   the baseline on the device, and the fall-back where no faster template is legal.
// Technique: register blocking. Each thread holds THREAD_M x THREAD_N sums; a CTA streams BLOCK_K-deep panels of A and B through
//   two smem buffers, so that the next panel is on its way from gmem while this one is multiplied.
// SPDX-License-Identifier: Apache-2.0

#include "parts/annotations.cuh"
#include "parts/gemm_problem.cuh"
#include "parts/tile_raster.cuh"
#include "parts/types.cuh"
#include "ptx/grid_dependency.cuh"

// ---- Config -----------------------------------------------------------------------------------------------------------------

struct Config {
  using ElementA BIND("dtype:A") = float;
  using ElementB BIND("dtype:B") = float;
  using Accumulator BIND("dtype:accumulate") = float;
  BIND("unit_stride:A:k") static constexpr bool A_IS_K_CONTIGUOUS = true;   ///< neighbouring threads read along k, else along m
  BIND("unit_stride:B:n") static constexpr bool B_IS_N_CONTIGUOUS = false;  ///< neighbouring threads read along n, else along k
  BIND("is_dependent") static constexpr bool IS_DEPENDENT = false;          ///< begins while the kernel before it in a plan runs
  BIND("is_followed") static constexpr bool IS_FOLLOWED = false;            ///< the kernel after it in a plan may begin while it runs
  TUNE("m", 16, 32, 64, 128) static constexpr int BLOCK_M = 64;             ///< rows of a CTA's output tile
  TUNE("n", 32, 64, 128) static constexpr int BLOCK_N = 64;                 ///< columns of a CTA's output tile
  TUNE("k", 8, 16, 32) static constexpr int BLOCK_K = 16;                   ///< depth of a panel
  TUNE("tm", 2, 4, 8) static constexpr int THREAD_M = 4;                    ///< rows of a thread's part
  TUNE("tn", 4, 8) static constexpr int THREAD_N = 4;                       ///< columns of a thread's part

  static constexpr int kThreadsM = BLOCK_M / THREAD_M;
  static constexpr int kThreadsN = BLOCK_N / THREAD_N;
  static constexpr int kThreads = kThreadsM * kThreadsN;
  static constexpr int kVecM = THREAD_M < 4 ? THREAD_M : 4;  ///< neighbouring rows of a thread: one wide smem load
  static constexpr int kVecN = 4;                            ///< neighbouring columns of a thread: one wide smem load, one wide store
  static constexpr int kPitchA = BLOCK_M + 4;                ///< elements from one k to the next; the pad spreads a column over the banks
  static constexpr int kPitchB = BLOCK_N + 4;
  static constexpr int kElementsPerBuffer = BLOCK_K * (kPitchA + kPitchB);
  static constexpr int kLoadsA = BLOCK_M * BLOCK_K / kThreads;  ///< elements of a panel that one thread brings
  static constexpr int kLoadsB = BLOCK_N * BLOCK_K / kThreads;
};

#include "parts/epilogue.cuh"

// ---- Rules: which configs exist ---------------------------------------------------------------------------------------------

RULE("threads_fit", "a CTA has whole warps, at least 32 threads and at most what the device allows")
__host__ __device__ constexpr bool threads_fit() {
  return Config::kThreads % 32 == 0 && Config::kThreads >= 32 && Config::kThreads <= 512 &&
         Config::kThreads <= DeviceLimits::max_threads_per_cta;
}

RULE("panel_is_shared_evenly", "every thread brings the same number of elements of a panel, at least one, at most 32")
__host__ __device__ constexpr bool panel_is_shared_evenly() {
  return Config::BLOCK_M * Config::BLOCK_K % Config::kThreads == 0 && Config::BLOCK_N * Config::BLOCK_K % Config::kThreads == 0 &&
         Config::BLOCK_M * Config::BLOCK_K >= Config::kThreads && Config::BLOCK_N * Config::BLOCK_K >= Config::kThreads &&
         Config::kLoadsA + Config::kLoadsB <= 32;
}

__host__ __device__ constexpr int registers_needed() {
  const int words = sizeof(Config::Accumulator) / 4;
  return words * (Config::THREAD_M * Config::THREAD_N + Config::THREAD_M + Config::THREAD_N + Config::kLoadsA + Config::kLoadsB) + 48;
}

RULE("registers_fit", "sums, operands and the panel in flight must fit a thread's registers")
__host__ __device__ constexpr bool registers_fit() {
  return registers_needed() <= DeviceLimits::max_registers_per_thread &&
         registers_needed() * Config::kThreads <= DeviceLimits::registers_per_sm;
}

__host__ __device__ constexpr long long smem_bytes() {
  return 2 * Config::kElementsPerBuffer * static_cast<long long>(sizeof(Config::Accumulator));
}

RULE("smem_fits", "two panels of A and B must fit one CTA's shared memory")
__host__ __device__ constexpr bool smem_fits() { return smem_bytes() <= DeviceLimits::max_smem_bytes; }

// ---- Launch -----------------------------------------------------------------------------------------------------------------

__host__ __device__ constexpr long long tiles_m(long long extent_m) { return (extent_m + Config::BLOCK_M - 1) / Config::BLOCK_M; }
__host__ __device__ constexpr long long tiles_n(long long extent_n) { return (extent_n + Config::BLOCK_N - 1) / Config::BLOCK_N; }

LAUNCH("grid_x")
__host__ __device__ constexpr long long grid_x(long long extent_b, long long extent_m, long long extent_n) {
  return tiles_m(extent_m) * tiles_n(extent_n) * extent_b;
}
RULE("grid_fits", "the grid has at most 2^31 - 1 output tiles")
__host__ __device__ constexpr bool grid_fits(long long extent_b, long long extent_m, long long extent_n) {
  return grid_x(extent_b, extent_m, extent_n) <= 2147483647;
}

RULE("extents_fit", "M and N are at most 2^30: tile coordinates are 32-bit")
__host__ __device__ constexpr bool extents_fit(long long extent_m, long long extent_n) {
  return extent_m <= 1073741824 && extent_n <= 1073741824;
}

LAUNCH("block_x") __host__ __device__ constexpr long long block_x() { return Config::kThreads; }
LAUNCH("dynamic_smem_bytes") __host__ __device__ constexpr long long dynamic_smem_bytes() { return smem_bytes(); }

// ---- Estimates for the analytic model: docs/adding-a-template.md --------------------------------------------------------------

__host__ __device__ constexpr long long panels(long long extent_k) { return (extent_k + Config::BLOCK_K - 1) / Config::BLOCK_K; }

ESTIMATE("threads_per_cta") __host__ __device__ constexpr long long threads_per_cta() { return Config::kThreads; }
ESTIMATE("smem_bytes_per_cta") __host__ __device__ constexpr long long smem_bytes_per_cta() { return smem_bytes(); }
ESTIMATE("registers_per_thread") __host__ __device__ constexpr long long registers_per_thread() { return registers_needed(); }
ESTIMATE("is_tensor_core") __host__ __device__ constexpr long long is_tensor_core() { return 0; }
ESTIMATE("math_type_bytes") __host__ __device__ constexpr long long math_type_bytes() { return sizeof(Config::Accumulator); }
ESTIMATE("tile_m") __host__ __device__ constexpr long long tile_m() { return Config::BLOCK_M; }
ESTIMATE("tile_n") __host__ __device__ constexpr long long tile_n() { return Config::BLOCK_N; }
ESTIMATE("tile_k") __host__ __device__ constexpr long long tile_k() { return Config::BLOCK_K; }
ESTIMATE("stages") __host__ __device__ constexpr long long stages() { return 2; }
ESTIMATE("group_m") __host__ __device__ constexpr long long group_m() { return 8; }
ESTIMATE("ctas")
__host__ __device__ constexpr long long ctas(long long extent_b, long long extent_m, long long extent_n) {
  return grid_x(extent_b, extent_m, extent_n);
}
ESTIMATE("k_steps") __host__ __device__ constexpr long long k_steps(long long extent_k) { return panels(extent_k); }
ESTIMATE("math_flops_per_cta")
__host__ __device__ constexpr long long math_flops_per_cta(long long extent_k) {
  return 2ll * Config::BLOCK_M * Config::BLOCK_N * Config::BLOCK_K * panels(extent_k);
}
ESTIMATE("gmem_bytes_per_cta")
__host__ __device__ constexpr long long gmem_bytes_per_cta(long long extent_k) {
  return panels(extent_k) * Config::BLOCK_K *
         (Config::BLOCK_M * static_cast<long long>(sizeof(Config::ElementA)) +
          Config::BLOCK_N * static_cast<long long>(sizeof(Config::ElementB)));
}
ESTIMATE("smem_bytes_read_per_cta")
__host__ __device__ constexpr long long smem_bytes_read_per_cta(long long extent_k) {
  return panels(extent_k) * Config::BLOCK_K * Config::kThreads * (Config::THREAD_M + Config::THREAD_N) *
         static_cast<long long>(sizeof(Config::Accumulator));
}
ESTIMATE("smem_bytes_written_per_cta")
__host__ __device__ constexpr long long smem_bytes_written_per_cta(long long extent_k) {
  return panels(extent_k) * Config::BLOCK_K * (Config::BLOCK_M + Config::BLOCK_N) * static_cast<long long>(sizeof(Config::Accumulator));
}
ESTIMATE("copy_instructions_per_cta")
__host__ __device__ constexpr long long copy_instructions_per_cta(long long extent_k) {
  return panels(extent_k) * (Config::kLoadsA + Config::kLoadsB) * Config::kThreads / 32;
}

// ---- Device parts -------------------------------------------------------------------------------------------------------------

/// Which elements of a panel a thread brings: one per pass, neighbouring threads neighbours along the axis that is contiguous in gmem.
/// A panel has kLines rows of A or columns of B, each BLOCK_K deep.
template <int kLines, bool kIsKContiguous>
struct PanelShare {
  static constexpr int kFast = kIsKContiguous ? Config::BLOCK_K : kLines;
  static constexpr int kFastThreads = kFast < Config::kThreads ? kFast : Config::kThreads;
  static constexpr int kFastPasses = kFast / kFastThreads;
  static constexpr int kSlowStep = Config::kThreads / kFastThreads;
  static constexpr int kPasses = kLines * Config::BLOCK_K / Config::kThreads;

  /// Of pass 0 of this thread.
  __device__ __forceinline__ static int first_line() {
    return kIsKContiguous ? static_cast<int>(threadIdx.x) / kFastThreads : static_cast<int>(threadIdx.x) % kFastThreads;
  }
  __device__ __forceinline__ static int first_k() {
    return kIsKContiguous ? static_cast<int>(threadIdx.x) % kFastThreads : static_cast<int>(threadIdx.x) / kFastThreads;
  }
  /// What pass `pass` adds: constants once the loop over passes is unrolled.
  __device__ __forceinline__ static constexpr int next_line(int pass) {
    return kIsKContiguous ? pass / kFastPasses * kSlowStep : pass % kFastPasses * kFastThreads;
  }
  __device__ __forceinline__ static constexpr int next_k(int pass) {
    return kIsKContiguous ? pass % kFastPasses * kFastThreads : pass / kFastPasses * kSlowStep;
  }

  /// gmem -> registers: the panel whose first element is at `panel`. What lies outside the problem is 0.
  template <typename Element>
  __device__ __forceinline__ static void load(const Element* panel, long long line_stride, long long k_stride, int lines_left, int k_left,
                                              Config::Accumulator (&values)[kPasses]) {
    const Element* first = panel + first_line() * line_stride + first_k() * k_stride;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      values[pass] = Config::Accumulator(0);
      if (first_line() + next_line(pass) < lines_left && first_k() + next_k(pass) < k_left) {
        values[pass] = to_accumulator<Config::Accumulator>(first[next_line(pass) * line_stride + next_k(pass) * k_stride]);
      }
    }
  }

  /// registers -> smem: [BLOCK_K][pitch].
  __device__ __forceinline__ static void store(const Config::Accumulator (&values)[kPasses], Config::Accumulator* buffer, int pitch) {
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      buffer[(first_k() + next_k(pass)) * pitch + first_line() + next_line(pass)] = values[pass];
    }
  }
};
using ShareA = PanelShare<Config::BLOCK_M, Config::A_IS_K_CONTIGUOUS>;
using ShareB = PanelShare<Config::BLOCK_N, !Config::B_IS_N_CONTIGUOUS>;

/// A thread's share of the next panels, in registers on the way from gmem to smem.
struct PanelRegisters {
  Config::Accumulator a[Config::kLoadsA];
  Config::Accumulator b[Config::kLoadsB];
};

/// `A` and `B` point at the tile's first row and column; the panels start at k. Axes known to be contiguous are not multiplied.
__device__ __forceinline__ void load_panels(const Config::ElementA* A, const Config::ElementB* B, const GemmProblem& problem, int rows_left,
                                            int columns_left, long long k, PanelRegisters& panel) {
  const long long A_stride_k = Config::A_IS_K_CONTIGUOUS ? 1 : problem.A_stride_k;
  const long long B_stride_n = Config::B_IS_N_CONTIGUOUS ? 1 : problem.B_stride_n;
  const int k_left = problem.extent_k - k < Config::BLOCK_K ? static_cast<int>(problem.extent_k - k) : Config::BLOCK_K;
  ShareA::load(A + k * A_stride_k, problem.A_stride_m, A_stride_k, rows_left, k_left, panel.a);
  ShareB::load(B + k * problem.B_stride_k, B_stride_n, problem.B_stride_k, columns_left, k_left, panel.b);
}

/// Row of a thread's i-th sum in the tile: groups of kVecM neighbours, the groups spread over the tile, so that a warp's wide smem
/// loads touch each bank once.
__device__ __forceinline__ int row_in_tile(int thread_m, int i) {
  return i / Config::kVecM * (Config::kThreadsM * Config::kVecM) + thread_m * Config::kVecM + i % Config::kVecM;
}
__device__ __forceinline__ int column_in_tile(int thread_n, int i) {
  return i / Config::kVecN * (Config::kThreadsN * Config::kVecN) + thread_n * Config::kVecN + i % Config::kVecN;
}

/// sums += the panel in `buffer`.
__device__ __forceinline__ void multiply_panel(const Config::Accumulator* buffer, int thread_m, int thread_n,
                                               Config::Accumulator (&sums)[Config::THREAD_M][Config::THREAD_N]) {
  const Config::Accumulator* buffer_b = buffer + Config::BLOCK_K * Config::kPitchA;
#pragma unroll
  for (int k = 0; k < Config::BLOCK_K; ++k) {
    Config::Accumulator a[Config::THREAD_M];
    Config::Accumulator b[Config::THREAD_N];
#pragma unroll
    for (int i = 0; i < Config::THREAD_M; ++i) {
      a[i] = buffer[k * Config::kPitchA + row_in_tile(thread_m, i)];
    }
#pragma unroll
    for (int j = 0; j < Config::THREAD_N; ++j) {
      b[j] = buffer_b[k * Config::kPitchB + column_in_tile(thread_n, j)];
    }
#pragma unroll
    for (int i = 0; i < Config::THREAD_M; ++i) {
#pragma unroll
      for (int j = 0; j < Config::THREAD_N; ++j) {
        sums[i][j] += a[i] * b[j];
      }
    }
  }
}

/// Hands a thread's sums to the epilogue, kVecN neighbouring columns at a time.
__device__ __forceinline__ void store_tile(const Config::Accumulator (&sums)[Config::THREAD_M][Config::THREAD_N],
                                           const GemmProblem& problem, const EpilogueArgs& epilogue, long long b, long long first_m,
                                           long long first_n, int thread_m, int thread_n) {
#pragma unroll
  for (int i = 0; i < Config::THREAD_M; ++i) {
    const long long m = first_m + row_in_tile(thread_m, i);
#pragma unroll
    for (int j = 0; j < Config::THREAD_N; j += Config::kVecN) {
      const long long n = first_n + column_in_tile(thread_n, j);
      if (m < problem.extent_m && n < problem.extent_n) {
        const long long left = problem.extent_n - n;
        Config::Accumulator values[Config::kVecN];
#pragma unroll
        for (int v = 0; v < Config::kVecN; ++v) {
          values[v] = sums[i][j + v];
        }
        epilogue_store<Config::kVecN>(epilogue, b, m, n, values, left < Config::kVecN ? static_cast<int>(left) : Config::kVecN);
      }
    }
  }
}

// ---- Kernel -------------------------------------------------------------------------------------------------------------------

COMPUTES("out[b,m,n] = epilogue(sum[k](A[b,m,k] * B[b,k,n]))")
REQUIRES_ARCH("sm_80")
extern "C" __global__ void __launch_bounds__(Config::kThreads, 1)
    gemm_simt(const Config::ElementA* A, const Config::ElementB* B, GemmProblem problem, EpilogueArgs epilogue) {
  alignas(16) extern __shared__ unsigned char smem[];
  Config::Accumulator* buffers = reinterpret_cast<Config::Accumulator*>(smem);
  if constexpr (Config::IS_FOLLOWED) {
    let_next_grid_begin();
  }
  if constexpr (Config::IS_DEPENDENT) {
    wait_for_grid_before();
  }

  const TileCoordinate tile =
      locate_tile(blockIdx.x, static_cast<unsigned>(tiles_m(problem.extent_m)), static_cast<unsigned>(tiles_n(problem.extent_n)), 8);
  const long long first_m = static_cast<long long>(tile.tile_m) * Config::BLOCK_M;
  const long long first_n = static_cast<long long>(tile.tile_n) * Config::BLOCK_N;
  const int thread_m = static_cast<int>(threadIdx.x) / Config::kThreadsN;
  const int thread_n = static_cast<int>(threadIdx.x) % Config::kThreadsN;
  A += tile.batch * problem.A_stride_b;
  B += tile.batch * problem.B_stride_b;

  A += first_m * problem.A_stride_m;
  B += first_n * problem.B_stride_n;
  const int rows_left = problem.extent_m - first_m < Config::BLOCK_M ? static_cast<int>(problem.extent_m - first_m) : Config::BLOCK_M;
  const int columns_left = problem.extent_n - first_n < Config::BLOCK_N ? static_cast<int>(problem.extent_n - first_n) : Config::BLOCK_N;

  Config::Accumulator sums[Config::THREAD_M][Config::THREAD_N] = {};
  PanelRegisters panel;
  if (problem.extent_k > 0) {
    load_panels(A, B, problem, rows_left, columns_left, 0, panel);
  }
  int buffer = 0;
#pragma unroll 1
  for (long long k = 0; k < problem.extent_k; k += Config::BLOCK_K) {
    // One barrier a panel is enough: a thread that writes a buffer again has passed the barrier after which all were done with it.
    Config::Accumulator* here = buffers + buffer * Config::kElementsPerBuffer;
    ShareA::store(panel.a, here, Config::kPitchA);
    ShareB::store(panel.b, here + Config::BLOCK_K * Config::kPitchA, Config::kPitchB);
    __syncthreads();
    if (k + Config::BLOCK_K < problem.extent_k) {
      load_panels(A, B, problem, rows_left, columns_left, k + Config::BLOCK_K, panel);
    }
    multiply_panel(here, thread_m, thread_n, sums);
    buffer ^= 1;
  }
  store_tile(sums, problem, epilogue, tile.batch, first_m, first_n, thread_m, thread_n);
}
