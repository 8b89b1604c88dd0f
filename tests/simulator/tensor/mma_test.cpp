// mma.sync: fragments and sums against a separate integer reference, forms and refusals.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/tensor/mma.h"

#include <bit>
#include <chrono>
#include <cmath>
#include <vector>

#include "simulator/tensor/tile_generator.h"
#include "tests/catch.h"
#include "tests/simulator/tensor/reference_sum.h"

namespace kw::simulate {
namespace {

using Registers = std::vector<LaneRegister>;

/// The fragment maps as PTX states them, element by element (not by the rows-of-16-bytes view of the implementation).
struct Place {
  int register_index, lane, bit;
};
Place place_a(const MmaForm& form, int row, int k) {
  const int bytes = size_bytes(form.a), per = 4 / bytes;
  const int q = k % (4 * per) / per, i = k % per;
  const int j = form.m == 8 ? k / (4 * per) : row / 8 + 2 * (k / (4 * per));
  return {j, 4 * (row % 8) + q, 8 * bytes * i};
}
Place place_b(const MmaForm& form, int column, int k) {
  const int bytes = size_bytes(form.b), per = 4 / bytes;
  return {k / (4 * per), 4 * column + k % (4 * per) / per, 8 * bytes * (k % per)};
}
Place place_d(const MmaForm& form, int row, int column) {
  const int lane = 4 * (row % 8) + column / 2;
  if (form.d == ElementType::kF16) return {row / 8, lane, 16 * (column % 2)};
  return {2 * (row / 8) + column % 2, lane, 0};
}

std::uint32_t read(const Registers& registers, Place place, int bits) {
  const std::uint32_t word = registers[static_cast<std::size_t>(place.register_index)].lane[static_cast<std::size_t>(place.lane)];
  return bits == 32 ? word : word >> place.bit & ((1u << bits) - 1);
}
void put(Registers& registers, Place place, std::uint32_t value) {
  registers[static_cast<std::size_t>(place.register_index)].lane[static_cast<std::size_t>(place.lane)] |= value << place.bit;
}

reference::Format format_of(ElementType type) {
  switch (type) {
    case ElementType::kF16:
      return reference::kF16;
    case ElementType::kBF16:
      return reference::kBF16;
    case ElementType::kTF32:
      return reference::kTF32;
    case ElementType::kE4M3:
      return reference::kE4M3;
    case ElementType::kE5M2:
      return reference::kE5M2;
    default:
      return reference::kF32;
  }
}

struct Tile {
  Registers a, b, c;
};

Tile make_tile(const MmaForm& form, std::uint64_t seed, int tile) {
  Tile result{Registers(static_cast<std::size_t>(form.a_registers)), Registers(static_cast<std::size_t>(form.b_registers)),
              Registers(static_cast<std::size_t>(form.d_registers))};
  const auto style = static_cast<TileStyle>(tile % kNumTileStyles);
  const auto number = static_cast<std::uint64_t>(tile);
  for (int k = 0; k < form.k; ++k) {
    for (int row = 0; row < form.m; ++row)
      put(result.a, place_a(form, row, k), static_cast<std::uint32_t>(tile_element(form.a, style, tile_key(seed, number, 0), 0, row, k)));
    for (int column = 0; column < 8; ++column)
      put(result.b, place_b(form, column, k),
          static_cast<std::uint32_t>(tile_element(form.b, style, tile_key(seed, number, 1), 1, column, k)));
  }
  for (int row = 0; row < form.m; ++row) {
    for (int column = 0; column < 8; ++column)
      put(result.c, place_d(form, row, column),
          static_cast<std::uint32_t>(tile_element(form.d, style, tile_key(seed, number, 2), 2, row, column)));
  }
  return result;
}

/// Blocks of `block` products, one after another.
std::uint32_t expected_element(const MmaForm& form, const reference::Rule& rule, int block, const Tile& tile, int row, int column) {
  const reference::Format accumulator = format_of(form.d);
  std::uint32_t sum = read(tile.c, place_d(form, row, column), form.d == ElementType::kF16 ? 16 : 32);
  for (int begin = 0; begin < form.k; begin += block) {
    std::vector<reference::Number> a, b;
    for (int k = begin; k < begin + block; ++k) {
      a.push_back(reference::parse(format_of(form.a), read(tile.a, place_a(form, row, k), 8 * size_bytes(form.a))));
      b.push_back(reference::parse(format_of(form.b), read(tile.b, place_b(form, column, k), 8 * size_bytes(form.b))));
    }
    sum = reference::fused_sum(rule, a, b, reference::parse(accumulator, sum));
  }
  return sum;
}

int count_differences(const MmaForm& form, TensorArch arch, const reference::Rule& rule, int block, int num_tiles) {
  int differences = 0;
  for (int tile_index = 0; tile_index < num_tiles; ++tile_index) {
    const Tile tile = make_tile(form, 20, tile_index);
    Registers d(tile.c.size());
    mma(form, {TensorMode::kExact, arch}, tile.a, tile.b, tile.c, d);
    for (int row = 0; row < form.m; ++row) {
      for (int column = 0; column < 8; ++column) {
        const std::uint32_t got = read(d, place_d(form, row, column), form.d == ElementType::kF16 ? 16 : 32);
        if (got == expected_element(form, rule, block, tile, row, column)) continue;
        if (++differences < 4) UNSCOPED_INFO("tile " << tile_index << " row " << row << " column " << column << " got " << std::hex << got);
      }
    }
  }
  return differences;
}

MmaForm form_of(int m, int k, ElementType a, ElementType b, ElementType d, bool saturates = false) {
  const Result<MmaForm> form = make_mma_form(m, 8, k, a, b, d, saturates);
  REQUIRE(form.has_value());
  return *form;
}

using enum ElementType;

}  // namespace

TEST_CASE("Hopper's f16, bf16 and tf32 sums are one fused sum with 25 fraction bits, bit for bit") {
  const TensorArch arch = TensorArch::kSm90;
  CHECK(count_differences(form_of(16, 16, kF16, kF16, kF32), arch, reference::kHopperF32, 16, 800) == 0);
  CHECK(count_differences(form_of(16, 8, kF16, kF16, kF32), arch, reference::kHopperF32, 8, 400) == 0);
  CHECK(count_differences(form_of(16, 16, kF16, kF16, kF16), arch, reference::kHopperF16, 16, 800) == 0);
  CHECK(count_differences(form_of(16, 8, kF16, kF16, kF16), arch, reference::kHopperF16, 8, 400) == 0);
  CHECK(count_differences(form_of(16, 16, kBF16, kBF16, kF32), arch, reference::kHopperF32, 16, 800) == 0);
  CHECK(count_differences(form_of(16, 8, kBF16, kBF16, kF32), arch, reference::kHopperF32, 8, 400) == 0);
  CHECK(count_differences(form_of(16, 8, kTF32, kTF32, kF32), arch, reference::kHopperF32, 8, 800) == 0);
  CHECK(count_differences(form_of(16, 4, kTF32, kTF32, kF32), arch, reference::kHopperF32, 4, 400) == 0);
}

TEST_CASE("Ampere sums blocks of 16 bytes of K with 24 fraction bits") {
  const TensorArch arch = TensorArch::kSm80;
  CHECK(count_differences(form_of(16, 16, kF16, kF16, kF32), arch, reference::kAmpereF32, 8, 800) == 0);
  CHECK(count_differences(form_of(16, 16, kF16, kF16, kF16), arch, reference::kAmpereF16, 8, 400) == 0);
  CHECK(count_differences(form_of(16, 16, kBF16, kBF16, kF32), arch, reference::kAmpereF32, 8, 800) == 0);
  CHECK(count_differences(form_of(16, 8, kTF32, kTF32, kF32), arch, reference::kAmpereF32, 4, 400) == 0);
}

TEST_CASE("Ada's fp8 sums have 13 fraction bits and results of 13 bits") {
  const reference::Rule& rule = reference::kHopperFp8;
  CHECK(count_differences(form_of(16, 32, kE4M3, kE4M3, kF32), TensorArch::kSm89, rule, 16, 400) == 0);
  CHECK(count_differences(form_of(16, 32, kE5M2, kE4M3, kF32), TensorArch::kSm89, rule, 16, 400) == 0);
  CHECK(count_differences(form_of(16, 32, kE4M3, kE5M2, kF16), TensorArch::kSm89, reference::kHopperFp8F16, 16, 400) == 0);
}

TEST_CASE("fp8 mma.sync on Hopper is two f16 sums from zero, by halves of each register, and a rounded addition") {
  for (const ElementType a : {kE4M3, kE5M2}) {
    for (const int k_extent : {16, 32}) {
      const MmaForm form = form_of(16, k_extent, a, kE4M3, kF32);
      int differences = 0;
      for (int tile_index = 0; tile_index < 400; ++tile_index) {
        const Tile tile = make_tile(form, 7, tile_index);
        Registers d(4);
        mma(form, {}, tile.a, tile.b, tile.c, d);
        for (int row = 0; row < 16; ++row) {
          for (int column = 0; column < 8; ++column) {
            std::uint32_t sum = 0;
            for (int half = 0; half < 2; ++half) {
              std::vector<reference::Number> a_half, b_half;
              for (int k = 0; k < form.k; ++k) {
                if (k / 2 % 2 != half) continue;
                a_half.push_back(reference::normalised(reference::parse(format_of(a), read(tile.a, place_a(form, row, k), 8)), -14));
                b_half.push_back(reference::normalised(reference::parse(reference::kE4M3, read(tile.b, place_b(form, column, k), 8)), -14));
              }
              sum = reference::fused_sum(reference::kHopperF32, a_half, b_half, reference::parse(reference::kF32, sum));
            }
            const float c = std::bit_cast<float>(read(tile.c, place_d(form, row, column), 32));
            const float total = c + std::bit_cast<float>(sum);
            const std::uint32_t expected = total != total ? 0x7fffffffu : std::bit_cast<std::uint32_t>(total);
            if (read(d, place_d(form, row, column), 32) != expected) ++differences;
          }
        }
      }
      CHECK(differences == 0);
    }
  }
}

TEST_CASE("the measured facts about precision hold: 2^24 + 1.75, 2^24 - 0.5, 2^24 - 0.25") {
  const MmaForm form = form_of(16, 16, kBF16, kBF16, kF32);
  const auto run = [&](float c, float product) {
    Registers a(4), b(2), sums(4), d(4);
    put(a, place_a(form, 0, 3), std::bit_cast<std::uint32_t>(product) >> 16);
    put(b, place_b(form, 0, 3), 0x3f80);
    put(sums, place_d(form, 0, 0), std::bit_cast<std::uint32_t>(c));
    mma(form, {}, a, b, sums, d);
    return std::bit_cast<float>(read(d, place_d(form, 0, 0), 32));
  };
  CHECK(run(0x1p24f, 1.75f) == 0x1p24f);
  CHECK(run(0x1p24f, -0.5f) == 0x1p24f - 1);
  CHECK(run(0x1p24f, -0.25f) == 0x1p24f);
  CHECK(run(1.0f, 0x1p-25f) == 1.0f);
  CHECK(run(-1.0f, 0x1p-25f) == std::nextafter(-1.0f, 0.0f));  // the guard bits keep the term, the result is cut toward zero
}

TEST_CASE("integer forms are exact, wrap without satfinite and clamp with it") {
  for (const ElementType a : {kS8, kU8}) {
    for (const ElementType b : {kS8, kU8}) {
      for (const auto& [m, k] : {std::pair{8, 16}, {16, 16}, {16, 32}}) {
        for (const bool saturates : {false, true}) {
          const MmaForm form = form_of(m, k, a, b, kS32, saturates);
          for (int tile_index = 0; tile_index < 16; ++tile_index) {
            const Tile tile = make_tile(form, 3, tile_index);
            Registers d(tile.c.size());
            mma(form, {}, tile.a, tile.b, tile.c, d);
            for (int row = 0; row < m; ++row) {
              for (int column = 0; column < 8; ++column) {
                std::int64_t sum = std::bit_cast<std::int32_t>(read(tile.c, place_d(form, row, column), 32));
                for (int k_index = 0; k_index < k; ++k_index) {
                  const auto signed_of = [](std::uint32_t byte, ElementType type) {
                    return type == kU8 ? static_cast<int>(byte) : static_cast<int>(static_cast<std::int8_t>(byte));
                  };
                  sum += signed_of(read(tile.a, place_a(form, row, k_index), 8), a) *
                         signed_of(read(tile.b, place_b(form, column, k_index), 8), b);
                }
                if (saturates) sum = std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX);
                REQUIRE(read(d, place_d(form, row, column), 32) == static_cast<std::uint32_t>(sum));
              }
            }
          }
        }
      }
    }
  }
}

TEST_CASE("f64 forms are chains of fused multiply-adds in order of k") {
  for (const auto& [m, k] : {std::pair{8, 4}, {16, 4}, {16, 8}, {16, 16}}) {
    const MmaForm form = form_of(m, k, kF64, kF64, kF64);
    const auto element = [&](int operand, int line, int k_index) {
      return std::bit_cast<double>(tile_element(kF64, TileStyle::kFewExponents, tile_key(5, 1, operand), operand, line, k_index));
    };
    Registers a(static_cast<std::size_t>(form.a_registers)), b(static_cast<std::size_t>(form.b_registers)),
        c(static_cast<std::size_t>(form.d_registers)), d(c.size());
    const auto put_f64 = [](Registers& registers, int index, int lane, double value) {
      put(registers, {2 * index, lane, 0}, static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(value)));
      put(registers, {2 * index + 1, lane, 0}, static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(value) >> 32));
    };
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < form.a_registers / 2; ++i) {
        const int row = m == 8 ? lane / 4 : lane / 4 + 8 * (i % 2), k_index = lane % 4 + 4 * (m == 8 ? i : i / 2);
        put_f64(a, i, lane, element(0, row, k_index));
      }
      for (int i = 0; i < form.b_registers / 2; ++i) put_f64(b, i, lane, element(1, lane / 4, lane % 4 + 4 * i));
      for (int i = 0; i < form.d_registers / 2; ++i) put_f64(c, i, lane, element(2, lane / 4 + 8 * (i / 2), 2 * (lane % 4) + i % 2));
    }
    mma(form, {}, a, b, c, d);
    for (int row = 0; row < m; ++row) {
      for (int column = 0; column < 8; ++column) {
        double sum = element(2, row, column);
        for (int k_index = 0; k_index < k; ++k_index) sum = std::fma(element(0, row, k_index), element(1, column, k_index), sum);
        const auto low = static_cast<std::size_t>(2 * (2 * (row / 8) + column % 2)),
                   lane = static_cast<std::size_t>(4 * (row % 8) + column / 2);
        CHECK(std::bit_cast<double>(d[low].lane[lane] | static_cast<std::uint64_t>(d[low + 1].lane[lane]) << 32) == sum);
      }
    }
  }
}

TEST_CASE("an f64 chain hands on the NaN of b, then of the sum, then of a") {
  const MmaForm form = form_of(8, 4, kF64, kF64, kF64);
  const auto run = [&](std::uint64_t a_bits, std::uint64_t b_bits, std::uint64_t c_bits) {
    const auto filled = [](std::uint64_t bits, std::size_t count) {
      Registers registers(count);
      for (std::size_t index = 0; index < count; ++index)
        registers[index].lane.fill(static_cast<std::uint32_t>(index % 2 == 0 ? bits : bits >> 32));
      return registers;
    };
    Registers d(4);
    mma(form, {}, filled(a_bits, 2), filled(b_bits, 2), filled(c_bits, 4), d);
    return d[0].lane[0] | static_cast<std::uint64_t>(d[1].lane[0]) << 32;
  };
  const std::uint64_t one = std::bit_cast<std::uint64_t>(1.0), infinity = 0x7ff0000000000000ull;
  CHECK(run(0x7ff0000000000001ull, 0xfff0000000000002ull, 0x7ff8000000000003ull) == 0xfff8000000000002ull);
  CHECK(run(0x7ff0000000000001ull, one, 0x7ff0000000000003ull) == 0x7ff8000000000003ull);
  CHECK(run(0x7ff0000000000001ull, one, one) == 0x7ff8000000000001ull);
  CHECK(run(infinity, 0, one) == 0xfff8000000000000ull);
}

TEST_CASE("fast sums are right for numbers whose sums f32 holds exactly") {
  for (const ElementType type : {kF16, kBF16, kE4M3}) {
    const MmaForm form = form_of(16, 32 / size_bytes(type), type, type, kF32);
    const Tile tile = make_tile(form, 1, static_cast<int>(TileStyle::kSmallIntegers));
    Registers fast(4), exact(4);
    mma(form, {TensorMode::kFast, TensorArch::kSm90}, tile.a, tile.b, tile.c, fast);
    mma(form, {TensorMode::kExact, TensorArch::kSm90}, tile.a, tile.b, tile.c, exact);
    for (std::size_t index = 0; index < 4; ++index) CHECK(fast[index].lane == exact[index].lane);
  }
}

TEST_CASE("a form that PTX does not have is refused by name") {
  const Result<MmaForm> form = make_mma_form(16, 8, 12, kF16, kF16, kF32);
  REQUIRE_FALSE(form.has_value());
  CHECK(form.error().code == Code::kNotSupported);
  CHECK(form.error().message == "mma.sync m16n8k12 f16 f16 f32: the simulator has no such form (known: m16n8k8, m16n8k16)");
  CHECK_FALSE(make_mma_form(16, 8, 16, kF16, kBF16, kF32).has_value());
  CHECK_FALSE(make_mma_form(16, 16, 16, kF16, kF16, kF32).has_value());
  CHECK_FALSE(make_mma_form(16, 8, 16, kF16, kF16, kF32, true).has_value());
}

TEST_CASE("an mma is quick enough for whole kernels", "[.speed]") {
  for (const TensorMode mode : {TensorMode::kFast, TensorMode::kExact}) {
    const MmaForm form = form_of(16, 16, kBF16, kBF16, kF32);
    Tile tile = make_tile(form, 1, 1);
    const auto start = std::chrono::steady_clock::now();
    const int repeats = 200000;
    for (int repeat = 0; repeat < repeats; ++repeat) mma(form, {mode, TensorArch::kSm90}, tile.a, tile.b, tile.c, tile.c);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    WARN((mode == TensorMode::kFast ? "fast " : "exact ") << repeats * 4096.0 / seconds * 1e-9 << " GFLOP/s");
  }
}

}  // namespace kw::simulate
