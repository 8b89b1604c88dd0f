// Pointwise functions of one's own, plain CUDA C++: Kernelwright reads them with Clang and fuses them into the epilogue.
// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Negative values pass with a small slope.
__device__ inline float leaky(float x, float slope) { return x > 0.0f ? x : slope * x; }

/// Identity near zero, bends smoothly towards +-limit.
__device__ inline float soft_clip(float x, float limit) {
  const float scaled = x / limit;
  return limit * tanhf(scaled);
}
