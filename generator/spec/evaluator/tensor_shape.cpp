// Extents and strides of a tensor at one problem; used by the evaluator, the random inputs and the samples.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "generator/spec/evaluator.h"

namespace kw::generator {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 62;

tl::unexpected<Error> refuse(const Tensor& tensor, const std::string& message) {
  return fail(Stage::kSpec, Code::kBadInput, fmt::format("tensor {}: {}", tensor.name, message), tensor.where);
}

}  // namespace

std::int64_t TensorShape::num_elements() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : extents) product *= extent;
  return product;
}

std::int64_t TensorShape::span() const {
  std::int64_t span = 1;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] == 0) return 0;
    span += (extents[axis] - 1) * strides[axis];
  }
  return span;
}

Result<TensorShape> resolve_shape(const Tensor& tensor, const Problem& problem) {
  TensorShape shape;
  double num_elements = 1;
  for (const IntExpr& extent : tensor.shape) {
    KW_TRY(const std::int64_t value, extent.evaluate(problem.dims));
    if (value < 0) return refuse(tensor, fmt::format("extent {} = {} is negative", extent.to_text(), value));
    num_elements *= static_cast<double>(value);
    shape.extents.push_back(value);
  }
  if (num_elements > static_cast<double>(kMaxElements)) return refuse(tensor, fmt::format("{:.3g} elements: at most 2^62", num_elements));
  if (!tensor.list_dim.empty()) {
    const auto found = problem.dims.find(tensor.list_dim);
    if (found == problem.dims.end()) return refuse(tensor, fmt::format("list dim {} has no value", tensor.list_dim));
    shape.num_in_list = found->second;
  }
  shape.strides.assign(shape.extents.size(), 1);
  for (size_t axis = shape.extents.size(); axis-- > 1;)
    shape.strides[axis - 1] = shape.strides[axis] * std::max<std::int64_t>(shape.extents[axis], 1);
  IntBindings bindings = problem.dims;
  for (size_t axis = 0; axis < shape.strides.size(); ++axis)
    bindings.emplace(fmt::format("{}.stride{}", tensor.name, axis), shape.strides[axis]);
  for (const auto& [name, value] : problem.strides) bindings[name] = value;
  for (size_t axis = 0; axis < tensor.strides.size() && axis < shape.strides.size(); ++axis) {
    KW_TRY(shape.strides[axis], tensor.strides[axis].evaluate(bindings));
    if (shape.strides[axis] < 0) return refuse(tensor, fmt::format("stride {} of axis {} is negative", shape.strides[axis], axis));
  }
  return shape;
}

}  // namespace kw::generator
