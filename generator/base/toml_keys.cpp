// Counts the parts of dotted keys outside strings and comments: see toml_keys.h. Up to the first mistake of the text this scan sees strings
// and comments as the parser does; at a mistake the parser stops.
// SPDX-License-Identifier: Apache-2.0
#include "generator/base/toml_keys.h"

#include <fmt/format.h>

#include <algorithm>

namespace kw {

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// Whether a bare key, a number or a date may hold it; every byte of a character beyond ASCII counts.
bool is_bare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         static_cast<unsigned char>(c) >= 0x80U;
}

/// End of the string that begins at `begin`: of one line, or of several behind three quotes.
std::size_t end_of_string(std::string_view text, std::size_t begin) {
  const char quote = text[begin];
  const bool is_long = begin + 2 < text.size() && text[begin + 1] == quote && text[begin + 2] == quote;
  for (std::size_t at = begin + (is_long ? 3 : 1); at < text.size(); ++at) {
    if (text[at] == '\\' && quote == '"') {
      ++at;
    } else if (!is_long && (text[at] == quote || text[at] == '\n')) {
      return at + 1;
    } else if (is_long && text.substr(at, 3) == std::string(3, quote)) {
      return std::min(text.find_first_not_of(quote, at), text.size());  // a fourth or fifth quote is content
    }
  }
  return text.size();
}

SourceRange place_of(std::string_view text, std::size_t offset, const std::string& file_name) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const auto is_start = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };  // of a character
  return {file_name, 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n')),
          1 + static_cast<int>(std::count_if(before.begin() + static_cast<std::ptrdiff_t>(line_start), before.end(), is_start))};
}

}  // namespace

Status check_key_parts(std::string_view text, const std::string& file_name) {
  std::size_t key_begin = 0;
  int num_parts = 0;  // of the key that goes on here; 0 outside
  bool is_after_dot = false;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (is_blank(c)) {
      ++at;
    } else if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      num_parts = 0;
    } else if (c == '.') {
      is_after_dot = true;
      ++at;
    } else if (is_bare(c) || c == '"' || c == '\'') {
      if (!is_after_dot || num_parts == 0) {
        num_parts = 0;
        key_begin = at;
      }
      is_after_dot = false;
      if (++num_parts > kMaxKeyParts) {
        return fail(Stage::kSpec, Code::kBadInput,
                    fmt::format("a key of more than {} parts joined by dots: each is a table inside the one before", kMaxKeyParts),
                    place_of(text, key_begin, file_name));
      }
      if (is_bare(c)) {
        while (at < text.size() && is_bare(text[at])) ++at;
      } else {
        at = end_of_string(text, at);
      }
    } else {
      num_parts = 0;
      is_after_dot = false;
      ++at;
    }
  }
  return {};
}

}  // namespace kw
