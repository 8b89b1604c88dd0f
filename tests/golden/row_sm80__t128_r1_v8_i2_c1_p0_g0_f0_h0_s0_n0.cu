// SPDX-License-Identifier: Apache-2.0
// gated, made from the template row_sm80 for sm_80.
//
//   out[m,n] = silu(x[m,n]) * x[m,n + N] * scale[table[m],n]
//
// Config: THREADS = 128, ROWS = 1, VEC = 8, ITEMS = 2, CLUSTER = 1, CTAS_PER_SM = 0, MAX_REGISTERS = 0,
// COLUMNS_FIRST = 0, HAS_HINTS = 0, IS_STREAMED = 0, EXTENT_N = 0

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
  static constexpr int REDUCTIONS = 1;      ///< of one phase, at most
  static constexpr int THREADS = 128;       ///< threads of a CTA that share a row
  static constexpr int ROWS = 1;            ///< rows of a CTA
  static constexpr int VEC = 8;             ///< neighbouring elements of a thread
  static constexpr int ITEMS = 2;           ///< vectors of a thread
  static constexpr int CLUSTER = 1;         ///< CTAs that share a row
  static constexpr int CTAS_PER_SM = 0;     ///< persistent CTAs; 0: each has its own rows alone
  static constexpr int MAX_REGISTERS = 0;   ///< of a thread, for more CTAs an SM; 0: as wanted
  static constexpr long long EXTENT_N = 0;  ///< length of all rows; 0: known at launch

  static constexpr int kThreads = THREADS * ROWS;
  static constexpr int kWarpsPerRow = THREADS < 32 ? 1 : THREADS / 32;
  static constexpr int kColumns = THREADS * VEC * ITEMS;  ///< that a CTA's threads hold of a row
  static constexpr int kLeastCtasPerSm = CTAS_PER_SM > 0     ? CTAS_PER_SM
                                         : MAX_REGISTERS > 0 ? 65536 / (MAX_REGISTERS * kThreads)
                                                             : 1;  ///< for the compiler: 64 K registers an SM
  /// In kernels for rows of one length: every vector of every item exists. So does every row where each CTA
  /// has one.
  static constexpr bool kColumnsExist = EXTENT_N > 0 && EXTENT_N % (kColumns * CLUSTER) == 0;
};

__device__ __forceinline__ void ld_global_v4_b32(const void* gmem, unsigned& w0, unsigned& w1, unsigned& w2,
                                                 unsigned& w3) {
  asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w0), "=r"(w1), "=r"(w2), "=r"(w3)
               : "l"(gmem)
               : "memory");
}
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
__device__ __forceinline__ void load_words(const void* pointer, unsigned (&words)[kWords]) {
#pragma unroll
  for (int i = 0; i < kWords; i += 4) {
    ld_global_v4_b32(static_cast<const unsigned*>(pointer) + i, words[i], words[i + 1], words[i + 2],
                     words[i + 3]);
  }
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

/// With HAS_HINTS L2 gives the lines up first.
template <int kAccessBytes, int kWords>
__device__ __forceinline__ void load_row_words(const void* pointer, unsigned (&words)[kWords]) {
  load_words<kAccessBytes>(pointer, words);
}

template <int kAccessBytes, int kWords>
__device__ __forceinline__ void store_row_words(void* pointer, const unsigned (&words)[kWords]) {
  store_words<kAccessBytes>(pointer, words);
}

/// As load_elements, of a row's own elements. The loads are issued where they stand: a row is loaded before
/// another one is reduced.
template <bool kIsWhole, typename T>
__device__ __forceinline__ void load_row_elements(const T* pointer, long long stride, int count,
                                                  ElementWords<T, Config::VEC>& values) {
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
__device__ __forceinline__ void store_row_elements(T* pointer, long long stride, int count,
                                                   const ElementWords<T, Config::VEC>& values) {
  constexpr int kAccessBytes = wide_access_bytes(Config::VEC, static_cast<int>(sizeof(T)));
  if constexpr (kIsWhole && kAccessBytes >= 4) {
    if (stride == 1) {
      store_row_words<kAccessBytes>(pointer, values.words);
      return;
    }
  }
  store_elements<Config::VEC, kIsWhole>(pointer, stride, count, values);
}

/// A number that follows from the length of a row: a constant in kernels for rows of one length.
template <long long kNumber>
__device__ __forceinline__ long long known(long long number) {
  return number;
}

/// Kernel parameter `problem`.
struct RowProblem {
  long long extent_m;  ///< rows
  long long extent_n;  ///< elements of a row
};

/// 0. Built with -D KERNELWRIGHT_CHECKED: ends a kernel that reads at a subscript, taken from data, outside
/// of its axis.
__device__ __forceinline__ long long in_axis(long long subscript, long long extent) {
#ifdef KERNELWRIGHT_CHECKED
  if (subscript < 0 || subscript >= extent) {
    printf("subscript %lld: must be in [0, %lld)\n", subscript, extent);
    __trap();
  }
#endif
  return 0 * (subscript + extent);
}

/// a / (1 + e^x), for results of 16 bits; what e^x has below 2^-126 is lost beside the 1.
__device__ __forceinline__ float divide_by_one_plus_exp(float a, float x) {
  float power, result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(1.44269504f * x));
  asm("div.full.ftz.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(1 + power));
  return result;
}

/// x * sigmoid(x), for results of 16 bits.
__device__ __forceinline__ float silu_approximate(float x) { return divide_by_one_plus_exp(x, -x); }

/// Kernel parameter `row`: pointers and strides (elements) of the tensors that are read and written, and the
/// op's scalars.
struct RowArgs {
  const Half* x;
  long long x_stride_m;
  long long x_offset;
  const float* scale;
  const int* table;
  long long scale_stride0;
  long long scale_extent0;
  Half* out;
  long long out_stride_m;
};

/// Whether kVec elements of every contiguous tensor are aligned to their whole, wherever a row's n is a
/// multiple of kVec. All are looked at without a branch: a row's loads wait for the answer.
template <int kVec>
__device__ __forceinline__ bool row_is_aligned(const RowArgs& args) {
  return is_aligned_for<kVec>(args.x, known<2 * Config::EXTENT_N>(args.x_stride_m)) &
         is_aligned_for<kVec>(args.x + known<Config::EXTENT_N>(args.x_offset),
                              known<2 * Config::EXTENT_N>(args.x_stride_m)) &
         is_aligned_for<kVec>(args.scale, known<Config::EXTENT_N>(args.scale_stride0)) &
         is_aligned_for<kVec>(args.out, known<Config::EXTENT_N>(args.out_stride_m));
}

/// What the elements (m, n) .. (m, n + VEC - 1) need of their row, as it lies in gmem.
struct RowReads {
  ElementWords<Half, Config::VEC> x;
  ElementWords<Half, Config::VEC> x_2;
  ElementWords<float, Config::VEC> scale;
};

/// What they need of tensors that are the same for every row.
struct RowColumns {};

/// Loads it for the first `count` elements. kIsWhole: count is VEC and row_is_aligned<VEC>().
template <bool kIsWhole>
__device__ __forceinline__ void row_read(const RowArgs& args, long long m, long long n, int count,
                                         RowReads& reads) {
  load_row_elements<kIsWhole>(args.x + m * known<2 * Config::EXTENT_N>(args.x_stride_m) + n, 1, count,
                              reads.x);
  load_row_elements<kIsWhole>(
      args.x + m * known<2 * Config::EXTENT_N>(args.x_stride_m) + n + known<Config::EXTENT_N>(args.x_offset),
      1, count, reads.x_2);
  const long long table_value = to_accumulator<long long>(args.table[m]);
  load_row_elements<kIsWhole>(args.scale + n + table_value * known<Config::EXTENT_N>(args.scale_stride0) +
                                  in_axis(table_value, args.scale_extent0),
                              1, count, reads.scale);
}

template <bool kIsWhole>
__device__ __forceinline__ void row_read_columns(const RowArgs& args, long long n, int count,
                                                 RowColumns& columns) {}

/// The finished reductions of a row.
struct RowResults {};

/// Outputs of `count` elements.
template <bool kIsWhole>
__device__ __forceinline__ void row_store(const RowArgs& args, long long m, long long n,
                                          const RowReads& reads, const RowColumns& columns,
                                          const RowResults& results, int count) {
  ElementWords<Half, Config::VEC> out_values;
#pragma unroll
  for (int i = 0; i < Config::VEC; ++i) {
    if (!kIsWhole && i >= count) {
      break;
    }
    out_values.elements[i] = from_accumulator<Half>(
        silu_approximate(to_accumulator<float>(reads.x.elements[i])) *
        to_accumulator<float>(reads.x_2.elements[i]) * to_accumulator<float>(reads.scale.elements[i]));
  }
  store_row_elements<kIsWhole>(args.out + m * known<Config::EXTENT_N>(args.out_stride_m) + n, 1, count,
                               out_values);
}

/// Outputs that have one element a row.
__device__ __forceinline__ void row_store_once(const RowArgs& args, long long m, const RowResults& results) {}

// ---- The columns of a thread --------------------------------------------------------------------

/// Where a thread works: a row, and of it the columns first_n + item * kStep to + VEC - 1, item = 0 .. ITEMS
/// - 1.
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
__device__ __forceinline__ void read_columns(const RowArgs& row, const RowProblem& problem,
                                             const Place& place, RowColumns (&columns)[Config::ITEMS]) {
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

template <Fit kFit>
__device__ __forceinline__ void store_items(const RowArgs& row, const RowProblem& problem, const Place& place,
                                            const RowReads (&reads)[Config::ITEMS],
                                            const RowColumns (&columns)[Config::ITEMS],
                                            const RowResults& results) {
#pragma unroll
  for (int item = 0; item < Config::ITEMS; ++item) {
    const int count = count_at<kFit>(place, place.n(item), row_length(problem));
    if (count > 0) {
      row_store<kFit != Fit::kAny>(row, place.m, place.n(item), reads[item], columns[item], results, count);
    }
  }
}

// ---- Reduction over the threads of a row --------------------------------------------------------

/// Results of warps and CTAs on their way to all threads of a row; phases take turns, so that one barrier a
/// phase is enough.
struct Exchange {
  Accumulator of_warps[2][Config::ROWS][Config::kWarpsPerRow][Config::REDUCTIONS];
  Accumulator of_cta[2][Config::REDUCTIONS];
};

// ---- A row --------------------------------------------------------------------------------------

/// Phases kPhase and later of a row in registers. `turn`: half of the exchange that is free; flips with every
/// phase.
template <int kPhase, Fit kFit>
__device__ __forceinline__ void reduce(const RowArgs& row, const RowProblem& problem, const Place& place,
                                       RowReads (&reads)[Config::ITEMS],
                                       const RowColumns (&columns)[Config::ITEMS], Exchange& exchange,
                                       int& turn, RowResults& results) {}

/// The rows of a CTA: its own, and when it is persistent each step_m-th after it.
template <Fit kFit>
__device__ __forceinline__ void make_rows(const RowArgs& row, const RowProblem& problem, Place place,
                                          long long step_m, Exchange& exchange) {
  RowReads reads[Config::ITEMS];
  RowColumns columns[Config::ITEMS];
  int turn = 0;
  read_items<kFit>(row, problem, place, reads);
  read_columns<kFit>(row, problem, place, columns);
  for (long long group_m = place.m - place.row;;) {
    RowReads ahead[Config::ITEMS];
    Place next = place;
    RowResults results = {};
    reduce<0, kFit>(row, problem, place, reads, columns, exchange, turn, results);
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

template <Fit kFit>
__device__ __forceinline__ void make(const RowArgs& row, const RowProblem& problem, const Place& place,
                                     long long step_m, Exchange& exchange) {
  make_rows<kFit>(row, problem, place, step_m, exchange);
}

// ---- Kernel -------------------------------------------------------------------------------------

extern "C" __global__ void __launch_bounds__(Config::kThreads, Config::kLeastCtasPerSm)
    row_sm80__t128_r1_v8_i2_c1_p0_g0_f0_h0_s0_n0(RowProblem problem, RowArgs row) {
  __shared__ Exchange exchange;
  const long long step_m =
      static_cast<long long>(gridDim.y) * Config::ROWS;  // of persistent CTAs: their grid has no z
  Place place;
  place.thread = static_cast<int>(threadIdx.x % Config::THREADS);
  place.row = static_cast<int>(threadIdx.x / Config::THREADS);
  place.m =
      (Config::EXTENT_N > 0 ? blockIdx.y : static_cast<long long>(blockIdx.z) * gridDim.y + blockIdx.y) *
          Config::ROWS +
      place.row;
  place.first_n = blockIdx.x * static_cast<long long>(Config::kColumns) + place.thread * Config::VEC;
  place.is_row = place.m < problem.extent_m;
  if (problem.extent_n % Config::VEC == 0 && row_is_aligned<Config::VEC>(row)) {
    const bool is_full = problem.extent_n > 0 &&
                         problem.extent_n % (Config::kColumns * Config::CLUSTER) == 0 &&
                         problem.extent_m % Config::ROWS == 0 && gridDim.z == 1;
    if (is_full) {
      make<Fit::kFull>(row, problem, place, step_m, exchange);
    } else {
      make<Fit::kWhole>(row, problem, place, step_m, exchange);
    }
  } else {
    make<Fit::kAny>(row, problem, place, step_m, exchange);
  }
}
