// Host version of templates/ptx/mma.cuh: the same names, on the emulator. The register maps are those of the original's comment.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ptx/convert.cuh"

struct MmaLane {
  float* d;
  const unsigned* a;
  const unsigned* b;
};

enum class MmaType { kF16, kBf16, kTf32 };

template <MmaType kType>
float mma_element(unsigned bits, int i) {
  const auto half = static_cast<unsigned short>(bits >> (16 * i));
  if (kType == MmaType::kF16) return cvt_f32_f16(half);
  if (kType == MmaType::kBf16) return __uint_as_float(static_cast<unsigned>(half) << 16);
  return __uint_as_float(bits & ~0x1fffu);
}

template <MmaType kType>
void execute_mma(void* const* lanes) {
  constexpr int kPer = kType == MmaType::kTf32 ? 1 : 2;
  float a[16][16], b[16][8];
  for (int l = 0; l < 32; ++l) {
    const auto* lane = static_cast<const MmaLane*>(lanes[l]);
    const int g = l / 4, q = l % 4;
    for (int i = 0; i < kPer; ++i) {
      for (int j = 0; j < 4; ++j) a[g + 8 * (j % 2)][q * kPer + i + 4 * kPer * (j / 2)] = mma_element<kType>(lane->a[j], i);
      for (int j = 0; j < 2; ++j) b[q * kPer + i + 4 * kPer * j][g] = mma_element<kType>(lane->b[j], i);
    }
  }
  for (int l = 0; l < 32; ++l) {
    for (int i = 0; i < 4; ++i) {
      float sum = static_cast<MmaLane*>(lanes[l])->d[i];
      for (int k = 0; k < 8 * kPer; ++k) sum += a[l / 4 + 8 * (i / 2)][k] * b[k][2 * (l % 4) + i % 2];
      static_cast<MmaLane*>(lanes[l])->d[i] = sum;
    }
  }
}

inline void mma_m16n8k16_f16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  MmaLane lane = {d, a, b};
  kw::emulator::warp_collective(&lane, execute_mma<MmaType::kF16>);
}
inline void mma_m16n8k16_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  MmaLane lane = {d, a, b};
  kw::emulator::warp_collective(&lane, execute_mma<MmaType::kBf16>);
}
inline void mma_m16n8k8_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  MmaLane lane = {d, a, b};
  kw::emulator::warp_collective(&lane, execute_mma<MmaType::kTf32>);
}
