// stmatrix: a warp stores four 8x8 matrices of 16-bit elements from the register layout of mma.sync and wgmma to smem.
// Lane 8i+j passes the address of row j (16 bytes, 16-byte aligned) of matrix i; register i of lane l holds, of matrix i, row l/4, columns
// 2(l%4) and +1. PTX ISA, "stmatrix". sm_90. All 32 lanes take part. SPDX-License-Identifier: Apache-2.0
#pragma once

__device__ __forceinline__ void stmatrix_x4(unsigned smem, unsigned r0, unsigned r1, unsigned r2, unsigned r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(smem), "r"(r0), "r"(r1), "r"(r2), "r"(r3)
               : "memory");
}
