// Rules of cuTensorMapEncodeTiled (CUDA driver API; what an H200's driver refuses and accepts was tried), and our 128 bytes.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/tensor/tensor_map.h"

#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kw::simulate {
namespace {

constexpr std::array<std::uint8_t, 8> kMagic = {'k', 'w', 't', 'm', 'a', 'p', '0', '1'};
constexpr std::uint64_t kMaxExtent = std::uint64_t{1} << 32;
constexpr std::uint64_t kStrideLimit = std::uint64_t{1} << 40;
constexpr std::uint32_t kMaxBox = 256;
constexpr std::uint32_t kMaxElementStride = 8;
// A box of 128 KB was accepted and one of 256 KB refused on an H200; nothing between was tried.
constexpr std::uint64_t kRefusedBoxBytes = 256 * 1024;

bool is_float(TensorMapType type) {
  return type == TensorMapType::kF16 || type == TensorMapType::kF32 || type == TensorMapType::kF64 || type == TensorMapType::kBF16 ||
         static_cast<int>(type) > static_cast<int>(TensorMapType::kBF16);
}

tl::unexpected<Error> refuse(std::string message) { return fail(Stage::kVerify, Code::kBadInput, "tensor map: " + std::move(message)); }

Status check_dimension(const TensorMap& map, int dimension) {
  const auto d = static_cast<std::size_t>(dimension);
  if (map.extents[d] == 0 || map.extents[d] > kMaxExtent) {
    return refuse(fmt::format("extent {} = {}: must be 1 to 2^32", dimension, map.extents[d]));
  }
  if (map.box[d] == 0 || map.box[d] > kMaxBox) return refuse(fmt::format("box {} = {}: must be 1 to {}", dimension, map.box[d], kMaxBox));
  if (map.element_strides[d] == 0 || map.element_strides[d] > kMaxElementStride) {
    return refuse(fmt::format("element stride {} = {}: must be 1 to {}", dimension, map.element_strides[d], kMaxElementStride));
  }
  if (dimension == 0) return {};
  const std::uint64_t stride = map.strides_bytes[d - 1];
  if (stride % 16 != 0 || stride >= kStrideLimit) {
    return refuse(fmt::format("stride of dimension {} = {} bytes: must be a multiple of 16 below 2^40", dimension, stride));
  }
  return {};
}

/// Little-endian fields one after another.
class FieldWriter {
 public:
  explicit FieldWriter(std::span<std::uint8_t> bytes) : bytes_(bytes) {}
  void put(std::uint64_t value, std::size_t size) {
    std::memcpy(bytes_.data() + position_, &value, size);
    position_ += size;
  }

 private:
  std::span<std::uint8_t> bytes_;
  std::size_t position_ = 0;
};

class FieldReader {
 public:
  explicit FieldReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::uint64_t get(std::size_t size) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + position_, size);
    position_ += size;
    return value;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t position_ = 0;
};

}  // namespace

int size_bytes(TensorMapType type) {
  switch (type) {
    case TensorMapType::kU8:
      return 1;
    case TensorMapType::kU16:
    case TensorMapType::kF16:
    case TensorMapType::kBF16:
      return 2;
    case TensorMapType::kU64:
    case TensorMapType::kS64:
    case TensorMapType::kF64:
      return 8;
    case TensorMapType::kU32:
    case TensorMapType::kS32:
    case TensorMapType::kF32:
    case TensorMapType::kF32Ftz:
    case TensorMapType::kTF32:
    case TensorMapType::kTF32Ftz:
      return 4;
  }
  KW_CHECK(false, "a tensor map type outside the enum");
}

std::string_view to_text(TensorMapType type) {
  static constexpr std::string_view kNames[] = {"u8",  "u16", "u32",  "s32",     "u64",  "s64",     "f16",
                                                "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz"};
  return kNames[static_cast<std::size_t>(type)];
}

Status check_tensor_map(const TensorMap& map) {
  if (map.rank < 1 || map.rank > kMaxTensorRank) return refuse(fmt::format("rank {}: must be 1 to {}", map.rank, kMaxTensorRank));
  if (static_cast<int>(map.type) > static_cast<int>(TensorMapType::kBF16)) {
    return fail(
        Stage::kVerify, Code::kNotSupported,
        fmt::format("tensor map: type {}: TMA changes the values of this type and how is not documented; use f32", to_text(map.type)));
  }
  if (map.global_address % 16 != 0) return refuse(fmt::format("address 0x{:x}: must be a multiple of 16", map.global_address));
  for (int dimension = 0; dimension < map.rank; ++dimension) KW_TRY_VOID(check_dimension(map, dimension));
  const std::uint32_t inner_bytes = map.box[0] * static_cast<std::uint32_t>(size_bytes(map.type));
  if (inner_bytes % 16 != 0) {
    return refuse(
        fmt::format("box 0 = {} elements of {} = {} bytes: must be a multiple of 16 bytes", map.box[0], to_text(map.type), inner_bytes));
  }
  if (map.swizzle != TensorMapSwizzle::kNone && inner_bytes > static_cast<std::uint32_t>(swizzle_span_bytes(map.swizzle))) {
    return refuse(fmt::format("box 0 is {} bytes wide: more than the swizzle span of {}", inner_bytes, swizzle_span_bytes(map.swizzle)));
  }
  std::uint64_t bytes = static_cast<std::uint64_t>(size_bytes(map.type));
  for (int dimension = 0; dimension < map.rank; ++dimension) bytes *= map.box[static_cast<std::size_t>(dimension)];
  if (bytes >= kRefusedBoxBytes) return refuse(fmt::format("a box of {} bytes: more than shared memory holds", bytes));
  if (map.fill == TensorMapFill::kNan && !is_float(map.type)) {
    return refuse(fmt::format("NaN fill with type {}: only floating types have a NaN", to_text(map.type)));
  }
  return {};
}

int swizzle_span_bytes(TensorMapSwizzle swizzle) { return swizzle == TensorMapSwizzle::kNone ? 16 : 16 << static_cast<int>(swizzle); }

std::array<std::uint8_t, kTensorMapBytes> pack_tensor_map(const TensorMap& map) {
  std::array<std::uint8_t, kTensorMapBytes> bytes{};
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  FieldWriter writer{std::span<std::uint8_t>(bytes).subspan(kMagic.size())};
  writer.put(static_cast<std::uint64_t>(map.type), 1);
  writer.put(static_cast<std::uint64_t>(map.rank), 1);
  writer.put(static_cast<std::uint64_t>(map.swizzle), 1);
  writer.put(static_cast<std::uint64_t>(map.fill), 1);
  writer.put(map.global_address, 8);
  for (const std::uint64_t extent : map.extents) writer.put(extent, 5);
  for (const std::uint64_t stride : map.strides_bytes) writer.put(stride, 5);
  for (const std::uint32_t box : map.box) writer.put(box, 2);
  for (const std::uint32_t stride : map.element_strides) writer.put(stride, 1);
  return bytes;
}

Result<TensorMap> unpack_tensor_map(std::span<const std::uint8_t, kTensorMapBytes> bytes) {
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) return refuse("the 128 bytes at this address are no tensor map");
  FieldReader reader(bytes.subspan(kMagic.size()));
  TensorMap map;
  const std::uint64_t type = reader.get(1), rank = reader.get(1), swizzle = reader.get(1), fill = reader.get(1);
  if (type > 12 || rank > kMaxTensorRank || swizzle > 3 || fill > 1) return refuse("the 128 bytes at this address have been overwritten");
  map.type = static_cast<TensorMapType>(type);
  map.rank = static_cast<int>(rank);
  map.swizzle = static_cast<TensorMapSwizzle>(swizzle);
  map.fill = static_cast<TensorMapFill>(fill);
  map.global_address = reader.get(8);
  for (std::uint64_t& extent : map.extents) extent = reader.get(5);
  for (std::uint64_t& stride : map.strides_bytes) stride = reader.get(5);
  for (std::uint32_t& box : map.box) box = static_cast<std::uint32_t>(reader.get(2));
  for (std::uint32_t& stride : map.element_strides) stride = static_cast<std::uint32_t>(reader.get(1));
  return map;
}

Result<std::array<std::uint8_t, kTensorMapBytes>> encode_tensor_map(const TensorMap& map) {
  KW_TRY_VOID(check_tensor_map(map));
  return pack_tensor_map(map);
}

Result<TensorMap> decode_tensor_map(std::span<const std::uint8_t, kTensorMapBytes> bytes) {
  KW_TRY(const TensorMap map, unpack_tensor_map(bytes));
  KW_TRY_VOID(check_tensor_map(map));
  return map;
}

std::string to_text(const TensorMap& map) {
  static constexpr const char* kSwizzles[] = {"none", "32B", "64B", "128B"};
  const auto rank = static_cast<std::size_t>(map.rank);
  return fmt::format("{} at 0x{:x}, extents [{}], strides [{}] bytes, box [{}], swizzle {}", to_text(map.type), map.global_address,
                     fmt::join(map.extents.begin(), map.extents.begin() + rank, ", "),
                     fmt::join(map.strides_bytes.begin(), map.strides_bytes.begin() + (rank == 0 ? 0 : rank - 1), ", "),
                     fmt::join(map.box.begin(), map.box.begin() + rank, ", "), kSwizzles[static_cast<int>(map.swizzle)]);
}

}  // namespace kw::simulate
