// SPDX-License-Identifier: Apache-2.0
// glu, made from the template gemm_sm90_tma_wgmma_pair for sm_90a.
//
//   g[m,n] = cast(sum[k](x[m,k] * gate[n,k]), bf16)
//   u[m,n] = cast(sum[k](x[m,k] * up[n,k]), bf16)
//   h[m,n] = silu(g[m,n] + bias[n]) * u[m,n]
//
// Config: BLOCK_M = 128, BLOCK_N = 256, BLOCK_K = 64, CONSUMERS = 2, IS_PINGPONG = 0, CLUSTER_M = 2,
// CLUSTER_N = 1, STAGES = 4, SPLIT_K = 1, GROUP_M = 8, SWIZZLE_BYTES = 128, IS_STAGED = 1

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

/// The same for all CTAs of the cluster whose bit is set: each gets the box at the same place, and its bytes
/// at its own barrier.
__device__ __forceinline__ void tma_load_3d_multicast(unsigned smem, const TensorMap& map, unsigned barrier,
                                                      int c0, int c1, int c2, unsigned short cta_mask) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], "
      "%6;" ::"r"(smem),
      "l"(&map), "r"(c0), "r"(c1), "r"(c2), "r"(barrier), "h"(cta_mask)
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

  /// The same for a tile whose first half comes from one tensor and whose second half from another: of lines
  /// along k the first and last kLines / 2, else the first and last panels. `contiguous` and `line` are where
  /// the halves begin in their tensors.
  template <int kParts>
  static __device__ __forceinline__ void start_copy_of_pair(unsigned smem, const TensorMap& map_0,
                                                            const TensorMap& map_1, unsigned barrier,
                                                            int contiguous, int line, int batch, int part,
                                                            unsigned short cta_mask) {
    constexpr int kHalfPanels = kIsKContiguous ? kPanels : kPanels / 2;
    constexpr int kHalfLines = kIsKContiguous ? kLines / 2 : kLines;
    constexpr int kHalfBytes = kIsKContiguous ? kHalfLines * kSwizzleBytes : kHalfPanels * kPanelBytes;
    constexpr int kPartLines = kHalfLines / kParts;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const TensorMap& map = half == 0 ? map_0 : map_1;
#pragma unroll
      for (int panel = 0; panel < kHalfPanels; ++panel) {
        const unsigned to =
            smem + half * kHalfBytes + panel * kPanelBytes + part * (kPartLines * kSwizzleBytes);
        tma_load_3d_multicast(to, map, barrier, contiguous + panel * kElementsPerLine,
                              line + part * kPartLines, batch, cta_mask);
      }
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

/// The same loads, which the compiler may move and join: of memory that only this thread writes, if any,
/// while the kernel runs.
__device__ __forceinline__ void ld_global_movable_b32(const void* gmem, unsigned& w0) {
  asm("ld.global.b32 %0, [%1];" : "=r"(w0) : "l"(gmem));
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

/// Arrives at the barrier that lies at the same place in CTA `rank` of the cluster. No .release.cluster: it
/// would cost 300 cycles, and what the arrival orders here, the reads of a finished wgmma, needs none.
__device__ __forceinline__ void mbarrier_arrive_cluster(unsigned smem, unsigned rank) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}\n" ::"r"(smem),
      "r"(rank)
      : "memory");
}

/// Address in the shared window of a pointer into smem: what cp.async, ldmatrix and the functions below take.
__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

/// 16 bytes; the address is 16-byte aligned.
__device__ __forceinline__ void ld_shared_v4_b32(unsigned smem, unsigned& w0, unsigned& w1, unsigned& w2,
                                                 unsigned& w3) {
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(w0), "=r"(w1), "=r"(w2), "=r"(w3)
               : "r"(smem)
               : "memory");
}

__device__ __forceinline__ void stmatrix_x4(unsigned smem, unsigned r0, unsigned r1, unsigned r2,
                                            unsigned r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(smem), "r"(r0),
               "r"(r1), "r"(r2), "r"(r3)
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

/// This thread's lane, read again at every call: what is computed from it does not occupy registers between
/// the calls.
__device__ __forceinline__ int read_lane() {
  int lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
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
__device__ __forceinline__ void wgmma_m64n256k16_bf16(float (&d)[128], unsigned long long a,
                                                      unsigned long long b, int accumulates) {
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
      " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,"
      " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,"
      " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63,"
      " %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79,"
      " %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95,"
      " %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111,"
      " %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, p, 1, 1, %131, %132;\n"
      "}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]),
        "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]),
        "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
        "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]),
        "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]),
        "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), "+f"(d[64]),
        "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
        "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]),
        "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]),
        "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]),
        "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]),
        "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), "+f"(d[104]), "+f"(d[105]), "+f"(d[106]),
        "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]),
        "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), "+f"(d[120]),
        "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
      : "l"(a), "l"(b), "r"(accumulates), "n"(kTransA), "n"(kTransB));
}

// ---- Config -------------------------------------------------------------------------------------

struct Config {
  using ElementA = BFloat16;
  using Accumulator = float;
  static constexpr bool A_IS_K_CONTIGUOUS = true;
  static constexpr bool B_IS_K_CONTIGUOUS = true;
  using Output = BFloat16;                    ///< of the first output
  static constexpr int BLOCK_M = 128;         ///< rows of a CTA's output tile
  static constexpr int BLOCK_N = 256;         ///< columns of both products in a CTA's tile
  static constexpr int BLOCK_K = 64;          ///< elements of k in one stage
  static constexpr int CONSUMERS = 2;         ///< warpgroups that multiply
  static constexpr bool IS_PINGPONG = false;  ///< consumers take tiles in turn instead of sharing each
  static constexpr int CLUSTER_M = 2;         ///< CTAs of a cluster along m
  static constexpr int CLUSTER_N = 1;         ///< CTAs of a cluster along n
  static constexpr int STAGES = 4;            ///< smem buffers
  static constexpr int SPLIT_K = 1;           ///< parts of k that are multiplied by different CTAs
  static constexpr int GROUP_M = 8;           ///< raster of clusters: parts/tile_raster.cuh
  static constexpr int SWIZZLE_BYTES = 128;   ///< width of a panel: parts/swizzled_tile.cuh
  static constexpr bool IS_STAGED = true;     ///< results go to gmem by way of smem

  static constexpr bool SPLITS_ARE_CLUSTER = false;
  static constexpr int kConsumersPerTile = IS_PINGPONG ? 1 : CONSUMERS;
  static constexpr int kThreads = 128 * (CONSUMERS + 1);
  static constexpr int kConsumerRows = BLOCK_M / kConsumersPerTile;
  static constexpr int kMmaM = kConsumerRows / 64;    ///< wgmma tiles of a consumer along m
  static constexpr int kSums = kMmaM * BLOCK_N / 2;   ///< f32 sums of a consumer's thread
  static constexpr int kOutputColumns = BLOCK_N / 2;  ///< columns of a tile's outputs
  static constexpr int kKSteps = BLOCK_K / 16;        ///< wgmma steps of a stage
  static constexpr int kClusterSize = CLUSTER_M * CLUSTER_N;
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
  ld_global_movable_b32(pointer, words[0]);
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

/// a / (1 + e^x), for results of 16 bits; what e^x has below 2^-126 is lost beside the 1.
__device__ __forceinline__ float divide_by_one_plus_exp(float a, float x) {
  float power, result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(1.44269504f * x));
  asm("div.full.ftz.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(1 + power));
  return result;
}

/// x * sigmoid(x), for results of 16 bits.
__device__ __forceinline__ float silu_approximate(float x) { return divide_by_one_plus_exp(x, -x); }

/// The nearest bf16, even on a tie. As the lower one of a pair: the conversion of a single value goes to the
/// unit of 16 results a clock and SM, that of a pair does not.
__device__ __forceinline__ float round_to_bf16(float x) {
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(0.0f), "f"(x));
  return __uint_as_float(bits << 16);
}

/// Kernel parameter `epilogue`: pointers and strides (elements) of the tensors the epilogue reads and writes,
/// and its scalars.
struct EpilogueArgs {
  const BFloat16* bias;
  BFloat16* h;
  long long h_stride_m;
};

/// Whether kVec elements of every contiguous tensor of the epilogue are aligned to their whole, wherever a
/// row's n is a multiple of kVec.
template <int kVec>
__device__ __forceinline__ bool epilogue_is_aligned(const EpilogueArgs& args) {
  return is_aligned_for<kVec>(args.bias, 0) && is_aligned_for<kVec>(args.h, args.h_stride_m);
}

/// What the outputs (b, m, n) and (b, m, n + 1) need besides their sums, as it lies in gmem: to be loaded
/// early.
struct EpilogueReads {
  ElementWords<BFloat16, 2> bias;
};

/// Loads it for count = 1 or 2 outputs. kIsWhole: count is 2 and epilogue_is_aligned<2>().
template <bool kIsWhole>
__device__ __forceinline__ void epilogue_read(const EpilogueArgs& args, long long b, long long m, long long n,
                                              int count, EpilogueReads& reads) {
  load_elements<2, kIsWhole>(args.bias + n, 1, count, reads.bias);
}

/// values[i] = the output's element (b, m, n + i), i < count, for the sums acc[i] and acc2[i].
template <bool kIsWhole, typename Element>
__device__ __forceinline__ void epilogue_values(const EpilogueArgs& args, long long b, long long m,
                                                long long n, const Accumulator (&acc)[2],
                                                const Accumulator (&acc2)[2], const EpilogueReads& reads,
                                                int count, Element (&values)[2]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    values[i] = from_accumulator<Element>(
        silu_approximate(round_to_bf16(acc[i]) + to_accumulator<float>(reads.bias.elements[i])) *
        round_to_bf16(acc2[i]));
  }
}

/// Stores the elements (b, m, n + i), i < count. kIsWhole: count is kVec and epilogue_is_aligned<kVec>().
template <int kVec, bool kIsWhole, typename Element>
__device__ __forceinline__ void epilogue_store_values(const EpilogueArgs& args, long long b, long long m,
                                                      long long n, const ElementWords<Element, kVec>& values,
                                                      int count) {
  store_elements<kVec, kIsWhole>(args.h + m * args.h_stride_m + n, 1, count, values);
}

// ---- The problem in tiles -----------------------------------------------------------------------

__host__ __device__ constexpr long long cluster_tiles_m(long long extent_m) {
  return (extent_m + Config::BLOCK_M * Config::CLUSTER_M - 1) / (Config::BLOCK_M * Config::CLUSTER_M);
}
__host__ __device__ constexpr long long cluster_tiles_n(long long extent_n) {
  return (extent_n + Config::kOutputColumns * Config::CLUSTER_N - 1) /
         (Config::kOutputColumns * Config::CLUSTER_N);
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
  __device__ __forceinline__ int end() const { return num_tiles * Config::SPLIT_K; }

  __device__ __forceinline__ WorkItem item(int index) const {
    const int tile_index = index % num_tiles;
    const TileCoordinate tile = locate_tile(static_cast<unsigned>(tile_index), static_cast<unsigned>(tiles_m),
                                            static_cast<unsigned>(tiles_n), Config::GROUP_M);
    WorkItem item;
    item.batch = tile.batch;
    item.first_m = (tile.tile_m * Config::CLUSTER_M + cta_m) * Config::BLOCK_M;
    item.first_n = (tile.tile_n * Config::CLUSTER_N + cta_n) * Config::BLOCK_N;
    item.output_tile = (tile_index * Config::CLUSTER_M + cta_m) * Config::CLUSTER_N + cta_n;
    item.split = index / num_tiles;
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
                                        const TensorMap& map_b, const TensorMap& map_b2, RingPosition ring) {
  // CTA (m, n) of the cluster has rank m * CLUSTER_N + n.
  const unsigned short row_mask =
      static_cast<unsigned short>(((1 << Config::CLUSTER_N) - 1) << schedule.cta_m * Config::CLUSTER_N);
  constexpr int kFirstColumn = 1 + (1 << Config::CLUSTER_N);
  const unsigned short column_mask = static_cast<unsigned short>(kFirstColumn << schedule.cta_n);
#pragma unroll 1
  for (int index = schedule.first(); index < schedule.end(); index += schedule.step()) {
    const WorkItem item = schedule.item(index);
    const int n = item.first_n / 2;
#pragma unroll 1
    for (int block = item.first_block; block < item.first_block + item.num_blocks; ++block) {
      mbarrier_wait(ring.empty(), ring.phase ^ 1u);
      mbarrier_arrive_expect_tx(ring.full(), Config::kStageBytes);
      const int k = block * Config::BLOCK_K;
      TileA::start_copy<Config::CLUSTER_N>(
          ring.tile_a(), map_a, ring.full(), Config::A_IS_K_CONTIGUOUS ? k : item.first_m,
          Config::A_IS_K_CONTIGUOUS ? item.first_m : k, item.batch, schedule.cta_n, row_mask);
      TileB::start_copy_of_pair<Config::CLUSTER_M>(
          ring.tile_b(), map_b, map_b2, ring.full(), Config::B_IS_K_CONTIGUOUS ? k : n,
          Config::B_IS_K_CONTIGUOUS ? n : k, item.batch, schedule.cta_m, column_mask);
      ring.advance();
    }
  }
  // A CTA may leave when no peer will arrive at its barriers any more.
#pragma unroll 1
  for (int stage = 0; stage < Config::STAGES; ++stage) {
    mbarrier_wait(ring.empty(), ring.phase ^ 1u);
    ring.advance();
  }
}

// ---- Mainloop of a consumer ---------------------------------------------------------------------

/// A thread's sums of kColumns columns: wgmma tile i along m, in the order of ptx/wgmma.cuh.
template <int kColumns>
struct Sums {
  float tile[Config::kMmaM][kColumns / 2];
};
using TileSums = Sums<Config::BLOCK_N>;

__device__ __forceinline__ void multiply_tile(float (&d)[128], unsigned long long a, unsigned long long b,
                                              int accumulates, BFloat16) {
  wgmma_m64n256k16_bf16<TileA::kTranspose, TileB::kTranspose>(d, a, b, accumulates);
}

/// Tells every CTA whose copies reach this one's stage that this warpgroup has read it; one thread for each
/// of them.
__device__ __forceinline__ void release_stage(const Schedule& schedule, RingPosition ring, int thread) {
  if (thread < Config::kPeers) {
    // The CTAs of this one's row of the cluster, then the others of its column.
    const int above = thread - Config::CLUSTER_N;
    const int row = above < schedule.cta_m ? above : above + 1;
    const int rank = thread < Config::CLUSTER_N ? schedule.cta_m * Config::CLUSTER_N + thread
                                                : row * Config::CLUSTER_N + schedule.cta_n;
    mbarrier_arrive_cluster(ring.empty(), static_cast<unsigned>(rank));
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

// ---- By way of smem -----------------------------------------------------------------------------
// 64 columns of 16 rows at a time, a part, pass through 2048 bytes of smem of this warp. They go there as the
// sums lie, 16-byte chunks XORed with the row's number against bank conflicts, and leave in lines of 128
// bytes, 8 lanes each. For one output of 16 bits.

/// A part's place: the sums of tile i, columns [64 * part, 64 * part + 64) of the CTA's tile. Two
/// neighbouring columns at a time belong to a lane: of `pair` 0 to 3, 16 columns each, 8 to the left or
/// right, 8 rows above or below.
struct Part {
  long long first_m;
  long long first_n;

  __device__ __forceinline__ long long m(int below, int lane) const { return first_m + below * 8 + lane / 4; }
  __device__ __forceinline__ long long n(int pair, int right, int lane) const {
    return first_n + pair * 16 + right * 8 + lane % 4 * 2;
  }
};

/// Of the warp of consumer rows `row` on; `step` counts the parts of all wgmma tiles.
template <int kColumns>
__device__ __forceinline__ Part part_at(const WorkItem& item, int row, int thread, int step) {
  constexpr int kParts = kColumns / 128;
  return Part{item.first_m + row + step / kParts * 64 + thread / 32 * 16,
              static_cast<long long>(item.first_n / 2) + step % kParts * 64};
}

/// What a lane's outputs of a part need besides the sums.
struct PartReads {
  EpilogueReads of[4][2][2];  ///< [pair][right][below]
};

/// Whether the whole tile is inside the output and every access aligned.
__device__ __forceinline__ bool is_whole_tile(const GemmProblem& problem, const WorkItem& item,
                                              bool is_aligned) {
  return is_aligned && item.first_m + Config::BLOCK_M <= problem.extent_m &&
         item.first_n / 2 + Config::kOutputColumns <= problem.extent_n;
}

/// Loads of a whole part, all in flight at once.
__device__ __forceinline__ void read_part(const EpilogueArgs& epilogue, const WorkItem& item,
                                          const Part& part, int lane, PartReads& reads) {
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
#pragma unroll
    for (int right = 0; right < 2; ++right) {
#pragma unroll
      for (int below = 0; below < 2; ++below) {
        epilogue_read<true>(epilogue, item.batch, part.m(below, lane), part.n(pair, right, lane), 2,
                            reads.of[pair][right][below]);
      }
    }
  }
}

/// Stores the sums. In a whole tile `reads` holds those of the first part; the others are loaded one part
/// ahead.
template <int kColumns, bool kIsWhole>
__device__ __forceinline__ void store_by_way_of_smem(const Sums<kColumns>& sums, const EpilogueArgs& epilogue,
                                                     const GemmProblem& problem, const WorkItem& item,
                                                     int row, int thread, PartReads& reads,
                                                     unsigned results) {
  constexpr int kParts = kColumns / 128;
  constexpr int kSteps = Config::kMmaM * kParts;
  const int lane = read_lane();  // nothing of this function is kept through the mainloop
  // Whose address this lane gives stmatrix: matrices 0 and 1 lie one below the other, 2 and 3 to their right.
  const int matrix_row = lane % 8 + lane / 8 % 2 * 8;
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const Part part = part_at<kColumns>(item, row, thread, step);
    PartReads next = {};
    if constexpr (kIsWhole) {
      if (step + 1 < kSteps) {
        read_part(epilogue, item, part_at<kColumns>(item, row, thread, step + 1), lane, next);
      }
    }
    __syncwarp();  // the part before has been read
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      ElementWords<Config::Output, 2> matrices[2][2] = {};  // [right][below]: 8 columns and 8 rows each
#pragma unroll
      for (int right = 0; right < 2; ++right) {
#pragma unroll
        for (int below = 0; below < 2; ++below) {
          const float(&tile)[kColumns / 2] = sums.tile[step / kParts];
          const int j = (step % kParts * 8 + pair * 2 + right) * 4 + below * 2;
          const float acc[2] = {tile[j], tile[j + 1]};
          const float acc2[2] = {tile[kColumns / 4 + j], tile[kColumns / 4 + j + 1]};
          const long long m = part.m(below, lane);
          const long long n = part.n(pair, right, lane);
          if constexpr (kIsWhole) {
            epilogue_values<true>(epilogue, item.batch, m, n, acc, acc2, reads.of[pair][right][below], 2,
                                  matrices[right][below].elements);
          } else if (m < problem.extent_m && n < problem.extent_n) {
            const int count = problem.extent_n - n < 2 ? 1 : 2;
            EpilogueReads own = {};
            epilogue_read<false>(epilogue, item.batch, m, n, count, own);
            epilogue_values<false>(epilogue, item.batch, m, n, acc, acc2, own, count,
                                   matrices[right][below].elements);
          }
        }
      }
      const int chunk = (pair * 2 + lane / 16) ^ (matrix_row % 8);
      stmatrix_x4(results + matrix_row * 128 + chunk * 16, matrices[0][0].words[0], matrices[0][1].words[0],
                  matrices[1][0].words[0], matrices[1][1].words[0]);
      __syncwarp();  // orders the compiler: the results of the next pair are not computed before, in
                     // registers that are not there
    }
#pragma unroll
    for (int quarter = 0; quarter < 4; ++quarter) {
      const int line = quarter * 4 + lane / 8;
      ElementWords<Config::Output, 8> values;
      ld_shared_v4_b32(results + line * 128 + ((lane ^ line) % 8) * 16, values.words[0], values.words[1],
                       values.words[2], values.words[3]);
      const long long m = part.first_m + line;
      const long long n = part.first_n + lane % 8 * 8;
      if (kIsWhole || (m < problem.extent_m && n < problem.extent_n)) {
        const int count = kIsWhole || problem.extent_n - n >= 8 ? 8 : static_cast<int>(problem.extent_n - n);
        epilogue_store_values<8, kIsWhole>(epilogue, item.batch, m, n, values, count);
      }
    }
    reads = next;
  }
}

// ---- Either way ---------------------------------------------------------------------------------

/// Stores the sums of this consumer's rows, from `row` on. `reads` holds those of the first part where no
/// splits were added up.
template <int kColumns>
__device__ __forceinline__ void store_tile(const Sums<kColumns>& sums, const EpilogueArgs& epilogue,
                                           const GemmProblem& problem, const WorkItem& item, int row,
                                           int thread, bool is_whole, PartReads& reads, unsigned results) {
  if (is_whole) {
    store_by_way_of_smem<kColumns, true>(sums, epilogue, problem, item, row, thread, reads, results);
  } else {
    store_by_way_of_smem<kColumns, false>(sums, epilogue, problem, item, row, thread, reads, results);
  }
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
    const bool is_whole = is_whole_tile(problem, item, is_aligned);
    if (is_whole) {
      // While the last products are still being made.
      read_part(epilogue, item, part_at<Config::BLOCK_N>(item, row, thread, 0), read_lane(), reads);
    }
    finish_blocks(schedule, last, thread, sums);
    store_tile<Config::BLOCK_N>(sums, epilogue, problem, item, row, thread, is_whole, reads, results);
  }
}

// ---- Kernel -------------------------------------------------------------------------------------

extern "C" __global__ void __launch_bounds__(Config::kThreads, 1)
    gemm_sm90_tma_wgmma_pair__m128_n256_k64_w2_p0_cm2_cn1_s4_sk1_g8_z128_e1(
        const __grid_constant__ TensorMap A_map, const __grid_constant__ TensorMap B_map,
        const __grid_constant__ TensorMap B2_map, GemmProblem problem, EpilogueArgs epilogue,
        float* partial_sums, unsigned* tile_counters) {
  alignas(1024) extern __shared__ unsigned char smem[];
  const RingPosition ring = {shared_address(smem), 0, 0u};
  if (threadIdx.x == 0) {
    prefetch_tensor_map(A_map);
    prefetch_tensor_map(B_map);
    prefetch_tensor_map(B2_map);
    init_barriers(ring);
  }
  cluster_sync();  // a peer may copy into this CTA's stages from here on

  const Schedule schedule(problem);
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  if (warpgroup == 0) {
    setmaxnreg_dec<Config::kProducerRegisters>();
    if (threadIdx.x < 32 && elect_one()) {
      produce(schedule, A_map, B_map, B2_map, ring);
    }
  } else {
    setmaxnreg_inc<Config::kConsumerRegisters>();
    consume(schedule, problem, epilogue, partial_sums, tile_counters, ring, warpgroup - 1);
  }
}
