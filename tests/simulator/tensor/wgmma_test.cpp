// wgmma: descriptors, layouts and products, each against formulas written a second time.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/tensor/wgmma.h"

#include <bit>
#include <chrono>
#include <vector>

#include "simulator/tensor/tile_generator.h"
#include "tests/catch.h"
#include "tests/simulator/tensor/reference_sum.h"
#include "tests/simulator/tensor/smem_layout.h"

namespace kw::simulate {
namespace {

using enum ElementType;

WgmmaForm form_of(const WgmmaForm& wanted) {
  const Result<WgmmaForm> form = make_wgmma_form(wanted);
  REQUIRE(form.has_value());
  return *form;
}

/// Shared memory with a hash in every byte; the operand is read through chunks and compared with single elements.
int count_wrong_elements(const WgmmaForm& form, WgmmaOperand operand, const SmemDescriptor& descriptor) {
  const bool is_mn_major = operand == WgmmaOperand::kA ? form.is_a_transposed : form.is_b_transposed;
  const int es = size_bytes(operand == WgmmaOperand::kA ? form.a : form.b);
  const auto byte_at = [](std::uint32_t address) { return static_cast<std::uint8_t>(mix_bits(address) & 0xff); };
  std::vector<std::uint8_t> bytes;
  for (const std::uint32_t chunk : operand_chunks(form, operand, descriptor)) {
    for (std::uint32_t byte = 0; byte < 16; ++byte) bytes.push_back(byte_at(chunk + byte));
  }
  const WgmmaTile tile = operand_from_chunks(form, operand, bytes);
  int num_wrong = 0;
  for (int mn = 0; mn < tile.rows; ++mn) {
    for (int k = 0; k < form.k; ++k) {
      const std::uint32_t address = element_address(descriptor, is_mn_major, es, mn, k);
      std::uint32_t expected = 0;
      for (int byte = 0; byte < es; ++byte)
        expected |= static_cast<std::uint32_t>(byte_at(address + static_cast<std::uint32_t>(byte))) << 8 * byte;
      num_wrong += tile.bits[static_cast<std::size_t>(mn * form.k + k)] != expected ? 1 : 0;
    }
  }
  return num_wrong;
}

constexpr Swizzle kSwizzles[] = {Swizzle::kNone, Swizzle::k128B, Swizzle::k64B, Swizzle::k32B};

/// Dense operands by the generator.
WgmmaTile generated(const WgmmaForm& form, WgmmaOperand operand, TileStyle style, std::uint64_t tile) {
  const int index = operand == WgmmaOperand::kA ? 0 : 1;
  const int rows = index == 0 ? 64 : form.n;
  WgmmaTile result{.rows = rows, .k = form.k, .bits = {}};
  for (int row = 0; row < rows; ++row) {
    for (int k = 0; k < form.k; ++k) {
      result.bits.push_back(
          static_cast<std::uint32_t>(tile_element(index == 0 ? form.a : form.b, style, tile_key(11, tile, index), index, row, k)));
    }
  }
  return result;
}

struct Place {
  std::size_t register_index, lane;
  int shift;
};
/// The accumulator map of the facts: row = 16w + g + 8*((r/2)%2), col = 8*(r/4) + 2q + r%2; f16: r' = 2r and 2r+1.
Place accumulator_place(const WgmmaForm& form, int row, int column) {
  const int warp = row / 16, r = 4 * (column / 8) + 2 * (row % 16 / 8) + column % 2;
  const int lane = 4 * (row % 8) + column % 8 / 2;
  const bool is_half = form.d == kF16;
  return {static_cast<std::size_t>(warp * form.d_registers + (is_half ? r / 2 : r)), static_cast<std::size_t>(lane),
          is_half ? 16 * (r % 2) : 0};
}

int count_wrong_sums(const WgmmaForm& form, const reference::Format& format, const reference::Rule& rule, TileStyle style,
                     bool accumulates) {
  const WgmmaTile a = generated(form, WgmmaOperand::kA, style, 3), b = generated(form, WgmmaOperand::kB, style, 3);
  std::vector<LaneRegister> registers(static_cast<std::size_t>(4 * form.d_registers));
  const auto c_bits = [&](int row, int column) {
    return static_cast<std::uint32_t>(tile_element(form.d, style, tile_key(11, 3, 2), 2, row, column));
  };
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < form.n; ++column) {
      const Place place = accumulator_place(form, row, column);
      registers[place.register_index].lane[place.lane] |= c_bits(row, column) << place.shift;
    }
  }
  wgmma(form, {}, a, b, accumulates, registers);
  int num_wrong = 0;
  for (int row = 0; row < 64; row += 3) {
    for (int column = 0; column < form.n; column += 3) {
      std::vector<reference::Number> a_numbers, b_numbers;
      for (int k = 0; k < form.k; ++k) {
        a_numbers.push_back(reference::parse(format, a.bits[static_cast<std::size_t>(row * form.k + k)]));
        b_numbers.push_back(reference::parse(format, b.bits[static_cast<std::size_t>(column * form.k + k)]));
        a_numbers.back().is_negative ^= form.negates_a;
        b_numbers.back().is_negative ^= form.negates_b;
      }
      const bool is_half = form.d == kF16;
      const reference::Number c = reference::parse(is_half ? reference::kF16 : reference::kF32, accumulates ? c_bits(row, column) : 0);
      const Place place = accumulator_place(form, row, column);
      const std::uint32_t got = registers[place.register_index].lane[place.lane] >> place.shift & (is_half ? 0xffffu : 0xffffffffu);
      num_wrong += got != reference::fused_sum(rule, a_numbers, b_numbers, c) ? 1 : 0;
    }
  }
  return num_wrong;
}

}  // namespace

TEST_CASE("every layout of a wgmma operand reads the elements that the hardware reads") {
  for (const Swizzle swizzle : kSwizzles) {
    const auto span = static_cast<std::uint32_t>(span_bytes(swizzle));
    for (const ElementType type : {kBF16, kTF32, kE4M3}) {
      const WgmmaForm form = form_of({.n = 72, .k = 32 / size_bytes(type), .a = type, .b = type});
      for (const WgmmaOperand operand : {WgmmaOperand::kA, WgmmaOperand::kB}) {
        CHECK(count_wrong_elements(form, operand, {0x400, 16, 8 * span, 0, swizzle}) == 0);
        CHECK(count_wrong_elements(form, operand, {0x8030, 4096, 1152, 0, swizzle}) == 0);  // any start row, any stride
        CHECK(count_wrong_elements(form, operand, {0x8080, 256, 2048, 3, swizzle}) == 0);
      }
    }
    const WgmmaForm transposed = form_of({.n = 200, .k = 16, .is_a_transposed = true, .is_b_transposed = true});
    for (const WgmmaOperand operand : {WgmmaOperand::kA, WgmmaOperand::kB}) {
      CHECK(count_wrong_elements(transposed, operand, {0x400, 64 * span, 8 * span, 0, swizzle}) == 0);
      CHECK(count_wrong_elements(transposed, operand, {0x600, 8192, 1024, 0, swizzle}) == 0);
    }
  }
}

TEST_CASE("a K-major 128B tile is what TMA writes: row r, 16-byte chunk c lies at chunk c ^ (r % 8)") {
  const WgmmaForm form = form_of({.n = 16, .k = 16});
  const SmemDescriptor descriptor = *decode_smem_descriptor(1ull << 62 | 64ull << 32 | 1ull << 16 | (0x1800 & 0x3ffff) >> 4);
  const std::vector<std::uint32_t> chunks = operand_chunks(form, WgmmaOperand::kB, descriptor);
  REQUIRE(chunks.size() == 32);
  for (std::uint32_t row = 0; row < 16; ++row) {
    for (std::uint32_t chunk = 0; chunk < 2; ++chunk) CHECK(chunks[2 * row + chunk] == 0x1800 + 128 * row + 16 * (chunk ^ (row % 8)));
  }
}

TEST_CASE("a descriptor's fields come apart and reserved bits are refused") {
  const Result<SmemDescriptor> good = decode_smem_descriptor(1ull << 62 | 64ull << 32 | 512ull << 16 | 0x12340 >> 4);
  REQUIRE(good.has_value());
  CHECK(to_text(*good) == "start 0x12340, LBO 8192, SBO 1024, base offset 0, swizzle 128B");
  CHECK(decode_smem_descriptor(3ull << 62 | 5ull << 49)->base_offset == 5);
  for (const int bit : {14, 15, 30, 31, 46, 47, 48, 52, 61}) CHECK_FALSE(decode_smem_descriptor(1ull << bit).has_value());
}

TEST_CASE("wgmma sums equal the integer reference for every type, style and accumulator") {
  for (int style_index = 0; style_index < kNumTileStyles; ++style_index) {
    const auto style = static_cast<TileStyle>(style_index);
    CAPTURE(style_index);
    for (const bool accumulates : {false, true}) {
      CHECK(count_wrong_sums(form_of({.n = 24, .k = 16, .a = kBF16, .b = kBF16}), reference::kBF16, reference::kHopperF32, style,
                             accumulates) == 0);
      CHECK(count_wrong_sums(form_of({.n = 40, .k = 16, .a = kF16, .b = kF16, .negates_a = true}), reference::kF16, reference::kHopperF32,
                             style, accumulates) == 0);
      CHECK(count_wrong_sums(form_of({.n = 16, .k = 16, .a = kF16, .b = kF16, .d = kF16, .negates_b = true}), reference::kF16,
                             reference::kHopperF16, style, accumulates) == 0);
      CHECK(count_wrong_sums(form_of({.n = 8, .k = 8, .a = kTF32, .b = kTF32}), reference::kTF32, reference::kHopperF32, style,
                             accumulates) == 0);
      CHECK(count_wrong_sums(form_of({.n = 32, .k = 32, .a = kE4M3, .b = kE4M3}), reference::kE4M3, reference::kHopperFp8, style,
                             accumulates) == 0);
      CHECK(count_wrong_sums(form_of({.n = 256, .k = 32, .a = kE5M2, .b = kE5M2, .d = kF16}), reference::kE5M2, reference::kHopperFp8F16,
                             style, accumulates) == 0);
    }
  }
}

TEST_CASE("fp8 wgmma keeps 13 bits: 8192 + 32 ones is exact, 16384 + 32 ones is not") {
  const WgmmaForm form = form_of({.n = 8, .k = 32, .a = kE4M3, .b = kE4M3});
  WgmmaTile a{64, 32, std::vector<std::uint32_t>(64 * 32, 0x38)}, b{8, 32, std::vector<std::uint32_t>(8 * 32, 0x38)};
  for (const float c : {8192.0f, 16384.0f}) {
    std::vector<LaneRegister> registers(16);
    for (LaneRegister& one : registers) one.lane.fill(std::bit_cast<std::uint32_t>(c));
    wgmma(form, {}, a, b, true, registers);
    CHECK(std::bit_cast<float>(registers[5].lane[17]) == (c == 8192.0f ? 8224.0f : 16384.0f));
  }
  a.bits.assign(a.bits.size(), 0);
  std::vector<LaneRegister> registers(16);
  for (LaneRegister& one : registers) one.lane.fill(std::bit_cast<std::uint32_t>(1 + 0x1p-14f));
  wgmma(form, {}, a, b, true, registers);
  CHECK(std::bit_cast<float>(registers[0].lane[0]) == 1.0f);
}

TEST_CASE("A from registers has the map of the facts, and s8 sums are exact") {
  for (const ElementType type : {kBF16, kTF32, kE4M3, kS8}) {
    const int es = size_bytes(type), per = 4 / es;
    const WgmmaForm form =
        form_of({.n = 16, .k = 32 / es, .a = type, .b = type, .d = type == kS8 ? kS32 : kF32, .is_a_in_registers = true});
    std::vector<LaneRegister> registers(16);
    for (std::size_t index = 0; index < 16; ++index) {
      for (std::size_t lane = 0; lane < 32; ++lane) registers[index].lane[lane] = static_cast<std::uint32_t>(mix_bits(index * 32 + lane));
    }
    const WgmmaTile tile = operand_from_registers(form, registers);
    for (int w = 0; w < 4; ++w) {
      for (int lane = 0; lane < 32; ++lane) {
        for (int j = 0; j < 4; ++j) {
          for (int i = 0; i < per; ++i) {
            const int row = 16 * w + lane / 4 + 8 * (j % 2), k = lane % 4 * per + i + 4 * per * (j / 2);
            const std::uint32_t word = registers[static_cast<std::size_t>(4 * w + j)].lane[static_cast<std::size_t>(lane)];
            const std::uint32_t expected = es == 4 ? word : word >> 8 * es * i & ((1u << 8 * es) - 1);
            REQUIRE(tile.bits[static_cast<std::size_t>(row * form.k + k)] == expected);
          }
        }
      }
    }
  }
  const WgmmaForm form = form_of({.n = 48, .k = 32, .a = kS8, .b = kU8, .d = kS32});
  const WgmmaTile a = generated(form, WgmmaOperand::kA, TileStyle::kAnyFinite, 1),
                  b = generated(form, WgmmaOperand::kB, TileStyle::kSpecial, 1);
  std::vector<LaneRegister> registers(static_cast<std::size_t>(4 * form.d_registers));
  for (LaneRegister& one : registers) one.lane.fill(7);
  wgmma(form, {}, a, b, true, registers);
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < 48; ++column) {
      std::int64_t sum = 7;
      for (int k = 0; k < 32; ++k) {
        sum += static_cast<std::int8_t>(a.bits[static_cast<std::size_t>(row * 32 + k)]) *
               static_cast<int>(b.bits[static_cast<std::size_t>(column * 32 + k)]);
      }
      const Place place = accumulator_place(form, row, column);
      REQUIRE(registers[place.register_index].lane[place.lane] == static_cast<std::uint32_t>(sum));
    }
  }
}

TEST_CASE("wgmma forms that ptxas rejects are refused by name") {
  for (int n = 8; n <= 256; n += 8) CHECK(make_wgmma_form({.n = n}).has_value());
  for (const int n : {8, 16, 24, 32, 48, 256}) CHECK(make_wgmma_form({.n = n, .k = 32, .a = kS8, .b = kS8, .d = kS32}).has_value());
  const Result<WgmmaForm> s8 = make_wgmma_form({.n = 40, .k = 32, .a = kS8, .b = kS8, .d = kS32});
  REQUIRE_FALSE(s8.has_value());
  CHECK(s8.error().message == "wgmma m64n40k32 s32 s8 s8: N is 8, 16, 24, 32, then steps of 16 to 256");
  CHECK_FALSE(make_wgmma_form({.n = 12}).has_value());
  CHECK_FALSE(make_wgmma_form({.n = 264}).has_value());
  CHECK_FALSE(make_wgmma_form({.n = 64, .k = 8}).has_value());
  CHECK_FALSE(make_wgmma_form({.n = 64, .k = 8, .a = kTF32, .b = kTF32, .is_b_transposed = true}).has_value());
  CHECK_FALSE(make_wgmma_form({.n = 64, .a = kBF16, .b = kBF16, .d = kF16}).has_value());
  CHECK_FALSE(make_wgmma_form({.n = 64, .is_a_in_registers = true, .is_a_transposed = true}).has_value());
  CHECK_FALSE(make_wgmma_form({.n = 64, .k = 32, .a = kE4M3, .b = kE4M3, .is_b_transposed = true}).has_value());
}

TEST_CASE("a wgmma is quick enough for whole kernels", "[.speed]") {
  const WgmmaForm form = form_of({.n = 128, .k = 16});
  const WgmmaTile a = generated(form, WgmmaOperand::kA, TileStyle::kNearOne, 1),
                  b = generated(form, WgmmaOperand::kB, TileStyle::kNearOne, 1);
  std::vector<LaneRegister> registers(static_cast<std::size_t>(4 * form.d_registers));
  for (const TensorMode mode : {TensorMode::kFast, TensorMode::kExact}) {
    const auto start = std::chrono::steady_clock::now();
    for (int repeat = 0; repeat < 2000; ++repeat) wgmma(form, {mode, TensorArch::kSm90}, a, b, true, registers);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    WARN((mode == TensorMode::kFast ? "fast " : "exact ") << 2000 * 2.0 * 64 * 128 * 16 / seconds * 1e-9 << " GFLOP/s");
  }
}

}  // namespace kw::simulate
