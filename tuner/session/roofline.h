// The roofline of one problem on one device: lower bounds of any kernel's time, and the floor under which a measured time is refused.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "generator/base/arch.h"
#include "generator/spec/evaluator.h"

namespace kw::tuner {

struct Roofline {
  double flops = 0, min_bytes = 0;
  double math_bound_us = 0;    ///< contraction FLOPs at the chip's fastest path for the element type, maximum clock
  double memory_bound_us = 0;  ///< compulsory traffic at the DRAM's datasheet rate
  double bound_us = 0;         ///< the larger one
  double intensity = 0;        ///< FLOP per compulsory byte
  double floor_us = 0;         ///< a cold time below this is refused: something is wrong
};

/// Math rate: 16-bit inputs the tensor cores' dense peak, tf32 half of it, else the CUDA cores.
Roofline roofline_of(const generator::Program& program, const generator::WorkCounts& work, const DeviceLimits& device, bool is_warm_l2);

}  // namespace kw::tuner
