// Where an element of a wgmma operand lies in shared memory: the formulas read back from an H200, for tests of the implementation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simulator/tensor/wgmma.h"

namespace kw::simulate {

/// L(mn, k) of the descriptor's layout, element by element, XORed.
inline std::uint32_t element_address(const SmemDescriptor& d, bool is_mn_major, int es, int mn, int k) {
  const int span = d.swizzle == Swizzle::kNone ? 16 : span_bytes(d.swizzle), per_chunk = 16 / es;
  const int sbo = static_cast<int>(d.stride_bytes), lbo = static_cast<int>(d.leading_bytes);
  int linear = static_cast<int>(d.start_bytes);
  if (!is_mn_major && d.swizzle != Swizzle::kNone) linear += mn % 8 * span + mn / 8 * sbo + k * es;
  if (!is_mn_major && d.swizzle == Swizzle::kNone) linear += mn % 8 * 16 + mn / 8 * sbo + k / per_chunk * lbo + k % per_chunk * es;
  if (is_mn_major && d.swizzle != Swizzle::kNone) linear += mn * es % span + mn * es / span * lbo + k % 8 * span + k / 8 * sbo;
  if (is_mn_major && d.swizzle == Swizzle::kNone) linear += mn % 8 * 2 + mn / 8 * sbo + k % 8 * 16 + k / 8 * lbo;
  const int mask = span / 16 - 1;
  const int row = (linear >> 7) - d.base_offset;
  return static_cast<std::uint32_t>((linear ^ ((row & mask) << 4)) & 0x3ffff);
}

}  // namespace kw::simulate
