// The four warps of a warpgroup as wgmma sees them: each issues its part of every operation, and an operation is complete when all four
// have. A warp does not wait for the others when it issues (the operation is asynchronous), only in wgmma.wait_group (seen on an H200:
// one late warp makes the other three wait there).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "simulator/execute/warp.h"

namespace kw::simulate {

/// What an operand in shared memory reads: fixed by the form and the descriptor.
struct OperandPlan {
  std::vector<std::uint32_t> chunks;  ///< offsets of 16-byte chunks, in the order of operand_chunks()
  std::vector<SharedRange> reads;     ///< the same bytes as ascending runs
  std::uint32_t first = 0;            ///< lowest and one past the highest byte
  std::uint32_t end = 0;
};

/// One mma or commit, while not all four warps have come to it.
struct WarpgroupOperation {
  std::uint32_t pc = 0;
  std::uint8_t arrived = 0;
  bool is_commit = false;
  bool accumulates = false;
  std::uint64_t descriptor_a = 0;
  std::uint64_t descriptor_b = 0;
  std::vector<LaneRegister> a = {};  ///< A fragments from registers: 4 of each warp
};

struct WarpgroupState : std::enable_shared_from_this<WarpgroupState> {
  bool is_alive = true;
  std::array<std::byte*, kWarpgroupWarps> registers{};
  std::deque<WarpgroupOperation> open;  ///< the first one has number num_complete
  std::uint64_t num_complete = 0;
  std::map<std::tuple<std::uint32_t, int, std::uint64_t>, std::shared_ptr<const OperandPlan>> plans;

  /// All four warps have issued what this one has.
  bool is_complete(const Warp& warp) const;
  /// Why a parked warp waits in wgmma.wait_group; empty when it does not.
  std::string describe_wait(const Warp& warp, const Program& program) const;
};

/// Reports registers that an instruction touches while wgmma owns them, and remembers writes for the check of wgmma.fence.
void check_tensor_touches(const LaunchFacts& facts, Warp& warp, std::uint32_t pc, LaneMask lanes);

}  // namespace kw::simulate
