// See mutation_cases.h.
// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/mutation/mutation_cases.h"

#include "tests/simulator/kernels/gemm_tma_wgmma_case.h"
#include "tests/simulator/mutation/sm80_gemm_case.h"

namespace kw::simulate {
namespace {

PreparedLaunch softmax(Simulation& simulation) {
  std::vector<float> values = random_floats(3 * 300, 4.0f, 1);
  for (const int row : {0, 1, 2}) values[at(300 * row + 299)] = 200;  // without it in the maximum, exp overflows
  const std::uint64_t in = input(simulation, "in", values), out = output(simulation, "out", 3 * 300 * 4);
  return {{.kernel = "softmax_rows", .grid = {3, 1, 1}, .block = {128, 1, 1}, .arguments = {argument(in), argument(out), argument(300)}},
          {out}};
}

PreparedLaunch rms_norm(Simulation& simulation) {
  const int rows = 11, pairs = 300;
  const std::uint64_t in = input(simulation, "in", random_bf16(rows * 2 * pairs, 3)),
                      gain = input(simulation, "weight", random_bf16(2 * pairs, 4)), out = output(simulation, "out", 4ull * rows * pairs);
  return {{.kernel = "rms_norm",
           .grid = {3, 1, 1},
           .block = {128, 1, 1},
           .arguments = {argument(in), argument(gain), argument(out), argument(rows), argument(pairs), argument(1e-5f)}},
          {out}};
}

PreparedLaunch sum_by_last_cta(Simulation& simulation) {
  const std::uint64_t in = input(simulation, "in", random_whole(1001, 8, 2)), partial = output(simulation, "partial", 7 * 4),
                      out = output(simulation, "out", 4);
  return {{.kernel = "sum_by_last_cta",
           .grid = {7, 1, 1},
           .block = {64, 1, 1},
           .arguments = {argument(in), argument(partial), argument(out), argument(1001)}},
          {out}};
}

PreparedLaunch sum_with_atomics(Simulation& simulation) {
  const std::uint64_t in = input(simulation, "in", random_whole(1001, 8, 1)), out = output(simulation, "out", 4, true);
  return {
      {.kernel = "sum_with_atomics", .grid = {3, 1, 1}, .block = {128, 1, 1}, .arguments = {argument(in), argument(out), argument(1001)}},
      {out}};
}

PreparedLaunch histogram(Simulation& simulation) {
  std::vector<std::uint8_t> in(1321);
  for (std::size_t index = 0; index < in.size(); ++index) in[index] = static_cast<std::uint8_t>(mix_bits(index));
  const std::uint64_t from = input(simulation, "in", in), bins = output(simulation, "bins", 1024, true);
  return {{.kernel = "histogram", .grid = {3, 1, 1}, .block = {96, 1, 1}, .arguments = {argument(from), argument(bins), argument(1321)}},
          {bins}};
}

PreparedLaunch compact(Simulation& simulation) {
  const int part = 333;
  std::vector<std::int32_t> in(2 * part);
  for (std::size_t index = 0; index < in.size(); ++index) in[index] = static_cast<std::int32_t>(mix_bits(index) % 200) - 100;
  const std::uint64_t from = input(simulation, "in", in), out = output(simulation, "out", in.size() * 4, true),
                      counts = output(simulation, "counts", 8);
  return {{.kernel = "compact_positive",
           .grid = {2, 1, 1},
           .block = {224, 1, 1},
           .arguments = {argument(from), argument(out), argument(counts), argument(part)}},
          {out, counts}};
}

PreparedLaunch transpose(Simulation& simulation) {
  const std::uint64_t in = input(simulation, "in", random_floats(50 * 70, 1.0f, 1)), out = output(simulation, "out", 50 * 70 * 4);
  return {{.kernel = "transpose",
           .grid = {3, 2, 1},
           .block = {32, 8, 1},
           .arguments = {argument(in), argument(out), argument(50), argument(70)}},
          {out}};
}

PreparedLaunch tiled_product(Simulation& simulation) {
  const int m = 35, n = 21, k = 40;
  const std::uint64_t a = input(simulation, "a", random_whole(m * k, 5, 1)), b = input(simulation, "b", random_whole(k * n, 5, 2)),
                      out = output(simulation, "c", 4ull * m * n);
  return {{.kernel = "tiled_product",
           .grid = {2, 3, 1},
           .block = {16, 16, 1},
           .arguments = {argument(a), argument(b), argument(out), argument(m), argument(n), argument(k)}},
          {out}};
}

PreparedLaunch matrix_times_vector(Simulation& simulation) {
  const int rows = 13, quads = 300;
  const std::uint64_t matrix = input(simulation, "matrix", random_whole(rows * 4 * quads, 5, 3)),
                      vector = input(simulation, "vector", random_whole(4 * quads, 5, 4)), out = output(simulation, "out", 4ull * rows);
  return {{.kernel = "matrix_times_vector",
           .grid = {4, 1, 1},
           .block = {32, 4, 1},
           .arguments = {argument(matrix), argument(vector), argument(out), argument(rows), argument(quads)}},
          {out}};
}

/// `has_peak`: the last key outweighs all others, so that exp overflows without it in the maximum.
PreparedLaunch attention(Simulation& simulation, bool has_peak) {
  const int keys = 43, head = 224;  // seven warps: four in the unrolled loop, three in the rest
  const std::vector<std::uint16_t> q = random_16bit(FloatFormat::kF16, 2 * head, 1);
  std::vector<std::uint16_t> k = random_16bit(FloatFormat::kF16, keys * head, 2);
  for (int d = 0; d < head && has_peak; ++d) {
    k[at((keys - 1) * head + d)] = static_cast<std::uint16_t>(encode(FloatFormat::kF16, 60 * half_value(q[at(d)])));
  }
  const std::uint64_t from_q = input(simulation, "q", q), from_k = input(simulation, "k", k),
                      v = input(simulation, "v", random_16bit(FloatFormat::kF16, keys * head, 3)),
                      out = output(simulation, "out", 4ull * head);
  return {{.kernel = "naive_attention",
           .grid = {2, 1, 1},
           .block = {head, 1, 1},
           .dynamic_shared_bytes = 4 * keys,
           .arguments = {argument(from_q), argument(from_k), argument(v), argument(out), argument(keys), argument(0.125f)}},
          {out}};
}

PreparedLaunch scale_reversed(Simulation& simulation) {
  const int tiles = 7;  // four in the unrolled loop, three in the rest
  const std::uint64_t in = input(simulation, "in", random_whole(2 * tiles * 128 * 4, 9, 1)),
                      out = output(simulation, "out", 2ull * tiles * 128 * 16);
  return {{.kernel = "scale_reversed",
           .grid = {2, 1, 1},
           .block = {128, 1, 1},
           .arguments = {argument(in), argument(out), argument(tiles), argument(2.0f)}},
          {out}};
}

}  // namespace

std::vector<MutationCase> sm90_cases() {
  // One cluster works on four tiles in three stages, rows and columns end off the tile. Seven k blocks, the last one short; two and
  // three for the rest loops of the unrolled producer.
  std::vector<std::function<PreparedLaunch(Simulation&)>> problems;
  for (const int k : {6 * 64 + 8, 2 * 64, 3 * 64}) {
    const GemmShape shape{300, 96, k, 2};
    problems.emplace_back([shape, a = whole_bf16(shape.m * shape.k, 1), b = whole_bf16(shape.n * shape.k, 2)](Simulation& simulation) {
      GemmBuffers buffers = prepare_gemm(simulation, shape, a, b);
      return PreparedLaunch{std::move(buffers.call), {buffers.c}};
    });
  }
  return {{"gemm_sm90", kGemmFixture, "gemm_tma_wgmma", problems}};
}

std::vector<MutationCase> sm80_cases() {
  std::vector<MutationCase> cases;
  for (const Sm80Gemm& gemm : {plain_sm80_gemm(), split_k_sm80_gemm()}) {
    cases.push_back(
        {gemm.name, gemm.fixture, gemm.kernel, {[gemm](Simulation& simulation) { return prepare_sm80_gemm(simulation, gemm); }}});
  }
  return cases;
}

std::vector<MutationCase> small_kernel_cases() {
  return {{"softmax", "row_kernels.ptx", "softmax_rows", {softmax}},
          {"rms_norm", "row_kernels.ptx", "rms_norm", {rms_norm}},
          {"sum_by_last_cta", "reduction_kernels.ptx", "sum_by_last_cta", {sum_by_last_cta}},
          {"sum_with_atomics", "reduction_kernels.ptx", "sum_with_atomics", {sum_with_atomics}},
          {"histogram", "reduction_kernels.ptx", "histogram", {histogram}},
          {"compact_positive", "reduction_kernels.ptx", "compact_positive", {compact}},
          {"transpose", "matrix_kernels.ptx", "transpose", {transpose}},
          {"tiled_product", "matrix_kernels.ptx", "tiled_product", {tiled_product}},
          {"matrix_times_vector", "matrix_kernels.ptx", "matrix_times_vector", {matrix_times_vector}},
          {"naive_attention",
           "matrix_kernels.ptx",
           "naive_attention",
           {[](Simulation& simulation) { return attention(simulation, false); },
            [](Simulation& simulation) { return attention(simulation, true); }}},
          {"scale_reversed", "matrix_kernels.ptx", "scale_reversed", {scale_reversed}}};
}

}  // namespace kw::simulate
