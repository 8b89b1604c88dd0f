// One CUDA Graph that holds many launches of a kernel, in turn over the input sets; and events around its replays.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "tuner/device/device_context.h"

namespace kw::tuner {

class LaunchGraph {
 public:
  /// `sets[i]` are the launches with input set i. The graph holds `num_launches` of them, set 0, 1, ..., 0, 1, ...
  static CudaResult<std::unique_ptr<LaunchGraph>> capture(DeviceContext& device, LoadedModule& module,
                                                          const std::vector<std::vector<EvaluatedLaunch>>& sets, int num_launches);
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
