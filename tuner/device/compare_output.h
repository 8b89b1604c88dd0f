// Comparison of one output with its reference values, on the host. Fed with the memory in pieces, so that outputs of any size pass
// through a small buffer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tuner/device/gpu_worker.h"
#include "tuner/device/tensor_storage.h"

namespace kw::tuner {

class OutputComparison {
 public:
  OutputComparison(const TensorStorage& tensor, const OutputSamples& samples);
  /// Bytes of the first and of the second launch, from `first_byte` on; pieces come in order and end on elements.
  void add(std::size_t first_byte, std::span<const std::byte> first_launch, std::span<const std::byte> second_launch);

  bool is_bit_stable() const { return unstable_element_ < 0; }
  /// What is wrong, with the first bad index, both values and the bound; empty when the output is right.
  std::string verdict() const;
  double max_error_over_bound() const { return max_error_over_bound_; }
  double squared_error() const { return squared_error_; }
  double squared_reference() const { return squared_reference_; }

 private:
  void check_sample(std::size_t sample, const std::byte* address);
  void check_poison(std::size_t first_element, std::span<const std::byte> bytes);
  void describe_sample(std::size_t sample, double value);

  const TensorStorage& tensor_;
  const OutputSamples& samples_;
  std::vector<std::size_t> order_;  ///< samples by offset
  std::size_t next_ = 0;            ///< in order_
  std::vector<bool> is_covered_;    ///< only for tensors with gaps
  bool may_keep_poison_ = false;    ///< an element is not decided: it may not be written at all
  bool may_hold_nan_ = false;       ///< a reference is NaN: poison cannot be told from a result
  std::size_t num_wrong_ = 0, first_wrong_sample_ = 0;
  std::int64_t unstable_element_ = -1, unwritten_element_ = -1, stray_element_ = -1;
  std::string sample_text_;
  double max_error_over_bound_ = 0, squared_error_ = 0, squared_reference_ = 0;
};

}  // namespace kw::tuner
