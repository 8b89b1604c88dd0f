// Contract: out[m, n] = a function of the row m: pointwise values, and reductions over n that depend on one another in phases.
//   Any strides and extents; rows of any length where IS_STREAMED or without reductions, else of at most
//   THREADS * VEC * ITEMS * CLUSTER elements. A product of matrices of which one has few rows is such a function too (decoding: one token).
//   Clusters need sm_90.
// Technique: each thread loads ITEMS vectors of VEC neighbouring elements, all in flight at once, and keeps them in registers through all
//   phases: gmem is read once and written once. A phase adds up in registers, then over the lanes by shuffles, over the warps and the CTAs
//   of a cluster by smem. The order of additions depends on the config alone: every launch gives the same bits. Short rows: several rows a
//   CTA, or a warp. Long rows: a cluster shares one. Streamed: every phase reads the row again. Persistent: a CTA goes on to other rows; it
//   loads the next one before it reduces the present one, and what all rows share once.
// Reading order: Config, its rules (row_sm80_rules.cuh); then the columns of a thread, the reduction, the rows, the kernel.
// SPDX-License-Identifier: Apache-2.0

#include "parts/annotations.cuh"
#include "parts/types.cuh"
#include "ptx/distributed_smem.cuh"
#include "ptx/grid_dependency.cuh"
#include "ptx/shared.cuh"
#include "ptx/warp_roles.cuh"

// ---- Config -----------------------------------------------------------------------------------------------------------------

struct Config {
  using Accumulator BIND("dtype:accumulate") = float;
  BIND("num_phases") static constexpr int PHASES = 1;
  BIND("num_reductions") static constexpr int REDUCTIONS = 1;                    ///< of one phase, at most
  BIND("bytes_per_column") static constexpr int BYTES_PER_COLUMN = 4;            ///< that the reads along n bring for one n
  BIND("row_bytes_per_column") static constexpr int ROW_BYTES_PER_COLUMN = 4;    ///< of these: from tensors that have rows
  BIND("columns_are_reduced") static constexpr bool COLUMNS_ARE_REDUCED = true;  ///< reductions need what all rows share
  BIND("counts_columns") static constexpr bool COUNTS_COLUMNS = false;           ///< reals hold positions of a row
  BIND("stores_along_rows") static constexpr bool STORES_ALONG_ROWS = true;      ///< an output has more than one element a row
  BIND("is_dependent") static constexpr bool IS_DEPENDENT = false;               ///< begins while the kernel before it in a plan runs
  BIND("is_followed") static constexpr bool IS_FOLLOWED = false;                 ///< the kernel after it in a plan may begin while it runs
  BIND("has_const_rows") static constexpr bool HAS_CONST_ROWS = false;           ///< reads rows that no kernel of the plan writes
  TUNE("t", 8, 16, 32, 64, 128, 256, 512, 1024) static constexpr int THREADS = 128;  ///< threads of a CTA that share a row
  TUNE("r", 1, 2, 4, 8, 16) static constexpr int ROWS = 1;                           ///< rows of a CTA
  TUNE("v", 1, 2, 4, 8) static constexpr int VEC = 4;                                ///< neighbouring elements of a thread
  TUNE("i", 1, 2, 3, 4, 5, 6, 7, 8, 16) static constexpr int ITEMS = 4;              ///< vectors of a thread
  TUNE("c", 1, 2, 4, 8) static constexpr int CLUSTER = 1;                            ///< CTAs that share a row
  TUNE("p", 0, 1, 2, 3, 4, 6, 8, 12, 16) static constexpr int CTAS_PER_SM = 0;       ///< persistent CTAs; 0: each has its own rows alone
  TUNE("g", 0, 64) static constexpr int MAX_REGISTERS = 0;                           ///< of a thread, for more CTAs an SM; 0: as wanted
  TUNE("f", 0, 1) static constexpr bool COLUMNS_FIRST = false;                       ///< what all rows share is loaded with the row
  TUNE("h", 0, 1) static constexpr bool HAS_HINTS = false;                           ///< rows are read and written past the caches
  TUNE("s", 0, 1) static constexpr bool IS_STREAMED = false;                         ///< rows do not fit: every phase reads them again
  TUNE("n", "extent_n", 0) static constexpr long long EXTENT_N = 0;                  ///< length of all rows; 0: known at launch

  static constexpr int kThreads = THREADS * ROWS;
  static constexpr int kWarpsPerRow = THREADS < 32 ? 1 : THREADS / 32;
  static constexpr int kColumns = THREADS * VEC * ITEMS;  ///< that a CTA's threads hold of a row
  /// What all rows share is read when a row's outputs are made, unless it is needed before or kept for other rows.
  static constexpr bool kNeedsColumnsFirst = CTAS_PER_SM > 0 || COLUMNS_ARE_REDUCED || PHASES == 0;
  static constexpr bool kReadsColumnsFirst = COLUMNS_FIRST || kNeedsColumnsFirst;
  static constexpr int kBytesPerColumn = (kReadsColumnsFirst ? BYTES_PER_COLUMN : ROW_BYTES_PER_COLUMN) +
                                         (CTAS_PER_SM > 0 ? ROW_BYTES_PER_COLUMN : 0);  ///< in registers at a time
  static constexpr int kLeastCtasPerSm = CTAS_PER_SM > 0     ? CTAS_PER_SM
                                         : MAX_REGISTERS > 0 ? 65536 / (MAX_REGISTERS * kThreads)
                                                             : 1;  ///< for the compiler: 64 K registers an SM
  /// In kernels for rows of one length: every vector of every item exists. So does every row where each CTA has one.
  static constexpr bool kColumnsExist = EXTENT_N > 0 && EXTENT_N % (kColumns * CLUSTER) == 0;
  static constexpr bool kRowsExist = ROWS == 1;
  static constexpr int kRegisters = 24 + VEC * ITEMS * kBytesPerColumn / 4 + 2 * ITEMS;
};

#include "parts/row.cuh"
#include "rows/row_sm80_rules.cuh"

// ---- The columns of a thread ------------------------------------------------------------------------------------------------------

/// Where a thread works: a row, and of it the columns first_n + item * kStep to + VEC - 1, item = 0 .. ITEMS - 1.
struct Place {
  static constexpr long long kStep = Config::THREADS * Config::VEC;

  long long m;
  long long first_n;
  int thread;   ///< of those that share the row
  int row;      ///< of those of the CTA
  bool is_row;  ///< the row exists

  __device__ __forceinline__ long long n(int item) const { return first_n + item * kStep; }
};

__device__ __forceinline__ long long row_length(const RowProblem& problem) {
  return Config::EXTENT_N > 0 ? Config::EXTENT_N : problem.extent_n;
}

/// What the problem's sizes and addresses allow.
enum class Fit {
  kAny,    ///< rows may end inside a vector, tensors may lie at any address
  kWhole,  ///< all or none of the elements of a vector exist, and lie together
  kFull,   ///< and every vector of every row exists
};

/// How many of the VEC elements from n on exist in this thread's row.
template <Fit kFit>
__device__ __forceinline__ int count_at(const Place& place, long long n, long long extent_n) {
  if constexpr (kFit == Fit::kFull) {
    return Config::VEC;
  }
  const long long left = extent_n - n;
  return !place.is_row || (!Config::kColumnsExist && left <= 0) ? 0
         : kFit == Fit::kWhole || left >= Config::VEC           ? Config::VEC
                                                                : static_cast<int>(left);
}

template <Fit kFit>
__device__ __forceinline__ void read_columns(const RowArgs& row, const RowProblem& problem, const Place& place,
                                             RowColumns (&columns)[Config::ITEMS]) {
#pragma unroll
  for (int item = 0; item < Config::ITEMS; ++item) {
    const int count = count_at<kFit>(place, place.n(item), row_length(problem));
    if (count > 0) {
      row_read_columns<kFit != Fit::kAny>(row, place.n(item), count, columns[item]);
    }
  }
}

template <Fit kFit>
__device__ __forceinline__ void read_items(const RowArgs& row, const RowProblem& problem, const Place& place,
                                           RowReads (&reads)[Config::ITEMS]) {
#pragma unroll
  for (int item = 0; item < Config::ITEMS; ++item) {
    const int count = count_at<kFit>(place, place.n(item), row_length(problem));
    if (count > 0) {
      row_read<kFit != Fit::kAny>(row, place.m, place.n(item), count, reads[item]);
    }
  }
}

template <int kPhase, Fit kFit>
__device__ __forceinline__ void accumulate_items(const RowArgs& row, const RowProblem& problem, const Place& place,
                                                 const RowReads (&reads)[Config::ITEMS], const RowColumns (&columns)[Config::ITEMS],
                                                 const RowResults& results, Accumulator (&partial)[Config::REDUCTIONS]) {
#pragma unroll
  for (int item = 0; item < Config::ITEMS; ++item) {
    const int count = count_at<kFit>(place, place.n(item), row_length(problem));
    if (count > 0) {
      row_accumulate<kPhase, kFit != Fit::kAny>(row, place.m, place.n(item), reads[item], columns[item], results, count, partial);
    }
  }
}

template <Fit kFit>
__device__ __forceinline__ void store_items(const RowArgs& row, const RowProblem& problem, const Place& place,
                                            const RowReads (&reads)[Config::ITEMS], const RowColumns (&columns)[Config::ITEMS],
                                            const RowResults& results) {
#pragma unroll
  for (int item = 0; item < Config::ITEMS; ++item) {
    const int count = count_at<kFit>(place, place.n(item), row_length(problem));
    if (count > 0) {
      row_store<kFit != Fit::kAny>(row, place.m, place.n(item), reads[item], columns[item], results, count);
    }
  }
}

// ---- Reduction over the threads of a row ----------------------------------------------------------------------------------------

/// Results of warps and CTAs on their way to all threads of a row; phases take turns, so that one barrier a phase is enough.
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
__device__ __forceinline__ void combine_warps(Exchange& exchange, int turn, const Place& place,
                                              Accumulator (&partial)[Config::REDUCTIONS]) {
  const int row = static_cast<int>(threadIdx.x) / Config::THREADS;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane == 0) {
#pragma unroll
    for (int slot = 0; slot < Config::REDUCTIONS; ++slot) {
      exchange.of_warps[turn][row][place.thread / 32][slot] = partial[slot];
    }
  }
  __syncthreads();
#pragma unroll
  for (int slot = 0; slot < Config::REDUCTIONS; ++slot) {
    partial[slot] = exchange.of_warps[turn][row][lane % Config::kWarpsPerRow][slot];
  }
  combine_lanes<kPhase, Config::kWarpsPerRow>(partial);
}

/// All threads of a cluster get the reduction over its CTAs.
template <int kPhase>
__device__ __forceinline__ void combine_ctas(Exchange& exchange, int turn, Accumulator (&partial)[Config::REDUCTIONS]) {
  if (threadIdx.x == 0) {
#pragma unroll
    for (int slot = 0; slot < Config::REDUCTIONS; ++slot) {
      exchange.of_cta[turn][slot] = partial[slot];
    }
  }
  cluster_sync();
  row_identity<kPhase>(partial);
  const unsigned own = shared_address(&exchange.of_cta[turn][0]);
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
__device__ __forceinline__ void combine(Exchange& exchange, int turn, const Place& place, Accumulator (&partial)[Config::REDUCTIONS]) {
  combine_lanes<kPhase, (Config::THREADS < 32 ? Config::THREADS : 32)>(partial);
  if constexpr (Config::kWarpsPerRow > 1) {
    combine_warps<kPhase>(exchange, turn, place, partial);
  }
  if constexpr (Config::CLUSTER > 1) {
    combine_ctas<kPhase>(exchange, turn, partial);
  }
}

// ---- A row ------------------------------------------------------------------------------------------------------------------------

/// Under a cap of registers the row stays as it lies in gmem from phase to phase: values that were converted would take twice as many.
__device__ __forceinline__ void keep_packed(RowReads (&reads)[Config::ITEMS]) {
#pragma unroll
  for (int item = 0; item < Config::ITEMS; ++item) {
    unsigned* words = reinterpret_cast<unsigned*>(&reads[item]);
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(RowReads) / 4); ++i) {
      hide_value(words[i]);
    }
  }
}

/// Phases kPhase and later of a row in registers. `turn`: half of the exchange that is free; flips with every phase.
template <int kPhase, Fit kFit>
__device__ __forceinline__ void reduce(const RowArgs& row, const RowProblem& problem, const Place& place, RowReads (&reads)[Config::ITEMS],
                                       const RowColumns (&columns)[Config::ITEMS], Exchange& exchange, int& turn, RowResults& results) {
  if constexpr (kPhase > 0 && Config::MAX_REGISTERS > 0) {
    keep_packed(reads);
  }
  if constexpr (kPhase < Config::PHASES) {
    Accumulator partial[Config::REDUCTIONS];
    row_identity<kPhase>(partial);
    accumulate_items<kPhase, kFit>(row, problem, place, reads, columns, results, partial);
    combine<kPhase>(exchange, turn, place, partial);
    turn ^= 1;
    row_finish<kPhase>(partial, results);
    reduce<kPhase + 1, kFit>(row, problem, place, reads, columns, exchange, turn, results);
  }
}

/// The same for a row of any length, read again.
template <int kPhase, Fit kFit>
__device__ __forceinline__ void reduce_streamed(const RowArgs& row, const RowProblem& problem, Place place, Exchange& exchange,
                                                RowResults& results) {
  if constexpr (kPhase < Config::PHASES) {
    const long long first_n = place.first_n;
    Accumulator partial[Config::REDUCTIONS];
    row_identity<kPhase>(partial);
#pragma unroll 1
    for (long long skipped = 0; skipped < row_length(problem); skipped += Config::kColumns) {
      RowReads reads[Config::ITEMS];
      RowColumns columns[Config::ITEMS];
      place.first_n = first_n + skipped;
      read_items<kFit>(row, problem, place, reads);
      read_columns<kFit>(row, problem, place, columns);
      accumulate_items<kPhase, kFit>(row, problem, place, reads, columns, results, partial);
    }
    combine<kPhase>(exchange, kPhase % 2, place, partial);
    row_finish<kPhase>(partial, results);
    place.first_n = first_n;
    reduce_streamed<kPhase + 1, kFit>(row, problem, place, exchange, results);
  }
}

template <Fit kFit>
__device__ __forceinline__ void make_streamed_row(const RowArgs& row, const RowProblem& problem, Place place, Exchange& exchange) {
  RowResults results = {};
  const long long first_n = place.first_n;
  reduce_streamed<0, kFit>(row, problem, place, exchange, results);
  if constexpr (Config::STORES_ALONG_ROWS) {
#pragma unroll 1
    for (long long skipped = 0; skipped < row_length(problem); skipped += Config::kColumns) {
      RowReads reads[Config::ITEMS];
      RowColumns columns[Config::ITEMS];
      place.first_n = first_n + skipped;
      read_items<kFit>(row, problem, place, reads);
      read_columns<kFit>(row, problem, place, columns);
      store_items<kFit>(row, problem, place, reads, columns, results);
    }
  }
  if (place.is_row && first_n == 0) {
    row_store_once(row, place.m, results);
  }
}

/// The rows of a CTA: its own, and when it is persistent each step_m-th after it.
template <Fit kFit>
__device__ __forceinline__ void make_rows(const RowArgs& row, const RowProblem& problem, Place place, long long step_m,
                                          Exchange& exchange) {
  RowReads reads[Config::ITEMS];
  RowColumns columns[Config::ITEMS];
  int turn = 0;
  read_items<kFit>(row, problem, place, reads);
  if constexpr (Config::kReadsColumnsFirst) {
    read_columns<kFit>(row, problem, place, columns);
  }
  for (long long group_m = place.m - place.row;;) {
    RowReads ahead[Config::ITEMS];
    Place next = place;
    if constexpr (Config::CTAS_PER_SM > 0) {
      group_m += step_m;
      next.m += step_m;
      next.is_row = next.m < problem.extent_m;
      if (group_m < problem.extent_m) {
        read_items<kFit>(row, problem, next, ahead);
      }
    }
    RowResults results = {};
    reduce<0, kFit>(row, problem, place, reads, columns, exchange, turn, results);
    if constexpr (!Config::kReadsColumnsFirst) {
      read_columns<kFit>(row, problem, place, columns);
    }
    store_items<kFit>(row, problem, place, reads, columns, results);
    if (place.is_row && place.first_n == 0) {
      row_store_once(row, place.m, results);
    }
    if (Config::CTAS_PER_SM == 0 || group_m >= problem.extent_m) {
      break;
    }
    place = next;
#pragma unroll
    for (int item = 0; item < Config::ITEMS; ++item) {
      reads[item] = ahead[item];
    }
  }
}

/// Has L2 fetch what is const of the first items while the grid before this one still runs, weights say; then waits for it.
__device__ __forceinline__ void prefetch_and_wait(const RowArgs& row, const RowProblem& problem, Place& place) {
  if constexpr (Config::HAS_CONST_ROWS) {
#pragma unroll
    for (int item = 0; item < Config::ITEMS; ++item) {
      if (count_at<Fit::kAny>(place, place.n(item), row_length(problem)) > 0) {
        row_prefetch(row, place.m, place.n(item));
      }
    }
  }
  place.m = wait_for_grid_before(place.m);
  place.first_n = wait_for_grid_before(place.first_n);
}

template <Fit kFit>
__device__ __forceinline__ void make(const RowArgs& row, const RowProblem& problem, const Place& place, long long step_m,
                                     Exchange& exchange) {
  if constexpr (Config::IS_STREAMED) {
    make_streamed_row<kFit>(row, problem, place, exchange);
  } else {
    make_rows<kFit>(row, problem, place, step_m, exchange);
  }
}

// ---- Kernel -----------------------------------------------------------------------------------------------------------------------

COMPUTES("out[m,n] = row[n](m)")
REQUIRES_ARCH("sm_80")
extern "C" __global__ void __launch_bounds__(Config::kThreads, Config::kLeastCtasPerSm) row_sm80(RowProblem problem, RowArgs row) {
  if constexpr (Config::IS_FOLLOWED) {
    let_next_grid_begin();
  }
  __shared__ Exchange exchange;
  const long long step_m = static_cast<long long>(gridDim.y) * Config::ROWS;  // of persistent CTAs: their grid has no z
  Place place;
  place.thread = static_cast<int>(threadIdx.x % Config::THREADS);
  place.row = static_cast<int>(threadIdx.x / Config::THREADS);
  place.m = (Config::EXTENT_N > 0 ? blockIdx.y : static_cast<long long>(blockIdx.z) * gridDim.y + blockIdx.y) * Config::ROWS + place.row;
  place.first_n = blockIdx.x * static_cast<long long>(Config::kColumns) + place.thread * Config::VEC;
  place.is_row = place.m < problem.extent_m;
  if constexpr (Config::IS_DEPENDENT) {
    prefetch_and_wait(row, problem, place);
  }
  if constexpr (Config::EXTENT_N > 0) {
    make<Config::kColumnsExist && Config::kRowsExist ? Fit::kFull : Fit::kWhole>(row, problem, place, step_m, exchange);
  } else if (problem.extent_n % Config::VEC == 0 && row_is_aligned<Config::VEC>(row)) {
    const bool is_full = problem.extent_n > 0 && problem.extent_n % (Config::kColumns * Config::CLUSTER) == 0 &&
                         problem.extent_m % Config::ROWS == 0 && gridDim.z == 1;
    if (is_full) {
      make<Fit::kFull>(row, problem, place, step_m, exchange);
    } else {
      make<Fit::kWhole>(row, problem, place, step_m, exchange);
    }
  } else {
    make<Fit::kAny>(row, problem, place, step_m, exchange);
  }
  if constexpr (Config::CLUSTER > 1) {
    cluster_sync();  // a CTA's smem stays until its peers have read it
  }
}
