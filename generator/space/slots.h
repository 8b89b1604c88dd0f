// Tunables as numbered slots: integer expressions of a template compiled so that only the tunables still vary.
// Shared by the enumeration (rules) and the analytic model (estimates).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "generator/space/config_space.h"

namespace kw::generator {

/// Values of everything that is fixed for one problem on one device: bindings, problem variables, limits.
IntBindings fixed_bindings(const SpaceContext& context);

/// Where the spec gives the values of a tunable; nowhere when it does not.
SourceRange override_place(const SpaceContext& context, const std::string& name);

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

/// The values of every tunable: the template's, or those of [tune]. Errors: an override that names no tunable, an empty list.
Result<std::vector<std::vector<std::int64_t>>> tunable_values(const SpaceContext& context);

/// One point of a space: a position in each tunable's list, and the values there.
struct SpacePoint {
  std::vector<std::size_t> digits;
  std::vector<std::int64_t> values;
};
/// The point of an ordinal; the last tunable runs fastest.
void decode_point(std::uint64_t ordinal, const std::vector<std::vector<std::int64_t>>& values, SpacePoint& point);

/// An expression that remembers its values. It depends on few tunables, so a table over those answers all but the first question.
class RememberedExpr {
 public:
  RememberedExpr(SlotExpr expr, const std::vector<std::vector<std::int64_t>>& values);
  /// Empty where it cannot be evaluated.
  std::optional<std::int64_t> at(const SpacePoint& point);

 private:
  enum class State : unsigned char { kUnknown = 0, kKnown = 1, kInvalid = 2 };
  struct Entry {
    std::int64_t value = 0;
    State state = State::kUnknown;
  };
  Entry evaluate(const SpacePoint& point) const;

  SlotExpr expr_;
  std::vector<std::uint64_t> weights_;  ///< by position in expr_.used()
  std::vector<Entry> entries_;          ///< empty: too many combinations to remember
};

}  // namespace kw::generator
