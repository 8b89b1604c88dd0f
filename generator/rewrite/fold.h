// The folding step of specialise(): a filled template -> the same kernel without what its config does not use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "generator/base/error.h"

namespace kw::generator {

/// Parses the text, keeps the taken side of every branch that all reached instantiations agree on, and drops declarations that the
/// kernel does not reach, each with its comments. Errors: clang's, with the place in the filled text.
Result<std::string> fold_unused(const std::string& text, const std::string& kernel);

}  // namespace kw::generator
