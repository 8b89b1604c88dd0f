// Extents, strides and bytes of a tensor of a plan on one problem.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "generator/base/launch_plan.h"

namespace kw::tuner {

struct TensorStorage {
  std::string name;
  DType dtype = DType::kF16;
  TensorRole role = TensorRole::kIn;
  std::vector<std::int64_t> extents, strides;  ///< elements
  std::int64_t num_elements = 0;               ///< from the pointer to the last element, gaps included; 0 when an extent is 0
  std::size_t num_bytes = 0;
  int align_bytes = 16;  ///< the problem's, else the plan's promise
  bool is_dense = true;  ///< no gap between elements
  bool is_list = false;  ///< the first axis counts tensors, which lie one behind the other; kernels are given a table of their pointers

  bool is_read() const { return role != TensorRole::kOut; }
  bool is_written() const { return role != TensorRole::kIn; }
};

/// Errors (kBadInput): an extent or stride that does not evaluate or is negative, more than 2^46 bytes.
Result<std::vector<TensorStorage>> tensor_storages(const LaunchPlan& plan, const Problem& problem);

/// The pointers of a list's tensors when the first one lies at `base`, as the table holds them.
std::vector<std::uint64_t> list_pointers(const TensorStorage& tensor, std::uint64_t base);

/// Marks the elements that the tensor covers; used only for tensors with gaps.
std::vector<bool> covered_elements(const TensorStorage& tensor);

}  // namespace kw::tuner
