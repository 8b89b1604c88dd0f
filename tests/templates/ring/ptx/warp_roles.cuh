// Recording version of templates/ptx/warp_roles.cuh: threads run one after another. SPDX-License-Identifier: Apache-2.0
#pragma once

template <int kCount>
void setmaxnreg_dec() {}
template <int kCount>
void setmaxnreg_inc() {}
inline bool elect_one() { return threadIdx.x % 32 == 0; }
inline int read_lane() { return static_cast<int>(threadIdx.x % 32); }
inline void named_barrier_sync(unsigned, unsigned) {}
inline void named_barrier_arrive(unsigned, unsigned) {}
inline bool named_barrier_or(unsigned, unsigned, bool predicate) { return predicate; }
inline void cluster_sync() {}
inline float __shfl_xor_sync(unsigned, float value, int) { return value; }
