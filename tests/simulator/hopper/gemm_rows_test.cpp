// Rows on whole operands: the recipes from a tensor map to a descriptor, exact from end to end, and fp8 in every layout it has.
// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/hopper/gemm_case.h"

namespace kw::simulate {
namespace {

constexpr Swizzle kAllSwizzles[] = {Swizzle::k128B, Swizzle::k64B, Swizzle::k32B, Swizzle::kNone};

}  // namespace

TEST_CASE("a K-major operand by TMA in boxes of a span is exact at every swizzle", "[V:recipe-k-major]") {
  for (const Swizzle swizzle : kAllSwizzles) {
    check_product({.swizzle_a = swizzle, .swizzle_b = swizzle});
    check_product({.type = "tf32", .swizzle_a = swizzle, .swizzle_b = swizzle});
  }
}

TEST_CASE("an MN-major B, and A and B together, by TMA are exact at every swizzle", "[V:recipe-mn-major]") {
  for (const Swizzle swizzle : kAllSwizzles) {
    check_product({.n = 128, .swizzle_b = swizzle, .is_b_mn_major = true});
    check_product({.n = 128, .swizzle_a = swizzle, .swizzle_b = swizzle, .is_a_mn_major = true, .is_b_mn_major = true});
    check_product({.type = "f16", .n = 64, .swizzle_a = swizzle, .is_a_mn_major = true});
  }
}

TEST_CASE("the literals of the 128B recipes are what the fields say", "[V:recipe-literals]") {
  const GemmOperand k_major{.type = "bf16"}, mn_major{.type = "bf16", .is_mn_major = true};
  CHECK(descriptor_bits({0x12340, 16, 1024, 0, Swizzle::k128B}) == (1ull << 62 | 64ull << 32 | 1ull << 16 | 0x12340 >> 4));
  CHECK(descriptor_bits(k_major.descriptor(0)) == (1ull << 62 | 64ull << 32 | 1ull << 16));
  CHECK(descriptor_bits(k_major.descriptor(1)) - descriptor_bits(k_major.descriptor(0)) == 2);
  CHECK(descriptor_bits(mn_major.descriptor(0)) == (1ull << 62 | 64ull << 32 | 512ull << 16));
  CHECK(descriptor_bits(mn_major.descriptor(1)) - descriptor_bits(mn_major.descriptor(0)) == 128);
}

TEST_CASE("TMA and wgmma agree on a tile that is 128-aligned only", "[V:tma-128-aligned-tile]") {
  for (const std::uint32_t start : {128u, 384u, 896u}) check_product({.start_bytes = start});
}

TEST_CASE("fp8 and s8 products from shared memory and from registers at 128B, e4m3 at every swizzle", "[V:fp8-layouts]") {
  for (const bool is_a_in_registers : {false, true}) {
    check_product({.type = "e4m3", .is_a_in_registers = is_a_in_registers});
    check_product({.type = "e5m2", .is_a_in_registers = is_a_in_registers});
    check_product({.type = "e4m3", .type_b = "e5m2", .is_a_in_registers = is_a_in_registers});
    check_product({.type = "s8", .type_d = "s32", .is_a_in_registers = is_a_in_registers});
    for (const Swizzle swizzle : kAllSwizzles) {
      check_product({.type = "e4m3", .swizzle_a = swizzle, .swizzle_b = swizzle, .is_a_in_registers = is_a_in_registers});
    }
  }
}

}  // namespace kw::simulate
