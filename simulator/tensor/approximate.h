// Stand-ins for the special-function unit: ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh, div .approx.
// Each is the correctly rounded f32 (or 16-bit) value: inside PTX's documented error bound, but NOT the hardware's bits.
// Special values (zeros, infinities, NaN, subnormals with and without .ftz) follow the tables of PTX ISA, "Floating Point Instructions".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "simulator/tensor/convert.h"

namespace kw::simulate {

/// is_ftz: subnormal inputs count as zeros of their sign and subnormal results become such (.ftz).
float ex2_approx(float x, bool is_ftz);
float lg2_approx(float x, bool is_ftz);
float rcp_approx(float x, bool is_ftz);
float rsqrt_approx(float x, bool is_ftz);
float sqrt_approx(float x, bool is_ftz);
float sin_approx(float x, bool is_ftz);
float cos_approx(float x, bool is_ftz);
float tanh_approx(float x);
/// div.approx.f32: x * rcp(y); 2^126 < |y| < 2^128 gives 0 (NaN for infinite x), as PTX documents.
float div_approx(float x, float y, bool is_ftz);
/// div.full.f32: scaled, so that y of any size is right within 2 ulp.
float div_full(float x, float y, bool is_ftz);
/// ex2.approx.f16 / .ftz.bf16, tanh.approx.f16 / .bf16.
std::uint16_t ex2_approx_16bit(FloatFormat format, std::uint16_t x);
std::uint16_t tanh_approx_16bit(FloatFormat format, std::uint16_t x);

}  // namespace kw::simulate
