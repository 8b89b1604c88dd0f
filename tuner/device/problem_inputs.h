// Inputs of a problem in device memory: one or many sets of buffers, filled with the random numbers that the host's reference knows.
// Kept between kernels of the same problem; made anew when the problem, the fills or the seed change.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tuner/device/device_context.h"
#include "tuner/device/guarded_buffer.h"
#include "tuner/device/tensor_storage.h"

namespace kw::tuner {

/// How exactly pointers are aligned: to the promise and no better (checking), or like an allocator's unless the promise is below 16
/// (timing).
enum class AlignMode { kExact = 0, kAllocator = 1 };
int buffer_align(const TensorStorage& tensor, AlignMode mode);

class ProblemInputs {
 public:
  ProblemInputs(DeviceContext& device, AlignMode mode) : device_(device), mode_(mode) {}

  /// Makes `num_sets` sets of every tensor that is read. Error: a tensor without a fill, memory.
  CudaResult<void> prepare(const std::vector<TensorStorage>& tensors, const std::vector<InputFill>& fills, std::size_t num_sets);
  /// Writes the numbers of set 0 again: a kernel may have changed them.
  CudaResult<void> refill(bool only_inout = false);
  /// Writes other numbers of the same kind to set 0, until the next refill(): what a kernel keeps of them shows in its next result.
  CudaResult<void> fill_with_others();
  const GuardedBuffer& buffer(std::size_t set, const std::string& tensor) const { return sets_.at(set).at(tensor); }
  std::size_t num_sets() const { return sets_.size(); }
  void release();

 private:
  CudaResult<void> fill(const TensorStorage& tensor, const InputFill& fill, const GuardedBuffer& buffer, std::size_t set);
  CudaResult<void> fill_on_device(const TensorStorage& tensor, const InputFill& fill, const GuardedBuffer& buffer) const;
  const std::string& host_image(const TensorStorage& tensor, const InputFill& fill);

  DeviceContext& device_;
  AlignMode mode_;
  std::string key_;
  std::vector<TensorStorage> tensors_;  ///< those that are read
  std::map<std::string, InputFill> fills_;
  std::vector<std::map<std::string, GuardedBuffer>> sets_;
  std::map<std::pair<std::string, std::uint64_t>, std::string> host_images_;  ///< by tensor and seed
};

}  // namespace kw::tuner
