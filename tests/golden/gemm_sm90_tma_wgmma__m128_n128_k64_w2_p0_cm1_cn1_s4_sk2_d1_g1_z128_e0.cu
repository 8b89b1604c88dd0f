// SPDX-License-Identifier: Apache-2.0
// batched_two_outputs, made from the template gemm_sm90_tma_wgmma for sm_90a.
//
//   acc[g,m,n] = sum[k](A[g,k,m] * B[g,k,n])
//   out[g,m,n] = gelu(acc[g,m,n] * scale) * alpha + residual[g,m,n]
//   raw[g,n,m] = acc[g,m,n]
//
// Config: BLOCK_M = 128, BLOCK_N = 128, BLOCK_K = 64, CONSUMERS = 2, IS_PINGPONG = 0, CLUSTER_M = 1,
// CLUSTER_N = 1, STAGES = 4, SPLIT_K = 2, SPLITS_ARE_CLUSTER = 1, GROUP_M = 1, SWIZZLE_BYTES = 128, IS_STAGED
// = 0

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

/// CUtensorMap: 128 bytes that only the driver and TMA read. A kernel takes it as `const __grid_constant__
/// TensorMap`.
struct alignas(64) TensorMap {
  unsigned char bytes[128];
};

__device__ __forceinline__ void prefetch_tensor_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// Starts the copy of one box; its bytes arrive at `barrier`.
__device__ __forceinline__ void tma_load_3d(unsigned smem, const TensorMap& map, unsigned barrier, int c0,
                                            int c1, int c2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::
          "r"(smem),
      "l"(&map), "r"(c0), "r"(c1), "r"(c2), "r"(barrier)
      : "memory");
}

/// kIsKContiguous: lines run along k, one for each row (A) or column (B); else along m or n, one for each k.
template <int kContiguous, int kLines, int kSwizzleBytes, bool kIsKContiguous>
struct SwizzledTile {
  static constexpr int kElementsPerLine = kSwizzleBytes / 2;  ///< of a panel
  static constexpr int kPanels = kContiguous / kElementsPerLine;
  static constexpr int kPanelBytes = kLines * kSwizzleBytes;
  static constexpr int kTranspose = kIsKContiguous ? 0 : 1;  ///< wgmma's operand of that name

  /// Descriptor of the tile at `smem`. Offsets in it count 16 bytes: from 8 lines to the next 8; from panel
  /// to panel, read when lines run along m or n. Addresses in a cluster have the CTA's rank in bits 24 and
  /// up, which the mask takes off.
  static __device__ __forceinline__ unsigned long long descriptor(unsigned smem) {
    constexpr unsigned long long kLayout = kSwizzleBytes == 128 ? 1ull : kSwizzleBytes == 64 ? 2ull : 3ull;
    constexpr unsigned long long kEightLines = 8 * kSwizzleBytes / 16;
    constexpr unsigned long long kNextPanel = kIsKContiguous ? 1 : kPanelBytes / 16;
    return kLayout << 62 | kEightLines << 32 | kNextPanel << 16 | (smem & 0x3ffffu) >> 4;
  }

  /// What to add to the descriptor for the part that starts at element `mn` (a multiple of 64) of m or n and
  /// step `step` of 16 k.
  static __host__ __device__ constexpr int offset(int mn, int step) {
    return kIsKContiguous
               ? (step * 32 / kSwizzleBytes * kPanelBytes + step * 32 % kSwizzleBytes + mn * kSwizzleBytes) /
                     16
               : (mn / kElementsPerLine * kPanelBytes + step * 16 * kSwizzleBytes) / 16;
  }

  /// Starts the copies of lines [part * kLines / kParts, ...) of all panels, the tile's first element at
  /// (`contiguous`, `line`) of the tensor; with kParts > 1 into all CTAs of `cta_mask`, each of which copies
  /// its own part to all.
  template <int kParts>
  static __device__ __forceinline__ void start_copy(unsigned smem, const TensorMap& map, unsigned barrier,
                                                    int contiguous, int line, int batch, int part,
                                                    unsigned short cta_mask) {
    constexpr int kPartLines = kLines / kParts;
#pragma unroll
    for (int panel = 0; panel < kPanels; ++panel) {
      const unsigned to = smem + panel * kPanelBytes + part * (kPartLines * kSwizzleBytes);
      tma_load_3d(to, map, barrier, contiguous + panel * kElementsPerLine, line, batch);
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

/// What `smem`, a shared-space address of this CTA, is in CTA `rank` of the cluster.
__device__ __forceinline__ unsigned cluster_address(unsigned smem, unsigned rank) {
  unsigned address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(smem), "r"(rank));
  return address;
}

/// 16 bytes from a cluster_address(), 16-byte aligned.
__device__ __forceinline__ void ld_shared_cluster_v4(unsigned address, float (&values)[4]) {
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3])
               : "r"(address)
               : "memory");
}

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

__device__ __forceinline__ void mbarrier_init(unsigned smem, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem), "r"(arrivals) : "memory");
}

/// Makes this thread's mbarrier_init visible to the cluster and to asynchronous copies; a barrier of all
/// threads must follow.
__device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// False: the phase has not ended yet (the instruction sleeps for a while by itself).
__device__ __forceinline__ bool mbarrier_try_wait(unsigned smem, unsigned parity) {
  unsigned is_done;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.b32 %0, 1, 0, p;\n"
      "}\n"
      : "=r"(is_done)
      : "r"(smem), "r"(parity)
      : "memory");
  return is_done != 0;
}

__device__ __forceinline__ void mbarrier_wait(unsigned smem, unsigned parity) {
  while (!mbarrier_try_wait(smem, parity)) {
  }
}

/// One arrival that announces `bytes` of asynchronous copies to this barrier.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(unsigned smem, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem), "r"(bytes) : "memory");
}

__device__ __forceinline__ void mbarrier_arrive(unsigned smem) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(smem) : "memory");
}

/// Address in the shared window of a pointer into smem: what cp.async, ldmatrix and the functions below take.
__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

/// 16 bytes; the address is 16-byte aligned.
__device__ __forceinline__ void st_shared_v4_f32(unsigned smem, float x, float y, float z, float w) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(smem), "f"(x), "f"(y), "f"(z), "f"(w)
               : "memory");
}

/// Gives registers of every thread of this warpgroup back, down to kCount (a multiple of 8).
template <int kCount>
__device__ __forceinline__ void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}

/// Takes registers that other warpgroups gave back, up to kCount; waits until they are there.
template <int kCount>
__device__ __forceinline__ void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

/// True in one lane of a converged warp. Copies issued under it need no loop over lanes, as they do under
/// `threadIdx.x == 0`.
__device__ __forceinline__ bool elect_one() {
  unsigned is_elected;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "elect.sync _|p, 0xffffffff;\n"
      "selp.b32 %0, 1, 0, p;\n"
      "}\n"
      : "=r"(is_elected));
  return is_elected != 0;
}

/// Barrier `id` (1 to 15; 0 is __syncthreads) of `threads` threads, whole warps.
__device__ __forceinline__ void named_barrier_sync(unsigned id, unsigned threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// Barrier of all threads of the cluster, which may come from diverged roles.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

/// Before the first multiplication, and after any other touch of D's registers.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

/// Closes the group of all multiplications since the last commit.
__device__ __forceinline__ void wgmma_commit_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until at most `kPending` of the newest groups are still running.
template <int kPending>
__device__ __forceinline__ void wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

/// The compiler may not move code that reads D above the wait, nor keep D elsewhere: facts of ptxas, which
/// else runs every wgmma alone (messages C7510 to C7519).
template <int kCount>
__device__ __forceinline__ void pin_registers(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    asm volatile("" : "+f"(d[i])::"memory");
  }
}

template <int kTransA, int kTransB>
__device__ __forceinline__ void wgmma_m64n128k16_bf16(float (&d)[64], unsigned long long a,
                                                      unsigned long long b, int accumulates) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
      " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,"
      " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,"
      " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, p, 1, 1, %67, %68;\n"
      "}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
        "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),
        "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
        "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]),
        "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]),
        "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "l"(a), "l"(b), "r"(accumulates), "n"(kTransA), "n"(kTransB));
}

// ---- Config -------------------------------------------------------------------------------------

struct Config {
  using ElementA = BFloat16;
  using Accumulator = float;
  static constexpr bool A_IS_K_CONTIGUOUS = false;
  static constexpr bool B_IS_K_CONTIGUOUS = false;
  static constexpr int BLOCK_M = 128;         ///< rows of a CTA's output tile
  static constexpr int BLOCK_N = 128;         ///< columns of a CTA's output tile
  static constexpr int BLOCK_K = 64;          ///< elements of k in one stage
  static constexpr int CONSUMERS = 2;         ///< warpgroups that multiply
  static constexpr bool IS_PINGPONG = false;  ///< consumers take tiles in turn instead of sharing each
  static constexpr int CLUSTER_M = 1;         ///< CTAs of a cluster along m
  static constexpr int CLUSTER_N = 1;         ///< CTAs of a cluster along n
  static constexpr int STAGES = 4;            ///< smem buffers
  static constexpr int SPLIT_K = 2;           ///< parts of k that are multiplied by different CTAs
  static constexpr bool SPLITS_ARE_CLUSTER =
      true;                          ///< they are one cluster and add up through smem; else through gmem
  static constexpr int GROUP_M = 1;  ///< raster of clusters: parts/tile_raster.cuh
  static constexpr int SWIZZLE_BYTES = 128;  ///< width of a panel: parts/swizzled_tile.cuh
  static constexpr bool IS_STAGED = false;   ///< results go to gmem by way of smem

  static constexpr int kConsumersPerTile = IS_PINGPONG ? 1 : CONSUMERS;
  static constexpr int kThreads = 128 * (CONSUMERS + 1);
  static constexpr int kConsumerRows = BLOCK_M / kConsumersPerTile;
  static constexpr int kMmaM = kConsumerRows / 64;   ///< wgmma tiles of a consumer along m
  static constexpr int kSums = kMmaM * BLOCK_N / 2;  ///< f32 sums of a consumer's thread
  static constexpr int kOutputColumns =
      SPLITS_ARE_CLUSTER ? BLOCK_N / SPLIT_K : BLOCK_N;  ///< of its tile that a CTA stores
  static constexpr int kKSteps = BLOCK_K / 16;           ///< wgmma steps of a stage
  static constexpr int kClusterSize = SPLITS_ARE_CLUSTER ? SPLIT_K : CLUSTER_M * CLUSTER_N;
  static constexpr int kContiguousA =
      A_IS_K_CONTIGUOUS ? BLOCK_K : BLOCK_M;  ///< a tile's extent along its contiguous axis
  static constexpr int kContiguousB = B_IS_K_CONTIGUOUS ? BLOCK_K : BLOCK_N;
  static constexpr int kLinesA = A_IS_K_CONTIGUOUS ? BLOCK_M : BLOCK_K;  ///< and along the other one
  static constexpr int kLinesB = B_IS_K_CONTIGUOUS ? BLOCK_N : BLOCK_K;
  static constexpr int kTileBytesA = BLOCK_M * BLOCK_K * 2;
  static constexpr int kTileBytesB = BLOCK_N * BLOCK_K * 2;
  static constexpr int kStageBytes = kTileBytesA + kTileBytesB;
  /// Results of a warp on their way out: 16 rows of 64 elements of 16 bits.
  static constexpr int kResultBytes = 2048;
  static constexpr int kAllResultBytes = IS_STAGED ? CONSUMERS * 4 * kResultBytes : 0;
  /// setmaxnreg, multiples of 8: 65536 registers an SM are shared so that the producer's addresses fit too.
  static constexpr int kConsumerRegisters = CONSUMERS == 1   ? 240
                                            : CONSUMERS == 2 ? (kSums <= 128 ? 216 : 232)
                                                             : (kSums <= 96 ? 152 : 160);
  static constexpr int kProducerRegisters = CONSUMERS == 1   ? 72
                                            : CONSUMERS == 2 ? (kSums <= 128 ? 72 : 40)
                                                             : (kSums <= 96 ? 56 : 32);
  /// Arrivals at `empty`: consumers of one stage, times the CTAs that share the stage's row or column of the
  /// cluster.
  static constexpr int kPeers = CLUSTER_M + CLUSTER_N - 1;
  static constexpr int kEmptyArrivals = kConsumersPerTile * kPeers;
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

/// x * P(X <= x) of the normal distribution; erfc keeps the digits of a negative x.
__device__ __forceinline__ float gelu(float x) { return 0.5f * x * erfcf(-0.70710678118654752f * x); }

/// Kernel parameter `epilogue`: pointers and strides (elements) of the tensors the epilogue reads and writes,
/// and its scalars.
struct EpilogueArgs {
  long long dim_K;
  float alpha;
  const BFloat16* residual;
  long long residual_stride_b;
  long long residual_stride_m;
  BFloat16* out;
  long long out_stride_b;
  long long out_stride_m;
  float* raw;
  long long raw_stride_b;
  long long raw_stride_n;
};

/// Outputs of the elements (b, m, n + i), i < count <= kVec, whose sums are acc[i]. All of them lie inside
/// the problem.
template <int kVec>
__device__ __forceinline__ void epilogue_store(const EpilogueArgs& args, long long b, long long m,
                                               long long n, const Accumulator (&acc)[kVec], int count) {
  const float scale = 1.0f / sqrtf(static_cast<float>(args.dim_K));
  float residual_values[kVec] = {};
  load_vector<kVec>(args.residual + b * args.residual_stride_b + m * args.residual_stride_m + n, 1, count,
                    residual_values);
  float out_values[kVec];
  float raw_values[kVec];
#pragma unroll
  for (int i = 0; i < kVec; ++i) {
    out_values[i] = gelu(acc[i] * scale) * args.alpha + residual_values[i];
    raw_values[i] = acc[i];
  }
  store_vector<kVec>(args.out + b * args.out_stride_b + m * args.out_stride_m + n, 1, count, out_values);
  store_vector<kVec>(args.raw + b * args.raw_stride_b + m + n * args.raw_stride_n, args.raw_stride_n, count,
                     raw_values);
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

/// Whether kVec elements of every contiguous tensor of the epilogue are aligned to their whole, wherever a
/// row's n is a multiple of kVec.
template <int kVec>
__device__ __forceinline__ bool epilogue_is_aligned(const EpilogueArgs& args) {
  return is_aligned_for<kVec>(args.residual, args.residual_stride_b | args.residual_stride_m) &&
         is_aligned_for<kVec>(args.out, args.out_stride_b | args.out_stride_m);
}

/// What the outputs (b, m, n) and (b, m, n + 1) need besides their sums, as it lies in gmem: to be loaded
/// early.
struct EpilogueReads {
  ElementWords<BFloat16, 2> residual;
};

// ---- The problem in tiles -----------------------------------------------------------------------

__host__ __device__ constexpr long long cluster_tiles_m(long long extent_m) {
  return (extent_m + Config::BLOCK_M * Config::CLUSTER_M - 1) / (Config::BLOCK_M * Config::CLUSTER_M);
}
__host__ __device__ constexpr long long cluster_tiles_n(long long extent_n) {
  return (extent_n + Config::BLOCK_N * Config::CLUSTER_N - 1) / (Config::BLOCK_N * Config::CLUSTER_N);
}
__host__ __device__ constexpr long long k_blocks(long long extent_k) {
  return (extent_k + Config::BLOCK_K - 1) / Config::BLOCK_K;
}

// ---- Schedule: which tile when ------------------------------------------------------------------

/// One piece of work of a CTA: an output tile and a part of k.
struct WorkItem {
  int batch;
  int first_m;
  int first_n;
  int first_block;  ///< of k
  int num_blocks;
  int output_tile;  ///< counts the tiles of all CTAs of all clusters
  int split;
};

/// The items of one CTA, in order: every role walks through the same ones.
struct Schedule {
  int tiles_m;  ///< of clusters
  int tiles_n;
  int num_tiles;
  int num_blocks;
  int cta_m;  ///< this CTA's place in its cluster
  int cta_n;

  __device__ __forceinline__ explicit Schedule(const GemmProblem& problem)
      : tiles_m(static_cast<int>(cluster_tiles_m(problem.extent_m))),
        tiles_n(static_cast<int>(cluster_tiles_n(problem.extent_n))),
        num_tiles(static_cast<int>(tiles_m * tiles_n * problem.extent_b)),
        num_blocks(static_cast<int>(k_blocks(problem.extent_k))),
        cta_m(Config::SPLITS_ARE_CLUSTER
                  ? 0
                  : static_cast<int>(blockIdx.x) % Config::kClusterSize / Config::CLUSTER_N),
        cta_n(Config::SPLITS_ARE_CLUSTER ? 0 : static_cast<int>(blockIdx.x) % Config::CLUSTER_N) {}

  __device__ __forceinline__ int first() const { return static_cast<int>(blockIdx.x) / Config::kClusterSize; }
  __device__ __forceinline__ int step() const { return static_cast<int>(gridDim.x) / Config::kClusterSize; }
  __device__ __forceinline__ int end() const { return num_tiles; }

  __device__ __forceinline__ WorkItem item(int index) const {
    const int tile_index = index % num_tiles;
    const TileCoordinate tile = locate_tile(static_cast<unsigned>(tile_index), static_cast<unsigned>(tiles_m),
                                            static_cast<unsigned>(tiles_n), Config::GROUP_M);
    WorkItem item;
    item.batch = tile.batch;
    item.first_m = (tile.tile_m * Config::CLUSTER_M + cta_m) * Config::BLOCK_M;
    item.first_n = (tile.tile_n * Config::CLUSTER_N + cta_n) * Config::BLOCK_N;
    item.output_tile = (tile_index * Config::CLUSTER_M + cta_m) * Config::CLUSTER_N + cta_n;
    item.split = static_cast<int>(blockIdx.x) % Config::SPLIT_K;
    const int per_split = (num_blocks + Config::SPLIT_K - 1) / Config::SPLIT_K;
    item.first_block = item.split * per_split;
    item.num_blocks = num_blocks - item.first_block < per_split ? num_blocks - item.first_block : per_split;
    return item;
  }
};

// ---- The ring of stages -------------------------------------------------------------------------

using TileA =
    SwizzledTile<Config::kContiguousA, Config::kLinesA, Config::SWIZZLE_BYTES, Config::A_IS_K_CONTIGUOUS>;
using TileB =
    SwizzledTile<Config::kContiguousB, Config::kLinesB, Config::SWIZZLE_BYTES, Config::B_IS_K_CONTIGUOUS>;

/// Where a role stands in the ring. A stage holds the tile of A, then the tile of B; behind the stages lie
/// the results on their way out, then `full` and `empty` of each stage.
struct RingPosition {
  unsigned smem;
  int stage;
  unsigned phase;

  __device__ __forceinline__ unsigned tile_a() const { return smem + stage * Config::kStageBytes; }
  __device__ __forceinline__ unsigned tile_b() const { return tile_a() + Config::kTileBytesA; }
  __device__ __forceinline__ unsigned results() const { return smem + Config::STAGES * Config::kStageBytes; }
  __device__ __forceinline__ unsigned full() const {
    return results() + Config::kAllResultBytes + stage * 16;
  }
  __device__ __forceinline__ unsigned empty() const { return full() + 8; }
  __device__ __forceinline__ void advance() {
    ++stage;
    if (stage == Config::STAGES) {
      stage = 0;
      phase ^= 1u;
    }
  }
};

/// By one thread, before any role begins.
__device__ __forceinline__ void init_barriers(RingPosition ring) {
#pragma unroll 1
  for (int stage = 0; stage < Config::STAGES; ++stage) {
    mbarrier_init(ring.full(), 1);
    mbarrier_init(ring.empty(), Config::kEmptyArrivals);
    ring.advance();
  }
  fence_mbarrier_init();
}

// ---- Producer -----------------------------------------------------------------------------------

/// By one thread: fills stage after stage, for all items.
__device__ __forceinline__ void produce(const Schedule& schedule, const TensorMap& map_a,
                                        const TensorMap& map_b, RingPosition ring) {
  // CTA (m, n) of the cluster has rank m * CLUSTER_N + n.
  const unsigned short row_mask =
      static_cast<unsigned short>(((1 << Config::CLUSTER_N) - 1) << schedule.cta_m * Config::CLUSTER_N);
  constexpr int kFirstColumn = 1;
  const unsigned short column_mask = static_cast<unsigned short>(kFirstColumn << schedule.cta_n);
#pragma unroll 1
  for (int index = schedule.first(); index < schedule.end(); index += schedule.step()) {
    const WorkItem item = schedule.item(index);
#pragma unroll 1
    for (int block = item.first_block; block < item.first_block + item.num_blocks; ++block) {
      mbarrier_wait(ring.empty(), ring.phase ^ 1u);
      mbarrier_arrive_expect_tx(ring.full(), Config::kStageBytes);
      const int k = block * Config::BLOCK_K;
      TileA::start_copy<Config::CLUSTER_N>(
          ring.tile_a(), map_a, ring.full(), Config::A_IS_K_CONTIGUOUS ? k : item.first_m,
          Config::A_IS_K_CONTIGUOUS ? item.first_m : k, item.batch, schedule.cta_n, row_mask);
      TileB::start_copy<Config::CLUSTER_M>(
          ring.tile_b(), map_b, ring.full(), Config::B_IS_K_CONTIGUOUS ? k : item.first_n,
          Config::B_IS_K_CONTIGUOUS ? item.first_n : k, item.batch, schedule.cta_m, column_mask);
      ring.advance();
    }
  }
}

// ---- Mainloop of a consumer ---------------------------------------------------------------------

/// A thread's sums of kColumns columns: wgmma tile i along m, in the order of ptx/wgmma.cuh.
template <int kColumns>
struct Sums {
  float tile[Config::kMmaM][kColumns / 2];
};
using TileSums = Sums<Config::BLOCK_N>;

__device__ __forceinline__ void multiply_tile(float (&d)[64], unsigned long long a, unsigned long long b,
                                              int accumulates, BFloat16) {
  wgmma_m64n128k16_bf16<TileA::kTranspose, TileB::kTranspose>(d, a, b, accumulates);
}

/// Tells every CTA whose copies reach this one's stage that this warpgroup has read it; one thread for each
/// of them.
__device__ __forceinline__ void release_stage(const Schedule& schedule, RingPosition ring, int thread) {
  if (thread == 0) {
    mbarrier_arrive(ring.empty());
  }
}

/// Starts sums = A tile * B tile over `num_blocks` > 0 stages, rows from `row` on. One group of wgmma stays
/// in flight: a stage is released when the group after it has been issued, the last one, which is returned,
/// by finish_blocks().
__device__ __forceinline__ RingPosition start_blocks(const Schedule& schedule, RingPosition& ring,
                                                     int num_blocks, int row, int thread, TileSums& sums) {
  RingPosition last = ring;
#pragma unroll 1
  for (int block = 0; block < num_blocks; ++block) {
    mbarrier_wait(ring.full(), ring.phase);
    const unsigned long long a =
        TileA::descriptor(ring.tile_a()) + static_cast<unsigned>(TileA::offset(row, 0));
    const unsigned long long b = TileB::descriptor(ring.tile_b());
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < Config::kKSteps; ++step) {
#pragma unroll
      for (int i = 0; i < Config::kMmaM; ++i) {
        multiply_tile(sums.tile[i], a + static_cast<unsigned>(TileA::offset(i * 64, step)),
                      b + static_cast<unsigned>(TileB::offset(0, step)), block == 0 && step == 0 ? 0 : 1,
                      Config::ElementA{});
      }
    }
    wgmma_commit_group();
    wgmma_wait_group<1>();
    if (block != 0) {
      release_stage(schedule, last, thread);
    }
    last = ring;
    ring.advance();
  }
  return last;
}

__device__ __forceinline__ void finish_blocks(const Schedule& schedule, RingPosition last, int thread,
                                              TileSums& sums) {
  wgmma_wait_group<0>();
  release_stage(schedule, last, thread);
#pragma unroll
  for (int i = 0; i < Config::kMmaM; ++i) {
    pin_registers(sums.tile[i]);
  }
}

// ---- Through the cluster's smem -----------------------------------------------------------------

/// Where a thread's first group of 4 sums lies in the stages, which are free by now; its next group lies
/// `kSumsStride` bytes further.
constexpr int kSumsStride = Config::CONSUMERS * 128 * 16;

/// Adds up the tile of a cluster whose CTAs multiplied a part of k each, and shares it out: this CTA gets
/// kOutputColumns columns of it, from item.split * kOutputColumns on. By all consumers; the producer's
/// warpgroup takes part in the two cluster barriers.
__device__ __forceinline__ void add_splits_of_cluster(const WorkItem& item, unsigned smem,
                                                      const TileSums& sums,
                                                      Sums<Config::kOutputColumns>& share) {
  constexpr int kGroups = Config::BLOCK_N / 8;         // of 4 sums, of a wgmma tile
  constexpr int kShared = Config::kOutputColumns / 8;  // of these, that a CTA stores
  const unsigned own = smem + (threadIdx.x - 128u) * 16u;
  named_barrier_sync(1, Config::CONSUMERS * 128);  // no wgmma reads the stages any more
#pragma unroll
  for (int i = 0; i < Config::kMmaM; ++i) {
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      const float(&tile)[Config::BLOCK_N / 2] = sums.tile[i];
      st_shared_v4_f32(own + (i * kGroups + group) * kSumsStride, tile[group * 4], tile[group * 4 + 1],
                       tile[group * 4 + 2], tile[group * 4 + 3]);
    }
  }
  cluster_sync();
  share = Sums<Config::kOutputColumns>{};
#pragma unroll 1
  for (int split = 0; split < Config::SPLIT_K; ++split) {
    const unsigned other =
        cluster_address(own + item.split * kShared * kSumsStride, static_cast<unsigned>(split));
#pragma unroll
    for (int i = 0; i < Config::kMmaM; ++i) {
#pragma unroll
      for (int group = 0; group < kShared; ++group) {
        float part[4];
        ld_shared_cluster_v4(other + (i * kGroups + group) * kSumsStride, part);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          share.tile[i][group * 4 + e] += part[e];
        }
      }
    }
  }
  cluster_sync();  // a CTA's smem stays until all have read it
}

// ---- Directly -----------------------------------------------------------------------------------

/// One exchange between lanes whose numbers differ in `bit` (1 or 2): the lane without it keeps `low` and
/// gets the other's `low` as `high`; the lane with it keeps `high` and gets the other's `high` as `low`.
__device__ __forceinline__ void exchange(float& low, float& high, int lane, int bit) {
  const bool is_upper = (lane & bit) != 0;
  const float received = __shfl_xor_sync(0xffffffffu, is_upper ? low : high, bit);
  low = is_upper ? received : low;
  high = is_upper ? high : received;
}

/// Stores the sums, 64 rows a wgmma tile. Four lanes hold two columns each of every 8: they transpose four
/// groups of 8 among themselves, so that each lane stores 8 neighbouring columns.
template <int kColumns>
__device__ __forceinline__ void store_directly(const Sums<kColumns>& sums, const EpilogueArgs& epilogue,
                                               const GemmProblem& problem, const WorkItem& item, int row,
                                               int thread) {
  const int lane = thread % 32;
#pragma unroll
  for (int i = 0; i < Config::kMmaM; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const long long m = item.first_m + row + i * 64 + thread / 32 * 16 + half * 8 + lane / 4;
#pragma unroll
      for (int group = 0; group < kColumns / 32; ++group) {
        float pairs[4][2];
#pragma unroll
        for (int block = 0; block < 4; ++block) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            pairs[block][e] = sums.tile[i][(group * 4 + block) * 4 + half * 2 + e];
          }
        }
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          exchange(pairs[0][e], pairs[1][e], lane, 1);
          exchange(pairs[2][e], pairs[3][e], lane, 1);
          exchange(pairs[0][e], pairs[2][e], lane, 2);
          exchange(pairs[1][e], pairs[3][e], lane, 2);
        }
        const long long n = item.first_n + group * 32 + lane % 4 * 8;
        if (m < problem.extent_m && n < problem.extent_n) {
          const float values[8] = {pairs[0][0], pairs[0][1], pairs[1][0], pairs[1][1],
                                   pairs[2][0], pairs[2][1], pairs[3][0], pairs[3][1]};
          epilogue_store<8>(epilogue, item.batch, m, n, values,
                            problem.extent_n - n < 8 ? static_cast<int>(problem.extent_n - n) : 8);
        }
      }
    }
  }
}

// ---- By way of smem -----------------------------------------------------------------------------
// 64 columns of 16 rows at a time, a part, pass through 2048 bytes of smem of this warp. They go there as the
// sums lie, 16-byte chunks XORed with the row's number against bank conflicts, and leave in lines of 128
// bytes, 8 lanes each. For one output of 16 bits.

/// What a lane's outputs of a part need besides the sums.
struct PartReads {
  EpilogueReads of[4][2][2];  ///< [pair][right][below]
};

/// Whether the whole tile is inside the output and every access aligned.
__device__ __forceinline__ bool is_whole_tile(const GemmProblem& problem, const WorkItem& item,
                                              bool is_aligned) {
  return is_aligned && item.first_m + Config::BLOCK_M <= problem.extent_m &&
         item.first_n + Config::kOutputColumns <= problem.extent_n;
}

// ---- Either way ---------------------------------------------------------------------------------

/// Stores the sums of this consumer's rows, from `row` on. `reads` holds those of the first part where no
/// splits were added up.
template <int kColumns>
__device__ __forceinline__ void store_tile(const Sums<kColumns>& sums, const EpilogueArgs& epilogue,
                                           const GemmProblem& problem, const WorkItem& item, int row,
                                           int thread, bool is_whole, PartReads& reads, unsigned results) {
  store_directly<kColumns>(sums, epilogue, problem, item, row, thread);
}

// ---- Consumer -----------------------------------------------------------------------------------

/// By a whole warpgroup, `consumer` = 0 .. CONSUMERS - 1.
__device__ __forceinline__ void consume(const Schedule& schedule, const GemmProblem& problem,
                                        const EpilogueArgs& epilogue, float* partial_sums,
                                        unsigned* tile_counters, RingPosition ring, int consumer) {
  const int thread = static_cast<int>(threadIdx.x) % 128;
  const int part = consumer;  // of the tile
  const int row = part * Config::kConsumerRows;
  const unsigned results =
      ring.results() + static_cast<unsigned>(threadIdx.x / 32 - 4) * Config::kResultBytes;
  const bool is_aligned = epilogue_is_aligned<8>(epilogue);
#pragma unroll 1
  for (int index = schedule.first(); index < schedule.end(); index += schedule.step()) {
    WorkItem item = schedule.item(index);
    TileSums sums;
    const RingPosition last = start_blocks(schedule, ring, item.num_blocks, row, thread, sums);
    PartReads reads = {};
    finish_blocks(schedule, last, thread, sums);
    Sums<Config::kOutputColumns> share;
    add_splits_of_cluster(item, ring.smem, sums, share);
    item.first_n += item.split * Config::kOutputColumns;
    store_tile<Config::kOutputColumns>(share, epilogue, problem, item, row, thread,
                                       is_whole_tile(problem, item, is_aligned), reads, results);
  }
}

// ---- Kernel -------------------------------------------------------------------------------------

extern "C" __global__ void __launch_bounds__(Config::kThreads, 1)
    gemm_sm90_tma_wgmma__m128_n128_k64_w2_p0_cm1_cn1_s4_sk2_d1_g1_z128_e0(
        const __grid_constant__ TensorMap A_map, const __grid_constant__ TensorMap B_map, GemmProblem problem,
        EpilogueArgs epilogue, float* partial_sums, unsigned* tile_counters) {
  alignas(1024) extern __shared__ unsigned char smem[];
  const RingPosition ring = {shared_address(smem), 0, 0u};
  if (threadIdx.x == 0) {
    prefetch_tensor_map(A_map);
    prefetch_tensor_map(B_map);
    init_barriers(ring);
  }
  cluster_sync();  // a peer may copy into this CTA's stages from here on

  const Schedule schedule(problem);
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  if (warpgroup == 0) {
    setmaxnreg_dec<Config::kProducerRegisters>();
    if (threadIdx.x < 32 && elect_one()) {
      produce(schedule, A_map, B_map, ring);
    }
    cluster_sync();  // the two of add_splits_of_cluster()
    cluster_sync();
  } else {
    setmaxnreg_inc<Config::kConsumerRegisters>();
    consume(schedule, problem, epilogue, partial_sums, tile_counters, ring, warpgroup - 1);
  }
}
