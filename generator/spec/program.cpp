// The typed program: look-ups, small builders, rewriting and the bridge from exact integer expressions to IntExpr.
// Place in the pipeline: what the checker makes and every later step reads. Printing is in program_text.cpp, identity in canonical.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "generator/spec/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

namespace kw::generator {

namespace {

template <typename Item>
const Item* find_by_name(const std::vector<Item>& items, std::string_view name) {
  const auto found = std::find_if(items.begin(), items.end(), [&](const Item& item) { return item.name == name; });
  return found == items.end() ? nullptr : &*found;
}

std::optional<IntExpr::Op> int_op(Function function) {
  switch (function) {
    case Function::kAdd:
      return IntExpr::Op::kAdd;
    case Function::kSub:
      return IntExpr::Op::kSub;
    case Function::kMul:
      return IntExpr::Op::kMul;
    case Function::kFloorDiv:
      return IntExpr::Op::kFloorDiv;
    case Function::kMod:
      return IntExpr::Op::kMod;
    case Function::kNeg:
      return IntExpr::Op::kNeg;
    case Function::kMin:
      return IntExpr::Op::kMin;
    case Function::kMax:
      return IntExpr::Op::kMax;
    case Function::kLt:
      return IntExpr::Op::kLt;
    case Function::kLe:
      return IntExpr::Op::kLe;
    case Function::kGt:
      return IntExpr::Op::kGt;
    case Function::kGe:
      return IntExpr::Op::kGe;
    case Function::kEq:
      return IntExpr::Op::kEq;
    case Function::kNe:
      return IntExpr::Op::kNe;
    case Function::kAnd:
      return IntExpr::Op::kAnd;
    case Function::kOr:
      return IntExpr::Op::kOr;
    case Function::kNot:
      return IntExpr::Op::kNot;
    case Function::kWhere:
      return IntExpr::Op::kSelect;
    default:
      return std::nullopt;
  }
}

tl::unexpected<Error> not_integer(const ExprRef& expr, const char* rule) {
  return fail(Stage::kSpec, Code::kBadInput, fmt::format("{}: {}", to_text(expr), rule), expr->where);
}

Result<IntExpr> number_as_int(const ExprRef& expr) {
  // Exact integers of the notation are below 2^63; a double holds them exactly up to 2^53, which the checker enforces.
  if (std::floor(expr->number) != expr->number || std::fabs(expr->number) > 9007199254740992.0) {
    return not_integer(expr, "an integer expression needs whole numbers of at most 2^53");
  }
  return IntExpr(static_cast<std::int64_t>(expr->number));
}

}  // namespace

const Tensor* Program::find_tensor(std::string_view tensor_name) const { return find_by_name(tensors, tensor_name); }
const Index* Program::find_index(std::string_view index_name) const { return find_by_name(indices, index_name); }
const Scalar* Program::find_scalar(std::string_view scalar_name) const { return find_by_name(scalars, scalar_name); }

ExprRef make_number(double value, DType dtype) {
  ExprNode node;
  node.kind = ExprNode::Kind::kNumber;
  node.dtype = dtype;
  node.number = value;
  return std::make_shared<const ExprNode>(std::move(node));
}

ExprRef make_index(std::string name) {
  ExprNode node;
  node.kind = ExprNode::Kind::kIndex;
  node.dtype = DType::kI64;
  node.name = std::move(name);
  return std::make_shared<const ExprNode>(std::move(node));
}

ExprRef make_call(Function function, std::vector<ExprRef> operands, DType dtype) {
  ExprNode node;
  node.kind = ExprNode::Kind::kCall;
  node.dtype = dtype;
  node.function = function;
  if (!operands.empty()) node.where = operands.front()->where;
  node.operands = std::move(operands);
  return std::make_shared<const ExprNode>(std::move(node));
}

ExprRef rewrite(const ExprRef& expr, const std::function<ExprRef(const ExprRef&)>& replace) {
  std::unordered_map<const ExprNode*, ExprRef> done;
  const auto rewritten = [&](const auto& self, const ExprRef& node) -> ExprRef {
    const auto known = done.find(node.get());
    if (known != done.end()) return known->second;
    std::vector<ExprRef> operands;
    operands.reserve(node->operands.size());
    for (const ExprRef& operand : node->operands) operands.push_back(self(self, operand));
    ExprRef rebuilt = node;
    if (operands != node->operands) {
      ExprNode changed = *node;
      changed.operands = std::move(operands);
      rebuilt = std::make_shared<const ExprNode>(std::move(changed));
    }
    const ExprRef replaced = replace(rebuilt);
    return done[node.get()] = replaced ? replaced : rebuilt;
  };
  return rewritten(rewritten, expr);
}

Result<IntExpr> as_int_expr(const ExprRef& expr) {
  switch (expr->kind) {
    case ExprNode::Kind::kNumber:
      return number_as_int(expr);
    case ExprNode::Kind::kIndex:
    case ExprNode::Kind::kDim:
      return IntExpr::variable(expr->name);
    case ExprNode::Kind::kCall:
      break;
    case ExprNode::Kind::kRead:
      return not_integer(expr, "a value read from a tensor is not an integer expression of dims and indices");
    default:
      return not_integer(expr, "only + - * // %, min, max, comparisons and where make integer expressions of dims and indices");
  }
  const std::optional<IntExpr::Op> op = int_op(expr->function);
  if (!op) return not_integer(expr, "only + - * // %, min, max, comparisons and where make integer expressions of dims and indices");
  std::vector<IntExpr> operands;
  for (const ExprRef& operand : expr->operands) {
    KW_TRY(IntExpr value, as_int_expr(operand));
    operands.push_back(std::move(value));
  }
  return IntExpr::make(*op, std::move(operands));
}

std::vector<IntExpr> subscripted_shape(const Tensor& tensor) {
  std::vector<IntExpr> shape = tensor.shape;
  if (!tensor.list_dim.empty()) shape.insert(shape.begin(), IntExpr::variable(tensor.list_dim));
  return shape;
}

std::vector<IntExpr> subscripted_strides(const Tensor& tensor) {
  std::vector<IntExpr> strides = tensor.strides;
  if (tensor.list_dim.empty()) return strides;
  IntExpr span(1);
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    span = strides == row_major_strides(tensor.shape) ? span * tensor.shape[axis] : span + (tensor.shape[axis] - 1) * tensor.strides[axis];
  }
  strides.insert(strides.begin(), span);
  return strides;
}

std::vector<IntExpr> row_major_strides(const std::vector<IntExpr>& shape) {
  std::vector<IntExpr> strides(shape.size(), IntExpr(1));
  for (std::size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

}  // namespace kw::generator
