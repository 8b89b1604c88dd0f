// Rows on the shared-memory descriptor of wgmma: every address map is read back through the whole simulator. Each element of shared
// memory holds a number that names its place; a product with a unit matrix brings the places that an operand reads into the accumulators.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/simulator/hopper/wgmma_case.h"

namespace kw::simulate {
namespace {

constexpr std::uint32_t kImageBytes = 0xe000;
constexpr Swizzle kSwizzled[] = {Swizzle::k128B, Swizzle::k64B, Swizzle::k32B};

enum class Kind { kBF16, kTF32, kE4M3 };
int element_bytes(Kind kind) { return kind == Kind::kBF16 ? 2 : kind == Kind::kTF32 ? 4 : 1; }
int k_extent(Kind kind) { return 32 / element_bytes(kind); }
std::uint32_t one_of(Kind kind) { return kind == Kind::kBF16 ? 0x3f80 : kind == Kind::kTF32 ? 0x3f800000 : 0x38; }
std::string form_of(Kind kind, int n) {
  const std::string type = kind == Kind::kBF16 ? "bf16" : kind == Kind::kTF32 ? "tf32" : "e4m3";
  return "m64n" + std::to_string(n) + "k" + std::to_string(k_extent(kind)) + ".f32." + type + "." + type;
}

/// Bytes carry six bits of their address each, so fp8 needs three runs; the wider types name their place at once.
int num_passes(Kind kind) { return kind == Kind::kE4M3 ? 3 : 1; }

std::vector<std::uint32_t> image(Kind kind, int pass) {
  std::vector<std::uint32_t> words(kImageBytes / 4);
  for (std::uint32_t i = 0; i < words.size(); ++i) {
    if (kind == Kind::kBF16) words[i] = (0x800 + 2 * i) | (0x800 + 2 * i + 1) << 16;
    if (kind == Kind::kTF32) words[i] = (0x4000 + i) << 13;
    for (std::uint32_t byte = 0; kind == Kind::kE4M3 && byte < 4; ++byte) {
      words[i] |= (8 + ((4 * i + byte) >> 6 * pass & 63)) << 8 * byte;
    }
  }
  return words;
}

/// The address (its six bits of this pass for fp8) that an accumulator names.
std::uint32_t place_of(Kind kind, std::uint32_t accumulator, int pass) {
  if (kind == Kind::kBF16) return 2 * ((accumulator >> 16) - 0x800);
  if (kind == Kind::kTF32) return 4 * ((accumulator >> 13) - 0x4000);
  for (std::uint32_t code = 8; code < 72; ++code) {
    const float value = std::ldexp(1.0f + static_cast<float>(code & 7) / 8, static_cast<int>(code >> 3) - 7);
    if (value == from_bits(accumulator)) return (code - 8) << 6 * pass;
  }
  return ~std::uint32_t{0};
}

struct Tile {
  Kind kind = Kind::kBF16;
  bool is_a = false;
  bool is_mn_major = false;
  int rows = 64;  ///< of B
};

/// Offset from %smem of element (mn, k), at mn * K + k.
using Places = std::vector<std::uint32_t>;

/// `field`: how the address gets into %d0. Places of each CTA of a cluster.
std::vector<Places> read_back(const Tile& operand, const SmemDescriptor& descriptor, std::uint32_t cluster, const std::string& field) {
  const int k = k_extent(operand.kind), es = element_bytes(operand.kind);
  const int rows = operand.is_a ? 64 : operand.rows, n = operand.is_a ? k : operand.rows;
  std::vector<Places> places(cluster, Places(static_cast<std::size_t>(rows * k)));
  for (int pass = 0; pass < num_passes(operand.kind); ++pass) {
    HopperCase one{.body = fill_shared((kImageBytes + 1024) / 4, 128) + publish_shared() + field};
    one.cluster = cluster;
    one.num_threads = 128;
    one.shared_bytes = kImageBytes + 1024;
    one.in = image(operand.kind, pass);
    // The unit matrix, K-major without swizzle, behind the image: for A as the operand under test.
    one.in.resize(one.in.size() + 256);
    for (int i = 0; i < k; ++i) {
      const std::uint32_t at = element_address({kImageBytes, 128, 256, 0, Swizzle::kNone}, false, es, i, i);
      one.in[at / 4] |= one_of(operand.kind) << 8 * (at % 4);
    }
    one.out.assign(static_cast<std::size_t>(128 * n / 2), 0);
    std::string operands = registers("%f", n / 2);
    if (operand.is_a) {
      one.body += load_descriptor("%d1", descriptor) + load_descriptor("%d2", {kImageBytes, 128, 256, 0, Swizzle::kNone});
      operands += ", %d1, %d2, %p0, 1, 1";
      if (operand.kind == Kind::kBF16) operands += operand.is_mn_major ? ", 1, 0" : ", 0, 0";
    } else {
      const std::vector<std::uint32_t> unit =
          a_register_words(es, [&](int row, int column) { return row % k == column ? one_of(operand.kind) : 0; });
      const std::size_t first = one.in.size();
      one.in.insert(one.in.end(), unit.begin(), unit.end());
      one.body += load_a_registers(first) + load_descriptor("%d2", descriptor);
      operands += ", {%v0, %v1, %v2, %v3}, %d2, %p0, 1, 1";
      if (operand.kind == Kind::kBF16) operands += operand.is_mn_major ? ", 1" : ", 0";
    }
    one.body += "setp.ne.s32 %p0, 0, 0;\n" + wgmma_alone(form_of(operand.kind, n), operands) + store_registers("%f", n / 2);
    // Which bytes an operand reads does not depend on the schedule: one is enough, and sanitized builds are slow.
    const HopperResult result = run_case(one, {Adversary::kLazy, 0});
    REQUIRE(result.report.is_clean());
    const std::vector<std::uint32_t>& out = result.out;
    for (std::size_t cta = 0; cta < cluster; ++cta) {
      for (int mn = 0; mn < rows; ++mn) {
        for (int column = 0; column < k; ++column) {
          const std::size_t word =
              cta * one.out.size() + (operand.is_a ? accumulator_word(n, mn, column) : accumulator_word(n, column, mn));
          places[cta][static_cast<std::size_t>(mn * k + column)] |= place_of(operand.kind, out[word], pass);
        }
      }
    }
  }
  return places;
}

Places read_back(const Tile& operand, const SmemDescriptor& descriptor) { return read_back(operand, descriptor, 1, address_field())[0]; }

/// The formula's places for the elements (mn + first_mn, k + first_k) of a tile at `descriptor`.
Places formula(const Tile& operand, SmemDescriptor descriptor, int first_mn = 0, int first_k = 0) {
  const int k = k_extent(operand.kind), rows = operand.is_a ? 64 : operand.rows;
  descriptor.start_bytes += kSmemAddress;
  Places places;
  for (int mn = 0; mn < rows; ++mn) {
    for (int column = 0; column < k; ++column) {
      places.push_back(element_address(descriptor, operand.is_mn_major, element_bytes(operand.kind), mn + first_mn, column + first_k) -
                       kSmemAddress);
    }
  }
  return places;
}

std::uint32_t span_of(Swizzle swizzle) { return static_cast<std::uint32_t>(span_bytes(swizzle)); }

}  // namespace

TEST_CASE("K-major swizzled operands: rows a span apart, eight rows SBO apart, LBO ignored", "[V:desc-k-major-swizzled]") {
  for (const Swizzle swizzle : kSwizzled) {
    for (const Kind kind : {Kind::kBF16, Kind::kTF32, Kind::kE4M3}) {
      for (const std::uint32_t sbo : {8 * span_of(swizzle), 1152u, 2048u}) {
        const Tile b{.kind = kind};
        CHECK(read_back(b, {1024, 16, sbo, 0, swizzle}) == formula(b, {1024, 16, sbo, 0, swizzle}));
      }
      const Tile a{.kind = kind, .is_a = true};
      const Places places = formula(a, {1024, 16, 8 * span_of(swizzle), 0, swizzle});
      for (const std::uint32_t lbo : {0u, 16u, 4096u}) CHECK(read_back(a, {1024, lbo, 8 * span_of(swizzle), 0, swizzle}) == places);
    }
  }
}

TEST_CASE("K-major operands without swizzle: SBO to the next eight rows, LBO to the next 16 bytes of K", "[V:desc-k-major-none]") {
  for (const Kind kind : {Kind::kBF16, Kind::kTF32, Kind::kE4M3}) {
    for (const bool is_a : {false, true}) {
      const Tile operand{.kind = kind, .is_a = is_a};
      for (const SmemDescriptor& d : {SmemDescriptor{0, 128, 256, 0, Swizzle::kNone}, {512, 1024, 128, 0, Swizzle::kNone}}) {
        CHECK(read_back(operand, d) == formula(operand, d));
      }
    }
  }
}

TEST_CASE("MN-major swizzled operands: SBO to the next eight k, LBO to the next span, ignored in a narrow tile",
          "[V:desc-mn-major-swizzled]") {
  for (const Swizzle swizzle : kSwizzled) {
    const std::uint32_t span = span_of(swizzle);
    const Tile wide{.is_mn_major = true, .rows = 136};
    for (const SmemDescriptor& d : {SmemDescriptor{0, 64 * span, 8 * span, 0, swizzle}, {1024, 4096, 1024, 0, swizzle}}) {
      CHECK(read_back(wide, d) == formula(wide, d));
    }
    const Tile a{.is_a = true, .is_mn_major = true};
    CHECK(read_back(a, {0, 64 * span, 8 * span, 0, swizzle}) == formula(a, {0, 64 * span, 8 * span, 0, swizzle}));
    const Tile narrow{.is_mn_major = true, .rows = static_cast<int>(span) / 2};
    const Places places = formula(narrow, {0, 16, 8 * span, 0, swizzle});
    for (const std::uint32_t lbo : {0u, 16u, 4096u}) CHECK(read_back(narrow, {0, lbo, 8 * span, 0, swizzle}) == places);
  }
}

TEST_CASE("MN-major operands without swizzle: SBO to the next eight MN, LBO to the next eight k", "[V:desc-mn-major-none]") {
  for (const bool is_a : {false, true}) {
    const Tile operand{.is_a = is_a, .is_mn_major = true};
    for (const SmemDescriptor& d : {SmemDescriptor{0, 128, 1024, 0, Swizzle::kNone}, {256, 4096, 128, 0, Swizzle::kNone}}) {
      CHECK(read_back(operand, d) == formula(operand, d));
    }
  }
}

TEST_CASE("a k step of a K-major operand adds 32 bytes to the start inside the span", "[V:desc-k-step]") {
  for (const Kind kind : {Kind::kBF16, Kind::kTF32, Kind::kE4M3}) {
    const Tile operand{.kind = kind};
    for (std::uint32_t step = 0; step < 4; ++step) {
      CHECK(read_back(operand, {1024 + 32 * step, 16, 1024, 0, Swizzle::k128B}) ==
            formula(operand, {1024, 16, 1024, 0, Swizzle::k128B}, 0, static_cast<int>(step) * k_extent(kind)));
    }
  }
}

TEST_CASE("a k step of an MN-major operand adds 2 SBO, and a start may be any k row", "[V:desc-mn-k-step]") {
  const Tile operand{.is_mn_major = true};
  const SmemDescriptor tile{0, 8192, 1024, 0, Swizzle::k128B};
  CHECK(read_back(operand, {2048, 8192, 1024, 0, Swizzle::k128B}) == formula(operand, tile, 0, 16));
  CHECK(read_back(operand, {4 * 128, 8192, 1024, 0, Swizzle::k128B}) == formula(operand, tile, 0, 4));
}

TEST_CASE("an MN offset inside the span spills into the next k row when the tile does not fit", "[V:desc-mn-offset]") {
  const Tile fits{.is_mn_major = true, .rows = 32};
  const SmemDescriptor tile{0, 8192, 1024, 0, Swizzle::k128B}, moved{64, 8192, 1024, 0, Swizzle::k128B};
  CHECK(read_back(fits, moved) == formula(fits, tile, 32, 0));
  const Tile spills{.is_mn_major = true, .rows = 64};
  const Places places = read_back(spills, moved);
  CHECK(places != formula(spills, tile, 32, 0));
  const Places next_row = formula(spills, tile, -32, 1);  // element (mn - 32, k + 1) of the tile
  for (std::size_t mn = 32; mn < 64; ++mn) {
    for (std::size_t k = 0; k < 7; ++k) CHECK(places[mn * 16 + k] == next_row[mn * 16 + k]);
  }
}

TEST_CASE("a base offset is subtracted from the row before the XOR; with 0 any row may be the start", "[V:desc-base-offset]") {
  const Tile operand{};
  for (const Swizzle swizzle : kSwizzled) {
    const std::uint32_t span = span_of(swizzle);
    const SmemDescriptor shifted{1024, 16, 8 * span, 3, swizzle};
    CHECK(read_back(operand, shifted) == formula(operand, shifted));
    CHECK(read_back(operand, {1024 + 3 * span, 16, 8 * span, 0, swizzle}) == formula(operand, {1024, 16, 8 * span, 0, swizzle}, 3, 0));
  }
  CHECK(read_back(operand, {1024, 16, 1024, 3, Swizzle::k128B}) != read_back(operand, {1024, 16, 1024, 0, Swizzle::k128B}));
}

TEST_CASE("a K-major operand may start at any 16 bytes", "[V:desc-any-start]") {
  const Tile operand{};
  for (const std::uint32_t start : {16u, 48u, 1024u + 80u, 4096u + 112u}) {
    CHECK(read_back(operand, {start, 16, 1024, 0, Swizzle::k128B}) == formula(operand, {start, 16, 1024, 0, Swizzle::k128B}));
  }
}

TEST_CASE("an address that is not masked spoils LBO: MN-major operands of rank 1 only", "[V:desc-address-mask]") {
  const std::string unmasked = "cvt.u64.u32 %d0, %smem; shr.u64 %d0, %d0, 4;\n";
  const SmemDescriptor k_major{0, 16, 1024, 0, Swizzle::k128B}, mn_major{0, 8192, 1024, 0, Swizzle::k128B};
  const Tile b{}, transposed{.is_mn_major = true, .rows = 136};
  const std::vector<Places> right = read_back(b, k_major, 2, unmasked);
  CHECK(right[0] == formula(b, k_major));
  CHECK(right[1] == formula(b, k_major));
  const std::vector<Places> spoilt = read_back(transposed, mn_major, 2, unmasked);
  CHECK(spoilt[0] == formula(transposed, mn_major));
  CHECK(spoilt[1] != formula(transposed, mn_major));
  const std::vector<Places> masked = read_back(transposed, mn_major, 2, address_field());
  CHECK(masked[1] == formula(transposed, mn_major));
}

}  // namespace kw::simulate
