// Ops that are a call of cuBLASLt, from the texts of their tensors and body, with inputs and reference values.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "generator/plan/library_epilogue.h"
#include "generator/spec/op_spec.h"
#include "tests/catch.h"
#include "tests/tuner/device/fake_gpu.h"
#include "tuner/device/baseline_job.h"
#include "tuner/verify/random_input.h"
#include "tuner/verify/sampling.h"

namespace kw::tuner::test {

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// A job with its inputs and reference values, from the text of a spec.
struct Case {
  BaselineJob job;
  std::vector<InputFill> fills;
  std::vector<OutputSamples> samples;

  Case(const std::string& tensors, const std::string& body, kw::Problem problem) {
    const bool has_batch = has(tensors, "\"P\"");
    if (!has_batch) problem.dims.erase("P");
    const std::string text = "name = \"case\"\n[dims]\nM = \"any\"\nN = \"any\"\nK = \"any\"\n" +
                             std::string(has_batch ? "P = \"any\"\n" : "") + "[tensors]\n" + tensors + "\n[compute]\nbody = \"\"\"\n" +
                             body + "\n\"\"\"\n";
    kw::Diagnostics diagnostics;
    const kw::generator::FileReader read = [](const std::string& name) -> kw::Result<std::string> { return name; };
    const auto syntax = kw::generator::parse_op_spec(text, "case.op.toml", read, diagnostics);
    if (syntax == nullptr) FAIL(diagnostics.to_text());
    const auto program = kw::generator::check_op_spec(*syntax, {}, diagnostics);
    if (program == nullptr) FAIL(diagnostics.to_text());
    const auto matmul = kw::generator::library_matmul(*program, problem);
    if (!matmul) FAIL(matmul.error().message);
    job.matmul = *matmul;
    job.problem.label = "cuBLASLt";
    job.problem.problem = problem;
    for (const kw::generator::Dim& dim : program->dims) job.problem.plan.dims.push_back(dim.name);
    for (const kw::generator::Tensor& tensor : program->tensors)
      job.problem.plan.tensors.push_back({.name = tensor.name,
                                          .dtype = tensor.dtype,
                                          .role = tensor.role,
                                          .shape = tensor.shape,
                                          .strides = tensor.strides,
                                          .align_bytes = tensor.align_bytes});
    fills = input_fills(*program, problem, 7);
    const auto made = reference_samples(*program, problem, fills, {}, 4096, 7, 2);
    if (!made) FAIL(made.error().message);
    samples = *made;
  }

  BaselineList list(GpuWorker& worker) const { return worker.list_baseline(job, fills, quick_protocol()); }
  /// Warm unless it is said: one input set is enough for most of what is tested, and the fake multiplies on the host.
  BaselineOutcome time(GpuWorker& worker, const BaselineAlgorithm& algorithm, bool is_cold_l2 = false) const {
    Protocol protocol = quick_protocol();
    protocol.is_cold_l2 = is_cold_l2;
    return worker.time_baseline(job, algorithm, fills, samples, protocol);
  }
};

inline kw::Problem shape(std::int64_t m, std::int64_t n, std::int64_t k) {
  kw::Problem problem;
  problem.dims = {{"M", m}, {"N", n}, {"K", k}, {"P", 2}};
  return problem;
}

inline std::string tensors(const std::string& a, const std::string& b, const std::string& out, const std::string& dtype = "f16") {
  const std::string head = " = { dtype = \"" + dtype + "\", shape = [";
  return "A" + head + a + "] }\nB" + head + b + "] }\nbias" + head + "\"N\"] }\nout" + head + out + "], role = \"out\" }";
}
inline const std::string kPlain = tensors(R"("M", "K")", R"("N", "K")", R"("M", "N")");
inline const std::string kBiasRelu = "out[m,n] = relu(sum[k](A[m,k] * B[n,k]) + bias[n])";

inline std::string without_bias(std::string text) {
  const std::size_t begin = text.find("bias = ");
  return text.erase(begin, text.find('\n', begin) + 1 - begin);
}

}  // namespace kw::tuner::test
