// Matrix kernels as many projects write them: transposition through padded shared memory, tiled f32 product, matrix times vector with
// float4 loads, attention of one query a CTA, a double-buffered copy with cp.async. Fixture of tests/simulator/kernels; compiled to
// matrix_kernels.ptx by compile_fixtures.sh. SPDX-License-Identifier: Apache-2.0
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

namespace {

template <bool kHasSync>
__device__ void transpose_tile(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[32][33];
  const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  for (int step = 0; step < 32; step += 8) {
    if (column < columns && row + step < rows)
      tile[threadIdx.y + step][threadIdx.x] = in[static_cast<size_t>(row + step) * columns + column];
  }
  if (kHasSync) __syncthreads();
  const int out_column = blockIdx.y * 32 + threadIdx.x, out_row = blockIdx.x * 32 + threadIdx.y;
  for (int step = 0; step < 32; step += 8) {
    if (out_column < rows && out_row + step < columns) {
      out[static_cast<size_t>(out_row + step) * rows + out_column] = tile[threadIdx.x][threadIdx.y + step];
    }
  }
}

}  // namespace

extern "C" __global__ void transpose(const float* in, float* out, int rows, int columns) { transpose_tile<true>(in, out, rows, columns); }
extern "C" __global__ void transpose_without_barrier(const float* in, float* out, int rows, int columns) {
  transpose_tile<false>(in, out, rows, columns);
}

extern "C" __global__ void tiled_product(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float a_tile[16][16], b_tile[16][16];
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int base = 0; base < k; base += 16) {
    a_tile[threadIdx.y][threadIdx.x] = row < m && base + threadIdx.x < k ? a[row * k + base + threadIdx.x] : 0.0f;
    b_tile[threadIdx.y][threadIdx.x] = base + threadIdx.y < k && column < n ? b[(base + threadIdx.y) * n + column] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int step = 0; step < 16; ++step) sum += a_tile[threadIdx.y][step] * b_tile[step][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

extern "C" __global__ void matrix_times_vector(const float4* __restrict__ matrix, const float4* __restrict__ vector, float* out, int rows,
                                               int quads) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float sum = 0;
  for (int quad = threadIdx.x; quad < quads; quad += 32) {
    const float4 m = __ldg(&matrix[static_cast<size_t>(row) * quads + quad]), v = __ldg(&vector[quad]);
    sum += m.x * v.x + m.y * v.y + m.z * v.z + m.w * v.w;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  if (threadIdx.x == 0) out[row] = sum;
}

// One CTA of `head` threads a query; scores lie in dynamic shared memory.
extern "C" __global__ void naive_attention(const __half* q, const __half* k, const __half* v, __half* out, int keys, float scale) {
  extern __shared__ float scores[];
  __shared__ float partials[32];
  const int head = blockDim.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32, num_warps = head / 32;
  const float query = __half2float(q[blockIdx.x * head + threadIdx.x]) * scale;
  for (int key = 0; key < keys; ++key) {
    float product = query * __half2float(k[key * head + threadIdx.x]);
    for (int offset = 16; offset > 0; offset /= 2) product += __shfl_xor_sync(0xffffffffu, product, offset);
    if (lane == 0) partials[warp] = product;
    __syncthreads();
    if (threadIdx.x == 0) {
      float sum = 0;
      for (int other = 0; other < num_warps; ++other) sum += partials[other];
      scores[key] = sum;
    }
    __syncthreads();
  }
  float largest = -INFINITY;
  for (int key = 0; key < keys; ++key) largest = fmaxf(largest, scores[key]);
  float sum = 0, value = 0;
  for (int key = 0; key < keys; ++key) {
    const float weight = exp2f((scores[key] - largest) * 1.44269504f);
    sum += weight;
    value = fmaf(weight, __half2float(v[key * head + threadIdx.x]), value);
  }
  out[blockIdx.x * head + threadIdx.x] = __float2half_rn(value / sum);
}

template <bool kWaits>
__device__ void scale_buffered(const float4* in, float4* out, int tiles, float factor) {
  __shared__ float4 stage[2][128];
  const int base = blockIdx.x * tiles * 128 + threadIdx.x;
  __pipeline_memcpy_async(&stage[0][threadIdx.x], &in[base], sizeof(float4));
  __pipeline_commit();
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) __pipeline_memcpy_async(&stage[(tile + 1) % 2][threadIdx.x], &in[base + (tile + 1) * 128], sizeof(float4));
    __pipeline_commit();
    if (kWaits) __pipeline_wait_prior(1);
    __syncthreads();
    const float4 value = stage[tile % 2][127 - threadIdx.x];  // another thread's copy
    out[base + tile * 128] = make_float4(value.x * factor, value.y * factor, value.z * factor, value.w * factor);
    __syncthreads();
  }
}

extern "C" __global__ void scale_reversed(const float4* in, float4* out, int tiles, float factor) {
  scale_buffered<true>(in, out, tiles, factor);
}
extern "C" __global__ void scale_reversed_without_wait(const float4* in, float4* out, int tiles, float factor) {
  scale_buffered<false>(in, out, tiles, factor);
}
