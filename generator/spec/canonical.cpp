// Canonical text and identity of an op. Intermediates and derived scalars are written out where they are used, indices are
// numbered by nesting depth, and operands of commutative operations are sorted: two specs that say the same thing give one text.
// Names of dims, tensors and launch-time scalars stay (they are the launch interface); the op's name and listed shapes do not count.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "generator/base/hash.h"
#include "generator/spec/program.h"

namespace kw::generator {

namespace {

/// Index name -> canonical text of what it stands for at this point.
using Environment = std::map<std::string, std::string>;

bool is_commutative(Function function) {
  switch (function) {
    case Function::kAdd:
    case Function::kMul:
    case Function::kMin:
    case Function::kMax:
    case Function::kEq:
    case Function::kNe:
    case Function::kAnd:
    case Function::kOr:
      return true;
    default:
      return false;
  }
}

bool keeps_index(ReduceOp op) { return op == ReduceOp::kSoftmax || op == ReduceOp::kCumSum; }

class CanonicalPrinter {
 public:
  explicit CanonicalPrinter(const Program& program) : program_(program) {
    for (const Statement& statement : program.statements) {
      if (!statement.is_tensor) intermediates_[statement.target] = &statement;
    }
  }

  std::string statement(const Statement& statement) const {
    Environment environment;
    std::string loops;
    // Indices are numbered by where they stand on the left side, which the writer cannot choose.
    std::vector<std::string> order = left_side_order(statement);
    for (const std::string& index : order) {
      const std::string name = fmt::format("i{}", environment.size());
      environment[index] = name;
      loops += fmt::format("{}{}", loops.empty() ? "" : ", ", name);
    }
    std::string domains;
    for (const std::string& index : order) domains += " " + domain(index, environment, static_cast<int>(order.size()));
    std::string subscripts;
    for (const ExprRef& subscript : statement.subscripts) {
      subscripts += (subscripts.empty() ? "" : ",") + print(subscript, environment, static_cast<int>(order.size()));
    }
    return fmt::format("{}[{}] for {}:{} = {}", statement.target, subscripts, loops, domains,
                       print(statement.value, environment, static_cast<int>(order.size())));
  }

 private:
  std::vector<std::string> left_side_order(const Statement& statement) const {
    std::vector<std::string> order;
    for (const ExprRef& subscript : statement.subscripts) collect_indices(subscript, order);
    for (const std::string& index : statement.indices) {
      if (std::find(order.begin(), order.end(), index) == order.end()) order.push_back(index);
    }
    return order;
  }

  static void collect_indices(const ExprRef& expr, std::vector<std::string>& order) {
    if (expr->kind == ExprNode::Kind::kIndex && std::find(order.begin(), order.end(), expr->name) == order.end())
      order.push_back(expr->name);
    for (const ExprRef& operand : expr->operands) collect_indices(operand, order);
  }

  std::string domain(const std::string& name, const Environment& environment, int depth) const {
    const Index* index = program_.find_index(name);
    if (index == nullptr) return "?";
    std::string text = "<" + index->extent.to_text();
    if (index->below) text += " below " + print(index->below, environment, depth);
    if (!index->ragged_offsets.empty()) text += " ragged " + index->ragged_offsets;
    return text;
  }

  std::string print(const ExprRef& expr, const Environment& environment, int depth) const {
    const ExprNode& node = *expr;
    switch (node.kind) {
      case ExprNode::Kind::kIndex: {
        const auto found = environment.find(node.name);
        return found == environment.end() ? group_index(node.name, environment) : found->second;
      }
      case ExprNode::Kind::kScalar: {
        const Scalar* scalar = program_.find_scalar(node.name);
        if (scalar != nullptr && scalar->value) return print(scalar->value, {}, 0);
        return node.name;
      }
      case ExprNode::Kind::kRead:
        return print_read(node, environment, depth);
      case ExprNode::Kind::kCall:
        return print_call(node, environment, depth);
      case ExprNode::Kind::kReduce:
        return print_reduce(node, environment, depth);
      case ExprNode::Kind::kCast:
        return fmt::format("cast({},{})", print(node.operands.at(0), environment, depth), to_text(node.dtype));
      default:
        return to_text(expr);
    }
  }

  /// A group index is no loop: its value follows from the position of its ragged index.
  std::string group_index(const std::string& name, const Environment& environment) const {
    for (const Index& index : program_.indices) {
      const auto member = environment.find(index.name);
      if (index.ragged_group == name && member != environment.end())
        return fmt::format("group({},{})", index.ragged_offsets, member->second);
    }
    return "index:" + name;
  }

  std::string print_read(const ExprNode& node, const Environment& environment, int depth) const {
    std::vector<std::string> subscripts;
    for (const ExprRef& operand : node.operands) subscripts.push_back(print(operand, environment, depth));
    const auto intermediate = intermediates_.find(node.name);
    if (intermediate == intermediates_.end()) return fmt::format("{}[{}]", node.name, fmt::join(subscripts, ","));
    Environment inner;
    for (std::size_t axis = 0; axis < subscripts.size() && axis < intermediate->second->indices.size(); ++axis) {
      inner[intermediate->second->indices[axis]] = subscripts[axis];
    }
    return print(intermediate->second->value, inner, depth);
  }

  std::string print_call(const ExprNode& node, const Environment& environment, int depth) const {
    std::vector<std::string> operands;
    for (const ExprRef& operand : node.operands) operands.push_back(print(operand, environment, depth));
    Function function = node.function;
    if (function == Function::kGt || function == Function::kGe) {  // a > b is b < a
      std::swap(operands.at(0), operands.at(1));
      function = function == Function::kGt ? Function::kLt : Function::kLe;
    }
    if (is_commutative(function)) std::sort(operands.begin(), operands.end());
    const std::string_view name = function == Function::kNeg ? "neg" : to_text(function);
    return fmt::format("{}({})", name, fmt::join(operands, ","));
  }

  std::string print_reduce(const ExprNode& node, const Environment& environment, int depth) const {
    Environment inner = environment;
    std::vector<std::string> binders;
    int inner_depth = depth;
    for (const std::string& index : node.indices) inner[index] = fmt::format("i{}", inner_depth++);
    for (const std::string& index : node.indices) {
      std::string binder = inner[index] + domain(index, inner, inner_depth);
      if (keeps_index(node.reduce_op)) {
        const auto kept = environment.find(index);
        binder += " at " + (kept == environment.end() ? "?" : kept->second);
      }
      binders.push_back(std::move(binder));
    }
    std::string text =
        fmt::format("{}[{}]({}", to_text(node.reduce_op), fmt::join(binders, ","), print(node.operands.at(0), inner, inner_depth));
    if (node.operands.size() > 1) text += "," + print(node.operands[1], environment, depth);
    return text + ")";
  }

  const Program& program_;
  std::map<std::string, const Statement*> intermediates_;
};

std::string tensor_text(const Tensor& tensor) {
  std::vector<std::string> shape, strides;
  for (const IntExpr& extent : tensor.shape) shape.push_back(extent.to_text());
  for (const IntExpr& stride : tensor.strides) strides.push_back(stride.to_text());
  std::string text = fmt::format("tensor {} {} {} [{}] strides [{}] align {}", tensor.name, to_text(tensor.dtype), to_text(tensor.role),
                                 fmt::join(shape, ","), fmt::join(strides, ","), tensor.align_bytes);
  if (tensor.is_const) text += " const";
  if (tensor.properties.range_low)
    text += fmt::format(" range {} {}", *tensor.properties.range_low, tensor.properties.range_high.value_or(0));
  if (tensor.properties.is_sorted) text += " sorted";
  if (tensor.properties.is_unique) text += " unique";
  if (!tensor.list_dim.empty()) text += " list " + tensor.list_dim;
  return text + "\n";
}

}  // namespace

std::string canonical_text(const Program& program) {
  std::string text = fmt::format("kernelwright program 1\naccumulate {}\nmultiply {}\n", to_text(program.accumulate),
                                 program.uses_tf32 ? "tf32" : "exact");
  std::vector<std::string> dims;
  for (const Dim& dim : program.dims) dims.push_back(dim.name);
  std::sort(dims.begin(), dims.end());
  text += fmt::format("dims {}\n", fmt::join(dims, " "));
  for (const Tensor& tensor : program.tensors) text += tensor_text(tensor);
  for (const Scalar& scalar : program.scalars) {
    if (!scalar.value) text += fmt::format("scalar {} {}\n", scalar.name, to_text(scalar.dtype));
  }
  const CanonicalPrinter printer(program);
  std::vector<std::string> statements;
  for (const Statement& statement : program.statements) {
    if (statement.is_tensor) statements.push_back(printer.statement(statement));
  }
  std::sort(statements.begin(), statements.end());
  for (const std::string& statement : statements) text += statement + "\n";
  return text;
}

std::string identity(const Program& program) { return hash_hex(canonical_text(program)); }

}  // namespace kw::generator
