// What is launched: a cubin, its launch plan and the problem. The tuner sends it to the GPU's worker; the run-time library makes its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "generator/base/launch_plan.h"

namespace kw::tuner {

/// A compiled variant and the problem it runs on.
struct KernelJob {
  std::string label;  ///< variant id, for messages
  std::string cubin;
  LaunchPlan plan;
  Problem problem;
  std::map<std::string, double> scalars;
  double floor_us = 0;  ///< a median below it is kUnderFloor (compulsory traffic, peak rate); 0: not checked
};

}  // namespace kw::tuner
