// See device_context.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/device/device_context.h"

#include <fmt/format.h>

#include <algorithm>

namespace kw::tuner {
namespace {

std::string uuid_text(const CudaUuid& uuid) {
  std::string text = "GPU-";
  for (int byte = 0; byte < 16; ++byte) {
    if (byte == 4 || byte == 6 || byte == 8 || byte == 10) text += '-';
    text += fmt::format("{:02x}", uuid.bytes[byte]);
  }
  return text;
}

/// The arch's table, with what the device itself says in place of the typical device's numbers.
DeviceLimits limits_of(const DriverApi& driver, CudaDevice device, Arch arch, const DeviceModel& model) {
  DeviceLimits limits = generic_device(arch);
  if (!model.name.empty()) limits.model_name = model.name;
  const auto replace = [&](auto& value, DeviceAttribute attribute) {
    if (const int number = attribute_of(driver, device, attribute); number > 0) value = number;
  };
  limits.compute_capability = model.compute_capability;
  replace(limits.num_sms, DeviceAttribute::kNumSms);
  replace(limits.max_smem_bytes_per_cta, DeviceAttribute::kMaxSmemBytesPerCta);
  replace(limits.smem_bytes_per_sm, DeviceAttribute::kSmemBytesPerSm);
  replace(limits.registers_per_sm, DeviceAttribute::kRegistersPerSm);
  replace(limits.max_threads_per_sm, DeviceAttribute::kMaxThreadsPerSm);
  replace(limits.max_ctas_per_sm, DeviceAttribute::kMaxCtasPerSm);
  replace(limits.l2_bytes, DeviceAttribute::kL2Bytes);
  if (const int clock_khz = attribute_of(driver, device, DeviceAttribute::kClockKhz); clock_khz > 0)
    limits.max_clock_ghz = clock_khz * 1e-6;
  const int memory_khz = attribute_of(driver, device, DeviceAttribute::kMemoryClockKhz),
            bus_bits = attribute_of(driver, device, DeviceAttribute::kMemoryBusBits);
  // Two transfers a clock, bus_bits / 8 bytes each.
  if (memory_khz > 0 && bus_bits > 0) limits.dram_gb_per_s = 2.0 * memory_khz * 1e3 * bus_bits / 8 * 1e-9;
  return limits;
}

Result<DeviceInfo> query_device(const DriverApi& driver, int ordinal) {
  CudaDevice device = 0;
  if (const int code = driver.device_get(&device, ordinal); code != 0)
    return fail(Stage::kDevice, Code::kDevice, cuda_fault(driver, code, "cuDeviceGet").text);
  DeviceInfo info;
  info.ordinal = ordinal;
  driver.driver_version(&info.driver_version);
  CudaUuid uuid{};
  if (const int code = driver.device_uuid(&uuid, device); code != 0)
    return fail(Stage::kDevice, Code::kDevice, cuda_fault(driver, code, "cuDeviceGetUuid").text);
  info.uuid = uuid_text(uuid);
  std::size_t memory_bytes = 0;
  driver.device_memory(&memory_bytes, device);
  info.memory_bytes = static_cast<std::int64_t>(memory_bytes);
  const DeviceModel model = model_of(driver, device);
  const int capability = model.compute_capability;
  const std::optional<Arch> arch = arch_for_device(capability);
  if (!arch) {
    return fail(
        Stage::kDevice, Code::kNotSupported,
        fmt::format("cuda:{}: compute capability {}.{}: must be 8.0 or newer and known", ordinal, capability / 10, capability % 10));
  }
  info.limits = limits_of(driver, device, *arch, model);
  info.driver_text = DeviceStateReader(info.uuid).driver_text();
  return info;
}

}  // namespace

CudaFault as_fault(const Error& error) { return {-2, error.message}; }

Result<std::vector<DeviceInfo>> query_devices(const DriverApi& driver) {
  if (const int code = driver.init(0); code != 0) {
    const char* cure = code == 100                  ? ": no GPU is visible (CUDA_VISIBLE_DEVICES?)"
                       : code == 803 || code == 804 ? ": the driver's kernel module and its library differ: reboot"
                                                    : "";
    return fail(Stage::kDevice, Code::kDevice, cuda_fault(driver, code, "cuInit").text + cure);
  }
  int count = 0;
  driver.device_count(&count);
  std::vector<DeviceInfo> devices;
  std::string reasons;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    Result<DeviceInfo> info = query_device(driver, ordinal);
    if (info) {
      devices.push_back(std::move(*info));
    } else {
      reasons += "; " + info.error().message;
    }
  }
  if (devices.empty()) return fail(Stage::kDevice, Code::kDevice, fmt::format("CUDA: {} GPU(s), none that can be used{}", count, reasons));
  return devices;
}

CudaResult<std::unique_ptr<DeviceContext>> open_device(const DriverApi& driver, const DeviceInfo& info, const std::string& fill_cubin) {
  CudaDevice device = 0;
  CudaContext context = nullptr;
  KW_CUDA(driver, "cuDeviceGet", driver.device_get(&device, info.ordinal));
  KW_CUDA(driver, "cuDevicePrimaryCtxRetain", driver.context_retain(&context, device));
  KW_CUDA(driver, "cuCtxSetCurrent", driver.context_set_current(context));
  auto opened = std::make_unique<DeviceContext>(
      DeviceContext{.driver = driver, .info = info, .stream = nullptr, .state = DeviceStateReader(info.uuid), .fill_kernels = nullptr});
  KW_CUDA(driver, "cuStreamCreate", driver.stream_create(&opened->stream, kStreamNonBlocking));
  if (!fill_cubin.empty()) {
    KW_CUDA_TRY(opened->fill_kernels, LoadedModule::load(driver, fill_cubin));
  }
  return opened;
}

}  // namespace kw::tuner
