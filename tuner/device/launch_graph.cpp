// See launch_graph.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/device/launch_graph.h"

namespace kw::tuner {
namespace {

CudaResult<void> enqueue_in_turn(const EnqueueSet& enqueue, std::size_t num_sets, int num_launches) {
  for (int number = 0; number < num_launches; ++number) KW_CUDA_TRY_VOID(enqueue(static_cast<std::size_t>(number) % num_sets));
  return {};
}

}  // namespace

CudaResult<std::unique_ptr<LaunchGraph>> LaunchGraph::capture(DeviceContext& device, const EnqueueSet& enqueue, std::size_t num_sets,
                                                              int num_launches) {
  const DriverApi& driver = device.driver;
  std::unique_ptr<LaunchGraph> result(new LaunchGraph(device));
  result->num_launches_ = num_launches;
  KW_CUDA(driver, "cuStreamBeginCapture", driver.capture_begin(device.stream, kCaptureThreadLocal));
  const CudaResult<void> enqueued = enqueue_in_turn(enqueue, num_sets, num_launches);
  const int code = driver.capture_end(device.stream, &result->graph_);  // also after a fault: the stream must leave capture
  if (!enqueued) return tl::unexpected<CudaFault>(enqueued.error());
  KW_CUDA(driver, "cuStreamEndCapture", code);
  KW_CUDA(driver, "cuGraphInstantiate", driver.graph_instantiate(&result->executable_, result->graph_, 0));
  return result;
}

LaunchGraph::~LaunchGraph() {
  if (executable_ != nullptr) device_.driver.graph_exec_destroy(executable_);
  if (graph_ != nullptr) device_.driver.graph_destroy(graph_);
}

CudaResult<void> LaunchGraph::replay() const {
  KW_CUDA(device_.driver, "cuGraphLaunch", device_.driver.graph_launch(executable_, device_.stream));
  return {};
}

CudaResult<std::unique_ptr<Stopwatch>> Stopwatch::create(DeviceContext& device) {
  std::unique_ptr<Stopwatch> result(new Stopwatch(device));
  KW_CUDA(device.driver, "cuEventCreate", device.driver.event_create(&result->begin_, 0));
  KW_CUDA(device.driver, "cuEventCreate", device.driver.event_create(&result->end_, 0));
  return result;
}

Stopwatch::~Stopwatch() {
  if (begin_ != nullptr) device_.driver.event_destroy(begin_);
  if (end_ != nullptr) device_.driver.event_destroy(end_);
}

CudaResult<void> Stopwatch::begin() const {
  KW_CUDA(device_.driver, "cuEventRecord", device_.driver.event_record(begin_, device_.stream));
  return {};
}

CudaResult<void> Stopwatch::end() const {
  KW_CUDA(device_.driver, "cuEventRecord", device_.driver.event_record(end_, device_.stream));
  return {};
}

CudaResult<double> Stopwatch::elapsed_ms() const {
  KW_CUDA(device_.driver, "timed launches", device_.driver.event_synchronize(end_));
  float elapsed = 0;
  KW_CUDA(device_.driver, "cuEventElapsedTime", device_.driver.event_elapsed_ms(&elapsed, begin_, end_));
  return static_cast<double>(elapsed);
}

}  // namespace kw::tuner
