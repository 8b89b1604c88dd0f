// Recording version of templates/ptx/wgmma.cuh: operands must lie in the stage whose barrier was waited for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ptx/mbarrier.cuh"

/// Set by the case: whether descriptors of A and B point into the tiles of the stage whose `full` lies at `barrier`.
inline bool (*operands_are_in_stage)(unsigned barrier, unsigned address_a, unsigned address_b) = nullptr;

inline void wgmma_fence() {}
inline void wgmma_commit_group() {}
template <int kPending>
void wgmma_wait_group() {}
template <int kCount>
void pin_registers(float (&)[kCount]) {}

template <int kCount>
void record_wgmma(float (&d)[kCount], unsigned long long a, unsigned long long b) {
  for (float& value : d) value = 0;
  if (!operands_are_in_stage(last_waited, static_cast<unsigned>(a & 0x3fff) << 4, static_cast<unsigned>(b & 0x3fff) << 4)) {
    kw::ring::current().mistakes.push_back("block " + std::to_string(blockIdx.x) + " thread " + std::to_string(threadIdx.x) +
                                           ": an operand is outside the stage");
  }
}

#define KW_RECORDED_WGMMA(name, count)                                           \
  template <int kTransA, int kTransB>                                            \
  void name(float(&d)[count], unsigned long long a, unsigned long long b, int) { \
    record_wgmma(d, a, b);                                                       \
  }
KW_RECORDED_WGMMA(wgmma_m64n64k16_f16, 32)
KW_RECORDED_WGMMA(wgmma_m64n128k16_f16, 64)
KW_RECORDED_WGMMA(wgmma_m64n192k16_f16, 96)
KW_RECORDED_WGMMA(wgmma_m64n256k16_f16, 128)
KW_RECORDED_WGMMA(wgmma_m64n64k16_bf16, 32)
KW_RECORDED_WGMMA(wgmma_m64n128k16_bf16, 64)
KW_RECORDED_WGMMA(wgmma_m64n192k16_bf16, 96)
KW_RECORDED_WGMMA(wgmma_m64n256k16_bf16, 128)
#undef KW_RECORDED_WGMMA
