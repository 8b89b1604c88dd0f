// Order statistics of samples, and the bootstrap interval of a duel. Pure and deterministic.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

namespace kw::tuner {

/// Linear interpolation between the closest ranks; `fraction` in [0, 1]. 0 when there is no sample.
double percentile(std::span<const double> samples, double fraction);
inline double median(std::span<const double> samples) { return percentile(samples, 0.5); }

struct RatioInterval {
  double median = 0, low = 0, high = 0;
};
/// Median of `ratios` with its 95 % interval: percentiles of the medians of 2000 resamples, from a fixed seed.
RatioInterval bootstrap_interval(std::span<const double> ratios);

}  // namespace kw::tuner
