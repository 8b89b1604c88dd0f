// Reads of the block evaluator: input tensors row by row, intermediates and outputs through the statements that write them.
// See block_evaluator.h.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "generator/spec/evaluator/affine.h"
#include "generator/spec/evaluator/block_buffer.h"

namespace kw::generator {
namespace {

constexpr double kMaxVectorTree = 4096;  // a larger tree of intermediates is evaluated lane by lane, through the cache

}  // namespace

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
        if ((frame.bound >> term.slot & 1) == 0)
          fail_once(fmt::format("index {}: has no value here", program_.indices[static_cast<size_t>(term.slot)].name), node.where);
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
  const bool has_one_affine_axis =
      axes.num_varying == 1 && frame.active == nullptr &&
      std::any_of(axes.index.begin(), axes.index.begin() + static_cast<long>(axes.rank), [](const IndexValue& i) { return i.step == 1; });
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
  inputs_.row(tensor, std::span<const std::int64_t>(coordinates.data(), axes.rank), static_cast<int>(varying_axis),
              std::span<double>(destination, lanes));
  return {destination, nullptr, false};
}

Block BlockEvaluator::read_target(const CompiledNode& node, const ReadAxes& axes, const Frame& frame, Buffer& out) {
  const CompiledTarget& target = program_.targets[static_cast<size_t>(node.target)];
  const bool is_uniform = axes.num_varying == 0;
  const bool has_lane_values = std::any_of(axes.lanes.begin(), axes.lanes.end(), [](const double* p) { return p != nullptr; });
  const CompiledStatement& first = program_.statements[static_cast<size_t>(target.statements.front())];
  if (!is_uniform && !has_lane_values && target.tensor == nullptr && target.statements.size() == 1 && !first.has_ragged_index &&
      node.expanded_size < kMaxVectorTree) {
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

/// An element as a later statement sees it: an output is stored, so it is rounded to its dtype first.
Bounded BlockEvaluator::target_value(int target, std::span<const std::int64_t> coordinates) {
  CacheKey key;
  key.add(~static_cast<std::uint64_t>(target));
  for (const std::int64_t coordinate : coordinates) key.add(static_cast<std::uint64_t>(coordinate));
  if (const auto found = scalars_.find(key); found != scalars_.end()) return found->second;
  Bounded result = evaluate_target(target, coordinates);
  const Tensor* tensor = program_.targets[static_cast<size_t>(target)].tensor;
  if (tensor != nullptr) result = cast_to(tensor->dtype, result);
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
  // No statement writes it (past `below`, outside every group of a ragged index): an inout tensor keeps its element.
  const bool keeps_element = written.tensor != nullptr && written.tensor->role == TensorRole::kInOut;
  return keeps_element ? Bounded{inputs_.element(*written.tensor, coordinates), 0} : not_judged();
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

}  // namespace kw::generator
