// Reductions, histogram, compaction and compare-and-swap loops on the simulator; a missing fence between CTAs is found.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "tests/simulator/kernels/kernel_case.h"
#include "tests/simulator/kernels/values.h"

namespace kw::simulate {

TEST_CASE("a sum by shuffles and one atomic a CTA is exact for whole numbers") {
  const Module module = load_fixture("reduction_kernels.ptx");
  const std::vector<float> in = random_whole(5000, 8, 1);
  const float expected = std::accumulate(in.begin(), in.end(), 0.0f);
  on_every_schedule([&](Simulation& simulation) {
    const std::uint64_t from = input(simulation, "in", in), out = output(simulation, "out", 4, true);
    run_clean(simulation, module,
              {.kernel = "sum_with_atomics",
               .grid = {5, 1, 1},
               .block = {256, 1, 1},
               .arguments = {argument(from), argument(out), argument(5000)}});
    CHECK(values_at<float>(simulation, out)[0] == expected);
  });
}

TEST_CASE("the last CTA to arrive sums the others' parts, twice in a row") {
  const Module module = load_fixture("reduction_kernels.ptx");
  const std::vector<float> in = random_whole(3001, 8, 2);
  const float expected = std::accumulate(in.begin(), in.end(), 0.0f);
  on_every_schedule([&](Simulation& simulation) {
    const std::uint64_t from = input(simulation, "in", in), partial = output(simulation, "partial", 7 * 4),
                        out = output(simulation, "out", 4);
    for (int launch = 0; launch < 2; ++launch) {
      run_clean(simulation, module,
                {.kernel = "sum_by_last_cta",
                 .grid = {7, 1, 1},
                 .block = {64, 1, 1},
                 .arguments = {argument(from), argument(partial), argument(out), argument(3001)}});
      CHECK(values_at<float>(simulation, out)[0] == expected);
    }
  });
}

TEST_CASE("without its fences the last CTA races with the others' stores") {
  const Module module = load_fixture("reduction_kernels.ptx");
  const std::vector<float> in = random_whole(3001, 8, 2);
  const std::vector<FindingKind> kinds = kinds_found(module, [&](Simulation& simulation) {
    const std::uint64_t from = input(simulation, "in", in), partial = output(simulation, "partial", 7 * 4),
                        out = output(simulation, "out", 4);
    return LaunchCall{.kernel = "sum_by_last_cta_without_fence",
                      .grid = {7, 1, 1},
                      .block = {64, 1, 1},
                      .arguments = {argument(from), argument(partial), argument(out), argument(3001)}};
  });
  CHECK(kinds == std::vector{FindingKind::kRace});
}

TEST_CASE("a histogram with shared and global atomics counts every byte") {
  const Module module = load_fixture("reduction_kernels.ptx");
  std::vector<std::uint8_t> in(4321);
  for (std::size_t index = 0; index < in.size(); ++index)
    in[index] = static_cast<std::uint8_t>(mix_bits(index) % 100);  // some bins stay empty
  std::vector<std::uint32_t> expected(256);
  for (const std::uint8_t value : in) ++expected[value];
  on_every_schedule([&](Simulation& simulation) {
    const std::uint64_t from = input(simulation, "in", in), bins = output(simulation, "bins", 1024, true);
    run_clean(
        simulation, module,
        {.kernel = "histogram", .grid = {4, 1, 1}, .block = {96, 1, 1}, .arguments = {argument(from), argument(bins), argument(4321)}});
    CHECK(values_at<std::uint32_t>(simulation, bins) == expected);
  });
}

TEST_CASE("stream compaction by ballots keeps the order") {
  const Module module = load_fixture("reduction_kernels.ptx");
  const int part = 333, num_parts = 3;
  std::vector<std::int32_t> in(at(part * num_parts));
  for (std::size_t index = 0; index < in.size(); ++index) in[index] = static_cast<std::int32_t>(mix_bits(index) % 200) - 100;
  on_every_schedule([&](Simulation& simulation) {
    const std::uint64_t from = input(simulation, "in", in), out = output(simulation, "out", in.size() * 4, true),
                        counts = output(simulation, "counts", 12);
    run_clean(simulation, module,
              {.kernel = "compact_positive",
               .grid = {3, 1, 1},
               .block = {128, 1, 1},
               .arguments = {argument(from), argument(out), argument(counts), argument(part)}});
    const auto got = values_at<std::int32_t>(simulation, out), num_kept = values_at<std::int32_t>(simulation, counts);
    for (int index = 0; index < num_parts; ++index) {
      std::vector<std::int32_t> expected;
      std::copy_if(in.begin() + index * part, in.begin() + (index + 1) * part, std::back_inserter(expected),
                   [](int value) { return value > 0; });
      REQUIRE(num_kept[at(index)] == static_cast<int>(expected.size()));
      CHECK(std::equal(expected.begin(), expected.end(), got.begin() + index * part));
    }
  });
}

TEST_CASE("a maximum by compare-and-swap loops ends and is right") {
  const Module module = load_fixture("reduction_kernels.ptx");
  std::vector<float> in = random_floats(777, 50.0f, 3);
  on_every_schedule([&](Simulation& simulation) {
    const std::uint64_t from = input(simulation, "in", in), out = output(simulation, "out", 4, true);
    run_clean(
        simulation, module,
        {.kernel = "maximum_by_cas", .grid = {4, 1, 1}, .block = {256, 1, 1}, .arguments = {argument(from), argument(out), argument(777)}});
    CHECK(values_at<float>(simulation, out)[0] == *std::max_element(in.begin(), in.end()));
  });
}

}  // namespace kw::simulate
