// A small C++ tokenizer: enough to find annotations, bodies and names in a template's text without a parse.
// First step of specialise(); it keeps comments and directives as tokens, knows raw strings, and joins no punctuation but "::".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kw::generator {

struct CppToken {
  enum class Kind { kIdentifier, kNumber, kString, kCharacter, kPunctuation, kComment, kDirective };
  Kind kind = Kind::kPunctuation;
  std::size_t begin = 0;  ///< byte offsets in the text
  std::size_t end = 0;
};

std::vector<CppToken> tokenize(std::string_view text);

/// Text of a token.
inline std::string_view spelling(std::string_view text, const CppToken& token) { return text.substr(token.begin, token.end - token.begin); }

/// Index of the token that closes the bracket at `open` ("(", "[", "{"); tokens.size() when there is none.
std::size_t matching_bracket(std::string_view text, const std::vector<CppToken>& tokens, std::size_t open);

/// Line of an offset, from 1.
int line_of(std::string_view text, std::size_t offset);

/// A change of a text: [begin, end) becomes `text`.
struct Edit {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string text;
};

/// Applies edits. Edits inside a deletion are dropped with it; lines left blank by an edit disappear.
std::string apply_edits(std::string_view text, std::vector<Edit> edits);

}  // namespace kw::generator
