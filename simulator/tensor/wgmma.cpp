// wgmma: forms and the product of a warpgroup. Warp w holds rows 16w..16w+15, each warp's registers laid out as one 16 x n mma fragment.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/tensor/wgmma.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "simulator/tensor/dense_mma.h"
#include "simulator/tensor/fragment.h"
#include "simulator/tensor/fused_sum.h"

namespace kw::simulate {
namespace {

bool is_fp8(ElementType type) { return type == ElementType::kE4M3 || type == ElementType::kE5M2; }
bool is_int8(ElementType type) { return type == ElementType::kS8 || type == ElementType::kU8; }

/// PTX ISA, wgmma.mma_async: operand and accumulator types that go together.
bool has_types(const WgmmaForm& form) {
  const bool is_wide = form.d == ElementType::kF32, is_half = form.d == ElementType::kF16;
  if (form.a == ElementType::kF16) return form.b == form.a && (is_wide || is_half);
  if (form.a == ElementType::kBF16 || form.a == ElementType::kTF32) return form.b == form.a && is_wide;
  if (is_fp8(form.a)) return is_fp8(form.b) && (is_wide || is_half);
  return is_int8(form.a) && is_int8(form.b) && form.d == ElementType::kS32;
}

std::string name_of(const WgmmaForm& form) {
  return fmt::format("wgmma m64n{}k{} {} {} {}", form.n, form.k, to_text(form.d), to_text(form.a), to_text(form.b));
}

Result<WgmmaForm> refuse(const WgmmaForm& form, std::string_view rule) {
  return fail(Stage::kVerify, Code::kNotSupported, fmt::format("{}: {}", name_of(form), rule));
}

std::uint32_t sign_bit(ElementType type) { return 1u << (8 * size_bytes(type) - 1); }

void negate(WgmmaTile& tile, ElementType type) {
  for (std::uint32_t& element : tile.bits) element ^= sign_bit(type);
}

}  // namespace

int span_bytes(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::kNone:
      return 16;
    case Swizzle::k128B:
      return 128;
    case Swizzle::k64B:
      return 64;
    case Swizzle::k32B:
      return 32;
  }
  KW_CHECK(false, "a swizzle outside the enum");
}

Result<WgmmaForm> make_wgmma_form(WgmmaForm wanted) {
  if (!has_types(wanted)) return refuse(wanted, "no such combination of types");
  if (wanted.k != kWgmmaKBytes / size_bytes(wanted.a)) return refuse(wanted, "K of every form is 32 bytes");
  const bool is_integer = wanted.d == ElementType::kS32;
  const int step = is_integer && wanted.n > 32 ? 16 : 8;
  if (wanted.n < 8 || wanted.n > 256 || wanted.n % step != 0) {
    return refuse(wanted, is_integer ? "N is 8, 16, 24, 32, then steps of 16 to 256" : "N is a multiple of 8 from 8 to 256");
  }
  if (size_bytes(wanted.a) != 2 && (wanted.is_a_transposed || wanted.is_b_transposed)) {
    return refuse(wanted, "only 16-bit types have transposed (MN-major) operands");
  }
  if (wanted.is_a_in_registers && wanted.is_a_transposed) return refuse(wanted, "A from registers is K-major");
  if (is_integer && (wanted.negates_a || wanted.negates_b)) return refuse(wanted, "integer forms take no scale immediates");
  if (!is_integer && wanted.saturates) return refuse(wanted, "only integer forms take satfinite");
  wanted.d_registers = wanted.d == ElementType::kF16 ? wanted.n / 4 : wanted.n / 2;
  return wanted;
}

WgmmaTile operand_from_registers(const WgmmaForm& form, std::span<const LaneRegister> registers) {
  KW_CHECK(registers.size() == 4 * kWarpgroupWarps, "A from registers is four registers of each of four warps");
  WgmmaTile tile{.rows = kWgmmaRows, .k = form.k, .bits = std::vector<std::uint32_t>(static_cast<std::size_t>(kWgmmaRows * form.k))};
  for (int warp = 0; warp < kWarpgroupWarps; ++warp) {
    unpack_operand(registers.subspan(static_cast<std::size_t>(4 * warp), 4), 2, size_bytes(form.a), form.k,
                   tile.bits.data() + 16 * warp * form.k);
  }
  return tile;
}

void wgmma(const WgmmaForm& form, const TensorMath& math, const WgmmaTile& a, const WgmmaTile& b, bool accumulates,
           std::span<LaneRegister> accumulators) {
  KW_CHECK(a.rows == kWgmmaRows && b.rows == form.n && a.k == form.k && b.k == form.k, "wgmma operands have the form's shape");
  KW_CHECK(static_cast<int>(accumulators.size()) == kWarpgroupWarps * form.d_registers, "wgmma accumulates in the registers of four warps");
  WgmmaTile a_tile = a, b_tile = b;  // negation and halving work in place
  if (form.negates_a) negate(a_tile, form.a);
  if (form.negates_b) negate(b_tile, form.b);
  const std::span<const LaneRegister> c = accumulates ? std::span<const LaneRegister>(accumulators) : std::span<const LaneRegister>();
  dense_mma({.unit = TensorUnit::kWgmma,
             .rows = kWgmmaRows,
             .columns = form.n,
             .k = form.k,
             .a = form.a,
             .b = form.b,
             .d = form.d,
             .warps = kWarpgroupWarps,
             .saturates = form.saturates},
            math, a_tile.bits.data(), b_tile.bits.data(), c, accumulators);
}

}  // namespace kw::simulate
