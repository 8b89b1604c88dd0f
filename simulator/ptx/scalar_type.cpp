// Names and widths of the scalar types, one table.
// Place: simulator/ptx/scalar_type.h.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/ptx/scalar_type.h"

#include <array>

namespace kw::simulate {
namespace {

struct Row {
  ScalarType type;
  std::string_view text;
  int bits;
  char kind;  // p predicate, b bits, u unsigned, s signed, f float
};

constexpr std::array kRows = {
    Row{ScalarType::kNone, "", 0, '-'},          Row{ScalarType::kPred, "pred", 1, 'p'},      Row{ScalarType::kB8, "b8", 8, 'b'},
    Row{ScalarType::kB16, "b16", 16, 'b'},       Row{ScalarType::kB32, "b32", 32, 'b'},       Row{ScalarType::kB64, "b64", 64, 'b'},
    Row{ScalarType::kB128, "b128", 128, 'b'},    Row{ScalarType::kU8, "u8", 8, 'u'},          Row{ScalarType::kU16, "u16", 16, 'u'},
    Row{ScalarType::kU32, "u32", 32, 'u'},       Row{ScalarType::kU64, "u64", 64, 'u'},       Row{ScalarType::kS8, "s8", 8, 's'},
    Row{ScalarType::kS16, "s16", 16, 's'},       Row{ScalarType::kS32, "s32", 32, 's'},       Row{ScalarType::kS64, "s64", 64, 's'},
    Row{ScalarType::kF16, "f16", 16, 'f'},       Row{ScalarType::kF16x2, "f16x2", 32, 'f'},   Row{ScalarType::kBf16, "bf16", 16, 'f'},
    Row{ScalarType::kBf16x2, "bf16x2", 32, 'f'}, Row{ScalarType::kTf32, "tf32", 32, 'f'},     Row{ScalarType::kF32, "f32", 32, 'f'},
    Row{ScalarType::kF32x2, "f32x2", 64, 'f'},   Row{ScalarType::kF64, "f64", 64, 'f'},       Row{ScalarType::kE4m3, "e4m3", 8, 'f'},
    Row{ScalarType::kE5m2, "e5m2", 8, 'f'},      Row{ScalarType::kE4m3x2, "e4m3x2", 16, 'f'}, Row{ScalarType::kE5m2x2, "e5m2x2", 16, 'f'},
};

constexpr bool rows_follow_the_enum() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].type != static_cast<ScalarType>(i)) return false;
  }
  return true;
}
static_assert(rows_follow_the_enum());

const Row& row_of(ScalarType type) { return kRows[static_cast<std::size_t>(type)]; }

}  // namespace

int bits_of(ScalarType type) { return row_of(type).bits; }
bool is_integer(ScalarType type) { return row_of(type).kind == 'u' || row_of(type).kind == 's'; }
bool is_signed(ScalarType type) { return row_of(type).kind == 's'; }
bool is_float(ScalarType type) { return row_of(type).kind == 'f'; }
std::string_view to_text(ScalarType type) { return row_of(type).text; }

std::optional<ScalarType> scalar_type_from_text(std::string_view text) {
  if (text.empty()) return std::nullopt;
  for (const Row& row : kRows) {
    if (row.text == text) return row.type;
  }
  return std::nullopt;
}

}  // namespace kw::simulate
