// mma.sync: the table of forms and the product. f64 is a chain of fused multiply-adds in order of k; the rest is dense_mma().
// SPDX-License-Identifier: Apache-2.0
#include "simulator/tensor/mma.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "simulator/tensor/dense_mma.h"
#include "simulator/tensor/fragment.h"
#include "simulator/tensor/fused_sum.h"

namespace kw::simulate {
namespace {

enum class OperandClass { kF16 = 0, kBF16 = 1, kTF32 = 2, kFp8 = 3, kInt8 = 4, kF64 = 5, kNone = 6 };

OperandClass class_of(ElementType type) {
  switch (type) {
    case ElementType::kF16:
      return OperandClass::kF16;
    case ElementType::kBF16:
      return OperandClass::kBF16;
    case ElementType::kTF32:
      return OperandClass::kTF32;
    case ElementType::kE4M3:
    case ElementType::kE5M2:
      return OperandClass::kFp8;
    case ElementType::kS8:
    case ElementType::kU8:
      return OperandClass::kInt8;
    case ElementType::kF64:
      return OperandClass::kF64;
    default:
      return OperandClass::kNone;
  }
}

struct FormRow {
  OperandClass operands;
  ElementType d;
  int m, k;
};

// PTX ISA, "Matrix multiply-accumulate operation using mma instruction": row.col forms with n = 8 that sm_80 to sm_90 execute and that are
// not sparse, not sub-byte. m8n8k4 of f16 (Volta) is left out: its layout is another one.
constexpr FormRow kForms[] = {
    {OperandClass::kF16, ElementType::kF32, 16, 8},   {OperandClass::kF16, ElementType::kF32, 16, 16},
    {OperandClass::kF16, ElementType::kF16, 16, 8},   {OperandClass::kF16, ElementType::kF16, 16, 16},
    {OperandClass::kBF16, ElementType::kF32, 16, 8},  {OperandClass::kBF16, ElementType::kF32, 16, 16},
    {OperandClass::kTF32, ElementType::kF32, 16, 4},  {OperandClass::kTF32, ElementType::kF32, 16, 8},
    {OperandClass::kFp8, ElementType::kF32, 16, 16},  {OperandClass::kFp8, ElementType::kF32, 16, 32},
    {OperandClass::kFp8, ElementType::kF16, 16, 16},  {OperandClass::kFp8, ElementType::kF16, 16, 32},
    {OperandClass::kInt8, ElementType::kS32, 8, 16},  {OperandClass::kInt8, ElementType::kS32, 16, 16},
    {OperandClass::kInt8, ElementType::kS32, 16, 32}, {OperandClass::kF64, ElementType::kF64, 8, 4},
    {OperandClass::kF64, ElementType::kF64, 16, 4},   {OperandClass::kF64, ElementType::kF64, 16, 8},
    {OperandClass::kF64, ElementType::kF64, 16, 16},
};

double f64_at(std::span<const LaneRegister> registers, int element, int lane) {
  const auto low = static_cast<std::size_t>(2 * element);
  const auto index = static_cast<std::size_t>(lane);
  return std::bit_cast<double>(registers[low].lane[index] | static_cast<std::uint64_t>(registers[low + 1].lane[index]) << 32);
}

/// One step of the chain. NaN as an H200 has it: that of b, else of the sum, else of a, made quiet; 0xfff8... for an invalid operation.
double fused_step(double a, double b, double sum) {
  constexpr std::uint64_t kQuietBit = 0x0008000000000000ull;
  for (const double operand : {b, sum, a}) {
    if (std::isnan(operand)) return std::bit_cast<double>(std::bit_cast<std::uint64_t>(operand) | kQuietBit);
  }
  const double result = std::fma(a, b, sum);
  return std::isnan(result) ? std::bit_cast<double>(0xfff8000000000000ull) : result;
}

/// Element i of a lane: A row g + 8*(i % row_blocks), k = q + 4*(i / row_blocks); B k = q + 4i, n = g; D row g + 8*(i/2), col 2q + i%2.
void mma_f64(const MmaForm& form, std::span<const LaneRegister> a, std::span<const LaneRegister> b, std::span<const LaneRegister> c,
             std::span<LaneRegister> d) {
  const int row_blocks = form.m / 8;
  std::array<double, 16 * 8> sums;
  for (int row = 0; row < form.m; ++row) {
    for (int column = 0; column < 8; ++column) {
      const int d_element = 2 * (row / 8) + column % 2, d_lane = 4 * (row % 8) + column / 2;
      double sum = f64_at(c, d_element, d_lane);
      for (int k = 0; k < form.k; ++k) {
        const double a_value = f64_at(a, row / 8 + row_blocks * (k / 4), 4 * (row % 8) + k % 4);
        sum = fused_step(a_value, f64_at(b, k / 4, 4 * column + k % 4), sum);
      }
      sums[static_cast<std::size_t>(row * 8 + column)] = sum;
    }
  }
  for (int row = 0; row < form.m; ++row) {
    for (int column = 0; column < 8; ++column) {
      const auto low = static_cast<std::size_t>(2 * (2 * (row / 8) + column % 2)),
                 lane = static_cast<std::size_t>(4 * (row % 8) + column / 2);
      const auto bits = std::bit_cast<std::uint64_t>(sums[static_cast<std::size_t>(row * 8 + column)]);
      d[low].lane[lane] = static_cast<std::uint32_t>(bits);
      d[low + 1].lane[lane] = static_cast<std::uint32_t>(bits >> 32);
    }
  }
}

}  // namespace

Result<MmaForm> make_mma_form(int m, int n, int k, ElementType a, ElementType b, ElementType d, bool saturates) {
  std::vector<std::string> known;
  for (const FormRow& row : kForms) {
    if (row.operands != class_of(a) || row.operands != class_of(b) || row.d != d) continue;
    if (row.m == m && n == 8 && row.k == k && (!saturates || d == ElementType::kS32)) {
      return MmaForm{.m = m,
                     .n = n,
                     .k = k,
                     .a = a,
                     .b = b,
                     .d = d,
                     .saturates = saturates,
                     .a_registers = m * k * size_bytes(a) / 128,
                     .b_registers = n * k * size_bytes(b) / 128,
                     .d_registers = m * n * size_bytes(d) / 128};
    }
    known.push_back(fmt::format("m{}n8k{}", row.m, row.k));
  }
  return fail(Stage::kVerify, Code::kNotSupported,
              fmt::format("mma.sync m{}n{}k{} {} {} {}{}: the simulator has no such form ({})", m, n, k, to_text(a), to_text(b), to_text(d),
                          saturates ? " satfinite" : "",
                          known.empty() ? std::string("none with these types") : fmt::format("known: {}", fmt::join(known, ", "))));
}

void mma(const MmaForm& form, const TensorMath& math, std::span<const LaneRegister> a, std::span<const LaneRegister> b,
         std::span<const LaneRegister> c, std::span<LaneRegister> d) {
  KW_CHECK(static_cast<int>(a.size()) == form.a_registers && static_cast<int>(b.size()) == form.b_registers &&
               static_cast<int>(c.size()) == form.d_registers && c.size() == d.size(),
           "an mma needs as many registers as its form says");
  if (form.d == ElementType::kF64) return mma_f64(form, a, b, c, d);
  std::array<std::uint32_t, 16 * kMaxTileK> a_bits, b_bits;
  unpack_operand(a, form.m / 8, size_bytes(form.a), form.k, a_bits.data());
  unpack_operand(b, 1, size_bytes(form.b), form.k, b_bits.data());
  dense_mma({.unit = TensorUnit::kMmaSync,
             .rows = form.m,
             .columns = form.n,
             .k = form.k,
             .a = form.a,
             .b = form.b,
             .d = form.d,
             .saturates = form.saturates},
            math, a_bits.data(), b_bits.data(), c, d);
}

}  // namespace kw::simulate
