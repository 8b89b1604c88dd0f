// Recursive-descent parser of the index notation. Precedence, loosest first: or, and, not, comparisons (do not chain), + -,
// * / // %, unary -, ^ (groups to the right). The height of a tree is limited, so no later recursion can exhaust the stack.
// SPDX-License-Identifier: Apache-2.0
#include "generator/spec/body_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace kw::generator {

namespace {

SyntaxRef finish(SyntaxNode node) {
  int depth = 0;
  for (const SyntaxRef& operand : node.operands) depth = std::max(depth, operand->depth);
  for (const auto& [name, value] : node.keywords) depth = std::max(depth, value->depth);
  node.depth = depth + 1;
  return std::make_shared<const SyntaxNode>(std::move(node));
}

std::optional<Function> binary_function(std::string_view symbol) {
  if (symbol == "+") return Function::kAdd;
  if (symbol == "-") return Function::kSub;
  if (symbol == "*") return Function::kMul;
  if (symbol == "/") return Function::kDiv;
  if (symbol == "//") return Function::kFloorDiv;
  if (symbol == "%") return Function::kMod;
  if (symbol == "<") return Function::kLt;
  if (symbol == "<=") return Function::kLe;
  if (symbol == ">") return Function::kGt;
  if (symbol == ">=") return Function::kGe;
  if (symbol == "==") return Function::kEq;
  if (symbol == "!=") return Function::kNe;
  return std::nullopt;
}

bool is_compare(Function function) { return function >= Function::kLt && function <= Function::kNe; }
bool is_additive(Function function) { return function == Function::kAdd || function == Function::kSub; }
bool is_multiplicative(Function function) {
  return function == Function::kMul || function == Function::kDiv || function == Function::kFloorDiv || function == Function::kMod;
}

class Parser {
 public:
  Parser(std::string_view text, const TextPlace& place, Diagnostics& diagnostics)
      : file_(place.file), tokens_(tokenize(text, place, diagnostics)), diagnostics_(diagnostics) {}

  std::vector<StatementSyntax> body() {
    std::vector<StatementSyntax> statements;
    while (true) {
      while (now().kind == Token::Kind::kNewline || is(";")) next();
      if (now().kind == Token::Kind::kEnd) return statements;
      has_failed_ = false;
      nesting_ = 0;
      const std::size_t start = position_;
      StatementSyntax statement = parse_statement();
      if (!has_failed_ && now().kind != Token::Kind::kNewline && now().kind != Token::Kind::kEnd && !is(";"))
        unexpected("the end of the statement");
      if (has_failed_) {
        recover(start);
      } else {
        statements.push_back(std::move(statement));
      }
    }
  }

  SyntaxRef whole_expression() {
    skip_newlines_ = true;
    skip_newlines();
    SyntaxRef value = expression();
    if (!has_failed_ && now().kind != Token::Kind::kEnd) unexpected("the end of the expression");
    return has_failed_ ? nullptr : value;
  }

  std::vector<ChainStep> chain() {
    skip_newlines_ = true;
    skip_newlines();
    std::vector<ChainStep> steps;
    while (!has_failed_) {
      ChainStep step;
      const std::optional<Function> function = binary_function(now().text);
      if (!steps.empty() && function && (is_additive(*function) || is_multiplicative(*function))) {
        step.operator_function = function;
        next();
      }
      step.value = unary();
      steps.push_back(std::move(step));
      if (has_failed_ || now().kind == Token::Kind::kEnd) break;
      if (!take("->")) unexpected("'->' or the end of the chain");
    }
    return has_failed_ ? std::vector<ChainStep>{} : steps;
  }

 private:
  /// Goes on behind the line of the mistake; a mistake at the start of a line (an open bracket above it) leaves that line to be read.
  void recover(std::size_t start) {
    nesting_ = 0;
    position_ = failed_position_;
    if (position_ > start && tokens_[position_ - 1].kind == Token::Kind::kNewline) return;
    while (now().kind != Token::Kind::kNewline && now().kind != Token::Kind::kEnd) next();
  }

  const Token& now() const { return tokens_[position_]; }
  bool is(std::string_view symbol) const { return now().kind == Token::Kind::kSymbol && now().text == symbol; }
  bool is_word(std::string_view word) const { return now().kind == Token::Kind::kName && now().text == word; }
  SourceRange here() const { return {file_, now().line, now().column}; }

  void next() {
    if (now().kind != Token::Kind::kEnd) ++position_;
    if (nesting_ > 0 || skip_newlines_) skip_newlines();
  }
  void skip_newlines() {
    while (now().kind == Token::Kind::kNewline) ++position_;
  }
  /// A line goes on after an operator, so that long expressions can be broken there.
  void next_after_operator() {
    next();
    skip_newlines();
  }

  bool take(std::string_view symbol) {
    if (!is(symbol)) return false;
    next();
    return true;
  }
  void open() {
    ++nesting_;
    next();
  }
  void close(std::string_view symbol) {
    if (!is(symbol)) {
      unexpected(fmt::format("'{}' or ','", symbol));
      return;
    }
    nesting_ = std::max(0, nesting_ - 1);
    next();
  }

  SyntaxRef fail_at(const SourceRange& where, std::string message) {
    if (!has_failed_) diagnostics_.add({Stage::kSpec, Code::kBadInput, std::move(message), where, {}});
    if (!has_failed_) failed_position_ = position_;
    has_failed_ = true;
    return nullptr;
  }
  SyntaxRef unexpected(const std::string& wanted) {
    std::string found = "the end of the text";
    if (now().kind == Token::Kind::kNewline)
      found = "the end of the line";
    else if (now().kind != Token::Kind::kEnd)
      found = fmt::format("'{}'", now().text.substr(0, kMaxNameLength));
    return fail_at(here(), fmt::format("found {} where {} should stand", found, wanted));
  }

  SyntaxRef make(SyntaxNode node) {
    if (has_failed_) return nullptr;
    const SourceRange where = node.where;
    SyntaxRef made = finish(std::move(node));
    if (made->depth > kMaxDepth)
      return fail_at(where,
                     fmt::format("the expression is nested deeper than {} levels: name a part of it in a statement of its own", kMaxDepth));
    return made;
  }
  SyntaxRef binary(Function function, SyntaxRef left, SyntaxRef right, const SourceRange& where) {
    if (has_failed_) return nullptr;
    SyntaxNode node;
    node.kind = SyntaxNode::Kind::kOperator;
    node.function = function;
    node.operands = {std::move(left), std::move(right)};
    node.where = where;
    return make(std::move(node));
  }

  /// Counts the recursion of the parser itself: parentheses add no node.
  struct Level {
    explicit Level(Parser& parser) : parser(parser) {
      if (++parser.level_ > kMaxDepth)
        parser.fail_at(
            parser.here(),
            fmt::format("the expression is nested deeper than {} levels: name a part of it in a statement of its own", kMaxDepth));
    }
    ~Level() { --parser.level_; }
    Parser& parser;
  };

  StatementSyntax parse_statement() {
    StatementSyntax statement;
    statement.where = here();
    if (now().kind != Token::Kind::kName) {
      unexpected("the name of the value that the statement writes");
      return statement;
    }
    statement.target = checked_name();
    if (is("[")) {
      statement.has_subscripts = true;
      open();
      statement.subscripts = expressions_until("]");
      close("]");
    }
    if (has_failed_) return statement;
    if (!is("=")) {
      unexpected(statement.has_subscripts ? "'='" : "'[' or '='");
      return statement;
    }
    next_after_operator();
    statement.value = expression();
    return statement;
  }

  std::string checked_name() {
    const std::string name(now().text);
    if (name.size() > kMaxNameLength)
      fail_at(here(), fmt::format("'{}...': a name has at most {} characters", name.substr(0, 16), kMaxNameLength));
    next();
    return name;
  }

  std::vector<SyntaxRef> expressions_until(std::string_view closing) {
    std::vector<SyntaxRef> values;
    while (!has_failed_ && !is(closing)) {
      values.push_back(expression());
      if (!is(",")) break;
      next();
    }
    if (has_failed_) values.clear();
    return values;
  }

  SyntaxRef expression() {
    const Level level(*this);
    if (has_failed_) return nullptr;
    SyntaxRef left = conjunction();
    while (!has_failed_ && is_word("or")) {
      const SourceRange where = here();
      next_after_operator();
      left = binary(Function::kOr, left, conjunction(), where);
    }
    return left;
  }

  SyntaxRef conjunction() {
    SyntaxRef left = negation();
    while (!has_failed_ && is_word("and")) {
      const SourceRange where = here();
      next_after_operator();
      left = binary(Function::kAnd, left, negation(), where);
    }
    return left;
  }

  SyntaxRef negation() {
    if (!is_word("not")) return comparison();
    const Level level(*this);
    return prefixed(Function::kNot, [this] { return negation(); });
  }

  template <typename Operand>
  SyntaxRef prefixed(Function function, Operand operand) {
    SyntaxNode node;
    node.kind = SyntaxNode::Kind::kOperator;
    node.function = function;
    node.where = here();
    if (has_failed_) return nullptr;
    next_after_operator();
    node.operands = {operand()};
    return has_failed_ ? nullptr : make(std::move(node));
  }

  SyntaxRef comparison() {
    SyntaxRef left = sum();
    const std::optional<Function> function = operator_here();
    if (has_failed_ || !function || !is_compare(*function)) return left;
    const SourceRange where = here();
    next_after_operator();
    left = binary(*function, left, sum(), where);
    const std::optional<Function> again = operator_here();
    if (!has_failed_ && again && is_compare(*again)) return fail_at(here(), "comparisons do not chain: write a < b and b < c");
    return left;
  }

  std::optional<Function> operator_here() const { return now().kind == Token::Kind::kSymbol ? binary_function(now().text) : std::nullopt; }

  SyntaxRef sum() {
    SyntaxRef left = product();
    for (std::optional<Function> function = operator_here(); !has_failed_ && function && is_additive(*function);
         function = operator_here()) {
      const SourceRange where = here();
      next_after_operator();
      left = binary(*function, left, product(), where);
    }
    return left;
  }

  SyntaxRef product() {
    SyntaxRef left = unary();
    for (std::optional<Function> function = operator_here(); !has_failed_ && function && is_multiplicative(*function);
         function = operator_here()) {
      const SourceRange where = here();
      next_after_operator();
      left = binary(*function, left, unary(), where);
    }
    return left;
  }

  SyntaxRef unary() {
    const Level level(*this);
    if (has_failed_) return nullptr;
    if (is("-")) return prefixed(Function::kNeg, [this] { return unary(); });
    SyntaxRef base = atom();
    if (has_failed_ || !is("^")) return base;
    const SourceRange where = here();
    next_after_operator();
    return binary(Function::kPow, base, unary(), where);
  }

  SyntaxRef atom() {
    const Token token = now();
    if (token.kind == Token::Kind::kInteger) return integer();
    if (token.kind == Token::Kind::kReal) return real();
    if (token.kind == Token::Kind::kName && token.text != "and" && token.text != "or" && token.text != "not") return named();
    if (!is("(")) return unexpected("a value");
    open();
    SyntaxRef inner = expression();
    if (!has_failed_) close(")");
    return inner;
  }

  SyntaxRef integer() {
    SyntaxNode node;
    node.kind = SyntaxNode::Kind::kInteger;
    node.where = here();
    const std::string_view text = now().text;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), node.integer);
    if (error != std::errc() || node.integer > kMaxExactInteger) {
      return fail_at(node.where, fmt::format("{}: a whole number is at most 2^53", text.substr(0, kMaxNameLength)));
    }
    next();
    return make(std::move(node));
  }

  SyntaxRef real() {
    SyntaxNode node;
    node.kind = SyntaxNode::Kind::kReal;
    node.where = here();
    const std::string_view text = now().text;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), node.real);
    if (error != std::errc() || !std::isfinite(node.real))
      return fail_at(node.where, fmt::format("{}: outside the range of f64", text.substr(0, kMaxNameLength)));
    next();
    return make(std::move(node));
  }

  SyntaxRef named() {
    SyntaxNode node;
    node.kind = SyntaxNode::Kind::kName;
    node.where = here();
    node.name = checked_name();
    if (has_failed_) return nullptr;
    if (is("[")) return bracketed(std::move(node));
    if (!is("(")) return make(std::move(node));
    arguments(node);
    // new(x)[i]: the updated value of an inout tensor.
    if (!has_failed_ && node.name == "new" && is("[")) {
      if (node.operands.size() != 1 || node.operands[0]->kind != SyntaxNode::Kind::kName)
        return fail_at(node.where, "new(...) takes the name of one inout tensor");
      SyntaxNode read;
      read.kind = SyntaxNode::Kind::kRead;
      read.is_new = true;
      read.name = node.operands[0]->name;
      read.where = node.where;
      open();
      read.operands = expressions_until("]");
      if (!has_failed_) close("]");
      return make(std::move(read));
    }
    return make(std::move(node));
  }

  /// name[...]: a read, or a reduction when an argument list follows.
  SyntaxRef bracketed(SyntaxNode node) {
    const SourceRange bracket = here();
    open();
    node.operands = expressions_until("]");
    if (!has_failed_) close("]");
    if (has_failed_) return nullptr;
    node.kind = SyntaxNode::Kind::kRead;
    if (!is("(")) return make(std::move(node));
    for (const SyntaxRef& operand : node.operands) {
      if (operand->kind != SyntaxNode::Kind::kName)
        return fail_at(operand->where, fmt::format("{}[...](...) takes names of indices in its brackets", node.name));
      node.brackets.push_back(operand->name);
    }
    if (node.brackets.empty()) return fail_at(bracket, fmt::format("{}[](...) names no index", node.name));
    node.has_brackets = true;
    node.operands.clear();
    arguments(node);
    return make(std::move(node));
  }

  void arguments(SyntaxNode& node) {
    node.kind = SyntaxNode::Kind::kCall;
    open();
    while (!has_failed_ && !is(")")) {
      SyntaxRef value = expression();
      if (has_failed_) break;
      if (is("=") && value->kind == SyntaxNode::Kind::kName) {
        next_after_operator();
        const std::string name = value->name;
        value = expression();
        if (has_failed_) break;
        node.keywords.emplace_back(name, std::move(value));
      } else {
        node.operands.push_back(std::move(value));
      }
      if (!is(",")) break;
      next();
    }
    if (!has_failed_) close(")");
  }

  const std::string& file_;
  std::vector<Token> tokens_;
  Diagnostics& diagnostics_;
  std::size_t position_ = 0;
  std::size_t failed_position_ = 0;
  int nesting_ = 0;
  int level_ = 0;
  bool skip_newlines_ = false;
  bool has_failed_ = false;
};

}  // namespace

std::vector<StatementSyntax> parse_body(std::string_view text, const TextPlace& place, Diagnostics& diagnostics) {
  return Parser(text, place, diagnostics).body();
}
SyntaxRef parse_expression(std::string_view text, const TextPlace& place, Diagnostics& diagnostics) {
  return Parser(text, place, diagnostics).whole_expression();
}
std::vector<ChainStep> parse_chain(std::string_view text, const TextPlace& place, Diagnostics& diagnostics) {
  return Parser(text, place, diagnostics).chain();
}

SyntaxRef syntax_integer(std::int64_t value, const SourceRange& where) {
  SyntaxNode node;
  node.integer = value;
  node.where = where;
  return finish(std::move(node));
}
SyntaxRef syntax_name(std::string name, const SourceRange& where) {
  SyntaxNode node;
  node.kind = SyntaxNode::Kind::kName;
  node.name = std::move(name);
  node.where = where;
  return finish(std::move(node));
}
SyntaxRef syntax_read(std::string name, std::vector<SyntaxRef> subscripts, const SourceRange& where) {
  SyntaxNode node;
  node.kind = SyntaxNode::Kind::kRead;
  node.name = std::move(name);
  node.operands = std::move(subscripts);
  node.where = where;
  return finish(std::move(node));
}
SyntaxRef syntax_call(std::string name, std::vector<std::string> brackets, std::vector<SyntaxRef> operands, const SourceRange& where) {
  SyntaxNode node;
  node.kind = SyntaxNode::Kind::kCall;
  node.name = std::move(name);
  node.has_brackets = !brackets.empty();
  node.brackets = std::move(brackets);
  node.operands = std::move(operands);
  node.where = where;
  return finish(std::move(node));
}
SyntaxRef syntax_operator(Function function, std::vector<SyntaxRef> operands, const SourceRange& where) {
  SyntaxNode node;
  node.kind = SyntaxNode::Kind::kOperator;
  node.function = function;
  node.operands = std::move(operands);
  node.where = where;
  return finish(std::move(node));
}

}  // namespace kw::generator
