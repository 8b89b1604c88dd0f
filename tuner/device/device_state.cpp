// See device_state.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/device/device_state.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "tuner/device/driver_api.h"

namespace kw::tuner {
namespace {

// nvmlClocksThrottleReason*
constexpr std::uint64_t kHwSlowdown = 0x8, kSwThermal = 0x20, kHwThermal = 0x40, kHwPowerBrake = 0x80;
constexpr int kClockSm = 1, kClockMemory = 2, kTemperatureGpu = 0;

template <typename Call, typename... Arguments>
int read_number(Call call, unsigned int divisor, Arguments... arguments) {
  unsigned int value = 0;
  if (call == nullptr || call(arguments..., &value) != 0) return -1;
  return static_cast<int>(value / divisor);
}

/// Processes besides this one. In a container NVML gives the host's process numbers, which are not ours: then one of them is us.
int count_other_processes(const NvmlApi& nvml, void* handle) {
  std::vector<NvmlProcess> processes(256);
  auto count = static_cast<unsigned int>(processes.size());
  if (nvml.compute_processes == nullptr || nvml.compute_processes(handle, &count, processes.data()) != 0) return -1;
  return std::max(0, static_cast<int>(count) - 1);
}

}  // namespace

DeviceStateReader::DeviceStateReader(const std::string& uuid) {
  const NvmlApi* nvml = load_nvml();
  if (nvml == nullptr || nvml->handle_by_uuid(uuid.c_str(), &handle_) != 0) handle_ = nullptr;
}

DeviceState DeviceStateReader::read() const {
  DeviceState state;
  if (handle_ == nullptr) return state;
  const NvmlApi& nvml = *load_nvml();
  state.sm_clock_mhz = read_number(nvml.clock_mhz, 1, handle_, kClockSm);
  state.memory_clock_mhz = read_number(nvml.clock_mhz, 1, handle_, kClockMemory);
  state.temperature_c = read_number(nvml.temperature, 1, handle_, kTemperatureGpu);
  state.power_w = read_number(nvml.power_mw, 1000, handle_);
  state.power_limit_w = read_number(nvml.power_limit_mw, 1000, handle_);
  state.throttle_reasons = throttle_reasons();
  state.num_other_processes = count_other_processes(nvml, handle_);
  return state;
}

std::uint64_t DeviceStateReader::throttle_reasons() const {
  unsigned long long reasons = 0;
  const NvmlApi* nvml = load_nvml();
  if (handle_ == nullptr || nvml->throttle_reasons == nullptr || nvml->throttle_reasons(handle_, &reasons) != 0) return 0;
  return reasons;
}

std::string DeviceStateReader::driver_text() const {
  const NvmlApi* nvml = load_nvml();
  char text[96] = {};
  if (nvml == nullptr || nvml->driver_text == nullptr || nvml->driver_text(text, sizeof text) != 0) return {};
  return text;
}

std::string disturbance(const DeviceState& before, const DeviceState& after, std::uint64_t reasons_seen) {
  const std::uint64_t reasons = before.throttle_reasons | after.throttle_reasons | reasons_seen;
  if ((reasons & (kHwSlowdown | kHwThermal | kHwPowerBrake | kSwThermal)) != 0)
    return fmt::format("clocks held down: throttle reasons 0x{:x}", reasons);
  const int neighbours = std::max(before.num_other_processes, after.num_other_processes);
  if (neighbours > 0) return fmt::format("{} other process(es) on the GPU", neighbours);
  return {};
}

}  // namespace kw::tuner
