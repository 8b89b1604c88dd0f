// What random numbers each input tensor gets: from the spec's data properties, and for index tensors from what they index.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "tuner/verify/random_input.h"

namespace kw::tuner {
namespace {

using generator::ExprNode;
using generator::ExprRef;
using generator::Index;
using generator::Program;
using generator::Statement;
using generator::Tensor;
using Kind = InputFill::Kind;

constexpr double kDefaultIntegerRange = 1000;  // of i32 and i64 tensors that index nothing

/// How the program uses an integer tensor.
struct IndexUse {
  std::int64_t extent = std::numeric_limits<std::int64_t>::max();  ///< values must be below it
  bool is_indexing = false;
  bool is_derived = true;  ///< every use is the plain subscript T[...]
  bool is_offsets = false;
};

class UseFinder {
 public:
  UseFinder(const Program& program, const Problem& problem) : program_(program), problem_(problem) {}

  std::map<std::string, IndexUse> run() {
    for (const Statement& statement : program_.statements) visit(statement.value);
    for (const Index& index : program_.indices) {
      const auto extent = index.extent.evaluate(problem_.dims);
      if (index.below != nullptr) note(index.below, extent ? *extent + 1 : 1);
      if (!index.ragged_offsets.empty()) {
        IndexUse& use = uses_[index.ragged_offsets];
        use.is_indexing = use.is_offsets = true;
        use.extent = std::min(use.extent, extent ? *extent + 1 : 1);
      }
    }
    return uses_;
  }

 private:
  void visit(const ExprRef& expr) {
    if (!seen_.insert(expr.get()).second) return;
    for (const ExprRef& operand : expr->operands) visit(operand);
    if (expr->kind != ExprNode::Kind::kRead) return;
    const std::vector<std::int64_t> extents = extents_of(expr->name);
    for (size_t axis = 0; axis < expr->operands.size() && axis < extents.size(); ++axis) note(expr->operands[axis], extents[axis]);
  }

  /// Every tensor read inside the subscript indexes; only a subscript that is the read itself gives its range.
  void note(const ExprRef& subscript, std::int64_t extent) {
    if (subscript->kind == ExprNode::Kind::kRead) {
      IndexUse& use = uses_[subscript->name];
      use.is_indexing = true;
      use.extent = std::min(use.extent, extent);
      for (const ExprRef& operand : subscript->operands) visit(operand);
      return;
    }
    note_inner(subscript);
  }

  void note_inner(const ExprRef& expr) {
    if (expr->kind == ExprNode::Kind::kRead) {
      IndexUse& use = uses_[expr->name];
      use.is_indexing = true;
      use.is_derived = false;
    }
    for (const ExprRef& operand : expr->operands) note_inner(operand);
  }

  std::vector<std::int64_t> extents_of(const std::string& name) const {
    if (const Tensor* tensor = program_.find_tensor(name); tensor != nullptr) {
      const auto shape = generator::resolve_shape(*tensor, problem_);
      if (!shape) return {};
      std::vector<std::int64_t> extents = shape->extents;
      if (!tensor->list_dim.empty()) extents.insert(extents.begin(), shape->num_in_list);
      return extents;
    }
    for (const Statement& statement : program_.statements) {
      if (statement.target != name) continue;
      std::vector<std::int64_t> extents;
      for (const std::string& index_name : statement.indices) {
        const Index* index = program_.find_index(index_name);
        const auto extent = index != nullptr ? index->extent.evaluate(problem_.dims) : Result<std::int64_t>(1);
        extents.push_back(extent.value_or(1));
      }
      return extents;
    }
    return {};
  }

  const Program& program_;
  const Problem& problem_;
  std::map<std::string, IndexUse> uses_;
  std::set<const ExprNode*> seen_;
};

std::int64_t num_elements_of(const Tensor& tensor, const Problem& problem) {
  const auto shape = generator::resolve_shape(tensor, problem);
  return shape ? shape->num_elements() * shape->num_in_list : 0;
}

InputFill fill_of(const Tensor& tensor, const Problem& problem, const IndexUse& use, std::uint64_t seed) {
  const bool has_range = tensor.properties.range_low.has_value() && tensor.properties.range_high.has_value();
  InputFill fill;
  fill.tensor = tensor.name;
  fill.dtype = tensor.dtype;
  fill.seed = seed;
  fill.num_elements = num_elements_of(tensor, problem);
  if (!is_integer(tensor.dtype)) {
    if (has_range) {
      fill.kind = Kind::kUniform;
      fill.low = *tensor.properties.range_low;
      fill.high = *tensor.properties.range_high;
    }
    return fill;
  }
  fill.kind = use.is_offsets || tensor.properties.is_sorted ? Kind::kSorted : tensor.properties.is_unique ? Kind::kUnique : Kind::kInteger;
  if (has_range) {
    fill.low = *tensor.properties.range_low;
    fill.high = *tensor.properties.range_high + 1;
  } else if (use.is_indexing && use.is_derived) {
    fill.high = static_cast<double>(use.extent);
  } else if (tensor.dtype == DType::kBool) {
    fill.high = 2;
  } else if (tensor.dtype == DType::kI8) {
    fill.low = -128;
    fill.high = 128;
  } else if (!use.is_indexing) {
    fill.low = -kDefaultIntegerRange;
    fill.high = kDefaultIntegerRange;
  } else {
    fill.high = 1;
  }
  return fill;
}

}  // namespace

std::vector<InputFill> input_fills(const Program& program, const Problem& problem, std::uint64_t seed) {
  const std::map<std::string, IndexUse> uses = UseFinder(program, problem).run();
  std::vector<InputFill> fills;
  for (const Tensor& tensor : program.tensors) {
    if (tensor.role == TensorRole::kOut) continue;
    const auto use = uses.find(tensor.name);
    const std::uint64_t tensor_seed = seed * 0x2545f4914f6cdd1du + fills.size() + 1;
    fills.push_back(fill_of(tensor, problem, use == uses.end() ? IndexUse{} : use->second, tensor_seed));
  }
  return fills;
}

Status check_input_fills(const Program& program, const Problem& problem) {
  const auto refuse = [](const Tensor& tensor, const std::string& rule) {
    return fail(Stage::kVerify, Code::kBadInput, fmt::format("tensor {}: {}", tensor.name, rule), tensor.where);
  };
  const std::map<std::string, IndexUse> uses = UseFinder(program, problem).run();
  for (const Tensor& tensor : program.tensors) {
    if (tensor.role == TensorRole::kOut) continue;
    const bool has_range = tensor.properties.range_low.has_value();
    const auto use = uses.find(tensor.name);
    const IndexUse known = use == uses.end() ? IndexUse{} : use->second;
    if (known.is_indexing && !known.is_derived && !has_range) {
      return refuse(tensor, "is used inside a subscript expression, so its values cannot be derived: state range = [low, high]");
    }
    if (!is_integer(tensor.dtype) && (tensor.properties.is_sorted || tensor.properties.is_unique)) {
      return refuse(tensor, fmt::format("sorted and unique random values are made for integers only, not for {}", to_text(tensor.dtype)));
    }
    const InputFill fill = fill_of(tensor, problem, known, 0);
    if (known.is_indexing && fill.high <= fill.low && fill.num_elements > 0) {
      return refuse(tensor, "indexes an axis of extent 0: no value is legal");
    }
    if (fill.kind == Kind::kUnique && static_cast<double>(fill.num_elements) > fill.high - fill.low) {
      return refuse(tensor, fmt::format("{} unique values do not fit into a range of {}", fill.num_elements, fill.high - fill.low));
    }
  }
  return {};
}

}  // namespace kw::tuner
