// Floating-point operations and bytes of a program at one problem, from the program itself.
// Place in the pipeline: `explain`, the roofline and the report. The traffic model is the no-cache one: an operation reads each of its
// inputs once and writes its result once. Fused: all statements are one kernel, so inputs and outputs move once. Unfused: one kernel for
// each reduction (a product inside it belongs to it) and each pointwise function; its result goes through HBM in the output's dtype.
// Data-dependent bounds (below, ragged) are unknown here: their indices count with their whole extent.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "generator/spec/evaluator.h"
#include "generator/spec/evaluator/compiled_program.h"

namespace kw::generator {
namespace {

using Kind = ExprNode::Kind;

/// Operations per term of a reduction, beside those of its body.
double flops_per_term(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSoftmax:
      return 5;  // max, subtract, exp, add, divide
    case ReduceOp::kLogSumExp:
      return 4;  // max, subtract, exp, add
    default:
      return 1;
  }
}

class Counter {
 public:
  Counter(const CompiledProgram& compiled, std::int64_t l2_bytes) : compiled_(compiled), l2_bytes_(static_cast<double>(l2_bytes)) {
    for (const CompiledNode& n : compiled_.nodes) {
      const bool is_source = n.kind == Kind::kRead || n.kind == Kind::kReduce;
      touches_data_.push_back(is_source || std::any_of(n.operands.begin(), n.operands.end(),
                                                       [&](int operand) { return touches_data_[static_cast<size_t>(operand)]; }));
    }
  }

  WorkCounts run() {
    count_compulsory();
    element_bytes_ = output_element_bytes();
    for (size_t id = 0; id < compiled_.program->statements.size(); ++id) count_statement(id);
    counts_.fused_bytes = counts_.min_bytes;
    return counts_;
  }

 private:
  /// What an operation reads: bytes of a stored value and whether it is an intermediate.
  struct Stored {
    std::string name;  // one read per kernel of the same thing
    double bytes = 0;  // 0: an index, number or scalar, not stored
    bool is_intermediate = false;
  };

  double extent(int slot) const { return static_cast<double>(compiled_.indices[static_cast<size_t>(slot)].extent); }
  double points(std::uint64_t slots) const {
    double product = 1;
    for (std::uint64_t rest = slots; rest != 0; rest &= rest - 1) product *= extent(__builtin_ctzll(rest));
    return product;
  }
  static double product_of(const std::vector<std::int64_t>& extents) {
    double product = 1;
    for (const std::int64_t e : extents) product *= static_cast<double>(e);
    return product;
  }
  const CompiledNode& node(int id) const { return compiled_.nodes[static_cast<size_t>(id)]; }

  double output_element_bytes() const {
    for (const Tensor& tensor : compiled_.program->tensors) {
      if (tensor.role != TensorRole::kIn) return size_bytes(tensor.dtype);
    }
    return size_bytes(compiled_.program->accumulate);
  }

  /// Inputs that are read, once each (a gathered one at most as often as it is read), and outputs, once each.
  void count_compulsory() {
    std::map<int, double> reads;
    for (const CompiledNode& n : compiled_.nodes) {
      if (n.kind != Kind::kRead || n.tensor < 0) continue;
      const double elements = product_of(compiled_.tensor_extents[static_cast<size_t>(n.tensor)]);
      double& read = reads[n.tensor];
      read = std::min(elements, read + (n.has_affine_subscripts ? elements : points(n.depends)));
    }
    for (const CompiledIndex& index : compiled_.indices) {
      if (index.offsets >= 0) reads[index.offsets] = product_of(compiled_.tensor_extents[static_cast<size_t>(index.offsets)]);
    }
    for (const auto& [tensor, elements] : reads)
      counts_.min_bytes += elements * size_bytes(compiled_.program->tensors[static_cast<size_t>(tensor)].dtype);
    for (const CompiledTarget& target : compiled_.targets) {
      if (target.tensor != nullptr) counts_.min_bytes += product_of(target.extents) * size_bytes(target.tensor->dtype);
    }
  }

  void count_statement(size_t id) {
    const CompiledStatement& statement = compiled_.statements[id];
    std::uint64_t slots = 0;
    for (const int slot : statement.slots) slots |= std::uint64_t{1} << slot;
    seen_flops_.clear();
    count_flops(statement.value, slots, false);
    const Tensor* tensor = compiled_.program->find_tensor(compiled_.program->statements[id].target);
    const double bytes =
        points(slots) * (compiled_.program->statements[id].is_tensor && tensor != nullptr ? size_bytes(tensor->dtype) : element_bytes_);
    const CompiledNode& root = node(statement.value);
    if (is_operation(root)) {
      add_operation(statement.value, bytes);
    } else if (compiled_.program->statements[id].is_tensor) {
      add_kernel({materialise(statement.value)}, bytes);  // a copy
    }
    is_alias_[compiled_.program->statements[id].target] = !is_operation(root) && !compiled_.program->statements[id].is_tensor;
  }

  /// Pointwise real functions and reductions, each once per point of the loops it depends on.
  void count_flops(int id, std::uint64_t loops, bool is_factor) {
    if (!seen_flops_.insert({id, loops}).second) return;
    const CompiledNode& n = node(id);
    if (n.kind == Kind::kCall && is_float(n.dtype) && n.function != Function::kWhere) {
      counts_.flops += points(loops);
      if (is_factor) counts_.contraction_flops += points(loops);
    }
    if (n.kind != Kind::kReduce) {
      if (n.kind != Kind::kRead) {
        for (const int operand : n.operands) count_flops(operand, loops & node(operand).depends, false);
      }
      return;
    }
    std::uint64_t inner = loops & n.depends;
    for (const int slot : n.slots) inner |= std::uint64_t{1} << slot;
    const bool is_contraction = n.is_product_sum && is_float(node(n.operands[0]).dtype);
    counts_.flops += points(inner) * flops_per_term(n.reduce_op);
    if (is_contraction) counts_.contraction_flops += points(inner);
    count_flops(n.operands[0], is_contraction ? inner : inner & node(n.operands[0]).depends, is_contraction);
    if (n.operands.size() > 1) count_flops(n.operands[1], loops & node(n.operands[1]).depends, false);
  }

  bool is_operation(const CompiledNode& n) const {
    if (n.kind == Kind::kReduce) return true;
    if (n.kind == Kind::kCast) return is_operation(node(n.operands[0]));
    return n.kind == Kind::kCall && touches_data(n);
  }
  /// An expression of indices, numbers and scalars alone is computed where it is used.
  bool touches_data(const CompiledNode& n) const { return touches_data_[static_cast<size_t>(&n - compiled_.nodes.data())]; }

  /// Makes the operation `id` a kernel of its own that writes `result_bytes`.
  void add_operation(int id, double result_bytes) {
    const CompiledNode& n = node(id);
    if (n.kind == Kind::kCast) return add_operation(n.operands[0], result_bytes);
    std::vector<Stored> inputs;
    if (n.kind == Kind::kReduce && n.is_product_sum) {
      for (const int factor : node(n.operands[0]).operands) inputs.push_back(materialise(factor));
      for (size_t i = 1; i < n.operands.size(); ++i) inputs.push_back(materialise(n.operands[i]));
    } else {
      for (const int operand : n.operands) inputs.push_back(materialise(operand));
    }
    add_kernel(inputs, result_bytes);
  }

  void add_kernel(const std::vector<Stored>& inputs, double result_bytes) {
    std::set<std::string> read;
    double bytes = result_bytes, l2_aware = result_bytes;
    for (const Stored& input : inputs) {
      if (!read.insert(input.name).second) continue;
      bytes += input.bytes;
      if (!(input.is_intermediate && input.bytes <= l2_bytes_)) l2_aware += input.bytes;
    }
    counts_.unfused_bytes += bytes;
    counts_.unfused_l2_aware_bytes += l2_aware;
  }

  /// The stored value behind a node; an operation becomes a kernel the first time it is met.
  Stored materialise(int id) {
    const CompiledNode& n = node(id);
    if (n.kind == Kind::kCast) return materialise(n.operands[0]);
    if (n.kind == Kind::kRead && n.tensor >= 0) {
      const Tensor& tensor = compiled_.program->tensors[static_cast<size_t>(n.tensor)];
      const double elements = product_of(compiled_.tensor_extents[static_cast<size_t>(n.tensor)]);
      return {tensor.name, std::min(elements, n.has_affine_subscripts ? elements : points(n.depends)) * size_bytes(tensor.dtype), false};
    }
    if (n.kind == Kind::kRead) {
      const CompiledTarget& target = compiled_.targets[static_cast<size_t>(n.target)];
      const CompiledStatement& writer = compiled_.statements[static_cast<size_t>(target.statements.front())];
      if (is_alias_[target.name]) return materialise(writer.value);
      const double bytes = target.tensor != nullptr ? size_bytes(target.tensor->dtype) : element_bytes_;
      return {target.name, product_of(target.extents) * bytes, true};
    }
    if (!is_operation(n)) return {fmt::format("#{}", id), 0, false};
    const double bytes = points(n.depends) * element_bytes_;
    if (made_.insert(id).second) add_operation(id, bytes);
    return {fmt::format("#{}", id), bytes, true};
  }

  const CompiledProgram& compiled_;
  double l2_bytes_;
  std::vector<bool> touches_data_;
  double element_bytes_ = 2;
  WorkCounts counts_;
  std::set<std::pair<int, std::uint64_t>> seen_flops_;
  std::set<int> made_;
  std::map<std::string, bool> is_alias_;
};

}  // namespace

Result<WorkCounts> count_work(const Program& program, const Problem& problem, std::int64_t l2_bytes) {
  const ScalarReader any_value = [](const Scalar&) { return 1.0; };  // counts do not depend on scalars
  KW_TRY(const CompiledProgram compiled, compile_program(program, problem, any_value));
  return Counter(compiled, l2_bytes).run();
}

}  // namespace kw::generator
