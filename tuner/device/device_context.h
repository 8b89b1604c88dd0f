// The opened GPU of the worker process: primary context, one stream, the fill kernels, NVML's reader.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "tuner/device/device_state.h"
#include "tuner/device/driver_api.h"
#include "tuner/device/gpu_worker.h"
#include "tuner/device/kernel_launch.h"

namespace kw::tuner {

/// All devices of the driver, without a context. Errors kDevice: no driver, cuInit fails, no device.
Result<std::vector<DeviceInfo>> query_devices(const DriverApi& driver);

struct DeviceContext {
  const DriverApi& driver;
  DeviceInfo info;
  CudaStream stream = nullptr;
  DeviceStateReader state;
  std::shared_ptr<LoadedModule> fill_kernels;  ///< null: inputs are made on the host
};
/// Makes the context. `fill_cubin` may be empty.
CudaResult<std::unique_ptr<DeviceContext>> open_device(const DriverApi& driver, const DeviceInfo& info, const std::string& fill_cubin);

/// An error of our own stages as a fault of a launch.
CudaFault as_fault(const Error& error);

}  // namespace kw::tuner

/// KW_DEVICE_TRY(declaration, expression): unwraps a Result in a function that returns a CudaResult.
#define KW_DEVICE_TRY(declaration, expression)                                                                     \
  auto KW_CONCAT(kw_device_, __LINE__) = (expression);                                                             \
  if (!KW_CONCAT(kw_device_, __LINE__))                                                                            \
    return tl::unexpected<::kw::tuner::CudaFault>(::kw::tuner::as_fault(KW_CONCAT(kw_device_, __LINE__).error())); \
  declaration = std::move(*KW_CONCAT(kw_device_, __LINE__))
#define KW_DEVICE_TRY_VOID(expression)                                                                                     \
  do {                                                                                                                     \
    auto kw_device_status = (expression);                                                                                  \
    if (!kw_device_status) return tl::unexpected<::kw::tuner::CudaFault>(::kw::tuner::as_fault(kw_device_status.error())); \
  } while (false)
