// Integer expressions over named variables: tensor extents, constraints, grids, shared-memory sizes.
// One tree serves the config space (fast evaluation), the stored launch plan (text) and the exported launcher (C++).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generator/base/error.h"

namespace kw {

using IntBindings = std::map<std::string, std::int64_t>;

/// An immutable integer expression. Division and remainder floor (Python's // and %); booleans are 0 and 1;
/// && and || and the selection are lazy. Arithmetic that leaves 64 bits is an error, never a wrap.
class IntExpr {
 public:
  enum class Op {
    kConst,
    kVar,
    kNeg,
    kNot,
    kAdd,
    kSub,
    kMul,
    kFloorDiv,
    kMod,
    kLt,
    kLe,
    kGt,
    kGe,
    kEq,
    kNe,
    kAnd,
    kOr,
    kSelect,
    kMin,
    kMax
  };

  IntExpr() : IntExpr(std::int64_t{0}) {}
  IntExpr(std::int64_t value);                                       // NOLINT: constants convert
  IntExpr(int value) : IntExpr(static_cast<std::int64_t>(value)) {}  // NOLINT: constants convert
  static IntExpr variable(std::string name);
  /// Builds an operation; folds constants that do not overflow and drops +0, *1.
  static IntExpr make(Op op, std::vector<IntExpr> operands);
  /// Reads the text that to_text() writes: C precedence, `//` floor division, `%`, `min(a,b)`, `max(a,b)`, `c ? a : b`.
  /// A variable is letters, digits, '_', '.' and starts with a letter or '_' ("M", "A.stride0", "BLOCK_M").
  static Result<IntExpr> parse(std::string_view text);

  Op op() const;
  std::int64_t constant() const;    ///< op() == kConst
  const std::string& name() const;  ///< op() == kVar
  std::span<const IntExpr> operands() const;
  bool is_constant() const { return op() == Op::kConst; }

  std::string to_text() const;
  /// C++ text over the same names with '.' replaced by '_'; every variable is assumed non-negative int64_t where divided.
  std::string to_cpp() const;
  Result<std::int64_t> evaluate(const IntBindings& bindings) const;
  void collect_variables(std::set<std::string>& names) const;
  /// Replaces variables by expressions; unknown names stay.
  IntExpr substitute(const std::map<std::string, IntExpr>& replacements) const;
  friend bool operator==(const IntExpr& a, const IntExpr& b);

 private:
  struct Node;
  std::shared_ptr<const Node> node_;
};

IntExpr operator+(const IntExpr& a, const IntExpr& b);
IntExpr operator-(const IntExpr& a, const IntExpr& b);
IntExpr operator*(const IntExpr& a, const IntExpr& b);
IntExpr floor_div(const IntExpr& a, const IntExpr& b);
IntExpr ceil_div(const IntExpr& a, const IntExpr& b);  ///< (a + b - 1) // b

/// An expression bound to slots: evaluates about 10^7 nodes a second without looking names up.
class CompiledIntExpr {
 public:
  /// `slots` lists the variable of each slot; every variable of `expr` must be there (KW_CHECK).
  CompiledIntExpr(const IntExpr& expr, std::span<const std::string> slots);
  /// Value; `is_valid` becomes false on overflow or division by zero (then 0 is returned).
  std::int64_t evaluate(std::span<const std::int64_t> slot_values, bool& is_valid) const;

 private:
  struct Instruction {
    IntExpr::Op op;
    std::int64_t value;
    int jump;
  };
  std::vector<Instruction> code_;
  int max_stack_ = 0;
};

}  // namespace kw
