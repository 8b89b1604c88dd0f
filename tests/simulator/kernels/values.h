// Seeded inputs and small helpers for the tests of whole kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/tensor/convert.h"
#include "simulator/tensor/tile_generator.h"

namespace kw::simulate {

inline std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Uniform in [-scale, scale), 20 bits.
inline std::vector<float> random_floats(int count, float scale, std::uint64_t seed) {
  std::vector<float> values(at(count));
  for (std::size_t index = 0; index < values.size(); ++index) {
    values[index] = scale * (static_cast<float>(mix_bits(seed * 1000003 + index) >> 44) * 0x1p-19f - 1.0f);
  }
  return values;
}

/// Whole numbers in [-range, range]: sums of them are exact in f32.
inline std::vector<float> random_whole(int count, int range, std::uint64_t seed) {
  std::vector<float> values(at(count));
  for (std::size_t index = 0; index < values.size(); ++index) {
    values[index] = static_cast<float>(static_cast<int>(mix_bits(seed * 1000003 + index) % static_cast<unsigned>(2 * range + 1)) - range);
  }
  return values;
}

inline std::vector<std::uint16_t> random_16bit(FloatFormat format, int count, std::uint64_t seed) {
  std::vector<std::uint16_t> bits;
  for (const float value : random_floats(count, 1.0f, seed)) bits.push_back(static_cast<std::uint16_t>(encode(format, value)));
  return bits;
}
inline std::vector<std::uint16_t> random_bf16(int count, std::uint64_t seed) { return random_16bit(FloatFormat::kBF16, count, seed); }
inline double bf16_value(std::uint16_t bits) { return decode(FloatFormat::kBF16, bits); }
inline double half_value(std::uint16_t bits) { return decode(FloatFormat::kF16, bits); }

}  // namespace kw::simulate
