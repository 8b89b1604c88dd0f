// Which bytes one TMA box moves. Rules tried on an H200: rows follow dimensions 1..4 in order; the row pitch is the inner box bytes without
// a swizzle and the span with one; the swizzle XORs absolute shared-memory address bits; loads count and fill the full box, stores clip.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "simulator/tensor/tensor_map.h"

namespace kw::simulate {
namespace {

constexpr std::uint32_t kSmemAlignmentBytes = 128;
constexpr std::uint32_t kChunkBytes = 16;

/// Elements of a box along a dimension; without interleave dimension 0 has no element stride.
std::uint32_t box_count(const TensorMap& map, int dimension) {
  const auto d = static_cast<std::size_t>(dimension);
  if (dimension == 0) return map.box[0];
  return (map.box[d] + map.element_strides[d] - 1) / map.element_strides[d];
}

std::uint32_t num_rows(const TensorMap& map) {
  std::uint32_t rows = 1;
  for (int dimension = 1; dimension < map.rank; ++dimension) rows *= box_count(map, dimension);
  return rows;
}

std::uint32_t inner_bytes(const TensorMap& map) { return map.box[0] * static_cast<std::uint32_t>(size_bytes(map.type)); }

std::uint32_t row_pitch(const TensorMap& map) {
  return map.swizzle == TensorMapSwizzle::kNone ? inner_bytes(map) : static_cast<std::uint32_t>(swizzle_span_bytes(map.swizzle));
}

std::uint32_t swizzled(TensorMapSwizzle swizzle, std::uint32_t linear) {
  const std::uint32_t mask = static_cast<std::uint32_t>(swizzle_span_bytes(swizzle)) / 16 - 1;
  return linear ^ (linear >> 7 & mask) << 4;
}

std::vector<TileTrap> find_traps(const TensorMap& map, TileDirection direction, std::span<const std::int32_t> coordinates,
                                 std::uint32_t smem_address) {
  std::vector<TileTrap> traps;
  const std::int64_t inner_offset = static_cast<std::int64_t>(coordinates[0]) * size_bytes(map.type);
  if (inner_offset % 16 != 0) {
    traps.push_back({TileTrap::Kind::kIllegalInstruction,
                     fmt::format("coordinate 0 = {} is byte {}: must be a multiple of 16 bytes", coordinates[0], inner_offset)});
  }
  for (std::size_t dimension = 0; direction == TileDirection::kStore && dimension < coordinates.size(); ++dimension) {
    if (coordinates[dimension] < 0) {
      traps.push_back({TileTrap::Kind::kIllegalInstruction,
                       fmt::format("coordinate {} = {}: a store takes no negative coordinate", dimension, coordinates[dimension])});
    }
  }
  if (smem_address % kSmemAlignmentBytes != 0) {
    traps.push_back(
        {TileTrap::Kind::kMisalignedAddress,
         fmt::format("shared address 0x{:x}: must be a multiple of {} also without a swizzle", smem_address, kSmemAlignmentBytes)});
  }
  return traps;
}

/// A row of the box: where it starts in memory (coordinate 0 included) and whether dimensions 1.. are inside the tensor.
struct BoxRow {
  std::uint64_t global_address;
  bool is_inside;
};
BoxRow box_row(const TensorMap& map, std::span<const std::int32_t> coordinates, std::uint32_t row) {
  BoxRow result{map.global_address + static_cast<std::uint64_t>(static_cast<std::int64_t>(coordinates[0]) * size_bytes(map.type)), true};
  for (int dimension = 1; dimension < map.rank; ++dimension) {
    const auto d = static_cast<std::size_t>(dimension);
    const std::uint32_t count = box_count(map, dimension);
    const std::int64_t coordinate = coordinates[d] + static_cast<std::int64_t>(row % count) * map.element_strides[d];
    row /= count;
    result.is_inside &= coordinate >= 0 && static_cast<std::uint64_t>(coordinate) < map.extents[d];
    result.global_address += static_cast<std::uint64_t>(coordinate) * map.strides_bytes[d - 1];
  }
  return result;
}

/// Bytes [begin, end) of a row, of one kind; cut at 16-byte chunks of shared memory when swizzled.
void add_run(const TensorMap& map, const BoxRow& row, std::uint32_t smem_row, std::uint32_t begin, std::uint32_t end, bool is_outside,
             std::vector<TileSegment>& segments) {
  while (begin < end) {
    const bool is_swizzled = map.swizzle != TensorMapSwizzle::kNone;
    const std::uint32_t stop = is_swizzled ? std::min(end, (begin / kChunkBytes + 1) * kChunkBytes) : end;
    const std::uint32_t linear = smem_row + begin;
    segments.push_back({.global_address = row.global_address + begin,
                        .smem_address = is_swizzled ? swizzled(map.swizzle, linear) : linear,
                        .bytes = stop - begin,
                        .is_out_of_bounds = is_outside});
    begin = stop;
  }
}

}  // namespace

std::uint32_t box_bytes(const TensorMap& map) { return num_rows(map) * inner_bytes(map); }
std::uint32_t box_smem_bytes(const TensorMap& map) { return num_rows(map) * row_pitch(map); }

std::uint64_t fill_pattern(const TensorMap& map) { return map.fill == TensorMapFill::kNan ? 0x7ff77ff77ff77ff7ull : 0; }

TilePlan plan_tile(const TensorMap& map, TileDirection direction, std::span<const std::int32_t> coordinates, std::uint32_t smem_address) {
  KW_CHECK(static_cast<int>(coordinates.size()) == map.rank, "a tile has one coordinate a dimension");
  TilePlan plan{.segments = {}, .traps = find_traps(map, direction, coordinates, smem_address)};
  if (!plan.traps.empty()) return plan;
  // In-bounds bytes of every row: [inside_begin, inside_end).
  const std::int64_t es = size_bytes(map.type), width = inner_bytes(map);
  const std::int64_t to_end = (static_cast<std::int64_t>(map.extents[0]) - coordinates[0]) * es;
  const auto inside_begin = static_cast<std::uint32_t>(std::clamp<std::int64_t>(-static_cast<std::int64_t>(coordinates[0]) * es, 0, width));
  const auto inside_end = static_cast<std::uint32_t>(std::clamp<std::int64_t>(to_end, inside_begin, width));
  const bool is_load = direction == TileDirection::kLoad;
  for (std::uint32_t row_index = 0; row_index < num_rows(map); ++row_index) {
    const BoxRow row = box_row(map, coordinates, row_index);
    const std::uint32_t smem_row = smem_address + row_index * row_pitch(map);
    const std::uint32_t begin = row.is_inside ? inside_begin : inner_bytes(map), end = row.is_inside ? inside_end : inner_bytes(map);
    if (is_load) add_run(map, row, smem_row, 0, begin, true, plan.segments);
    add_run(map, row, smem_row, begin, end, false, plan.segments);
    if (is_load) add_run(map, row, smem_row, end, inner_bytes(map), true, plan.segments);
  }
  return plan;
}

}  // namespace kw::simulate
