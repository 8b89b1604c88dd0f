// Row-wise kernels as many projects write them: softmax (one CTA a row, shuffles and shared memory), RMSNorm on bf16 pairs (one warp a
// row). Fixture of tests/simulator/kernels; compiled to row_kernels.ptx by compile_fixtures.sh. SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>

namespace {

__device__ float warp_max(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// `kHasSync` false leaves out the barrier between two uses of the shared words: the planted fault.
template <bool kIsMax, bool kHasSync>
__device__ float block_reduce(float value, float* partials) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, num_warps = blockDim.x / 32;
  value = kIsMax ? warp_max(value) : warp_sum(value);
  if (lane == 0) partials[warp] = value;
  __syncthreads();
  value = lane < num_warps ? partials[lane] : (kIsMax ? -INFINITY : 0.0f);
  value = kIsMax ? warp_max(value) : warp_sum(value);
  if (kHasSync) __syncthreads();
  return value;
}

template <bool kHasSync>
__device__ void softmax_row(const float* in, float* out, int columns) {
  __shared__ float partials[32];
  const float* row = in + static_cast<size_t>(blockIdx.x) * columns;
  float* result = out + static_cast<size_t>(blockIdx.x) * columns;
  float largest = -INFINITY;
  for (int column = threadIdx.x; column < columns; column += blockDim.x) largest = fmaxf(largest, row[column]);
  largest = block_reduce<true, kHasSync>(largest, partials);
  float sum = 0;
  for (int column = threadIdx.x; column < columns; column += blockDim.x) sum += __expf(row[column] - largest);
  sum = block_reduce<false, true>(sum, partials);
  for (int column = threadIdx.x; column < columns; column += blockDim.x) result[column] = __expf(row[column] - largest) / sum;
}

}  // namespace

extern "C" __global__ void softmax_rows(const float* in, float* out, int columns) { softmax_row<true>(in, out, columns); }
extern "C" __global__ void softmax_rows_without_barrier(const float* in, float* out, int columns) { softmax_row<false>(in, out, columns); }

extern "C" __global__ void rms_norm(const __nv_bfloat162* __restrict__ in, const __nv_bfloat162* __restrict__ weight, __nv_bfloat162* out,
                                    int rows, int pairs, float epsilon) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  const __nv_bfloat162* from = in + static_cast<size_t>(row) * pairs;
  float squares = 0;
  for (int pair = lane; pair < pairs; pair += 32) {
    const float2 value = __bfloat1622float2(from[pair]);
    squares = fmaf(value.x, value.x, fmaf(value.y, value.y, squares));
  }
  const float scale = rsqrtf(warp_sum(squares) / (2 * pairs) + epsilon);
  for (int pair = lane; pair < pairs; pair += 32) {
    const float2 value = __bfloat1622float2(from[pair]), gain = __bfloat1622float2(weight[pair]);
    out[static_cast<size_t>(row) * pairs + pair] = __floats2bfloat162_rn(value.x * scale * gain.x, value.y * scale * gain.y);
  }
}
