// The rules of a launch, checked before anything runs: what the driver refuses is refused here by name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "generator/base/arch.h"
#include "simulator/launch/launch.h"

namespace kw::simulate {

/// The launch as it will run: all extents known, parameters packed.
struct CheckedLaunch {
  LaunchShape shape;
  std::vector<std::byte> parameters;
  std::uint64_t num_clusters = 0;
  std::uint64_t num_resident_ctas = 0;  ///< that the device could hold at once
};

Result<CheckedLaunch> check_request(const Module& module, const Program& program, const LaunchRequest& request);

}  // namespace kw::simulate
