// "K=4096,M=1024": ordered name=integer lists, the text form of configs and problems.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "generator/base/int_expr.h"

namespace kw {

std::string key_values_to_text(const IntBindings& values);
/// Errors name the item: "M=x: the value must be an integer", a name given twice, an empty item.
Result<IntBindings> key_values_from_text(std::string_view text, Stage stage);

}  // namespace kw
