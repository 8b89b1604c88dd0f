// Element types of the op spec: names, sizes, CUDA spellings and exact conversion from and to double.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kw {

enum class DType { kF16 = 0, kBF16 = 1, kF32 = 2, kF64 = 3, kTF32 = 4, kE4M3 = 5, kE5M2 = 6, kI8 = 7, kI32 = 8, kI64 = 9, kBool = 10 };

std::string_view to_text(DType dtype);
std::optional<DType> dtype_from_text(std::string_view text);
const std::vector<DType>& all_dtypes();

/// Bytes of one element in memory; tf32 is stored as f32, bool as one byte.
int size_bytes(DType dtype);
bool is_float(DType dtype);
bool is_integer(DType dtype);

/// Unit roundoff of rounding to this type: 2^-11 f16, 2^-8 bf16, 2^-24 f32, 2^-53 f64, 2^-11 tf32, 2^-4 e4m3, 2^-3 e5m2; 0 for integers.
double unit_roundoff(DType dtype);
/// Smallest positive subnormal (the absolute rounding step near zero); 0 for integers.
double smallest_subnormal(DType dtype);

/// Decodes one element from memory, exactly.
double load_element(DType dtype, const std::byte* address);
/// Rounds to nearest even (integers: truncates toward zero and saturates) and encodes one element.
void store_element(DType dtype, double value, std::byte* address);

}  // namespace kw
