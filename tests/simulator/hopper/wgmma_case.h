// Texts of wgmma kernels and the maps of their fragments, as read back from an H200.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/simulator/hopper/hopper_run.h"
#include "tests/simulator/tensor/smem_layout.h"

namespace kw::simulate {

/// "{%f0,%f1,...}"
inline std::string registers(const std::string& prefix, int count, int first = 0) {
  std::string text = "{";
  for (int i = first; i < first + count; ++i) text += (i > first ? "," : "") + prefix + std::to_string(i);
  return text + "}";
}

/// The 64 bits; `start_bytes` counts from %smem and is added to its address by load_descriptor().
inline std::uint64_t descriptor_bits(const SmemDescriptor& d) {
  return std::uint64_t{d.start_bytes >> 4} | std::uint64_t{d.leading_bytes >> 4} << 16 | std::uint64_t{d.stride_bytes >> 4} << 32 |
         static_cast<std::uint64_t>(d.base_offset) << 49 | static_cast<std::uint64_t>(d.swizzle) << 62;
}

/// %d0 = the masked address of %smem in a descriptor's units; before the first load_descriptor().
inline std::string address_field() { return "cvt.u64.u32 %d0, %smem; and.b64 %d0, %d0, 0x3ffff; shr.u64 %d0, %d0, 4;\n"; }
inline std::string load_descriptor(const std::string& reg, const SmemDescriptor& d) {
  return "mov.u64 " + reg + ", " + std::to_string(descriptor_bits(d)) + "; add.s64 " + reg + ", " + reg + ", %d0;\n";
}

/// wgmma.mma_async.sync.aligned.<form> with its operands after the form; fenced, committed and waited for.
inline std::string wgmma_alone(const std::string& form, const std::string& operands) {
  return "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned." + form + " " + operands +
         ";\nwgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n";
}

/// Register r of thread t goes to word t * count + r of `out`.
inline std::string store_registers(const std::string& prefix, int count) {
  std::string text = "{ .reg .b64 %g; mul.wide.u32 %g, %thread, " + std::to_string(4 * count) + "; add.s64 %g, %g, %out;\n";
  for (int i = 0; i < count; ++i) text += "st.global.b32 [%g+" + std::to_string(4 * i) + "], " + prefix + std::to_string(i) + "; ";
  return text + "}\n";
}

/// Four words of this thread, from word `first` of `in`, into %v0..%v3.
inline std::string load_a_registers(std::size_t first) {
  return "{ .reg .b64 %g; mul.wide.u32 %g, %thread, 16; add.s64 %g, %g, %in; ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%g+" +
         std::to_string(4 * first) + "]; }\n";
}

/// accumulator map: row = 16w + g + 8*((r/2)%2), col = 8*(r/4) + 2q + r%2; the word of `out` for count = n/2 registers.
inline std::size_t accumulator_word(int n, int row, int column) {
  const int thread = 32 * (row / 16) + 4 * (row % 8) + column % 8 / 2;
  return static_cast<std::size_t>(thread * (n / 2) + 4 * (column / 8) + 2 * (row % 16 / 8) + column % 2);
}

/// A from registers: register j, element i: row = 16w + g + 8*(j%2), k = q*per + i + 4*per*(j/2). Four words a thread.
template <typename Element>
std::vector<std::uint32_t> a_register_words(int es, Element&& element) {
  const int per = 4 / es;
  std::vector<std::uint32_t> words(128 * 4);
  for (int thread = 0; thread < 128; ++thread) {
    for (int j = 0; j < 4; ++j) {
      for (int i = 0; i < per; ++i) {
        const int row = 16 * (thread / 32) + thread % 32 / 4 + 8 * (j % 2), k = thread % 4 * per + i + 4 * per * (j / 2);
        words[static_cast<std::size_t>(4 * thread + j)] |= static_cast<std::uint32_t>(element(row, k)) << 8 * es * i;
      }
    }
  }
  return words;
}

}  // namespace kw::simulate
