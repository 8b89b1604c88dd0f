// Host version of templates/ptx/global.cuh: the same names, in C++.
// SPDX-License-Identifier: Apache-2.0
#pragma once

inline void ld_global_cg_v4(const float* gmem, float (&values)[4]) { std::memcpy(values, gmem, 16); }

inline void st_global_cg_v4(float* gmem, float v0, float v1, float v2, float v3) {
  const float values[4] = {v0, v1, v2, v3};
  std::memcpy(gmem, values, 16);
}

inline unsigned atom_inc_acq_rel(unsigned* gmem, unsigned last) {
  const unsigned old = *gmem;
  *gmem = old >= last ? 0 : old + 1;
  return old;
}

inline void ld_global_b32(const void* gmem, unsigned& w0) { std::memcpy(&w0, gmem, 4); }
inline void ld_global_v2_b32(const void* gmem, unsigned& w0, unsigned& w1) {
  ld_global_b32(gmem, w0);
  ld_global_b32(static_cast<const char*>(gmem) + 4, w1);
}
inline void ld_global_v4_b32(const void* gmem, unsigned& w0, unsigned& w1, unsigned& w2, unsigned& w3) {
  ld_global_v2_b32(gmem, w0, w1);
  ld_global_v2_b32(static_cast<const char*>(gmem) + 8, w2, w3);
}
inline void st_global_b32(void* gmem, unsigned w0) { std::memcpy(gmem, &w0, 4); }
inline void st_global_v2_b32(void* gmem, unsigned w0, unsigned w1) {
  st_global_b32(gmem, w0);
  st_global_b32(static_cast<char*>(gmem) + 4, w1);
}
inline void st_global_v4_b32(void* gmem, unsigned w0, unsigned w1, unsigned w2, unsigned w3) {
  st_global_v2_b32(gmem, w0, w1);
  st_global_v2_b32(static_cast<char*>(gmem) + 8, w2, w3);
}

inline void ld_global_movable_b32(const void* gmem, unsigned& w0) { ld_global_b32(gmem, w0); }
inline void ld_global_movable_v2_b32(const void* gmem, unsigned& w0, unsigned& w1) { ld_global_v2_b32(gmem, w0, w1); }
inline void ld_global_movable_v4_b32(const void* gmem, unsigned& w0, unsigned& w1, unsigned& w2, unsigned& w3) {
  ld_global_v4_b32(gmem, w0, w1, w2, w3);
}
