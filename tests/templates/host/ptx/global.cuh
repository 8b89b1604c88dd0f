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
