// Words shared by all calls into the machine: lanes, spaces, memory order, outcomes, and who makes an access from where.
// The machine knows no PTX types; the caller decodes an instruction and passes per-lane addresses and bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace kw::simulate {

/// Bit l is lane l of a warp.
using LaneMask = std::uint32_t;
constexpr int kLanes = 32;
constexpr LaneMask kAllLanes = 0xffffffffu;

/// Where an address points. kGeneric is resolved by the windows below; a generic address may point to each of the others.
enum class Space : std::uint8_t {
  kGeneric = 0,
  kGlobal = 1,         ///< also .const and .param memory: the launch places those in read-only global allocations
  kShared = 2,         ///< .shared::cta: must lie in the executing CTA
  kSharedCluster = 3,  ///< .shared::cluster: any CTA of the cluster
  kLocal = 4           ///< offset in the thread's own local memory
};

/// PTX memory consistency model, section "Operation types".
enum class Order : std::uint8_t { kWeak = 0, kVolatile = 1, kRelaxed = 2, kAcquire = 3, kRelease = 4, kAcqRel = 5, kSeqCst = 6 };
enum class Scope : std::uint8_t { kCta = 0, kCluster = 1, kGpu = 2, kSystem = 3 };

/// What the caller does next. kParked: leave the pc, run other groups, repeat the same call when wake_count() has changed.
/// kFault: a finding was recorded that leaves no sensible value (out of bounds, misaligned, ...); end the launch.
enum class Outcome : std::uint8_t { kDone = 0, kParked = 1, kFault = 2 };

class Cta;

/// Who makes a call and from where. `pc` is the caller's instruction number: findings name it, the caller maps it to lines.
struct Context {
  Cta* cta = nullptr;
  std::uint32_t warp = 0;      ///< in the CTA
  LaneMask lanes = kAllLanes;  ///< lanes that execute (after the predicate)
  std::uint32_t pc = 0;
};

// Generic addresses. A 32-bit shared address is (CTA rank in the cluster) << 24 | offset, as the hardware forms it (seen on an
// H200); its generic form adds kSharedWindow. Offsets below kSharedFirstByte belong to the system, so that a null is found.
constexpr std::uint64_t kGlobalFirst = 0x0000'1000'0000'0000u;  ///< first allocation
constexpr std::uint64_t kSharedWindow = 0x0000'7000'0000'0000u;
constexpr std::uint64_t kLocalWindow = 0x0000'7100'0000'0000u;
constexpr std::uint64_t kWindowBytes = std::uint64_t{1} << 32;
constexpr std::uint32_t kSharedRankShift = 24;
constexpr std::uint32_t kSharedOffsetMask = (1u << kSharedRankShift) - 1;
constexpr std::uint32_t kSharedFirstByte = 1024;  ///< the first static or dynamic byte; 1024-aligned for swizzles

/// A load or store of `bytes` contiguous bytes a lane (a vector access is one access of all its elements).
struct AccessKind {
  Space space = Space::kGeneric;
  std::uint8_t bytes = 4;      ///< 1, 2, 4, 8, 16, 32; the address must be a multiple of it
  Order order = Order::kWeak;  ///< loads: weak, volatile, relaxed, acquire; stores: weak, volatile, relaxed, release
  Scope scope = Scope::kGpu;
  bool is_read_only = false;  ///< ld.global.nc: the word must not be written by anyone during the launch
};

}  // namespace kw::simulate
