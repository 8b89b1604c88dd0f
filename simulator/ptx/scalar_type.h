// The scalar types of PTX, with their widths and names; first stage of simulator/ptx, used by the parser and by the decoder.
// Sub-byte and packed names that only appear as modifiers of one instruction (e4m3x2, b4x16, ...) are listed too: the opcode table
// reads them from here. Says nothing of what an instruction does with a type.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kw::simulate {

enum class ScalarType : std::uint8_t {
  kNone = 0,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kTf32,
  kF32,
  kF32x2,
  kF64,
  kE4m3,
  kE5m2,
  kE4m3x2,
  kE5m2x2,
};

/// Bits of a value of this type; 1 for predicates, 0 for kNone.
int bits_of(ScalarType type);
/// True for u8..u64 and s8..s64.
bool is_integer(ScalarType type);
bool is_signed(ScalarType type);
/// True for f16, bf16, tf32, f32, f64 and their pairs.
bool is_float(ScalarType type);
std::string_view to_text(ScalarType type);
/// "u32" -> kU32; nullopt for any other word.
std::optional<ScalarType> scalar_type_from_text(std::string_view text);

}  // namespace kw::simulate
