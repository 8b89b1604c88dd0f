// Formulas of f32 and f64 arithmetic that several families share: canonical NaN, flushing, minimum and maximum with PTX's rules.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace kw::simulate {

/// f32 arithmetic returns this NaN, whatever NaN went in (PTX ISA, "Floating Point Instructions").
inline const float kCanonicalNan = std::bit_cast<float>(0x7fffffffu);

inline float canonical(float value) { return value == value ? value : kCanonicalNan; }
inline double canonical(double value) { return value == value ? value : std::numeric_limits<double>::quiet_NaN(); }

/// .ftz: a subnormal becomes the zero of its sign.
inline float flushed(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return (bits & 0x7f800000u) == 0 ? std::bit_cast<float>(bits & 0x80000000u) : value;
}

/// .sat: [0, 1], NaN gives +0.
inline float saturated(float value) { return value > 0.0f ? (value < 1.0f ? value : 1.0f) : 0.0f; }

/// -0 is below +0; a NaN loses, unless is_nan_kept.
template <typename T>
T minimum(T a, T b, bool is_nan_kept) {
  if (a != a || b != b) {
    if (is_nan_kept || (a != a && b != b)) return canonical(std::numeric_limits<T>::quiet_NaN());
    return a != a ? b : a;
  }
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <typename T>
T maximum(T a, T b, bool is_nan_kept) {
  if (a != a || b != b) {
    if (is_nan_kept || (a != a && b != b)) return canonical(std::numeric_limits<T>::quiet_NaN());
    return a != a ? b : a;
  }
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

}  // namespace kw::simulate
