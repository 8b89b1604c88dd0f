// The few NVRTC functions that the template tests use, from the library found at run time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace kw::template_tests {

struct NvrtcResult {
  bool is_compiled = false;
  int registers = 0;
  int spill_bytes = 0;  ///< stores and loads
  std::string log;
};

/// Compiles CUDA C++ text, including files of templates/. Throws std::runtime_error when no NVRTC is found:
/// $KERNELWRIGHT_NVRTC, the loader's path, /usr/local/cuda.
NvrtcResult compile(const std::string& source, const std::string& arch);

/// The file of a template.
std::string template_path(const std::string& name);

/// Text of the template's file with members of Config replaced: {"BLOCK_M=64", "ElementA=float"}. Throws when there is no such
/// member.
std::string template_text(const std::string& name, const std::vector<std::string>& settings);

}  // namespace kw::template_tests
