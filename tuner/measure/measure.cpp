// See measure.h. The device's side is tuner/device/device_measure.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/measure/measure.h"

namespace kw::tuner {

MeasureOutcome measure(GpuWorker& worker, const VerifiedKernel& kernel, const std::vector<InputFill>& inputs,
                       const std::vector<OutputSamples>& samples, const Protocol& protocol, int max_repeats) {
  MeasureOutcome outcome = worker.measure(kernel.job(), inputs, samples, protocol);
  for (int repeat = 0; repeat < max_repeats && outcome.status == TrialStatus::kOk && outcome.is_dirty; ++repeat) {
    outcome = worker.measure(kernel.job(), inputs, samples, protocol);
  }
  return outcome;
}

DuelOutcome duel(GpuWorker& worker, const VerifiedKernel& a, const VerifiedKernel& b, const std::vector<InputFill>& inputs,
                 const Protocol& protocol) {
  return worker.duel(a.job(), b.job(), inputs, protocol);
}

}  // namespace kw::tuner
