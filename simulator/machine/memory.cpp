// Allocations of global memory: a sorted list with gaps between them, so that an access past the end is found.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/machine/memory.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "simulator/machine/bits.h"

namespace kw::simulate {
namespace {

constexpr std::uint64_t kAlignment = 256;                    // CUDA Programming Guide: what cudaMalloc returns
constexpr std::uint64_t kGapBytes = std::uint64_t{1} << 20;  // unmapped bytes after each allocation
constexpr std::byte kPoison{0xff};                           // a NaN in every float type

}  // namespace

Result<std::uint64_t> GlobalMemory::allocate(std::string name, std::uint64_t num_bytes, AllocationRole role, std::uint64_t address_offset) {
  if (num_bytes > max_bytes_ || num_bytes_ + num_bytes > max_bytes_ || address_offset >= kGapBytes) {
    return fail(Stage::kVerify, Code::kBadInput,
                fmt::format("buffer '{}': {} bytes: the simulation's memory cap is {} bytes, of which {} are in use", name, num_bytes,
                            max_bytes_, num_bytes_));
  }
  auto allocation = std::make_unique<Allocation>();
  allocation->name = std::move(name);
  allocation->role = role;
  allocation->address = next_ + address_offset;
  allocation->num_bytes = num_bytes;
  allocation->bytes.assign(num_bytes, kPoison);
  if (role == AllocationRole::kOutput) allocation->is_initialised = make_byte_bits(num_bytes);
  next_ += (address_offset + num_bytes + kGapBytes + kAlignment - 1) / kAlignment * kAlignment;
  num_bytes_ += num_bytes;
  allocations_.push_back(std::move(allocation));
  return allocations_.back()->address;
}

Allocation* GlobalMemory::find(std::uint64_t address, std::uint64_t num_bytes) {
  const auto holds = [&](const Allocation& allocation) {
    const std::uint64_t offset = address - allocation.address;  // wraps when below: then larger than any size
    return offset < allocation.num_bytes && num_bytes <= allocation.num_bytes - offset;
  };
  if (last_ != nullptr && holds(*last_)) return last_;
  const auto above = std::upper_bound(allocations_.begin(), allocations_.end(), address,
                                      [](std::uint64_t key, const auto& allocation) { return key < allocation->address; });
  if (above == allocations_.begin()) return nullptr;
  Allocation* candidate = std::prev(above)->get();
  if (!holds(*candidate)) return nullptr;
  last_ = candidate;
  return candidate;
}

const Allocation* GlobalMemory::nearest(std::uint64_t address) const {
  const auto above = std::upper_bound(allocations_.begin(), allocations_.end(), address,
                                      [](std::uint64_t key, const auto& allocation) { return key < allocation->address; });
  return above == allocations_.begin() ? nullptr : std::prev(above)->get();
}

void GlobalMemory::write(std::uint64_t address, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  Allocation* allocation = find(address, bytes.size());
  KW_CHECK(allocation != nullptr, "the host writes inside one allocation");
  const std::uint64_t offset = address - allocation->address;
  std::memcpy(allocation->bytes.data() + offset, bytes.data(), bytes.size());
  if (!allocation->is_initialised.empty()) set_bits(allocation->is_initialised, offset, bytes.size());
}

std::vector<std::byte> GlobalMemory::read(std::uint64_t address, std::uint64_t num_bytes) const {
  if (num_bytes == 0) return {};
  const Allocation* allocation = nearest(address);
  KW_CHECK(allocation != nullptr && address - allocation->address < allocation->num_bytes &&
               num_bytes <= allocation->num_bytes - (address - allocation->address),
           "the host reads inside one allocation");
  const auto first = allocation->bytes.begin() + static_cast<std::ptrdiff_t>(address - allocation->address);
  return {first, first + static_cast<std::ptrdiff_t>(num_bytes)};
}

std::uint64_t GlobalMemory::num_uninitialised(std::uint64_t address) const {
  const Allocation* allocation = nearest(address);
  if (allocation == nullptr || allocation->is_initialised.empty()) return 0;
  return allocation->num_bytes - count_bits(allocation->is_initialised, allocation->num_bytes);
}

}  // namespace kw::simulate
