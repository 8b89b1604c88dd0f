// Contract: out[m, n] = a function of the row m: pointwise values, and reductions over n that depend on one another in phases.
//   Any strides and extents; rows of any length where IS_STREAMED or without reductions, else of at most
//   THREADS * VEC * ITEMS * CLUSTER elements. A product of matrices of which one has few rows is such a function too (decoding: one token).
//   Clusters need sm_90.
// Technique: each thread loads ITEMS vectors of VEC neighbouring elements, all in flight at once, and keeps them in registers through all
//   phases: gmem is read once and written once. A phase adds up in registers, then over the lanes by shuffles, over the warps and the CTAs
//   of a cluster by smem. The order of additions depends on the config alone: every launch gives the same bits. Short rows: several rows a
//   CTA, or a warp. Long rows: a cluster shares one. Streamed: every phase reads the row again.
// Reading order: Config, rules and launch, estimates; then the columns of a thread, the reduction, the row, the kernel.
// SPDX-License-Identifier: Apache-2.0

#include "parts/annotations.cuh"
#include "parts/types.cuh"
#include "ptx/distributed_smem.cuh"
#include "ptx/shared.cuh"
#include "ptx/warp_roles.cuh"

// ---- Config -----------------------------------------------------------------------------------------------------------------

struct Config {
  using Accumulator BIND("dtype:accumulate") = float;
  BIND("num_phases") static constexpr int PHASES = 1;
  BIND("num_reductions") static constexpr int REDUCTIONS = 1;                        ///< of one phase, at most
  BIND("bytes_per_column") static constexpr int BYTES_PER_COLUMN = 4;                ///< that the reads along n bring for one n
  TUNE("t", 8, 16, 32, 64, 128, 256, 512, 1024) static constexpr int THREADS = 128;  ///< threads of a CTA that share a row
  TUNE("r", 1, 2, 4, 8, 16) static constexpr int ROWS = 1;                           ///< rows of a CTA
  TUNE("v", 1, 2, 4, 8) static constexpr int VEC = 4;                                ///< neighbouring elements of a thread
  TUNE("i", 1, 2, 3, 4, 6, 8, 16) static constexpr int ITEMS = 4;                    ///< vectors of a thread
  TUNE("c", 1, 2, 4, 8) static constexpr int CLUSTER = 1;                            ///< CTAs that share a row
  TUNE("s", 0, 1) static constexpr bool IS_STREAMED = false;                         ///< rows do not fit: every phase reads them again

  static constexpr int kThreads = THREADS * ROWS;
  static constexpr int kWarpsPerRow = THREADS < 32 ? 1 : THREADS / 32;
  static constexpr int kColumns = THREADS * VEC * ITEMS;  ///< that a CTA's threads hold of a row
  static constexpr int kRegisters = 24 + VEC * ITEMS * BYTES_PER_COLUMN / 4 + 2 * ITEMS;
};

#include "parts/row.cuh"

// ---- Rules on the config ------------------------------------------------------------------------------------------------------

RULE("arch_has_clusters", "clusters need sm_90")
__host__ __device__ constexpr bool arch_has_clusters() { return Config::CLUSTER == 1 || DeviceLimits::arch >= 90; }

RULE("threads_fit", "a CTA has 64 to 1024 threads")
__host__ __device__ constexpr bool threads_fit() { return Config::kThreads >= 64 && Config::kThreads <= 1024; }

RULE("vectors_are_narrow", "a vector is at most 16 bytes of every tensor on average")
__host__ __device__ constexpr bool vectors_are_narrow() { return Config::VEC * sizeof(Config::Accumulator) <= 32; }

RULE("registers_fit", "a thread's vectors fit its registers")
__host__ __device__ constexpr bool registers_fit() {
  return Config::kRegisters <= 168 && Config::kRegisters * Config::kThreads <= DeviceLimits::registers_per_sm;
}

RULE("clusters_reduce", "a cluster shares one long row that it reduces")
__host__ __device__ constexpr bool clusters_reduce() {
  return Config::CLUSTER == 1 ||
         (Config::PHASES > 0 && Config::ROWS == 1 && Config::THREADS >= 256 && !Config::IS_STREAMED && sizeof(Config::Accumulator) == 4);
}

RULE("streams_reduce", "without reductions a row is read once anyway")
__host__ __device__ constexpr bool streams_reduce() { return !Config::IS_STREAMED || Config::PHASES > 0; }

// ---- Rules on the problem -------------------------------------------------------------------------------------------------------

RULE("row_fits", "a row that is reduced fits the registers of the threads that share it")
__host__ __device__ constexpr bool row_fits(long long extent_n) {
  return Config::PHASES == 0 || Config::IS_STREAMED || Config::kColumns * Config::CLUSTER >= extent_n;
}

RULE("products_are_thin", "a product of matrices is made row by row only where one of them has few rows: the other is read again for each")
__host__ __device__ constexpr bool products_are_thin(long long extent_shared) { return extent_shared <= 8; }

RULE("extents_fit", "no extent is above 2^40")
__host__ __device__ constexpr bool extents_fit(long long extent_m, long long extent_n) {
  return extent_m <= 1099511627776 && extent_n <= 1099511627776;
}

// ---- Launch ---------------------------------------------------------------------------------------------------------------------

/// CTAs side by side along a row: of a cluster, or parts of a row that is not reduced.
__host__ __device__ constexpr long long ctas_per_row(long long extent_n) {
  return Config::PHASES > 0 ? Config::CLUSTER : extent_n <= Config::kColumns ? 1 : (extent_n + Config::kColumns - 1) / Config::kColumns;
}

LAUNCH("grid_x")
__host__ __device__ constexpr long long grid_x(long long extent_m, long long extent_n) {
  return (extent_m + Config::ROWS - 1) / Config::ROWS * ctas_per_row(extent_n);
}
LAUNCH("block_x") __host__ __device__ constexpr long long block_x() { return Config::kThreads; }
LAUNCH("cluster_x") __host__ __device__ constexpr long long cluster_x() { return Config::CLUSTER; }

RULE("grid_fits", "there are at most 2^31 - 1 CTAs")
__host__ __device__ constexpr bool grid_fits(long long extent_m, long long extent_n) { return grid_x(extent_m, extent_n) <= 2147483647; }

// ---- Estimates for the analytic model: docs/adding-a-template.md --------------------------------------------------------------

ESTIMATE("threads_per_cta") __host__ __device__ constexpr long long threads_per_cta() { return Config::kThreads; }
ESTIMATE("smem_bytes_per_cta") __host__ __device__ constexpr long long smem_bytes_per_cta() { return 1024; }
ESTIMATE("registers_per_thread") __host__ __device__ constexpr long long registers_per_thread() { return Config::kRegisters; }
ESTIMATE("is_tensor_core") __host__ __device__ constexpr long long is_tensor_core() { return 0; }
ESTIMATE("math_type_bytes") __host__ __device__ constexpr long long math_type_bytes() { return 4; }
ESTIMATE("tile_m") __host__ __device__ constexpr long long tile_m() { return Config::ROWS; }
ESTIMATE("tile_n") __host__ __device__ constexpr long long tile_n() { return Config::kColumns; }
ESTIMATE("ctas")
__host__ __device__ constexpr long long ctas(long long extent_m, long long extent_n) { return grid_x(extent_m, extent_n); }
/// How often a row is read.
__host__ __device__ constexpr long long passes() { return Config::IS_STREAMED ? Config::PHASES + 1 : 1; }
ESTIMATE("k_steps") __host__ __device__ constexpr long long k_steps(long long extent_n) {
  return Config::IS_STREAMED ? passes() * ((extent_n + Config::kColumns - 1) / Config::kColumns) : 1;
}
ESTIMATE("math_flops_per_cta")
__host__ __device__ constexpr long long math_flops_per_cta(long long extent_n) {
  return Config::ROWS * Config::kColumns * k_steps(extent_n) * 8ll * (Config::PHASES + 1);
}
ESTIMATE("gmem_bytes_per_cta")
__host__ __device__ constexpr long long gmem_bytes_per_cta(long long extent_n) {
  return Config::ROWS * (Config::IS_STREAMED || extent_n < Config::kColumns ? extent_n : Config::kColumns) * Config::BYTES_PER_COLUMN *
         passes();
}
ESTIMATE("copy_instructions_per_cta")
__host__ __device__ constexpr long long copy_instructions_per_cta(long long extent_n) {
  return (Config::kThreads + 31) / 32 * Config::ITEMS * 2ll * k_steps(extent_n);
}
/// Threads that hold nothing of a row wait for the others.
ESTIMATE("is_dominated")
__host__ __device__ constexpr long long is_dominated(long long extent_n) {
  return Config::PHASES > 0 && !Config::IS_STREAMED && Config::kColumns * Config::CLUSTER >= 2 * extent_n &&
         Config::THREADS * Config::VEC > 8;
}

// ---- The columns of a thread ------------------------------------------------------------------------------------------------------

/// Where a thread works: a row, and of it the columns first_n + item * kStep to + VEC - 1, item = 0 .. ITEMS - 1.
struct Place {
  static constexpr long long kStep = Config::THREADS * Config::VEC;

  long long m;
  long long first_n;
  int thread;   ///< of those that share the row
  bool is_row;  ///< the row exists

  __device__ __forceinline__ long long n(int item) const { return first_n + item * kStep; }
};

/// How many of the VEC elements from n on exist. kIsWhole: all or none.
template <bool kIsWhole>
__device__ __forceinline__ int count_at(long long n, long long extent_n) {
  const long long left = extent_n - n;
  return left <= 0 ? 0 : kIsWhole || left >= Config::VEC ? Config::VEC : static_cast<int>(left);
}

template <bool kIsWhole>
__device__ __forceinline__ void read_items(const RowArgs& row, const RowProblem& problem, const Place& place,
                                           RowReads (&reads)[Config::ITEMS]) {
#pragma unroll
  for (int item = 0; item < Config::ITEMS; ++item) {
    const int count = count_at<kIsWhole>(place.n(item), problem.extent_n);
    if (place.is_row && count > 0) {
      row_read<kIsWhole>(row, place.m, place.n(item), count, reads[item]);
    }
  }
}

template <int kPhase, bool kIsWhole>
__device__ __forceinline__ void accumulate_items(const RowArgs& row, const RowProblem& problem, const Place& place,
                                                 const RowReads (&reads)[Config::ITEMS], const RowResults& results,
                                                 Accumulator (&partial)[Config::REDUCTIONS]) {
#pragma unroll
  for (int item = 0; item < Config::ITEMS; ++item) {
    const int count = count_at<kIsWhole>(place.n(item), problem.extent_n);
    if (place.is_row && count > 0) {
      row_accumulate<kPhase, kIsWhole>(row, place.m, place.n(item), reads[item], results, count, partial);
    }
  }
}

template <bool kIsWhole>
__device__ __forceinline__ void store_items(const RowArgs& row, const RowProblem& problem, const Place& place,
                                            const RowReads (&reads)[Config::ITEMS], const RowResults& results) {
#pragma unroll
  for (int item = 0; item < Config::ITEMS; ++item) {
    const int count = count_at<kIsWhole>(place.n(item), problem.extent_n);
    if (place.is_row && count > 0) {
      row_store<kIsWhole>(row, place.m, place.n(item), reads[item], results, count);
    }
  }
}

// ---- Reduction over the threads of a row ----------------------------------------------------------------------------------------

/// Results of warps and CTAs on their way to all threads of a row; two phases take turns, so that one barrier a phase is enough.
struct Exchange {
  Accumulator of_warps[2][Config::ROWS][Config::kWarpsPerRow][Config::REDUCTIONS];
  Accumulator of_cta[2][Config::REDUCTIONS];
};

/// All lanes get the reduction over groups of kLanes neighbouring lanes.
template <int kPhase, int kLanes>
__device__ __forceinline__ void combine_lanes(Accumulator (&partial)[Config::REDUCTIONS]) {
#pragma unroll
  for (int bit = kLanes / 2; bit > 0; bit /= 2) {
    Accumulator other[Config::REDUCTIONS];
#pragma unroll
    for (int slot = 0; slot < Config::REDUCTIONS; ++slot) {
      other[slot] = __shfl_xor_sync(0xffffffffu, partial[slot], bit);
    }
    row_combine<kPhase>(partial, other);
  }
}

/// All threads of a row get the reduction over the CTA's.
template <int kPhase>
__device__ __forceinline__ void combine_warps(Exchange& exchange, const Place& place, Accumulator (&partial)[Config::REDUCTIONS]) {
  const int row = static_cast<int>(threadIdx.x) / Config::THREADS;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane == 0) {
#pragma unroll
    for (int slot = 0; slot < Config::REDUCTIONS; ++slot) {
      exchange.of_warps[kPhase % 2][row][place.thread / 32][slot] = partial[slot];
    }
  }
  __syncthreads();
  row_identity<kPhase>(partial);
  if (lane < Config::kWarpsPerRow) {
#pragma unroll
    for (int slot = 0; slot < Config::REDUCTIONS; ++slot) {
      partial[slot] = exchange.of_warps[kPhase % 2][row][lane][slot];
    }
  }
  combine_lanes<kPhase, 32>(partial);
}

/// All threads of a cluster get the reduction over its CTAs.
template <int kPhase>
__device__ __forceinline__ void combine_ctas(Exchange& exchange, Accumulator (&partial)[Config::REDUCTIONS]) {
  if (threadIdx.x == 0) {
#pragma unroll
    for (int slot = 0; slot < Config::REDUCTIONS; ++slot) {
      exchange.of_cta[kPhase % 2][slot] = partial[slot];
    }
  }
  cluster_sync();
  row_identity<kPhase>(partial);
  const unsigned own = shared_address(&exchange.of_cta[kPhase % 2][0]);
#pragma unroll
  for (int rank = 0; rank < Config::CLUSTER; ++rank) {
    Accumulator other[Config::REDUCTIONS];
#pragma unroll
    for (int slot = 0; slot < Config::REDUCTIONS; ++slot) {
      other[slot] = static_cast<Accumulator>(ld_shared_cluster_f32(cluster_address(own, static_cast<unsigned>(rank)) + slot * 4u));
    }
    row_combine<kPhase>(partial, other);
  }
}

template <int kPhase>
__device__ __forceinline__ void combine(Exchange& exchange, const Place& place, Accumulator (&partial)[Config::REDUCTIONS]) {
  combine_lanes<kPhase, (Config::THREADS < 32 ? Config::THREADS : 32)>(partial);
  if constexpr (Config::kWarpsPerRow > 1) {
    combine_warps<kPhase>(exchange, place, partial);
  }
  if constexpr (Config::CLUSTER > 1) {
    combine_ctas<kPhase>(exchange, partial);
  }
}

// ---- A row ------------------------------------------------------------------------------------------------------------------------

/// Phases kPhase and later of a row in registers.
template <int kPhase, bool kIsWhole>
__device__ __forceinline__ void reduce(const RowArgs& row, const RowProblem& problem, const Place& place,
                                       const RowReads (&reads)[Config::ITEMS], Exchange& exchange, RowResults& results) {
  if constexpr (kPhase < Config::PHASES) {
    Accumulator partial[Config::REDUCTIONS];
    row_identity<kPhase>(partial);
    accumulate_items<kPhase, kIsWhole>(row, problem, place, reads, results, partial);
    combine<kPhase>(exchange, place, partial);
    row_finish<kPhase>(partial, results);
    reduce<kPhase + 1, kIsWhole>(row, problem, place, reads, exchange, results);
  }
}

/// The same for a row of any length, read again.
template <int kPhase, bool kIsWhole>
__device__ __forceinline__ void reduce_streamed(const RowArgs& row, const RowProblem& problem, Place place, Exchange& exchange,
                                                RowResults& results) {
  if constexpr (kPhase < Config::PHASES) {
    const long long first_n = place.first_n;
    Accumulator partial[Config::REDUCTIONS];
    row_identity<kPhase>(partial);
#pragma unroll 1
    for (long long skipped = 0; skipped < problem.extent_n; skipped += Config::kColumns) {
      RowReads reads[Config::ITEMS];
      place.first_n = first_n + skipped;
      read_items<kIsWhole>(row, problem, place, reads);
      accumulate_items<kPhase, kIsWhole>(row, problem, place, reads, results, partial);
    }
    combine<kPhase>(exchange, place, partial);
    row_finish<kPhase>(partial, results);
    place.first_n = first_n;
    reduce_streamed<kPhase + 1, kIsWhole>(row, problem, place, exchange, results);
  }
}

template <bool kIsWhole>
__device__ __forceinline__ void make_row(const RowArgs& row, const RowProblem& problem, Place place, Exchange& exchange) {
  RowResults results = {};
  RowReads reads[Config::ITEMS];
  if constexpr (!Config::IS_STREAMED) {
    read_items<kIsWhole>(row, problem, place, reads);
    reduce<0, kIsWhole>(row, problem, place, reads, exchange, results);
    store_items<kIsWhole>(row, problem, place, reads, results);
  } else {
    const long long first_n = place.first_n;
    reduce_streamed<0, kIsWhole>(row, problem, place, exchange, results);
#pragma unroll 1
    for (long long skipped = 0; skipped < problem.extent_n; skipped += Config::kColumns) {
      place.first_n = first_n + skipped;
      read_items<kIsWhole>(row, problem, place, reads);
      store_items<kIsWhole>(row, problem, place, reads, results);
    }
    place.first_n = first_n;
  }
  if (place.is_row && place.first_n == 0) {
    row_store_once(row, place.m, results);
  }
}

// ---- Kernel -----------------------------------------------------------------------------------------------------------------------

COMPUTES("out[m,n] = row[n](m)")
REQUIRES_ARCH("sm_80")
extern "C" __global__ void __launch_bounds__(Config::kThreads, 1) row_sm80(RowProblem problem, RowArgs row) {
  __shared__ Exchange exchange;
  const long long per_row = ctas_per_row(problem.extent_n);
  const long long part = static_cast<long long>(blockIdx.x) % per_row;
  Place place;
  place.thread = static_cast<int>(threadIdx.x) % Config::THREADS;
  place.m = static_cast<long long>(blockIdx.x) / per_row * Config::ROWS + static_cast<long long>(threadIdx.x) / Config::THREADS;
  place.first_n = part * Config::kColumns + place.thread * Config::VEC;
  place.is_row = place.m < problem.extent_m;
  if (problem.extent_n % Config::VEC == 0 && row_is_aligned<Config::VEC>(row)) {
    make_row<true>(row, problem, place, exchange);
  } else {
    make_row<false>(row, problem, place, exchange);
  }
  if constexpr (Config::CLUSTER > 1) {
    cluster_sync();  // a CTA's smem stays until its peers have read it
  }
}
