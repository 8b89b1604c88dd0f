// What NVML says of the GPU at a moment, and whether that disturbs a measurement. Nothing is ever set.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tuner/device/gpu_worker.h"

namespace kw::tuner {

/// Reads the state of the GPU with this UUID (never by index: NVML counts GPUs in another order than CUDA). All -1 without NVML.
class DeviceStateReader {
 public:
  explicit DeviceStateReader(const std::string& uuid);
  DeviceState read() const;
  /// Only the throttle reasons: cheap enough for every round.
  std::uint64_t throttle_reasons() const;
  std::string driver_text() const;

 private:
  void* handle_ = nullptr;
};

/// Why a sample taken in such a state is not to be trusted; empty when it is. The power limit by itself is noted, not held against it:
/// every large matrix product runs at it.
std::string disturbance(const DeviceState& before, const DeviceState& after, std::uint64_t reasons_seen);

}  // namespace kw::tuner
