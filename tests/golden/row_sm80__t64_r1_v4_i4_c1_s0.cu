// SPDX-License-Identifier: Apache-2.0
// softmax_and_scale, made from the template row_sm80 for sm_80.
//
//   out[m,n] = softmax[n](x[m,n])
//   peak[m] = max[j](softmax[j](x[m,j]))
//
// Config: THREADS = 64, ROWS = 1, VEC = 4, ITEMS = 4, CLUSTER = 1, IS_STREAMED = 0

/// f32 -> bf16 bits, round to nearest even. sm_80 and up.
__device__ __forceinline__ unsigned short cvt_rn_bf16_f32(float value) {
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

/// bf16: 1 sign, 8 exponent, 7 fraction bits: the upper half of an f32.
struct BFloat16 {
  unsigned short bits;
};

template <typename Acc>
__device__ __forceinline__ Acc to_accumulator(BFloat16 x) {
  return static_cast<Acc>(__uint_as_float(static_cast<unsigned>(x.bits) << 16));
}

template <typename Acc>
__device__ __forceinline__ BFloat16 round_to(Acc value, BFloat16) {
  return BFloat16{cvt_rn_bf16_f32(static_cast<float>(value))};
}
template <typename Acc, typename Plain>
__device__ __forceinline__ Plain round_to(Acc value, Plain) {
  return static_cast<Plain>(value);
}

/// from_accumulator<T>(value): the element of type T nearest to `value` (even on a tie).
template <typename T, typename Acc>
__device__ __forceinline__ T from_accumulator(Acc value) {
  return round_to(value, T{});
}

// ---- Config -------------------------------------------------------------------------------------

struct Config {
  using Accumulator = float;
  static constexpr int PHASES = 3;
  static constexpr int REDUCTIONS = 1;  ///< of one phase, at most
  static constexpr int THREADS = 64;    ///< threads of a CTA that share a row
  static constexpr int ROWS = 1;        ///< rows of a CTA
  static constexpr int VEC = 4;         ///< neighbouring elements of a thread
  static constexpr int ITEMS = 4;       ///< vectors of a thread
  static constexpr int CLUSTER = 1;     ///< CTAs that share a row

  static constexpr int kThreads = THREADS * ROWS;
  static constexpr int kWarpsPerRow = THREADS < 32 ? 1 : THREADS / 32;
  static constexpr int kColumns = THREADS * VEC * ITEMS;  ///< that a CTA's threads hold of a row
};

__device__ __forceinline__ void st_global_v2_b32(void* gmem, unsigned w0, unsigned w1) {
  asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(gmem), "r"(w0), "r"(w1) : "memory");
}

__device__ __forceinline__ void ld_global_movable_v2_b32(const void* gmem, unsigned& w0, unsigned& w1) {
  asm("ld.global.v2.b32 {%0, %1}, [%2];" : "=r"(w0), "=r"(w1) : "l"(gmem));
}

/// kVec elements seen as 32-bit words: the compiler does not join small elements to wide accesses by itself.
template <typename T, int kVec>
union ElementWords {
  T elements[kVec];
  unsigned words[kVec * sizeof(T) < 4 ? 1 : kVec * sizeof(T) / 4];
};

/// Alignment, in bytes, of the accesses to kVec elements of element_bytes: at most 16; 0 when they are no
/// whole words.
__host__ __device__ constexpr int wide_access_bytes(int vec, int element_bytes) {
  return vec * element_bytes % 16 == 0 ? 16 : vec * element_bytes == 8 ? 8 : vec * element_bytes == 4 ? 4 : 0;
}

template <int kAccessBytes, int kWords>
__device__ __forceinline__ void store_words(void* pointer, const unsigned (&words)[kWords]) {
  st_global_v2_b32(pointer, words[0], words[1]);
}

/// Whether every access to kVec elements at `pointer` + whole multiples of the strides that were or-ed
/// together is aligned to its width.
template <int kVec, typename T>
__device__ __forceinline__ bool is_aligned_for(const T* pointer, long long strides) {
  constexpr int kAccessBytes = wide_access_bytes(kVec, static_cast<int>(sizeof(T)));
  const unsigned long long bits =
      reinterpret_cast<unsigned long long>(pointer) | static_cast<unsigned long long>(strides) * sizeof(T);
  return bits % kAccessBytes == 0;
}

template <int kAccessBytes, int kWords>
__device__ __forceinline__ void load_whole_words(const void* pointer, unsigned (&words)[kWords]) {
  ld_global_movable_v2_b32(pointer, words[0], words[1]);
}

/// values[i] = pointer[i * stride] for i < count, as they are; those beyond count are left alone. kIsWhole:
/// count is kVec, aligned if contiguous.
template <int kVec, bool kIsWhole, typename T>
__device__ __forceinline__ void load_elements(const T* pointer, long long stride, int count,
                                              ElementWords<T, kVec>& values) {
  constexpr int kAccessBytes = wide_access_bytes(kVec, static_cast<int>(sizeof(T)));
  if constexpr (kIsWhole && kAccessBytes > 0) {
    if (stride == 1) {
      load_whole_words<kAccessBytes>(pointer, values.words);
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < kVec; ++i) {
    if (i < (kIsWhole ? kVec : count)) {
      values.elements[i] = pointer[i * stride];
    }
  }
}

/// pointer[i * stride] = values[i] for i < count. kIsWhole as above.
template <int kVec, bool kIsWhole, typename T>
__device__ __forceinline__ void store_elements(T* pointer, long long stride, int count,
                                               const ElementWords<T, kVec>& values) {
  constexpr int kAccessBytes = wide_access_bytes(kVec, static_cast<int>(sizeof(T)));
  if constexpr (kIsWhole && kAccessBytes > 0) {
    if (stride == 1) {
      store_words<kAccessBytes>(pointer, values.words);
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < kVec; ++i) {
    if (i < (kIsWhole ? kVec : count)) {
      pointer[i * stride] = values.elements[i];
    }
  }
}

using Accumulator = Config::Accumulator;

/// Kernel parameter `problem`.
struct RowProblem {
  long long extent_m;  ///< rows
  long long extent_n;  ///< elements of a row
};

/// The larger one; NaN when either is NaN.
__device__ __forceinline__ float maximum(float a, float b) { return a > b || a != a ? a : b; }

/// Kernel parameter `row`: pointers and strides (elements) of the tensors that are read and written, and the
/// op's scalars.
struct RowArgs {
  const BFloat16* x;
  long long x_stride_m;
  BFloat16* out;
  long long out_stride_m;
  float* peak;
};

/// Whether kVec elements of every contiguous tensor are aligned to their whole, wherever a row's n is a
/// multiple of kVec.
template <int kVec>
__device__ __forceinline__ bool row_is_aligned(const RowArgs& args) {
  return is_aligned_for<kVec>(args.x, args.x_stride_m) && is_aligned_for<kVec>(args.out, args.out_stride_m);
}

/// What the elements (m, n) .. (m, n + VEC - 1) need, as it lies in gmem.
struct RowReads {
  ElementWords<BFloat16, Config::VEC> x;
};

/// Loads it for the first `count` elements. kIsWhole: count is VEC and row_is_aligned<VEC>().
template <bool kIsWhole>
__device__ __forceinline__ void row_read(const RowArgs& args, long long m, long long n, int count,
                                         RowReads& reads) {
  load_elements<Config::VEC, kIsWhole>(args.x + m * args.x_stride_m + n, 1, count, reads.x);
}

/// The finished reductions of a row.
struct RowResults {
  float row_max;
  float row_sum;
  float row_max_2;
};

/// Neutral values of the phase's reductions.
template <int kPhase>
__device__ __forceinline__ void row_identity(Accumulator (&partial)[Config::REDUCTIONS]) {
  if constexpr (kPhase == 0) {
    partial[0] = -__int_as_float(0x7f800000);
  } else if constexpr (kPhase == 1) {
    partial[0] = 0.0f;
  } else {
    partial[0] = -__int_as_float(0x7f800000);
  }
}

/// Takes `count` elements into the phase's reductions.
template <int kPhase, bool kIsWhole>
__device__ __forceinline__ void row_accumulate(const RowArgs& args, long long m, long long n,
                                               const RowReads& reads, const RowResults& results, int count,
                                               Accumulator (&partial)[Config::REDUCTIONS]) {
  if constexpr (kPhase == 0) {
#pragma unroll
    for (int i = 0; i < Config::VEC; ++i) {
      if (!kIsWhole && i >= count) {
        break;
      }
      partial[0] = maximum(partial[0], to_accumulator<float>(reads.x.elements[i]));
    }
  } else if constexpr (kPhase == 1) {
    const float uniform = results.row_max == -__int_as_float(0x7f800000) ? 0.0f : results.row_max;
#pragma unroll
    for (int i = 0; i < Config::VEC; ++i) {
      if (!kIsWhole && i >= count) {
        break;
      }
      partial[0] = partial[0] + expf(to_accumulator<float>(reads.x.elements[i]) - uniform);
    }
  } else {
    const float uniform = results.row_max == -__int_as_float(0x7f800000) ? 0.0f : results.row_max;
    const float uniform_2 = results.row_sum == 0.0f ? 0.0f : 1.0f / results.row_sum;
#pragma unroll
    for (int i = 0; i < Config::VEC; ++i) {
      if (!kIsWhole && i >= count) {
        break;
      }
      const float value = expf(to_accumulator<float>(reads.x.elements[i]) - uniform);
      partial[0] = maximum(partial[0], value * uniform_2);
    }
  }
}

/// Takes other elements' reductions into these.
template <int kPhase>
__device__ __forceinline__ void row_combine(Accumulator (&partial)[Config::REDUCTIONS],
                                            const Accumulator (&other)[Config::REDUCTIONS]) {
  if constexpr (kPhase == 0) {
    partial[0] = maximum(partial[0], other[0]);
  } else if constexpr (kPhase == 1) {
    partial[0] = partial[0] + other[0];
  } else {
    partial[0] = maximum(partial[0], other[0]);
  }
}

template <int kPhase>
__device__ __forceinline__ void row_finish(const Accumulator (&partial)[Config::REDUCTIONS],
                                           RowResults& results) {
  if constexpr (kPhase == 0) {
    results.row_max = partial[0];
  } else if constexpr (kPhase == 1) {
    results.row_sum = partial[0];
  } else {
    results.row_max_2 = partial[0];
  }
}

/// Outputs of `count` elements.
template <bool kIsWhole>
__device__ __forceinline__ void row_store(const RowArgs& args, long long m, long long n,
                                          const RowReads& reads, const RowResults& results, int count) {
  const float uniform = results.row_max == -__int_as_float(0x7f800000) ? 0.0f : results.row_max;
  const float uniform_2 = results.row_sum == 0.0f ? 0.0f : 1.0f / results.row_sum;
  ElementWords<BFloat16, Config::VEC> out_values;
#pragma unroll
  for (int i = 0; i < Config::VEC; ++i) {
    if (!kIsWhole && i >= count) {
      break;
    }
    const float value = expf(to_accumulator<float>(reads.x.elements[i]) - uniform);
    const float value_2 = value * uniform_2;
    out_values.elements[i] = from_accumulator<BFloat16>(value_2);
  }
  store_elements<Config::VEC, kIsWhole>(args.out + m * args.out_stride_m + n, 1, count, out_values);
}

/// Outputs that have one element a row.
__device__ __forceinline__ void row_store_once(const RowArgs& args, long long m, const RowResults& results) {
  *(args.peak + m) = from_accumulator<float>(results.row_max_2);
}

// ---- Launch -------------------------------------------------------------------------------------

/// CTAs side by side along a row: of a cluster, or parts of a row that is not reduced.
__host__ __device__ constexpr long long ctas_per_row(long long extent_n) {
  return Config::PHASES > 0             ? Config::CLUSTER
         : extent_n <= Config::kColumns ? 1
                                        : (extent_n + Config::kColumns - 1) / Config::kColumns;
}

// ---- The columns of a thread --------------------------------------------------------------------

/// Where a thread works: a row, and of it the columns first_n + item * kStep to + VEC - 1, item = 0 .. ITEMS
/// - 1.
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
__device__ __forceinline__ void accumulate_items(const RowArgs& row, const RowProblem& problem,
                                                 const Place& place, const RowReads (&reads)[Config::ITEMS],
                                                 const RowResults& results,
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
                                            const RowReads (&reads)[Config::ITEMS],
                                            const RowResults& results) {
#pragma unroll
  for (int item = 0; item < Config::ITEMS; ++item) {
    const int count = count_at<kIsWhole>(place.n(item), problem.extent_n);
    if (place.is_row && count > 0) {
      row_store<kIsWhole>(row, place.m, place.n(item), reads[item], results, count);
    }
  }
}

// ---- Reduction over the threads of a row --------------------------------------------------------

/// Results of warps and CTAs on their way to all threads of a row; two phases take turns, so that one barrier
/// a phase is enough.
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
__device__ __forceinline__ void combine_warps(Exchange& exchange, const Place& place,
                                              Accumulator (&partial)[Config::REDUCTIONS]) {
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

template <int kPhase>
__device__ __forceinline__ void combine(Exchange& exchange, const Place& place,
                                        Accumulator (&partial)[Config::REDUCTIONS]) {
  combine_lanes<kPhase, (Config::THREADS < 32 ? Config::THREADS : 32)>(partial);
  combine_warps<kPhase>(exchange, place, partial);
}

// ---- A row --------------------------------------------------------------------------------------

/// Phases kPhase and later of a row in registers.
template <int kPhase, bool kIsWhole>
__device__ __forceinline__ void reduce(const RowArgs& row, const RowProblem& problem, const Place& place,
                                       const RowReads (&reads)[Config::ITEMS], Exchange& exchange,
                                       RowResults& results) {
  if constexpr (kPhase < Config::PHASES) {
    Accumulator partial[Config::REDUCTIONS];
    row_identity<kPhase>(partial);
    accumulate_items<kPhase, kIsWhole>(row, problem, place, reads, results, partial);
    combine<kPhase>(exchange, place, partial);
    row_finish<kPhase>(partial, results);
    reduce<kPhase + 1, kIsWhole>(row, problem, place, reads, exchange, results);
  }
}

template <bool kIsWhole>
__device__ __forceinline__ void make_row(const RowArgs& row, const RowProblem& problem, Place place,
                                         Exchange& exchange) {
  RowResults results = {};
  RowReads reads[Config::ITEMS];
  read_items<kIsWhole>(row, problem, place, reads);
  reduce<0, kIsWhole>(row, problem, place, reads, exchange, results);
  store_items<kIsWhole>(row, problem, place, reads, results);
  if (place.is_row && place.first_n == 0) {
    row_store_once(row, place.m, results);
  }
}

// ---- Kernel -------------------------------------------------------------------------------------

extern "C" __global__ void __launch_bounds__(Config::kThreads, 1)
    row_sm80__t64_r1_v4_i4_c1_s0(RowProblem problem, RowArgs row) {
  __shared__ Exchange exchange;
  const long long per_row = ctas_per_row(problem.extent_n);
  const long long part = static_cast<long long>(blockIdx.x) % per_row;
  Place place;
  place.thread = static_cast<int>(threadIdx.x) % Config::THREADS;
  place.m = static_cast<long long>(blockIdx.x) / per_row * Config::ROWS +
            static_cast<long long>(threadIdx.x) / Config::THREADS;
  place.first_n = part * Config::kColumns + place.thread * Config::VEC;
  place.is_row = place.m < problem.extent_m;
  if (problem.extent_n % Config::VEC == 0 && row_is_aligned<Config::VEC>(row)) {
    make_row<true>(row, problem, place, exchange);
  } else {
    make_row<false>(row, problem, place, exchange);
  }
}
