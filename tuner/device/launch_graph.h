// One CUDA Graph that holds many launches of the same work, in turn over the input sets; and events around its replays.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "tuner/device/device_context.h"

namespace kw::tuner {

/// Puts the work with one input set on the device's stream: a kernel's launches, or a call of a library.
using EnqueueSet = std::function<CudaResult<void>(std::size_t set)>;

class LaunchGraph {
 public:
  /// The graph holds `num_launches` times the work, with set 0, 1, ..., num_sets - 1, 0, 1, ...
  static CudaResult<std::unique_ptr<LaunchGraph>> capture(DeviceContext& device, const EnqueueSet& enqueue, std::size_t num_sets,
                                                          int num_launches);
  ~LaunchGraph();
  LaunchGraph(const LaunchGraph&) = delete;
  LaunchGraph& operator=(const LaunchGraph&) = delete;

  CudaResult<void> replay() const;
  int num_launches() const { return num_launches_; }

 private:
  explicit LaunchGraph(DeviceContext& device) : device_(device) {}
  DeviceContext& device_;
  CudaGraph graph_ = nullptr;
  CudaGraphExec executable_ = nullptr;
  int num_launches_ = 0;
};

/// Two events and the time between them.
class Stopwatch {
 public:
  static CudaResult<std::unique_ptr<Stopwatch>> create(DeviceContext& device);
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  CudaResult<void> begin() const;
  /// Records the end; elapsed_ms() waits for it.
  CudaResult<void> end() const;
  CudaResult<double> elapsed_ms() const;

 private:
  explicit Stopwatch(DeviceContext& device) : device_(device) {}
  DeviceContext& device_;
  CudaEvent begin_ = nullptr, end_ = nullptr;
};

}  // namespace kw::tuner
