// SPDX-License-Identifier: Apache-2.0
// f32_residual_in_place, made from the template gemm_simt for sm_80.
//
//   acc[m,n] = sum[k](A[k,m] * B[n,k])
//   x[m,n] = x[m,n] + tanh(acc[m,n] * rows[m])
//
// Config: BLOCK_M = 32, BLOCK_N = 64, BLOCK_K = 16, THREAD_M = 4, THREAD_N = 4

struct GemmProblem {
  long long extent_b;
  long long extent_m;
  long long extent_n;
  long long extent_k;
  long long A_stride_b;
  long long A_stride_m;
  long long A_stride_k;
  long long B_stride_b;
  long long B_stride_k;
  long long B_stride_n;
};

struct TileCoordinate {
  int batch;
  int tile_m;
  int tile_n;
};

/// `index` counts tiles of all batches: 0 .. batches * tiles_m * tiles_n - 1. group_m == 1 walks along n
/// first.
__device__ __forceinline__ TileCoordinate locate_tile(unsigned index, unsigned tiles_m, unsigned tiles_n,
                                                      unsigned group_m) {
  const unsigned tiles = tiles_m * tiles_n;
  const unsigned batch = index / tiles;
  const unsigned in_batch = index % tiles;
  const unsigned tiles_of_group = group_m * tiles_n;
  const unsigned first_m = in_batch / tiles_of_group * group_m;
  const unsigned in_group = in_batch % tiles_of_group;
  const unsigned group_height = tiles_m - first_m < group_m ? tiles_m - first_m : group_m;
  return TileCoordinate{static_cast<int>(batch), static_cast<int>(first_m + in_group % group_height),
                        static_cast<int>(in_group / group_height)};
}

template <typename Acc, typename Plain>
__device__ __forceinline__ Acc to_accumulator(Plain x) {
  return static_cast<Acc>(x);
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
  using ElementA = float;
  using ElementB = float;
  using Accumulator = float;
  static constexpr bool A_IS_K_CONTIGUOUS = false;  ///< neighbouring threads read along k, else along m
  static constexpr bool B_IS_N_CONTIGUOUS = false;  ///< neighbouring threads read along n, else along k
  static constexpr int BLOCK_M = 32;                ///< rows of a CTA's output tile
  static constexpr int BLOCK_N = 64;                ///< columns of a CTA's output tile
  static constexpr int BLOCK_K = 16;                ///< depth of a panel
  static constexpr int THREAD_M = 4;                ///< rows of a thread's part
  static constexpr int THREAD_N = 4;                ///< columns of a thread's part

  static constexpr int kThreadsM = BLOCK_M / THREAD_M;
  static constexpr int kThreadsN = BLOCK_N / THREAD_N;
  static constexpr int kThreads = kThreadsM * kThreadsN;
  static constexpr int kVecM =
      THREAD_M < 4 ? THREAD_M : 4;  ///< neighbouring rows of a thread: one wide smem load
  static constexpr int kVecN = 4;   ///< neighbouring columns of a thread: one wide smem load, one wide store
  static constexpr int kPitchA =
      BLOCK_M + 4;  ///< elements from one k to the next; the pad spreads a column over the banks
  static constexpr int kPitchB = BLOCK_N + 4;
  static constexpr int kElementsPerBuffer = BLOCK_K * (kPitchA + kPitchB);
  static constexpr int kLoadsA =
      BLOCK_M * BLOCK_K / kThreads;  ///< elements of a panel that one thread brings
  static constexpr int kLoadsB = BLOCK_N * BLOCK_K / kThreads;
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

/// values[i] = pointer[i * stride] for i < count, as the type of `values`; values beyond count are left
/// alone.
template <int kVec, typename T, typename V>
__device__ __forceinline__ void load_vector(const T* pointer, long long stride, int count,
                                            V (&values)[kVec]) {
  constexpr int kAccessBytes = wide_access_bytes(kVec, static_cast<int>(sizeof(T)));
  if (stride == 1 && count == kVec && reinterpret_cast<unsigned long long>(pointer) % kAccessBytes == 0) {
    ElementWords<T, kVec> vector;
    load_words<kAccessBytes>(pointer, vector.words);
#pragma unroll
    for (int i = 0; i < kVec; ++i) {
      values[i] = to_accumulator<V>(vector.elements[i]);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kVec; ++i) {
    if (i < count) {
      values[i] = to_accumulator<V>(pointer[i * stride]);
    }
  }
}

/// pointer[i * stride] = values[i] for i < count, rounded to T.
template <int kVec, typename T, typename V>
__device__ __forceinline__ void store_vector(T* pointer, long long stride, int count,
                                             const V (&values)[kVec]) {
  constexpr int kAccessBytes = wide_access_bytes(kVec, static_cast<int>(sizeof(T)));
  if (stride == 1 && count == kVec && reinterpret_cast<unsigned long long>(pointer) % kAccessBytes == 0) {
    ElementWords<T, kVec> vector;
#pragma unroll
    for (int i = 0; i < kVec; ++i) {
      vector.elements[i] = from_accumulator<T>(values[i]);
    }
    store_words<kAccessBytes>(pointer, vector.words);
    return;
  }
#pragma unroll
  for (int i = 0; i < kVec; ++i) {
    if (i < count) {
      pointer[i * stride] = from_accumulator<T>(values[i]);
    }
  }
}

using Accumulator = Config::Accumulator;

/// Kernel parameter `epilogue`: pointers and strides (elements) of the tensors the epilogue reads and writes,
/// and its scalars.
struct EpilogueArgs {
  float* x;
  long long x_stride_m;
  const float* rows;
};

/// Outputs of the elements (b, m, n + i), i < count <= kVec, whose sums are acc[i]. All of them lie inside
/// the problem.
template <int kVec>
__device__ __forceinline__ void epilogue_store(const EpilogueArgs& args, long long b, long long m,
                                               long long n, const Accumulator (&acc)[kVec], int count) {
  float x_values[kVec] = {};
  load_vector<kVec>(args.x + m * args.x_stride_m + n, 1, count, x_values);
  const float rows_value = to_accumulator<float>(args.rows[m]);
  float x_values_2[kVec];
#pragma unroll
  for (int i = 0; i < kVec; ++i) {
    x_values_2[i] = x_values[i] + tanhf(acc[i] * rows_value);
  }
  store_vector<kVec>(args.x + m * args.x_stride_m + n, 1, count, x_values_2);
}

// ---- Launch -------------------------------------------------------------------------------------

__host__ __device__ constexpr long long tiles_m(long long extent_m) {
  return (extent_m + Config::BLOCK_M - 1) / Config::BLOCK_M;
}
__host__ __device__ constexpr long long tiles_n(long long extent_n) {
  return (extent_n + Config::BLOCK_N - 1) / Config::BLOCK_N;
}

// ---- Device parts -------------------------------------------------------------------------------

/// Which elements of a panel a thread brings: one per pass, neighbouring threads neighbours along the axis
/// that is contiguous in gmem. A panel has kLines rows of A or columns of B, each BLOCK_K deep.
template <int kLines, bool kIsKContiguous>
struct PanelShare {
  static constexpr int kFast = kIsKContiguous ? Config::BLOCK_K : kLines;
  static constexpr int kFastThreads = kFast < Config::kThreads ? kFast : Config::kThreads;
  static constexpr int kFastPasses = kFast / kFastThreads;
  static constexpr int kSlowStep = Config::kThreads / kFastThreads;
  static constexpr int kPasses = kLines * Config::BLOCK_K / Config::kThreads;

  /// Of pass 0 of this thread.
  __device__ __forceinline__ static int first_line() {
    return kIsKContiguous ? static_cast<int>(threadIdx.x) / kFastThreads
                          : static_cast<int>(threadIdx.x) % kFastThreads;
  }
  __device__ __forceinline__ static int first_k() {
    return kIsKContiguous ? static_cast<int>(threadIdx.x) % kFastThreads
                          : static_cast<int>(threadIdx.x) / kFastThreads;
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
  __device__ __forceinline__ static void load(const Element* panel, long long line_stride, long long k_stride,
                                              int lines_left, int k_left,
                                              Config::Accumulator (&values)[kPasses]) {
    const Element* first = panel + first_line() * line_stride + first_k() * k_stride;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      values[pass] = Config::Accumulator(0);
      if (first_line() + next_line(pass) < lines_left && first_k() + next_k(pass) < k_left) {
        values[pass] = to_accumulator<Config::Accumulator>(
            first[next_line(pass) * line_stride + next_k(pass) * k_stride]);
      }
    }
  }

  /// registers -> smem: [BLOCK_K][pitch].
  __device__ __forceinline__ static void store(const Config::Accumulator (&values)[kPasses],
                                               Config::Accumulator* buffer, int pitch) {
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

/// `A` and `B` point at the tile's first row and column; the panels start at k. Axes known to be contiguous
/// are not multiplied.
__device__ __forceinline__ void load_panels(const Config::ElementA* A, const Config::ElementB* B,
                                            const GemmProblem& problem, int rows_left, int columns_left,
                                            long long k, PanelRegisters& panel) {
  const long long A_stride_k = Config::A_IS_K_CONTIGUOUS ? 1 : problem.A_stride_k;
  const long long B_stride_n = Config::B_IS_N_CONTIGUOUS ? 1 : problem.B_stride_n;
  const int k_left =
      problem.extent_k - k < Config::BLOCK_K ? static_cast<int>(problem.extent_k - k) : Config::BLOCK_K;
  ShareA::load(A + k * A_stride_k, problem.A_stride_m, A_stride_k, rows_left, k_left, panel.a);
  ShareB::load(B + k * problem.B_stride_k, B_stride_n, problem.B_stride_k, columns_left, k_left, panel.b);
}

/// Row of a thread's i-th sum in the tile: groups of kVecM neighbours, the groups spread over the tile, so
/// that a warp's wide smem loads touch each bank once.
__device__ __forceinline__ int row_in_tile(int thread_m, int i) {
  return i / Config::kVecM * (Config::kThreadsM * Config::kVecM) + thread_m * Config::kVecM +
         i % Config::kVecM;
}
__device__ __forceinline__ int column_in_tile(int thread_n, int i) {
  return i / Config::kVecN * (Config::kThreadsN * Config::kVecN) + thread_n * Config::kVecN +
         i % Config::kVecN;
}

/// sums += the panel in `buffer`.
__device__ __forceinline__ void multiply_panel(
    const Config::Accumulator* buffer, int thread_m, int thread_n,
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
__device__ __forceinline__ void store_tile(
    const Config::Accumulator (&sums)[Config::THREAD_M][Config::THREAD_N], const GemmProblem& problem,
    const EpilogueArgs& epilogue, long long b, long long first_m, long long first_n, int thread_m,
    int thread_n) {
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
        epilogue_store<Config::kVecN>(epilogue, b, m, n, values,
                                      left < Config::kVecN ? static_cast<int>(left) : Config::kVecN);
      }
    }
  }
}

// ---- Kernel -------------------------------------------------------------------------------------

extern "C" __global__ void __launch_bounds__(Config::kThreads, 1)
    gemm_simt__m32_n64_k16_tm4_tn4(const Config::ElementA* A, const Config::ElementB* B, GemmProblem problem,
                                   EpilogueArgs epilogue) {
  alignas(16) extern __shared__ unsigned char smem[];
  Config::Accumulator* buffers = reinterpret_cast<Config::Accumulator*>(smem);

  const TileCoordinate tile = locate_tile(blockIdx.x, static_cast<unsigned>(tiles_m(problem.extent_m)),
                                          static_cast<unsigned>(tiles_n(problem.extent_n)), 8);
  const long long first_m = static_cast<long long>(tile.tile_m) * Config::BLOCK_M;
  const long long first_n = static_cast<long long>(tile.tile_n) * Config::BLOCK_N;
  const int thread_m = static_cast<int>(threadIdx.x) / Config::kThreadsN;
  const int thread_n = static_cast<int>(threadIdx.x) % Config::kThreadsN;
  A += tile.batch * problem.A_stride_b;
  B += tile.batch * problem.B_stride_b;

  A += first_m * problem.A_stride_m;
  B += first_n * problem.B_stride_n;
  const int rows_left = problem.extent_m - first_m < Config::BLOCK_M
                            ? static_cast<int>(problem.extent_m - first_m)
                            : Config::BLOCK_M;
  const int columns_left = problem.extent_n - first_n < Config::BLOCK_N
                               ? static_cast<int>(problem.extent_n - first_n)
                               : Config::BLOCK_N;

  Config::Accumulator sums[Config::THREAD_M][Config::THREAD_N] = {};
  PanelRegisters panel;
  if (problem.extent_k > 0) {
    load_panels(A, B, problem, rows_left, columns_left, 0, panel);
  }
  int buffer = 0;
#pragma unroll 1
  for (long long k = 0; k < problem.extent_k; k += Config::BLOCK_K) {
    // One barrier a panel is enough: a thread that writes a buffer again has passed the barrier after which
    // all were done with it.
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
