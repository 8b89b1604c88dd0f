// TMA tensor maps: our own struct with the rules of cuTensorMapEncodeTiled, its 128 bytes in memory, and which bytes a tile moves.
// The 128 bytes are our own format (a magic word, then the fields): the driver's is not public, and the host that fills it is ours.
// Copying bytes, bounds of global memory and mbarrier counts are the caller's matter; it walks the TilePlan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "generator/base/error.h"
#include "simulator/tensor/wgmma.h"

namespace kw::simulate {

inline constexpr int kMaxTensorRank = 5;
inline constexpr std::size_t kTensorMapBytes = 128;

/// CUtensorMapDataType, same order and numbers.
enum class TensorMapType {
  kU8 = 0,
  kU16 = 1,
  kU32 = 2,
  kS32 = 3,
  kU64 = 4,
  kS64 = 5,
  kF16 = 6,
  kF32 = 7,
  kF64 = 8,
  kBF16 = 9,
  kF32Ftz = 10,
  kTF32 = 11,
  kTF32Ftz = 12
};
int size_bytes(TensorMapType type);
std::string_view to_text(TensorMapType type);

enum class TensorMapSwizzle { kNone = 0, k32B = 1, k64B = 2, k128B = 3 };  // CUtensorMapSwizzle's numbers
/// 32, 64, 128; none: 16.
int swizzle_span_bytes(TensorMapSwizzle swizzle);
enum class TensorMapFill { kZero = 0, kNan = 1 };

/// The arguments of cuTensorMapEncodeTiled. Dimension 0 is innermost; strides_bytes[d] is of dimension d + 1.
struct TensorMap {
  TensorMapType type = TensorMapType::kBF16;
  int rank = 2;
  std::uint64_t global_address = 0;
  std::array<std::uint64_t, kMaxTensorRank> extents{1, 1, 1, 1, 1};
  std::array<std::uint64_t, kMaxTensorRank - 1> strides_bytes{};
  std::array<std::uint32_t, kMaxTensorRank> box{1, 1, 1, 1, 1};
  std::array<std::uint32_t, kMaxTensorRank> element_strides{1, 1, 1, 1, 1};
  TensorMapSwizzle swizzle = TensorMapSwizzle::kNone;
  TensorMapFill fill = TensorMapFill::kZero;
};

/// Refuses what the driver refuses (box > 256, inner box bytes no multiple of 16 or over the span, strides, alignment, extent 0, ...), and
/// by name the types whose values TMA changes on the way (tf32, the ftz types), because how it rounds is not documented.
Status check_tensor_map(const TensorMap& map);
/// Checks and writes the 128 bytes that a kernel gets. Alignment of the 128 bytes is the caller's matter.
Result<std::array<std::uint8_t, kTensorMapBytes>> encode_tensor_map(const TensorMap& map);
/// Errors: bytes that are no tensor map of ours, or one whose fields break a rule (as tensormap.replace can leave it).
Result<TensorMap> decode_tensor_map(std::span<const std::uint8_t, kTensorMapBytes> bytes);
/// The same without the rules, for tensormap.replace, which changes one field at a time.
std::array<std::uint8_t, kTensorMapBytes> pack_tensor_map(const TensorMap& map);
Result<TensorMap> unpack_tensor_map(std::span<const std::uint8_t, kTensorMapBytes> bytes);
std::string to_text(const TensorMap& map);

/// Bytes of a full box: what the mbarrier of a load counts, out-of-bounds parts included.
std::uint32_t box_bytes(const TensorMap& map);
/// Bytes of shared memory that a box spans: rows are a swizzle span apart when swizzled, else the inner box bytes.
std::uint32_t box_smem_bytes(const TensorMap& map);

/// One run of bytes that is contiguous on both sides (at most 16 bytes when swizzled).
struct TileSegment {
  std::uint64_t global_address = 0;  ///< undefined when out of bounds
  std::uint32_t smem_address = 0;
  std::uint32_t bytes = 0;
  bool is_out_of_bounds = false;  ///< load: fill with fill_pattern(); store: skipped, never listed
};
enum class TileDirection { kLoad = 0, kStore = 1 };

/// A run-time trap of the hardware: what cudaGetLastError would say, and the rule broken.
struct TileTrap {
  enum class Kind { kIllegalInstruction = 0, kMisalignedAddress = 1 } kind;
  std::string rule;
};
struct TilePlan {
  std::vector<TileSegment> segments;
  std::vector<TileTrap> traps;  ///< when not empty, nothing moves
};
/// coordinates: rank of them, in elements, dimension 0 first. smem_address: absolute in the CTA's window (its bits feed the swizzle).
TilePlan plan_tile(const TensorMap& map, TileDirection direction, std::span<const std::int32_t> coordinates, std::uint32_t smem_address);
/// The 8 bytes, repeated, that out-of-bounds elements get.
std::uint64_t fill_pattern(const TensorMap& map);

/// cp.reduce.async.bulk[.tensor]: combines `bytes` bytes of elements into memory, `destination = destination op source`.
enum class BulkReduce { kAdd = 0, kMin = 1, kMax = 2, kInc = 3, kDec = 4, kAnd = 5, kOr = 6, kXor = 7 };
/// Errors: combinations PTX does not have (f32 takes add only, ...).
Status check_bulk_reduce(BulkReduce op, TensorMapType type);
void bulk_reduce(BulkReduce op, TensorMapType type, std::span<const std::uint8_t> source, std::span<std::uint8_t> destination);

}  // namespace kw::simulate
