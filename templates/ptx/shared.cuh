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

__device__ __forceinline__ void st_shared_b16(unsigned smem, unsigned short value) {
  asm volatile("st.shared.b16 [%0], %1;" ::"r"(smem), "h"(value) : "memory");
}
