// The hot loops compiled for the baseline and for AVX2 give the same bits.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/tensor/sum_kernels.h"

#include <array>
#include <bit>
#include <memory>
#include <vector>

#include "simulator/tensor/host_features.h"
#include "simulator/tensor/tile_generator.h"
#include "tests/catch.h"

namespace kw::simulate {

#if KW_HAS_AVX2_PATH
TEST_CASE("the baseline's and AVX2's loops agree bit for bit on every style of tile") {
  if (!kHasAvx2) return;
  using enum ElementType;
  const auto a = std::make_unique<DecodedOperand>(), b = std::make_unique<DecodedOperand>();
  for (int trial = 0; trial < 400; ++trial) {
    const ElementType type = std::array{kF16, kBF16, kTF32, kE4M3}[static_cast<std::size_t>(trial / 8 % 4)];
    const ElementType accumulator = type == kF16 && trial % 3 == 0 ? kF16 : kF32;
    const int k_extent = 32 / size_bytes(type), rows = 16, columns = 24;
    const auto style = static_cast<TileStyle>(trial % kNumTileStyles);
    const auto bits_of = [&](int operand, int lines) {
      std::vector<std::uint32_t> bits;
      for (int line = 0; line < lines; ++line) {
        for (int k = 0; k < k_extent; ++k)
          bits.push_back(static_cast<std::uint32_t>(tile_element(type, style, tile_key(1, trial, operand), operand, line, k)));
      }
      return bits;
    };
    decode_operand(type, bits_of(0, rows).data(), rows, k_extent, false, *a);
    decode_operand(type, bits_of(1, columns).data(), columns, k_extent, true, *b);
    std::vector<float> c, baseline(static_cast<std::size_t>(rows * columns)), avx2(baseline.size());
    for (int index = 0; index < rows * columns; ++index) {
      const auto bits = static_cast<std::uint32_t>(tile_element(kF32, style, tile_key(1, trial, 2), 2, index, 0));
      c.push_back(accumulator == kF16 ? round_to_f16(std::bit_cast<float>(bits)) : std::bit_cast<float>(bits));
    }
    const SumRule rule = sum_rule(TensorArch::kSm90, TensorUnit::kWgmma, type, accumulator);
    exact_block_baseline({rule, *a, *b, 0, k_extent, c.data(), baseline.data()});
    exact_block_avx2({rule, *a, *b, 0, k_extent, c.data(), avx2.data()});
    REQUIRE(std::equal(baseline.begin(), baseline.end(), avx2.begin(),
                       [](float x, float y) { return std::bit_cast<int>(x) == std::bit_cast<int>(y); }));
    fast_product_baseline({*a, *b, accumulator == kF16, c.data(), baseline.data()});
    fast_product_avx2({*a, *b, accumulator == kF16, c.data(), avx2.data()});
    REQUIRE(std::equal(baseline.begin(), baseline.end(), avx2.begin(),
                       [](float x, float y) { return std::bit_cast<int>(x) == std::bit_cast<int>(y); }));
  }
}
#endif

}  // namespace kw::simulate
