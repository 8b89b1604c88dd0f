// Recording version of templates/ptx/stmatrix.cuh: smem holds nothing. SPDX-License-Identifier: Apache-2.0
#pragma once

inline void stmatrix_x4(unsigned, unsigned, unsigned, unsigned, unsigned) {}
