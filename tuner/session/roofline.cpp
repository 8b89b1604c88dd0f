// Bounds of time from counts of work and rates of the device.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/session/roofline.h"

#include <algorithm>
#include <set>
#include <string>

#include "generator/spec/walk.h"

namespace kw::tuner {
namespace {

// L2 may keep part of the rotated inputs and absorbs the outputs, so the floor asks for less than the whole compulsory traffic.
constexpr double kFloorTrafficShare = 0.5;

/// The tensors that are read inside a sum: what a product of matrices multiplies.
std::set<std::string> summed_tensors(const generator::Program& program) {
  std::set<std::string> names;
  const auto add_read = [&](const generator::ExprRef& node) {
    if (node->kind == generator::ExprNode::Kind::kRead) names.insert(node->name);
    return true;
  };
  for (const generator::Statement& statement : program.statements) {
    generator::visit_nodes(statement.value, [&](const generator::ExprRef& node) {
      const bool is_sum = node->kind == generator::ExprNode::Kind::kReduce && node->reduce_op == generator::ReduceOp::kSum;
      if (is_sum) generator::visit_nodes(node->operands[0], add_read);
      return !is_sum;
    });
  }
  return names;
}

bool has_extents_of_data(const generator::Program& program) {
  return std::any_of(program.indices.begin(), program.indices.end(),
                     [](const generator::Index& index) { return index.below != nullptr || !index.ragged_offsets.empty(); });
}

/// The fastest path that the operands' types allow: the bound must lie below every kernel, so an operand that is worked out does not count.
double peak_flops_per_clock_sm(const generator::Program& program, const DeviceLimits& device) {
  int widest_bytes = 1;
  bool all_small = true;
  const std::set<std::string> summed = summed_tensors(program);
  for (const generator::Tensor& tensor : program.tensors) {
    if (summed.count(tensor.name) == 0 || tensor.shape.size() < 2) continue;
    widest_bytes = std::max(widest_bytes, size_bytes(tensor.dtype));
    all_small = all_small && size_bytes(tensor.dtype) <= 2;
  }
  if (program.accumulate == DType::kF64) return device.fma_f64_flops_per_clock_sm;
  if (program.uses_tf32) return device.peak_16bit_flops_per_clock_sm / 2;
  if (all_small) return device.peak_16bit_flops_per_clock_sm * (widest_bytes == 1 ? 2 : 1);
  return device.fma_f32_flops_per_clock_sm;
}

}  // namespace

Roofline roofline_of(const generator::Program& program, const generator::WorkCounts& work, const DeviceLimits& device, bool is_warm_l2) {
  Roofline roofline;
  roofline.flops = work.flops;
  roofline.min_bytes = work.min_bytes;
  roofline.intensity = work.min_bytes > 0 ? work.flops / work.min_bytes : 0;
  const double flops_per_us = peak_flops_per_clock_sm(program, device) * device.num_sms * device.max_clock_ghz * 1e3;
  if (flops_per_us > 0) roofline.math_bound_us = work.contraction_flops / flops_per_us;
  if (device.dram_gb_per_s > 0) roofline.memory_bound_us = work.min_bytes / (device.dram_gb_per_s * 1e3);
  roofline.bound_us = std::max(roofline.math_bound_us, roofline.memory_bound_us);
  // How much of a list there is, the data say: nothing is too fast for it.
  if (has_extents_of_data(program)) return roofline;
  roofline.floor_us = std::max(roofline.math_bound_us, is_warm_l2 ? 0.0 : kFloorTrafficShare * roofline.memory_bound_us);
  return roofline;
}

}  // namespace kw::tuner
