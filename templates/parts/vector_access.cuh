// Several neighbouring elements of a tensor at once, converted on the way: wide accesses when the elements are contiguous, all
// there, and the address is aligned; else one access an element. Used by epilogues.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "parts/types.cuh"
#include "ptx/global.cuh"

/// kVec elements seen as 32-bit words: the compiler does not join small elements to wide accesses by itself.
template <typename T, int kVec>
union ElementWords {
  T elements[kVec];
  unsigned words[kVec * sizeof(T) < 4 ? 1 : kVec * sizeof(T) / 4];
};

/// Alignment, in bytes, of the accesses to kVec elements of element_bytes: at most 16; 0 when they are no whole words.
__host__ __device__ constexpr int wide_access_bytes(int vec, int element_bytes) {
  return vec * element_bytes % 16 == 0 ? 16 : vec * element_bytes == 8 ? 8 : vec * element_bytes == 4 ? 4 : 0;
}

template <int kAccessBytes, int kWords>
__device__ __forceinline__ void load_words(const void* pointer, unsigned (&words)[kWords]) {
  if constexpr (kAccessBytes == 16) {
#pragma unroll
    for (int i = 0; i < kWords; i += 4) {
      ld_global_v4_b32(static_cast<const unsigned*>(pointer) + i, words[i], words[i + 1], words[i + 2], words[i + 3]);
    }
  } else if constexpr (kAccessBytes == 8) {
    ld_global_v2_b32(pointer, words[0], words[1]);
  } else {
    ld_global_b32(pointer, words[0]);
  }
}

template <int kAccessBytes, int kWords>
__device__ __forceinline__ void store_words(void* pointer, const unsigned (&words)[kWords]) {
  if constexpr (kAccessBytes == 16) {
#pragma unroll
    for (int i = 0; i < kWords; i += 4) {
      st_global_v4_b32(static_cast<unsigned*>(pointer) + i, words[i], words[i + 1], words[i + 2], words[i + 3]);
    }
  } else if constexpr (kAccessBytes == 8) {
    st_global_v2_b32(pointer, words[0], words[1]);
  } else {
    st_global_b32(pointer, words[0]);
  }
}

/// values[i] = pointer[i * stride] for i < count, as the type of `values`; values beyond count are left alone.
template <int kVec, typename T, typename V>
__device__ __forceinline__ void load_vector(const T* pointer, long long stride, int count, V (&values)[kVec]) {
  constexpr int kAccessBytes = wide_access_bytes(kVec, static_cast<int>(sizeof(T)));
  if constexpr (kAccessBytes > 0) {
    if (stride == 1 && count == kVec && reinterpret_cast<unsigned long long>(pointer) % kAccessBytes == 0) {
      ElementWords<T, kVec> vector;
      load_words<kAccessBytes>(pointer, vector.words);
#pragma unroll
      for (int i = 0; i < kVec; ++i) {
        values[i] = to_accumulator<V>(vector.elements[i]);
      }
      return;
    }
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
  constexpr int kAccessBytes = wide_access_bytes(kVec, static_cast<int>(sizeof(T)));
  if constexpr (kAccessBytes > 0) {
    if (stride == 1 && count == kVec && reinterpret_cast<unsigned long long>(pointer) % kAccessBytes == 0) {
      ElementWords<T, kVec> vector;
#pragma unroll
      for (int i = 0; i < kVec; ++i) {
        vector.elements[i] = from_accumulator<T>(values[i]);
      }
      store_words<kAccessBytes>(pointer, vector.words);
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < kVec; ++i) {
    if (i < count) {
      pointer[i * stride] = from_accumulator<T>(values[i]);
    }
  }
}
