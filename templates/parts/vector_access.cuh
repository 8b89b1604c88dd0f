// Several neighbouring elements of a tensor at once, converted on the way: one wide access when the elements are contiguous,
// all there, and the address is aligned; else one access an element. Used by epilogues.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "parts/types.cuh"

/// kBytes bytes moved by one instruction (two of 16 bytes when kBytes is 32, and so on).
template <typename T, int kVec, int kAlignBytes>
struct alignas(kAlignBytes) ElementVector {
  T elements[kVec];
};

/// The widest access for kVec elements of kElementBytes: at most 16 bytes.
__host__ __device__ constexpr int vector_align_bytes(int vec, int element_bytes) {
  return vec * element_bytes < 16 ? vec * element_bytes : 16;
}

/// values[i] = pointer[i * stride] for i < count, as the type of `values`; values beyond count are left alone.
template <int kVec, typename T, typename V>
__device__ __forceinline__ void load_vector(const T* pointer, long long stride, int count, V (&values)[kVec]) {
  constexpr int kAlignBytes = vector_align_bytes(kVec, static_cast<int>(sizeof(T)));
  if (stride == 1 && count == kVec && reinterpret_cast<unsigned long long>(pointer) % kAlignBytes == 0) {
    const ElementVector<T, kVec, kAlignBytes> vector = *reinterpret_cast<const ElementVector<T, kVec, kAlignBytes>*>(pointer);
#pragma unroll
    for (int i = 0; i < kVec; ++i) {
      values[i] = to_accumulator<V>(vector.elements[i]);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kVec; ++i) {
    if (i < count) {
      values[i] = to_accumulator<V>(pointer[i * stride]);
    }
  }
}

/// pointer[i * stride] = values[i] for i < count, rounded to T.
template <int kVec, typename T, typename V>
__device__ __forceinline__ void store_vector(T* pointer, long long stride, int count, const V (&values)[kVec]) {
  constexpr int kAlignBytes = vector_align_bytes(kVec, static_cast<int>(sizeof(T)));
  if (stride == 1 && count == kVec && reinterpret_cast<unsigned long long>(pointer) % kAlignBytes == 0) {
    ElementVector<T, kVec, kAlignBytes> vector;
#pragma unroll
    for (int i = 0; i < kVec; ++i) {
      vector.elements[i] = from_accumulator<T>(values[i]);
    }
    *reinterpret_cast<ElementVector<T, kVec, kAlignBytes>*>(pointer) = vector;
    return;
  }
#pragma unroll
  for (int i = 0; i < kVec; ++i) {
    if (i < count) {
      pointer[i * stride] = from_accumulator<T>(values[i]);
    }
  }
}
