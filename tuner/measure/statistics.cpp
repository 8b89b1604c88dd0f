// See statistics.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace kw::tuner {
namespace {

constexpr int kNumResamples = 2000;

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers on every machine, unlike the distributions of <random>.
std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15ull;
  std::uint64_t value = state;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

double percentile_of_sorted(const std::vector<double>& sorted, double fraction) {
  if (sorted.empty()) return 0;
  const double rank = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(rank));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (rank - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

double percentile(std::span<const double> samples, double fraction) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  return percentile_of_sorted(sorted, fraction);
}

RatioInterval bootstrap_interval(std::span<const double> ratios) {
  if (ratios.empty()) return {};
  std::uint64_t state = 1;
  std::vector<double> medians, resample(ratios.size());
  for (int round = 0; round < kNumResamples; ++round) {
    for (double& value : resample) value = ratios[next_random(state) % ratios.size()];
    medians.push_back(median(resample));
  }
  std::sort(medians.begin(), medians.end());
  return {median(ratios), percentile_of_sorted(medians, 0.025), percentile_of_sorted(medians, 0.975)};
}

}  // namespace kw::tuner
