// Tokens of the index notation: names, numbers, operators, line ends; `#` starts a comment.
// SPDX-License-Identifier: Apache-2.0
#include "generator/spec/lexer.h"

#include <fmt/format.h>

#include <array>

namespace kw::generator {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_char(char c) { return is_name_start(c) || is_digit(c); }

// Longest first, so that "//" is not read as two "/".
constexpr std::array<std::string_view, 21> kSymbols = {"->", "//", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%",
                                                       "^",  "<",  ">",  "=",  "(",  ")",  "[", "]", ",", ";"};

class Lexer {
 public:
  Lexer(std::string_view text, const TextPlace& place, Diagnostics& diagnostics)
      : text_(text), file_(place.file), line_(place.line), column_(place.column), diagnostics_(diagnostics) {}

  std::vector<Token> run() {
    while (position_ < text_.size()) step();
    add(Token::Kind::kEnd, 0);
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t ahead = 0) const { return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0'; }

  void step() {
    const char c = peek();
    if (c == '\n') {
      add(Token::Kind::kNewline, 1);
      ++line_;
      column_ = 1;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      advance(1);
    } else if (c == '#') {
      while (position_ < text_.size() && peek() != '\n') advance(1);
    } else if (is_name_start(c)) {
      std::size_t length = 1;
      while (is_name_char(peek(length))) ++length;
      add(Token::Kind::kName, length);
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      number();
    } else {
      symbol();
    }
  }

  void number() {
    std::size_t length = 0;
    bool is_real = false;
    while (is_digit(peek(length))) ++length;
    if (peek(length) == '.') {
      is_real = true;
      ++length;
      while (is_digit(peek(length))) ++length;
    }
    if (peek(length) == 'e' || peek(length) == 'E') {
      std::size_t exponent = length + 1;
      if (peek(exponent) == '+' || peek(exponent) == '-') ++exponent;
      if (is_digit(peek(exponent))) {
        is_real = true;
        while (is_digit(peek(exponent))) ++exponent;
        length = exponent;
      }
    }
    if (is_name_char(peek(length))) {
      std::size_t end = length;
      while (is_name_char(peek(end))) ++end;
      error(fmt::format("'{}': a number must not run into a name", text_.substr(position_, end)));
      advance(end);
      return;
    }
    add(is_real ? Token::Kind::kReal : Token::Kind::kInteger, length);
  }

  void symbol() {
    for (const std::string_view candidate : kSymbols) {
      if (text_.substr(position_, candidate.size()) != candidate) continue;
      add(Token::Kind::kSymbol, candidate.size());
      return;
    }
    std::size_t length = 1;  // report a multi-byte character once
    while ((static_cast<unsigned char>(peek(length)) & 0xC0U) == 0x80U) ++length;
    const auto byte = static_cast<unsigned char>(peek());
    const std::string shown = byte < 0x20 || byte == 0x7F ? fmt::format("\\x{:02x}", byte) : std::string(text_.substr(position_, length));
    error(fmt::format("'{}': this character is not part of the notation", shown));
    advance(length);
  }

  void add(Token::Kind kind, std::size_t length) {
    tokens_.push_back({kind, text_.substr(position_, length), line_, column_});
    advance(length);
  }

  void advance(std::size_t length) {
    position_ += length;
    column_ += static_cast<int>(length);
  }

  void error(std::string message) { diagnostics_.add({Stage::kSpec, Code::kBadInput, std::move(message), {file_, line_, column_}, {}}); }

  std::string_view text_;
  const std::string& file_;
  std::size_t position_ = 0;
  int line_;
  int column_;
  Diagnostics& diagnostics_;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view text, const TextPlace& place, Diagnostics& diagnostics) {
  return Lexer(text, place, diagnostics).run();
}

}  // namespace kw::generator
