// Jobs for the fake driver: y[i] = 2 x[i] in f32, by the kernels of fake_cuda.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tuner/device/gpu_worker.h"
#include "tuner/verify/random_input.h"

namespace kw::tuner::test {

inline PlanField tensor_field(const std::string& name) {
  return {.kind = PlanField::Kind::kTensor, .name = name, .source = name, .value = {}};
}

/// A plan with tensors x[n] and y[n], one parameter each, and n.
inline KernelJob sample_job(const std::string& kernel, std::int64_t n = 1000) {
  KernelJob job;
  job.label = kernel;
  job.cubin = "fake";
  job.problem.dims["n"] = n;
  job.plan.dims = {"n"};
  const std::vector<IntExpr> shape = {IntExpr::variable("n")}, strides = {IntExpr(1)};
  job.plan.tensors = {{.name = "x", .dtype = DType::kF32, .role = TensorRole::kIn, .shape = shape, .strides = strides, .align_bytes = 16},
                      {.name = "y", .dtype = DType::kF32, .role = TensorRole::kOut, .shape = shape, .strides = strides, .align_bytes = 16}};
  PlanLaunch launch;
  launch.kernel = kernel;
  launch.grid = {ceil_div(IntExpr::variable("n"), IntExpr(256)), IntExpr(1), IntExpr(1)};
  launch.block = {IntExpr(256), IntExpr(1), IntExpr(1)};
  launch.parameters = {{"x", {tensor_field("x")}},
                       {"y", {tensor_field("y")}},
                       {"n", {{.kind = PlanField::Kind::kInt64, .name = "n", .source = {}, .value = IntExpr::variable("n")}}}};
  job.plan.launches = {launch};
  return job;
}

inline std::vector<InputFill> sample_fills() {
  InputFill fill;
  fill.tensor = "x";
  fill.dtype = DType::kF32;
  fill.seed = 7;
  return {fill};
}

/// Reference 2 x[i] at every element, from the last to the first: samples need no order.
inline std::vector<OutputSamples> sample_references(std::int64_t n = 1000) {
  OutputSamples samples;
  samples.tensor = "y";
  samples.dtype = DType::kF32;
  samples.rank = 1;
  for (std::int64_t i = n - 1; i >= 0; --i) {
    samples.offsets.push_back(i);
    samples.coordinates.push_back(i);
    samples.values.push_back(2 * input_element(sample_fills().front(), i));
    samples.bounds.push_back(1e-6);
  }
  return {samples};
}

}  // namespace kw::tuner::test
