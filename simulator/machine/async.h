// Operands of asynchronous operations: pieces of copies, streams, adversaries. See machine.h for the calls.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "generator/base/error.h"
#include "simulator/machine/types.h"

namespace kw::simulate {

/// When an asynchronous operation takes effect between its issue and the moment the program may rely on it.
enum class Adversary : std::uint8_t { kEager = 0, kLazy = 1, kRandom = 2 };
struct Schedule {
  Adversary adversary = Adversary::kEager;
  std::uint64_t seed = 0;  ///< kRandom: of completions; all: of the order of CTAs and warps when not 0
};
std::string to_text(const Schedule& schedule);  ///< "eager", "lazy", "random:7"
Result<Schedule> schedule_from_text(std::string_view text);

/// One contiguous run of bytes of a copy between global and shared memory. A tensor-map box is a list of these, one for each
/// 16-byte chunk or row, in swizzled order; the caller expands it.
struct CopyPiece {
  std::uint64_t global = 0;  ///< global address; ignored when is_fill
  std::uint32_t shared = 0;  ///< 32-bit shared address (with the CTA's rank)
  std::uint32_t num_bytes = 0;
  bool is_fill = false;    ///< loads: out-of-bounds part of a box, filled by `fill`; stores: not allowed (clip instead)
  std::uint16_t fill = 0;  ///< repeated 16-bit pattern
};

/// A run of shared bytes that an asynchronous operation reads (wgmma operands) or writes.
struct SharedRange {
  std::uint32_t address = 0;
  std::uint32_t num_bytes = 0;
};

/// Queues that belong to a warp (cp.async, bulk) or a warpgroup (wgmma). FIFO within a queue.
enum class Stream : std::uint8_t { kWgmma = 0, kBulk = 1, kCpAsync = 2 };

/// A deferred effect (a tensor-core group): run once, at the adversary's moment.
using Effect = std::function<void()>;

}  // namespace kw::simulate
