// A function of whole rows: pointwise values of the elements (m, n) and reductions over n, which may use reductions of earlier phases. All
// hooks are replaced by the generator with the op's own expressions; as they stand they divide each element by its row's sum, so that a
// template compiles and runs alone. Include it after `struct Config`: Config::VEC neighbouring elements are handled at a time,
// Config::REDUCTIONS is the most reductions of one phase, Config::Accumulator the type computed in. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "parts/annotations.cuh"
#include "parts/types.cuh"
#include "parts/whole_vector.cuh"

using Accumulator = Config::Accumulator;

template <int kAccessBytes, int kWords>
__device__ __forceinline__ void load_words_once(const void* pointer, unsigned (&words)[kWords]) {
  if constexpr (kAccessBytes == 16) {
#pragma unroll
    for (int i = 0; i < kWords; i += 4) {
      ld_global_cs_v4_b32(static_cast<const unsigned*>(pointer) + i, words[i], words[i + 1], words[i + 2], words[i + 3]);
    }
  } else if constexpr (kAccessBytes == 8) {
    ld_global_cs_v2_b32(pointer, words[0], words[1]);
  } else {
    ld_global_cs_b32(pointer, words[0]);
  }
}

template <int kAccessBytes, int kWords>
__device__ __forceinline__ void store_words_once(void* pointer, const unsigned (&words)[kWords]) {
  if constexpr (kAccessBytes == 16) {
#pragma unroll
    for (int i = 0; i < kWords; i += 4) {
      st_global_cs_v4_b32(static_cast<unsigned*>(pointer) + i, words[i], words[i + 1], words[i + 2], words[i + 3]);
    }
  } else if constexpr (kAccessBytes == 8) {
    st_global_cs_v2_b32(pointer, words[0], words[1]);
  } else {
    st_global_cs_b32(pointer, words[0]);
  }
}

/// With HAS_HINTS L2 gives the lines up first.
template <int kAccessBytes, int kWords>
__device__ __forceinline__ void load_row_words(const void* pointer, unsigned (&words)[kWords]) {
  if constexpr (Config::HAS_HINTS) {
    load_words_once<kAccessBytes>(pointer, words);
  } else {
    load_words<kAccessBytes>(pointer, words);
  }
}

template <int kAccessBytes, int kWords>
__device__ __forceinline__ void store_row_words(void* pointer, const unsigned (&words)[kWords]) {
  if constexpr (Config::HAS_HINTS) {
    store_words_once<kAccessBytes>(pointer, words);
  } else {
    store_words<kAccessBytes>(pointer, words);
  }
}

/// As load_elements, of a row's own elements. The loads are issued where they stand: a row is loaded before another one is reduced.
template <bool kIsWhole, typename T>
__device__ __forceinline__ void load_row_elements(const T* pointer, long long stride, int count, ElementWords<T, Config::VEC>& values) {
  constexpr int kAccessBytes = wide_access_bytes(Config::VEC, static_cast<int>(sizeof(T)));
  if constexpr (kIsWhole && kAccessBytes >= 4) {
    if (stride == 1) {
      load_row_words<kAccessBytes>(pointer, values.words);
      return;
    }
  }
  load_elements<Config::VEC, kIsWhole>(pointer, stride, count, values);
}

template <bool kIsWhole, typename T>
__device__ __forceinline__ void store_row_elements(T* pointer, long long stride, int count, const ElementWords<T, Config::VEC>& values) {
  constexpr int kAccessBytes = wide_access_bytes(Config::VEC, static_cast<int>(sizeof(T)));
  if constexpr (kIsWhole && kAccessBytes >= 4) {
    if (stride == 1) {
      store_row_words<kAccessBytes>(pointer, values.words);
      return;
    }
  }
  store_elements<Config::VEC, kIsWhole>(pointer, stride, count, values);
}

/// From here on the compiler knows nothing of the value.
__device__ __forceinline__ void hide_value(unsigned& value) { asm volatile("" : "+r"(value)); }

/// A number that follows from the length of a row: a constant in kernels for rows of one length.
template <long long kNumber>
__device__ __forceinline__ long long known(long long number) {
  return Config::EXTENT_N > 0 ? kNumber : number;
}

/// Kernel parameter `problem`.
struct RowProblem {
  long long extent_m;  ///< rows
  long long extent_n;  ///< elements of a row
};

/// Kernel parameter `row`: pointers and strides (elements) of the tensors that are read and written, and the op's scalars.
HOOK("row_args") struct RowArgs {
  const Accumulator* x;
  Accumulator* out;
  long long stride_m;
};

/// Whether kVec elements of every contiguous tensor are aligned to their whole, wherever a row's n is a multiple of kVec. All are
/// looked at without a branch: a row's loads wait for the answer.
HOOK("row_is_aligned")
template <int kVec>
__device__ __forceinline__ bool row_is_aligned(const RowArgs& args) {
  return is_aligned_for<kVec>(args.x, args.stride_m) & is_aligned_for<kVec>(args.out, args.stride_m);
}

/// What the elements (m, n) .. (m, n + VEC - 1) need of their row, as it lies in gmem.
HOOK("row_reads") struct RowReads {
  ElementWords<Accumulator, Config::VEC> x;
};

/// What they need of tensors that are the same for every row.
HOOK("row_columns") struct RowColumns {};

/// Loads it for the first `count` elements. kIsWhole: count is VEC and row_is_aligned<VEC>().
HOOK("row_read")
template <bool kIsWhole>
__device__ __forceinline__ void row_read(const RowArgs& args, long long m, long long n, int count, RowReads& reads) {
  load_row_elements<kIsWhole>(args.x + m * args.stride_m + n, 1, count, reads.x);
}

/// Has L2 fetch what the elements from (m, n) on need of tensors that no kernel before this one writes.
HOOK("row_prefetch") __device__ __forceinline__ void row_prefetch(const RowArgs& args, long long m, long long n) {}

HOOK("row_read_columns")
template <bool kIsWhole>
__device__ __forceinline__ void row_read_columns(const RowArgs& args, long long n, int count, RowColumns& columns) {}

/// The finished reductions of a row.
HOOK("row_results") struct RowResults {
  Accumulator sum;
};

/// Neutral values of the phase's reductions.
HOOK("row_identity")
template <int kPhase>
__device__ __forceinline__ void row_identity(Accumulator (&partial)[Config::REDUCTIONS]) {
  partial[0] = 0;
}

/// Takes `count` elements into the phase's reductions.
HOOK("row_accumulate")
template <int kPhase, bool kIsWhole>
__device__ __forceinline__ void row_accumulate(const RowArgs& args, long long m, long long n, const RowReads& reads,
                                               const RowColumns& columns, const RowResults& results, int count,
                                               Accumulator (&partial)[Config::REDUCTIONS]) {
#pragma unroll
  for (int i = 0; i < Config::VEC; ++i) {
    if (!kIsWhole && i >= count) {
      break;
    }
    partial[0] = partial[0] + to_accumulator<Accumulator>(reads.x.elements[i]);
  }
}

/// Takes other elements' reductions into these.
HOOK("row_combine")
template <int kPhase>
__device__ __forceinline__ void row_combine(Accumulator (&partial)[Config::REDUCTIONS], const Accumulator (&other)[Config::REDUCTIONS]) {
  partial[0] = partial[0] + other[0];
}

HOOK("row_finish")
template <int kPhase>
__device__ __forceinline__ void row_finish(const Accumulator (&partial)[Config::REDUCTIONS], RowResults& results) {
  results.sum = partial[0];
}

/// Outputs of `count` elements.
HOOK("row_store")
template <bool kIsWhole>
__device__ __forceinline__ void row_store(const RowArgs& args, long long m, long long n, const RowReads& reads, const RowColumns& columns,
                                          const RowResults& results, int count) {
  ElementWords<Accumulator, Config::VEC> values;
#pragma unroll
  for (int i = 0; i < Config::VEC; ++i) {
    if (!kIsWhole && i >= count) {
      break;
    }
    values.elements[i] = to_accumulator<Accumulator>(reads.x.elements[i]) / results.sum;
  }
  store_row_elements<kIsWhole>(args.out + m * args.stride_m + n, 1, count, values);
}

/// Outputs that have one element a row.
HOOK("row_store_once")
__device__ __forceinline__ void row_store_once(const RowArgs& args, long long m, const RowResults& results) {}
