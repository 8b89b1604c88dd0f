// The template folder as embedded in the executable; the function is generated (cmake/EmbedFiles.cmake, target kw_templates).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "generator/rewrite/template_info.h"

namespace kw::generator {

/// Every file of KW_TEMPLATE_FILES (templates/CMakeLists.txt) by its path under templates/.
SourceTree builtin_template_sources();

}  // namespace kw::generator
