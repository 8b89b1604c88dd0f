// Walks over typed expressions. Expressions are graphs: a value that is used twice is one node. Written out as a tree a program of 40
// statements that read their predecessor twice has 2^40 parts, so that a walk comes to a node once (as rewrite() of program.h does).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "generator/spec/program.h"

namespace kw::generator {

/// Calls `enter` with each node once, a node before its operands; where it returns false the node's operands are not visited from there.
void visit_nodes(const ExprRef& expr, const std::function<bool(const ExprRef&)>& enter);

/// Whether `is_wanted` holds for any node.
bool any_node(const ExprRef& expr, const std::function<bool(const ExprRef&)>& is_wanted);

/// Parts of `expr` written out as a tree; counts up to `limit` and gives that when there are more. to_text() prints long parts of an
/// expression of more than 200,000 parts as "#" and a hash: equal texts still mean equal expressions.
std::int64_t count_parts(const ExprRef& expr, std::int64_t limit);

}  // namespace kw::generator
