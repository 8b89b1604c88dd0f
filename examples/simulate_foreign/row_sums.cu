// out[row] = sum of x[row, 0 .. columns): a CTA of four warps for each row. One barrier is missing, on purpose:
//   kernelwright simulate --launch examples/simulate_foreign/row_sums.launch.toml
// names the two accesses that race, and what would order them (docs/simulator.md walks through it).
// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void row_sums(const float* x, float* out, int columns) {
  __shared__ float partials[4];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float sum = 0;
  for (int column = threadIdx.x; column < columns; column += blockDim.x) sum += x[blockIdx.x * columns + column];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (lane == 0) partials[warp] = sum;
  if (threadIdx.x == 0) out[blockIdx.x] = partials[0] + partials[1] + partials[2] + partials[3];
}
