// Token scan of a file of user functions: see user_text.h. It may refuse what clang would take, never the other way round: a token that
// clang and the tokenizer could see differently (line continuations, raw strings, digraphs) is refused.
// SPDX-License-Identifier: Apache-2.0
#include "generator/rewrite/user_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "generator/rewrite/tokens.h"

namespace kw::generator {
namespace {

using Kind = CppToken::Kind;

/// Words refused by name -> what they are.
const std::map<std::string_view, std::string_view>& refused_words() {
  static const std::map<std::string_view, std::string_view> kWords = {{"template", "a C++ template"},
                                                                      {"concept", "a C++ template"},
                                                                      {"requires", "a C++ template"},
                                                                      {"struct", "a class"},
                                                                      {"class", "a class"},
                                                                      {"union", "a class"},
                                                                      {"operator", "an operator function"},
                                                                      {"new", "memory from the heap"},
                                                                      {"delete", "memory from the heap"},
                                                                      {"decltype", "a type of a value"},
                                                                      {"typeof", "a type of a value"},
                                                                      {"__typeof", "a type of a value"},
                                                                      {"__typeof__", "a type of a value"},
                                                                      {"_Pragma", "a pragma"},
                                                                      {"__attribute__", "an attribute of the compiler"},
                                                                      {"__attribute", "an attribute of the compiler"},
                                                                      {"__declspec", "an attribute of the compiler"},
                                                                      {"_BitInt", "a wide integer type"},
                                                                      {"_ExtInt", "a wide integer type"},

                                                                      {"_Complex", "a complex type"}};
  return kWords;
}

class UserTextCheck {
 public:
  UserTextCheck(std::string_view text, const std::string& file_name) : text_(text), file_name_(file_name) {}

  Diagnostics check() {
    if (text_.size() > kMaxUserBytes) {
      add(0, "size", fmt::format("{} bytes: a file of user functions has at most {} (64 KiB)", text_.size(), kMaxUserBytes),
          {file_name_, 0, 0});
      return std::move(diagnostics_);
    }
    const std::size_t zero = text_.find('\0');
    if (zero != std::string_view::npos) {
      refuse(zero, "byte 0x00", "a file of user functions is text");
      return std::move(diagnostics_);
    }
    for (const CppToken& token : tokenize(text_)) {
      if (token.kind == Kind::kDirective) look_at_directive(token);
      if (token.kind != Kind::kComment && token.kind != Kind::kDirective) tokens_.push_back(token);
    }
    if (tokens_.size() > kMaxUserTokens) {
      refuse(tokens_[kMaxUserTokens].begin, fmt::format("{} words and signs", tokens_.size()),
             fmt::format("a file of user functions has at most {}", kMaxUserTokens));
    }
    for (position_ = 0; position_ < tokens_.size(); ++position_) look_at(tokens_[position_]);
    return std::move(diagnostics_);
  }

 private:
  void add(std::size_t offset, const std::string& kind, std::string message, SourceRange where = {}) {
    if (!reported_.insert(kind).second) return;
    if (where.file.empty()) {
      const std::size_t line_start = offset == 0 ? std::string_view::npos : text_.rfind('\n', offset - 1);
      const std::size_t column = line_start == std::string_view::npos ? offset : offset - line_start - 1;
      where = {file_name_, line_of(text_, offset), static_cast<int>(column) + 1};
    }
    diagnostics_.add({Stage::kSpec, Code::kBadInput, std::move(message), where, {}});
  }
  void refuse(std::size_t offset, const std::string& what, const std::string& rule) {
    add(offset, rule, fmt::format("{}: {}", what, rule));
  }

  std::string_view word(std::size_t index) const { return index < tokens_.size() ? spelling(text_, tokens_[index]) : std::string_view(); }

  void look_at_directive(const CppToken& token) {
    std::string plain(spelling(text_, token));
    plain.erase(std::remove_if(plain.begin(), plain.end(), [](char c) { return c == ' ' || c == '\t' || c == '\r'; }), plain.end());
    if (plain == "#pragmaonce") return;
    refuse_directive(token.begin, spelling(text_, token));
  }

  void refuse_directive(std::size_t offset, std::string_view directive) {
    std::string shown(directive.substr(0, std::min<std::size_t>(directive.find('\n'), 60)));
    while (!shown.empty() && (shown.back() == '\r' || shown.back() == '\\' || shown.back() == ' ')) shown.pop_back();
    refuse(offset, shown, "a file of user functions has no preprocessor directive but #pragma once; write constants as constexpr");
  }

  void look_at(const CppToken& token) {
    const std::string_view spelled = spelling(text_, token);
    if (token.kind == Kind::kIdentifier) look_at_word(token, spelled);
    if (token.kind == Kind::kString) {
      const bool has_prefix = position_ > 0 && tokens_[position_ - 1].end == token.begin && word(position_ - 1).ends_with('R');
      if (spelled.front() == 'R' || has_prefix) refuse(token.begin, "R\"", "a raw string is no part of user functions");
    }
    if (token.kind == Kind::kPunctuation) look_at_sign(token, spelled);
    if (++statement_tokens_ == kMaxStatementTokens) {
      refuse(token.begin, fmt::format("a statement of more than {} words and signs", kMaxStatementTokens),
             "split it: a long expression nests as deep as it is long");
    }
  }

  void look_at_word(const CppToken& token, std::string_view spelled) {
    const auto refused = refused_words().find(spelled);
    if (refused != refused_words().end())
      refuse(token.begin, std::string(spelled), fmt::format("{} is no part of user functions", refused->second));
    if (spelled == "auto" && num_parens_ > 0)
      refuse(token.begin, "auto", "a parameter without a type makes a C++ template: no part of user functions");
    if (spelled == "typedef" || spelled == "using") is_in_alias_ = true;
    if (spelled == "else" && ++num_elses_ > kMaxUserElses)
      refuse(token.begin, "else", fmt::format("a function has at most {} of them: each may nest in the one before", kMaxUserElses));
  }

  /// [[nodiscard]] and its like: no expression stands inside.
  bool is_plain_attribute() const {
    static const std::set<std::string_view> kPlain = {"nodiscard", "maybe_unused", "likely", "unlikely"};
    const std::size_t begin = word(position_ + 1) == "[" ? position_ : position_ - std::min<std::size_t>(position_, 1);
    return word(begin) == "[" && word(begin + 1) == "[" && kPlain.contains(word(begin + 2)) && word(begin + 3) == "]" &&
           word(begin + 4) == "]";
  }

  void look_at_sign(const CppToken& token, std::string_view spelled) {
    const char c = spelled.front();
    const char next = token.end < text_.size() ? text_[token.end] : '\0';
    if (c == '#' || (c == '%' && next == ':')) refuse_directive(token.begin, text_.substr(token.begin));
    if (c == '\\') refuse(token.begin, "\\", "a line that goes on behind a backslash is no part of user functions");
    if ((c == '[' && !is_plain_attribute()) || (c == '<' && next == ':'))
      refuse(token.begin, std::string(spelled), "an array, a subscript or a lambda is no part of user functions");
    if (c == '(' && is_in_alias_) refuse(token.begin, "(", "an alias of a function's type is no part of user functions");
    if (c == '(' || c == '[' || c == '{') ++depth_;
    if (c == '(') ++num_parens_;
    if (c == ')' && num_parens_ > 0) --num_parens_;
    if ((c == ')' || c == ']' || c == '}') && depth_ > 0) --depth_;
    if (depth_ > kMaxUserNesting)
      refuse(token.begin, std::string(spelled), fmt::format("brackets nest at most {} deep in user functions", kMaxUserNesting));
    if (c == ';' || c == '{' || c == '}') {
      statement_tokens_ = 0;
      is_in_alias_ = false;
    }
    if (c == '}' && depth_ == 0) num_elses_ = 0;
  }

  std::string_view text_;
  const std::string& file_name_;
  Diagnostics diagnostics_;
  std::set<std::string> reported_;  ///< rules told already
  std::vector<CppToken> tokens_;
  std::size_t position_ = 0;
  std::size_t statement_tokens_ = 0;
  int depth_ = 0;
  int num_parens_ = 0;
  int num_elses_ = 0;
  bool is_in_alias_ = false;
};

}  // namespace

Diagnostics check_user_text(std::string_view text, const std::string& file_name) { return UserTextCheck(text, file_name).check(); }

}  // namespace kw::generator
