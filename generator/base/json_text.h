// JSON text from a file, the database or a child, with a bound on its depth: code that walks a value is recursive, and the text may
// come from anybody. Used by every reader of JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "generator/base/error.h"

namespace kw {

/// Arrays and objects inside one another; ours have fewer than 10.
inline constexpr int kMaxJsonDepth = 100;

/// Error kBadInput: where the text stops being JSON, or that it is nested too deep.
Result<nlohmann::json> json_from_text(const std::string& text);

}  // namespace kw
