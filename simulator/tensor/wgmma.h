// wgmma.mma_async (sm_90a): forms, the 64-bit shared-memory descriptor, which bytes an operand reads, and the product of a warpgroup.
// The caller does three steps at the moment the adversary chooses: 1. operand_chunks() -> addresses of 16-byte chunks, which it checks
// and reads; 2. operand_from_chunks() or operand_from_registers() -> a dense tile; 3. wgmma() on the accumulators of the four warps.
// The address rules were read back from an H200: L is formed linearly, then bits 4.. are XORed with absolute address bits (128B, 64B, 32B).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "generator/base/error.h"
#include "simulator/tensor/types.h"

namespace kw::simulate {

inline constexpr int kWarpgroupWarps = 4;
inline constexpr int kWgmmaRows = 64;
inline constexpr int kWgmmaKBytes = 32;  // K of every form: 16 of 16 bits, 8 of tf32, 32 of 8 bits

enum class Swizzle { kNone = 0, k128B = 1, k64B = 2, k32B = 3 };  // the numbers of the wgmma descriptor
int span_bytes(Swizzle swizzle);                                  ///< 128, 64, 32; none: 16

/// One wgmma.mma_async.sync.aligned.m64nNkK form with its immediates.
struct WgmmaForm {
  int n = 8, k = 16;
  ElementType a = ElementType::kBF16;
  ElementType b = ElementType::kBF16;
  ElementType d = ElementType::kF32;  ///< kF32, kF16 or kS32
  bool is_a_in_registers = false;
  bool negates_a = false, negates_b = false;              ///< imm-scale -1
  bool is_a_transposed = false, is_b_transposed = false;  ///< MN-major; 16-bit types only
  bool saturates = false;                                 ///< .satfinite of the s32 forms
  int d_registers = 4;                                    ///< n/2 for f32 and s32, n/4 for f16
};

/// Checks type combination, N steps (8..256 by 8; s8/u8: 8, 16, 24, 32, then by 16), transposes; fills d_registers.
Result<WgmmaForm> make_wgmma_form(WgmmaForm wanted);

/// The descriptor's fields in bytes.
struct SmemDescriptor {
  std::uint32_t start_bytes = 0;    ///< 18 bits, multiple of 16
  std::uint32_t leading_bytes = 0;  ///< LBO
  std::uint32_t stride_bytes = 0;   ///< SBO
  int base_offset = 0;
  Swizzle swizzle = Swizzle::kNone;
};
/// Errors: reserved bits that are not zero (14-15, 30-31, 46-48, 52-61), as an address that was not masked leaves them.
Result<SmemDescriptor> decode_smem_descriptor(std::uint64_t bits);
std::string to_text(const SmemDescriptor& descriptor);

enum class WgmmaOperand { kA = 0, kB = 1 };

/// Addresses (shared window of the CTA, 18 bits) of the 16-byte chunks the operand reads, in the order operand_from_chunks() wants them;
/// 2 * rows of them (64 rows for A, n for B). Addresses repeat when strides overlap.
std::vector<std::uint32_t> operand_chunks(const WgmmaForm& form, WgmmaOperand operand, const SmemDescriptor& descriptor);

/// A dense operand: row-major [rows][k] of raw element bits (rows: 64 for A, n for B).
struct WgmmaTile {
  int rows = 0, k = 0;
  std::vector<std::uint32_t> bits;
};
/// bytes: 16 for each chunk of operand_chunks(), in its order.
WgmmaTile operand_from_chunks(const WgmmaForm& form, WgmmaOperand operand, std::span<const std::uint8_t> bytes);
/// A from registers: four registers of each of the four warps, registers[4 * warp + j].
WgmmaTile operand_from_registers(const WgmmaForm& form, std::span<const LaneRegister> registers);

/// accumulators[warp * d_registers + r]: read and written (only written when !accumulates, the "scale-d" predicate).
void wgmma(const WgmmaForm& form, const TensorMath& math, const WgmmaTile& a, const WgmmaTile& b, bool accumulates,
           std::span<LaneRegister> accumulators);

}  // namespace kw::simulate
