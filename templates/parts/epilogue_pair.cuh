// The epilogue of two products with one left operand: what happens to their sums on the way to the outputs, directly or in the steps of
// parts/epilogue_values.cuh. All hooks are replaced by the generator; as they stand they store the product of the two sums.
// Include it after `struct Config`. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "parts/annotations.cuh"
#include "parts/types.cuh"
#include "parts/vector_access.cuh"
#include "parts/whole_vector.cuh"

using Accumulator = Config::Accumulator;

/// Kernel parameter `epilogue`: pointers and strides (elements) of the tensors the epilogue reads and writes, and its scalars.
HOOK("epilogue_args") struct EpilogueArgs {
  Accumulator* out;
  long long out_stride_b;
  long long out_stride_m;
  long long out_stride_n;
};

/// Outputs of the elements (b, m, n + i), i < count <= kVec, whose sums are acc[i] and acc2[i]. All of them lie inside the problem.
HOOK("epilogue_store")
template <int kVec>
__device__ __forceinline__ void epilogue_store(const EpilogueArgs& args, long long b, long long m, long long n,
                                               const Accumulator (&acc)[kVec], const Accumulator (&acc2)[kVec], int count) {
  Accumulator* out = args.out + b * args.out_stride_b + m * args.out_stride_m + n * args.out_stride_n;
#pragma unroll
  for (int i = 0; i < kVec; ++i) {
    if (i < count) {
      out[i * args.out_stride_n] = acc[i] * acc2[i];
    }
  }
}

/// Whether kVec elements of every contiguous tensor of the epilogue are aligned to their whole, wherever a row's n is a multiple of kVec.
HOOK("epilogue_is_aligned")
template <int kVec>
__device__ __forceinline__ bool epilogue_is_aligned(const EpilogueArgs& args) {
  return is_aligned_for<kVec>(args.out, args.out_stride_b | args.out_stride_m);
}

/// What the outputs (b, m, n) and (b, m, n + 1) need besides their sums, as it lies in gmem: to be loaded early.
HOOK("epilogue_reads") struct EpilogueReads {};

/// Loads it for count = 1 or 2 outputs. kIsWhole: count is 2 and epilogue_is_aligned<2>().
HOOK("epilogue_read")
template <bool kIsWhole>
__device__ __forceinline__ void epilogue_read(const EpilogueArgs& args, long long b, long long m, long long n, int count,
                                              EpilogueReads& reads) {}

/// values[i] = the output's element (b, m, n + i), i < count, for the sums acc[i] and acc2[i].
HOOK("epilogue_values")
template <bool kIsWhole, typename Element>
__device__ __forceinline__ void epilogue_values(const EpilogueArgs& args, long long b, long long m, long long n,
                                                const Accumulator (&acc)[2], const Accumulator (&acc2)[2], const EpilogueReads& reads,
                                                int count, Element (&values)[2]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    values[i] = from_accumulator<Element>(acc[i] * acc2[i]);
  }
}

/// Stores the elements (b, m, n + i), i < count. kIsWhole: count is kVec and epilogue_is_aligned<kVec>().
HOOK("epilogue_store_values")
template <int kVec, bool kIsWhole, typename Element>
__device__ __forceinline__ void epilogue_store_values(const EpilogueArgs& args, long long b, long long m, long long n,
                                                      const ElementWords<Element, kVec>& values, int count) {
  Accumulator* out = args.out + b * args.out_stride_b + m * args.out_stride_m + n * args.out_stride_n;
#pragma unroll
  for (int i = 0; i < kVec; ++i) {
    if (i < count) {
      out[i * args.out_stride_n] = to_accumulator<Accumulator>(values.elements[i]);
    }
  }
}
