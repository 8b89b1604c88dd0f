// Loads, stores and atomics on gmem by which CTAs hand data to each other. PTX ISA, "ld", "st", "atom".
// SPDX-License-Identifier: Apache-2.0
#pragma once

/// 16 bytes from L2, past this SM's L1, which does not see the stores of other SMs.
__device__ __forceinline__ void ld_global_cg_v4(const float* gmem, float (&values)[4]) {
  asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3])
               : "l"(gmem)
               : "memory");
}

/// 16 bytes to L2.
__device__ __forceinline__ void st_global_cg_v4(float* gmem, float v0, float v1, float v2, float v3) {
  asm volatile("st.global.cg.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(gmem), "f"(v0), "f"(v1), "f"(v2), "f"(v3) : "memory");
}

/// Returns the old value; the new one is old + 1, or 0 when old >= last. Releases this thread's earlier writes and those it
/// has observed, acquires those released before.
__device__ __forceinline__ unsigned atom_inc_acq_rel(unsigned* gmem, unsigned last) {
  unsigned old;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(old) : "l"(gmem), "r"(last) : "memory");
  return old;
}

/// 4, 8 and 16 bytes as 32-bit words; the address is aligned to the whole.
__device__ __forceinline__ void ld_global_b32(const void* gmem, unsigned& w0) {
  asm volatile("ld.global.b32 %0, [%1];" : "=r"(w0) : "l"(gmem) : "memory");
}
__device__ __forceinline__ void ld_global_v2_b32(const void* gmem, unsigned& w0, unsigned& w1) {
  asm volatile("ld.global.v2.b32 {%0, %1}, [%2];" : "=r"(w0), "=r"(w1) : "l"(gmem) : "memory");
}
__device__ __forceinline__ void ld_global_v4_b32(const void* gmem, unsigned& w0, unsigned& w1, unsigned& w2, unsigned& w3) {
  asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(w0), "=r"(w1), "=r"(w2), "=r"(w3) : "l"(gmem) : "memory");
}
__device__ __forceinline__ void st_global_b32(void* gmem, unsigned w0) {
  asm volatile("st.global.b32 [%0], %1;" ::"l"(gmem), "r"(w0) : "memory");
}
__device__ __forceinline__ void st_global_v2_b32(void* gmem, unsigned w0, unsigned w1) {
  asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(gmem), "r"(w0), "r"(w1) : "memory");
}
__device__ __forceinline__ void st_global_v4_b32(void* gmem, unsigned w0, unsigned w1, unsigned w2, unsigned w3) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(gmem), "r"(w0), "r"(w1), "r"(w2), "r"(w3) : "memory");
}

/// The same loads, which the compiler may move and join: of memory that only this thread writes, if any, while the kernel runs.
__device__ __forceinline__ void ld_global_movable_b32(const void* gmem, unsigned& w0) {
  asm("ld.global.b32 %0, [%1];" : "=r"(w0) : "l"(gmem));
}
__device__ __forceinline__ void ld_global_movable_v2_b32(const void* gmem, unsigned& w0, unsigned& w1) {
  asm("ld.global.v2.b32 {%0, %1}, [%2];" : "=r"(w0), "=r"(w1) : "l"(gmem));
}
__device__ __forceinline__ void ld_global_movable_v4_b32(const void* gmem, unsigned& w0, unsigned& w1, unsigned& w2, unsigned& w3) {
  asm("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(w0), "=r"(w1), "=r"(w2), "=r"(w3) : "l"(gmem));
}

/// Accesses to what is used once: L2 gives such lines up first.
__device__ __forceinline__ void ld_global_cs_b32(const void* gmem, unsigned& w0) {
  asm volatile("ld.global.cs.b32 %0, [%1];" : "=r"(w0) : "l"(gmem));
}
__device__ __forceinline__ void ld_global_cs_v2_b32(const void* gmem, unsigned& w0, unsigned& w1) {
  asm volatile("ld.global.cs.v2.b32 {%0, %1}, [%2];" : "=r"(w0), "=r"(w1) : "l"(gmem));
}
__device__ __forceinline__ void ld_global_cs_v4_b32(const void* gmem, unsigned& w0, unsigned& w1, unsigned& w2, unsigned& w3) {
  asm volatile("ld.global.cs.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(w0), "=r"(w1), "=r"(w2), "=r"(w3) : "l"(gmem));
}
__device__ __forceinline__ void st_global_cs_b32(void* gmem, unsigned w0) {
  asm volatile("st.global.cs.b32 [%0], %1;" ::"l"(gmem), "r"(w0) : "memory");
}
__device__ __forceinline__ void st_global_cs_v2_b32(void* gmem, unsigned w0, unsigned w1) {
  asm volatile("st.global.cs.v2.b32 [%0], {%1, %2};" ::"l"(gmem), "r"(w0), "r"(w1) : "memory");
}
__device__ __forceinline__ void st_global_cs_v4_b32(void* gmem, unsigned w0, unsigned w1, unsigned w2, unsigned w3) {
  asm volatile("st.global.cs.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(gmem), "r"(w0), "r"(w1), "r"(w2), "r"(w3) : "memory");
}
