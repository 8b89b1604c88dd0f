// Affine forms of subscripts; see affine.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/spec/evaluator/affine.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace kw::generator {
namespace {

using Kind = ExprNode::Kind;

/// Affine form over the index slots, if the expression has one.
class AffineReader {
 public:
  AffineReader(const std::map<std::string, int>& slots, const IntBindings& dims) : slots_(slots), dims_(dims) {}

  std::optional<Affine> read(const ExprNode& node) const {
    switch (node.kind) {
      case Kind::kNumber:
        return node.number == std::floor(node.number) && std::abs(node.number) < 0x1p53 ? constant(static_cast<std::int64_t>(node.number))
                                                                                        : std::nullopt;
      case Kind::kDim: {
        const auto found = dims_.find(node.name);
        return found == dims_.end() ? std::nullopt : constant(found->second);
      }
      case Kind::kIndex: {
        const auto found = slots_.find(node.name);
        if (found == slots_.end()) return std::nullopt;
        return Affine{0, {{found->second, 1}}};
      }
      case Kind::kCall:
        return read_call(node);
      default:
        return std::nullopt;
    }
  }

 private:
  static std::optional<Affine> constant(std::int64_t value) { return Affine{value, {}}; }

  static std::optional<std::int64_t> product(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional<std::int64_t>(result);
  }

  static std::optional<Affine> scaled(const Affine& a, std::int64_t factor) {
    Affine result;
    const auto c = product(a.constant, factor);
    if (!c) return std::nullopt;
    result.constant = *c;
    for (const Affine::Term& term : a.terms) {
      const auto k = product(term.coefficient, factor);
      if (!k) return std::nullopt;
      if (*k != 0) result.terms.push_back({term.slot, *k});
    }
    return result;
  }

  static std::optional<Affine> sum(const Affine& a, const Affine& b) {
    Affine result = a;
    if (__builtin_add_overflow(a.constant, b.constant, &result.constant)) return std::nullopt;
    for (const Affine::Term& term : b.terms) {
      const auto same = std::find_if(result.terms.begin(), result.terms.end(), [&](const Affine::Term& t) { return t.slot == term.slot; });
      if (same == result.terms.end()) {
        result.terms.push_back(term);
      } else if (__builtin_add_overflow(same->coefficient, term.coefficient, &same->coefficient)) {
        return std::nullopt;
      }
    }
    std::erase_if(result.terms, [](const Affine::Term& t) { return t.coefficient == 0; });
    return result;
  }

  std::optional<Affine> read_call(const ExprNode& node) const {
    if (node.operands.size() != arity(node.function)) return std::nullopt;
    const auto a = read(*node.operands[0]);
    if (!a) return std::nullopt;
    if (node.function == Function::kNeg) return scaled(*a, -1);
    if (node.operands.size() != 2) return std::nullopt;
    const auto b = read(*node.operands[1]);
    if (!b) return std::nullopt;
    switch (node.function) {
      case Function::kAdd:
        return sum(*a, *b);
      case Function::kSub: {
        const auto negated = scaled(*b, -1);
        return negated ? sum(*a, *negated) : std::nullopt;
      }
      case Function::kMul:
        if (b->terms.empty()) return scaled(*a, b->constant);
        if (a->terms.empty()) return scaled(*b, a->constant);
        return std::nullopt;
      case Function::kFloorDiv:
      case Function::kMod: {
        if (b->terms.empty() && b->constant == 1) return node.function == Function::kMod ? constant(0) : a;
        if (!a->terms.empty() || !b->terms.empty() || b->constant <= 0) return std::nullopt;
        const std::int64_t quotient = a->constant / b->constant - (a->constant % b->constant < 0 ? 1 : 0);
        return constant(node.function == Function::kFloorDiv ? quotient : a->constant - quotient * b->constant);
      }
      default:
        return std::nullopt;
    }
  }

  const std::map<std::string, int>& slots_;
  const IntBindings& dims_;
};

}  // namespace

size_t arity(Function function) {
  switch (function) {
    case Function::kWhere:
      return 3;
    case Function::kAdd:
    case Function::kSub:
    case Function::kMul:
    case Function::kDiv:
    case Function::kFloorDiv:
    case Function::kMod:
    case Function::kPow:
    case Function::kLt:
    case Function::kLe:
    case Function::kGt:
    case Function::kGe:
    case Function::kEq:
    case Function::kNe:
    case Function::kAnd:
    case Function::kOr:
    case Function::kMin:
    case Function::kMax:
      return 2;
    default:
      return 1;
  }
}

std::optional<Affine> read_affine(const ExprNode& expr, const std::map<std::string, int>& slots, const IntBindings& dims) {
  return AffineReader(slots, dims).read(expr);
}

bool invert_subscripts(const CompiledProgram& program, const CompiledStatement& statement, std::span<const std::int64_t> coordinates,
                       std::vector<std::int64_t>& values) {
  constexpr std::int64_t kUnset = -1;
  std::vector<std::int64_t> by_slot(program.indices.size(), kUnset);
  for (size_t axis = 0; axis < statement.subscripts.size(); ++axis) {
    // Largest coefficient first: the digits of a mixed-radix number. A negative coefficient counts from the far end.
    std::vector<Affine::Term> terms = statement.subscripts[axis].terms;
    std::sort(terms.begin(), terms.end(),
              [](const Affine::Term& a, const Affine::Term& b) { return std::abs(a.coefficient) > std::abs(b.coefficient); });
    std::int64_t rest = coordinates[axis] - statement.subscripts[axis].constant;
    for (const Affine::Term& term : terms) {
      if (term.coefficient < 0) rest -= term.coefficient * (program.indices[static_cast<size_t>(term.slot)].extent - 1);
    }
    for (const Affine::Term& term : terms) {
      const std::int64_t extent = program.indices[static_cast<size_t>(term.slot)].extent;
      if (rest < 0 || extent == 0) return false;
      const std::int64_t digit = std::min<std::int64_t>(rest / std::abs(term.coefficient), extent - 1);
      rest -= digit * std::abs(term.coefficient);
      const std::int64_t value = term.coefficient > 0 ? digit : extent - 1 - digit;
      std::int64_t& slot_value = by_slot[static_cast<size_t>(term.slot)];
      if (slot_value != kUnset && slot_value != value) return false;
      slot_value = value;
    }
    if (rest != 0) return false;
  }
  values.clear();
  for (const int slot : statement.slots) {
    if (by_slot[static_cast<size_t>(slot)] == kUnset) return false;
    values.push_back(by_slot[static_cast<size_t>(slot)]);
  }
  return true;
}

}  // namespace kw::generator
