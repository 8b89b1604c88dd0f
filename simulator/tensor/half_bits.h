// Between f16 bits and f32 values, exactly; no rounding here. Internal to simulator/tensor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace kw::simulate {

/// f16 bits (low 16 of `half`) to f32 bits: the magnitude is placed as an f32 and scaled by 2^112, which is exact for subnormals as well.
inline std::uint32_t f16_to_f32_bits(std::uint32_t half) {
  const std::uint32_t magnitude = (half & 0x7fffu) << 13;
  const std::uint32_t scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const std::uint32_t special = magnitude | 0x7f800000u;
  return ((half & 0x7c00u) == 0x7c00u ? special : scaled) | (half & 0x8000u) << 16;
}

inline float f16_value(std::uint32_t half) { return std::bit_cast<float>(f16_to_f32_bits(half)); }

/// Bits of a value that f16 holds exactly; NaN gives the canonical 0x7fff.
inline std::uint32_t f16_bits_of_exact(float value) {
  if (value != value) return 0x7fffu;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) return sign | 0x7c00u;
  if (magnitude >= 0x38800000u) return sign | ((magnitude >> 13) - (112u << 10));  // 2^-14 and above
  return sign | static_cast<std::uint32_t>(std::fabs(value) * 0x1p24f);
}

}  // namespace kw::simulate
