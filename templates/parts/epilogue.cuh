// The epilogue: what happens to a sum on its way to the outputs. Both hooks are replaced by the generator with the op's own
// expression; as they stand they store the sum itself, so that a template compiles and runs alone.
// Include it after `struct Config`: the type computed in is Config::Accumulator.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "parts/annotations.cuh"
#include "parts/types.cuh"
#include "parts/vector_access.cuh"

using Accumulator = Config::Accumulator;

/// Kernel parameter `epilogue`: pointers and strides (elements) of the tensors the epilogue reads and writes, and its scalars.
HOOK("epilogue_args") struct EpilogueArgs {
  Accumulator* out;
  long long out_stride_b;
  long long out_stride_m;
  long long out_stride_n;
};

/// Outputs of the elements (b, m, n + i), i < count <= kVec, whose sums are acc[i]. All of them lie inside the problem.
HOOK("epilogue_store")
template <int kVec>
__device__ __forceinline__ void epilogue_store(const EpilogueArgs& args, long long b, long long m, long long n,
                                               const Accumulator (&acc)[kVec], int count) {
  Accumulator* out = args.out + b * args.out_stride_b + m * args.out_stride_m + n * args.out_stride_n;
  store_vector<kVec>(out, args.out_stride_n, count, acc);
}
