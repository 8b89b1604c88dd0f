// Vectors of elements of which the caller may know that they are whole: all there and aligned. Such accesses are straight-line code that
// the compiler can move and join: a chain of loads then waits once, not in turn. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "parts/vector_access.cuh"

/// Whether every access to kVec elements at `pointer` + whole multiples of the strides that were or-ed together is aligned to its width.
template <int kVec, typename T>
__device__ __forceinline__ bool is_aligned_for(const T* pointer, long long strides) {
  constexpr int kAccessBytes = wide_access_bytes(kVec, static_cast<int>(sizeof(T)));
  if constexpr (kAccessBytes == 0) {
    return true;
  } else {
    const unsigned long long bits = reinterpret_cast<unsigned long long>(pointer) | static_cast<unsigned long long>(strides) * sizeof(T);
    return bits % kAccessBytes == 0;
  }
}

template <int kAccessBytes, int kWords>
__device__ __forceinline__ void load_whole_words(const void* pointer, unsigned (&words)[kWords]) {
  if constexpr (kAccessBytes == 16) {
#pragma unroll
    for (int i = 0; i < kWords; i += 4) {
      ld_global_movable_v4_b32(static_cast<const unsigned*>(pointer) + i, words[i], words[i + 1], words[i + 2], words[i + 3]);
    }
  } else if constexpr (kAccessBytes == 8) {
    ld_global_movable_v2_b32(pointer, words[0], words[1]);
  } else {
    ld_global_movable_b32(pointer, words[0]);
  }
}

/// values[i] = pointer[i * stride] for i < count, as they are; those beyond count are left alone. kIsWhole: count is kVec, aligned if
/// contiguous.
template <int kVec, bool kIsWhole, typename T>
__device__ __forceinline__ void load_elements(const T* pointer, long long stride, int count, ElementWords<T, kVec>& values) {
  constexpr int kAccessBytes = wide_access_bytes(kVec, static_cast<int>(sizeof(T)));
  if constexpr (kIsWhole && kAccessBytes > 0) {
    if (stride == 1) {
      load_whole_words<kAccessBytes>(pointer, values.words);
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < kVec; ++i) {
    if (i < (kIsWhole ? kVec : count)) {
      values.elements[i] = pointer[i * stride];
    }
  }
}

/// pointer[i * stride] = values[i] for i < count. kIsWhole as above.
template <int kVec, bool kIsWhole, typename T>
__device__ __forceinline__ void store_elements(T* pointer, long long stride, int count, const ElementWords<T, kVec>& values) {
  constexpr int kAccessBytes = wide_access_bytes(kVec, static_cast<int>(sizeof(T)));
  if constexpr (kIsWhole && kAccessBytes > 0) {
    if (stride == 1) {
      store_words<kAccessBytes>(pointer, values.words);
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < kVec; ++i) {
    if (i < (kIsWhole ? kVec : count)) {
      pointer[i * stride] = values.elements[i];
    }
  }
}
