// What kernels over lists of tensors need besides the hooks of row.cuh: tensor m of a list is a row, whose length may depend on data.
// A list is a table of pointers in gmem: args.x[m] is the first element of its tensor m. As it stands the list is an array of rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "parts/row.cuh"

/// Kernel parameter `problem`.
struct ListProblem {
  long long extent_m;  ///< tensors
  long long extent_n;  ///< elements of the longest one
};

/// Elements of tensor m: 0 to extent_n.
HOOK("list_length")
__device__ __forceinline__ long long list_length(const RowArgs& args, long long m, long long extent_n) { return extent_n; }

/// Whether kVec elements of every contiguous tensor at position m are aligned to their whole, wherever n is a multiple of kVec.
HOOK("list_is_aligned")
template <int kVec>
__device__ __forceinline__ bool list_is_aligned(const RowArgs& args, long long m) {
  return is_aligned_for<kVec>(args.x + m * args.stride_m, 0) & is_aligned_for<kVec>(args.out + m * args.stride_m, 0);
}
