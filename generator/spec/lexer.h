// Tokens of the index notation, each with its place in the spec file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "generator/base/error.h"

namespace kw::generator {

struct Token {
  enum class Kind { kName, kInteger, kReal, kSymbol, kNewline, kEnd };
  Kind kind = Kind::kEnd;
  std::string_view text;  ///< points into the text that was given
  int line = 0;
  int column = 0;
};

/// Where the text stands in its file: the place of its first character.
struct TextPlace {
  std::string file;
  int line = 1;
  int column = 1;
};

/// Splits the text; unknown characters are reported and left out. The last token is kEnd.
std::vector<Token> tokenize(std::string_view text, const TextPlace& place, Diagnostics& diagnostics);

}  // namespace kw::generator
