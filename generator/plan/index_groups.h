// The indices of a program sorted into the roles a contraction template knows (batch, own index of A, own index of B, reduced),
// and several indices of one role flattened into one where every tensor allows it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/plan/linear_form.h"

namespace kw::generator {

/// One tensor access: where it is and the stride of each program index (0 when it lacks it), in elements.
struct Access {
  std::string tensor;
  std::map<std::string, IntExpr> strides;
  IntExpr offset;
};

/// The access of a read or store at these subscripts. False with the reason when the tensor is none, or the offset is not affine.
bool make_access(const std::string& tensor_name, const std::vector<ExprRef>& subscripts, const Program& program, Access& access,
                 std::string& why_not);

/// One pattern index: the program indices it stands for, the slowest first, and their extents.
struct IndexGroup {
  std::vector<std::string> indices;
  std::vector<IntExpr> extents;

  IntExpr extent() const;
  /// "i" or "i,j"; empty when the program has no such index.
  std::string name() const;
  /// Stride of the flattened index: that of the fastest member. 0 for an empty group.
  IntExpr stride(const Access& access) const;
  /// Value of each member in terms of the pattern index: "m", or m // E and m % E.
  std::map<std::string, ExprRef> member_values(const std::string& pattern_index) const;
};

/// Orders the group so that it is one index with a common stride in every access that uses it. False with the reason when there is no such
/// order.
bool flatten(IndexGroup& group, const std::vector<const Access*>& accesses, std::string& why_not);

}  // namespace kw::generator
