// A kernel that was checked on the device, as a type: only verify() makes one, and tuner/measure takes nothing else.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "tuner/device/gpu_worker.h"

namespace kw::tuner {

/// Holds the job that passed: its cubin, plan and problem cannot be exchanged afterwards.
class VerifiedKernel {
 public:
  const KernelJob& job() const { return job_; }
  const VerifyOutcome& outcome() const { return outcome_; }

 private:
  friend struct VerifyReport verify(GpuWorker& worker, const KernelJob& job, const std::vector<InputFill>& inputs,
                                    const std::vector<OutputSamples>& samples);
  VerifiedKernel(KernelJob job, VerifyOutcome outcome) : job_(std::move(job)), outcome_(std::move(outcome)) {}
  KernelJob job_;
  VerifyOutcome outcome_;
};

struct VerifyReport {
  VerifyOutcome outcome;                 ///< status and reason, also when it failed
  std::optional<VerifiedKernel> kernel;  ///< only when the status is kOk
};

/// Protocol v1, checking. No samples, or samples of a tensor without values, verify nothing and are refused (kWrongResult).
VerifyReport verify(GpuWorker& worker, const KernelJob& job, const std::vector<InputFill>& inputs,
                    const std::vector<OutputSamples>& samples);

}  // namespace kw::tuner
