// See row_match.h. A maximum of -inf is taken for 0 in differences, so that a row without any finite element gives e^-inf = 0 and not
// e^(-inf + inf) = NaN: softmax of a fully masked row is 0, its logsumexp -inf (the notation's rules).
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "generator/plan/expr_tools.h"
#include "generator/plan/linear_form.h"
#include "generator/plan/row_match.h"

namespace kw::generator {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kDigit = 1 << 20;      // of an integer that is reduced as reals
constexpr double kExactReal = 1 << 24;  // f32 holds all integers up to it
constexpr int kMaxRank = 3;             // of topk: two phases of a row for each rank before it

ExprRef make_cast(const ExprRef& value, DType dtype) {
  auto node = std::make_shared<ExprNode>();
  node->kind = ExprNode::Kind::kCast;
  node->dtype = dtype;
  node->operands = {value};
  return node;
}

class Expansion {
 public:
  Expansion(const ExprRef& reduction, const Program& program) : node_(*reduction), program_(program), type_(reduction->dtype) {}

  Result<ExprRef> expand() const {
    const ExprRef& value = node_.operands[0];
    switch (node_.reduce_op) {
      case ReduceOp::kMax:
      case ReduceOp::kMin:
        if (!is_float(type_)) return extreme_integer(value);
        return std::make_shared<const ExprNode>(node_);
      case ReduceOp::kSum:
      case ReduceOp::kProd:
        return std::make_shared<const ExprNode>(node_);
      case ReduceOp::kMean:
        return call(Function::kDiv, {reduce(ReduceOp::kSum, value), num_elements()});
      case ReduceOp::kAny:
      case ReduceOp::kAll: {
        const DType real = program_.accumulate;
        const ExprRef as_number = make_call(Function::kWhere, {value, make_number(1, real), make_number(0, real)}, real);
        const ExprRef found = reduce(node_.reduce_op == ReduceOp::kAny ? ReduceOp::kMax : ReduceOp::kMin, as_number, real);
        return make_call(Function::kGt, {found, make_number(0, real)}, DType::kBool);
      }
      case ReduceOp::kLogSumExp: {
        // The same maximum and sum as of a softmax. Below +inf as the maximum the sum is of inf - inf: the result is +inf all the same.
        const ExprRef maximum = reduce(ReduceOp::kMax, value);
        const ExprRef is_infinite = make_call(Function::kEq, {maximum, number(kInf)}, DType::kBool);
        const ExprRef shift = finite(maximum);
        const ExprRef total = call(Function::kAdd, {shift, call(Function::kLog, {reduce(ReduceOp::kSum, power(value, shift))})});
        return call(Function::kWhere, {is_infinite, number(kInf), total});
      }
      case ReduceOp::kCount:
        return counted(
            reduce(ReduceOp::kSum, make_call(Function::kWhere, {value, real(1), real(0)}, program_.accumulate), program_.accumulate));
      case ReduceOp::kArgmax:
      case ReduceOp::kTopKIndex:
        return ranked(value, true);
      case ReduceOp::kTopK:
        return ranked(value, false);
      case ReduceOp::kSoftmax:
        return softmax(value, node_.operands.size() > 1 ? node_.operands[1] : nullptr);
      default:
        return fail(Stage::kPlan, Code::kNotSupported, fmt::format("not made yet: {} in a kernel of rows", to_text(node_.reduce_op)),
                    node_.where);
    }
  }

 private:
  ExprRef call(Function function, std::vector<ExprRef> operands) const { return make_call(function, std::move(operands), type_); }
  ExprRef number(double value) const { return make_number(value, type_); }

  ExprRef reduce(ReduceOp op, const ExprRef& value, std::optional<DType> type = std::nullopt) const {
    ExprNode node = node_;
    node.reduce_op = op;
    node.dtype = type.value_or(type_);
    node.operands = {value};
    return std::make_shared<const ExprNode>(std::move(node));
  }

  ExprRef num_elements() const {
    IntExpr count(1);
    for (const std::string& index : node_.indices) count = count * find_program_index(program_, index)->extent;
    return from_int_expr(normalise(count));
  }

  ExprRef real(double value) const { return make_number(value, program_.accumulate); }

  /// A real that is a whole number, as one.
  ExprRef counted(const ExprRef& number) const { return make_cast(number, type_); }

  /// Positions are reals on the way, exact up to 2^24 in f32: the templates have a rule for it (BIND "counts_columns").
  ExprRef position() const { return make_cast(make_index(node_.indices.front()), program_.accumulate); }
  ExprRef boolean(Function function, std::vector<ExprRef> operands) const { return make_call(function, std::move(operands), DType::kBool); }

  /// The largest or smallest integer, exact though kernels reduce reals: by digits of kDigit, the first one first. Those below look only at
  /// the elements that have all digits above; f32 holds every digit exactly.
  Result<ExprRef> extreme_integer(const ExprRef& value) const {
    if (program_.accumulate != DType::kF32 && program_.accumulate != DType::kF64)
      return fail(Stage::kPlan, Code::kNotSupported,
                  fmt::format("not made yet: {} of integers in a kernel of rows, but with accumulate f32 or f64", to_text(node_.reduce_op)),
                  node_.where);
    const auto integer = [](Function function, const ExprRef& a, double b) {
      return make_call(function, {a, make_number(b, DType::kI64)}, DType::kI64);
    };
    const double limit = largest_magnitude(value);
    int num_digits = 1;
    for (double reach = kExactReal; reach < limit && num_digits < 3; reach *= kDigit) ++num_digits;
    const double worst = node_.reduce_op == ReduceOp::kMax ? -kInf : kInf;
    ExprRef result, is_open, top;
    for (int digit = num_digits; digit-- > 0;) {
      ExprRef part = value;
      for (int i = 0; i < digit; ++i) part = integer(Function::kFloorDiv, part, kDigit);
      if (digit + 1 < num_digits) part = integer(Function::kMod, part, kDigit);
      const ExprRef as_real = make_cast(part, program_.accumulate);
      const ExprRef candidate = is_open ? make_call(Function::kWhere, {is_open, as_real, real(worst)}, program_.accumulate) : as_real;
      const ExprRef found = reduce(node_.reduce_op, candidate, program_.accumulate);
      if (!top) top = found;
      const ExprRef has_it = boolean(Function::kEq, {as_real, found});
      is_open = is_open ? boolean(Function::kAnd, {is_open, has_it}) : has_it;
      const ExprRef whole = make_cast(found, DType::kI64);
      result = result ? make_call(Function::kAdd, {integer(Function::kMul, result, kDigit), whole}, DType::kI64) : whole;
    }
    // Of no elements at all the first digit is an infinity: so is the result, as far as integers go.
    const ExprRef nothing = boolean(Function::kEq, {top, real(worst)});
    if (num_digits > 1) result = make_call(Function::kWhere, {nothing, make_cast(top, DType::kI64), result}, DType::kI64);
    return type_ == DType::kI64 ? result : make_cast(result, type_);
  }

  /// No value of the integer expression is larger in magnitude.
  double largest_magnitude(const ExprRef& expr) const {
    if (expr->kind == ExprNode::Kind::kNumber) return std::abs(expr->number);
    if (expr->kind == ExprNode::Kind::kRead || expr->kind == ExprNode::Kind::kCast) {
      const Tensor* tensor = expr->kind == ExprNode::Kind::kRead ? program_.find_tensor(expr->name) : nullptr;
      const DType dtype = tensor != nullptr ? tensor->dtype : expr->dtype;
      return dtype == DType::kBool ? 1 : dtype == DType::kI8 ? 128 : dtype == DType::kI32 ? 0x1p31 : 0x1p63;
    }
    if (expr->kind != ExprNode::Kind::kCall) return 0x1p63;
    const auto of = [&](std::size_t i) { return largest_magnitude(expr->operands[i]); };
    switch (expr->function) {
      case Function::kNeg:
      case Function::kAbs:
        return of(0);
      case Function::kAdd:
      case Function::kSub:
        return of(0) + of(1);
      case Function::kMul:
        return of(0) * of(1);
      case Function::kMin:
      case Function::kMax:
        return std::max(of(0), of(1));
      case Function::kWhere:
        return std::max(of(1), of(2));
      default:
        return 0x1p63;
    }
  }

  /// The first position that holds `maximum` or a NaN, among those that are not `taken`: the smallest of them.
  ExprRef first_position(const ExprRef& value, const ExprRef& maximum, const ExprRef& is_taken) const {
    ExprRef is_first = boolean(Function::kOr, {boolean(Function::kEq, {value, maximum}), boolean(Function::kNe, {value, value})});
    if (is_taken) is_first = boolean(Function::kAnd, {is_first, boolean(Function::kNot, {is_taken})});
    const ExprRef candidate = make_call(Function::kWhere, {is_first, position(), real(kInf)}, program_.accumulate);
    return reduce(ReduceOp::kMin, candidate, program_.accumulate);
  }

  ExprRef largest(const ExprRef& value, const ExprRef& is_taken) const {
    const ExprRef open = is_taken ? make_call(Function::kWhere, {is_taken, real(-kInf), value}, program_.accumulate) : value;
    return reduce(ReduceOp::kMax, open, program_.accumulate);
  }

  /// argmax, and topk of a rank that is known: the largest, then the largest of what is left, and so on.
  Result<ExprRef> ranked(ExprRef value, bool is_position) const {
    const auto not_made = [&](const char* what) {
      return fail(Stage::kPlan, Code::kNotSupported, fmt::format("not made yet: {} {} in a kernel of rows", to_text(node_.reduce_op), what),
                  node_.where);
    };
    if (!is_float(value->dtype)) return not_made("of other values than reals");
    const bool is_rounded = value->dtype != program_.accumulate;  // by a cast: as exact in the type of the sums
    if (is_rounded && size_bytes(value->dtype) >= size_bytes(program_.accumulate)) return not_made("of wider values than the sums");
    if (is_rounded) value = make_cast(value, program_.accumulate);
    if (program_.accumulate != DType::kF32 && program_.accumulate != DType::kF64) return not_made("with sums of less than 32 bits");
    const bool has_rank = node_.operands.size() > 1;
    if (has_rank && node_.operands[1]->kind != ExprNode::Kind::kNumber) return not_made("of a rank that is no number");
    const double rank = has_rank ? node_.operands[1]->number : 0;
    if (rank < 0 || rank > kMaxRank) return not_made("of a rank above 3");
    ExprRef is_taken;
    for (int before = 0; before < static_cast<int>(rank); ++before) {
      const ExprRef found = first_position(value, largest(value, is_taken), is_taken);
      const ExprRef is_found = boolean(Function::kEq, {position(), found});
      is_taken = is_taken ? boolean(Function::kOr, {is_taken, is_found}) : is_found;
    }
    const ExprRef maximum = largest(value, is_taken);
    if (is_position) return counted(first_position(value, maximum, is_taken));
    return is_rounded ? make_cast(maximum, type_) : maximum;
  }

  ExprRef finite(const ExprRef& maximum) const {
    const ExprRef is_empty = make_call(Function::kEq, {maximum, number(-kInf)}, DType::kBool);
    return call(Function::kWhere, {is_empty, number(0), maximum});
  }

  ExprRef power(const ExprRef& value, const ExprRef& shift) const { return call(Function::kExp, {call(Function::kSub, {value, shift})}); }

  ExprRef softmax(const ExprRef& value, const ExprRef& sink) const {
    ExprRef maximum = reduce(ReduceOp::kMax, value);
    if (sink) maximum = call(Function::kMax, {maximum, sink});
    const ExprRef shift = finite(maximum);
    ExprRef total = reduce(ReduceOp::kSum, power(value, shift));
    if (sink) total = call(Function::kAdd, {total, power(sink, shift)});
    // A row's total is at least e^0, or 0 when everything is masked.
    const ExprRef is_masked = make_call(Function::kEq, {total, number(0)}, DType::kBool);
    const ExprRef factor = call(Function::kWhere, {is_masked, number(0), call(Function::kDiv, {number(1), total})});
    return call(Function::kMul, {power(value, shift), factor});
  }

  const ExprNode& node_;
  const Program& program_;
  const DType type_;
};

}  // namespace

Result<ExprRef> expand_reductions(const ExprRef& expr, const Program& program) {
  std::optional<Error> error;
  ExprRef expanded = rewrite(expr, [&](const ExprRef& node) -> ExprRef {
    if (node->kind != ExprNode::Kind::kReduce || error) return nullptr;
    Result<ExprRef> result = Expansion(node, program).expand();
    if (result) return *result;
    error = result.error();
    return nullptr;
  });
  if (error) return fail(*error);
  return expanded;
}

}  // namespace kw::generator
