// The tokenizer: one loop over the text, one function a token kind.
// Place: simulator/ptx/lexer.h; its tokens go to simulator/ptx/parser.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/ptx/lexer.h"

#include <bit>
#include <cstdlib>
#include <string>

namespace kw::simulate {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool starts_word(char c) { return is_letter(c) || c == '_' || c == '$' || c == '%'; }
bool continues_word(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '$'; }

int digit_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

class Lexer {
 public:
  Lexer(std::string_view text, std::string_view file) : text_(text.substr(0, text.find('\0'))), file_(file) {}

  Result<std::vector<Token>> run() {
    std::vector<Token> tokens;
    tokens.reserve(text_.size() / 4 + 8);
    while (true) {
      KW_TRY_VOID(skip_space());
      if (at_ >= text_.size()) break;
      KW_TRY(Token token, next());
      tokens.push_back(token);
    }
    tokens.push_back(Token{.kind = Token::Kind::kEnd, .line = line_});
    return tokens;
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  tl::unexpected<Error> error(std::string message) const {
    return fail(Stage::kVerify, Code::kBadInput, std::move(message), SourceRange{std::string(file_), line_, 0});
  }

  Status skip_space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '/' && peek(1) == '/') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '/' && peek(1) == '*') {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) return error("a /* comment does not end");
        for (; at_ < end + 2; ++at_) line_ += text_[at_] == '\n' ? 1 : 0;
      } else {
        break;
      }
    }
    return {};
  }

  Result<Token> next() {
    const char c = peek();
    if (starts_word(c) || (c == '.' && (is_letter(peek(1)) || peek(1) == '_'))) return word();
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
    if (c == '"') return quoted();
    if (std::string_view("{}[]()<>,;:@!|+-=*").find(c) != std::string_view::npos) {
      return Token{.kind = Token::Kind::kPunctuation, .punctuation = c, .line = line_, .text = text_.substr(at_++, 1)};
    }
    const std::string shown = c >= ' ' && c <= '~' ? std::string("'") + c + "'" : "byte " + std::to_string(static_cast<unsigned char>(c));
    return error(shown + " is not a PTX character");
  }

  Token word() {
    const std::size_t start = at_++;
    while (at_ < text_.size()) {
      if (continues_word(text_[at_])) {
        ++at_;
      } else if (text_[at_] == '.' && continues_word(peek(1))) {
        at_ += 2;
      } else if (text_[at_] == ':' && peek(1) == ':' && continues_word(peek(2))) {
        at_ += 3;
      } else {
        break;
      }
    }
    return Token{.kind = Token::Kind::kWord, .line = line_, .text = text_.substr(start, at_ - start)};
  }

  Result<Token> quoted() {
    const std::size_t end = text_.find('"', at_ + 1);
    if (end == std::string_view::npos || text_.substr(at_, end - at_).find('\n') != std::string_view::npos) {
      return error("a \" string does not end on its line");
    }
    const Token token{.kind = Token::Kind::kString, .line = line_, .text = text_.substr(at_ + 1, end - at_ - 1)};
    at_ = end + 1;
    return token;
  }

  Result<Token> number() {
    const std::size_t start = at_;
    const char second = peek(1);
    if (peek() == '0' && (second == 'f' || second == 'F')) return pattern(8, Token::Kind::kFloat32);
    if (peek() == '0' && (second == 'd' || second == 'D')) return pattern(16, Token::Kind::kFloat64);
    std::size_t end = at_;
    while (end < text_.size() && (continues_word(text_[end]) || text_[end] == '.')) ++end;
    const std::string_view digits = text_.substr(start, end - start);
    const bool is_hex = digits.size() > 1 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
    if (!is_hex && digits.find_first_of(".eE") != std::string_view::npos) return fraction();
    KW_TRY(const std::uint64_t value, integer(digits));
    at_ = end;
    return Token{.kind = Token::Kind::kInteger, .line = line_, .text = digits, .bits = value};
  }

  Result<std::uint64_t> integer(std::string_view digits) const {
    std::string_view rest = digits;
    if (!rest.empty() && (rest.back() == 'U' || rest.back() == 'u')) rest.remove_suffix(1);
    std::uint64_t base = 10;
    if (rest.size() > 1 && rest[0] == '0') {
      const char kind = rest[1];
      base = kind == 'x' || kind == 'X' ? 16 : kind == 'b' || kind == 'B' ? 2 : 8;
      rest.remove_prefix(base == 8 ? 1 : 2);
    }
    if (rest.empty()) return error("'" + std::string(digits) + "' is not a number");
    std::uint64_t value = 0;
    for (const char c : rest) {
      const auto digit = static_cast<std::uint64_t>(digit_value(c));
      if (digit >= base) return error("'" + std::string(digits) + "' is not a number");
      if (value > (~std::uint64_t{0} - digit) / base) return error("'" + std::string(digits) + "' does not fit 64 bits");
      value = value * base + digit;
    }
    return value;
  }

  Result<Token> pattern(int num_digits, Token::Kind kind) {
    const std::size_t start = at_;
    std::uint64_t bits = 0;
    for (int i = 0; i < num_digits; ++i) {
      const int digit = digit_value(peek(static_cast<std::size_t>(2 + i)));
      if (digit > 15)
        return error("'" + std::string(text_.substr(start, 18)) + "': " + std::to_string(num_digits) + " hex digits must follow");
      bits = bits << 4 | static_cast<std::uint64_t>(digit);
    }
    at_ += static_cast<std::size_t>(2 + num_digits);
    return Token{.kind = kind, .line = line_, .text = text_.substr(start, at_ - start), .bits = bits};
  }

  Result<Token> fraction() {
    const std::size_t start = at_;
    std::size_t end = at_;
    while (end < text_.size() && (is_digit(text_[end]) || text_[end] == '.')) ++end;
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      ++end;
      if (end < text_.size() && (text_[end] == '+' || text_[end] == '-')) ++end;
      while (end < text_.size() && is_digit(text_[end])) ++end;
    }
    const std::string digits(text_.substr(start, end - start));
    char* stop = nullptr;
    const double value = std::strtod(digits.c_str(), &stop);
    if (*stop != '\0') return error("'" + digits + "' is not a number");
    at_ = end;
    return Token{.kind = Token::Kind::kFloat64,
                 .line = line_,
                 .text = text_.substr(start, end - start),
                 .bits = std::bit_cast<std::uint64_t>(value)};
  }

  std::string_view text_;
  std::string_view file_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view text, std::string_view file) { return Lexer(text, file).run(); }

}  // namespace kw::simulate
