// Tokenizer and text edits: see tokens.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/rewrite/tokens.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <tuple>

namespace kw::generator {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::size_t end_of_line(std::string_view text, std::size_t at) { return std::min(text.find('\n', at), text.size()); }

/// A directive goes on over lines that end in a backslash.
std::size_t end_of_directive(std::string_view text, std::size_t at) {
  std::size_t end = end_of_line(text, at);
  while (end < text.size() && end > at && text[end - 1] == '\\') end = end_of_line(text, end + 1);
  return end;
}

std::size_t end_of_quoted(std::string_view text, std::size_t at, char quote) {
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == quote || text[i] == '\n') {
      return i + 1;
    }
  }
  return text.size();
}

std::size_t end_of_raw_string(std::string_view text, std::size_t at) {
  const std::size_t open = text.find('(', at);
  if (open == std::string_view::npos) return text.size();
  const std::string close = ")" + std::string(text.substr(at + 2, open - at - 2)) + "\"";
  const std::size_t end = text.find(close, open);
  return end == std::string_view::npos ? text.size() : end + close.size();
}

std::size_t end_of_number(std::string_view text, std::size_t at) {
  std::size_t i = at;
  while (i < text.size() &&
         (is_word(text[i]) || text[i] == '.' || (text[i] == '\'' && i + 1 < text.size() && is_word(text[i + 1])) ||
          ((text[i] == '+' || text[i] == '-') && (text[i - 1] == 'e' || text[i - 1] == 'E') && text.substr(at, 2) != "0x"))) {
    ++i;
  }
  return i;
}

CppToken next_token(std::string_view text, std::size_t at, bool is_line_start) {
  const char c = text[at];
  const char d = at + 1 < text.size() ? text[at + 1] : '\0';
  using Kind = CppToken::Kind;
  if (c == '#' && is_line_start) return {Kind::kDirective, at, end_of_directive(text, at)};
  if (c == '/' && d == '/') return {Kind::kComment, at, end_of_line(text, at)};
  if (c == '/' && d == '*') {
    const std::size_t close = text.find("*/", at + 2);
    return {Kind::kComment, at, close == std::string_view::npos ? text.size() : close + 2};
  }
  if (c == 'R' && d == '"') return {Kind::kString, at, end_of_raw_string(text, at)};
  if (c == '"') return {Kind::kString, at, end_of_quoted(text, at, '"')};
  if (c == '\'') return {Kind::kCharacter, at, end_of_quoted(text, at, '\'')};
  if (std::isdigit(static_cast<unsigned char>(c)) != 0) return {Kind::kNumber, at, end_of_number(text, at)};
  if (is_word(c)) {
    std::size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    return {Kind::kIdentifier, at, end};
  }
  return {Kind::kPunctuation, at, at + (c == ':' && d == ':' ? 2U : 1U)};
}

}  // namespace

std::vector<CppToken> tokenize(std::string_view text) {
  std::vector<CppToken> tokens;
  bool is_line_start = true;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\n') is_line_start = true;
    if (std::isspace(static_cast<unsigned char>(text[at])) != 0) {
      ++at;
      continue;
    }
    tokens.push_back(next_token(text, at, is_line_start));
    is_line_start = false;
    at = tokens.back().end;
  }
  return tokens;
}

std::size_t matching_bracket(std::string_view text, const std::vector<CppToken>& tokens, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < tokens.size(); ++i) {
    if (tokens[i].kind != CppToken::Kind::kPunctuation) continue;
    const char c = text[tokens[i].begin];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (depth == 0) return i;
  }
  return tokens.size();
}

int line_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  return 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
}

namespace {

/// Drops the current line from `out` when an edit touched it and left only spaces.
void end_edited_line(std::string& out, bool& is_edited) {
  if (!is_edited) return;
  const std::size_t start = out.rfind('\n') == std::string::npos ? 0 : out.rfind('\n') + 1;
  if (out.find_first_not_of(" \t\r", start) == std::string::npos) {
    out.resize(start);
    if (!out.empty()) out.pop_back();
  }
  is_edited = false;
}

}  // namespace

std::string apply_edits(std::string_view text, std::vector<Edit> edits) {
  // Outer edits before inner ones; edits of one range keep the caller's order.
  std::vector<std::size_t> order(edits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    const Edit &a = edits[i], &b = edits[j];
    const bool is_a_text = a.begin < a.end, is_b_text = b.begin < b.end;  // what is put in stands before what begins there
    return std::tuple(a.begin, is_a_text, b.end, i) < std::tuple(b.begin, is_b_text, a.end, j);
  });
  std::string out;
  out.reserve(text.size());
  bool is_edited = false;
  std::size_t at = 0;
  const auto copy_until = [&](std::size_t end) {
    for (; at < end; ++at) {
      if (text[at] == '\n') end_edited_line(out, is_edited);
      out.push_back(text[at]);
    }
  };
  for (const std::size_t index : order) {
    const Edit& edit = edits[index];
    if (edit.begin < at && edit.end <= at) continue;
    copy_until(std::max(at, edit.begin));
    out += edit.text;
    at = std::max(at, edit.end);
    is_edited = true;
  }
  copy_until(text.size());
  end_edited_line(out, is_edited);
  return out;
}

}  // namespace kw::generator
