// ldmatrix: a warp loads four 8x8 matrices of 16-bit elements from smem into the register layout of mma.sync.
// Lane 8i+j passes the address of row j (16 bytes, 16-byte aligned) of matrix i. Register i of lane l then holds, of matrix i,
// row l/4, columns 2(l%4) and +1; with trans: rows 2(l%4) and +1 of column l/4. PTX ISA, "ldmatrix". All 32 lanes take part.
// SPDX-License-Identifier: Apache-2.0
#pragma once

__device__ __forceinline__ void ldmatrix_x4(unsigned smem, unsigned& r0, unsigned& r1, unsigned& r2, unsigned& r3) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
               : "r"(smem)
               : "memory");
}

__device__ __forceinline__ void ldmatrix_x4_trans(unsigned smem, unsigned& r0, unsigned& r1, unsigned& r2, unsigned& r3) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
               : "r"(smem)
               : "memory");
}
