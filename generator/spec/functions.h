// The names that the notation knows: pointwise functions with their arity, and reductions. One sorted table each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "generator/spec/program.h"

namespace kw::generator {

/// How the type of a pointwise function follows from its operands.
enum class TypeRule {
  kArithmetic,  ///< exact integers stay exact, else real
  kReal,        ///< real
  kPredicate,   ///< bool of a number
  kSelect,      ///< where
};

struct Builtin {
  std::string_view name;
  Function function;
  int num_arguments;  ///< min and max take this many or more
  TypeRule rule;
};

const std::vector<Builtin>& builtins();
const Builtin* find_builtin(std::string_view name);
std::optional<ReduceOp> find_reduction(std::string_view name);
const std::vector<std::string>& reduction_names();

}  // namespace kw::generator
