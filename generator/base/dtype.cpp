// Element types: one table, and exact conversion of each format from and to double.
// SPDX-License-Identifier: Apache-2.0
#include "generator/base/dtype.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "generator/base/error.h"

namespace kw {
namespace {

/// A binary floating format of at most 16 bits: IEEE layout unless `has_infinity` is false (e4m3: S.1111.111 is NaN, no infinities).
struct SmallFloat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  bool has_infinity;
};
constexpr SmallFloat kF16Format = {5, 10, 15, true};
constexpr SmallFloat kBF16Format = {8, 7, 127, true};
constexpr SmallFloat kE4M3Format = {4, 3, 7, false};
constexpr SmallFloat kE5M2Format = {5, 2, 15, true};

double decode(const SmallFloat& format, unsigned bits) {
  const unsigned mantissa = bits & ((1u << format.mantissa_bits) - 1);
  const unsigned exponent = (bits >> format.mantissa_bits) & ((1u << format.exponent_bits) - 1);
  const unsigned max_exponent = (1u << format.exponent_bits) - 1;
  const double sign = ((bits >> (format.mantissa_bits + format.exponent_bits)) & 1u) != 0 ? -1.0 : 1.0;
  if (exponent == max_exponent) {
    if (format.has_infinity)
      return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    if (mantissa == (1u << format.mantissa_bits) - 1) return std::numeric_limits<double>::quiet_NaN();
  }
  const double fraction = std::ldexp(static_cast<double>(mantissa), -format.mantissa_bits);
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - format.bias);
  return sign * std::ldexp(1.0 + fraction, static_cast<int>(exponent) - format.bias);
}

/// Round to nearest, ties to even; overflow gives infinity, or NaN where the format has none (as cvt.rn does without satfinite).
unsigned encode(const SmallFloat& format, double value) {
  const unsigned max_exponent = (1u << format.exponent_bits) - 1;
  const unsigned sign = std::signbit(value) ? 1u << (format.exponent_bits + format.mantissa_bits) : 0u;
  const unsigned nan_bits = format.has_infinity ? (max_exponent << format.mantissa_bits) | (1u << (format.mantissa_bits - 1))
                                                : (max_exponent << format.mantissa_bits) | ((1u << format.mantissa_bits) - 1);
  const unsigned overflow_bits = format.has_infinity ? max_exponent << format.mantissa_bits : nan_bits;
  if (std::isnan(value)) return nan_bits;
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return sign | overflow_bits;
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = f * 2^exponent, f in [0.5, 1)
  exponent = magnitude == 0 ? 1 - format.bias : std::max(exponent - 1, 1 - format.bias);
  const double scaled = std::ldexp(magnitude, format.mantissa_bits - exponent);  // integer part has mantissa_bits + 1 bits when normal
  const double rounded = std::nearbyint(scaled);                                 // the default rounding mode: to nearest even
  unsigned bits = static_cast<unsigned>(rounded);
  const unsigned implicit_one = 1u << format.mantissa_bits;
  if (bits >= implicit_one)
    bits += static_cast<unsigned>(exponent + format.bias - 1) << format.mantissa_bits;  // a carry moves the exponent up by itself
  const unsigned largest = format.has_infinity ? overflow_bits - 1 : nan_bits - 1;
  return bits > largest ? sign | overflow_bits : sign | bits;
}

template <typename T>
T load_as(const std::byte* address) {
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}
template <typename T>
void store_as(std::byte* address, T value) {
  std::memcpy(address, &value, sizeof(T));
}

/// Truncates toward zero and saturates; NaN gives 0, as cvt does.
template <typename T>
T to_integer(double value) {
  if (std::isnan(value)) return 0;
  const double truncated = std::trunc(value);
  if (truncated <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (truncated >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(truncated);
}

}  // namespace

std::string_view to_text(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    case DType::kTF32:
      return "tf32";
    case DType::kE4M3:
      return "e4m3";
    case DType::kE5M2:
      return "e5m2";
    case DType::kI8:
      return "i8";
    case DType::kI32:
      return "i32";
    case DType::kI64:
      return "i64";
    case DType::kBool:
      return "bool";
  }
  return "unknown";
}

const std::vector<DType>& all_dtypes() {
  static const std::vector<DType> all = {DType::kF16,  DType::kBF16, DType::kF32, DType::kF64, DType::kTF32, DType::kE4M3,
                                         DType::kE5M2, DType::kI8,   DType::kI32, DType::kI64, DType::kBool};
  return all;
}

std::optional<DType> dtype_from_text(std::string_view text) {
  for (const DType dtype : all_dtypes())
    if (to_text(dtype) == text) return dtype;
  return std::nullopt;
}

int size_bytes(DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kF32:
    case DType::kTF32:
    case DType::kI32:
      return 4;
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kE4M3:
    case DType::kE5M2:
    case DType::kI8:
    case DType::kBool:
      return 1;
  }
  return 0;
}

bool is_integer(DType dtype) { return dtype == DType::kI8 || dtype == DType::kI32 || dtype == DType::kI64 || dtype == DType::kBool; }
bool is_float(DType dtype) { return !is_integer(dtype); }

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kTF32:
      return 0x1p-11;
    case DType::kBF16:
      return 0x1p-8;
    case DType::kF32:
      return 0x1p-24;
    case DType::kF64:
      return 0x1p-53;
    case DType::kE4M3:
      return 0x1p-4;
    case DType::kE5M2:
      return 0x1p-3;
    default:
      return 0;
  }
}

double smallest_subnormal(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 0x1p-24;
    case DType::kBF16:
      return 0x1p-133;
    case DType::kF32:
      return 0x1p-149;
    case DType::kTF32:
      return 0x1p-136;
    case DType::kF64:
      return 0x1p-1074;
    case DType::kE4M3:
      return 0x1p-9;
    case DType::kE5M2:
      return 0x1p-16;
    default:
      return 0;
  }
}

double load_element(DType dtype, const std::byte* address) {
  switch (dtype) {
    case DType::kF16:
      return decode(kF16Format, load_as<std::uint16_t>(address));
    case DType::kBF16:
      return decode(kBF16Format, load_as<std::uint16_t>(address));
    case DType::kE4M3:
      return decode(kE4M3Format, load_as<std::uint8_t>(address));
    case DType::kE5M2:
      return decode(kE5M2Format, load_as<std::uint8_t>(address));
    case DType::kF32:
    case DType::kTF32:
      return static_cast<double>(load_as<float>(address));
    case DType::kF64:
      return load_as<double>(address);
    case DType::kI8:
      return load_as<std::int8_t>(address);
    case DType::kI32:
      return load_as<std::int32_t>(address);
    case DType::kI64:
      return static_cast<double>(load_as<std::int64_t>(address));
    case DType::kBool:
      return load_as<std::uint8_t>(address) != 0 ? 1.0 : 0.0;
  }
  return 0;
}

void store_element(DType dtype, double value, std::byte* address) {
  switch (dtype) {
    case DType::kF16:
      return store_as(address, static_cast<std::uint16_t>(encode(kF16Format, value)));
    case DType::kBF16:
      return store_as(address, static_cast<std::uint16_t>(encode(kBF16Format, value)));
    case DType::kE4M3:
      return store_as(address, static_cast<std::uint8_t>(encode(kE4M3Format, value)));
    case DType::kE5M2:
      return store_as(address, static_cast<std::uint8_t>(encode(kE5M2Format, value)));
    case DType::kF32:
    case DType::kTF32:
      return store_as(address, static_cast<float>(value));
    case DType::kF64:
      return store_as(address, value);
    case DType::kI8:
      return store_as(address, to_integer<std::int8_t>(value));
    case DType::kI32:
      return store_as(address, to_integer<std::int32_t>(value));
    case DType::kI64:
      return store_as(address, to_integer<std::int64_t>(value));
    case DType::kBool:
      return store_as(address, static_cast<std::uint8_t>(value != 0 ? 1 : 0));
  }
}

}  // namespace kw
