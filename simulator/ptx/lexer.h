// Cuts PTX text into tokens. A word keeps its dots and double colons ("mma.sync.aligned", "shared::cta", "%tid.x"), because that is how
// PTX names opcodes, directives and special registers; everything else is one character or a number.
// The text may end at a NUL byte (NVRTC's does); a NUL earlier ends it too. Comments are skipped.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "generator/base/error.h"

namespace kw::simulate {

struct Token {
  enum class Kind : std::uint8_t {
    kEnd = 0,
    kWord,     ///< identifier, opcode, or directive (starts with '.')
    kInteger,  ///< `bits`: its value
    kFloat32,  ///< 0fXXXXXXXX; `bits`: the pattern
    kFloat64,  ///< 0dXXXXXXXXXXXXXXXX or a decimal fraction; `bits`: the pattern
    kString,   ///< without its quotes
    kPunctuation,
  };
  Kind kind = Kind::kEnd;
  char punctuation = 0;
  int line = 0;
  std::string_view text = {};
  std::uint64_t bits = 0;
};

/// All tokens, the last one kEnd. Errors: kBadInput for a character or a number that is not PTX, with its line.
Result<std::vector<Token>> tokenize(std::string_view text, std::string_view file);

}  // namespace kw::simulate
