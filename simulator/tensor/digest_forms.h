// The matrix instructions whose results are recorded on a GPU as digests and replayed here: one list for bench/record_mma_digests.cu and
// the replaying test. A digest is a sum over a block of tiles of a hash of (tile, row, column, result), so the order of work is free.
// Plain C++ that nvcc compiles for both sides.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "simulator/tensor/tile_generator.h"

namespace kw::simulate {

inline constexpr std::uint64_t kDigestSeed = 0x6b77;
inline constexpr int kDigestBlockTiles = 8192;
inline constexpr int kDigestBlocks = 128;  // 2^20 tiles of each form

struct DigestForm {
  const char* name;
  bool is_wgmma;
  int m, n, k;
  ElementType a, b, d;
  bool is_a_in_registers;  ///< wgmma only
};

// Order is the template argument in the recorder: append only.
inline constexpr DigestForm kDigestForms[] = {
    {"mma.m16n8k16.f32.f16.f16", false, 16, 8, 16, ElementType::kF16, ElementType::kF16, ElementType::kF32, false},
    {"mma.m16n8k8.f32.f16.f16", false, 16, 8, 8, ElementType::kF16, ElementType::kF16, ElementType::kF32, false},
    {"mma.m16n8k16.f16.f16.f16", false, 16, 8, 16, ElementType::kF16, ElementType::kF16, ElementType::kF16, false},
    {"mma.m16n8k8.f16.f16.f16", false, 16, 8, 8, ElementType::kF16, ElementType::kF16, ElementType::kF16, false},
    {"mma.m16n8k16.f32.bf16.bf16", false, 16, 8, 16, ElementType::kBF16, ElementType::kBF16, ElementType::kF32, false},
    {"mma.m16n8k8.f32.bf16.bf16", false, 16, 8, 8, ElementType::kBF16, ElementType::kBF16, ElementType::kF32, false},
    {"mma.m16n8k8.f32.tf32.tf32", false, 16, 8, 8, ElementType::kTF32, ElementType::kTF32, ElementType::kF32, false},
    {"mma.m16n8k4.f32.tf32.tf32", false, 16, 8, 4, ElementType::kTF32, ElementType::kTF32, ElementType::kF32, false},
    {"mma.m16n8k32.f32.e4m3.e4m3", false, 16, 8, 32, ElementType::kE4M3, ElementType::kE4M3, ElementType::kF32, false},
    {"mma.m16n8k32.f32.e5m2.e4m3", false, 16, 8, 32, ElementType::kE5M2, ElementType::kE4M3, ElementType::kF32, false},
    {"mma.m16n8k32.f32.e4m3.e5m2", false, 16, 8, 32, ElementType::kE4M3, ElementType::kE5M2, ElementType::kF32, false},
    {"mma.m16n8k32.f32.e5m2.e5m2", false, 16, 8, 32, ElementType::kE5M2, ElementType::kE5M2, ElementType::kF32, false},
    {"mma.m16n8k16.f32.e4m3.e4m3", false, 16, 8, 16, ElementType::kE4M3, ElementType::kE4M3, ElementType::kF32, false},
    {"mma.m16n8k32.f16.e4m3.e4m3", false, 16, 8, 32, ElementType::kE4M3, ElementType::kE4M3, ElementType::kF16, false},
    {"mma.m16n8k16.f16.e5m2.e4m3", false, 16, 8, 16, ElementType::kE5M2, ElementType::kE4M3, ElementType::kF16, false},
    {"mma.m16n8k32.s32.s8.s8", false, 16, 8, 32, ElementType::kS8, ElementType::kS8, ElementType::kS32, false},
    {"mma.m16n8k32.s32.u8.s8", false, 16, 8, 32, ElementType::kU8, ElementType::kS8, ElementType::kS32, false},
    {"mma.m16n8k16.s32.s8.u8", false, 16, 8, 16, ElementType::kS8, ElementType::kU8, ElementType::kS32, false},
    {"mma.m8n8k16.s32.s8.s8", false, 8, 8, 16, ElementType::kS8, ElementType::kS8, ElementType::kS32, false},
    {"mma.m8n8k4.f64.f64.f64", false, 8, 8, 4, ElementType::kF64, ElementType::kF64, ElementType::kF64, false},
    {"mma.m16n8k16.f64.f64.f64", false, 16, 8, 16, ElementType::kF64, ElementType::kF64, ElementType::kF64, false},
    {"wgmma.m64n8k16.f32.f16.f16", true, 64, 8, 16, ElementType::kF16, ElementType::kF16, ElementType::kF32, false},
    {"wgmma.m64n8k16.f16.f16.f16", true, 64, 8, 16, ElementType::kF16, ElementType::kF16, ElementType::kF16, false},
    {"wgmma.m64n8k16.f32.bf16.bf16", true, 64, 8, 16, ElementType::kBF16, ElementType::kBF16, ElementType::kF32, false},
    {"wgmma.m64n8k16.f32.bf16.bf16.rs", true, 64, 8, 16, ElementType::kBF16, ElementType::kBF16, ElementType::kF32, true},
    {"wgmma.m64n64k16.f32.bf16.bf16", true, 64, 64, 16, ElementType::kBF16, ElementType::kBF16, ElementType::kF32, false},
    {"wgmma.m64n8k8.f32.tf32.tf32", true, 64, 8, 8, ElementType::kTF32, ElementType::kTF32, ElementType::kF32, false},
    {"wgmma.m64n8k32.f32.e4m3.e4m3", true, 64, 8, 32, ElementType::kE4M3, ElementType::kE4M3, ElementType::kF32, false},
    {"wgmma.m64n8k32.f32.e5m2.e4m3", true, 64, 8, 32, ElementType::kE5M2, ElementType::kE4M3, ElementType::kF32, false},
    {"wgmma.m64n8k32.f32.e5m2.e5m2", true, 64, 8, 32, ElementType::kE5M2, ElementType::kE5M2, ElementType::kF32, false},
    {"wgmma.m64n8k32.f16.e4m3.e4m3", true, 64, 8, 32, ElementType::kE4M3, ElementType::kE4M3, ElementType::kF16, false},
    {"wgmma.m64n8k32.s32.s8.s8", true, 64, 8, 32, ElementType::kS8, ElementType::kS8, ElementType::kS32, false},
    {"wgmma.m64n8k32.s32.u8.s8", true, 64, 8, 32, ElementType::kU8, ElementType::kS8, ElementType::kS32, false},
};
inline constexpr int kNumDigestForms = static_cast<int>(sizeof(kDigestForms) / sizeof(kDigestForms[0]));

/// One element of a tile's operands; operand: 0 A, 1 B, 2 C.
KW_HOST_DEVICE inline std::uint64_t digest_element(ElementType type, std::uint64_t tile, int operand, int line, int k) {
  return tile_element(type, static_cast<TileStyle>(tile % kNumTileStyles), tile_key(kDigestSeed, tile, operand), operand, line, k);
}

/// What one result adds to its block's digest.
KW_HOST_DEVICE inline std::uint64_t digest_term(std::uint64_t tile, int row, int column, std::uint64_t result) {
  const std::uint64_t place = tile << 16 | static_cast<std::uint64_t>(row) << 8 | static_cast<std::uint64_t>(column);
  return mix_bits(mix_bits(place) ^ result);
}

}  // namespace kw::simulate
