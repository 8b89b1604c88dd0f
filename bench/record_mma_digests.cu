// Records on a GPU what mma.sync and wgmma compute: 2^20 seeded tiles of every form of simulator/tensor/digest_forms.h (random and
// adversarial: cancellation, wide exponents, subnormals, infinities, NaN), as one digest a block of 8192 tiles. The simulator replays the
// file.
//   nvcc -std=c++20 -arch=sm_90a -I. -o record_mma_digests bench/record_mma_digests.cu     (sm_80, sm_89: mma.sync only)
//   ./record_mma_digests > tests/simulator/tensor/digests/h200.txt
//   ./record_mma_digests FORM FIRST_TILE COUNT        one digest a tile, to find the tile of a block that differs
//   ./record_mma_digests FORM FIRST_TILE COUNT words  every result: "tile row column hex"
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "simulator/tensor/digest_forms.h"

using namespace kw::simulate;

namespace {

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(3);
}

struct Recording {
  std::uint64_t first_tile, num_tiles;
  int block_tiles;
  unsigned long long* digests;  // one a block
  std::uint64_t* words;         // every result [tile][row][column], or null
};

__host__ __device__ constexpr int bytes_of(ElementType type) {
  return type == ElementType::kF64                                                              ? 8
         : type == ElementType::kTF32 || type == ElementType::kF32 || type == ElementType::kS32 ? 4
         : type == ElementType::kF16 || type == ElementType::kBF16                              ? 2
                                                                                                : 1;
}

__device__ void record(const DigestForm& form, const Recording& to, std::uint64_t tile, int row, int column, std::uint64_t result) {
  const std::uint64_t index = tile - to.first_tile;
  atomicAdd(&to.digests[index / static_cast<unsigned>(to.block_tiles)],
            static_cast<unsigned long long>(digest_term(tile, row, column, result)));
  if (to.words != nullptr) to.words[(index * form.m + row) * form.n + column] = result;
}

// ---- mma.sync: one function a form. Registers are words; f32 accumulators change clothes at the border.
template <int kForm>
__device__ void mma_words(const std::uint32_t* a, const std::uint32_t* b, std::uint32_t* d);

#define KW_MMA_4_2_4F(FORM, TEXT)                                                                                         \
  template <>                                                                                                             \
  __device__ void mma_words<FORM>(const std::uint32_t* a, const std::uint32_t* b, std::uint32_t* d) {                     \
    float x0 = __uint_as_float(d[0]), x1 = __uint_as_float(d[1]), x2 = __uint_as_float(d[2]), x3 = __uint_as_float(d[3]); \
    asm volatile("mma.sync.aligned." TEXT " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"                           \
                 : "+f"(x0), "+f"(x1), "+f"(x2), "+f"(x3)                                                                 \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                                     \
    d[0] = __float_as_uint(x0), d[1] = __float_as_uint(x1), d[2] = __float_as_uint(x2), d[3] = __float_as_uint(x3);       \
  }
#define KW_MMA_2_1_4F(FORM, TEXT)                                                                                         \
  template <>                                                                                                             \
  __device__ void mma_words<FORM>(const std::uint32_t* a, const std::uint32_t* b, std::uint32_t* d) {                     \
    float x0 = __uint_as_float(d[0]), x1 = __uint_as_float(d[1]), x2 = __uint_as_float(d[2]), x3 = __uint_as_float(d[3]); \
    asm volatile("mma.sync.aligned." TEXT " {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"                                    \
                 : "+f"(x0), "+f"(x1), "+f"(x2), "+f"(x3)                                                                 \
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));                                                                      \
    d[0] = __float_as_uint(x0), d[1] = __float_as_uint(x1), d[2] = __float_as_uint(x2), d[3] = __float_as_uint(x3);       \
  }
#define KW_MMA_4_2_2R(FORM, TEXT)                                                                     \
  template <>                                                                                         \
  __device__ void mma_words<FORM>(const std::uint32_t* a, const std::uint32_t* b, std::uint32_t* d) { \
    asm volatile("mma.sync.aligned." TEXT " {%0,%1},{%2,%3,%4,%5},{%6,%7},{%0,%1};"                   \
                 : "+r"(d[0]), "+r"(d[1])                                                             \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                 \
  }
#define KW_MMA_2_1_2R(FORM, TEXT)                                                                                                       \
  template <>                                                                                                                           \
  __device__ void mma_words<FORM>(const std::uint32_t* a, const std::uint32_t* b, std::uint32_t* d) {                                   \
    asm volatile("mma.sync.aligned." TEXT " {%0,%1},{%2,%3},{%4},{%0,%1};" : "+r"(d[0]), "+r"(d[1]) : "r"(a[0]), "r"(a[1]), "r"(b[0])); \
  }
#define KW_MMA_4_2_4R(FORM, TEXT)                                                                     \
  template <>                                                                                         \
  __device__ void mma_words<FORM>(const std::uint32_t* a, const std::uint32_t* b, std::uint32_t* d) { \
    asm volatile("mma.sync.aligned." TEXT " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"       \
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                                     \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                 \
  }
#define KW_MMA_2_1_4R(FORM, TEXT)                                                                     \
  template <>                                                                                         \
  __device__ void mma_words<FORM>(const std::uint32_t* a, const std::uint32_t* b, std::uint32_t* d) { \
    asm volatile("mma.sync.aligned." TEXT " {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"                \
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                                     \
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));                                                  \
  }
#define KW_MMA_1_1_2R(FORM, TEXT)                                                                                         \
  template <>                                                                                                             \
  __device__ void mma_words<FORM>(const std::uint32_t* a, const std::uint32_t* b, std::uint32_t* d) {                     \
    asm volatile("mma.sync.aligned." TEXT " {%0,%1},{%2},{%3},{%0,%1};" : "+r"(d[0]), "+r"(d[1]) : "r"(a[0]), "r"(b[0])); \
  }

KW_MMA_4_2_4F(0, "m16n8k16.row.col.f32.f16.f16.f32")
KW_MMA_2_1_4F(1, "m16n8k8.row.col.f32.f16.f16.f32")
KW_MMA_4_2_2R(2, "m16n8k16.row.col.f16.f16.f16.f16")
KW_MMA_2_1_2R(3, "m16n8k8.row.col.f16.f16.f16.f16")
KW_MMA_4_2_4F(4, "m16n8k16.row.col.f32.bf16.bf16.f32")
KW_MMA_2_1_4F(5, "m16n8k8.row.col.f32.bf16.bf16.f32")
KW_MMA_4_2_4F(6, "m16n8k8.row.col.f32.tf32.tf32.f32")
KW_MMA_2_1_4F(7, "m16n8k4.row.col.f32.tf32.tf32.f32")
KW_MMA_4_2_4R(15, "m16n8k32.row.col.s32.s8.s8.s32")
KW_MMA_4_2_4R(16, "m16n8k32.row.col.s32.u8.s8.s32")
KW_MMA_2_1_4R(17, "m16n8k16.row.col.s32.s8.u8.s32")
KW_MMA_1_1_2R(18, "m8n8k16.row.col.s32.s8.s8.s32")
#if __CUDA_ARCH__ >= 890 || !defined(__CUDA_ARCH__)
KW_MMA_4_2_4F(8, "m16n8k32.row.col.f32.e4m3.e4m3.f32")
KW_MMA_4_2_4F(9, "m16n8k32.row.col.f32.e5m2.e4m3.f32")
KW_MMA_4_2_4F(10, "m16n8k32.row.col.f32.e4m3.e5m2.f32")
KW_MMA_4_2_4F(11, "m16n8k32.row.col.f32.e5m2.e5m2.f32")
KW_MMA_2_1_4F(12, "m16n8k16.row.col.f32.e4m3.e4m3.f32")
KW_MMA_4_2_2R(13, "m16n8k32.row.col.f16.e4m3.e4m3.f16")
KW_MMA_2_1_2R(14, "m16n8k16.row.col.f16.e5m2.e4m3.f16")
#endif

/// Fragment word: register j of a lane, elements low bits first. A: row g + 8*(j % row_blocks); B (row_blocks 1): column g.
__device__ std::uint32_t operand_word(ElementType type, std::uint64_t tile, int operand, int row_blocks, int lane, int j) {
  const int es = bytes_of(type), per = 4 / es;
  std::uint32_t word = 0;
  for (int i = 0; i < per; ++i) {
    const int k = lane % 4 * per + i + 4 * per * (j / row_blocks);
    const std::uint64_t element = digest_element(type, tile, operand, lane / 4 + 8 * (j % row_blocks), k);
    word |= static_cast<std::uint32_t>(element) << (8 * es * i);
  }
  return word;
}

/// Accumulator value `index` of a lane: row g + 8*((index/2) % 2), column 2q + index%2 + 8*(index/4); one row block when m is 8.
struct AccumulatorPlace {
  int row, column;
};
__device__ AccumulatorPlace accumulator_place(int lane, int index) {
  return {lane / 4 + 8 * (index / 2 % 2), 2 * (lane % 4) + index % 2 + 8 * (index / 4)};
}

template <int kForm>
__device__ void mma_tile(const Recording& to, std::uint64_t tile) {
  constexpr DigestForm form = kDigestForms[kForm];
  constexpr int row_blocks = form.m / 8, a_words = form.m * form.k * bytes_of(form.a) / 128,
                b_words = form.n * form.k * bytes_of(form.b) / 128;
  constexpr bool is_half = form.d == ElementType::kF16;
  constexpr int num_values = form.m * form.n / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  std::uint32_t a[4] = {}, b[2] = {}, d[4] = {};
  for (int j = 0; j < a_words; ++j) a[j] = operand_word(form.a, tile, 0, row_blocks, lane, j);
  for (int j = 0; j < b_words; ++j) b[j] = operand_word(form.b, tile, 1, 1, lane, j);
  for (int value = 0; value < num_values; ++value) {
    const AccumulatorPlace place = accumulator_place(lane, value);
    const auto element = static_cast<std::uint32_t>(digest_element(form.d, tile, 2, place.row, place.column));
    d[is_half ? value / 2 : value] |= element << (is_half ? 16 * (value % 2) : 0);
  }
  mma_words<kForm>(a, b, d);
  for (int value = 0; value < num_values; ++value) {
    const AccumulatorPlace place = accumulator_place(lane, value);
    const std::uint32_t result = is_half ? d[value / 2] >> (16 * (value % 2)) & 0xffffu : d[value];
    record(form, to, tile, place.row, place.column, result);
  }
}

__device__ void dmma(const double* a, const double* b, double* d, int k) {
  if (k == 4) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1},{%2},{%3},{%0,%1};"
                 : "+d"(d[0]), "+d"(d[1])
                 : "d"(a[0]), "d"(b[0]));
    return;
  }
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3},{%4,%5,%6,%7,%8,%9,%10,%11},{%12,%13,%14,%15},{%0,%1,%2,%3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
#endif
}

template <int kForm>
__device__ void dmma_tile(const Recording& to, std::uint64_t tile) {
  constexpr DigestForm form = kDigestForms[kForm];
  constexpr int row_blocks = form.m / 8;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto element = [&](int operand, int line, int k) {
    return __longlong_as_double(static_cast<long long>(digest_element(ElementType::kF64, tile, operand, line, k)));
  };
  double a[8] = {}, b[4] = {}, d[4] = {};
  for (int i = 0; i < form.m * form.k / 32; ++i) a[i] = element(0, lane / 4 + 8 * (i % row_blocks), lane % 4 + 4 * (i / row_blocks));
  for (int i = 0; i < form.k / 4; ++i) b[i] = element(1, lane / 4, lane % 4 + 4 * i);
  for (int i = 0; i < 2 * row_blocks; ++i) d[i] = element(2, accumulator_place(lane, i).row, accumulator_place(lane, i).column);
  dmma(a, b, d, form.k);
  for (int i = 0; i < 2 * row_blocks; ++i) {
    const AccumulatorPlace place = accumulator_place(lane, i);
    record(form, to, tile, place.row, place.column, static_cast<std::uint64_t>(__double_as_longlong(d[i])));
  }
}

// ---- wgmma: one warpgroup a CTA, operands in shared memory as unswizzled core matrices (LBO 128, SBO 256), A from registers in one form.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || !defined(__CUDA_ARCH__)
#define KW_HAS_WGMMA 1
#endif
#ifdef KW_HAS_WGMMA

#define KW_D4 "{%0,%1,%2,%3}"
template <int kForm>
__device__ void wgmma_words(std::uint64_t a_descriptor, std::uint64_t b_descriptor, const std::uint32_t* a, std::uint32_t* d);

#define KW_WGMMA_4F(FORM, TEXT, TAIL)                                                                                                 \
  template <>                                                                                                                         \
  __device__ void wgmma_words<FORM>(std::uint64_t a_descriptor, std::uint64_t b_descriptor, const std::uint32_t*, std::uint32_t* d) { \
    float x0 = __uint_as_float(d[0]), x1 = __uint_as_float(d[1]), x2 = __uint_as_float(d[2]), x3 = __uint_as_float(d[3]);             \
    asm volatile("wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned." TEXT " " KW_D4 ", %4, %5, 1" TAIL                         \
                 ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"                                              \
                 : "+f"(x0), "+f"(x1), "+f"(x2), "+f"(x3)                                                                             \
                 : "l"(a_descriptor), "l"(b_descriptor)                                                                               \
                 : "memory");                                                                                                         \
    d[0] = __float_as_uint(x0), d[1] = __float_as_uint(x1), d[2] = __float_as_uint(x2), d[3] = __float_as_uint(x3);                   \
  }
#define KW_WGMMA_2R(FORM, TEXT, TAIL)                                                                                                 \
  template <>                                                                                                                         \
  __device__ void wgmma_words<FORM>(std::uint64_t a_descriptor, std::uint64_t b_descriptor, const std::uint32_t*, std::uint32_t* d) { \
    asm volatile("wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned." TEXT " {%0,%1}, %2, %3, 1" TAIL                           \
                 ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"                                              \
                 : "+r"(d[0]), "+r"(d[1])                                                                                             \
                 : "l"(a_descriptor), "l"(b_descriptor)                                                                               \
                 : "memory");                                                                                                         \
  }
#define KW_WGMMA_4R(FORM, TEXT)                                                                                                       \
  template <>                                                                                                                         \
  __device__ void wgmma_words<FORM>(std::uint64_t a_descriptor, std::uint64_t b_descriptor, const std::uint32_t*, std::uint32_t* d) { \
    asm volatile("wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned." TEXT " " KW_D4                                            \
                 ", %4, %5, 1;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"                                   \
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                                                                     \
                 : "l"(a_descriptor), "l"(b_descriptor)                                                                               \
                 : "memory");                                                                                                         \
  }

KW_WGMMA_4F(21, "m64n8k16.f32.f16.f16", ", 1, 1, 0, 0")
KW_WGMMA_2R(22, "m64n8k16.f16.f16.f16", ", 1, 1, 0, 0")
KW_WGMMA_4F(23, "m64n8k16.f32.bf16.bf16", ", 1, 1, 0, 0")
KW_WGMMA_4F(26, "m64n8k8.f32.tf32.tf32", ", 1, 1")
KW_WGMMA_4F(27, "m64n8k32.f32.e4m3.e4m3", ", 1, 1")
KW_WGMMA_4F(28, "m64n8k32.f32.e5m2.e4m3", ", 1, 1")
KW_WGMMA_4F(29, "m64n8k32.f32.e5m2.e5m2", ", 1, 1")
KW_WGMMA_2R(30, "m64n8k32.f16.e4m3.e4m3", ", 1, 1")
KW_WGMMA_4R(31, "m64n8k32.s32.s8.s8")
KW_WGMMA_4R(32, "m64n8k32.s32.u8.s8")

template <>
__device__ void wgmma_words<24>(std::uint64_t, std::uint64_t b_descriptor, const std::uint32_t* a, std::uint32_t* d) {
  float x0 = __uint_as_float(d[0]), x1 = __uint_as_float(d[1]), x2 = __uint_as_float(d[2]), x3 = __uint_as_float(d[3]);
  asm volatile("wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 " KW_D4
               ", {%4,%5,%6,%7}, %8, 1, 1, 1, 0;\n"
               "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
               : "+f"(x0), "+f"(x1), "+f"(x2), "+f"(x3)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b_descriptor)
               : "memory");
  d[0] = __float_as_uint(x0), d[1] = __float_as_uint(x1), d[2] = __float_as_uint(x2), d[3] = __float_as_uint(x3);
}

template <>
__device__ void wgmma_words<25>(std::uint64_t a_descriptor, std::uint64_t b_descriptor, const std::uint32_t*, std::uint32_t* d) {
  float x[32];
  for (int i = 0; i < 32; ++i) x[i] = __uint_as_float(d[i]);
#define KW_X8(B) "+f"(x[B]), "+f"(x[B + 1]), "+f"(x[B + 2]), "+f"(x[B + 3]), "+f"(x[B + 4]), "+f"(x[B + 5]), "+f"(x[B + 6]), "+f"(x[B + 7])
  asm volatile(
      "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
      "%32, %33, 1, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"
      : KW_X8(0), KW_X8(8), KW_X8(16), KW_X8(24)
      : "l"(a_descriptor), "l"(b_descriptor)
      : "memory");
  for (int i = 0; i < 32; ++i) d[i] = __float_as_uint(x[i]);
}

/// Writes an operand of `rows` rows and 32 bytes of K as core matrices of 8 rows x 16 bytes; gives its descriptor.
__device__ std::uint64_t store_operand(ElementType type, std::uint64_t tile, int operand, int rows, unsigned char* smem) {
  const int es = bytes_of(type), k_extent = 32 / es;
  for (int index = static_cast<int>(threadIdx.x); index < rows * k_extent; index += static_cast<int>(blockDim.x)) {
    const int row = index / k_extent, k = index % k_extent;
    const std::uint64_t element = digest_element(type, tile, operand, row, k);
    memcpy(smem + row / 8 * 256 + k * es / 16 * 128 + row % 8 * 16 + k * es % 16, &element, static_cast<std::size_t>(es));
  }
  const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(smem));
  return (address & 0x3ffff) >> 4 | std::uint64_t{128 >> 4} << 16 | std::uint64_t{256 >> 4} << 32;
}

template <int kForm>
__device__ void wgmma_tile(const Recording& to, std::uint64_t tile) {
  constexpr DigestForm form = kDigestForms[kForm];
  constexpr bool is_half = form.d == ElementType::kF16;
  constexpr int num_values = form.n / 2;
  __shared__ alignas(128) unsigned char a_smem[64 * 32], b_smem[64 * 32];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const std::uint64_t a_descriptor = store_operand(form.a, tile, 0, 64, a_smem);
  const std::uint64_t b_descriptor = store_operand(form.b, tile, 1, form.n, b_smem);
  std::uint32_t a[4] = {}, d[num_values] = {};
  for (int j = 0; j < 4 && form.is_a_in_registers; ++j) {
    const int es = bytes_of(form.a), per = 4 / es;
    for (int i = 0; i < per; ++i) {
      const int row = 16 * warp + lane / 4 + 8 * (j % 2), k = lane % 4 * per + i + 4 * per * (j / 2);
      a[j] |= static_cast<std::uint32_t>(digest_element(form.a, tile, 0, row, k)) << (8 * es * i);
    }
  }
  for (int value = 0; value < num_values; ++value) {
    const AccumulatorPlace place = accumulator_place(lane, value);
    const auto element = static_cast<std::uint32_t>(digest_element(form.d, tile, 2, 16 * warp + place.row, place.column));
    d[is_half ? value / 2 : value] |= element << (is_half ? 16 * (value % 2) : 0);
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  wgmma_words<kForm>(a_descriptor, b_descriptor, a, d);
  for (int value = 0; value < num_values; ++value) {
    const AccumulatorPlace place = accumulator_place(lane, value);
    const std::uint32_t result = is_half ? d[value / 2] >> (16 * (value % 2)) & 0xffffu : d[value];
    record(form, to, tile, 16 * warp + place.row, place.column, result);
  }
  __syncthreads();  // the next tile overwrites the operands
}
#endif  // KW_HAS_WGMMA

template <int kForm>
__global__ void __launch_bounds__(128) record_form(Recording to) {
  constexpr DigestForm form = kDigestForms[kForm];
  if constexpr (form.is_wgmma) {
#ifdef KW_HAS_WGMMA
    for (std::uint64_t tile = blockIdx.x; tile < to.num_tiles; tile += gridDim.x) wgmma_tile<kForm>(to, to.first_tile + tile);
#endif
  } else {
    const std::uint64_t warp = blockIdx.x * 4 + threadIdx.x / 32, num_warps = gridDim.x * 4;
    for (std::uint64_t tile = warp; tile < to.num_tiles; tile += num_warps) {
      if constexpr (form.a == ElementType::kF64) {
        dmma_tile<kForm>(to, to.first_tile + tile);
      } else {
#if __CUDA_ARCH__ >= 890 || !defined(__CUDA_ARCH__)
        mma_tile<kForm>(to, to.first_tile + tile);
#else
        if constexpr (form.a != ElementType::kE4M3 && form.a != ElementType::kE5M2) mma_tile<kForm>(to, to.first_tile + tile);
#endif
      }
    }
  }
}

/// Whether the device (and this binary's target) has the form's unit.
bool runs_on(const DigestForm& form, int compute_capability) {
  if (form.is_wgmma) return compute_capability == 90;
  if (form.a == ElementType::kE4M3 || form.a == ElementType::kE5M2) return compute_capability >= 89;
  return form.a != ElementType::kF64 || form.k == 4 || compute_capability >= 90;
}

struct Request {
  std::string form;  // empty: all
  std::uint64_t first_tile = 0, num_tiles = static_cast<std::uint64_t>(kDigestBlockTiles) * kDigestBlocks;
  int block_tiles = kDigestBlockTiles;
  bool wants_words = false;
};

template <int kForm>
void run_form(const Request& request, int compute_capability) {
  constexpr DigestForm form = kDigestForms[kForm];
  if (!request.form.empty() && request.form != form.name) return;
  if (!runs_on(form, compute_capability)) return;
  const std::uint64_t num_blocks =
      (request.num_tiles + static_cast<unsigned>(request.block_tiles) - 1) / static_cast<unsigned>(request.block_tiles);
  Recording to{request.first_tile, request.num_tiles, request.block_tiles, nullptr, nullptr};
  check(cudaMalloc(&to.digests, num_blocks * sizeof(std::uint64_t)), "cudaMalloc");
  check(cudaMemset(to.digests, 0, num_blocks * sizeof(std::uint64_t)), "cudaMemset");
  const std::uint64_t num_words = request.num_tiles * form.m * form.n;
  if (request.wants_words) check(cudaMalloc(&to.words, num_words * sizeof(std::uint64_t)), "cudaMalloc");
  record_form<kForm><<<1024, 128>>>(to);
  check(cudaGetLastError(), form.name);
  check(cudaDeviceSynchronize(), form.name);
  std::vector<unsigned long long> digests(num_blocks);
  check(cudaMemcpy(digests.data(), to.digests, num_blocks * sizeof(std::uint64_t), cudaMemcpyDeviceToHost), "cudaMemcpy");
  for (std::uint64_t block = 0; block < num_blocks; ++block) {
    std::printf("%s %llu %016llx\n", form.name,
                static_cast<unsigned long long>(request.first_tile / static_cast<unsigned>(request.block_tiles) + block), digests[block]);
  }
  if (request.wants_words) {
    std::vector<std::uint64_t> words(num_words);
    check(cudaMemcpy(words.data(), to.words, num_words * sizeof(std::uint64_t), cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (std::uint64_t index = 0; index < num_words; ++index) {
      const std::uint64_t in_tile = index % (form.m * form.n);
      std::printf("%llu %llu %llu %llx\n", static_cast<unsigned long long>(request.first_tile + index / (form.m * form.n)),
                  static_cast<unsigned long long>(in_tile / form.n), static_cast<unsigned long long>(in_tile % form.n),
                  static_cast<unsigned long long>(words[index]));
    }
    check(cudaFree(to.words), "cudaFree");
  }
  check(cudaFree(to.digests), "cudaFree");
}

template <int... kForms>
void run_all(const Request& request, int compute_capability, std::integer_sequence<int, kForms...>) {
  (run_form<kForms>(request, compute_capability), ...);
}

}  // namespace

int main(int argc, char** argv) {
  Request request;
  if (argc >= 4) {
    request = {.form = argv[1],
               .first_tile = std::strtoull(argv[2], nullptr, 10),
               .num_tiles = std::strtoull(argv[3], nullptr, 10),
               .block_tiles = 1};
    request.wants_words = argc > 4 && std::strcmp(argv[4], "words") == 0;
  } else if (argc != 1) {
    std::fprintf(stderr, "usage: record_mma_digests [FORM FIRST_TILE COUNT [words]]\n");
    return 2;
  }
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  std::printf("# mma digests: %s, compute capability %d.%d, seed 0x%llx, %d tiles a block\n", properties.name, properties.major,
              properties.minor, static_cast<unsigned long long>(kDigestSeed), request.block_tiles);
  run_all(request, properties.major * 10 + properties.minor, std::make_integer_sequence<int, kNumDigestForms>());
  return 0;
}
