// Sampled coordinates: whole small tensors; corners, ends, tile edges and random positions of large ones.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/verify/sampling.h"

#include <set>

#include "tests/catch.h"

using kw::tuner::sample_coordinates;

namespace {

using Point = std::vector<std::int64_t>;

std::set<Point> points_of(const std::vector<std::int64_t>& extents, std::int64_t max_samples, std::uint64_t seed) {
  const std::vector<std::int64_t> flat = sample_coordinates(extents, max_samples, seed);
  std::set<Point> points;
  for (size_t i = 0; i < flat.size(); i += extents.size()) {
    Point point(flat.begin() + static_cast<long>(i), flat.begin() + static_cast<long>(i + extents.size()));
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      REQUIRE(point[axis] >= 0);
      REQUIRE(point[axis] < extents[axis]);
    }
    points.insert(std::move(point));
  }
  CHECK(points.size() * extents.size() == flat.size());  // distinct
  return points;
}

}  // namespace

TEST_CASE("a small tensor is checked whole") {
  CHECK(points_of({7, 9, 5}, 4096, 1).size() == 7 * 9 * 5);
  CHECK(points_of({1, 1}, 4096, 1).size() == 1);
  CHECK(points_of({64, 64}, 4096, 1).size() == 4096);
  CHECK(sample_coordinates({0, 5}, 4096, 1).empty());
}

TEST_CASE("a large tensor gets exactly the samples asked for, with corners, ends and both sides of tile edges") {
  for (const auto& extents : {Point{1024, 4096}, Point{4097, 1023}, Point{3, 1000, 2048}, Point{2, 3, 129, 100}, Point{100000},
                              Point{5, 100000}, Point{100000, 7}}) {
    const std::set<Point> points = points_of(extents, 4096, 3);
    CHECK(points.size() == 4096);
    Point first(extents.size(), 0), last = extents;
    for (auto& coordinate : last) --coordinate;
    CHECK(points.contains(first));
    CHECK(points.contains(last));
    for (size_t axis = extents.size() > 2 ? extents.size() - 2 : 0; axis < extents.size(); ++axis) {
      std::set<std::int64_t> seen;
      for (const Point& point : points) seen.insert(point[axis]);
      CHECK(seen.contains(extents[axis] - 1));
      for (const std::int64_t tile : {16, 32, 64, 128, 256}) {
        if (extents[axis] <= tile) continue;
        CHECK(seen.contains(tile));
        CHECK(seen.contains(tile - 1));
      }
    }
  }
}

TEST_CASE("samples are the same for the same seed and others for another") {
  CHECK(sample_coordinates({1024, 4096}, 4096, 3) == sample_coordinates({1024, 4096}, 4096, 3));
  CHECK(sample_coordinates({1024, 4096}, 4096, 3) != sample_coordinates({1024, 4096}, 4096, 4));
}
