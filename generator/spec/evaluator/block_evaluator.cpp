// Evaluation of pointwise nodes, reads and intermediates in blocks; block_reduce.cpp has the reductions. See block_evaluator.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/spec/evaluator/block_evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "generator/spec/evaluator/block_buffer.h"

namespace kw::generator {
namespace {

using Kind = ExprNode::Kind;

constexpr size_t kMaxCachedRowValues = size_t{8} << 20;  // 128 MiB of softmax rows a thread
constexpr size_t kMaxCachedScalars = size_t{1} << 20;

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9e6c63d0876a9a47u;
  x = (x ^ (x >> 29)) * 0xd1342543de82ef95u;
  return x ^ (x >> 32);
}

}  // namespace

void CacheKey::add(std::uint64_t value) {
  a = mix(a ^ value);
  b = mix((b + value) * 0xa0761d6478bd642fu);
}

void bind_index(Frame& frame, int slot, IndexValue value) {
  frame.index[static_cast<size_t>(slot)] = value;
  const std::uint64_t bit = std::uint64_t{1} << slot;
  frame.bound |= bit;
  frame.varying = value.step != 0 ? frame.varying | bit : frame.varying & ~bit;
}

Frame single_lane(const Frame& frame, int lane) {
  Frame result = frame;
  for (std::uint64_t rest = frame.varying; rest != 0; rest &= rest - 1) {
    IndexValue& index = result.index[static_cast<size_t>(__builtin_ctzll(rest))];
    index = {index.base + index.step * lane, 0};
  }
  result.varying = 0;
  result.lanes = 1;
  result.active = nullptr;
  return result;
}

void BlockEvaluator::fail_once(std::string message, const SourceRange& where) {
  if (!failure_) failure_ = Error{Stage::kSpec, Code::kBadInput, std::move(message), where, {}};
}

const std::vector<std::int64_t>& BlockEvaluator::extents_of(const CompiledNode& node) const {
  return node.target >= 0 ? program_.targets[static_cast<size_t>(node.target)].extents
                          : program_.tensor_extents[static_cast<size_t>(node.tensor)];
}

std::string BlockEvaluator::name_of(const CompiledNode& node) const {
  return node.target >= 0 ? program_.targets[static_cast<size_t>(node.target)].name
                          : program_.program->tensors[static_cast<size_t>(node.tensor)].name;
}

bool BlockEvaluator::check_range(const CompiledNode& node, size_t axis, std::int64_t value) {
  const std::int64_t extent = extents_of(node)[axis];
  if (value >= 0 && value < extent) return true;
  fail_once(fmt::format("{}: subscript {} of axis {} is outside [0, {})", name_of(node), value, axis, extent), node.where);
  return false;
}

Bounded BlockEvaluator::scalar_of(int id, const Frame& frame) {
  Buffer out(scratch_, scratch_used_);
  return evaluate(id, frame, out).at(0);
}

Block BlockEvaluator::evaluate(int id, const Frame& frame, Buffer& out) {
  const CompiledNode& node = program_.nodes[static_cast<size_t>(id)];
  switch (node.kind) {
    case Kind::kIndex:
      return evaluate_index(node, frame, out);
    case Kind::kRead:
      return evaluate_read(node, frame, out);
    case Kind::kCall:
      return evaluate_call(node, frame, out);
    case Kind::kCast:
      return evaluate_cast(node, frame, out);
    case Kind::kReduce:
      return evaluate_reduce(id, frame, out);
    default:
      return uniform(node.constant, out.value, out.bound);
  }
}

Block BlockEvaluator::evaluate_index(const CompiledNode& node, const Frame& frame, Buffer& out) {
  if ((frame.bound >> node.slot & 1) == 0) {
    fail_once(fmt::format("index {}: has no value here", program_.indices[static_cast<size_t>(node.slot)].name), node.where);
    return uniform({}, out.value, out.bound);
  }
  const IndexValue index = frame.index[static_cast<size_t>(node.slot)];
  if (index.step == 0) return uniform({static_cast<double>(index.base), 0}, out.value, out.bound);
  for (int lane = 0; lane < frame.lanes; ++lane) out.value[lane] = static_cast<double>(index.base + index.step * lane);
  return {out.value, nullptr, false};
}

Block BlockEvaluator::evaluate_call(const CompiledNode& node, const Frame& frame, Buffer& out) {
  if (node.function == Function::kWhere) return evaluate_where(node, frame, out);
  if (node.function == Function::kAnd || node.function == Function::kOr) return evaluate_logic(node, frame, out);
  const bool is_binary = node.operands.size() == 2;
  Buffer a_buffer(scratch_, scratch_used_), b_buffer(scratch_, scratch_used_);
  const Block a = evaluate(node.operands[0], frame, a_buffer);
  const Block b = is_binary ? evaluate(node.operands[1], frame, b_buffer) : a;
  const bool is_uniform = a.is_uniform && b.is_uniform;
  const int lanes = is_uniform ? 1 : frame.lanes;
  bool is_exact = true;
  for (int lane = 0; lane < lanes; ++lane) {
    if (!is_uniform && !is_active(frame, lane)) {
      out.value[lane] = out.bound[lane] = 0;
      continue;
    }
    Bounded x[2] = {a.at(lane), b.at(lane)};
    if (node.converts_integers) {
      for (Bounded& operand : x) {
        if (std::abs(operand.value) > 0x1p24) operand.bound += node.rounding.unit * std::abs(operand.value);
      }
    }
    const Bounded y = apply(node.function, std::span<const Bounded>(x, is_binary ? 2 : 1), node.rounding);
    out.value[lane] = y.value;
    out.bound[lane] = y.bound;
    is_exact = is_exact && y.bound == 0;
  }
  return {out.value, is_exact ? nullptr : out.bound, is_uniform};
}

Block BlockEvaluator::evaluate_where(const CompiledNode& node, const Frame& frame, Buffer& out) {
  Buffer c_buffer(scratch_, scratch_used_);
  const Block c = evaluate(node.operands[0], frame, c_buffer);
  std::array<unsigned char, kBlockLanes> takes_then{}, takes_else{};
  int num_then = 0, num_else = 0;
  for (int lane = 0; lane < frame.lanes; ++lane) {
    if (!is_active(frame, lane)) continue;
    const Bounded condition = c.at(lane);
    takes_then[static_cast<size_t>(lane)] = condition.value != 0 || condition.bound > 0;
    takes_else[static_cast<size_t>(lane)] = condition.value == 0 || condition.bound > 0;
    num_then += takes_then[static_cast<size_t>(lane)];
    num_else += takes_else[static_cast<size_t>(lane)];
  }
  if (num_else == 0) return evaluate(node.operands[1], frame, out);
  if (num_then == 0) return evaluate(node.operands[2], frame, out);
  Frame then_frame = frame, else_frame = frame;
  then_frame.active = takes_then.data();
  else_frame.active = takes_else.data();
  Buffer then_buffer(scratch_, scratch_used_), else_buffer(scratch_, scratch_used_);
  const Block x = evaluate(node.operands[1], then_frame, then_buffer);
  const Block y = evaluate(node.operands[2], else_frame, else_buffer);
  for (int lane = 0; lane < frame.lanes; ++lane) {
    const bool is_then = takes_then[static_cast<size_t>(lane)] != 0, is_else = takes_else[static_cast<size_t>(lane)] != 0;
    Bounded result;
    if (is_then && is_else) {
      const bool is_true = c.at(lane).value != 0;
      result = is_true ? either(x.at(lane), y.at(lane)) : either(y.at(lane), x.at(lane));
    } else if (is_then || is_else) {
      result = is_then ? x.at(lane) : y.at(lane);
    }
    out.value[lane] = result.value;
    out.bound[lane] = result.bound;
  }
  return {out.value, out.bound, frame.lanes == 1};
}

/// `and` and `or` read their right side only where the left side does not decide, so that it may guard a read.
Block BlockEvaluator::evaluate_logic(const CompiledNode& node, const Frame& frame, Buffer& out) {
  const bool is_and = node.function == Function::kAnd;
  Buffer a_buffer(scratch_, scratch_used_), b_buffer(scratch_, scratch_used_);
  const Block a = evaluate(node.operands[0], frame, a_buffer);
  std::array<unsigned char, kBlockLanes> is_open{};
  int num_open = 0;
  for (int lane = 0; lane < frame.lanes; ++lane) {
    const Bounded x = a.at(lane);
    const bool decides = x.bound == 0 && (x.value != 0) != is_and;
    is_open[static_cast<size_t>(lane)] = is_active(frame, lane) && !decides;
    num_open += is_open[static_cast<size_t>(lane)];
  }
  Frame right = frame;
  right.active = is_open.data();
  const Block b = num_open == 0 ? a : evaluate(node.operands[1], right, b_buffer);
  const bool is_uniform = a.is_uniform && b.is_uniform;
  for (int lane = 0; lane < (is_uniform ? 1 : frame.lanes); ++lane) {
    const Bounded x[2] = {a.at(lane), is_open[static_cast<size_t>(lane)] || is_uniform ? b.at(lane) : a.at(lane)};
    const Bounded y = apply(node.function, x, node.rounding);
    out.value[lane] = y.value;
    out.bound[lane] = y.bound;
  }
  return {out.value, out.bound, is_uniform};
}

Block BlockEvaluator::evaluate_cast(const CompiledNode& node, const Frame& frame, Buffer& out) {
  Buffer buffer(scratch_, scratch_used_);
  const Block x = evaluate(node.operands[0], frame, buffer);
  for (int lane = 0; lane < (x.is_uniform ? 1 : frame.lanes); ++lane) {
    const Bounded y = cast_to(node.dtype, x.at(lane));
    out.value[lane] = y.value;
    out.bound[lane] = y.bound;
  }
  return {out.value, out.bound, x.is_uniform};
}

void BlockEvaluator::trim_caches() {
  if (num_input_values_ + kBlockLanes > kMaxCachedInputValues) {
    input_rows_.clear();
    num_input_values_ = 0;
  }
  if (num_row_values_ > kMaxCachedRowValues) {
    rows_.clear();
    num_row_values_ = 0;
  }
  if (scalars_.size() > kMaxCachedScalars) scalars_.clear();
}

}  // namespace kw::generator
