// The fake driver of tests/tuner/device as a process sees a GPU: contexts, memory, streams.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <vector>

#include "tests/catch.h"
#include "tuner/device/driver_api.h"
#include "tuner/runtime/include/kernelwright.h"

namespace kw::tuner::test {

/// The driver that the library loads too; device 0's context is current while it lives.
class FakeDevice {
 public:
  FakeDevice() {
    setenv("KERNELWRIGHT_LIBCUDA", KW_FAKE_CUDA, 1);
    const auto loaded = load_driver();
    if (!loaded) FAIL(loaded.error().message);
    driver_ = *loaded;
    use(0);
  }
  ~FakeDevice() { driver_->context_set_current(nullptr); }
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;

  const DriverApi& driver() const { return *driver_; }
  void use(int device) const {
    CudaContext context = nullptr;
    driver_->context_retain(&context, device);
    driver_->context_set_current(context);
  }
  void use_none() const { driver_->context_set_current(nullptr); }
  /// A stream of the current context.
  void* stream() const {
    CudaStream stream = nullptr;
    driver_->stream_create(&stream, kStreamNonBlocking);
    return stream;
  }
  static long number(const char* function) {
    void* library = dlopen(KW_FAKE_CUDA, RTLD_NOW | RTLD_NOLOAD);
    const auto call = reinterpret_cast<long (*)()>(dlsym(library, function));
    const long value = call();
    dlclose(library);
    return value;
  }
  static long num_loaded_modules() { return number("fakeNumLoadedModules"); }
  static long num_encoded_maps() { return number("fakeNumEncodedMaps"); }
  static long num_graphs() { return number("fakeNumGraphs"); }
  static long num_graph_launches() { return number("fakeNumGraphLaunches"); }
  static long num_node_updates() { return number("fakeNumNodeUpdates"); }
  static long num_early_edges() { return number("fakeNumEarlyEdges"); }

 private:
  const DriverApi* driver_ = nullptr;
};

/// Host memory stands for device memory: x[i] = i + 1, y zero, both aligned to 64 bytes.
struct Vectors {
  explicit Vectors(std::size_t n) : x_memory(n + 32), y_memory(n + 32) {
    x = aligned(x_memory);
    y = aligned(y_memory);
    for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i + 1);
  }
  static float* aligned(std::vector<float>& memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    return memory.data() + (64 - address % 64) % 64 / sizeof(float);
  }
  kw_arguments arguments() {
    tensors[0] = x;
    tensors[1] = y;
    return {tensors, 2, nullptr, 0, nullptr, 0, nullptr, 0};
  }
  std::vector<float> x_memory, y_memory;
  float* x;
  float* y;
  void* tensors[2] = {};
};

}  // namespace kw::tuner::test
