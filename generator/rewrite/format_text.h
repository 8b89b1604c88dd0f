// Formats emitted CUDA C++ with LibFormat so that it reads as formatted by hand. Last step of specialise().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "generator/base/error.h"

namespace kw::generator {

/// Google's style at 110 columns; in a text with a line of more than 40 nested brackets what LibFormat gives up on stays as it is.
/// Errors (kInternal): the text has unbalanced brackets.
Result<std::string> format_cuda(const std::string& text);

}  // namespace kw::generator
