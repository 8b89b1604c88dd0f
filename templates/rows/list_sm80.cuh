// Contract: for every tensor m of a list and its elements n: out[m, n] = pointwise values of the elements (m, n); and reductions over all
//   elements of all tensors, whose results are single values. Tensors of any lengths, which are read from gmem (an extent that depends on
//   data) or are all the same; at any addresses.
// Technique: one launch for the whole list. Tensors are cut into chunks of THREADS * VEC * ITEMS elements; chunks are numbered through the
//   list, and persistent CTAs take them in turn, so that one large tensor and many small ones keep the GPU equally busy. A warp finds a
//   chunk's tensor by itself: each lane counts the chunks of one of 32 tensors, shuffles add them up. All loads of a chunk are in flight at
//   once. Reductions: each CTA leaves its part in gmem, the last one to arrive takes all parts in the order of the CTAs: every launch gives
//   the same bits, and nothing waits for the host.
// Reading order: Config, its rules (list_sm80_rules.cuh); then the walk over the list, a chunk, the reduction, the kernel.
// SPDX-License-Identifier: Apache-2.0

#include "parts/annotations.cuh"
#include "parts/types.cuh"
#include "ptx/global.cuh"
#include "ptx/grid_dependency.cuh"

// ---- Config -----------------------------------------------------------------------------------------------------------------

struct Config {
  using Accumulator BIND("dtype:accumulate") = float;
  BIND("num_phases") static constexpr int PHASES = 1;  ///< 1: something is reduced
  BIND("num_reductions") static constexpr int REDUCTIONS = 1;
  BIND("is_dependent") static constexpr bool IS_DEPENDENT = false;           ///< begins while the kernel before it in a plan runs
  BIND("is_followed") static constexpr bool IS_FOLLOWED = false;             ///< the kernel after it in a plan may begin while it runs
  BIND("bytes_per_column") static constexpr int BYTES_PER_COLUMN = 4;        ///< that the reads along n bring for one n
  TUNE("t", 128, 256, 512) static constexpr int THREADS = 256;               ///< of a CTA
  TUNE("v", 1, 2, 4, 8) static constexpr int VEC = 4;                        ///< neighbouring elements of a thread
  TUNE("i", 1, 2, 4, 8) static constexpr int ITEMS = 2;                      ///< vectors of a thread
  TUNE("p", 1, 2, 3, 4, 6, 8, 12, 16) static constexpr int CTAS_PER_SM = 4;  ///< that take chunks in turn
  TUNE("h", 0, 1) static constexpr bool HAS_HINTS = false;                   ///< tensors are read and written past the caches

  static constexpr long long EXTENT_N = 0;  ///< rows of the list have lengths of their own
  static constexpr int kWarps = THREADS / 32;
  static constexpr long long kChunk = THREADS * VEC * ITEMS;  ///< elements
  /// Of a thread: a vector is read, worked out and written; those that wait take their place and an address (fits 40 kernels of AdamW).
  static constexpr int kRegisters = 40 + VEC * BYTES_PER_COLUMN * 3 / 4 + (ITEMS - 1) * (VEC * BYTES_PER_COLUMN / 4 + 8);
};

#include "parts/list.cuh"
#include "rows/list_sm80_rules.cuh"

// ---- The walk over the list -----------------------------------------------------------------------------------------------------

/// Where a warp looks: 32 neighbouring tensors, one a lane.
struct Walk {
  long long first_m;  ///< the first of them
  long long before;   ///< chunks of all tensors before it
  long long length;   ///< elements of this lane's tensor
  long long up_to;    ///< chunks of the 32 tensors up to this lane's, its own among them
};

struct Chunk {
  long long m;
  long long first_n;
  long long length;  ///< of tensor m
  bool exists;
};

__device__ __forceinline__ long long num_chunks(long long length) { return (length + Config::kChunk - 1) / Config::kChunk; }

__device__ __forceinline__ void look_at(long long first_m, const RowArgs& row, const ListProblem& problem, Walk& walk) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const long long m = first_m + lane;
  walk.first_m = first_m;
  walk.length = m < problem.extent_m ? list_length(row, m, problem.extent_n) : 0;
  walk.up_to = num_chunks(walk.length);
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const long long others = __shfl_up_sync(0xffffffffu, walk.up_to, step);
    walk.up_to += lane >= step ? others : 0;
  }
}

/// Chunk `number` of the list; numbers ascend from call to call.
__device__ __forceinline__ Chunk find_chunk(long long number, const RowArgs& row, const ListProblem& problem, Walk& walk) {
  long long here = __shfl_sync(0xffffffffu, walk.up_to, 31);
  while (number - walk.before >= here && walk.first_m + 32 < problem.extent_m) {
    walk.before += here;
    look_at(walk.first_m + 32, row, problem, walk);
    here = __shfl_sync(0xffffffffu, walk.up_to, 31);
  }
  Chunk chunk;
  chunk.exists = number - walk.before < here;
  const unsigned reaches = __ballot_sync(0xffffffffu, number - walk.before < walk.up_to);
  const int lane = chunk.exists ? __ffs(static_cast<int>(reaches)) - 1 : 0;
  chunk.m = walk.first_m + lane;
  chunk.length = __shfl_sync(0xffffffffu, walk.length, lane);
  const long long up_to = __shfl_sync(0xffffffffu, walk.up_to, lane);
  chunk.first_n = (number - walk.before - up_to + num_chunks(chunk.length)) * Config::kChunk;
  return chunk;
}

// ---- A chunk ----------------------------------------------------------------------------------------------------------------------

/// kIsWhole: all elements exist, and vectors are aligned.
template <bool kIsWhole>
__device__ __forceinline__ void take_chunk(const Chunk& chunk, const RowArgs& row, Accumulator (&partial)[Config::REDUCTIONS]) {
  RowReads reads[Config::ITEMS];
  RowColumns columns[Config::ITEMS];
  const RowResults none = {};
  const long long first_n = chunk.first_n + static_cast<long long>(threadIdx.x) * Config::VEC;
#pragma unroll
  for (int item = 0; item < Config::ITEMS; ++item) {
    const long long n = first_n + item * Config::THREADS * Config::VEC;
    const int count = kIsWhole || chunk.length - n >= Config::VEC ? Config::VEC : static_cast<int>(chunk.length - n);
    if (kIsWhole || n < chunk.length) {
      row_read<kIsWhole>(row, chunk.m, n, count, reads[item]);
      row_read_columns<kIsWhole>(row, n, count, columns[item]);
    }
  }
#pragma unroll
  for (int item = 0; item < Config::ITEMS; ++item) {
    const long long n = first_n + item * Config::THREADS * Config::VEC;
    const int count = kIsWhole || chunk.length - n >= Config::VEC ? Config::VEC : static_cast<int>(chunk.length - n);
    if (kIsWhole || n < chunk.length) {
      if constexpr (Config::PHASES > 0) {
        row_accumulate<0, kIsWhole>(row, chunk.m, n, reads[item], columns[item], none, count, partial);
      }
      row_store<kIsWhole>(row, chunk.m, n, reads[item], columns[item], none, count);
    }
  }
}

// ---- Reduction over the CTAs --------------------------------------------------------------------------------------------------------

struct Exchange {
  Accumulator of_warps[Config::kWarps][Config::REDUCTIONS];
  bool is_last;
};

template <int kLanes>
__device__ __forceinline__ void combine_lanes(Accumulator (&partial)[Config::REDUCTIONS]) {
#pragma unroll
  for (int bit = kLanes / 2; bit > 0; bit /= 2) {
    Accumulator other[Config::REDUCTIONS];
#pragma unroll
    for (int slot = 0; slot < Config::REDUCTIONS; ++slot) {
      other[slot] = __shfl_xor_sync(0xffffffffu, partial[slot], bit);
    }
    row_combine<0>(partial, other);
  }
}

/// All threads of the CTA get the reduction over them.
__device__ __forceinline__ void combine_threads(Exchange& exchange, Accumulator (&partial)[Config::REDUCTIONS]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  combine_lanes<32>(partial);
  __syncthreads();  // the exchange may still be read
  if (lane == 0) {
#pragma unroll
    for (int slot = 0; slot < Config::REDUCTIONS; ++slot) {
      exchange.of_warps[threadIdx.x / 32][slot] = partial[slot];
    }
  }
  __syncthreads();
#pragma unroll
  for (int slot = 0; slot < Config::REDUCTIONS; ++slot) {
    partial[slot] = exchange.of_warps[lane % Config::kWarps][slot];
  }
  combine_lanes<Config::kWarps>(partial);
}

/// Leaves the CTA's part; the last CTA to do so takes all of them and writes the single values. `arrivals` is 0 before and after.
__device__ __forceinline__ void finish(const RowArgs& row, Accumulator* parts, unsigned* arrivals, Exchange& exchange,
                                       Accumulator (&partial)[Config::REDUCTIONS]) {
  combine_threads(exchange, partial);
  if (threadIdx.x == 0) {
#pragma unroll
    for (int slot = 0; slot < Config::REDUCTIONS; ++slot) {
      parts[static_cast<long long>(blockIdx.x) * Config::REDUCTIONS + slot] = partial[slot];
    }
    exchange.is_last = atom_inc_acq_rel(arrivals, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!exchange.is_last) {
    return;
  }
  row_identity<0>(partial);
#pragma unroll 1
  for (unsigned cta = threadIdx.x; cta < gridDim.x; cta += Config::THREADS) {
    Accumulator other[Config::REDUCTIONS];
#pragma unroll
    for (int slot = 0; slot < Config::REDUCTIONS; ++slot) {
      other[slot] = parts[static_cast<long long>(cta) * Config::REDUCTIONS + slot];
    }
    row_combine<0>(partial, other);
  }
  combine_threads(exchange, partial);
  if (threadIdx.x == 0) {
    RowResults results = {};
    row_finish<0>(partial, results);
    row_store_once(row, 0, results);
  }
}

// ---- Kernel -----------------------------------------------------------------------------------------------------------------------

COMPUTES("out[m,n] = list[n](m)")
REQUIRES_ARCH("sm_80")
extern "C" __global__ void __launch_bounds__(Config::THREADS, Config::CTAS_PER_SM)
    list_sm80(ListProblem problem, RowArgs row, Accumulator* parts, unsigned* arrivals) {
  if constexpr (Config::IS_FOLLOWED) {
    let_next_grid_begin();
  }
  if constexpr (Config::IS_DEPENDENT) {
    wait_for_grid_before();
  }
  Accumulator partial[Config::REDUCTIONS];
  row_identity<0>(partial);
  Walk walk = {};
  look_at(0, row, problem, walk);
  for (long long number = blockIdx.x;; number += gridDim.x) {
    const Chunk chunk = find_chunk(number, row, problem, walk);
    if (!chunk.exists) {
      break;
    }
    if (chunk.length - chunk.first_n >= Config::kChunk && list_is_aligned<Config::VEC>(row, chunk.m)) {
      take_chunk<true>(chunk, row, partial);
    } else {
      take_chunk<false>(chunk, row, partial);
    }
  }
  if constexpr (Config::PHASES > 0) {
    __shared__ Exchange exchange;
    finish(row, parts, arrivals, exchange, partial);
  }
}
