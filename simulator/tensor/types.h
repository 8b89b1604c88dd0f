// Words shared by the tensor part of the simulator: element types, the two modes of its sums, one register of a warp.
// Machine types only; nothing of PTX text is known here. The parser's side maps ".bf16" to ElementType::kBF16.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kw::simulate {

inline constexpr int kWarpLanes = 32;

/// One 32-bit register over the lanes of a warp. Packed elements lie with the lower index in the lower bits.
struct alignas(64) LaneRegister {
  std::array<std::uint32_t, kWarpLanes> lane{};
};

enum class ElementType { kF16 = 0, kBF16 = 1, kTF32 = 2, kE4M3 = 3, kE5M2 = 4, kS8 = 5, kU8 = 6, kF32 = 7, kF64 = 8, kS32 = 9 };

/// "bf16", "e4m3", as PTX spells them.
std::string_view to_text(ElementType type);
/// Bytes of one element in shared memory and in a fragment (tf32: 4).
int size_bytes(ElementType type);

/// How sums of products are formed. kExact: as the tensor core, bit for bit (fused_sum.h). kFast: f32 multiply and add in k order.
enum class TensorMode { kExact = 0, kFast = 1 };

/// Whose tensor cores are imitated in kExact mode; decides block lengths and fraction bits (fused_sum.cpp has the table).
enum class TensorArch { kSm80 = 80, kSm89 = 89, kSm90 = 90, kSm100 = 100 };

/// What every matrix instruction needs to know besides its operands.
struct TensorMath {
  TensorMode mode = TensorMode::kExact;
  TensorArch arch = TensorArch::kSm90;
};

/// The architecture's numbers for a compute capability times 10 (80, 86 -> kSm80, 89, 90, 100 and above -> kSm100).
TensorArch tensor_arch_for(int compute_capability);

}  // namespace kw::simulate
