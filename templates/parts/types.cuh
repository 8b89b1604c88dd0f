// Element types of tensors and their conversions to and from the type a kernel computes in (float, double, int, long long).
// Plain types are used as they are: float, double, signed char (i8), int (i32), long long (i64), bool.
// The small floating types are bit patterns with a name: no arithmetic, no CUDA header.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ptx/convert.cuh"

/// f16: 1 sign, 5 exponent, 10 fraction bits.
struct Half {
  unsigned short bits;
};
/// bf16: 1 sign, 8 exponent, 7 fraction bits: the upper half of an f32.
struct BFloat16 {
  unsigned short bits;
};
/// e4m3: 1 sign, 4 exponent (bias 7), 3 fraction bits; no infinity, 0x7f and 0xff are NaN, largest 448.
struct E4M3 {
  unsigned char bits;
};
/// e5m2: 1 sign, 5 exponent (bias 15), 2 fraction bits: the upper half of an f16.
struct E5M2 {
  unsigned char bits;
};

/// e4m3 -> f32, exact.
__device__ __forceinline__ float e4m3_to_float(unsigned char bits) {
  const unsigned magnitude = bits & 0x7fu;
  const unsigned sign = (bits & 0x80u) << 24;
  if (magnitude == 0x7fu) {
    return __uint_as_float(sign | 0x7fc00000u);
  }
  // The same bits moved to f32's place have a value too small by 2^(127 - 7); this holds for subnormals as well.
  return __uint_as_float(sign | (magnitude << 20)) * 1.329227995784916e36f;
}

/// f32 -> e4m3, round to nearest even, saturating at +-448 as the hardware's cvt.rn.satfinite does.
__device__ __forceinline__ unsigned char float_to_e4m3(float value) {
  const unsigned bits = __float_as_uint(value);
  const unsigned sign = (bits >> 24) & 0x80u;
  const unsigned magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<unsigned char>(sign | 0x7fu);
  }
  if (magnitude >= 0x43e80000u) {  // 464: half way from 448 to the next step
    return static_cast<unsigned char>(sign | 0x7eu);
  }
  if (magnitude < 0x3c800000u) {  // below 2^-6: subnormal, a multiple of 2^-9; adding 2^14 rounds at that place
    const float rounded = __uint_as_float(magnitude) + 16384.0f;
    return static_cast<unsigned char>(sign | (__float_as_uint(rounded) & 0xfu));
  }
  const unsigned rounded = magnitude + 0x7ffffu + ((magnitude >> 20) & 1u);
  return static_cast<unsigned char>(sign | ((rounded >> 20) - (120u << 3)));
}

/// f32 -> e5m2, round to nearest even; beyond the largest number infinity.
__device__ __forceinline__ unsigned char float_to_e5m2(float value) {
  const unsigned bits = __float_as_uint(value);
  const unsigned sign = (bits >> 24) & 0x80u;
  const unsigned magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<unsigned char>(sign | 0x7fu);
  }
  if (magnitude >= 0x47700000u) {  // 61440: half way from 57344 to the next step
    return static_cast<unsigned char>(sign | 0x7cu);
  }
  if (magnitude < 0x38800000u) {  // below 2^-14: subnormal, a multiple of 2^-16; adding 2^7 rounds at that place
    const float rounded = __uint_as_float(magnitude) + 128.0f;
    return static_cast<unsigned char>(sign | (__float_as_uint(rounded) & 0x7u));
  }
  const unsigned rounded = magnitude + 0xfffffu + ((magnitude >> 21) & 1u);
  return static_cast<unsigned char>(sign | ((rounded >> 21) - (112u << 2)));
}

/// Element -> the type computed in.
template <typename Acc>
__device__ __forceinline__ Acc to_accumulator(Half x) {
  return static_cast<Acc>(cvt_f32_f16(x.bits));
}
template <typename Acc>
__device__ __forceinline__ Acc to_accumulator(BFloat16 x) {
  return static_cast<Acc>(__uint_as_float(static_cast<unsigned>(x.bits) << 16));
}
template <typename Acc>
__device__ __forceinline__ Acc to_accumulator(E4M3 x) {
  return static_cast<Acc>(e4m3_to_float(x.bits));
}
template <typename Acc>
__device__ __forceinline__ Acc to_accumulator(E5M2 x) {
  return static_cast<Acc>(cvt_f32_f16(static_cast<unsigned short>(static_cast<unsigned>(x.bits) << 8)));
}
template <typename Acc, typename Plain>
__device__ __forceinline__ Acc to_accumulator(Plain x) {
  return static_cast<Acc>(x);
}

/// The type computed in -> element. The second argument only names the element type.
template <typename Acc>
__device__ __forceinline__ Half round_to(Acc value, Half) {
  return Half{cvt_rn_f16_f32(static_cast<float>(value))};
}
template <typename Acc>
__device__ __forceinline__ BFloat16 round_to(Acc value, BFloat16) {
  return BFloat16{cvt_rn_bf16_f32(static_cast<float>(value))};
}
template <typename Acc>
__device__ __forceinline__ E4M3 round_to(Acc value, E4M3) {
  return E4M3{float_to_e4m3(static_cast<float>(value))};
}
template <typename Acc>
__device__ __forceinline__ E5M2 round_to(Acc value, E5M2) {
  return E5M2{float_to_e5m2(static_cast<float>(value))};
}
/// f64 -> f32, an inexact result to the neighbour with an odd last bit: rounding it again to a narrower type gives what rounding once does.
__device__ __forceinline__ float to_odd_float(double value) {
  const float nearest = static_cast<float>(value);
  unsigned bits = __float_as_uint(nearest);
  if (static_cast<double>(nearest) != value) {
    const bool is_above = value < 0 ? static_cast<double>(nearest) < value : static_cast<double>(nearest) > value;
    bits = (is_above ? bits - 1u : bits) | 1u;
  }
  return __uint_as_float(bits);
}
__device__ __forceinline__ Half round_to(double value, Half) { return Half{cvt_rn_f16_f32(to_odd_float(value))}; }
__device__ __forceinline__ BFloat16 round_to(double value, BFloat16) { return BFloat16{cvt_rn_bf16_f32(to_odd_float(value))}; }
__device__ __forceinline__ E4M3 round_to(double value, E4M3) { return E4M3{float_to_e4m3(to_odd_float(value))}; }
__device__ __forceinline__ E5M2 round_to(double value, E5M2) { return E5M2{float_to_e5m2(to_odd_float(value))}; }
template <typename Acc, typename Plain>
__device__ __forceinline__ Plain round_to(Acc value, Plain) {
  return static_cast<Plain>(value);
}

/// from_accumulator<T>(value): the element of type T nearest to `value` (even on a tie).
template <typename T, typename Acc>
__device__ __forceinline__ T from_accumulator(Acc value) {
  return round_to(value, T{});
}
