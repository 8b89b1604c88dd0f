// Index arithmetic of the fragments (facts verified on an H200 for every width of element).
// SPDX-License-Identifier: Apache-2.0
#include "simulator/tensor/fragment.h"

#include <cstring>

#include "simulator/tensor/half_bits.h"

namespace kw::simulate {
namespace {

constexpr int kRegisterRowBytes = 16;

template <typename Element>
void widen(const std::uint32_t* words, std::uint32_t* bits) {
  Element elements[kRegisterRowBytes / sizeof(Element)];
  std::memcpy(elements, words, kRegisterRowBytes);
  for (std::size_t element = 0; element < kRegisterRowBytes / sizeof(Element); ++element) bits[element] = elements[element];
}

/// First element (lane 0 of the row quartet) of word register i in the tile.
int word_offset(std::size_t register_index, int row_blocks, int columns) {
  const int index = static_cast<int>(register_index);
  return 8 * (index / 2 % row_blocks) * columns + index % 2 + 8 * (index / (2 * row_blocks));
}

}  // namespace

void unpack_operand(std::span<const LaneRegister> registers, int row_blocks, int element_bytes, int k, std::uint32_t* bits) {
  const int chunk_elements = kRegisterRowBytes / element_bytes;
  for (std::size_t index = 0; index < registers.size(); ++index) {
    const int row_block = static_cast<int>(index) % row_blocks, chunk = static_cast<int>(index) / row_blocks;
    for (int row = 0; row < 8; ++row) {
      const std::uint32_t* words = registers[index].lane.data() + 4 * row;
      std::uint32_t* out = bits + (8 * row_block + row) * k + chunk * chunk_elements;
      if (element_bytes == 1) widen<std::uint8_t>(words, out);
      if (element_bytes == 2) widen<std::uint16_t>(words, out);
      if (element_bytes == 4) widen<std::uint32_t>(words, out);
    }
  }
}

void unpack_words(std::span<const LaneRegister> registers, int row_blocks, int columns, std::uint32_t* words) {
  for (std::size_t index = 0; index < registers.size(); ++index) {
    std::uint32_t* out = words + word_offset(index, row_blocks, columns);
    for (int lane = 0; lane < kWarpLanes; ++lane) out[lane / 4 * columns + 2 * (lane % 4)] = registers[index].lane[lane];
  }
}

void pack_words(const std::uint32_t* words, int row_blocks, int columns, std::span<LaneRegister> registers) {
  for (std::size_t index = 0; index < registers.size(); ++index) {
    const std::uint32_t* in = words + word_offset(index, row_blocks, columns);
    for (int lane = 0; lane < kWarpLanes; ++lane) registers[index].lane[lane] = in[lane / 4 * columns + 2 * (lane % 4)];
  }
}

void unpack_halves(std::span<const LaneRegister> registers, int row_blocks, int columns, float* values) {
  for (std::size_t index = 0; index < registers.size(); ++index) {
    float* out = values + word_offset(2 * index, row_blocks, columns);
    for (int lane = 0; lane < kWarpLanes; ++lane) {
      const std::uint32_t pair = registers[index].lane[lane];
      out[lane / 4 * columns + 2 * (lane % 4)] = f16_value(pair & 0xffffu);
      out[lane / 4 * columns + 2 * (lane % 4) + 1] = f16_value(pair >> 16);
    }
  }
}

void pack_halves(const float* values, int row_blocks, int columns, std::span<LaneRegister> registers) {
  for (std::size_t index = 0; index < registers.size(); ++index) {
    const float* in = values + word_offset(2 * index, row_blocks, columns);
    for (int lane = 0; lane < kWarpLanes; ++lane) {
      const float* pair = in + lane / 4 * columns + 2 * (lane % 4);
      registers[index].lane[lane] = f16_bits_of_exact(pair[0]) | f16_bits_of_exact(pair[1]) << 16;
    }
  }
}

}  // namespace kw::simulate
