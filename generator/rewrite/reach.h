// Which declarations the kernel reaches, and which way every branch goes, over all template instantiations that are reached.
// Private to the folding step; works on a syntax map of the same text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "generator/base/error.h"
#include "generator/rewrite/syntax_map.h"

namespace kw::generator {

/// Which part of an if statement runs.
enum class Outcome { kThen, kElse };

struct Reach {
  std::vector<bool> is_live;                          ///< by unit
  std::vector<bool> is_seen;                          ///< local units that the walk met: only these may be dropped
  std::map<std::size_t, std::set<Outcome>> outcomes;  ///< by branch index; a branch never reached is absent
};

/// Errors (kInternal): no kernel of that name.
Result<Reach> walk_from_kernel(clang::ASTContext& context, const SyntaxMap& syntax, const std::string& kernel);

}  // namespace kw::generator
