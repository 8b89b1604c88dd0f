// A worker on the fake driver, with the fake library beside it: what the tests of the GPU worker have in common.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdlib>
#include <memory>

#include "tests/catch.h"
#include "tests/tuner/compile/scratch_folder.h"
#include "tuner/device/gpu_worker.h"

namespace kw::tuner::test {

class FakeGpu {
 public:
  FakeGpu() {
    setenv("KERNELWRIGHT_LIBCUDA", KW_FAKE_CUDA, 1);
    setenv("KERNELWRIGHT_LIBNVML", KW_FAKE_CUDA, 1);
    setenv("KERNELWRIGHT_CUBLASLT", KW_FAKE_CUBLASLT, 1);
    for (const char* name : {"FAKE_CUDA_MEMORY", "FAKE_CUDA_DEVICES", "FAKE_NVML_THROTTLE", "FAKE_NVML_PROCESSES", "FAKE_CUBLASLT",
                             "FAKE_CUBLASLT_COUNT", "FAKE_CUBLASLT_LOG", "FAKE_CUBLASLT_VERSION"})
      unsetenv(name);
    options.worker_command = KW_WORKER;
    options.verify_limit = std::chrono::milliseconds(1500);
    options.measure_limit = std::chrono::milliseconds(10000);
    options.lock_folder = folder_.path();
  }
  std::unique_ptr<GpuWorker> start() {
    auto worker = GpuWorker::start(options);
    if (!worker) FAIL(worker.error().message);
    return std::move(*worker);
  }
  std::string file(const std::string& name) const { return folder_.path() + "/" + name; }
  GpuWorkerOptions options;

 private:
  ScratchFolder folder_;
};

inline Protocol quick_protocol() {
  Protocol protocol;
  protocol.warmup_ms = 2;
  protocol.round_ms = 1;
  protocol.num_rounds = 4;
  protocol.min_graph_ms = 0.2;
  return protocol;
}

}  // namespace kw::tuner::test
