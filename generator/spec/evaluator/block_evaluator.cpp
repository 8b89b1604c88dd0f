// Evaluation of pointwise nodes, reads and intermediates in blocks; block_reduce.cpp has the reductions. See block_evaluator.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/spec/evaluator/block_evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "generator/spec/evaluator/block_buffer.h"

namespace kw::generator {
namespace {

using Kind = ExprNode::Kind;

constexpr size_t kMaxCachedInputValues = size_t{4} << 20;   // 32 MiB of input rows a thread
constexpr size_t kMaxCachedRowValues = size_t{8} << 20;     // 128 MiB of softmax rows a thread
constexpr size_t kMaxCachedScalars = size_t{1} << 20;
constexpr double kMaxVectorTree = 4096;  // a larger tree of intermediates is evaluated lane by lane, through the cache

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9e6c63d0876a9a47u;
  x = (x ^ (x >> 29)) * 0xd1342543de82ef95u;
  return x ^ (x >> 32);
}

Block uniform(const Bounded& x, double* value, double* bound) {
  value[0] = x.value;
  bound[0] = x.bound;
  return {value, x.bound == 0 ? nullptr : bound, true};
}

bool is_active(const Frame& frame, int lane) { return frame.active == nullptr || frame.active[lane] != 0; }

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

/// Subscripts of a read in one frame: affine ones as base + step · lane, the others lane by lane.
struct BlockEvaluator::ReadAxes {
  std::array<IndexValue, kMaxAxes> index{};
  std::array<const double*, kMaxAxes> lanes{};  // values per lane; null: `index` holds
  std::deque<Buffer> buffers;                   // of the non-affine subscripts
  size_t rank = 0;
  int num_varying = 0;

  std::int64_t at(size_t axis, int lane) const {
    return lanes[axis] != nullptr ? static_cast<std::int64_t>(lanes[axis][lane]) : index[axis].base + index[axis].step * lane;
  }
};

void BlockEvaluator::fail_once(std::string message, const SourceRange& where) {
  if (!failure_) failure_ = Error{Stage::kSpec, Code::kBadInput, std::move(message), where, {}};
}

const std::vector<std::int64_t>& BlockEvaluator::extents_of(const CompiledNode& node) const {
  return node.target >= 0 ? program_.targets[static_cast<size_t>(node.target)].extents : program_.tensor_extents[static_cast<size_t>(node.tensor)];
}

std::string BlockEvaluator::name_of(const CompiledNode& node) const {
  return node.target >= 0 ? program_.targets[static_cast<size_t>(node.target)].name : program_.program->tensors[static_cast<size_t>(node.tensor)].name;
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
    case Kind::kIndex: return evaluate_index(node, frame, out);
    case Kind::kRead: return evaluate_read(node, frame, out);
    case Kind::kCall: return evaluate_call(node, frame, out);
    case Kind::kCast: return evaluate_cast(node, frame, out);
    case Kind::kReduce: return evaluate_reduce(id, frame, out);
    default: return uniform(node.constant, out.value, out.bound);
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

Block BlockEvaluator::evaluate_read(const CompiledNode& node, const Frame& frame, Buffer& out) {
  ReadAxes axes;
  axes.rank = node.subscripts.size();
  for (size_t axis = 0; axis < axes.rank; ++axis) {
    const Subscript& subscript = node.subscripts[axis];
    IndexValue& index = axes.index[axis];
    if (subscript.is_affine) {
      index.base = subscript.affine.constant;
      for (const Affine::Term& term : subscript.affine.terms) {
        const IndexValue& value = frame.index[static_cast<size_t>(term.slot)];
        if ((frame.bound >> term.slot & 1) == 0) fail_once(fmt::format("index {}: has no value here", program_.indices[static_cast<size_t>(term.slot)].name), node.where);
        index.base += term.coefficient * value.base;
        index.step += term.coefficient * value.step;
      }
    } else {
      axes.buffers.emplace_back(scratch_, scratch_used_);
      const Block values = evaluate(subscript.node, frame, axes.buffers.back());
      for (int lane = 0; lane < (values.is_uniform ? 1 : frame.lanes); ++lane) {
        const Bounded x = values.at(lane);
        if (!is_active(frame, lane) && !values.is_uniform) continue;
        if (x.bound != 0 || x.value != std::floor(x.value) || !(std::abs(x.value) < 0x1p62)) {
          fail_once(fmt::format("{}: subscript {} of axis {} is not an integer", name_of(node), x.value, axis), node.where);
          return uniform({}, out.value, out.bound);
        }
      }
      if (values.is_uniform) {
        index.base = static_cast<std::int64_t>(values.value[0]);
      } else {
        axes.lanes[axis] = values.value;
      }
    }
    axes.num_varying += axes.lanes[axis] != nullptr || index.step != 0;
  }
  if (failure_) return uniform({}, out.value, out.bound);
  return node.target >= 0 ? read_target(node, axes, frame, out) : read_input(node, axes, frame, out);
}

Block BlockEvaluator::read_input(const CompiledNode& node, const ReadAxes& axes, const Frame& frame, Buffer& out) {
  const Tensor& tensor = program_.program->tensors[static_cast<size_t>(node.tensor)];
  const bool has_one_affine_axis = axes.num_varying == 1 && frame.active == nullptr && std::any_of(axes.index.begin(), axes.index.begin() + static_cast<long>(axes.rank), [](const IndexValue& i) { return i.step == 1; });
  if (has_one_affine_axis) return read_affine_row(node, axes, frame, out);
  const bool is_uniform = axes.num_varying == 0;
  std::array<std::int64_t, kMaxAxes> coordinates{};
  for (int lane = 0; lane < (is_uniform ? 1 : frame.lanes); ++lane) {
    out.value[lane] = 0;
    if (!is_uniform && !is_active(frame, lane)) continue;
    for (size_t axis = 0; axis < axes.rank; ++axis) {
      coordinates[axis] = axes.at(axis, lane);
      if (!check_range(node, axis, coordinates[axis])) return uniform({}, out.value, out.bound);
    }
    out.value[lane] = inputs_.element(tensor, std::span<const std::int64_t>(coordinates.data(), axes.rank));
  }
  return {out.value, nullptr, is_uniform};
}

Block BlockEvaluator::read_affine_row(const CompiledNode& node, const ReadAxes& axes, const Frame& frame, Buffer& out) {
  std::array<std::int64_t, kMaxAxes> coordinates{};
  size_t varying_axis = 0;
  CacheKey key;
  key.add(static_cast<std::uint64_t>(node.tensor));
  for (size_t axis = 0; axis < axes.rank; ++axis) {
    coordinates[axis] = axes.index[axis].base;
    if (axes.index[axis].step != 0) varying_axis = axis;
    key.add(static_cast<std::uint64_t>(coordinates[axis]));
    if (!check_range(node, axis, coordinates[axis])) return uniform({}, out.value, out.bound);
  }
  if (!check_range(node, varying_axis, coordinates[varying_axis] + frame.lanes - 1)) return uniform({}, out.value, out.bound);
  key.add(varying_axis);
  key.add(static_cast<std::uint64_t>(frame.lanes));
  if (const auto found = input_rows_.find(key); found != input_rows_.end()) return {found->second.data(), nullptr, false};
  const Tensor& tensor = program_.program->tensors[static_cast<size_t>(node.tensor)];
  double* destination = out.value;
  const size_t lanes = static_cast<size_t>(frame.lanes);
  if (num_input_values_ + lanes <= kMaxCachedInputValues) {
    num_input_values_ += lanes;
    destination = input_rows_.emplace(key, std::vector<double>(lanes)).first->second.data();
  }
  inputs_.row(tensor, std::span<const std::int64_t>(coordinates.data(), axes.rank), static_cast<int>(varying_axis), std::span<double>(destination, lanes));
  return {destination, nullptr, false};
}

Block BlockEvaluator::read_target(const CompiledNode& node, const ReadAxes& axes, const Frame& frame, Buffer& out) {
  const CompiledTarget& target = program_.targets[static_cast<size_t>(node.target)];
  const bool is_uniform = axes.num_varying == 0;
  const bool has_lane_values = std::any_of(axes.lanes.begin(), axes.lanes.end(), [](const double* p) { return p != nullptr; });
  const CompiledStatement& first = program_.statements[static_cast<size_t>(target.statements.front())];
  if (!is_uniform && !has_lane_values && target.tensor == nullptr && target.statements.size() == 1 && !first.has_ragged_index && node.expanded_size < kMaxVectorTree) {
    Frame inner;
    inner.lanes = frame.lanes;
    inner.active = frame.active;
    for (size_t axis = 0; axis < axes.rank; ++axis) {
      for (int lane = 0; lane < frame.lanes; ++lane) {
        if (is_active(frame, lane) && !check_range(node, axis, axes.at(axis, lane))) return uniform({}, out.value, out.bound);
      }
      bind_index(inner, first.slots[axis], axes.index[axis]);
    }
    return evaluate(first.value, inner, out);
  }
  std::array<std::int64_t, kMaxAxes> coordinates{};
  for (int lane = 0; lane < (is_uniform ? 1 : frame.lanes); ++lane) {
    out.value[lane] = out.bound[lane] = 0;
    if (!is_uniform && !is_active(frame, lane)) continue;
    for (size_t axis = 0; axis < axes.rank; ++axis) {
      coordinates[axis] = axes.at(axis, lane);
      if (!check_range(node, axis, coordinates[axis])) return uniform({}, out.value, out.bound);
    }
    const Bounded x = target_value(node.target, std::span<const std::int64_t>(coordinates.data(), axes.rank));
    out.value[lane] = x.value;
    out.bound[lane] = x.bound;
    if (failure_) return uniform({}, out.value, out.bound);
  }
  return {out.value, out.bound, is_uniform};
}

/// An element as a later statement sees it: an output may have been rounded on the way, which the bound covers.
Bounded BlockEvaluator::target_value(int target, std::span<const std::int64_t> coordinates) {
  CacheKey key;
  key.add(~static_cast<std::uint64_t>(target));
  for (const std::int64_t coordinate : coordinates) key.add(static_cast<std::uint64_t>(coordinate));
  if (const auto found = scalars_.find(key); found != scalars_.end()) return found->second;
  Bounded result = evaluate_target(target, coordinates);
  const Tensor* tensor = program_.targets[static_cast<size_t>(target)].tensor;
  if (tensor != nullptr) result = round_to_output(tensor->dtype, result);
  scalars_.emplace(key, result);
  return result;
}

Bounded BlockEvaluator::evaluate_target(int target, std::span<const std::int64_t> coordinates) {
  const CompiledTarget& written = program_.targets[static_cast<size_t>(target)];
  std::vector<std::int64_t> values;
  for (const int id : written.statements) {
    const CompiledStatement& statement = program_.statements[static_cast<size_t>(id)];
    if (!invert_subscripts(program_, statement, coordinates, values)) continue;
    Frame frame;
    if (!bind_written(statement, values, frame)) continue;
    return scalar_of(statement.value, frame);
  }
  return not_judged();  // no statement writes it: past `below`, or outside every group of a ragged index
}

/// Binds the statement's indices; false where it does not write: past `below`, or outside its group.
bool BlockEvaluator::bind_written(const CompiledStatement& statement, std::span<const std::int64_t> values, Frame& frame) {
  for (size_t i = 0; i < values.size(); ++i) bind_index(frame, statement.slots[i], {values[i], 0});
  if (!resolve_groups(frame)) return false;
  for (size_t i = 0; i < values.size(); ++i) {
    const CompiledIndex& index = program_.indices[static_cast<size_t>(statement.slots[i])];
    if (index.below >= 0 && static_cast<double>(values[i]) >= scalar_of(index.below, frame).value) return false;
    if (index.offsets < 0) continue;
    const Range range = range_of(statement.slots[i], frame);
    if (values[i] < range.low || values[i] >= range.high) return false;
  }
  return true;
}

/// Gives the group index of every bound ragged index its value; false when one is outside all groups.
bool BlockEvaluator::resolve_groups(Frame& frame) {
  for (size_t slot = 0; slot < program_.indices.size(); ++slot) {
    const CompiledIndex& index = program_.indices[slot];
    if (index.offsets < 0 || (frame.bound >> slot & 1) == 0 || (frame.bound >> index.group_slot & 1) != 0) continue;
    const std::int64_t group = find_group(index, frame.index[slot].base);
    if (group < 0) return false;
    bind_index(frame, index.group_slot, {group, 0});
  }
  return true;
}

std::int64_t BlockEvaluator::find_group(const CompiledIndex& index, std::int64_t value) {
  const Tensor& offsets = program_.program->tensors[static_cast<size_t>(index.offsets)];
  const std::int64_t num_groups = program_.tensor_extents[static_cast<size_t>(index.offsets)][0] - 1;
  const auto offset_at = [&](std::int64_t g) { return inputs_.element(offsets, std::span<const std::int64_t>(&g, 1)); };
  std::int64_t low = -1, high = num_groups + 1;  // offsets[low] <= value < offsets[high]
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (offset_at(middle) <= static_cast<double>(value) ? low : high) = middle;
  }
  return low < 0 || low >= num_groups ? -1 : low;
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
