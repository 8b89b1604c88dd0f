// Global memory of one launch: allocations with names, bounds, roles, initialisation bits and the host's view of their bytes.
// The executor never touches it directly (machine.h does); the launch fills inputs and reads outputs here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "generator/base/error.h"
#include "simulator/machine/types.h"

namespace kw::simulate {

/// What the kernel may do with an allocation, and what its bytes are before the launch.
enum class AllocationRole : std::uint8_t {
  kInput = 0,    ///< initialised by the host; a store is a finding
  kOutput = 1,   ///< poisoned; a load of a byte that no store reached is a finding
  kInOut = 2,    ///< initialised by the host, may be stored
  kConstant = 3  ///< kernel parameters, .const variables: like kInput
};

class ShadowPages;

struct Allocation {
  std::string name;
  AllocationRole role = AllocationRole::kInput;
  std::uint64_t address = 0;  ///< 256-byte aligned, as cudaMalloc gives it
  std::uint64_t num_bytes = 0;
  std::vector<std::byte> bytes;
  std::vector<std::uint64_t> is_initialised;  ///< one bit a byte; empty: all are
};

class GlobalMemory {
 public:
  explicit GlobalMemory(std::uint64_t max_bytes = std::uint64_t{4} << 30) : max_bytes_(max_bytes) {}
  /// Errors: over the memory cap. `address_offset`: bytes added to the 256-aligned start, to try pointers with less alignment.
  Result<std::uint64_t> allocate(std::string name, std::uint64_t num_bytes, AllocationRole role, std::uint64_t address_offset = 0);
  /// Copies into an allocation and marks the bytes initialised. KW_CHECK: inside one allocation.
  void write(std::uint64_t address, std::span<const std::byte> bytes);
  std::vector<std::byte> read(std::uint64_t address, std::uint64_t num_bytes) const;
  /// Number of bytes of the allocation at `address` that no store has reached.
  std::uint64_t num_uninitialised(std::uint64_t address) const;
  /// The allocation that holds all of [address, address + num_bytes), or null.
  Allocation* find(std::uint64_t address, std::uint64_t num_bytes);
  /// The nearest allocation at or below the address, for messages; null when there is none.
  const Allocation* nearest(std::uint64_t address) const;
  const std::vector<std::unique_ptr<Allocation>>& allocations() const { return allocations_; }

 private:
  std::vector<std::unique_ptr<Allocation>> allocations_;  // by address
  std::uint64_t next_ = kGlobalFirst;
  std::uint64_t num_bytes_ = 0;
  std::uint64_t max_bytes_;
  Allocation* last_ = nullptr;
};

}  // namespace kw::simulate
