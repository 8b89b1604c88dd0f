// The look at TOML text before its parser: each part of a dotted key is a table inside the one before, and the parser, the copy and the
// release of tables recurse. Values nested in brackets are bounded by the parser itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "generator/base/error.h"

namespace kw {

constexpr int kMaxKeyParts = 16;  ///< a spec needs three, a launch file two

/// Refuses a dotted key of more than kMaxKeyParts parts, with its place. `text` is UTF-8; whether it is TOML is the parser's question.
Status check_key_parts(std::string_view text, const std::string& file_name);

}  // namespace kw
