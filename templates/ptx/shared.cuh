// Shared-space addresses and the plain loads and stores that use them. PTX ISA, "ld", "st".
// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Address in the shared window of a pointer into smem: what cp.async, ldmatrix and the functions below take.
__device__ __forceinline__ unsigned shared_address(const void* pointer) { return static_cast<unsigned>(__cvta_generic_to_shared(pointer)); }

__device__ __forceinline__ unsigned ld_shared_b32(unsigned smem) {
  unsigned value;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(value) : "r"(smem) : "memory");
  return value;
}

/// 16 bytes; the address is 16-byte aligned.
__device__ __forceinline__ void ld_shared_v4_b32(unsigned smem, unsigned& w0, unsigned& w1, unsigned& w2, unsigned& w3) {
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(w0), "=r"(w1), "=r"(w2), "=r"(w3) : "r"(smem) : "memory");
}

/// 16 bytes; the address is 16-byte aligned.
__device__ __forceinline__ void st_shared_v4_f32(unsigned smem, float x, float y, float z, float w) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(smem), "f"(x), "f"(y), "f"(z), "f"(w) : "memory");
}

__device__ __forceinline__ void st_shared_b16(unsigned smem, unsigned short value) {
  asm volatile("st.shared.b16 [%0], %1;" ::"r"(smem), "h"(value) : "memory");
}
