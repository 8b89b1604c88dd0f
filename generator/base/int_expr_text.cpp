// Text of integer expressions: printing (our notation and C++) and parsing.
// SPDX-License-Identifier: Apache-2.0
#include <cctype>
#include <charconv>

#include <fmt/format.h>

#include "generator/base/int_expr.h"

namespace kw {
namespace {

using Op = IntExpr::Op;

struct OpText {
  Op op;
  std::string_view text;
  int precedence;  // higher binds tighter
};
constexpr OpText kBinary[] = {
    {Op::kOr, "||", 2},       {Op::kAnd, "&&", 3}, {Op::kEq, "==", 4}, {Op::kNe, "!=", 4}, {Op::kLe, "<=", 5},
    {Op::kGe, ">=", 5},       {Op::kLt, "<", 5},   {Op::kGt, ">", 5},  {Op::kAdd, "+", 6}, {Op::kSub, "-", 6},
    {Op::kFloorDiv, "//", 7}, {Op::kMul, "*", 7},  {Op::kMod, "%", 7},
};
constexpr int kUnaryPrecedence = 8;
constexpr int kSelectPrecedence = 1;
constexpr int kMaxDepth = 200;

const OpText* find_binary(Op op) {
  for (const OpText& entry : kBinary)
    if (entry.op == op) return &entry;
  return nullptr;
}

/// `is_cpp` spells C++ (/, kw_min) in place of our notation (//, min).
std::string print(const IntExpr& expr, int parent_precedence, bool is_cpp) {
  const auto wrap = [&](std::string text, int precedence) { return precedence < parent_precedence ? "(" + text + ")" : text; };
  const auto operands = expr.operands();
  switch (expr.op()) {
    case Op::kConst: {
      std::string text = std::to_string(expr.constant());
      if (is_cpp && (expr.constant() > INT32_MAX || expr.constant() < INT32_MIN)) text += "ll";
      return expr.constant() < 0 ? "(" + text + ")" : text;
    }
    case Op::kVar: {
      std::string name = expr.name();
      if (is_cpp)
        for (char& c : name)
          if (c == '.') c = '_';
      return name;
    }
    case Op::kNeg:
      return wrap("-" + print(operands[0], kUnaryPrecedence, is_cpp), kUnaryPrecedence);
    case Op::kNot:
      return wrap("!" + print(operands[0], kUnaryPrecedence, is_cpp), kUnaryPrecedence);
    case Op::kMin:
    case Op::kMax: {
      const std::string a = print(operands[0], 0, is_cpp), b = print(operands[1], 0, is_cpp);
      if (is_cpp) return fmt::format("(({0}) {2} ({1}) ? ({0}) : ({1}))", a, b, expr.op() == Op::kMin ? "<" : ">");
      return fmt::format("{}({}, {})", expr.op() == Op::kMin ? "min" : "max", a, b);
    }
    case Op::kSelect:
      return wrap(fmt::format("{} ? {} : {}", print(operands[0], kSelectPrecedence + 1, is_cpp),
                              print(operands[1], kSelectPrecedence, is_cpp), print(operands[2], kSelectPrecedence, is_cpp)),
                  kSelectPrecedence);
    default:
      break;
  }
  const OpText* op = find_binary(expr.op());
  KW_CHECK(op != nullptr, "every operation has a text");
  const std::string_view sign = is_cpp && expr.op() == Op::kFloorDiv ? "/" : op->text;
  return wrap(fmt::format("{} {} {}", print(operands[0], op->precedence, is_cpp), sign, print(operands[1], op->precedence + 1, is_cpp)),
              op->precedence);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<IntExpr> parse_all() {
    KW_TRY(IntExpr expr, parse_select(0));
    skip_spaces();
    if (at_ != text_.size()) return error("unexpected text");
    return expr;
  }

 private:
  tl::unexpected<Error> error(std::string_view why) const {
    return fail(Stage::kSpace, Code::kBadInput, fmt::format("integer expression '{}', position {}: {}", text_, at_ + 1, why));
  }
  void skip_spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool accept(std::string_view token) {
    skip_spaces();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  Result<IntExpr> parse_select(int depth) {
    if (depth > kMaxDepth) return error("nested too deeply");
    KW_TRY(IntExpr condition, parse_binary(2, depth));
    if (!accept("?")) return condition;
    KW_TRY(IntExpr then_value, parse_select(depth + 1));
    if (!accept(":")) return error("expected ':'");
    KW_TRY(IntExpr else_value, parse_select(depth + 1));
    return IntExpr::make(Op::kSelect, {condition, then_value, else_value});
  }

  Result<IntExpr> parse_binary(int precedence, int depth) {
    if (precedence >= kUnaryPrecedence) return parse_unary(depth);
    KW_TRY(IntExpr left, parse_binary(precedence + 1, depth));
    for (;;) {
      const OpText* found = nullptr;
      for (const OpText& entry : kBinary) {
        if (entry.precedence == precedence && accept(entry.text)) {
          found = &entry;
          break;
        }
      }
      if (found == nullptr) return left;
      KW_TRY(IntExpr right, parse_binary(precedence + 1, depth));
      left = IntExpr::make(found->op, {left, right});
    }
  }

  Result<IntExpr> parse_unary(int depth) {
    if (depth > kMaxDepth) return error("nested too deeply");
    skip_spaces();
    if (at_ + 1 < text_.size() && text_[at_] == '!' && text_[at_ + 1] != '=') {
      ++at_;
      KW_TRY(IntExpr operand, parse_unary(depth + 1));
      return IntExpr::make(Op::kNot, {operand});
    }
    if (accept("-")) {
      KW_TRY(IntExpr operand, parse_unary(depth + 1));
      return IntExpr::make(Op::kNeg, {operand});
    }
    return parse_primary(depth);
  }

  Result<IntExpr> parse_primary(int depth) {
    skip_spaces();
    if (accept("(")) {
      KW_TRY(IntExpr inner, parse_select(depth + 1));
      if (!accept(")")) return error("expected ')'");
      return inner;
    }
    if (at_ == text_.size()) return error("expected a value");
    if (std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
      std::int64_t value = 0;
      const auto [end, status] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (status != std::errc{}) return error("a number outside 64 bits");
      at_ = static_cast<std::size_t>(end - text_.data());
      return IntExpr(value);
    }
    const std::size_t begin = at_;
    const auto is_name = [&](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (c == '.' && at_ > begin); };
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    if (at_ == begin) return error("expected a value");
    const std::string name(text_.substr(begin, at_ - begin));
    if ((name == "min" || name == "max") && accept("(")) {
      KW_TRY(IntExpr a, parse_select(depth + 1));
      if (!accept(",")) return error("expected ','");
      KW_TRY(IntExpr b, parse_select(depth + 1));
      if (!accept(")")) return error("expected ')'");
      return IntExpr::make(name == "min" ? Op::kMin : Op::kMax, {a, b});
    }
    return IntExpr::variable(name);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string IntExpr::to_text() const { return print(*this, 0, false); }
std::string IntExpr::to_cpp() const { return print(*this, 0, true); }
Result<IntExpr> IntExpr::parse(std::string_view text) { return Parser(text).parse_all(); }

}  // namespace kw
