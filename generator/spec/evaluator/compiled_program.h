// A program prepared for evaluation at one problem: names resolved to slots, dims and scalars to numbers, equal nodes shared.
// Part of the evaluator. In: Program + Problem + launch-time scalars. Out: flat arrays of nodes that BlockEvaluator walks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "generator/spec/evaluator/bounded.h"
#include "generator/spec/program.h"

namespace kw::generator {

constexpr int kMaxIndices = 48;  // slots of a frame; one bit each in a 64-bit set
constexpr int kMaxAxes = 16;
constexpr std::int64_t kMaxTerms = std::int64_t{1} << 40;  // of one reduction

/// constant + Σ coefficient · index.
struct Affine {
  struct Term {
    int slot;
    std::int64_t coefficient;
  };
  std::int64_t constant = 0;
  std::vector<Term> terms;
};

/// One subscript: affine where possible (fast), else an integer node.
struct Subscript {
  bool is_affine = false;
  Affine affine;
  int node = -1;
};

struct CompiledNode {
  ExprNode::Kind kind = ExprNode::Kind::kNumber;
  DType dtype = DType::kF32;
  Function function = Function::kAdd;
  ReduceOp reduce_op = ReduceOp::kSum;
  Rounding rounding;
  Bounded constant;                   ///< kNumber, kDim, kScalar
  int slot = -1;                      ///< kIndex
  int tensor = -1;                    ///< kRead of an input: position in Program::tensors
  int target = -1;                    ///< kRead of what a statement writes
  std::vector<Subscript> subscripts;  ///< kRead
  bool has_affine_subscripts = true;
  std::vector<int> operands;
  std::vector<int> slots;          ///< kReduce: reduced indices, the last one is evaluated in blocks
  std::uint64_t depends = 0;       ///< set of slots the value depends on
  double expanded_size = 1;        ///< nodes of the tree without sharing
  bool converts_integers = false;  ///< float operation with integer operands: large ones are rounded first
  bool is_product_sum = false;     ///< kSum or kMean over a product of reals
  double tf32_unit[2] = {0, 0};    ///< rounding of the factors of a product sum to tf32
  bool has_independent_factors = false;
  bool needs_single_lane = false;  ///< kReduce over a ragged index whose group is not a loop around it
  SourceRange where;
};

struct CompiledIndex {
  std::string name;
  std::int64_t extent = 0;
  int below = -1;    ///< node
  int offsets = -1;  ///< tensor of a ragged index
  int group_slot = -1;
};

struct CompiledStatement {
  std::vector<int> slots;
  std::vector<Affine> subscripts;
  int value = -1;
  bool has_ragged_index = false;
};

/// What statements write: an output tensor (then possibly in several parts) or an intermediate.
struct CompiledTarget {
  std::string name;
  const Tensor* tensor = nullptr;
  std::vector<std::int64_t> extents;  ///< list position first for a list tensor
  std::vector<int> statements;
};

struct CompiledProgram {
  const Program* program = nullptr;
  std::vector<CompiledNode> nodes;
  std::vector<CompiledIndex> indices;
  std::vector<CompiledStatement> statements;
  std::vector<CompiledTarget> targets;
  std::vector<std::vector<std::int64_t>> tensor_extents;  ///< of Program::tensors
  std::map<std::string, int> target_ids;
};

using ScalarReader = std::function<double(const Scalar&)>;
/// `program` must outlive the result. Errors: missing dims, negative extents, unknown names, wrong numbers of subscripts.
Result<CompiledProgram> compile_program(const Program& program, const Problem& problem, const ScalarReader& read_scalar);

bool keeps_index(ReduceOp op);

}  // namespace kw::generator
