// Timing of verified kernels. The parameter's type makes it impossible to time a kernel that was not verified.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tuner/device/gpu_worker.h"
#include "tuner/measure/protocol.h"
#include "tuner/verify/verify.h"

namespace kw::tuner {

/// Protocol v1, timing. A dirty measurement (throttled, or a neighbour on the GPU) is repeated at most `max_repeats` times; the last one
/// is returned, still marked when it is dirty. `samples` are reference values for `inputs`: the timed launches are checked too.
MeasureOutcome measure(GpuWorker& worker, const VerifiedKernel& kernel, const std::vector<InputFill>& inputs,
                       const std::vector<OutputSamples>& samples, const Protocol& protocol, int max_repeats = 1);

/// Two verified kernels of one problem in turn, A B A B; ratio of times B/A.
DuelOutcome duel(GpuWorker& worker, const VerifiedKernel& a, const VerifiedKernel& b, const std::vector<InputFill>& inputs,
                 const Protocol& protocol);

}  // namespace kw::tuner
