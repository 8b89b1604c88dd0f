// One template with one config, compiled for the host: what the tests know of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kw::emulator {

enum class ElementKind { kF16 = 0, kBf16 = 1, kF32 = 2, kF64 = 3, kI8 = 4, kI32 = 5 };

/// A problem with its tensors in memory; strides in elements.
struct HostGemm {
  long long extent_b = 1, extent_m = 1, extent_n = 1, extent_k = 1;
  long long A_stride_b = 0, A_stride_m = 0, A_stride_k = 0;
  long long B_stride_b = 0, B_stride_k = 0, B_stride_n = 0;
  long long A_align = 0, B_align = 0;
  const void* A = nullptr;
  const void* B = nullptr;
  void* out = nullptr;  ///< of the case's accumulator type
  long long out_stride_b = 0, out_stride_m = 0, out_stride_n = 0;
  std::vector<std::pair<const unsigned char*, std::size_t>> readable;
  unsigned seed = 0;
};

struct GemmCase {
  std::string name;
  ElementKind kind_a, kind_b, kind_sum;
  bool a_is_k_contiguous, b_is_k_contiguous;
  int a_vec_bytes, b_vec_bytes;  ///< alignment the case needs
  bool is_legal;                 ///< every rule on the config holds
  bool (*is_legal_problem)(const HostGemm&);
  void (*run)(const HostGemm&);  ///< twice, on one workspace: the counters must be left as they were found
};

/// All cases of tests/templates/CMakeLists.txt.
std::vector<GemmCase> all_gemm_cases();

}  // namespace kw::emulator
