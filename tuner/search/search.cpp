// The decisions of the search.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/search/search.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "generator/base/stable_sort.h"

namespace kw::tuner {
namespace {

constexpr double kSecondsPerVariant = 0.25;    // compile, verify and early timing of one variant at best, seen on 16 cores and one H200
constexpr std::size_t kExplorationStride = 8;  // one place in eight for configs the model does not favour
constexpr std::size_t kOfClassAtOnce = 2;
constexpr std::size_t kMinFinalists = 4, kMaxFinalists = 12, kMaxTiedFinalists = 16;

std::vector<std::size_t> measured_fastest_first(const std::vector<double>& times_us) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < times_us.size(); ++i)
    if (times_us[i] > 0) order.push_back(i);
  kw::stable_sort(order, [&](std::size_t a, std::size_t b) { return times_us[a] < times_us[b]; });
  return order;
}

}  // namespace

std::string_view to_text(SearchKind kind) {
  switch (kind) {
    case SearchKind::kHalving:
      return "halving";
    case SearchKind::kExhaustive:
      return "exhaustive";
    case SearchKind::kRandom:
      return "random";
  }
  return "unknown";
}

std::optional<SearchKind> search_kind_from_text(std::string_view text) {
  for (const SearchKind kind : {SearchKind::kHalving, SearchKind::kExhaustive, SearchKind::kRandom})
    if (to_text(kind) == text) return kind;
  return std::nullopt;
}

std::vector<std::size_t> choose_first_rung(const std::vector<std::size_t>& class_of, const SearchOptions& options) {
  const std::size_t num_ranked = class_of.size();
  std::vector<std::size_t> all(num_ranked);
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (options.kind == SearchKind::kExhaustive) return all;
  const auto affordable = static_cast<std::size_t>(std::max(4.0, options.budget_seconds / kSecondsPerVariant));
  const std::size_t count = std::min({num_ranked, affordable, static_cast<std::size_t>(options.max_first_rung)});
  std::mt19937_64 random(options.seed);
  if (options.kind == SearchKind::kRandom) {
    std::shuffle(all.begin(), all.end(), random);
    all.resize(count);
    return all;
  }
  const std::size_t num_favoured = count - (num_ranked > count ? count / kExplorationStride : 0);
  std::vector<std::size_t> chosen;
  std::set<std::size_t> taken;
  std::map<std::size_t, std::size_t> num_of_class;
  const auto take = [&](std::size_t position) {
    if (taken.insert(position).second) chosen.push_back(position);
  };
  for (std::size_t i = 0; i < num_ranked && chosen.size() < num_favoured; ++i)
    if (num_of_class[class_of[i]]++ < options.max_per_class) take(i);
  for (std::size_t i = 0; i < num_ranked && chosen.size() < num_favoured; ++i) take(i);  // few classes: the next best of them
  std::map<std::size_t, std::size_t> num_before;                                         // of a class
  std::vector<std::size_t> turn(num_ranked);
  for (const std::size_t position : chosen) turn[position] = num_before[class_of[position]]++ / kOfClassAtOnce;
  kw::stable_sort(chosen, [&](std::size_t a, std::size_t b) { return turn[a] < turn[b]; });
  while (chosen.size() < count) take(random() % num_ranked);
  return chosen;
}

std::vector<std::size_t> put_first(const std::vector<std::size_t>& chosen, const std::vector<std::size_t>& first) {
  std::vector<std::size_t> order = first;
  const auto is_new = [&](std::size_t position) { return std::find(first.begin(), first.end(), position) == first.end(); };
  std::copy_if(chosen.begin(), chosen.end(), std::back_inserter(order), is_new);
  return order;
}

std::vector<std::size_t> choose_first_rung(std::size_t num_ranked, const SearchOptions& options) {
  std::vector<std::size_t> class_of(num_ranked);
  std::iota(class_of.begin(), class_of.end(), std::size_t{0});
  return choose_first_rung(class_of, options);
}

std::vector<std::size_t> choose_finalists(const std::vector<double>& early_us, double tie_band) {
  std::vector<std::size_t> order = measured_fastest_first(early_us);
  if (order.empty()) return order;
  const double limit_us = early_us[order.front()] * (1 + tie_band);
  std::size_t count = std::clamp(order.size() / 4, kMinFinalists, kMaxFinalists);
  while (count < order.size() && count < kMaxTiedFinalists && early_us[order[count]] <= limit_us) ++count;
  order.resize(std::min(count, order.size()));
  return order;
}

std::vector<std::size_t> choose_duellists(const std::vector<double>& final_us, double tie_band, std::size_t max_count) {
  std::vector<std::size_t> order = measured_fastest_first(final_us);
  std::size_t count = 0;
  while (count < order.size() && count < max_count && final_us[order[count]] <= final_us[order.front()] * (1 + tie_band)) ++count;
  order.resize(count);
  return order;
}

}  // namespace kw::tuner
