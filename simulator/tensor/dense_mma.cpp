// Decodes operands and accumulators, chooses exact, fast or integer sums, and packs the result.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/tensor/dense_mma.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "generator/base/error.h"
#include "simulator/tensor/convert.h"
#include "simulator/tensor/fragment.h"
#include "simulator/tensor/fused_sum.h"
#include "simulator/tensor/half_bits.h"

namespace kw::simulate {
namespace {

constexpr int kMaxAccumulators = 64 * 256;
constexpr std::uint32_t kCanonicalNan = 0x7fffffff;

struct Accumulators {
  alignas(64) float value[kMaxAccumulators];
};

/// The f16 bits of an fp8 element, as F2FP.UNPACK gives them: an e4m3 subnormal becomes a normal number with its own exponent.
std::uint32_t fp8_to_f16(ElementType type, std::uint32_t element) {
  return f16_bits_of_exact(static_cast<float>(decode(type == ElementType::kE4M3 ? FloatFormat::kE4M3 : FloatFormat::kE5M2, element)));
}

/// [rows][k]: fp8 to f16, and elements with k % 4 < 2 first: the order in which ptxas feeds the halves of each register to two f16
/// instructions.
void split_in_halves(ElementType type, std::uint32_t* bits, int rows, int k) {
  std::array<std::uint32_t, kMaxTileK> reordered;
  for (int row = 0; row < rows; ++row) {
    std::uint32_t* row_bits = bits + row * k;
    for (int element = 0; element < k; ++element) {
      const int target = (element % 4 < 2 ? 0 : k / 2) + element / 4 * 2 + element % 2;
      reordered[static_cast<std::size_t>(target)] = fp8_to_f16(type, row_bits[element]);
    }
    std::copy_n(reordered.begin(), k, row_bits);
  }
}

/// The rows and registers of one warp.
struct WarpRows {
  int row_blocks, offset;  ///< offset: first element in the tile
  std::size_t first_register, num_registers;
};
WarpRows warp_rows(const DenseMma& problem, std::size_t num_registers, int warp) {
  const int rows = problem.rows / problem.warps;
  const std::size_t each = num_registers / static_cast<std::size_t>(problem.warps);
  return {rows / 8, warp * rows * problem.columns, static_cast<std::size_t>(warp) * each, each};
}

void load_accumulators(const DenseMma& problem, std::span<const LaneRegister> c, float* values) {
  if (c.empty()) std::fill_n(values, problem.rows * problem.columns, 0.0f);
  for (int warp = 0; warp < problem.warps && !c.empty(); ++warp) {
    const WarpRows rows = warp_rows(problem, c.size(), warp);
    const auto registers = c.subspan(rows.first_register, rows.num_registers);
    if (problem.d == ElementType::kF16) {
      unpack_halves(registers, rows.row_blocks, problem.columns, values + rows.offset);
    } else {
      unpack_words(registers, rows.row_blocks, problem.columns, reinterpret_cast<std::uint32_t*>(values + rows.offset));
    }
  }
}

void store_accumulators(const DenseMma& problem, const float* values, std::span<LaneRegister> d) {
  for (int warp = 0; warp < problem.warps; ++warp) {
    const WarpRows rows = warp_rows(problem, d.size(), warp);
    const auto registers = d.subspan(rows.first_register, rows.num_registers);
    if (problem.d == ElementType::kF16) {
      pack_halves(values + rows.offset, rows.row_blocks, problem.columns, registers);
    } else {
      pack_words(reinterpret_cast<const std::uint32_t*>(values + rows.offset), rows.row_blocks, problem.columns, registers);
    }
  }
}

/// sums: 32-bit integers in the place of floats.
void add_integers(const DenseMma& problem, const float* products, float* sums) {
  for (int index = 0; index < problem.rows * problem.columns; ++index) {
    const std::int64_t sum = std::bit_cast<std::int32_t>(sums[index]) + static_cast<std::int64_t>(products[index]);
    const std::int64_t clamped =
        std::clamp<std::int64_t>(sum, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max());
    sums[index] = std::bit_cast<float>(static_cast<std::uint32_t>(problem.saturates ? clamped : sum));
  }
}

/// The rounded addition that follows the two halves: f32 or f16, canonical NaN.
void add_accumulators(const DenseMma& problem, const float* c, float* sums) {
  for (int index = 0; index < problem.rows * problem.columns; ++index) {
    const float sum = problem.d == ElementType::kF16 ? round_to_f16(static_cast<double>(c[index]) + sums[index]) : c[index] + sums[index];
    sums[index] = sum != sum ? std::bit_cast<float>(kCanonicalNan) : sum;
  }
}

void float_sums(const DenseMma& problem, const TensorMath& math, const DecodedOperand& a, const DecodedOperand& b, float* sums) {
  if (math.mode == TensorMode::kFast) return fast_product(a, b, problem.d == ElementType::kF16, sums, sums);
  SumRule rule = sum_rule(math.arch, problem.unit, problem.a, problem.d);
  if (!rule.is_split_in_halves) return exact_product(rule, a, b, sums, sums);
  Accumulators c;
  const auto count = static_cast<std::size_t>(problem.rows * problem.columns);
  std::memcpy(c.value, sums, count * sizeof(float));
  std::fill_n(sums, count, 0.0f);
  rule.block = problem.k / 2;
  exact_product(rule, a, b, sums, sums);
  add_accumulators(problem, c.value, sums);
}

}  // namespace

void dense_mma(const DenseMma& problem, const TensorMath& math, std::uint32_t* a_bits, std::uint32_t* b_bits,
               std::span<const LaneRegister> c, std::span<LaneRegister> d) {
  KW_CHECK(problem.rows * problem.columns <= kMaxAccumulators, "an accumulator tile larger than the largest instruction's");
  const bool is_integer = problem.d == ElementType::kS32;
  const bool is_split =
      !is_integer && math.mode == TensorMode::kExact && sum_rule(math.arch, problem.unit, problem.a, problem.d).is_split_in_halves;
  if (is_split) {
    split_in_halves(problem.a, a_bits, problem.rows, problem.k);
    split_in_halves(problem.b, b_bits, problem.columns, problem.k);
  }
  DecodedOperand a, b;
  decode_operand(is_split ? ElementType::kF16 : problem.a, a_bits, problem.rows, problem.k, false, a);
  decode_operand(is_split ? ElementType::kF16 : problem.b, b_bits, problem.columns, problem.k, true, b);
  Accumulators sums;
  load_accumulators(problem, c, sums.value);
  if (is_integer) {
    Accumulators products;
    std::fill_n(products.value, problem.rows * problem.columns, 0.0f);
    fast_product(a, b, false, products.value, products.value);  // exact: at most 32 products of 16 bits
    add_integers(problem, products.value, sums.value);
  } else {
    float_sums(problem, math, a, b, sums.value);
  }
  store_accumulators(problem, sums.value, d);
}

}  // namespace kw::simulate
