// Whether the host can run the loops compiled for AVX2. Internal to simulator/tensor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kw::simulate {

#ifdef __x86_64__
#define KW_HAS_AVX2_PATH 1
inline const bool kHasAvx2 = __builtin_cpu_supports("avx2") != 0;
#else
#define KW_HAS_AVX2_PATH 0
#endif

}  // namespace kw::simulate
