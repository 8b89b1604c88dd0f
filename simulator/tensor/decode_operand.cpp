// Takes raw operand elements apart into exact f32 values and exponents. Eight at a time:
// decoding is a good part of the cost of a small mma.sync.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "generator/base/error.h"
#include "simulator/tensor/fused_sum.h"
#include "simulator/tensor/host_features.h"
#include "simulator/tensor/vector_types.h"

namespace kw::simulate {
namespace {

KW_INLINE Unsigned8 f16_values(Unsigned8 half) {  // half_bits.h, eight at a time
  const Unsigned8 magnitude = (half & 0x7fffu) << 13;
  const Unsigned8 scaled = (Unsigned8)((Float8)magnitude * 0x1p112f);
  return ((half & 0x7c00u) == 0x7c00u ? magnitude | 0x7f800000u : scaled) | (half & 0x8000u) << 16;
}

template <ElementType kType>
KW_INLINE Unsigned8 value_bits(Unsigned8 raw) {
  if constexpr (kType == ElementType::kF16) return f16_values(raw);
  if constexpr (kType == ElementType::kE5M2) return f16_values(raw << 8);  // e5m2 is the upper byte of an f16
  if constexpr (kType == ElementType::kBF16) return raw << 16;
  if constexpr (kType == ElementType::kTF32) return raw & 0xffffe000u;  // the tensor core ignores the lower 13 bits
  if constexpr (kType == ElementType::kE4M3) {
    const Unsigned8 scaled = (Unsigned8)((Float8)((raw & 0x7fu) << 20) * 0x1p120f);
    return ((raw & 0x7fu) == 0x7fu ? Unsigned8{} + 0x7fc00000u : scaled) | (raw & 0x80u) << 24;
  }
  if constexpr (kType == ElementType::kS8) return (Unsigned8) __builtin_convertvector((Int8)(raw << 24) >> 24, Float8);
  if constexpr (kType == ElementType::kU8) return (Unsigned8) __builtin_convertvector((Int8)raw, Float8);
}

template <ElementType kType>
constexpr std::int32_t smallest_normal_exponent() {
  if (kType == ElementType::kF16 || kType == ElementType::kE5M2) return -14;
  return kType == ElementType::kE4M3 ? -6 : -126;
}

struct ExponentRange {
  std::int32_t largest = kZeroExponent;
  std::int32_t smallest = -kZeroExponent;
  bool has_special = false;
};

template <ElementType kType>
KW_INLINE ExponentRange decode_all(const std::uint32_t* bits, int count, float* value, std::int32_t* exponent) {
  const Int8 none = Int8{} + kZeroExponent;
  Int8 largest = none, smallest = -none, special{};
  for (int element = 0; element < count; element += 8) {
    const Unsigned8 number = value_bits<kType>(load<Unsigned8>(bits + element));
    const Int8 field = (Int8)(number >> 23 & 0xffu);
    const Int8 is_zero = (Int8)((number << 1) == 0u), is_special = field == 255;
    const Int8 normal = larger(field - 127, Int8{} + smallest_normal_exponent<kType>());
    store(value + element, number);
    store(exponent + element, is_zero ? none : normal);
    largest = larger(largest, (is_zero | is_special) ? none : normal);
    smallest = smaller(smallest, is_zero ? -none : normal);
    special |= is_special;
  }
  ExponentRange range{.has_special = is_any(special)};
  for (int lane = 0; lane < 8; ++lane) {
    range.largest = std::max(range.largest, largest[lane]);
    range.smallest = std::min(range.smallest, smallest[lane]);
  }
  return range;
}

KW_INLINE ExponentRange decode_by_type_body(ElementType type, const std::uint32_t* bits, int count, float* value, std::int32_t* exponent) {
  switch (type) {
    case ElementType::kF16:
      return decode_all<ElementType::kF16>(bits, count, value, exponent);
    case ElementType::kBF16:
      return decode_all<ElementType::kBF16>(bits, count, value, exponent);
    case ElementType::kTF32:
      return decode_all<ElementType::kTF32>(bits, count, value, exponent);
    case ElementType::kE4M3:
      return decode_all<ElementType::kE4M3>(bits, count, value, exponent);
    case ElementType::kE5M2:
      return decode_all<ElementType::kE5M2>(bits, count, value, exponent);
    case ElementType::kS8:
      return decode_all<ElementType::kS8>(bits, count, value, exponent);
    case ElementType::kU8:
      return decode_all<ElementType::kU8>(bits, count, value, exponent);
    default:
      KW_CHECK(false, "not an operand type of a tensor core sum");
  }
}

ExponentRange decode_baseline(ElementType type, const std::uint32_t* bits, int count, float* value, std::int32_t* exponent) {
  return decode_by_type_body(type, bits, count, value, exponent);
}
#if KW_HAS_AVX2_PATH
[[gnu::target("avx2")]] ExponentRange decode_avx2(ElementType type, const std::uint32_t* bits, int count, float* value,
                                                  std::int32_t* exponent) {
  return decode_by_type_body(type, bits, count, value, exponent);
}
#endif

ExponentRange decode_by_type(ElementType type, const std::uint32_t* bits, int count, float* value, std::int32_t* exponent) {
#if KW_HAS_AVX2_PATH
  if (kHasAvx2) return decode_avx2(type, bits, count, value, exponent);
#endif
  return decode_baseline(type, bits, count, value, exponent);
}

}  // namespace

void decode_operand(ElementType type, const std::uint32_t* bits, int extent, int k, bool is_by_column, DecodedOperand& out) {
  KW_CHECK(extent * k <= kMaxTileElements && k <= kMaxTileK && extent % 8 == 0, "an operand that no instruction has");
  alignas(64) float row_value[kMaxTileElements];
  alignas(64) std::int32_t row_exponent[kMaxTileElements];
  float* value = is_by_column ? row_value : out.value;
  std::int32_t* exponent = is_by_column ? row_exponent : out.exponent;
  const ExponentRange range = decode_by_type(type, bits, extent * k, value, exponent);
  if (is_by_column) {
    for (int k_index = 0; k_index < k; ++k_index) {
      for (int column = 0; column < extent; ++column) {
        out.value[k_index * extent + column] = row_value[column * k + k_index];
        out.exponent[k_index * extent + column] = row_exponent[column * k + k_index];
      }
    }
  }
  out.extent = extent;
  out.k = k;
  out.largest_exponent = range.largest;
  out.smallest_exponent = range.smallest;
  out.has_special = range.has_special;
}

}  // namespace kw::simulate
