// A cursor over the tokens of a PTX text with the few questions that the parser asks, and its error messages with file and line.
// Used by the parser's files only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "generator/base/error.h"
#include "simulator/ptx/lexer.h"

namespace kw::simulate {

class TokenStream {
 public:
  TokenStream(std::vector<Token> tokens, std::string_view file) : tokens_(std::move(tokens)), file_(file) {}

  const Token& peek(std::size_t ahead = 0) const { return tokens_[at_ + ahead < tokens_.size() ? at_ + ahead : tokens_.size() - 1]; }
  Token take() {
    const Token token = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool at_end() const { return peek().kind == Token::Kind::kEnd; }
  bool is_word(std::string_view text) const { return peek().kind == Token::Kind::kWord && peek().text == text; }
  bool is(char punctuation, std::size_t ahead = 0) const {
    return peek(ahead).kind == Token::Kind::kPunctuation && peek(ahead).punctuation == punctuation;
  }
  bool accept(char punctuation) {
    if (!is(punctuation)) return false;
    take();
    return true;
  }
  bool accept_word(std::string_view text) {
    if (!is_word(text)) return false;
    take();
    return true;
  }
  Status expect(char punctuation) {
    if (accept(punctuation)) return {};
    return error(std::string("'") + punctuation + "' expected, found " + shown());
  }
  Result<std::string_view> expect_word(std::string_view what) {
    if (peek().kind != Token::Kind::kWord) return error(std::string(what) + " expected, found " + shown());
    return take().text;
  }
  /// Fails with kBadInput when it is larger than `max`.
  Result<std::uint64_t> expect_integer(std::string_view what, std::uint64_t max) {
    if (peek().kind != Token::Kind::kInteger) return error(std::string(what) + " expected, found " + shown());
    if (peek().bits > max) return error(std::string(what) + " = " + std::to_string(peek().bits) + ": at most " + std::to_string(max));
    return take().bits;
  }
  /// The current token as a message shows it.
  std::string shown() const {
    if (at_end()) return "the end of the text";
    return "'" + std::string(peek().text.substr(0, 60)) + "'";
  }
  tl::unexpected<Error> error(std::string message, Code code = Code::kBadInput, int line = 0) const {
    return fail(Stage::kVerify, code, std::move(message), SourceRange{std::string(file_), line != 0 ? line : peek().line, 0});
  }

 private:
  std::vector<Token> tokens_;
  std::string_view file_;
  std::size_t at_ = 0;
};

}  // namespace kw::simulate
