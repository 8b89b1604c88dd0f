// Reductions, scans and atomics as many projects write them: sum with shuffles and one atomic a CTA, sum by the last CTA to arrive,
// histogram in shared memory, stream compaction by ballots, maximum of floats by compare-and-swap. Fixture of tests/simulator/kernels;
// compiled to reduction_kernels.ptx by compile_fixtures.sh. SPDX-License-Identifier: Apache-2.0

namespace {

__device__ float block_sum(float value) {
  __shared__ float partials[32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
  if (lane == 0) partials[warp] = value;
  __syncthreads();
  value = threadIdx.x < blockDim.x / 32 ? partials[lane] : 0.0f;
  if (warp == 0) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
  }
  return value;
}

__device__ unsigned int tickets = 0;

template <bool kHasFence>
__device__ void last_cta_sum(const float* in, float* partial, float* out, int count) {
  __shared__ bool is_last;
  float value = 0;
  for (int index = blockIdx.x * blockDim.x + threadIdx.x; index < count; index += gridDim.x * blockDim.x) value += in[index];
  value = block_sum(value);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = value;
    if (kHasFence) __threadfence();
    is_last = atomicAdd(&tickets, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  if (kHasFence) __threadfence();
  value = threadIdx.x < gridDim.x ? partial[threadIdx.x] : 0.0f;
  __syncthreads();
  value = block_sum(value);
  if (threadIdx.x == 0) {
    *out = value;
    tickets = 0;
  }
}

}  // namespace

extern "C" __global__ void sum_with_atomics(const float* in, float* out, int count) {
  float value = 0;
  for (int index = blockIdx.x * blockDim.x + threadIdx.x; index < count; index += gridDim.x * blockDim.x) value += in[index];
  value = block_sum(value);
  if (threadIdx.x == 0) atomicAdd(out, value);
}

extern "C" __global__ void sum_by_last_cta(const float* in, float* partial, float* out, int count) {
  last_cta_sum<true>(in, partial, out, count);
}
extern "C" __global__ void sum_by_last_cta_without_fence(const float* in, float* partial, float* out, int count) {
  last_cta_sum<false>(in, partial, out, count);
}

extern "C" __global__ void histogram(const unsigned char* in, unsigned int* bins, int count) {
  __shared__ unsigned int local_bins[256];
  for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) local_bins[bin] = 0;
  __syncthreads();
  for (int index = blockIdx.x * blockDim.x + threadIdx.x; index < count; index += gridDim.x * blockDim.x)
    atomicAdd(&local_bins[in[index]], 1u);
  __syncthreads();
  for (int bin = threadIdx.x; bin < 256; bin += blockDim.x) {
    if (local_bins[bin] != 0) atomicAdd(&bins[bin], local_bins[bin]);
  }
}

// Keeps the positive elements of one CTA's part, in order; counts[blockIdx.x] says how many.
extern "C" __global__ void compact_positive(const int* in, int* out, int* counts, int part) {
  __shared__ int warp_counts[32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, num_warps = blockDim.x / 32;
  int kept_so_far = 0;
  for (int base = 0; base < part; base += blockDim.x) {
    const int index = base + threadIdx.x;
    const int value = index < part ? in[blockIdx.x * part + index] : 0;
    const unsigned int ballot = __ballot_sync(0xffffffffu, value > 0);
    if (lane == 0) warp_counts[warp] = __popc(ballot);
    __syncthreads();
    int before = 0, total = 0;
    for (int other = 0; other < num_warps; ++other) {
      before += other < warp ? warp_counts[other] : 0;
      total += warp_counts[other];
    }
    if (value > 0) out[blockIdx.x * part + kept_so_far + before + __popc(ballot & ((1u << lane) - 1))] = value;
    kept_so_far += total;
    __syncthreads();
  }
  if (threadIdx.x == 0) counts[blockIdx.x] = kept_so_far;
}

extern "C" __global__ void maximum_by_cas(const float* in, float* out, int count) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= count) return;
  int* word = reinterpret_cast<int*>(out);
  int seen = *reinterpret_cast<volatile int*>(word);
  while (__int_as_float(seen) < in[index]) {
    const int assumed = seen;
    seen = atomicCAS(word, assumed, __float_as_int(in[index]));
    if (seen == assumed) break;
  }
}
