// Recording version of templates/ptx/shared.cuh: smem starts at address 0 and holds nothing. SPDX-License-Identifier: Apache-2.0
#pragma once

inline unsigned shared_address(const void*) { return 0; }
inline void ld_shared_v4_b32(unsigned, unsigned& w0, unsigned& w1, unsigned& w2, unsigned& w3) { w0 = w1 = w2 = w3 = 0; }
inline void st_shared_v4_f32(unsigned, float, float, float, float) {}
