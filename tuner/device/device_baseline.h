// What the GPU's worker does with a library's call: ask for its algorithms, check one and time it. Run in the child process only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tuner/device/device_tasks.h"
#include "tuner/device/library_call.h"

namespace kw::tuner {

/// The library's first algorithms for the product, on the inputs that our kernels are timed with.
CudaResult<BaselineList> list_on_device(DeviceTasks& tasks, const CublasLt& library, const BaselineJob& job,
                                        const std::vector<InputFill>& fills, const Protocol& protocol);

/// One algorithm: poisoned outputs, guard bands and the comparison of docs/protocol.md first, then the rounds of the protocol on the same
/// inputs as our kernels. Two launches need not give the same bits: what may vary by a rounding is still what a user would take.
CudaResult<BaselineOutcome> time_on_device(DeviceTasks& tasks, const CublasLt& library, const BaselineJob& job,
                                           const BaselineAlgorithm& algorithm, const std::vector<InputFill>& fills,
                                           const std::vector<OutputSamples>& samples, const Protocol& protocol);

}  // namespace kw::tuner
