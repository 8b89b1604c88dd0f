// Number conversions that are one instruction. Values travel as raw bits; parts/types.cuh gives them types.
// In: bits or float. Out: float or bits. PTX ISA, "cvt".
// SPDX-License-Identifier: Apache-2.0
#pragma once

/// f16 bits -> f32, exact.
__device__ __forceinline__ float cvt_f32_f16(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

/// f32 -> f16 bits, round to nearest even; too large becomes infinity.
__device__ __forceinline__ unsigned short cvt_rn_f16_f32(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

/// f32 -> bf16 bits, round to nearest even. sm_80 and up.
__device__ __forceinline__ unsigned short cvt_rn_bf16_f32(float value) {
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

/// f32 bits -> tf32 bits (10 fraction bits), round to nearest, ties away. sm_80 and up.
/// Without it mma.sync cuts the low 13 bits off, which is biased toward zero.
__device__ __forceinline__ unsigned cvt_rna_tf32_f32(unsigned bits) {
  unsigned rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(__uint_as_float(bits)));
  return rounded;
}
