// Names as the source has them, from the mangled symbols of a PTX text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kw::simulate {

/// Of a variable: "_ZZ6reducePKfE8partials" -> "partials"; names that are not mangled stay.
std::string short_name(const std::string& symbol);

/// Of a function, without namespaces, result and parameters: "_ZN2ns5scaleIfEEvPT_" -> "scale<float>"; names that are not mangled stay.
std::string function_name(const std::string& symbol);

}  // namespace kw::simulate
