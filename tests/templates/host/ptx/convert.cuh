// Host version of templates/ptx/convert.cuh: the same names, in C++.
// SPDX-License-Identifier: Apache-2.0
#pragma once

inline float cvt_f32_f16(unsigned short bits) {
  _Float16 value;
  std::memcpy(&value, &bits, 2);
  return static_cast<float>(value);
}

inline unsigned short cvt_rn_f16_f32(float value) {
  const _Float16 rounded = static_cast<_Float16>(value);
  unsigned short bits;
  std::memcpy(&bits, &rounded, 2);
  return bits;
}

inline unsigned short cvt_rn_bf16_f32(float value) {
  const unsigned bits = __float_as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<unsigned short>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline unsigned cvt_rna_tf32_f32(unsigned bits) { return (bits + 0x1000u) & ~0x1fffu; }
