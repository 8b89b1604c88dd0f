// Scratch memory of the block evaluator: a stack of blocks, taken and given back in the order of C++ scopes.
// Part of the evaluator; private to block_evaluator.cpp, block_read.cpp and block_reduce.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "generator/spec/evaluator/block_evaluator.h"

namespace kw::generator {

constexpr size_t kMaxCachedInputValues = size_t{4} << 20;  // 32 MiB of input rows a thread

class BlockEvaluator::Buffer {
 public:
  Buffer(std::vector<std::unique_ptr<double[]>>& stack, size_t& used) : used_(used) {
    if (used_ == stack.size()) stack.push_back(std::make_unique<double[]>(2 * kBlockLanes));
    value = stack[used_++].get();
    bound = value + kBlockLanes;
  }
  ~Buffer() { --used_; }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  double* value;
  double* bound;

 private:
  size_t& used_;
};

inline Block uniform(const Bounded& x, double* value, double* bound) {
  value[0] = x.value;
  bound[0] = x.bound;
  return {value, x.bound == 0 ? nullptr : bound, true};
}

inline bool is_active(const Frame& frame, int lane) { return frame.active == nullptr || frame.active[lane] != 0; }

void bind_index(Frame& frame, int slot, IndexValue value);
/// The frame at one lane: nothing varies.
Frame single_lane(const Frame& frame, int lane);

}  // namespace kw::generator
