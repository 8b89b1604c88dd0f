// Building, folding, evaluating and compiling integer expressions. Parsing and printing are in int_expr_text.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "generator/base/int_expr.h"

#include <algorithm>
#include <optional>

#include "generator/base/int_expr_node.h"

namespace kw {
namespace {

using Op = IntExpr::Op;

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

/// Value of a strict operation, or nothing on overflow and division by zero.
std::optional<std::int64_t> apply(Op op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (op) {
    case Op::kNeg:
      return __builtin_sub_overflow(std::int64_t{0}, a, &result) ? std::nullopt : std::optional(result);
    case Op::kNot:
      return a == 0 ? 1 : 0;
    case Op::kAdd:
      return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Op::kSub:
      return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Op::kMul:
      return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Op::kFloorDiv:
      if (b == 0 || (b == -1 && a == INT64_MIN)) return std::nullopt;
      return floor_divide(a, b);
    case Op::kMod:
      if (b == 0) return std::nullopt;
      return b == -1 ? 0 : a - floor_divide(a, b) * b;
    case Op::kLt:
      return a < b ? 1 : 0;
    case Op::kLe:
      return a <= b ? 1 : 0;
    case Op::kGt:
      return a > b ? 1 : 0;
    case Op::kGe:
      return a >= b ? 1 : 0;
    case Op::kEq:
      return a == b ? 1 : 0;
    case Op::kNe:
      return a != b ? 1 : 0;
    case Op::kMin:
      return std::min(a, b);
    case Op::kMax:
      return std::max(a, b);
    default:
      return std::nullopt;
  }
}

bool is_lazy(Op op) { return op == Op::kAnd || op == Op::kOr || op == Op::kSelect; }

}  // namespace

IntExpr::IntExpr(std::int64_t value) : node_(std::make_shared<const Node>(Node{Op::kConst, value, {}, {}})) {}

IntExpr IntExpr::variable(std::string name) {
  IntExpr expr;
  expr.node_ = std::make_shared<const Node>(Node{Op::kVar, 0, std::move(name), {}});
  return expr;
}

IntExpr IntExpr::make(Op op, std::vector<IntExpr> operands) {
  const auto is = [&](std::size_t i, std::int64_t value) { return operands[i].is_constant() && operands[i].constant() == value; };
  switch (op) {
    case Op::kAdd:
      if (is(0, 0)) return operands[1];
      if (is(1, 0)) return operands[0];
      break;
    case Op::kSub:
      if (is(1, 0)) return operands[0];
      break;
    case Op::kMul:
      if (is(0, 1)) return operands[1];
      if (is(1, 1)) return operands[0];
      if (is(0, 0) || is(1, 0)) return IntExpr(0);
      break;
    case Op::kFloorDiv:
      if (is(1, 1)) return operands[0];
      break;
    case Op::kAnd:
      if (is(0, 0)) return IntExpr(0);
      if (operands[0].is_constant() && operands[1].is_constant()) return IntExpr(operands[1].constant() != 0 ? 1 : 0);
      break;
    case Op::kOr:
      if (operands[0].is_constant() && operands[0].constant() != 0) return IntExpr(1);
      if (operands[0].is_constant() && operands[1].is_constant()) return IntExpr(operands[1].constant() != 0 ? 1 : 0);
      break;
    case Op::kSelect:
      if (operands[0].is_constant()) return operands[operands[0].constant() != 0 ? 1 : 2];
      break;
    default:
      break;
  }
  const bool all_constant = std::all_of(operands.begin(), operands.end(), [](const IntExpr& e) { return e.is_constant(); });
  if (all_constant && !is_lazy(op)) {
    if (const auto value = apply(op, operands[0].constant(), operands.size() > 1 ? operands[1].constant() : 0)) return IntExpr(*value);
  }
  IntExpr expr;
  expr.node_ = std::make_shared<const Node>(Node{op, 0, {}, std::move(operands)});
  return expr;
}

IntExpr::Op IntExpr::op() const { return node_->op; }
std::int64_t IntExpr::constant() const { return node_->value; }
const std::string& IntExpr::name() const { return node_->name; }
std::span<const IntExpr> IntExpr::operands() const { return node_->operands; }

Result<std::int64_t> IntExpr::evaluate(const IntBindings& bindings) const {
  switch (op()) {
    case Op::kConst:
      return constant();
    case Op::kVar: {
      const auto found = bindings.find(name());
      if (found == bindings.end()) return fail(Stage::kSpace, Code::kBadInput, name() + " has no value");
      return found->second;
    }
    case Op::kAnd:
    case Op::kOr: {
      KW_TRY(const std::int64_t left, operands()[0].evaluate(bindings));
      if ((left != 0) == (op() == Op::kOr)) return left != 0 ? 1 : 0;
      KW_TRY(const std::int64_t right, operands()[1].evaluate(bindings));
      return right != 0 ? 1 : 0;
    }
    case Op::kSelect: {
      KW_TRY(const std::int64_t condition, operands()[0].evaluate(bindings));
      return operands()[condition != 0 ? 1 : 2].evaluate(bindings);
    }
    default:
      break;
  }
  KW_TRY(const std::int64_t left, operands()[0].evaluate(bindings));
  std::int64_t right = 0;
  if (operands().size() > 1) {
    KW_TRY(right, operands()[1].evaluate(bindings));
  }
  const auto value = apply(op(), left, right);
  if (!value) return fail(Stage::kSpace, Code::kBadInput, to_text() + ": division by zero or a value outside 64 bits");
  return *value;
}

void IntExpr::collect_variables(std::set<std::string>& names) const {
  if (op() == Op::kVar) names.insert(name());
  for (const IntExpr& operand : operands()) operand.collect_variables(names);
}

IntExpr IntExpr::substitute(const std::map<std::string, IntExpr>& replacements) const {
  if (op() == Op::kConst) return *this;
  if (op() == Op::kVar) {
    const auto found = replacements.find(name());
    return found == replacements.end() ? *this : found->second;
  }
  std::vector<IntExpr> replaced;
  replaced.reserve(operands().size());
  for (const IntExpr& operand : operands()) replaced.push_back(operand.substitute(replacements));
  return make(op(), std::move(replaced));
}

bool operator==(const IntExpr& a, const IntExpr& b) {
  if (a.node_ == b.node_) return true;
  if (a.op() != b.op() || a.node_->value != b.node_->value || a.node_->name != b.node_->name) return false;
  return std::equal(a.operands().begin(), a.operands().end(), b.operands().begin(), b.operands().end());
}

IntExpr operator+(const IntExpr& a, const IntExpr& b) { return IntExpr::make(Op::kAdd, {a, b}); }
IntExpr operator-(const IntExpr& a, const IntExpr& b) { return IntExpr::make(Op::kSub, {a, b}); }
IntExpr operator*(const IntExpr& a, const IntExpr& b) { return IntExpr::make(Op::kMul, {a, b}); }
IntExpr floor_div(const IntExpr& a, const IntExpr& b) { return IntExpr::make(Op::kFloorDiv, {a, b}); }
IntExpr ceil_div(const IntExpr& a, const IntExpr& b) { return floor_div(a + b - IntExpr(1), b); }

namespace {

/// Appends postfix code; lazy operations become conditional jumps. Returns the stack depth needed.
template <typename Instruction>
int append_code(const IntExpr& expr, std::span<const std::string> slots, std::vector<Instruction>& code) {
  const Op op = expr.op();
  if (op == Op::kConst) {
    code.push_back({op, expr.constant(), 0});
    return 1;
  }
  if (op == Op::kVar) {
    const auto found = std::find(slots.begin(), slots.end(), expr.name());
    KW_CHECK(found != slots.end(), "every variable of a compiled expression has a slot");
    code.push_back({op, found - slots.begin(), 0});
    return 1;
  }
  const auto operands = expr.operands();
  int depth = append_code(operands[0], slots, code);
  if (op == Op::kSelect) {
    // cond; jump-if-zero else; then; jump end; else
    const std::size_t to_else = code.size();
    code.push_back({Op::kSelect, 0, 0});
    depth = std::max(depth, append_code(operands[1], slots, code));
    const std::size_t to_end = code.size();
    code.push_back({Op::kSelect, 1, 0});
    code[to_else].jump = static_cast<int>(code.size());
    depth = std::max(depth, append_code(operands[2], slots, code));
    code[to_end].jump = static_cast<int>(code.size());
    return depth;
  }
  if (op == Op::kAnd || op == Op::kOr) {
    const std::size_t skip = code.size();
    code.push_back({op, 0, 0});
    depth = std::max(depth, append_code(operands[1], slots, code));
    code.push_back({op, 1, 0});  // normalises the right value to 0 or 1
    code[skip].jump = static_cast<int>(code.size());
    return depth;
  }
  if (operands.size() > 1) depth = std::max(depth, 1 + append_code(operands[1], slots, code));
  code.push_back({op, 0, 0});
  return depth;
}

}  // namespace

CompiledIntExpr::CompiledIntExpr(const IntExpr& expr, std::span<const std::string> slots) { max_stack_ = append_code(expr, slots, code_); }

// NOLINTBEGIN(clang-analyzer-core*): the analyzer cannot see that append_code() balances pushes and pops, so top is never too small.
std::int64_t CompiledIntExpr::evaluate(std::span<const std::int64_t> slot_values, bool& is_valid) const {
  is_valid = true;
  constexpr int kInlineStack = 64;
  std::int64_t inline_stack[kInlineStack];
  std::vector<std::int64_t> heap_stack;
  std::int64_t* stack = inline_stack;
  if (max_stack_ > kInlineStack) {
    heap_stack.resize(static_cast<std::size_t>(max_stack_));
    stack = heap_stack.data();
  }
  int top = 0;  // number of values on the stack
  for (std::size_t at = 0; at < code_.size(); ++at) {
    const Instruction& instruction = code_[at];
    switch (instruction.op) {
      case Op::kConst:
        stack[top++] = instruction.value;
        break;
      case Op::kVar:
        stack[top++] = slot_values[static_cast<std::size_t>(instruction.value)];
        break;
      case Op::kSelect:
        if (instruction.value == 1 || stack[--top] == 0) at = static_cast<std::size_t>(instruction.jump) - 1;
        break;
      case Op::kAnd:
      case Op::kOr:
        if (instruction.value == 1) {
          stack[top - 1] = stack[top - 1] != 0 ? 1 : 0;
        } else if ((stack[top - 1] != 0) == (instruction.op == Op::kOr)) {
          stack[top - 1] = instruction.op == Op::kOr ? 1 : 0;
          at = static_cast<std::size_t>(instruction.jump) - 1;
        } else {
          --top;
        }
        break;
      case Op::kNeg:
      case Op::kNot: {
        const auto value = apply(instruction.op, stack[top - 1], 0);
        if (!value) return is_valid = false, 0;
        stack[top - 1] = *value;
        break;
      }
      default: {
        const auto value = apply(instruction.op, stack[top - 2], stack[top - 1]);
        if (!value) return is_valid = false, 0;
        stack[--top - 1] = *value;
      }
    }
  }
  return stack[0];
}
// NOLINTEND(clang-analyzer-core*)

}  // namespace kw
