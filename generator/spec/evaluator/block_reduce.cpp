// Reductions of the block evaluator: ranges, sweeps over the reduced indices, and the caches of their results. See block_evaluator.h.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "generator/spec/evaluator/block_buffer.h"

namespace kw::generator {
namespace {

constexpr size_t kMaxRowTerms = size_t{1} << 28;  // of a reduction that needs its whole row

bool needs_row(ReduceOp op) {
  return op == ReduceOp::kArgmax || op == ReduceOp::kLogSumExp || op == ReduceOp::kSoftmax || op == ReduceOp::kTopK ||
         op == ReduceOp::kTopKIndex || op == ReduceOp::kCumSum;
}

}  // namespace

CacheKey BlockEvaluator::key_of(int id, const Frame& frame) const {
  const CompiledNode& node = program_.nodes[static_cast<size_t>(id)];
  std::uint64_t depends = node.depends;
  if (keeps_index(node.reduce_op)) depends &= ~(std::uint64_t{1} << node.slots[0]);
  CacheKey key;
  key.add(static_cast<std::uint64_t>(id));
  for (std::uint64_t rest = depends & frame.bound; rest != 0; rest &= rest - 1) {
    const int slot = __builtin_ctzll(rest);
    key.add(static_cast<std::uint64_t>(slot));
    key.add(static_cast<std::uint64_t>(frame.index[static_cast<size_t>(slot)].base));
  }
  return key;
}

BlockEvaluator::Range BlockEvaluator::range_of(int slot, const Frame& frame) {
  const CompiledIndex& index = program_.indices[static_cast<size_t>(slot)];
  Range range{0, index.extent};
  if (index.below >= 0) {
    const double below = scalar_of(index.below, frame).value;
    range.high = std::clamp<std::int64_t>(
        below < static_cast<double>(index.extent) ? static_cast<std::int64_t>(std::ceil(below)) : index.extent, 0, index.extent);
  }
  if (index.offsets >= 0 && (frame.bound >> index.group_slot & 1) != 0) {
    const Tensor& offsets = program_.program->tensors[static_cast<size_t>(index.offsets)];
    std::int64_t group = frame.index[static_cast<size_t>(index.group_slot)].base;
    const std::int64_t num_offsets = program_.tensor_extents[static_cast<size_t>(index.offsets)][0];
    if (group < 0 || group + 1 >= num_offsets) {
      fail_once(fmt::format("{}: group {} of index {} has no pair of offsets ({} are there)", offsets.name, group, index.name, num_offsets),
                {});
      return {};
    }
    const double low = inputs_.element(offsets, std::span<const std::int64_t>(&group, 1));
    ++group;
    const double high = inputs_.element(offsets, std::span<const std::int64_t>(&group, 1));
    if (low < 0 || high > static_cast<double>(index.extent) || low > high) {
      fail_once(
          fmt::format("{}: offsets {} and {} of index {} do not ascend inside [0, {}]", offsets.name, low, high, index.name, index.extent),
          {});
      return {};
    }
    range.low = static_cast<std::int64_t>(low);
    range.high = std::min(range.high, static_cast<std::int64_t>(high));
  }
  return range;
}

/// Calls visit(frame, lanes) for blocks of the last reduced index, inside loops over the others. Stops after a failure.
template <typename Visit>
void BlockEvaluator::sweep(const CompiledNode& node, size_t depth, Frame& frame, Visit&& visit) {
  const int slot = node.slots[depth];
  const Range range = range_of(slot, frame);
  const CompiledIndex& index = program_.indices[static_cast<size_t>(slot)];
  const bool finds_group = index.offsets >= 0 && (frame.bound >> index.group_slot & 1) == 0;
  const std::uint64_t bound_before = frame.bound;
  const bool is_last = depth + 1 == node.slots.size();
  const std::int64_t step = is_last && !finds_group ? kBlockLanes : 1;
  for (std::int64_t first = range.low; first < range.high && !failure_; first += step) {
    const int lanes = static_cast<int>(std::min(step, range.high - first));
    bind_index(frame, slot, {first, lanes > 1 ? 1 : 0});
    frame.lanes = lanes;
    if (!finds_group || resolve_groups(frame)) {
      if (is_last) {
        visit(frame, lanes);
      } else {
        sweep(node, depth + 1, frame, visit);
      }
    }
    if (finds_group) frame.bound = bound_before;
  }
  frame.bound = bound_before;
  frame.varying &= ~(std::uint64_t{1} << slot);
  frame.lanes = 1;
}

Bounded BlockEvaluator::stream(const CompiledNode& node, Frame& frame) {
  Accumulator accumulator(node);
  const int body = node.operands[0];
  Buffer a_buffer(scratch_, scratch_used_), b_buffer(scratch_, scratch_used_);
  sweep(node, 0, frame, [&](const Frame& inner, int lanes) {
    if (!node.is_product_sum) {
      accumulator.add_terms(evaluate(body, inner, a_buffer), lanes);
      return;
    }
    const CompiledNode& product = program_.nodes[static_cast<size_t>(body)];
    const Block a = evaluate(product.operands[0], inner, a_buffer);
    const Block b = evaluate(product.operands[1], inner, b_buffer);
    accumulator.add_products(a, b, lanes);
  });
  return accumulator.finish();
}

void BlockEvaluator::collect(const CompiledNode& node, Frame& frame, Row& row) {
  Buffer buffer(scratch_, scratch_used_);
  row.first = range_of(node.slots[0], frame).low;
  sweep(node, 0, frame, [&](const Frame& inner, int lanes) {
    if (row.value.size() + static_cast<size_t>(lanes) > kMaxRowTerms) {
      fail_once(fmt::format("{}: more than 2^28 terms in one row", to_text(node.reduce_op)), node.where);
      return;
    }
    const Block block = evaluate(node.operands[0], inner, buffer);
    for (int lane = 0; lane < lanes; ++lane) {
      const Bounded x = block.at(lane);
      row.value.push_back(x.value);
      row.bound.push_back(x.bound);
    }
  });
}

const BlockEvaluator::Row& BlockEvaluator::reduce_to_row(int id, const Frame& frame) {
  const CompiledNode& node = program_.nodes[static_cast<size_t>(id)];
  const CacheKey key = key_of(id, frame);
  if (const auto found = rows_.find(key); found != rows_.end()) return found->second;
  Row row;
  Frame inner = single_lane(frame, 0);
  inner.bound &= ~(std::uint64_t{1} << node.slots[0]);
  collect(node, inner, row);
  if (node.reduce_op == ReduceOp::kSoftmax) {
    const Bounded sink = node.operands.size() > 1 ? scalar_of(node.operands[1], inner) : Bounded{};
    softmax_in_place(row.value, row.bound, node.operands.size() > 1 ? &sink : nullptr, node.rounding);
  } else {
    cumsum_in_place(row.value, row.bound, node.rounding);
  }
  num_row_values_ += row.value.size();
  return rows_.emplace(key, std::move(row)).first->second;
}

Bounded BlockEvaluator::reduce_to_scalar(int id, const Frame& frame) {
  const CompiledNode& node = program_.nodes[static_cast<size_t>(id)];
  const CacheKey key = key_of(id, frame);
  if (const auto found = scalars_.find(key); found != scalars_.end()) return found->second;
  Frame inner = frame;
  for (const int slot : node.slots) inner.bound &= ~(std::uint64_t{1} << slot);
  Bounded result;
  if (!needs_row(node.reduce_op)) {
    result = stream(node, inner);
  } else {
    Row row;
    collect(node, inner, row);
    switch (node.reduce_op) {
      case ReduceOp::kArgmax:
        result = argmax_of(row.value, row.bound);
        break;
      case ReduceOp::kLogSumExp:
        result = logsumexp_of(row.value, row.bound, node.rounding);
        break;
      default: {
        const Bounded rank = scalar_of(node.operands[1], inner);
        result = topk_of(row.value, row.bound, std::abs(rank.value) < 0x1p62 ? static_cast<std::int64_t>(rank.value) : -1,
                         node.reduce_op == ReduceOp::kTopKIndex);
      }
    }
  }
  scalars_.emplace(key, result);
  return result;
}

Block BlockEvaluator::evaluate_reduce(int id, const Frame& frame, Buffer& out) {
  const CompiledNode& node = program_.nodes[static_cast<size_t>(id)];
  const bool keeps = keeps_index(node.reduce_op);
  const std::uint64_t own = keeps ? std::uint64_t{1} << node.slots[0] : 0;
  const bool varies_outside = (node.depends & frame.varying & ~own) != 0;
  const bool is_uniform = (node.depends & frame.varying) == 0;
  const Row* row = nullptr;
  for (int lane = 0; lane < (is_uniform ? 1 : frame.lanes); ++lane) {
    out.value[lane] = out.bound[lane] = 0;
    if (!is_uniform && frame.active != nullptr && frame.active[lane] == 0) continue;
    Bounded x;
    if (keeps) {
      if (row == nullptr || varies_outside) row = &reduce_to_row(id, single_lane(frame, lane));
      const IndexValue index = frame.index[static_cast<size_t>(node.slots[0])];
      const std::int64_t position = index.base + index.step * lane - row->first;
      const bool is_inside = position >= 0 && position < static_cast<std::int64_t>(row->value.size());
      if (is_inside) x = {row->value[static_cast<size_t>(position)], row->bound[static_cast<size_t>(position)]};
    } else {
      x = reduce_to_scalar(id, single_lane(frame, lane));
    }
    out.value[lane] = x.value;
    out.bound[lane] = x.bound;
    if (failure_) break;
  }
  return {out.value, out.bound, is_uniform};
}

}  // namespace kw::generator
