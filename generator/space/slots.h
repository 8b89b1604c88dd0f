// Tunables as numbered slots: integer expressions of a template compiled so that only the tunables still vary.
// Shared by the enumeration (rules) and the analytic model (estimates).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "generator/space/config_space.h"

namespace kw::generator {

/// Values of everything that is fixed for one problem on one device: bindings, problem variables, limits.
IntBindings fixed_bindings(const SpaceContext& context);

/// `expr` with the fixed values put in.
IntExpr with_fixed(const IntExpr& expr, const IntBindings& fixed);

/// An expression over the tunables of a template.
class SlotExpr {
 public:
  /// Error: the expression names a variable that is neither fixed nor a tunable; `subject` says whose it is.
  static Result<SlotExpr> create(const IntExpr& expr, const IntBindings& fixed, std::span<const std::string> tunables,
                                 const std::string& subject);

  /// `values`: one per tunable of the template, in its order.
  std::int64_t evaluate(std::span<const std::int64_t> values, bool& is_valid) const;
  /// The tunables it uses, as positions.
  const std::vector<int>& used() const { return used_; }

 private:
  SlotExpr(const IntExpr& expr, std::span<const std::string> tunables, std::vector<int> used)
      : used_(std::move(used)), code_(expr, tunables) {}

  std::vector<int> used_;
  CompiledIntExpr code_;
};

}  // namespace kw::generator
