// Helpers of the PTX tests: the texts that the compiler made of our templates, and short texts with a body under test.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace kw::simulate {

inline std::string read_ptx(std::string_view name) {
  std::ifstream file(std::string(KW_SOURCE_DIR) + "/tests/simulator/ptx/texts/" + std::string(name));
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// A module with one kernel `k(.param .u64 p)`; `body` starts on line 6.
inline std::string kernel_text(std::string_view body, std::string_view target = "sm_80") {
  return ".version 8.0\n.target " + std::string(target) +
         "\n.address_size 64\n.visible .entry k(.param .u64 p)\n{ .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<32>; .reg .f32 %f<32>; "
         ".reg .b64 %d<16>; .reg .f64 %g<8>;\n" +
         std::string(body) + "\n}\n";
}

}  // namespace kw::simulate
