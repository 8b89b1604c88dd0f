// A program cut into programs of one kernel each. Which values are stored between kernels, and which outputs share a kernel, is decided
// here from what kernels can make; which cut is the fastest is the tuner's question.
// In: a checked program, and a judge of what one kernel can make. Out: programs in order, linked by tensors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "generator/spec/program.h"

namespace kw::generator {

/// One way to make a program with several kernels. A value that one kernel leaves for later ones is an output tensor of its program and an
/// input tensor of theirs: one of the op's own outputs where that holds the very value, else an intermediate.
struct Partition {
  std::vector<Program> steps;         ///< in order: no step reads a value before it is written
  std::vector<Tensor> intermediates;  ///< row-major tensors that the op itself does not have, in the order in which they are written

  /// "h -> y; y, s -> out": what each step writes, and of what steps before it.
  std::string to_text() const;
};

/// Ok when one kernel can make the program, else the reason.
using CanMake = std::function<Status(const Program&)>;

/// The cuts worth timing, those with the fewest kernels first, each once; a program that one kernel makes has the one of a single step.
/// Every reduction inside a larger value may be cut off. Where several cuts are as good as one another by number of kernels, several are
/// given, at most 8 in all. Error: what `can_make` says of a statement that no cut helps, or an inout tensor that a later step would read
/// after it is written.
Result<std::vector<Partition>> partitions_of(const Program& program, const CanMake& can_make);

/// One step for each statement and each reduction inside one: what fusion is compared with.
Result<Partition> unfused_partition(const Program& program);

}  // namespace kw::generator
