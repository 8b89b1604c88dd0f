// Loading of the driver and of NVML. See driver_api.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/device/driver_api.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <mutex>

namespace kw::tuner {
namespace {

/// Resolves names into a table and remembers the first that is missing.
class Resolver {
 public:
  explicit Resolver(void* library) : library_(library) {}
  template <typename Function>
  Resolver& need(Function& function, const char* name) {
    if (!want(function, name) && missing_.empty()) missing_ = name;
    return *this;
  }
  template <typename Function>
  bool want(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    return function != nullptr;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

void* open_library(const char* variable, const char* name) {
  const char* chosen = std::getenv(variable);
  return dlopen(chosen != nullptr && *chosen != '\0' ? chosen : name, RTLD_NOW | RTLD_LOCAL);
}

/// The names carry the ABI version that the declarations in driver_api.h are of.
std::string resolve(void* library, DriverApi& api) {
  Resolver resolver(library);
  resolver.need(api.init, "cuInit").need(api.driver_version, "cuDriverGetVersion");
  resolver.need(api.error_name, "cuGetErrorName").need(api.error_string, "cuGetErrorString");
  resolver.need(api.device_count, "cuDeviceGetCount").need(api.device_get, "cuDeviceGet");
  resolver.need(api.device_name, "cuDeviceGetName").need(api.device_attribute, "cuDeviceGetAttribute");
  resolver.need(api.device_memory, "cuDeviceTotalMem_v2").need(api.device_uuid, "cuDeviceGetUuid_v2");
  resolver.need(api.context_retain, "cuDevicePrimaryCtxRetain").need(api.context_set_current, "cuCtxSetCurrent");
  resolver.need(api.context_id, "cuCtxGetId").need(api.context_device, "cuCtxGetDevice");
  resolver.need(api.memory_info, "cuMemGetInfo_v2").need(api.memory_allocate, "cuMemAlloc_v2").need(api.memory_free, "cuMemFree_v2");
  resolver.need(api.host_allocate, "cuMemHostAlloc").need(api.host_free, "cuMemFreeHost");
  resolver.need(api.copy_to_device, "cuMemcpyHtoDAsync_v2").need(api.copy_to_host, "cuMemcpyDtoHAsync_v2");
  resolver.need(api.copy_on_device, "cuMemcpyDtoDAsync_v2").need(api.set_bytes, "cuMemsetD8Async");
  resolver.need(api.module_load, "cuModuleLoadData").need(api.module_unload, "cuModuleUnload");
  resolver.need(api.module_function, "cuModuleGetFunction").need(api.function_set_attribute, "cuFuncSetAttribute");
  resolver.need(api.launch, "cuLaunchKernelEx");
  resolver.need(api.stream_create, "cuStreamCreate").need(api.stream_synchronize, "cuStreamSynchronize");
  resolver.need(api.stream_context, "cuStreamGetCtx").need(api.capture_exchange_mode, "cuThreadExchangeStreamCaptureMode");
  resolver.need(api.capture_begin, "cuStreamBeginCapture_v2").need(api.capture_end, "cuStreamEndCapture");
  resolver.need(api.graph_instantiate, "cuGraphInstantiateWithFlags").need(api.graph_launch, "cuGraphLaunch");
  resolver.need(api.graph_exec_destroy, "cuGraphExecDestroy").need(api.graph_destroy, "cuGraphDestroy");
  resolver.need(api.event_create, "cuEventCreate").need(api.event_destroy, "cuEventDestroy_v2").need(api.event_record, "cuEventRecord");
  resolver.need(api.event_synchronize, "cuEventSynchronize").need(api.event_elapsed_ms, "cuEventElapsedTime");
  resolver.want(api.graph_create, "cuGraphCreate");
  resolver.want(api.graph_add_kernel, "cuGraphAddKernelNode_v2");
  resolver.want(api.graph_add_dependencies, "cuGraphAddDependencies_v2");
  resolver.want(api.graph_node_set_attribute, "cuGraphKernelNodeSetAttribute");
  resolver.want(api.graph_exec_set_kernel, "cuGraphExecKernelNodeSetParams_v2");
  resolver.want(api.stream_is_capturing, "cuStreamIsCapturing");
  resolver.want(api.function_parameter, "cuFuncGetParamInfo");
  resolver.want(api.tensor_map_encode, "cuTensorMapEncodeTiled");
  return resolver.missing();
}

}  // namespace

Result<const DriverApi*> load_driver() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  static DriverApi api{};
  static bool is_loaded = false;
  if (is_loaded) return &api;
  void* library = open_library("KERNELWRIGHT_LIBCUDA", "libcuda.so.1");
  if (library == nullptr) {
    return fail(Stage::kDevice, Code::kDevice,
                fmt::format("CUDA driver: not found: {}: install the NVIDIA driver (550 or newer), or use --device none", dlerror()));
  }
  if (const std::string missing = resolve(library, api); !missing.empty()) {
    return fail(Stage::kDevice, Code::kDevice, fmt::format("CUDA driver: it has no {}: must be version 550 or newer", missing));
  }
  is_loaded = true;
  return &api;
}

int attribute_of(const DriverApi& driver, CudaDevice device, DeviceAttribute attribute) {
  int value = 0;
  return driver.device_attribute(&value, static_cast<int>(attribute), device) == 0 ? value : 0;
}

DeviceModel model_of(const DriverApi& driver, CudaDevice device) {
  char name[256] = {};
  if (driver.device_name(name, sizeof name - 1, device) != 0) name[0] = '\0';
  return {name,
          10 * attribute_of(driver, device, DeviceAttribute::kComputeMajor) + attribute_of(driver, device, DeviceAttribute::kComputeMinor)};
}

CudaFault cuda_fault(const DriverApi& driver, int code, const char* call) {
  const char* name = nullptr;
  const char* text = nullptr;
  driver.error_name(code, &name);
  driver.error_string(code, &text);
  return {code, fmt::format("{}: {} ({}): {}", call, name == nullptr ? "CUDA error" : name, code, text == nullptr ? "" : text)};
}

bool is_sticky(int code) {
  switch (code) {
    case 46:   // device unavailable
    case 100:  // no device
    case 101:  // invalid device
    case 201:  // invalid context
    case 214:  // ECC uncorrectable
    case 220:  // NVLink uncorrectable
    case 226:  // contained: another client's fault took the context too
    case 700:  // illegal address
    case 702:  // launch timeout
    case 709:  // context is destroyed
    case 710:  // assert
    case 714:  // hardware stack error
    case 715:  // illegal instruction
    case 716:  // misaligned address
    case 717:  // invalid address space
    case 718:  // invalid program counter
    case 719:  // launch failed
    case 721:  // tensor memory leak
    case 999:  // unknown
      return true;
    default:
      return false;
  }
}

TrialStatus status_of(int code) {
  if (code == 2) return TrialStatus::kOutOfMemory;
  if (code == 700) return TrialStatus::kOutOfBounds;  // an address that no allocation holds
  const bool is_device_fault =
      code == 46 || code == 100 || code == 101 || code == 201 || code == 214 || code == 220 || code == 226 || code == 709;
  return is_device_fault ? TrialStatus::kDeviceLost : TrialStatus::kLaunchFailed;
}

const NvmlApi* load_nvml() {
  static NvmlApi api{};
  static const bool is_loaded = [] {
    void* library = open_library("KERNELWRIGHT_LIBNVML", "libnvidia-ml.so.1");
    if (library == nullptr) return false;
    Resolver resolver(library);
    resolver.need(api.init, "nvmlInit_v2").need(api.handle_by_uuid, "nvmlDeviceGetHandleByUUID");
    resolver.want(api.driver_text, "nvmlSystemGetDriverVersion");
    resolver.want(api.clock_mhz, "nvmlDeviceGetClockInfo");
    resolver.want(api.temperature, "nvmlDeviceGetTemperature");
    resolver.want(api.power_mw, "nvmlDeviceGetPowerUsage");
    resolver.want(api.power_limit_mw, "nvmlDeviceGetEnforcedPowerLimit");
    resolver.want(api.throttle_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
    resolver.want(api.compute_processes, "nvmlDeviceGetComputeRunningProcesses_v3");
    return resolver.missing().empty() && api.init() == 0;
  }();
  return is_loaded ? &api : nullptr;
}

}  // namespace kw::tuner
