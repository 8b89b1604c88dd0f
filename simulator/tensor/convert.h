// Conversions between number formats as the cvt instruction does them, and 16-bit fused multiply-add: all on raw bits.
// Every format fits a double exactly, so decode() is exact and encode() rounds once, in the mode asked for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "simulator/tensor/types.h"

namespace kw::simulate {

/// PTX .rn .rz .rm .rp .rna (nearest, ties away from zero).
enum class Rounding { kNearestEven = 0, kTowardZero = 1, kDown = 2, kUp = 3, kNearestAway = 4 };

/// Format of a floating number; tf32 lies in the upper 19 bits of an f32 word.
enum class FloatFormat { kF16 = 0, kBF16 = 1, kTF32 = 2, kE4M3 = 3, kE5M2 = 4, kF32 = 5, kF64 = 6 };
int size_bits(FloatFormat format);  ///< 16, 16, 32, 8, 8, 32, 64

/// Exact value; NaN gives a quiet double NaN.
double decode(FloatFormat format, std::uint64_t bits);

struct EncodeOptions {
  Rounding rounding = Rounding::kNearestEven;
  bool saturates_to_finite = false;  ///< .satfinite: overflow and infinity give the largest finite value
  bool has_relu = false;             ///< .relu: negative values give +0, NaN stays the canonical NaN
  bool has_sat = false;              ///< .sat: clamps to [0, 1], NaN gives +0
  bool flushes_subnormals = false;   ///< .ftz: subnormal results give a zero of their sign
};
/// Rounds `value` once. NaN gives the canonical NaN of cvt: f16 0x7fff, bf16 0x7fff, tf32 and f32 0x7fffffff, e4m3 and e5m2 0x7f, f64
/// 0x7ff8... e4m3 has no infinity: overflow without saturates_to_finite gives NaN.
std::uint64_t encode(FloatFormat format, double value, const EncodeOptions& options = {});
/// Rounds an integer's value (sign and magnitude) once, exactly also beyond 2^53.
std::uint64_t encode_integer(FloatFormat format, bool is_negative, std::uint64_t magnitude, Rounding rounding);

/// Target of a float to integer conversion.
struct IntegerFormat {
  int bits = 32;  ///< 8, 16, 32, 64
  bool is_signed = true;
};
/// cvt.rni/.rzi/.rmi/.rpi: rounds to integer, clamps to the target's range. NaN: 0, or 1 << (bits - 1) if the source is f64 or the target
/// 64-bit (PTX ISA, cvt). The result is sign-extended or zero-extended to 64 bits.
std::uint64_t to_integer(IntegerFormat target, double value, Rounding rounding, bool is_source_f64 = false);
/// cvt.rni.f32.f32 and friends: an integral value of the same format.
double round_to_integral(double value, Rounding rounding);

/// a * b + c rounded once to f16 or bf16 (never twice, as going through f32 would). With flushes_subnormals the inputs are flushed too.
std::uint16_t fma_16bit(FloatFormat format, std::uint16_t a, std::uint16_t b, std::uint16_t c, const EncodeOptions& options = {});
/// f32 fma, add and mul with directed rounding (the host's default mode serves .rn).
float fma_f32(float a, float b, float c, Rounding rounding);
float add_f32(float a, float b, Rounding rounding);
float mul_f32(float a, float b, Rounding rounding);

}  // namespace kw::simulate
