// One batched matrix product as the kernel sees it: extents of the pattern's indices and strides in elements.
//   out[b, m, n] = epilogue(sum over k of A[b, m, k] * B[b, k, n])
// An index that a tensor does not have gets stride 0. Launch-time values; a template reads the contiguous axes from its Config.
// SPDX-License-Identifier: Apache-2.0
#pragma once

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
