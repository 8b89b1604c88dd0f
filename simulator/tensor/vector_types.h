// The compiler's vector types of eight lanes, and what the hot loops of simulator/tensor need of them. g++ and clang++ lower them to
// whatever the host has. Internal; never part of a call between files. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace kw::simulate {

using Float8 = float __attribute__((vector_size(32)));
using Int8 = std::int32_t __attribute__((vector_size(32)));
using Unsigned8 = std::uint32_t __attribute__((vector_size(32)));
using Long4 = std::int64_t __attribute__((vector_size(32)));
using Float4 = float __attribute__((vector_size(16)));
using Int4 = std::int32_t __attribute__((vector_size(16)));
using Double4 = double __attribute__((vector_size(32)));  // wider than 32 bytes the compilers go lane by lane

// A hot loop is compiled once for the baseline and once for AVX2, from one source: so all it uses must be inlined into it.
#define KW_INLINE [[gnu::always_inline]] inline

template <typename Vector, typename Element>
KW_INLINE Vector load(const Element* from) {
  Vector result;
  __builtin_memcpy(&result, from, sizeof(result));
  return result;
}
template <typename Vector, typename Element>
KW_INLINE void store(Element* to, Vector vector) {
  __builtin_memcpy(to, &vector, sizeof(vector));
}
KW_INLINE Int8 larger(Int8 a, Int8 b) { return a > b ? a : b; }
KW_INLINE Int8 smaller(Int8 a, Int8 b) { return a < b ? a : b; }
KW_INLINE bool is_any(Int8 mask) {
  const Long4 halves = (Long4)mask;
  return (halves[0] | halves[1] | halves[2] | halves[3]) != 0;
}

}  // namespace kw::simulate
