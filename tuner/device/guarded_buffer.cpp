// See guarded_buffer.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/device/guarded_buffer.h"

#include <utility>
#include <vector>

namespace kw::tuner {

CudaResult<GuardedBuffer> GuardedBuffer::allocate(const DriverApi& driver, CudaStream stream, std::size_t num_bytes, int align_bytes,
                                                  unsigned char guard_byte) {
  GuardedBuffer buffer(driver, stream);
  const std::size_t offset = align_bytes < kAllocationAlignBytes ? static_cast<std::size_t>(align_bytes) : 0;
  buffer.front_bytes_ = kGuardBytes + offset;
  buffer.num_bytes_ = num_bytes;
  buffer.guard_byte_ = guard_byte;
  KW_CUDA(driver, "cuMemAlloc", driver.memory_allocate(&buffer.allocation_, buffer.front_bytes_ + num_bytes + kGuardBytes));
  buffer.data_ = buffer.allocation_ + buffer.front_bytes_;
  KW_CUDA(driver, "cuMemsetD8Async", driver.set_bytes(buffer.allocation_, guard_byte, buffer.front_bytes_, stream));
  KW_CUDA(driver, "cuMemsetD8Async", driver.set_bytes(buffer.data_ + num_bytes, guard_byte, kGuardBytes, stream));
  return buffer;
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept
    : driver_(other.driver_),
      stream_(other.stream_),
      allocation_(std::exchange(other.allocation_, 0)),
      data_(other.data_),
      num_bytes_(other.num_bytes_),
      front_bytes_(other.front_bytes_),
      guard_byte_(other.guard_byte_) {}

GuardedBuffer& GuardedBuffer::operator=(GuardedBuffer&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(stream_, other.stream_);
  std::swap(allocation_, other.allocation_);
  std::swap(data_, other.data_);
  std::swap(num_bytes_, other.num_bytes_);
  std::swap(front_bytes_, other.front_bytes_);
  std::swap(guard_byte_, other.guard_byte_);
  return *this;
}

GuardedBuffer::~GuardedBuffer() {
  if (allocation_ != 0) driver_->memory_free(allocation_);
}

CudaResult<void> GuardedBuffer::fill(unsigned char byte) const {
  if (num_bytes_ == 0) return {};
  KW_CUDA(*driver_, "cuMemsetD8Async", driver_->set_bytes(data_, byte, num_bytes_, stream_));
  return {};
}

CudaResult<std::optional<std::int64_t>> GuardedBuffer::damaged_guard() const {
  std::vector<unsigned char> front(front_bytes_), back(kGuardBytes);
  KW_CUDA(*driver_, "cuMemcpyDtoHAsync", driver_->copy_to_host(back.data(), data_ + num_bytes_, back.size(), stream_));
  KW_CUDA(*driver_, "cuMemcpyDtoHAsync", driver_->copy_to_host(front.data(), allocation_, front.size(), stream_));
  KW_CUDA(*driver_, "cuStreamSynchronize", driver_->stream_synchronize(stream_));
  for (std::size_t byte = 0; byte < back.size(); ++byte) {
    if (back[byte] != guard_byte_) return std::optional<std::int64_t>(static_cast<std::int64_t>(num_bytes_ + byte));
  }
  for (std::size_t byte = front.size(); byte-- > 0;) {
    if (front[byte] != guard_byte_)
      return std::optional<std::int64_t>(static_cast<std::int64_t>(byte) - static_cast<std::int64_t>(front_bytes_));
  }
  return std::optional<std::int64_t>();
}

}  // namespace kw::tuner
