// The sentence behind a refused config: rule, reason, and the numbers that broke it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "generator/rewrite/template_info.h"

namespace kw::generator {

/// "smem_fits: the stages must fit one CTA's shared memory: needs 245760 <= 232448 (BLOCK_M = 256, STAGES = 5)". Of a conjunction
/// the first part that fails is shown.
std::string broken_rule_text(const Rule& rule, const IntBindings& bindings);

}  // namespace kw::generator
