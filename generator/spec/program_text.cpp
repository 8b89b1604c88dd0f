// Prints a typed program as op-spec text. The text is a legal spec that parses to the same identity, with sugar and user
// functions written out: what `explain` and `--stop-after check` show.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <unordered_map>

#include "generator/base/hash.h"
#include "generator/spec/program.h"
#include "generator/spec/walk.h"

namespace kw::generator {

namespace {

constexpr int kOrLevel = 1, kAndLevel = 2, kNotLevel = 3, kCompareLevel = 4, kAddLevel = 5, kMulLevel = 6, kNegLevel = 7, kPowLevel = 8,
              kAtomLevel = 9;

int level_of(Function function) {
  switch (function) {
    case Function::kOr:
      return kOrLevel;
    case Function::kAnd:
      return kAndLevel;
    case Function::kNot:
      return kNotLevel;
    case Function::kLt:
    case Function::kLe:
    case Function::kGt:
    case Function::kGe:
    case Function::kEq:
    case Function::kNe:
      return kCompareLevel;
    case Function::kAdd:
    case Function::kSub:
      return kAddLevel;
    case Function::kMul:
    case Function::kDiv:
    case Function::kFloorDiv:
    case Function::kMod:
      return kMulLevel;
    case Function::kNeg:
      return kNegLevel;
    case Function::kPow:
      return kPowLevel;
    default:
      return kAtomLevel;
  }
}

std::string number_text(double value, DType dtype) {
  if (dtype == DType::kBool) return value != 0 ? "true" : "false";
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  if (!is_float(dtype)) return fmt::format("{:.0f}", value);
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

constexpr std::int64_t kMaxPrintedParts = 200'000;  // a larger tree is printed with its long parts as hashes
constexpr std::size_t kMaxPartBytes = 256;

struct Printed {
  std::string text;
  int level = kAtomLevel;
};

/// Texts of the nodes of an expression that is printed with hashes; null while one is written out.
using KnownTexts = std::unordered_map<const ExprNode*, Printed>;

Printed print(const ExprRef& expr, KnownTexts* known);

std::string print_at(const ExprRef& expr, int least_level, KnownTexts* known) {
  Printed printed = print(expr, known);
  return printed.level < least_level ? "(" + printed.text + ")" : printed.text;
}

std::string print_list(const std::vector<ExprRef>& operands, const char* separator, KnownTexts* known) {
  std::string text;
  for (const ExprRef& operand : operands) text += (text.empty() ? "" : separator) + print_at(operand, 0, known);
  return text;
}

std::string join(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ",")); }

Printed print_call(const ExprNode& node, KnownTexts* known) {
  const int level = level_of(node.function);
  const std::string name(to_text(node.function));
  if (level == kAtomLevel) return {name + "(" + print_list(node.operands, ", ", known) + ")", kAtomLevel};
  if (node.function == Function::kNeg) return {"-" + print_at(node.operands.at(0), kNegLevel, known), level};
  if (node.function == Function::kNot) return {"not " + print_at(node.operands.at(0), kNotLevel, known), level};
  // Binary operators group to the left, `^` to the right; comparisons do not chain.
  const bool is_right = node.function == Function::kPow, is_compare = level == kCompareLevel;
  const std::string left = print_at(node.operands.at(0), is_right || is_compare ? level + 1 : level, known);
  const std::string right = print_at(node.operands.at(1), is_right ? kNegLevel : level + 1, known);
  return {left + " " + name + " " + right, level};
}

Printed print_reduce(const ExprNode& node, KnownTexts* known) {
  std::string text = fmt::format("{}[{}]({}", to_text(node.reduce_op), join(node.indices), print_at(node.operands.at(0), 0, known));
  if (node.operands.size() > 1) {
    text += node.reduce_op == ReduceOp::kSoftmax ? ", sink=" : ", ";
    text += print_at(node.operands.at(1), 0, known);
  }
  return {text + ")", kAtomLevel};
}

Printed print_node(const ExprNode& node, KnownTexts* known) {
  switch (node.kind) {
    case ExprNode::Kind::kNumber: {
      const std::string text = number_text(node.number, node.dtype);
      return {text, text.front() == '-' ? kNegLevel : kAtomLevel};
    }
    case ExprNode::Kind::kIndex:
    case ExprNode::Kind::kDim:
    case ExprNode::Kind::kScalar:
      return {node.name, kAtomLevel};
    case ExprNode::Kind::kRead:
      return {node.name + "[" + print_list(node.operands, ",", known) + "]", kAtomLevel};
    case ExprNode::Kind::kCall:
      return print_call(node, known);
    case ExprNode::Kind::kReduce:
      return print_reduce(node, known);
    case ExprNode::Kind::kCast:
      return {fmt::format("cast({}, {})", print_at(node.operands.at(0), 0, known), to_text(node.dtype)), kAtomLevel};
    case ExprNode::Kind::kParameter:
      return {fmt::format("parameter{}", node.parameter), kAtomLevel};
  }
  return {};
}

Printed print(const ExprRef& expr, KnownTexts* known) {
  if (known == nullptr) return print_node(*expr, nullptr);
  const auto found = known->find(expr.get());
  if (found != known->end()) return found->second;
  Printed printed = print_node(*expr, known);
  if (printed.text.size() > kMaxPartBytes) printed = {"#" + hash_hex(printed.text), kAtomLevel};
  return known->emplace(expr.get(), std::move(printed)).first->second;
}

std::string print_dims(const Program& program) {
  std::string text;
  for (const Dim& dim : program.dims) {
    if (dim.is_any || dim.values.empty()) {
      text += fmt::format("{} = \"any\"\n", dim.name);
    } else if (dim.values.size() == 1) {
      text += fmt::format("{} = {}\n", dim.name, dim.values.front());
    } else {
      text += fmt::format("{} = [{}]\n", dim.name, fmt::join(dim.values, ", "));
    }
  }
  return text.empty() ? text : "[dims]\n" + text;
}

std::string quoted_list(const std::vector<IntExpr>& values) {
  std::string text;
  for (const IntExpr& value : values) text += (text.empty() ? "\"" : ", \"") + value.to_text() + "\"";
  return "[" + text + "]";
}

std::string print_properties(const DataProperties& properties) {
  std::string text;
  if (properties.range_low && properties.range_high) {
    text += fmt::format(", range = [{}, {}]", number_text(*properties.range_low, DType::kF64),
                        number_text(*properties.range_high, DType::kF64));
  }
  if (properties.is_sorted) text += ", sorted = true";
  if (properties.is_unique) text += ", unique = true";
  return text;
}

/// A free stride is "any" again.
std::string strides_text(const Tensor& tensor) {
  std::string text;
  for (std::size_t axis = 0; axis < tensor.strides.size(); ++axis) {
    const IntExpr& stride = tensor.strides[axis];
    const bool is_any = stride.op() == IntExpr::Op::kVar && stride.name() == fmt::format("{}.stride{}", tensor.name, axis);
    text += fmt::format("{}\"{}\"", axis == 0 ? "" : ", ", is_any ? "any" : stride.to_text());
  }
  return "[" + text + "]";
}

std::string print_tensor(const Tensor& tensor) {
  std::string text = fmt::format("{} = {{ dtype = \"{}\", shape = {}", tensor.name, to_text(tensor.dtype), quoted_list(tensor.shape));
  if (tensor.role != TensorRole::kIn) text += fmt::format(", role = \"{}\"", to_text(tensor.role));
  if (tensor.strides != row_major_strides(tensor.shape)) text += ", strides = " + strides_text(tensor);
  if (tensor.align_bytes != kDefaultAlignBytes) text += fmt::format(", align = {}", tensor.align_bytes);
  if (tensor.is_const) text += ", const = true";
  text += print_properties(tensor.properties);
  if (!tensor.list_dim.empty()) text += fmt::format(", list = \"{}\"", tensor.list_dim);
  return text + " }\n";
}

std::string print_scalar(const Scalar& scalar) {
  if (!scalar.value) return fmt::format("{} = {{ dtype = \"{}\" }}\n", scalar.name, to_text(scalar.dtype));
  return fmt::format("{} = {{ dtype = \"{}\", value = \"{}\" }}\n", scalar.name, to_text(scalar.dtype), to_text(scalar.value));
}

std::string print_index(const Index& index) {
  std::string text = fmt::format("{} = {{ extent = \"{}\"", index.name, index.extent.to_text());
  if (index.below) text += fmt::format(", below = \"{}\"", to_text(index.below));
  if (!index.ragged_offsets.empty()) text += fmt::format(", ragged = \"{}[{}]\"", index.ragged_offsets, index.ragged_group);
  return text + " }\n";
}

std::string print_tune(const TuneOptions& tune) {
  std::string text;
  for (const auto& [name, values] : tune.values) text += fmt::format("{} = [{}]\n", name, fmt::join(values, ", "));
  if (tune.budget_seconds) text += fmt::format("budget = {}\n", number_text(*tune.budget_seconds, DType::kF64));
  if (tune.tolerance_scale) text += fmt::format("tolerance = {}\n", number_text(*tune.tolerance_scale, DType::kF64));
  if (tune.is_warm_l2) text += "l2 = \"warm\"\n";
  if (tune.allows_atomics) text += "atomics = true\n";
  return text.empty() ? text : "\n[tune]\n" + text;
}

}  // namespace

std::string_view to_text(Function function) {
  switch (function) {
    case Function::kAdd:
      return "+";
    case Function::kSub:
    case Function::kNeg:
      return "-";
    case Function::kMul:
      return "*";
    case Function::kDiv:
      return "/";
    case Function::kFloorDiv:
      return "//";
    case Function::kMod:
      return "%";
    case Function::kPow:
      return "^";
    case Function::kLt:
      return "<";
    case Function::kLe:
      return "<=";
    case Function::kGt:
      return ">";
    case Function::kGe:
      return ">=";
    case Function::kEq:
      return "==";
    case Function::kNe:
      return "!=";
    case Function::kAnd:
      return "and";
    case Function::kOr:
      return "or";
    case Function::kNot:
      return "not";
    case Function::kWhere:
      return "where";
    case Function::kMin:
      return "min";
    case Function::kMax:
      return "max";
    case Function::kAbs:
      return "abs";
    case Function::kExp:
      return "exp";
    case Function::kLog:
      return "log";
    case Function::kSqrt:
      return "sqrt";
    case Function::kRsqrt:
      return "rsqrt";
    case Function::kTanh:
      return "tanh";
    case Function::kSigmoid:
      return "sigmoid";
    case Function::kRelu:
      return "relu";
    case Function::kGelu:
      return "gelu";
    case Function::kGeluTanh:
      return "gelu_tanh";
    case Function::kSilu:
      return "silu";
    case Function::kErf:
      return "erf";
    case Function::kSin:
      return "sin";
    case Function::kCos:
      return "cos";
    case Function::kFloor:
      return "floor";
    case Function::kIsFinite:
      return "isfinite";
  }
  return "?";
}

std::string_view to_text(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMean:
      return "mean";
    case ReduceOp::kProd:
      return "prod";
    case ReduceOp::kAny:
      return "any";
    case ReduceOp::kAll:
      return "all";
    case ReduceOp::kCount:
      return "count";
    case ReduceOp::kArgmax:
      return "argmax";
    case ReduceOp::kLogSumExp:
      return "logsumexp";
    case ReduceOp::kSoftmax:
      return "softmax";
    case ReduceOp::kTopK:
      return "topk";
    case ReduceOp::kTopKIndex:
      return "topk_index";
    case ReduceOp::kCumSum:
      return "cumsum";
  }
  return "?";
}

std::string to_text(const ExprRef& expr) {
  if (!expr) return "launch";
  if (count_parts(expr, kMaxPrintedParts) < kMaxPrintedParts) return print_node(*expr, nullptr).text;
  KnownTexts known;
  return print_node(*expr, &known).text;
}

std::string to_text(const Statement& statement) {
  return statement.target + "[" + print_list(statement.subscripts, ",", nullptr) + "] = " + to_text(statement.value);
}

std::string to_text(const Program& program) {
  std::string text = fmt::format("name = \"{}\"\n\n", program.name) + print_dims(program);
  for (const Problem& problem : program.problems) {
    if (!program.has_explicit_problems) break;
    text += "\n[[problems]]\n";
    for (const auto& [name, value] : problem.dims) text += fmt::format("{} = {}\n", name, value);
    for (const auto& [name, value] : problem.strides) text += fmt::format("\"{}\" = {}\n", name, value);
    for (const auto& [name, value] : problem.align_bytes) text += fmt::format("\"{}.align\" = {}\n", name, value);
  }
  text += "\n[tensors]\n";
  for (const Tensor& tensor : program.tensors) text += print_tensor(tensor);
  if (!program.scalars.empty()) text += "\n[scalars]\n";
  for (const Scalar& scalar : program.scalars) text += print_scalar(scalar);
  if (!program.indices.empty()) text += "\n[index]\n";
  for (const Index& index : program.indices) text += print_index(index);
  text += fmt::format("\n[compute]\naccumulate = \"{}\"\n", to_text(program.accumulate));
  if (program.uses_tf32) text += "multiply = \"tf32\"\n";
  text += "body = \"\"\"\n";
  for (const Statement& statement : program.statements) text += to_text(statement) + "\n";
  return text + "\"\"\"\n" + print_tune(program.tune);
}

}  // namespace kw::generator
