// Extents of indices from their uses: an index that stands alone on an axis has the axis' extent, unless [index] states one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "generator/base/error.h"
#include "generator/base/int_expr.h"

namespace kw::generator {

/// Whether two extents are the same for every value of the dims (equal trees, or equal at several points of large primes).
bool is_same_extent(const IntExpr& a, const IntExpr& b);

class ExtentSolver {
 public:
  /// [index] says so: other uses must only stay inside their axes.
  void state(const std::string& index, const IntExpr& extent);
  /// The index stands alone on an axis of this extent ("axis 1 of A").
  void use(const std::string& index, const IntExpr& extent, const std::string& axis, const SourceRange& where);
  /// Two indices name the same axis of an intermediate.
  void link(const std::string& index, const std::string& other, const SourceRange& where);
  /// The index occurs.
  void mention(const std::string& index, const SourceRange& where);

  /// One extent for each index in order of first mention; reports indices with two extents and, if asked, with none.
  std::vector<std::pair<std::string, IntExpr>> solve(Diagnostics& diagnostics, bool reports_unknown) const;

 private:
  struct Use {
    std::string index;
    IntExpr extent;
    std::string axis;
    SourceRange where;
  };
  struct Link {
    std::string index, other;
    SourceRange where;
  };
  std::map<std::string, IntExpr> stated_;
  std::vector<Use> uses_;
  std::vector<Link> links_;
  std::vector<std::pair<std::string, SourceRange>> order_;
  std::map<std::string, bool> is_mentioned_;
};

}  // namespace kw::generator
