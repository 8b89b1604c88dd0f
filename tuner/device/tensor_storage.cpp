// See tensor_storage.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/device/tensor_storage.h"

#include <fmt/format.h>

#include <algorithm>

namespace kw::tuner {
namespace {

constexpr std::int64_t kMaxTensorBytes = std::int64_t{1} << 46;

Result<std::vector<std::int64_t>> evaluate_all(const std::string& tensor, const char* what, const std::vector<IntExpr>& expressions,
                                               const IntBindings& bindings) {
  std::vector<std::int64_t> values;
  for (const IntExpr& expression : expressions) {
    KW_TRY(const std::int64_t value, expression.evaluate(bindings));
    if (value < 0)
      return fail(Stage::kDevice, Code::kBadInput,
                  fmt::format("{}: {} {} = {}: must not be negative", tensor, what, expression.to_text(), value));
    values.push_back(value);
  }
  return values;
}

/// 1 + sum of (extent - 1) * stride, or 0 for an empty tensor; -1 when it is too large.
std::int64_t span_of(const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& strides) {
  std::int64_t span = 1;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] == 0) return 0;
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(extents[axis] - 1, strides[axis], &reach) || __builtin_add_overflow(span, reach, &span) ||
        span > kMaxTensorBytes)
      return -1;
  }
  return span;
}

}  // namespace

Result<std::vector<TensorStorage>> tensor_storages(const LaunchPlan& plan, const Problem& problem) {
  const IntBindings bindings = problem.bindings(plan);
  std::vector<TensorStorage> storages;
  for (const PlanTensor& tensor : plan.tensors) {
    TensorStorage storage;
    storage.name = tensor.name;
    storage.dtype = tensor.dtype;
    storage.role = tensor.role;
    storage.is_list = tensor.is_list;
    KW_TRY(storage.extents, evaluate_all(tensor.name, "extent", tensor.shape, bindings));
    KW_TRY(storage.strides, evaluate_all(tensor.name, "stride", tensor.strides, bindings));
    if (storage.extents.size() != storage.strides.size())
      return fail(Stage::kDevice, Code::kInternal,
                  fmt::format("{}: {} extents, {} strides", tensor.name, storage.extents.size(), storage.strides.size()));
    storage.num_elements = span_of(storage.extents, storage.strides);
    if (storage.num_elements < 0 || storage.num_elements * size_bytes(tensor.dtype) > kMaxTensorBytes) {
      return fail(Stage::kDevice, Code::kBadInput, fmt::format("{}: must be at most 2^46 bytes", tensor.name));
    }
    storage.num_bytes = static_cast<std::size_t>(storage.num_elements) * static_cast<std::size_t>(size_bytes(tensor.dtype));
    std::int64_t num_covered = storage.num_elements == 0 ? 0 : 1;
    for (const std::int64_t extent : storage.extents) num_covered *= num_covered == 0 ? 0 : extent;
    storage.is_dense = num_covered >= storage.num_elements;
    const auto align = problem.align_bytes.find(tensor.name);
    storage.align_bytes = align == problem.align_bytes.end() ? tensor.align_bytes : static_cast<int>(align->second);
    if (storage.align_bytes <= 0 || storage.align_bytes % size_bytes(tensor.dtype) != 0) {
      return fail(Stage::kDevice, Code::kBadInput,
                  fmt::format("{}: alignment {} B: must be a multiple of the element's {} B", tensor.name, storage.align_bytes,
                              size_bytes(tensor.dtype)));
    }
    storages.push_back(std::move(storage));
  }
  return storages;
}

std::vector<std::uint64_t> list_pointers(const TensorStorage& tensor, std::uint64_t base) {
  std::vector<std::uint64_t> pointers;
  for (std::int64_t position = 0; position < tensor.extents.front(); ++position)
    pointers.push_back(base + static_cast<std::uint64_t>(position * tensor.strides.front() * size_bytes(tensor.dtype)));
  return pointers;
}

std::vector<bool> covered_elements(const TensorStorage& tensor) {
  std::vector<bool> is_covered(static_cast<std::size_t>(tensor.num_elements), false);
  if (tensor.num_elements == 0) return is_covered;
  std::vector<std::int64_t> coordinates(tensor.extents.size(), 0);
  while (true) {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < coordinates.size(); ++axis) offset += coordinates[axis] * tensor.strides[axis];
    is_covered[static_cast<std::size_t>(offset)] = true;
    std::size_t axis = coordinates.size();
    while (axis > 0 && ++coordinates[axis - 1] == tensor.extents[axis - 1]) coordinates[--axis] = 0;
    if (axis == 0) return is_covered;
  }
}

}  // namespace kw::tuner
