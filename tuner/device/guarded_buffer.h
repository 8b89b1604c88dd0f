// Device memory with guard bands: 4 KiB before and after, and a pointer that is aligned to exactly what is promised, no better, so
// that a kernel which relies on more is found out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tuner/device/driver_api.h"

namespace kw::tuner {

inline constexpr std::size_t kGuardBytes = 4096;         // docs/protocol.md: guard bands of 4 KiB
inline constexpr int kAllocationAlignBytes = 256;        // CUDA Programming Guide: at least this for any allocation
inline constexpr unsigned char kPoisonByte = 0xFF;       // NaN in every float type; what is read outside spoils the result
inline constexpr unsigned char kOutputGuardByte = 0xA5;  // a kernel that writes NaN outside is seen too

class GuardedBuffer {
 public:
  /// `align_bytes` below 256 gives a pointer that is a multiple of it and not of twice as much; 256 and above an aligned one.
  static CudaResult<GuardedBuffer> allocate(const DriverApi& driver, CudaStream stream, std::size_t num_bytes, int align_bytes,
                                            unsigned char guard_byte);
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept;
  ~GuardedBuffer();

  DevicePointer data() const { return data_; }
  std::size_t num_bytes() const { return num_bytes_; }
  CudaResult<void> fill(unsigned char byte) const;
  /// First changed guard byte, as an offset from the buffer's begin (negative: before it). Nothing: the guards are whole.
  CudaResult<std::optional<std::int64_t>> damaged_guard() const;

 private:
  GuardedBuffer(const DriverApi& driver, CudaStream stream) : driver_(&driver), stream_(stream) {}
  const DriverApi* driver_;
  CudaStream stream_;
  DevicePointer allocation_ = 0, data_ = 0;
  std::size_t num_bytes_ = 0, front_bytes_ = 0;
  unsigned char guard_byte_ = 0;
};

}  // namespace kw::tuner
