// Transposition, tiled product, matrix times vector, naive attention and a cp.async copy on the simulator; planted faults are found.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/simulator/kernels/kernel_case.h"
#include "tests/simulator/kernels/values.h"

namespace kw::simulate {
namespace {

LaunchCall transpose_call(Simulation& simulation, const std::string& kernel, const std::vector<float>& in, int rows, int columns,
                          std::uint64_t& out) {
  const std::uint64_t from = input(simulation, "in", in);
  out = output(simulation, "out", in.size() * 4);
  return {.kernel = kernel,
          .grid = {static_cast<std::uint32_t>((columns + 31) / 32), static_cast<std::uint32_t>((rows + 31) / 32), 1},
          .block = {32, 8, 1},
          .arguments = {argument(from), argument(out), argument(rows), argument(columns)}};
}

LaunchCall scale_call(Simulation& simulation, const std::string& kernel, const std::vector<float>& in, int tiles, std::uint64_t& out) {
  const std::uint64_t from = input(simulation, "in", in);
  out = output(simulation, "out", in.size() * 4);
  return {.kernel = kernel,
          .grid = {2, 1, 1},
          .block = {128, 1, 1},
          .arguments = {argument(from), argument(out), argument(tiles), argument(2.0f)}};
}

}  // namespace

TEST_CASE("transposition through padded shared memory is exact, also off the tile") {
  const Module module = load_fixture("matrix_kernels.ptx");
  for (const auto& [rows, columns] : {std::pair{32, 32}, {50, 70}, {1, 33}}) {
    const std::vector<float> in = random_floats(rows * columns, 1.0f, 1);
    on_every_schedule([&](Simulation& simulation) {
      std::uint64_t out = 0;
      run_clean(simulation, module, transpose_call(simulation, "transpose", in, rows, columns, out));
      const std::vector<float> got = values_at<float>(simulation, out);
      for (int row = 0; row < rows; ++row) {
        for (int column = 0; column < columns; ++column) REQUIRE(got[at(column * rows + row)] == in[at(row * columns + column)]);
      }
    });
  }
}

TEST_CASE("transposition without its barrier is found") {
  const Module module = load_fixture("matrix_kernels.ptx");
  const std::vector<float> in = random_floats(64 * 64, 1.0f, 1);
  const std::vector<FindingKind> kinds = kinds_found(module, [&](Simulation& simulation) {
    std::uint64_t out = 0;
    return transpose_call(simulation, "transpose_without_barrier", in, 64, 64, out);
  });
  CHECK(std::find(kinds.begin(), kinds.end(), FindingKind::kRace) != kinds.end());
}

TEST_CASE("a tiled product is exact for whole numbers, also off the tile") {
  const Module module = load_fixture("matrix_kernels.ptx");
  const int m = 35, n = 21, k = 40;
  const std::vector<float> a = random_whole(m * k, 5, 1), b = random_whole(k * n, 5, 2);
  on_every_schedule([&](Simulation& simulation) {
    const std::uint64_t from_a = input(simulation, "a", a), from_b = input(simulation, "b", b), out = output(simulation, "c", 4ull * m * n);
    run_clean(simulation, module,
              {.kernel = "tiled_product",
               .grid = {2, 3, 1},
               .block = {16, 16, 1},
               .arguments = {argument(from_a), argument(from_b), argument(out), argument(m), argument(n), argument(k)}});
    const std::vector<float> got = values_at<float>(simulation, out);
    for (int row = 0; row < m; ++row) {
      for (int column = 0; column < n; ++column) {
        float sum = 0;
        for (int step = 0; step < k; ++step) sum += a[at(row * k + step)] * b[at(step * n + column)];
        REQUIRE(got[at(row * n + column)] == sum);
      }
    }
  });
}

TEST_CASE("matrix times vector with float4 loads is exact for whole numbers") {
  const Module module = load_fixture("matrix_kernels.ptx");
  const int rows = 13, quads = 50;
  const std::vector<float> matrix = random_whole(rows * 4 * quads, 5, 3), vector = random_whole(4 * quads, 5, 4);
  on_every_schedule([&](Simulation& simulation) {
    const std::uint64_t from = input(simulation, "matrix", matrix), with = input(simulation, "vector", vector),
                        out = output(simulation, "out", 4ull * rows);
    run_clean(simulation, module,
              {.kernel = "matrix_times_vector",
               .grid = {4, 1, 1},
               .block = {32, 4, 1},
               .arguments = {argument(from), argument(with), argument(out), argument(rows), argument(quads)}});
    const std::vector<float> got = values_at<float>(simulation, out);
    for (int row = 0; row < rows; ++row) {
      float sum = 0;
      for (int column = 0; column < 4 * quads; ++column) sum += matrix[at(row * 4 * quads + column)] * vector[at(column)];
      REQUIRE(got[at(row)] == sum);
    }
  });
}

TEST_CASE("naive attention with scores in dynamic shared memory is right on three schedules") {
  const Module module = load_fixture("matrix_kernels.ptx");
  const int queries = 3, keys = 41, head = 64;
  const std::vector<std::uint16_t> q = random_16bit(FloatFormat::kF16, queries * head, 1),
                                   k = random_16bit(FloatFormat::kF16, keys * head, 2), v = random_16bit(FloatFormat::kF16, keys * head, 3);
  on_every_schedule([&](Simulation& simulation) {
    const std::uint64_t from_q = input(simulation, "q", q), from_k = input(simulation, "k", k), from_v = input(simulation, "v", v);
    const std::uint64_t out = output(simulation, "out", q.size() * 2);
    run_clean(simulation, module,
              {.kernel = "naive_attention",
               .grid = {3, 1, 1},
               .block = {64, 1, 1},
               .dynamic_shared_bytes = 4 * keys,
               .arguments = {argument(from_q), argument(from_k), argument(from_v), argument(out), argument(keys), argument(0.125f)}});
    const std::vector<std::uint16_t> got = values_at<std::uint16_t>(simulation, out);
    for (int query = 0; query < queries; ++query) {
      std::vector<double> weights;
      double sum = 0;
      for (int key = 0; key < keys; ++key) {
        double score = 0;
        for (int d = 0; d < head; ++d) score += half_value(q[at(query * head + d)]) * 0.125 * half_value(k[at(key * head + d)]);
        weights.push_back(std::exp(score));
        sum += weights.back();
      }
      for (int d = 0; d < head; ++d) {
        double expected = 0;
        for (int key = 0; key < keys; ++key) expected += weights[at(key)] / sum * half_value(v[at(key * head + d)]);
        REQUIRE(std::fabs(half_value(got[at(query * head + d)]) - expected) <= std::fabs(expected) * 0x1p-11 + 2e-5);
      }
    }
  });
}

TEST_CASE("a double-buffered copy with cp.async is exact, and without its wait it is found") {
  const Module module = load_fixture("matrix_kernels.ptx");
  const int tiles = 5;
  const std::vector<float> in = random_whole(2 * tiles * 128 * 4, 9, 1);
  on_every_schedule([&](Simulation& simulation) {
    std::uint64_t out = 0;
    run_clean(simulation, module, scale_call(simulation, "scale_reversed", in, tiles, out));
    const std::vector<float> got = values_at<float>(simulation, out);
    for (int quad = 0; quad < 2 * tiles * 128; ++quad) {
      const int source = quad / 128 * 128 + 127 - quad % 128;
      for (int element = 0; element < 4; ++element) REQUIRE(got[at(4 * quad + element)] == 2 * in[at(4 * source + element)]);
    }
  });
  const std::vector<FindingKind> kinds = kinds_found(module, [&](Simulation& simulation) {
    std::uint64_t out = 0;
    return scale_call(simulation, "scale_reversed_without_wait", in, tiles, out);
  });
  CHECK_FALSE(kinds.empty());
}

}  // namespace kw::simulate
