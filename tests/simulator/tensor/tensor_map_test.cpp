// Tensor maps: the driver's refusals, the bytes a box moves (against a walk over single elements), the traps, reductions.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/tensor/tensor_map.h"

#include <bit>
#include <cstring>
#include <map>

#include "simulator/tensor/tile_generator.h"
#include "tests/catch.h"

namespace kw::simulate {
namespace {

TensorMap matrix_map() {
  return {.type = TensorMapType::kBF16,
          .rank = 2,
          .global_address = 0x1000,
          .extents = {1000, 300},
          .strides_bytes = {2048},
          .box = {64, 128},
          .swizzle = TensorMapSwizzle::k128B};
}

std::string refusal(const TensorMap& map) {
  const Status status = check_tensor_map(map);
  return status ? "" : status.error().message;
}

/// Element by element: shared address -> global address, or 0 when out of bounds.
std::map<std::uint32_t, std::uint64_t> walk(const TensorMap& map, std::array<std::int32_t, 5> at, std::uint32_t smem) {
  std::map<std::uint32_t, std::uint64_t> result;
  const auto es = static_cast<std::uint32_t>(size_bytes(map.type));
  const std::uint32_t span = map.swizzle == TensorMapSwizzle::k128B  ? 128
                             : map.swizzle == TensorMapSwizzle::k64B ? 64
                             : map.swizzle == TensorMapSwizzle::k32B ? 32
                                                                     : 0;
  const std::uint32_t pitch = span == 0 ? map.box[0] * es : span;
  std::array<std::uint32_t, 5> count{1, 1, 1, 1, 1};
  for (std::size_t d = 0; d < static_cast<std::size_t>(map.rank); ++d) {
    count[d] = d == 0 ? map.box[0] : (map.box[d] + map.element_strides[d] - 1) / map.element_strides[d];
  }
  std::uint32_t row = 0;
  for (std::uint32_t i4 = 0; i4 < count[4]; ++i4)
    for (std::uint32_t i3 = 0; i3 < count[3]; ++i3)
      for (std::uint32_t i2 = 0; i2 < count[2]; ++i2)
        for (std::uint32_t i1 = 0; i1 < count[1]; ++i1, ++row)
          for (std::uint32_t i0 = 0; i0 < count[0]; ++i0) {
            const std::array<std::uint32_t, 5> index{i0, i1, i2, i3, i4};
            std::uint64_t address = map.global_address;
            bool is_inside = true;
            for (std::size_t d = 0; d < static_cast<std::size_t>(map.rank); ++d) {
              const std::int64_t c = at[d] + static_cast<std::int64_t>(index[d]) * (d == 0 ? 1 : map.element_strides[d]);
              is_inside &= c >= 0 && c < static_cast<std::int64_t>(map.extents[d]);
              address += static_cast<std::uint64_t>(c * static_cast<std::int64_t>(d == 0 ? es : map.strides_bytes[d - 1]));
            }
            std::uint32_t linear = smem + row * pitch + i0 * es;
            if (span != 0) linear ^= (linear / 128 % (span / 16)) * 16;
            result[linear] = is_inside ? address : 0;
          }
  return result;
}

/// The same map from a plan; segments of stores leave the out-of-bounds elements away.
std::map<std::uint32_t, std::uint64_t> from_plan(const TensorMap& map, const TilePlan& plan) {
  std::map<std::uint32_t, std::uint64_t> result;
  const auto es = static_cast<std::uint32_t>(size_bytes(map.type));
  for (const TileSegment& segment : plan.segments) {
    for (std::uint32_t byte = 0; byte < segment.bytes; byte += es) {
      const bool is_new = result.emplace(segment.smem_address + byte, segment.is_out_of_bounds ? 0 : segment.global_address + byte).second;
      REQUIRE(is_new);
    }
  }
  return result;
}

}  // namespace

TEST_CASE("a tensor map is refused for what the driver refuses, by name") {
  CHECK(refusal(matrix_map()).empty());
  const auto changed = [](auto&& change) {
    TensorMap map = matrix_map();
    change(map);
    return refusal(map);
  };
  CHECK(changed([](TensorMap& m) { m.box[1] = 257; }) == "tensor map: box 1 = 257: must be 1 to 256");
  CHECK(changed([](TensorMap& m) { m.box[0] = 4; }).find("must be a multiple of 16 bytes") != std::string::npos);
  CHECK(changed([](TensorMap& m) { m.box[0] = 72; }) == "tensor map: box 0 is 144 bytes wide: more than the swizzle span of 128");
  CHECK(changed([](TensorMap& m) { m.strides_bytes[0] = 24; }).find("stride of dimension 1 = 24") != std::string::npos);
  CHECK_FALSE(changed([](TensorMap& m) { m.strides_bytes[0] = 1ull << 40; }).empty());
  CHECK_FALSE(changed([](TensorMap& m) { m.global_address = 8; }).empty());
  CHECK_FALSE(changed([](TensorMap& m) { m.extents[1] = 0; }).empty());
  CHECK_FALSE(changed([](TensorMap& m) { m.rank = 6; }).empty());
  CHECK_FALSE(changed([](TensorMap& m) { m.element_strides[1] = 0; }).empty());
  CHECK_FALSE(changed([](TensorMap& m) { m.type = TensorMapType::kU16, m.fill = TensorMapFill::kNan; }).empty());
  CHECK_FALSE(changed([](TensorMap& m) { m.type = TensorMapType::kF32, m.swizzle = TensorMapSwizzle::kNone, m.box = {256, 256}; }).empty());
  CHECK_FALSE(changed([](TensorMap& m) { m.type = TensorMapType::kTF32, m.box[0] = 32; }).empty());
}

TEST_CASE("what the driver accepts is accepted") {
  const auto is_fine = [](auto&& change) {
    TensorMap map = matrix_map();
    change(map);
    return refusal(map).empty();
  };
  CHECK(is_fine([](TensorMap& m) { m.extents = {61, 3}; }));  // box larger than the tensor, odd extent
  CHECK(is_fine([](TensorMap& m) { m.extents[1] = 1ull << 32; }));
  CHECK(is_fine([](TensorMap& m) { m.strides_bytes[0] = 0; }));                                   // broadcast
  CHECK(is_fine([](TensorMap& m) { m.swizzle = TensorMapSwizzle::kNone, m.box = {256, 256}; }));  // 128 KB
}

TEST_CASE("a map survives its 128 bytes, and other bytes are no map") {
  TensorMap map = matrix_map();
  map.rank = 5;
  map.extents = {1ull << 32, 7, 1, 3, 9};
  map.strides_bytes = {16, 0, (1ull << 40) - 16, 4096};
  map.box = {64, 256, 1, 1, 1};
  map.element_strides = {1, 8, 1, 2, 1};
  const auto bytes = encode_tensor_map(map);
  REQUIRE(bytes.has_value());
  const Result<TensorMap> back = decode_tensor_map(*bytes);
  REQUIRE(back.has_value());
  CHECK(to_text(*back) == to_text(map));
  CHECK(back->element_strides == map.element_strides);
  CHECK(back->swizzle == map.swizzle);
  std::array<std::uint8_t, kTensorMapBytes> other{};
  CHECK(decode_tensor_map(other).error().message == "tensor map: the 128 bytes at this address are no tensor map");
  other = *bytes;
  other[8] = 200;
  CHECK_FALSE(decode_tensor_map(other).has_value());
}

TEST_CASE("a plan moves the bytes that a walk over single elements moves") {
  std::uint64_t hash = 1;
  for (int trial = 0; trial < 300; ++trial) {
    hash = mix_bits(hash);
    TensorMap map;
    static constexpr TensorMapType kTypes[] = {TensorMapType::kU8, TensorMapType::kBF16, TensorMapType::kF32, TensorMapType::kF64};
    map.type = kTypes[hash & 3];
    map.swizzle = static_cast<TensorMapSwizzle>(hash >> 2 & 3);
    map.rank = 1 + static_cast<int>(hash >> 4 & 0xff) % 5;
    map.global_address = 0x100000;
    const int es = size_bytes(map.type);
    const int span = map.swizzle == TensorMapSwizzle::kNone ? 80 : swizzle_span_bytes(map.swizzle);
    map.box[0] = static_cast<std::uint32_t>(16 * (1 + static_cast<int>(hash >> 12 & 0xff) % (span / 16)) / es);
    std::array<std::int32_t, 5> at{};
    for (std::size_t d = 0; d < static_cast<std::size_t>(map.rank); ++d) {
      map.extents[d] = 1 + (hash >> (20 + d)) % 60;
      if (d > 0) map.box[d] = static_cast<std::uint32_t>(1 + (hash >> (24 + d)) % 5);
      if (d > 0) map.strides_bytes[d - 1] = 16 * ((hash >> (30 + d)) % 500);
      if (d > 0) map.element_strides[d] = static_cast<std::uint32_t>(1 + (hash >> (40 + d)) % 3);
      at[d] = static_cast<std::int32_t>((hash >> (44 + d)) % 24) - 8;
    }
    at[0] = at[0] * 16 / es;
    const std::uint32_t smem = 0x2000 + 128 * static_cast<std::uint32_t>(hash >> 50 & 15);
    REQUIRE(check_tensor_map(map).has_value());
    const auto coordinates = std::span<const std::int32_t>(at).first(static_cast<std::size_t>(map.rank));
    const TilePlan load = plan_tile(map, TileDirection::kLoad, coordinates, smem);
    REQUIRE(load.traps.empty());
    auto expected = walk(map, at, smem);
    REQUIRE(from_plan(map, load) == expected);
    std::uint32_t bytes = 0;
    for (const TileSegment& segment : load.segments) bytes += segment.bytes;
    REQUIRE(bytes == box_bytes(map));
    for (auto& coordinate : at) coordinate = std::abs(coordinate);
    const TilePlan store = plan_tile(map, TileDirection::kStore, coordinates, smem);
    REQUIRE(store.traps.empty());
    expected = walk(map, at, smem);
    std::erase_if(expected, [](const auto& element) { return element.second == 0; });
    REQUIRE(from_plan(map, store) == expected);
  }
}

TEST_CASE("element strides {1, 2} with box {16, 8} load four rows") {
  TensorMap map = matrix_map();
  map.swizzle = TensorMapSwizzle::kNone;
  map.box = {16, 8};
  map.element_strides = {1, 2};
  CHECK(box_bytes(map) == 4 * 32);
  const std::int32_t at[] = {0, 10};
  const TilePlan plan = plan_tile(map, TileDirection::kLoad, at, 0);
  REQUIRE(plan.segments.size() == 4);
  CHECK(plan.segments[3].global_address == 0x1000 + 16 * 2048);
}

TEST_CASE("a narrow box under a swizzle has rows a span apart") {
  TensorMap map = matrix_map();
  map.box = {24, 16};  // 48 bytes
  CHECK(box_bytes(map) == 48 * 16);
  CHECK(box_smem_bytes(map) == 128 * 16);
}

TEST_CASE("the hardware's traps are named and nothing moves") {
  const TensorMap map = matrix_map();
  const std::int32_t odd[] = {4, 0}, negative[] = {0, -1}, fine[] = {0, 0};
  const TilePlan unaligned = plan_tile(map, TileDirection::kLoad, odd, 0x400);
  REQUIRE(unaligned.traps.size() == 1);
  CHECK(unaligned.traps[0].kind == TileTrap::Kind::kIllegalInstruction);
  CHECK(unaligned.traps[0].rule == "coordinate 0 = 4 is byte 8: must be a multiple of 16 bytes");
  CHECK(unaligned.segments.empty());
  CHECK(plan_tile(map, TileDirection::kLoad, negative, 0x400).traps.empty());
  CHECK(plan_tile(map, TileDirection::kStore, negative, 0x400).traps.size() == 1);
  const TilePlan misaligned = plan_tile(map, TileDirection::kStore, fine, 0x440);
  REQUIRE(misaligned.traps.size() == 1);
  CHECK(misaligned.traps[0].kind == TileTrap::Kind::kMisalignedAddress);
}

TEST_CASE("NaN fill is 0x7ff7 in every 16 bits") {
  TensorMap map = matrix_map();
  CHECK(fill_pattern(map) == 0);
  map.fill = TensorMapFill::kNan;
  CHECK(fill_pattern(map) == 0x7ff77ff77ff77ff7ull);
}

TEST_CASE("bulk reductions combine element by element") {
  const auto combined = [](BulkReduce op, TensorMapType type, std::uint32_t old_value, std::uint32_t operand) {
    std::array<std::uint8_t, 4> source, destination;
    std::memcpy(source.data(), &operand, 4);
    std::memcpy(destination.data(), &old_value, 4);
    bulk_reduce(op, type, source, destination);
    std::memcpy(&old_value, destination.data(), 4);
    return old_value;
  };
  const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  CHECK(combined(BulkReduce::kAdd, TensorMapType::kF32, bits(1.5f), bits(2.25f)) == bits(3.75f));
  CHECK(combined(BulkReduce::kAdd, TensorMapType::kBF16, 0x3f803f80, 0x40003f80) == 0x40404000);  // 1 + 2, 1 + 1
  CHECK(combined(BulkReduce::kMax, TensorMapType::kF16, 0x3c00c000, 0x40003c00) == 0x40003c00);
  CHECK(combined(BulkReduce::kMin, TensorMapType::kS32, 5, 0xffffffff) == 0xffffffff);
  CHECK(combined(BulkReduce::kMin, TensorMapType::kU32, 5, 0xffffffff) == 5);
  CHECK(combined(BulkReduce::kInc, TensorMapType::kU32, 7, 7) == 0);
  CHECK(combined(BulkReduce::kDec, TensorMapType::kU32, 0, 7) == 7);
  CHECK(combined(BulkReduce::kXor, TensorMapType::kU32, 6, 3) == 5);
  CHECK(check_bulk_reduce(BulkReduce::kAdd, TensorMapType::kF32).has_value());
  CHECK(check_bulk_reduce(BulkReduce::kMin, TensorMapType::kF32).error().message ==
        "cp.reduce.async.bulk.min on f32: PTX has no such combination");
}

}  // namespace kw::simulate
