// Polynomials over named variables (normalise) and linear forms over index values (linear_form). See linear_form.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/plan/linear_form.h"

#include <algorithm>
#include <optional>

namespace kw::generator {
namespace {

using Op = IntExpr::Op;

/// Monomial (sorted factor texts) -> coefficient. Factors are variables or expressions that are no polynomial.
struct Polynomial {
  std::map<std::vector<std::string>, std::int64_t> terms;
  std::map<std::string, IntExpr> factors;
};

bool add_term(Polynomial& sum, const std::vector<std::string>& monomial, std::int64_t coefficient) {
  std::int64_t& slot = sum.terms[monomial];
  if (__builtin_add_overflow(slot, coefficient, &slot)) return false;
  if (slot == 0) sum.terms.erase(monomial);
  return true;
}

Polynomial factor_polynomial(const IntExpr& factor) {
  Polynomial result;
  result.terms[{factor.to_text()}] = 1;
  result.factors[factor.to_text()] = factor;
  return result;
}

std::optional<Polynomial> scaled_sum(Polynomial a, const Polynomial& b, std::int64_t scale) {
  for (const auto& [monomial, coefficient] : b.terms) {
    std::int64_t scaled = 0;
    if (__builtin_mul_overflow(coefficient, scale, &scaled) || !add_term(a, monomial, scaled)) return std::nullopt;
  }
  a.factors.insert(b.factors.begin(), b.factors.end());
  return a;
}

std::optional<Polynomial> product(const Polynomial& a, const Polynomial& b) {
  Polynomial result;
  for (const auto& [left, left_coefficient] : a.terms) {
    for (const auto& [right, right_coefficient] : b.terms) {
      std::vector<std::string> monomial = left;
      monomial.insert(monomial.end(), right.begin(), right.end());
      std::sort(monomial.begin(), monomial.end());
      std::int64_t coefficient = 0;
      if (__builtin_mul_overflow(left_coefficient, right_coefficient, &coefficient)) return std::nullopt;
      if (!add_term(result, monomial, coefficient)) return std::nullopt;
    }
  }
  result.factors = a.factors;
  result.factors.insert(b.factors.begin(), b.factors.end());
  return result;
}

std::optional<Polynomial> polynomial_of(const IntExpr& expr) {
  const auto operands = expr.operands();
  switch (expr.op()) {
    case Op::kConst: {
      Polynomial result;
      if (expr.constant() != 0) result.terms[{}] = expr.constant();
      return result;
    }
    case Op::kVar:
      return factor_polynomial(expr);
    case Op::kNeg: {
      const auto value = polynomial_of(operands[0]);
      return value ? scaled_sum({}, *value, -1) : std::nullopt;
    }
    case Op::kAdd:
    case Op::kSub: {
      auto left = polynomial_of(operands[0]);
      const auto right = polynomial_of(operands[1]);
      if (!left || !right) return std::nullopt;
      return scaled_sum(std::move(*left), *right, expr.op() == Op::kAdd ? 1 : -1);
    }
    case Op::kMul: {
      const auto left = polynomial_of(operands[0]);
      const auto right = polynomial_of(operands[1]);
      return left && right ? product(*left, *right) : std::nullopt;
    }
    default: {
      std::vector<IntExpr> normal;
      for (const IntExpr& operand : operands) normal.push_back(normalise(operand));
      const IntExpr rebuilt = IntExpr::make(expr.op(), std::move(normal));
      if (rebuilt.is_constant()) return polynomial_of(rebuilt);
      return factor_polynomial(rebuilt);
    }
  }
}

IntExpr monomial_expr(const Polynomial& polynomial, const std::vector<std::string>& monomial, std::int64_t coefficient) {
  if (monomial.empty()) return IntExpr(coefficient);
  IntExpr result = polynomial.factors.at(monomial.front());
  for (std::size_t position = 1; position < monomial.size(); ++position) result = result * polynomial.factors.at(monomial[position]);
  return coefficient == 1 ? result : IntExpr(coefficient) * result;
}

bool is_function(const ExprRef& expr, Function function) { return expr->kind == ExprNode::Kind::kCall && expr->function == function; }

LinearForm atom_form(const ExprRef& expr) {
  LinearForm result;
  result.terms[to_text(expr)] = {expr, IntExpr(1)};
  return result;
}

LinearForm constant_form(IntExpr value) {
  LinearForm result;
  result.constant = std::move(value);
  return result;
}

/// Division and remainder stay atoms unless both sides are over dims alone.
LinearForm division_form(const ExprRef& expr) {
  const LinearForm left = linear_form(expr->operands[0]);
  const LinearForm right = linear_form(expr->operands[1]);
  if (!left.terms.empty() || !right.terms.empty()) return atom_form(expr);
  const Op op = expr->function == Function::kMod ? Op::kMod : Op::kFloorDiv;
  return constant_form(IntExpr::make(op, {left.constant, right.constant}));
}

/// The pair (x // E, x % E) among the terms with coefficients (c * E, c): replaces both by c * x. True when it found one.
bool fold_one_division(LinearForm& form) {
  for (const auto& [mod_text, mod_term] : form.terms) {
    if (!is_function(mod_term.atom, Function::kMod)) continue;
    const ExprRef value = mod_term.atom->operands[0];
    const LinearForm divisor = linear_form(mod_term.atom->operands[1]);
    if (!divisor.terms.empty()) continue;
    const ExprRef quotient = make_call(Function::kFloorDiv, mod_term.atom->operands, DType::kI64);
    const auto found = form.terms.find(to_text(quotient));
    if (found == form.terms.end() || !are_equal(found->second.coefficient, mod_term.coefficient * divisor.constant)) continue;
    const IntExpr coefficient = mod_term.coefficient;
    form.terms.erase(found);
    form.terms.erase(std::string(mod_text));
    form.add(linear_form(value), coefficient);
    return true;
  }
  return false;
}

}  // namespace

IntExpr normalise(const IntExpr& expr) {
  const std::optional<Polynomial> polynomial = polynomial_of(expr);
  if (!polynomial) return expr;
  IntExpr result(0);
  bool is_first = true;
  for (auto term = polynomial->terms.rbegin(); term != polynomial->terms.rend(); ++term) {  // the constant comes last
    const bool is_difference = !is_first && term->second < 0 && term->second != INT64_MIN;
    const IntExpr value = monomial_expr(*polynomial, term->first, is_difference ? -term->second : term->second);
    result = is_first ? value : is_difference ? result - value : result + value;
    is_first = false;
  }
  return result;
}

bool are_equal(const IntExpr& a, const IntExpr& b) { return normalise(a - b) == IntExpr(0) || normalise(a) == normalise(b); }

void LinearForm::add(const LinearForm& other, const IntExpr& factor) {
  constant = normalise(constant + other.constant * factor);
  for (const auto& [text, term] : other.terms) {
    Term& slot = terms.try_emplace(text, Term{term.atom, IntExpr(0)}).first->second;
    slot.coefficient = normalise(slot.coefficient + term.coefficient * factor);
    if (slot.coefficient == IntExpr(0)) terms.erase(text);
  }
}

bool LinearForm::is_affine() const {
  return std::all_of(terms.begin(), terms.end(), [](const auto& entry) { return entry.second.atom->kind == ExprNode::Kind::kIndex; });
}

IntExpr LinearForm::coefficient_of(const std::string& name) const {
  for (const auto& [text, term] : terms) {
    if (term.atom->kind == ExprNode::Kind::kIndex && term.atom->name == name) return term.coefficient;
  }
  return IntExpr(0);
}

LinearForm linear_form(const ExprRef& expr) {
  switch (expr->kind) {
    case ExprNode::Kind::kNumber:
      return constant_form(IntExpr(static_cast<std::int64_t>(expr->number)));
    case ExprNode::Kind::kDim:
      return constant_form(IntExpr::variable(expr->name));
    case ExprNode::Kind::kIndex:
      return atom_form(expr);
    case ExprNode::Kind::kCall:
      break;
    default:
      return atom_form(expr);
  }
  LinearForm result;
  switch (expr->function) {
    case Function::kAdd:
    case Function::kSub:
      result.add(linear_form(expr->operands[0]), IntExpr(1));
      result.add(linear_form(expr->operands[1]), IntExpr(expr->function == Function::kAdd ? 1 : -1));
      return result;
    case Function::kNeg:
      result.add(linear_form(expr->operands[0]), IntExpr(-1));
      return result;
    case Function::kMul: {
      const LinearForm left = linear_form(expr->operands[0]);
      const LinearForm right = linear_form(expr->operands[1]);
      if (!left.terms.empty() && !right.terms.empty()) return atom_form(expr);
      result.add(left.terms.empty() ? right : left, left.terms.empty() ? left.constant : right.constant);
      return result;
    }
    case Function::kFloorDiv:
    case Function::kMod:
      return division_form(expr);
    default:
      return atom_form(expr);
  }
}

LinearForm element_offset(const std::vector<ExprRef>& subscripts, const std::vector<IntExpr>& strides) {
  KW_CHECK(subscripts.size() == strides.size(), "a read has one subscript for each axis");
  LinearForm result;
  for (std::size_t axis = 0; axis < subscripts.size(); ++axis) result.add(linear_form(subscripts[axis]), strides[axis]);
  while (fold_one_division(result)) {
  }
  return result;
}

LinearForm offset_in_tensor(const Tensor& tensor, const std::vector<ExprRef>& subscripts) {
  if (tensor.list_dim.empty()) return element_offset(subscripts, tensor.strides);
  return element_offset({subscripts.begin() + 1, subscripts.end()}, tensor.strides);
}

ExprRef from_int_expr(const IntExpr& expr) {
  if (expr.op() == Op::kConst) return make_number(static_cast<double>(expr.constant()), DType::kI64);
  if (expr.op() == Op::kVar) {
    auto node = std::make_shared<ExprNode>();
    node->kind = ExprNode::Kind::kDim;
    node->dtype = DType::kI64;
    node->name = expr.name();
    return node;
  }
  static const std::map<Op, Function> kFunctions = {
      {Op::kNeg, Function::kNeg},           {Op::kAdd, Function::kAdd}, {Op::kSub, Function::kSub}, {Op::kMul, Function::kMul},
      {Op::kFloorDiv, Function::kFloorDiv}, {Op::kMod, Function::kMod}, {Op::kMin, Function::kMin}, {Op::kMax, Function::kMax}};
  const auto function = kFunctions.find(expr.op());
  KW_CHECK(function != kFunctions.end(), "extents are arithmetic over dims");
  std::vector<ExprRef> operands;
  for (const IntExpr& operand : expr.operands()) operands.push_back(from_int_expr(operand));
  return make_call(function->second, std::move(operands), DType::kI64);
}

}  // namespace kw::generator
