// The search's decisions: what is tried, what reaches the final, what is duelled.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/search/search.h"

#include <algorithm>
#include <set>

#include "tests/catch.h"

namespace kw::tuner {

TEST_CASE("halving tries the model's best first and a few from further down, each once") {
  const std::vector<std::size_t> chosen =
      choose_first_rung(1000, {.kind = SearchKind::kHalving, .budget_seconds = 60, .seed = 1, .max_per_class = 8, .max_first_rung = 64});
  CHECK(chosen.size() == 64);
  CHECK(std::set<std::size_t>(chosen.begin(), chosen.end()).size() == 64);
  for (std::size_t i = 0; i < 56; ++i) CHECK(chosen[i] == i);
  CHECK(*std::max_element(chosen.begin(), chosen.end()) >= 64);
  CHECK(chosen ==
        choose_first_rung(1000, {.kind = SearchKind::kHalving, .budget_seconds = 60, .seed = 1, .max_per_class = 8, .max_first_rung = 64}));
}

TEST_CASE("a small budget tries fewer, and a small space is tried whole") {
  CHECK(choose_first_rung(1000, {.kind = SearchKind::kHalving, .budget_seconds = 6, .seed = 1, .max_per_class = 8, .max_first_rung = 64})
            .size() == 24);
  CHECK(choose_first_rung(5, {.kind = SearchKind::kHalving, .budget_seconds = 60, .seed = 1, .max_per_class = 8, .max_first_rung = 64})
            .size() == 5);
  CHECK(choose_first_rung(0, {}).empty());
  CHECK(choose_first_rung(777, {.kind = SearchKind::kExhaustive, .budget_seconds = 1, .seed = 1, .max_per_class = 8, .max_first_rung = 64})
            .size() == 777);
}

TEST_CASE("configs that the model cannot tell apart fill only their share of the first rung") {
  std::vector<std::size_t> classes(1000);
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = i / 100;  // ten classes of a hundred
  const SearchOptions options = {.kind = SearchKind::kHalving, .budget_seconds = 60, .seed = 1, .max_per_class = 5, .max_first_rung = 64};
  const std::vector<std::size_t> chosen = choose_first_rung(classes, options);
  CHECK(chosen.size() == 64);
  CHECK(std::set<std::size_t>(chosen.begin(), chosen.end()).size() == 64);
  const std::set<std::size_t> tried(chosen.begin(), chosen.end());
  for (std::size_t i = 0; i < 5; ++i) CHECK(tried.contains(900 + i));
  CHECK(tried.contains(5));  // the places that are left go to the model's best
  CHECK(choose_first_rung(std::vector<std::size_t>(1000, 0), options).size() == 64);
}

TEST_CASE("a run that ends early has seen two of each class before a third of any") {
  std::vector<std::size_t> classes(1000);
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = i / 100;
  const std::vector<std::size_t> chosen = choose_first_rung(classes, {.budget_seconds = 60, .max_per_class = 5});
  const std::vector<std::size_t> begin(chosen.begin(), chosen.begin() + 6);
  CHECK(begin == std::vector<std::size_t>{0, 1, 100, 101, 200, 201});
  CHECK(chosen[19] == 901);
  CHECK(chosen[20] == 2);
}

TEST_CASE("what is put first is tried once") {
  CHECK(put_first({0, 1, 2, 3}, {2, 7}) == std::vector<std::size_t>{2, 7, 0, 1, 3});
  CHECK(put_first({0, 1}, {}) == std::vector<std::size_t>{0, 1});
  CHECK(put_first({}, {4}) == std::vector<std::size_t>{4});
}

TEST_CASE("the random search depends on its seed alone") {
  SearchOptions options = {.kind = SearchKind::kRandom, .budget_seconds = 60, .seed = 1, .max_per_class = 8, .max_first_rung = 64};
  const auto first = choose_first_rung(1000, options);
  CHECK(first == choose_first_rung(1000, options));
  options.seed = 2;
  CHECK(first != choose_first_rung(1000, options));
}

TEST_CASE("finalists are the fastest quarter, at least four, with all ties") {
  std::vector<double> times(64);
  for (std::size_t i = 0; i < times.size(); ++i) times[i] = 100 + 10.0 * static_cast<double>(63 - i);
  times[63] = -1;  // not measured
  const auto finalists = choose_finalists(times, 0.03);
  CHECK(finalists.size() == 12);
  CHECK(finalists.front() == 62);
  CHECK(choose_finalists({5, -1, 4}, 0.03) == std::vector<std::size_t>{2, 0});
  CHECK(choose_finalists(std::vector<double>(64, 7.0), 0.03).size() == 16);
  CHECK(choose_finalists({-1, -1}, 0.03).empty());
}

TEST_CASE("duellists lie within the tie band of the fastest") {
  CHECK(choose_duellists({100, 102, 104, -1, 101}, 0.03, 4) == std::vector<std::size_t>{0, 4, 1});
  CHECK(choose_duellists({100, 100, 100}, 0.03, 2).size() == 2);
}

TEST_CASE("every search kind survives the way to text and back") {
  for (const SearchKind kind : {SearchKind::kHalving, SearchKind::kExhaustive, SearchKind::kRandom})
    CHECK(search_kind_from_text(to_text(kind)) == kind);
  CHECK_FALSE(search_kind_from_text("genetic").has_value());
}

}  // namespace kw::tuner
