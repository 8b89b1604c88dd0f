// Softmax and RMSNorm of other people's style on the simulator: right on three schedules, and a missing barrier is found.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "simulator/tensor/convert.h"
#include "tests/simulator/kernels/kernel_case.h"
#include "tests/simulator/kernels/values.h"

namespace kw::simulate {
namespace {

LaunchCall softmax_call(Simulation& simulation, const std::string& kernel, const std::vector<float>& in, int rows, int columns,
                        std::uint64_t& out) {
  const std::uint64_t from = input(simulation, "in", in);
  out = output(simulation, "out", in.size() * sizeof(float));
  return {.kernel = kernel,
          .grid = {static_cast<std::uint32_t>(rows), 1, 1},
          .block = {128, 1, 1},
          .arguments = {argument(from), argument(out), argument(columns)}};
}

}  // namespace

TEST_CASE("softmax of rows is right on three schedules, at widths below, at and beyond the block") {
  const Module module = load_fixture("row_kernels.ptx");
  for (const int columns : {1, 37, 128, 1000}) {
    const int rows = 3;
    std::vector<float> in = random_floats(rows * columns, 4.0f, 1);
    in[0] = 90;  // one row with a peak
    on_every_schedule([&](Simulation& simulation) {
      std::uint64_t out = 0;
      run_clean(simulation, module, softmax_call(simulation, "softmax_rows", in, rows, columns, out));
      const std::vector<float> got = values_at<float>(simulation, out);
      for (int row = 0; row < rows; ++row) {
        double largest = -INFINITY, sum = 0;
        for (int column = 0; column < columns; ++column) largest = std::max<double>(largest, in[at(row * columns + column)]);
        for (int column = 0; column < columns; ++column) sum += std::exp(in[at(row * columns + column)] - largest);
        for (int column = 0; column < columns; ++column) {
          const double expected = std::exp(in[at(row * columns + column)] - largest) / sum;
          // ex2.approx of x * log2(e) rounded to f32: |x| 2^-24 relative, |x| < 100; then a sum of up to 1000 terms.
          REQUIRE(std::fabs(got[at(row * columns + column)] - expected) <= expected * 2e-5 + 1e-30);
        }
      }
    });
  }
}

TEST_CASE("softmax without the barrier between two uses of its shared words races") {
  const Module module = load_fixture("row_kernels.ptx");
  const std::vector<float> in = random_floats(1000, 4.0f, 2);
  const std::vector<FindingKind> kinds = kinds_found(module, [&](Simulation& simulation) {
    std::uint64_t out = 0;
    return softmax_call(simulation, "softmax_rows_without_barrier", in, 1, 1000, out);
  });
  CHECK(kinds == std::vector{FindingKind::kRace});
}

TEST_CASE("RMSNorm on bf16 pairs is right on three schedules, rows off the block's edge") {
  const Module module = load_fixture("row_kernels.ptx");
  const int rows = 11, pairs = 100;
  const std::vector<std::uint16_t> in = random_bf16(rows * 2 * pairs, 3), weight = random_bf16(2 * pairs, 4);
  on_every_schedule([&](Simulation& simulation) {
    const std::uint64_t from = input(simulation, "in", in), gain = input(simulation, "weight", weight);
    const std::uint64_t out = output(simulation, "out", in.size() * 2);
    run_clean(simulation, module,
              {.kernel = "rms_norm",
               .grid = {3, 1, 1},
               .block = {128, 1, 1},
               .arguments = {argument(from), argument(gain), argument(out), argument(rows), argument(pairs), argument(1e-5f)}});
    const std::vector<std::uint16_t> got = values_at<std::uint16_t>(simulation, out);
    for (int row = 0; row < rows; ++row) {
      double squares = 0;
      for (int column = 0; column < 2 * pairs; ++column) squares += std::pow(bf16_value(in[at(row * 2 * pairs + column)]), 2);
      const double scale = 1 / std::sqrt(squares / (2 * pairs) + 1e-5);
      for (int column = 0; column < 2 * pairs; ++column) {
        const double expected = bf16_value(in[at(row * 2 * pairs + column)]) * scale * bf16_value(weight[at(column)]);
        REQUIRE(std::fabs(bf16_value(got[at(row * 2 * pairs + column)]) - expected) <= std::fabs(expected) * 0x1p-8 + 1e-30);
      }
    }
  });
}

}  // namespace kw::simulate
