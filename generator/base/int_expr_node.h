// The node behind IntExpr; shared by the two files that implement it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "generator/base/int_expr.h"

namespace kw {

struct IntExpr::Node {
  Op op;
  std::int64_t value;
  std::string name;
  std::vector<IntExpr> operands;
};

}  // namespace kw
