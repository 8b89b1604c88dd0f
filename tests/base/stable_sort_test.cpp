// kw::stable_sort: the order of equal elements, and elements that only move.
// SPDX-License-Identifier: Apache-2.0
#include "generator/base/stable_sort.h"

#include <memory>

#include "tests/catch.h"

using kw::stable_sort;

TEST_CASE("a stable sort keeps the order of equal elements") {
  std::vector<std::pair<int, int>> values;
  for (int i = 0; i < 1000; ++i) values.emplace_back((i * 7919) % 10, i);
  stable_sort(values, [](const auto& a, const auto& b) { return a.first > b.first; });
  REQUIRE(values.size() == 1000);
  for (std::size_t i = 1; i < values.size(); ++i) {
    const bool is_in_order =
        values[i - 1].first > values[i].first || (values[i - 1].first == values[i].first && values[i - 1].second < values[i].second);
    CHECK(is_in_order);
  }
}

TEST_CASE("a stable sort moves elements that cannot be copied") {
  std::vector<std::unique_ptr<int>> values;
  for (const int value : {3, 1, 2}) values.push_back(std::make_unique<int>(value));
  stable_sort(values, [](const auto& a, const auto& b) { return *a < *b; });
  CHECK(*values[0] == 1);
  CHECK(*values[1] == 2);
  CHECK(*values[2] == 3);
}
