// Tensor maps by the driver.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tuner/device/kernel_launch.h"

namespace kw::tuner {
namespace {

/// CUtensorMapDataType: CUDA Driver API, cuda.h.
std::optional<int> data_type(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 6;
    case DType::kF32:
      return 7;
    case DType::kF64:
      return 8;
    case DType::kBF16:
      return 9;
    default:
      return std::nullopt;
  }
}

/// CUtensorMapSwizzle.
int swizzle_code(int bytes) { return bytes == 128 ? 3 : bytes == 64 ? 2 : bytes == 32 ? 1 : 0; }

constexpr int kPromotion128B = 2;  // CU_TENSOR_MAP_L2_PROMOTION_L2_128B; 256 bytes cost 7 % of a stream on an H200

std::string to_text(const EvaluatedTensorMap& map) {
  return fmt::format("{} at {:#x}, extents [{}], strides [{}] bytes, box [{}], swizzle {} bytes", kw::to_text(map.dtype), map.address,
                     fmt::join(map.extents, ", "), fmt::join(map.strides_bytes, ", "), fmt::join(map.box, ", "), map.swizzle_bytes);
}

Error refused(const EvaluatedTensorMap& map, const std::string& why) {
  return Error{Stage::kDevice, Code::kDevice, fmt::format("tensor map of {}: {}", to_text(map), why), {}, {}};
}

}  // namespace

EncodeTensorMap tensor_map_encoder(const DriverApi& driver) {
  return [&driver](const EvaluatedTensorMap& map) -> Result<TensorMapBytes> {
    if (driver.tensor_map_encode == nullptr) return fail(refused(map, "the driver has no cuTensorMapEncodeTiled"));
    const std::optional<int> type = data_type(map.dtype);
    if (!type) return fail(refused(map, "TMA has no such element type"));
    alignas(64) TensorMapBytes bytes{};
    const std::vector<std::uint32_t> element_strides(map.extents.size(), 1);
    const int code = driver.tensor_map_encode(bytes.data(), *type, static_cast<unsigned int>(map.extents.size()), map.address,
                                              map.extents.data(), map.strides_bytes.data(), map.box.data(), element_strides.data(), 0,
                                              swizzle_code(map.swizzle_bytes), kPromotion128B, 0);
    if (code != 0) return fail(refused(map, cuda_fault(driver, code, "cuTensorMapEncodeTiled").text));
    return bytes;
  };
}

}  // namespace kw::tuner
