// SPDX-License-Identifier: Apache-2.0
// masked, made from the template gemm_sm80_mma for sm_80.
//
//   acc[m,n] = sum[k](A[m,k] * B[k,n])
//   out[m,n] = where(n <= m, max(min(where(n >= 8, acc[m,n] + shift[n - 8], acc[m,n]), 6.0), -6.0), -inf)
//
// Config: BLOCK_M = 64, BLOCK_N = 64, BLOCK_K = 32, WARPS_M = 2, WARPS_N = 2, MIN_CTAS_PER_SM = 1, STAGES =
// 4, SPLIT_K = 1, GROUP_M = 8, A_VEC_BYTES = 2, B_VEC_BYTES = 16, STAGED_EPILOGUE = 1

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

/// kReadsElements: 4-byte elements are read one by one, 4 lines x 8 neighbours a warp, instead of 8 lines x
/// 16 bytes: then neighbouring lines move by two chunks. Lines shorter than 128 bytes: as many lines as make
/// one pass over the banks move together.
template <int kLineBytes, bool kReadsElements>
__host__ __device__ constexpr int swizzle_mask(int line) {
  constexpr int kChunks = kLineBytes / 16;
  return kChunks >= 8 ? line % 8 * 16 : line / (8 / (kChunks < 8 ? kChunks : 8)) % kChunks * 16;
}

/// 16 bytes, past L1; hints L2 to fetch the whole 128-byte line.
__device__ __forceinline__ void cp_async_16(unsigned smem, const void* gmem, int src_bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(smem), "l"(gmem), "r"(src_bytes)
               : "memory");
}

/// Closes the group of all copies this thread issued since the last commit. A group may be empty.
__device__ __forceinline__ void cp_async_commit_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// Waits until at most `kPending` of this thread's newest groups are still running.
template <int kPending>
__device__ __forceinline__ void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

/// Address in the shared window of a pointer into smem: what cp.async, ldmatrix and the functions below take.
__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void st_shared_b16(unsigned smem, unsigned short value) {
  asm volatile("st.shared.b16 [%0], %1;" ::"r"(smem), "h"(value) : "memory");
}

/// Copies `bytes` of kVecBytes and fills the rest with zeros. Copies below 4 bytes (one 16-bit element) have
/// no cp.async: they go through a register, at once; the barrier before the stage is read covers them too.
template <int kVecBytes>
__device__ __forceinline__ void copy_vector(unsigned smem, const unsigned char* gmem, int bytes) {
  if constexpr (kVecBytes == 16) {
    cp_async_16(smem, gmem, bytes);
  } else {
    static_assert(kVecBytes == 2, "a copy moves 2, 4, 8 or 16 bytes");
    st_shared_b16(
        smem, bytes > 0 ? *reinterpret_cast<const unsigned short*>(gmem) : static_cast<unsigned short>(0));
  }
}

template <int kThreads, int kLines, int kLineBytes, int kElementBytes, int kVecBytes, bool kIsKContiguous>
struct TileCopy {
  static constexpr int kVectorsPerLine = kLineBytes / kVecBytes;
  static constexpr int kThreadsPerLine = kVectorsPerLine < kThreads ? kVectorsPerLine : kThreads;
  static constexpr int kLinesPerPass = kThreads / kThreadsPerLine;
  static constexpr int kColumnPasses = kVectorsPerLine / kThreadsPerLine;
  static constexpr int kPasses = kLines / kLinesPerPass * kColumnPasses;

  const unsigned char* source;  ///< the next tile's first element
  long long tile_step_bytes;    ///< from one tile to the next, along k
  unsigned line_stride_bytes;
  int lines_or_columns_left;  ///< lines of m, or bytes of m, from the tile's start to the end of the problem
  int first_line;             ///< of this thread
  int first_column;           ///< of this thread, in bytes

  /// `tile`: the first tile's first element. `left`: elements of m (or n) from there to the end of the
  /// problem, at least 1.
  template <typename Element>
  __device__ __forceinline__ TileCopy(const Element* tile, long long line_stride, long long left, int tile_k)
      : source(reinterpret_cast<const unsigned char*>(tile)),
        tile_step_bytes((kIsKContiguous ? 1 : line_stride) * tile_k * kElementBytes),
        line_stride_bytes(static_cast<unsigned>(line_stride * kElementBytes)),
        lines_or_columns_left(
            kIsKContiguous
                ? static_cast<int>(left < kLines ? left : kLines)
                : static_cast<int>(left * kElementBytes < kLineBytes ? left * kElementBytes : kLineBytes)),
        first_line(static_cast<int>(threadIdx.x) / kThreadsPerLine),
        first_column(static_cast<int>(threadIdx.x) % kThreadsPerLine * kVecBytes) {}

  __device__ __forceinline__ static constexpr int mask(int line) {
    return swizzle_mask < kLineBytes, !kIsKContiguous && kElementBytes == 4 > (line);
  }

  /// Starts one of kParts shares of the copies of the next tile to smem address `smem`; the last share moves
  /// on to the tile after. `k_left`: elements of k from the tile's start to the end; there may be none left,
  /// then all is zeros.
  template <int kParts>
  __device__ __forceinline__ void start(unsigned smem, int k_left, int tile_k, int part) {
    const int k_here = k_left < tile_k ? k_left : tile_k;
    const int lines_left = !kIsKContiguous || k_left <= 0 ? k_here : lines_or_columns_left;
    const int columns_left = kIsKContiguous ? k_here * kElementBytes : lines_or_columns_left;
    const int last_line = lines_left > 0 ? lines_left - 1 : 0;
    const int smem_line = first_line * kLineBytes;
    const int smem_column = first_column ^ mask(first_line);
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      if (pass * kParts / kPasses == part) {
        const int next_lines = pass / kColumnPasses *
                               kLinesPerPass;  // bits of lines and columns that no thread's first ones have
        const int next_columns = pass % kColumnPasses * (kThreadsPerLine * kVecBytes);
        const int line = first_line + next_lines;
        const int column = first_column + next_columns;
        const int bytes_left = columns_left - column < kVecBytes ? columns_left - column : kVecBytes;
        const int bytes = bytes_left > 0 && (kIsKContiguous || line < lines_left) ? bytes_left : 0;
        const unsigned source_line = static_cast<unsigned>(line < last_line ? line : last_line);
        const unsigned source_column = bytes_left > 0 ? static_cast<unsigned>(column) : 0u;
        copy_vector<kVecBytes>(
            smem + static_cast<unsigned>(smem_line + next_lines * kLineBytes +
                                         (smem_column ^ (mask(next_lines) ^ next_columns))),
            source + (source_line * line_stride_bytes + source_column), bytes);
      }
    }
    if (part == kParts - 1) {
      source += k_left > tile_k ? tile_step_bytes : 0;  // stay inside the tensor past the last tile
    }
  }
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

__device__ __forceinline__ void st_global_v4_b32(void* gmem, unsigned w0, unsigned w1, unsigned w2,
                                                 unsigned w3) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(gmem), "r"(w0), "r"(w1), "r"(w2), "r"(w3)
               : "memory");
}

__device__ __forceinline__ void ldmatrix_x4(unsigned smem, unsigned& r0, unsigned& r1, unsigned& r2,
                                            unsigned& r3) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
               : "r"(smem)
               : "memory");
}

__device__ __forceinline__ void ldmatrix_x4_trans(unsigned smem, unsigned& r0, unsigned& r1, unsigned& r2,
                                                  unsigned& r3) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
               : "r"(smem)
               : "memory");
}

__device__ __forceinline__ void mma_m16n8k16_f16(float (&d)[4], const unsigned (&a)[4],
                                                 const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// ---- Config -------------------------------------------------------------------------------------

struct Config {
  using ElementA = Half;
  using ElementB = Half;
  using Accumulator = float;
  static constexpr bool A_IS_K_CONTIGUOUS = true;
  static constexpr bool B_IS_K_CONTIGUOUS = false;
  static constexpr int BLOCK_M = 64;         ///< rows of a CTA's output tile
  static constexpr int BLOCK_N = 64;         ///< columns of a CTA's output tile
  static constexpr int BLOCK_K = 32;         ///< elements of k in one stage
  static constexpr int WARPS_M = 2;          ///< warps along m
  static constexpr int WARPS_N = 2;          ///< warps along n
  static constexpr int MIN_CTAS_PER_SM = 1;  ///< registers are limited so that so many CTAs fit an SM
  static constexpr int STAGES = 4;           ///< smem buffers
  static constexpr int SPLIT_K = 1;          ///< CTAs that share one output tile, each a part of k
  static constexpr int GROUP_M = 8;          ///< raster: parts/tile_raster.cuh
  static constexpr int A_VEC_BYTES = 2;      ///< bytes of A that one copy moves
  static constexpr int B_VEC_BYTES = 16;     ///< bytes of B that one copy moves

  static constexpr int kThreads = WARPS_M * WARPS_N * 32;
  static constexpr int kWarpM = BLOCK_M / WARPS_M;  ///< rows of a warp's part of the tile
  static constexpr int kWarpN = BLOCK_N / WARPS_N;
  static constexpr int kMmaM = kWarpM / 16;  ///< mma.sync tiles of a warp along m
  static constexpr int kMmaN = kWarpN / 8;
  static constexpr int kElementBytes = sizeof(ElementA);
  static constexpr int kKSteps =
      BLOCK_K * kElementBytes / 32;  ///< mma.sync steps of a stage: 32 bytes of k each, whatever the type
  static constexpr int kTileBytesA = BLOCK_M * BLOCK_K * kElementBytes;
  static constexpr int kTileBytesB = BLOCK_N * BLOCK_K * kElementBytes;
  static constexpr int kLineBytesA =
      (A_IS_K_CONTIGUOUS ? BLOCK_K : BLOCK_M) * kElementBytes;  ///< a tile's extent along its contiguous axis
  static constexpr int kLineBytesB = (B_IS_K_CONTIGUOUS ? BLOCK_K : BLOCK_N) * kElementBytes;
  static constexpr int kStageBytes = kTileBytesA + kTileBytesB;
  static constexpr int kStagingPitch =
      kWarpN + 8;  ///< f32 from row to row; 8 more than a multiple of 16: no bank conflicts
  static constexpr int kStagingBytesPerWarp = 16 * kStagingPitch * 4;  ///< 16 rows of a warp's part at a time
};

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

/// The larger one; NaN when either is NaN.
__device__ __forceinline__ float maximum(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

/// The smaller one; NaN when either is NaN.
__device__ __forceinline__ float minimum(float a, float b) {
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

/// Kernel parameter `epilogue`: pointers and strides (elements) of the tensors the epilogue reads and writes,
/// and its scalars.
struct EpilogueArgs {
  const float* shift;
  Half* out;
  long long out_stride_m;
};

/// Outputs of the elements (b, m, n + i), i < count <= kVec, whose sums are acc[i]. All of them lie inside
/// the problem.
template <int kVec>
__device__ __forceinline__ void epilogue_store(const EpilogueArgs& args, long long b, long long m,
                                               long long n, const Accumulator (&acc)[kVec], int count) {
  float out_values[kVec];
#pragma unroll
  for (int i = 0; i < kVec; ++i) {
    if (i >= count) {
      break;
    }
    out_values[i] =
        n + i <= m
            ? maximum(minimum(n + i >= 8 ? acc[i] + to_accumulator<float>(args.shift[(n + i) - 8]) : acc[i],
                              6.0f),
                      -6.0f)
            : -__int_as_float(0x7f800000);
  }
  store_vector<kVec>(args.out + m * args.out_stride_m + n, 1, count, out_values);
}

// ---- Launch -------------------------------------------------------------------------------------

__host__ __device__ constexpr long long tiles_m(long long extent_m) {
  return (extent_m + Config::BLOCK_M - 1) / Config::BLOCK_M;
}
__host__ __device__ constexpr long long tiles_n(long long extent_n) {
  return (extent_n + Config::BLOCK_N - 1) / Config::BLOCK_N;
}
__host__ __device__ constexpr long long k_blocks(long long extent_k) {
  return (extent_k + Config::BLOCK_K - 1) / Config::BLOCK_K;
}
__host__ __device__ constexpr long long k_blocks_per_split(long long extent_k) {
  return (k_blocks(extent_k) + Config::SPLIT_K - 1) / Config::SPLIT_K;
}

// ---- Copy: gmem -> smem -------------------------------------------------------------------------

/// A tile in smem is stored as it lies in gmem: lines along the contiguous axis, one after another, each
/// line's 16-byte chunks swizzled (parts/swizzle.cuh). A stage holds the tile of A, then the tile of B.
using CopyA =
    TileCopy<Config::kThreads, Config::A_IS_K_CONTIGUOUS ? Config::BLOCK_M : Config::BLOCK_K,
             Config::kLineBytesA, Config::kElementBytes, Config::A_VEC_BYTES, Config::A_IS_K_CONTIGUOUS>;
using CopyB =
    TileCopy<Config::kThreads, Config::B_IS_K_CONTIGUOUS ? Config::BLOCK_N : Config::BLOCK_K,
             Config::kLineBytesB, Config::kElementBytes, Config::B_VEC_BYTES, Config::B_IS_K_CONTIGUOUS>;

// ---- Fragments: smem -> registers ---------------------------------------------------------------

/// Operands of one k step (32 bytes of k) of a warp, in mma.sync's layout: ptx/mma.cuh.
struct Fragments {
  unsigned a[Config::kMmaM][4];
  unsigned b[Config::kMmaN][2];
};

/// Rounds f32 bits to tf32; 16-bit pairs pass as they are.
__device__ __forceinline__ unsigned round_operand(unsigned bits) { return bits; }

/// Where a lane reads in a tile. parts/swizzle.cuh says why this is enough for all its reads.
struct LaneAddress {
  int line;    ///< offset of the line's start
  int column;  ///< masked
};

/// Offset of the byte `columns` further along the line, a constant. The mask reaches 128 bytes; beyond,
/// columns are simply added, so that at most 8 masked columns are ever kept.
__device__ __forceinline__ int lane_offset(LaneAddress address, int columns) {
  return address.line + (address.column ^ columns % 128) + columns / 128 * 128;
}

/// For the warp whose rows start at `row` of A's tile.
__device__ __forceinline__ LaneAddress lane_address_a(int row) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  // ldmatrix, matrices 0..3: rows 0-7 and 8-15 of the first 16 bytes of k, then of the second.
  return LaneAddress{(row + lane % 16) * Config::kLineBytesA, lane / 16 * 16 ^ CopyA::mask(lane % 16)};
}

/// For the warp whose columns start at `column` of B's tile.
__device__ __forceinline__ LaneAddress lane_address_b(int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  return LaneAddress{lane % 16 * Config::kLineBytesB, (column * 2 + lane / 16 * 16) ^ CopyB::mask(lane % 16)};
}

/// A's fragments of k step `step` from the tile at smem address `tile`.
__device__ __forceinline__ void load_fragments_a(unsigned tile, LaneAddress address, int step,
                                                 Fragments& fragments) {
#pragma unroll
  for (int i = 0; i < Config::kMmaM; ++i) {
    unsigned(&a)[4] = fragments.a[i];
    ldmatrix_x4(tile + lane_offset(address, step * 32) + i * (16 * Config::kLineBytesA), a[0], a[1], a[2],
                a[3]);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      a[j] = round_operand(a[j]);
    }
  }
}

/// B's fragments of k step `step`; two neighbouring 8-column blocks a load.
__device__ __forceinline__ void load_fragments_b(unsigned tile, LaneAddress address, int step,
                                                 Fragments& fragments) {
#pragma unroll
  for (int i = 0; i < Config::kMmaN; i += 2) {
    unsigned(&b0)[2] = fragments.b[i];
    unsigned(&b1)[2] = fragments.b[i + 1];
    ldmatrix_x4_trans(tile + lane_offset(address, i * 16) + step * (16 * Config::kLineBytesB), b0[0], b0[1],
                      b1[0], b1[1]);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      b0[j] = round_operand(b0[j]);
      b1[j] = round_operand(b1[j]);
    }
  }
}

// ---- Mainloop -----------------------------------------------------------------------------------

/// A thread's sums: mma.sync tile (i, j), element e is row 16 i + lane / 4 + 8 (e / 2), column 8 j + 2 (lane
/// % 4) + e % 2 of the warp's part.
struct Sums {
  float tile[Config::kMmaM][Config::kMmaN][4];
};

/// One mma.sync; the last two arguments only name the element types.
__device__ __forceinline__ void multiply_tile(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                                              Half, Half) {
  mma_m16n8k16_f16(d, a, b);
}

__device__ __forceinline__ void multiply_fragments(const Fragments& fragments, Sums& sums) {
#pragma unroll
  for (int i = 0; i < Config::kMmaM; ++i) {
#pragma unroll
    for (int j = 0; j < Config::kMmaN; ++j) {
      // Every second row of tiles is walked backwards: its first tile uses the B fragment that the last one
      // just used.
      const int column = i % 2 == 0 ? j : Config::kMmaN - 1 - j;
      multiply_tile(sums.tile[i][column], fragments.a[i], fragments.b[column], Config::ElementA{},
                    Config::ElementB{});
    }
  }
}

/// sums += A tile * B tile over the k elements that the copies see, `num_blocks` > 0 blocks of BLOCK_K.
///   copies:       block t + STAGES - 1 starts while block t is multiplied, into the stage that block t - 1 has left.
///   one barrier:  the wait and barrier at the end of block t make block t + 1 visible to all warps, and mean that all warps have
///                 read block t's fragments, so its stage may be filled again.
__device__ __forceinline__ void multiply_blocks(CopyA copy_a, CopyB copy_b, unsigned smem, int num_blocks,
                                                int k_left, LaneAddress address_a, LaneAddress address_b,
                                                Sums& sums) {
#pragma unroll
  for (int stage = 0; stage < Config::STAGES - 1; ++stage) {
    copy_a.start<1>(smem + stage * Config::kStageBytes, k_left, Config::BLOCK_K, 0);
    copy_b.start<1>(smem + stage * Config::kStageBytes + Config::kTileBytesA, k_left, Config::BLOCK_K, 0);
    k_left -= Config::BLOCK_K;
    cp_async_commit_group();
  }
  cp_async_wait_group<Config::STAGES - 2>();
  __syncthreads();

  Fragments fragments[2];
  unsigned read_stage = smem;
  unsigned write_stage = smem + (Config::STAGES - 1) * Config::kStageBytes;
  load_fragments_a(read_stage, address_a, 0, fragments[0]);
  load_fragments_b(read_stage + Config::kTileBytesA, address_b, 0, fragments[0]);
#pragma unroll 1
  for (int block = 0; block < num_blocks; ++block) {
#pragma unroll
    for (int step = 0; step < Config::kKSteps; ++step) {
      if (step == Config::kKSteps - 1) {
        cp_async_commit_group();
        cp_async_wait_group<Config::STAGES - 2>();
        __syncthreads();
        k_left -= Config::BLOCK_K;
        write_stage = read_stage;
        read_stage = read_stage == smem + (Config::STAGES - 1) * Config::kStageBytes
                         ? smem
                         : read_stage + Config::kStageBytes;
      }
      load_fragments_a(read_stage, address_a, (step + 1) % Config::kKSteps, fragments[(step + 1) % 2]);
      load_fragments_b(read_stage + Config::kTileBytesA, address_b, (step + 1) % Config::kKSteps,
                       fragments[(step + 1) % 2]);
      if (step < Config::kKSteps - 1) {
        // The copies are spread over all steps but the last. Past the last block k_left is not positive: they
        // only fill zeros and keep the count of groups in step.
        copy_a.start<Config::kKSteps - 1>(write_stage, k_left, Config::BLOCK_K, step);
        copy_b.start<Config::kKSteps - 1>(write_stage + Config::kTileBytesA, k_left, Config::BLOCK_K, step);
      }
      multiply_fragments(fragments[step % 2], sums);
    }
  }
  cp_async_wait_group<0>();
  __syncthreads();  // the epilogue writes over the stages
}

// ---- Epilogue -----------------------------------------------------------------------------------

/// Where a warp's part of the output lies, and where the problem ends.
struct OutputPart {
  long long b;
  long long first_m;
  long long first_n;
  long long extent_m;
  long long extent_n;
};

/// Through smem: each warp lays 16 rows of its sums down as rows, then every lane takes 8 neighbouring
/// columns. Only the warp's own corner of smem is touched, so warps do not wait for each other.
__device__ __forceinline__ void store_staged(const Sums& sums, const OutputPart& part,
                                             const EpilogueArgs& epilogue, float* staging) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  constexpr int kVectorsPerRow = Config::kWarpN / 8;
#pragma unroll
  for (int i = 0; i < Config::kMmaM; ++i) {
#pragma unroll
    for (int j = 0; j < Config::kMmaN; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        staging[(lane / 4 + e / 2 * 8) * Config::kStagingPitch + j * 8 + lane % 4 * 2 + e % 2] =
            sums.tile[i][j][e];
      }
    }
    __syncwarp();
#pragma unroll 1
    for (int vector = lane; vector < 16 * kVectorsPerRow; vector += 32) {
      const int row = vector / kVectorsPerRow;
      const int column = vector % kVectorsPerRow * 8;
      const long long m = part.first_m + i * 16 + row;
      const long long n = part.first_n + column;
      if (m < part.extent_m && n < part.extent_n) {
        float values[8];
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          values[v] = staging[row * Config::kStagingPitch + column + v];
        }
        epilogue_store<8>(epilogue, part.b, m, n, values,
                          part.extent_n - n < 8 ? static_cast<int>(part.extent_n - n) : 8);
      }
    }
    __syncwarp();
  }
}

// ---- Kernel -------------------------------------------------------------------------------------

extern "C" __global__ void __launch_bounds__(Config::kThreads, Config::MIN_CTAS_PER_SM)
    gemm_sm80_mma__m64_n64_k32_wm2_wn2_c1_s4_sk1_g8_va2_vb16_e1(const Config::ElementA* A,
                                                                const Config::ElementB* B,
                                                                GemmProblem problem, EpilogueArgs epilogue,
                                                                float* partial_sums,
                                                                unsigned* tile_counters) {
  alignas(16) extern __shared__ unsigned char smem[];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int row = warp / Config::WARPS_N * Config::kWarpM;
  const int column = warp % Config::WARPS_N * Config::kWarpN;
  const TileCoordinate tile = locate_tile(blockIdx.x, static_cast<unsigned>(tiles_m(problem.extent_m)),
                                          static_cast<unsigned>(tiles_n(problem.extent_n)), Config::GROUP_M);
  const long long first_m = static_cast<long long>(tile.tile_m) * Config::BLOCK_M;
  const long long first_n = static_cast<long long>(tile.tile_n) * Config::BLOCK_N;

  // This CTA's part of k.
  const long long first_k = k_blocks_per_split(problem.extent_k) * Config::BLOCK_K * blockIdx.y;
  const long long end_k = first_k + k_blocks_per_split(problem.extent_k) * Config::BLOCK_K;
  const int k_left = static_cast<int>((end_k < problem.extent_k ? end_k : problem.extent_k) - first_k);

  Sums sums = {};
  if (k_left > 0) {
    const CopyA copy_a(
        A + tile.batch * problem.A_stride_b + first_m * problem.A_stride_m + first_k * problem.A_stride_k,
        Config::A_IS_K_CONTIGUOUS ? problem.A_stride_m : problem.A_stride_k, problem.extent_m - first_m,
        Config::BLOCK_K);
    const CopyB copy_b(
        B + tile.batch * problem.B_stride_b + first_n * problem.B_stride_n + first_k * problem.B_stride_k,
        Config::B_IS_K_CONTIGUOUS ? problem.B_stride_n : problem.B_stride_k, problem.extent_n - first_n,
        Config::BLOCK_K);
    multiply_blocks(copy_a, copy_b, shared_address(smem), (k_left + Config::BLOCK_K - 1) / Config::BLOCK_K,
                    k_left, lane_address_a(row), lane_address_b(column), sums);
  }

  const OutputPart part = {tile.batch, first_m + row, first_n + column, problem.extent_m, problem.extent_n};
  store_staged(sums, part, epilogue, reinterpret_cast<float*>(smem + warp * Config::kStagingBytesPerWarp));
}
