// Export: the op's expressions as C++ in double, for the exported test.
// SPDX-License-Identifier: Apache-2.0
#include "generator/emit/export/expression_text.h"

#include <optional>

#include <fmt/format.h>

#include "generator/emit/export/names.h"

namespace kw::generator {
namespace {

std::string convert(const ExpressionText& value, ValueKind kind) {
  if (value.kind == kind) return value.text;
  switch (kind) {
    case ValueKind::kReal:
      return fmt::format("as_real({})", value.text);
    case ValueKind::kInt:
      return fmt::format("as_int({})", value.text);
    case ValueKind::kBool:
      return fmt::format("as_bool({})", value.text);
  }
  return value.text;
}

ValueKind kind_of(DType dtype) {
  if (dtype == DType::kI64) return ValueKind::kInt;
  return dtype == DType::kBool ? ValueKind::kBool : ValueKind::kReal;
}

/// A function of one real: name in test_support.cuh and roundings of the kernel's version.
struct UnaryFunction {
  const char* name;
  int ulps;
};
std::optional<UnaryFunction> unary_function(Function function) {
  switch (function) {
    case Function::kNeg:
      return UnaryFunction{"negate_of", 0};
    case Function::kAbs:
      return UnaryFunction{"absolute_of", 0};
    case Function::kExp:
      return UnaryFunction{"exp_of", 8};
    case Function::kLog:
      return UnaryFunction{"log_of", 8};
    case Function::kSqrt:
      return UnaryFunction{"sqrt_of", 4};
    case Function::kRsqrt:
      return UnaryFunction{"rsqrt_of", 4};
    case Function::kTanh:
      return UnaryFunction{"tanh_of", 8};
    case Function::kSigmoid:
      return UnaryFunction{"sigmoid_of", 8};
    case Function::kRelu:
      return UnaryFunction{"relu_of", 0};
    case Function::kGelu:
      return UnaryFunction{"gelu_of", 8};
    case Function::kGeluTanh:
      return UnaryFunction{"gelu_tanh_of", 8};
    case Function::kSilu:
      return UnaryFunction{"silu_of", 8};
    case Function::kErf:
      return UnaryFunction{"erf_of", 8};
    case Function::kSin:
      return UnaryFunction{"sin_of", 8};
    case Function::kCos:
      return UnaryFunction{"cos_of", 8};
    case Function::kFloor:
      return UnaryFunction{"floor_of", 0};
    default:
      return std::nullopt;
  }
}

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {}

  Result<std::string> as(const ExprRef& expr, ValueKind kind) const {
    KW_TRY(const ExpressionText value, print(expr));
    return convert(value, kind);
  }

  Result<ExpressionText> print(const ExprRef& expr) const {
    switch (expr->kind) {
      case ExprNode::Kind::kNumber:
        return number(*expr);
      case ExprNode::Kind::kIndex:
        return ExpressionText{safe_name(expr->name), ValueKind::kInt};
      case ExprNode::Kind::kDim:
        return ExpressionText{safe_name(expr->name), ValueKind::kInt};
      case ExprNode::Kind::kScalar:
        return scalar(*expr);
      case ExprNode::Kind::kRead:
        return read(*expr);
      case ExprNode::Kind::kCall:
        return call(*expr);
      case ExprNode::Kind::kReduce:
        return reduce(*expr);
      case ExprNode::Kind::kCast:
        return cast(*expr);
      case ExprNode::Kind::kParameter:
        break;
    }
    return refuse("a parameter of a user function that is not inlined");
  }

 private:
  static tl::unexpected<Error> refuse(const std::string& what) {
    return fail(Stage::kEmit, Code::kNotSupported,
                fmt::format("export: the test against the formula cannot be written: {} is not exported yet", what));
  }

  static ExpressionText number(const ExprNode& node) {
    if (kind_of(node.dtype) == ValueKind::kInt)
      return {fmt::format("std::int64_t{{{}}}", static_cast<std::int64_t>(node.number)), ValueKind::kInt};
    if (kind_of(node.dtype) == ValueKind::kBool) return {node.number != 0 ? "true" : "false", ValueKind::kBool};
    return {fmt::format("as_real({})", double_literal(node.number)), ValueKind::kReal};
  }

  Result<ExpressionText> scalar(const ExprNode& node) const {
    const Scalar* found = program_.find_scalar(node.name);
    if (found == nullptr) return refuse("scalar " + node.name);
    if (found->value) return ExpressionText{fmt::format("{}_value()", safe_name(node.name)), ValueKind::kReal};
    return ExpressionText{fmt::format("as_real(static_cast<double>({}))", safe_name(node.name)), ValueKind::kReal};
  }

  Result<ExpressionText> read(const ExprNode& node) const {
    const Tensor* tensor = program_.find_tensor(node.name);
    if (tensor != nullptr && tensor->role == TensorRole::kOut) {
      KW_TRY_VOID(check_plain_target(node.name));
    }
    const bool is_input = tensor != nullptr && tensor->role != TensorRole::kOut;
    std::string text = fmt::format("{}_{}(", safe_name(node.name), is_input ? "at" : "value");
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      KW_TRY(const std::string subscript, as(node.operands[i], ValueKind::kInt));
      text += (i == 0 ? "" : ", ") + subscript;
    }
    return ExpressionText{convert({text + ")", ValueKind::kReal}, kind_of(node.dtype)), kind_of(node.dtype)};
  }

  /// An output that is read again must be one statement over plain indices: then it is a function of them.
  Status check_plain_target(const std::string& name) const {
    int count = 0;
    for (const Statement& statement : program_.statements) {
      if (statement.target != name) continue;
      ++count;
      for (const ExprRef& subscript : statement.subscripts) {
        if (subscript->kind != ExprNode::Kind::kIndex) count = 2;
      }
    }
    if (count > 1) return refuse("reading output " + name + ", which is written in parts,");
    return {};
  }

  Result<ExpressionText> call(const ExprNode& node) const {
    const ValueKind kind = kind_of(node.dtype);
    if (node.function == Function::kWhere) {
      KW_TRY(const std::string condition, as(node.operands[0], ValueKind::kBool));
      KW_TRY(const std::string yes, as(node.operands[1], kind));
      KW_TRY(const std::string no, as(node.operands[2], kind));
      return ExpressionText{fmt::format("({} ? {} : {})", condition, yes, no), kind};
    }
    switch (node.function) {
      case Function::kLt:
        return compare(node, "<");
      case Function::kLe:
        return compare(node, "<=");
      case Function::kGt:
        return compare(node, ">");
      case Function::kGe:
        return compare(node, ">=");
      case Function::kEq:
        return compare(node, "==");
      case Function::kNe:
        return compare(node, "!=");
      case Function::kAnd:
        return logic(node, "&&");
      case Function::kOr:
        return logic(node, "||");
      case Function::kNot: {
        KW_TRY(const std::string operand, as(node.operands[0], ValueKind::kBool));
        return ExpressionText{fmt::format("(!{})", operand), ValueKind::kBool};
      }
      case Function::kIsFinite: {
        KW_TRY(const ExpressionText operand, print(node.operands[0]));
        return ExpressionText{fmt::format("std::isfinite(number({}))", operand.text), ValueKind::kBool};
      }
      default:
        return arithmetic(node);
    }
  }

  Result<ExpressionText> compare(const ExprNode& node, std::string_view sign) const {
    KW_TRY(const ExpressionText left, print(node.operands[0]));
    KW_TRY(const ExpressionText right, print(node.operands[1]));
    return ExpressionText{fmt::format("(number({}) {} number({}))", left.text, sign, right.text), ValueKind::kBool};
  }

  Result<ExpressionText> logic(const ExprNode& node, std::string_view sign) const {
    KW_TRY(const std::string left, as(node.operands[0], ValueKind::kBool));
    KW_TRY(const std::string right, as(node.operands[1], ValueKind::kBool));
    return ExpressionText{fmt::format("({} {} {})", left, sign, right), ValueKind::kBool};
  }

  Result<ExpressionText> arithmetic(const ExprNode& node) const {
    const bool is_int = kind_of(node.dtype) == ValueKind::kInt;
    const ValueKind kind = is_int ? ValueKind::kInt : ValueKind::kReal;
    if (const auto unary = unary_function(node.function)) {
      if (is_int && node.function == Function::kNeg) {
        KW_TRY(const std::string operand, as(node.operands[0], ValueKind::kInt));
        return ExpressionText{fmt::format("(-{})", operand), kind};
      }
      KW_TRY(const std::string operand, as(node.operands[0], ValueKind::kReal));
      return ExpressionText{convert({fmt::format("apply({}, {}, {})", unary->name, operand, unary->ulps), ValueKind::kReal}, kind), kind};
    }
    KW_TRY(const std::string left, as(node.operands[0], kind));
    KW_TRY(const std::string right, as(node.operands[1], kind));
    const auto infix = [&](char sign) { return ExpressionText{fmt::format("({} {} {})", left, sign, right), kind}; };
    const auto function = [&](std::string_view name) { return ExpressionText{fmt::format("{}({}, {})", name, left, right), kind}; };
    switch (node.function) {
      case Function::kAdd:
        return is_int ? infix('+') : function("add");
      case Function::kSub:
        return is_int ? infix('-') : function("subtract");
      case Function::kMul:
        return is_int ? infix('*') : function("multiply");
      case Function::kDiv:
        return function(is_int ? "floor_divide" : "divide");
      case Function::kFloorDiv:
        return function("floor_divide");
      case Function::kMod:
        return function("floor_modulo");
      case Function::kMin:
        return function("minimum");
      case Function::kMax:
        return function("maximum");
      case Function::kPow:
        if (!is_int) return function("power");
        return ExpressionText{fmt::format("as_int(power(as_real({}), as_real({})))", left, right), kind};
      default:
        return refuse(fmt::format("function {}", to_text(node.function)));
    }
  }

  Result<ExpressionText> cast(const ExprNode& node) const {
    const ExprRef& operand = node.operands[0];
    const auto rounded = [&](int digits, int min_exponent, double max_finite) -> Result<ExpressionText> {
      KW_TRY(const std::string value, as(operand, ValueKind::kReal));
      return ExpressionText{fmt::format("cast({}, {}, {}, {})", value, digits, min_exponent, double_literal(max_finite)), ValueKind::kReal};
    };
    switch (node.dtype) {
      case DType::kF16:
        return rounded(11, -24, 65504.0);
      case DType::kBF16:
        return rounded(8, -133, 0x1.fep127);
      case DType::kTF32:
        return rounded(11, -136, 0x1.ffcp127);
      case DType::kF32:
        return rounded(24, -149, 0x1.fffffep127);
      case DType::kE4M3:
        return rounded(4, -9, 448.0);
      case DType::kE5M2:
        return rounded(3, -16, 57344.0);
      case DType::kF64:
        break;
      case DType::kBool: {
        KW_TRY(const std::string value, as(operand, ValueKind::kBool));
        return ExpressionText{value, ValueKind::kBool};
      }
      case DType::kI8:
      case DType::kI32: {
        KW_TRY(const std::string value, as(operand, ValueKind::kInt));
        return ExpressionText{fmt::format("as_real({})", value), ValueKind::kReal};
      }
      case DType::kI64: {
        KW_TRY(const std::string value, as(operand, ValueKind::kInt));
        return ExpressionText{value, ValueKind::kInt};
      }
    }
    KW_TRY(const std::string value, as(operand, ValueKind::kReal));
    return ExpressionText{value, ValueKind::kReal};
  }

  /// `body` inside a loop over each reduced index.
  Result<std::string> loops(const ExprNode& node, const std::string& body) const {
    std::string text;
    std::vector<std::string> order;  // a bound may depend on the other indices
    for (const bool is_bounded : {false, true}) {
      for (const std::string& name : node.indices) {
        const Index* index = program_.find_index(name);
        if ((index != nullptr && index->below) == is_bounded) order.push_back(name);
      }
    }
    for (const std::string& name : order) {
      const Index* index = program_.find_index(name);
      if (index == nullptr) return refuse("index " + name);
      // The index may be a parameter's name too: it is declared inside the loop, where it hides that.
      const std::string counter = fmt::format("next_{}", name);
      text += fmt::format("for (std::int64_t {0} = 0; {0} < {1}; ++{0}) {{ [[maybe_unused]] const std::int64_t {2} = {0}; ",
                          safe_name(counter), cpp_text(index->extent), safe_name(name));
      if (!index->below) continue;
      KW_TRY(const std::string bound, expression_text_as(program_, index->below, ValueKind::kInt));
      text += fmt::format("if ({} >= {}) break; ", safe_name(name), bound);
    }
    return text + body + std::string(node.indices.size(), '}');
  }

  /// softmax and logsumexp, shifted by the largest value; a row without any finite one gives 0 and -inf (the notation's rules).
  Result<ExpressionText> exponential_reduce(const ExprNode& node, const std::string& real) const {
    const bool is_softmax = node.reduce_op == ReduceOp::kSoftmax;
    const std::string power = fmt::format("apply(exp_of, subtract({}, best), 8)", real);
    KW_TRY(const std::string largest, loops(node, fmt::format("best = maximum(best, {});", real)));
    KW_TRY(const std::string total, loops(node, fmt::format("sum.add({});", power)));
    const std::string result = is_softmax ? fmt::format("divide({}, sum.result())", power) : "add(best, apply(log_of, sum.result(), 8))";
    const ValueKind wanted = kind_of(node.dtype);
    return ExpressionText{convert({fmt::format("[&] {{ Real best{{-std::numeric_limits<double>::infinity(), 0}}; {} if (best.value == "
                                               "-std::numeric_limits<double>::infinity()) return {}; Sum sum; {} return {}; }}()",
                                               largest, is_softmax ? "Real{0, 0}" : "best", total, result),
                                   ValueKind::kReal},
                                  wanted),
                          wanted};
  }

  Result<ExpressionText> reduce(const ExprNode& node) const {
    if (node.operands.size() > 1) return refuse(fmt::format("{} with a second operand", to_text(node.reduce_op)));
    KW_TRY(const std::string real, as(node.operands[0], ValueKind::kReal));
    const auto loop = [&](const std::string& before, const std::string& body, const std::string& after,
                          ValueKind kind) -> Result<ExpressionText> {
      KW_TRY(const std::string text, loops(node, body));
      const ValueKind wanted = kind_of(node.dtype);
      return ExpressionText{convert({fmt::format("[&] {{ {} {} return {}; }}()", before, text, after), kind}, wanted), wanted};
    };
    constexpr const char* kLowest = "Real best{-std::numeric_limits<double>::infinity(), 0};";
    switch (node.reduce_op) {
      case ReduceOp::kSum:
        return loop("Sum sum;", fmt::format("sum.add({});", real), "sum.result()", ValueKind::kReal);
      case ReduceOp::kMean:
        return loop("Sum sum;", fmt::format("sum.add({});", real), "divide(sum.result(), as_real(sum.count))", ValueKind::kReal);
      case ReduceOp::kProd:
        return loop("Real product{1, 0};", fmt::format("product = multiply(product, {});", real), "product", ValueKind::kReal);
      case ReduceOp::kMax:
        return loop(kLowest, fmt::format("best = maximum(best, {});", real), "best", ValueKind::kReal);
      case ReduceOp::kMin:
        return loop("Real best{std::numeric_limits<double>::infinity(), 0};", fmt::format("best = minimum(best, {});", real), "best",
                    ValueKind::kReal);
      case ReduceOp::kAny:
        return loop("bool found = false;", fmt::format("found = as_bool({}) || found;", real), "found", ValueKind::kBool);
      case ReduceOp::kAll:
        return loop("bool holds = true;", fmt::format("holds = as_bool({}) && holds;", real), "holds", ValueKind::kBool);
      case ReduceOp::kCount:
        return loop("std::int64_t count = 0;", fmt::format("count += as_bool({}) ? 1 : 0;", real), "count", ValueKind::kInt);
      case ReduceOp::kSoftmax:
      case ReduceOp::kLogSumExp:
        return exponential_reduce(node, real);
      default:
        return refuse(fmt::format("reduction {}", to_text(node.reduce_op)));
    }
  }

  const Program& program_;
};

}  // namespace

Result<ExpressionText> expression_text(const Program& program, const ExprRef& expr) { return Printer(program).print(expr); }

Result<std::string> expression_text_as(const Program& program, const ExprRef& expr, ValueKind kind) {
  return Printer(program).as(expr, kind);
}

}  // namespace kw::generator
