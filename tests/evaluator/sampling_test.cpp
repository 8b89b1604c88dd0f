// Sampled coordinates: whole small tensors; corners, ends, tile edges and random positions of large ones.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/verify/sampling.h"

#include <set>

#include "tests/catch.h"
#include "tests/spec/spec_helpers.h"

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

TEST_CASE("where rows cost much, the samples lie in few of them") {
  const Point extents = {4096, 4096};
  const std::vector<std::int64_t> flat = sample_coordinates(extents, 4096, 3, 25);
  std::set<std::int64_t> rows, columns;
  for (size_t i = 0; i < flat.size(); i += 2) {
    rows.insert(flat[i]);
    columns.insert(flat[i + 1]);
  }
  CHECK(flat.size() == 2 * 4096);
  CHECK(rows.size() == 25);
  for (const std::int64_t edge : {0, 4095, 255, 256}) CHECK(rows.contains(edge));
  for (const std::int64_t edge : {0, 4095, 255, 256}) CHECK(columns.contains(edge));
  CHECK(sample_coordinates({4096, 8}, 4096, 3, 25).size() == 2 * 25 * 8);
}

TEST_CASE("the rows of intermediates that a reduction reads are counted, those of a sum that is read where it stands are not") {
  const auto work = [](const std::string& body) {
    const std::string text =
        "name = \"t\"\n[dims]\nM = 8\nN = 24\nK = 16\n[tensors]\nA = { dtype = \"f16\", shape = [\"M\", \"K\"] }\n"
        "B = { dtype = \"f16\", shape = [\"N\", \"K\"] }\nC = { dtype = \"f16\", shape = [\"K\", \"N\"] }\n"
        "out = { dtype = \"f16\", shape = [\"M\", \"K\"], role = \"out\" }\n[compute]\nbody = \"\"\"\n" +
        body + "\n\"\"\"\n";
    const auto program = kw::generator::program_of(text);
    return kw::tuner::whole_row_work(*program, program->problems.front());
  };
  CHECK(work("g[m,n] = sum[k](A[m,k] * B[n,k])\nout[m,k] = sum[n](g[m,n] * C[k,n])") == 8 * 24 * 16);
  CHECK(work("g[m,n] = sum[k](A[m,k] * B[n,k])\nh[m,n] = relu(g[m,n])\nout[m,k] = sum[n](h[m,n] * C[k,n])") == 8 * 24 * 16);
}
