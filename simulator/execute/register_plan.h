// Which registers of a kernel may share a place. PTX has thousands of registers, each used for a few instructions; a warp's registers
// must stay in the host's caches, so registers that are never live together get one place (linear scan over live ranges).
// Sound for divergent lanes, because every lane has its own part of each place and follows one path through the code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/ptx/module.h"

namespace kw::simulate {

struct RegisterPlan {
  /// By register: number of its place among those of its width; predicates keep a place each.
  std::vector<std::uint32_t> place;
  /// Places of 16 (and 8), 32, 64 and 128 bits.
  std::uint32_t num_places[4] = {0, 0, 0, 0};
};

/// 0 for up to 16 bits, 1 for 32, 2 for 64, 3 for 128.
int width_class(int bits);

/// Registers that wgmma uses never share: operations in flight write them after the instruction.
RegisterPlan plan_registers(const Module& module, const Kernel& kernel);

}  // namespace kw::simulate
