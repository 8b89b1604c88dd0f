// SPDX-License-Identifier: Apache-2.0
// gated, made from the template row_sm80 for sm_80.
//
//   out[m,n] = silu(x[m,n]) * x[m,n + N] * scale[table[m],n]
//
// Config: THREADS = 128, ROWS = 1, VEC = 8, ITEMS = 2, CLUSTER = 1, IS_STREAMED = 0

/// f16 bits -> f32, exact.
__device__ __forceinline__ float cvt_f32_f16(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

/// f32 -> f16 bits, round to nearest even; too large becomes infinity.
__device__ __forceinline__ unsigned short cvt_rn_f16_f32(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

/// f16: 1 sign, 5 exponent, 10 fraction bits.
struct Half {
  unsigned short bits;
};

/// Element -> the type computed in.
template <typename Acc>
__device__ __forceinline__ Acc to_accumulator(Half x) {
  return static_cast<Acc>(cvt_f32_f16(x.bits));
}
template <typename Acc, typename Plain>
__device__ __forceinline__ Acc to_accumulator(Plain x) {
  return static_cast<Acc>(x);
}

/// The type computed in -> element. The second argument only names the element type.
template <typename Acc>
__device__ __forceinline__ Half round_to(Acc value, Half) {
  return Half{cvt_rn_f16_f32(static_cast<float>(value))};
}

/// from_accumulator<T>(value): the element of type T nearest to `value` (even on a tie).
template <typename T, typename Acc>
__device__ __forceinline__ T from_accumulator(Acc value) {
  return round_to(value, T{});
}

// ---- Config -------------------------------------------------------------------------------------

struct Config {
  using Accumulator = float;
  static constexpr int PHASES = 0;
  static constexpr int REDUCTIONS = 1;  ///< of one phase, at most
  static constexpr int THREADS = 128;   ///< threads of a CTA that share a row
  static constexpr int ROWS = 1;        ///< rows of a CTA
  static constexpr int VEC = 8;         ///< neighbouring elements of a thread
  static constexpr int ITEMS = 2;       ///< vectors of a thread
  static constexpr int CLUSTER = 1;     ///< CTAs that share a row

  static constexpr int kThreads = THREADS * ROWS;
  static constexpr int kWarpsPerRow = THREADS < 32 ? 1 : THREADS / 32;
  static constexpr int kColumns = THREADS * VEC * ITEMS;  ///< that a CTA's threads hold of a row
};

__device__ __forceinline__ void st_global_v4_b32(void* gmem, unsigned w0, unsigned w1, unsigned w2,
                                                 unsigned w3) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(gmem), "r"(w0), "r"(w1), "r"(w2), "r"(w3)
               : "memory");
}

__device__ __forceinline__ void ld_global_movable_v4_b32(const void* gmem, unsigned& w0, unsigned& w1,
                                                         unsigned& w2, unsigned& w3) {
  asm("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(w0), "=r"(w1), "=r"(w2), "=r"(w3) : "l"(gmem));
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
#pragma unroll
  for (int i = 0; i < kWords; i += 4) {
    st_global_v4_b32(static_cast<unsigned*>(pointer) + i, words[i], words[i + 1], words[i + 2], words[i + 3]);
  }
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
#pragma unroll
  for (int i = 0; i < kWords; i += 4) {
    ld_global_movable_v4_b32(static_cast<const unsigned*>(pointer) + i, words[i], words[i + 1], words[i + 2],
                             words[i + 3]);
  }
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

/// x * sigmoid(x).
__device__ __forceinline__ float silu(float x) { return x / (1 + expf(-x)); }

/// Kernel parameter `row`: pointers and strides (elements) of the tensors that are read and written, and the
/// op's scalars.
struct RowArgs {
  const Half* x;
  long long x_stride_m;
  long long x_offset;
  const float* scale;
  const int* table;
  long long scale_stride0;
  Half* out;
  long long out_stride_m;
};

/// Whether kVec elements of every contiguous tensor are aligned to their whole, wherever a row's n is a
/// multiple of kVec.
template <int kVec>
__device__ __forceinline__ bool row_is_aligned(const RowArgs& args) {
  return is_aligned_for<kVec>(args.x, args.x_stride_m) &&
         is_aligned_for<kVec>(args.x + args.x_offset, args.x_stride_m) &&
         is_aligned_for<kVec>(args.scale, args.scale_stride0) &&
         is_aligned_for<kVec>(args.out, args.out_stride_m);
}

/// What the elements (m, n) .. (m, n + VEC - 1) need, as it lies in gmem.
struct RowReads {
  ElementWords<Half, Config::VEC> x;
  ElementWords<Half, Config::VEC> x_2;
  ElementWords<float, Config::VEC> scale;
};

/// Loads it for the first `count` elements. kIsWhole: count is VEC and row_is_aligned<VEC>().
template <bool kIsWhole>
__device__ __forceinline__ void row_read(const RowArgs& args, long long m, long long n, int count,
                                         RowReads& reads) {
  load_elements<Config::VEC, kIsWhole>(args.x + m * args.x_stride_m + n, 1, count, reads.x);
  load_elements<Config::VEC, kIsWhole>(args.x + m * args.x_stride_m + n + args.x_offset, 1, count, reads.x_2);
  const long long table_value = to_accumulator<long long>(args.table[m]);
  load_elements<Config::VEC, kIsWhole>(args.scale + n + table_value * args.scale_stride0, 1, count,
                                       reads.scale);
}

/// The finished reductions of a row.
struct RowResults {};

/// Outputs of `count` elements.
template <bool kIsWhole>
__device__ __forceinline__ void row_store(const RowArgs& args, long long m, long long n,
                                          const RowReads& reads, const RowResults& results, int count) {
  ElementWords<Half, Config::VEC> out_values;
#pragma unroll
  for (int i = 0; i < Config::VEC; ++i) {
    if (!kIsWhole && i >= count) {
      break;
    }
    out_values.elements[i] = from_accumulator<Half>(silu(to_accumulator<float>(reads.x.elements[i])) *
                                                    to_accumulator<float>(reads.x_2.elements[i]) *
                                                    to_accumulator<float>(reads.scale.elements[i]));
  }
  store_elements<Config::VEC, kIsWhole>(args.out + m * args.out_stride_m + n, 1, count, out_values);
}

/// Outputs that have one element a row.
__device__ __forceinline__ void row_store_once(const RowArgs& args, long long m, const RowResults& results) {}

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

// ---- A row --------------------------------------------------------------------------------------

/// Phases kPhase and later of a row in registers.
template <int kPhase, bool kIsWhole>
__device__ __forceinline__ void reduce(const RowArgs& row, const RowProblem& problem, const Place& place,
                                       const RowReads (&reads)[Config::ITEMS], Exchange& exchange,
                                       RowResults& results) {}

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
    row_sm80__t128_r1_v8_i2_c1_s0(RowProblem problem, RowArgs row) {
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
