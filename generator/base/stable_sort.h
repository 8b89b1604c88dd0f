// A stable sort of a vector. std::stable_sort of libstdc++ uses std::get_temporary_buffer, which C++17 deprecates and clang reports;
// here positions are sorted by (key, position), so equal elements keep their order on every standard library.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace kw {

/// Sorts `values` by `less`; elements of which neither is less keep their order.
template <typename T, typename Less>
void stable_sort(std::vector<T>& values, Less less) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (less(values[a], values[b])) return true;
    return a < b && !less(values[b], values[a]);
  });
  std::vector<T> sorted;
  sorted.reserve(values.size());
  for (const std::size_t position : order) sorted.push_back(std::move(values[position]));
  values = std::move(sorted);
}

}  // namespace kw
