// See verify.h. The device's side is tuner/device/device_verify.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>

namespace kw::tuner {
namespace {

/// Every output of the plan must have samples, unless it is empty: a check that looks at nothing passes everything.
std::string missing_samples(const KernelJob& job, const std::vector<OutputSamples>& samples) {
  const IntBindings bindings = job.problem.bindings(job.plan);
  for (const PlanTensor& tensor : job.plan.tensors) {
    if (tensor.role == TensorRole::kIn) continue;
    const bool is_empty = std::any_of(tensor.shape.begin(), tensor.shape.end(),
                                      [&](const IntExpr& extent) { return extent.evaluate(bindings).value_or(1) == 0; });
    const bool has_samples =
        std::any_of(samples.begin(), samples.end(), [&](const OutputSamples& s) { return s.tensor == tensor.name && !s.offsets.empty(); });
    if (!is_empty && !has_samples) return fmt::format("{}: no reference values for this output: nothing would be checked", tensor.name);
  }
  return {};
}

}  // namespace

VerifyReport verify(GpuWorker& worker, const KernelJob& job, const std::vector<InputFill>& inputs,
                    const std::vector<OutputSamples>& samples) {
  VerifyReport report;
  report.outcome.error = missing_samples(job, samples);
  if (!report.outcome.error.empty()) {
    report.outcome.status = TrialStatus::kWrongResult;
    return report;
  }
  report.outcome = worker.verify(job, inputs, samples);
  if (report.outcome.status == TrialStatus::kOk) report.kernel = VerifiedKernel(job, report.outcome);
  return report;
}

}  // namespace kw::tuner
