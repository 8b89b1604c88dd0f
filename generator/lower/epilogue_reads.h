// How the epilogue reaches a tensor's elements: a base pointer over b, m, n with strides as fields, or an offset made of integer
// expressions. And which reads may be done up front: a read under `where` happens only where its branch is taken.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "generator/plan/fusion_group.h"
#include "generator/plan/linear_form.h"

namespace kw::generator {

/// One distinct read of an epilogue (by text).
struct EpilogueRead {
  ExprRef node;
  LinearForm offset;              ///< elements, over b, m, n and atoms that are not linear
  bool is_unconditional = false;  ///< some output needs it whatever the data
  bool is_inside = false;         ///< every subscript is a pattern index that runs over the whole axis: safe to read up front

  /// Whether the address is base + b * stride + m * stride + n * stride.
  bool is_affine() const { return offset.is_affine(); }
  /// Whether neighbours along n lie a stride apart: nothing else of the address depends on n.
  bool is_vector() const;
  bool can_load_first() const { return is_vector() && (is_unconditional || is_inside); }
};

/// The reads of all output values and reductions in order of first occurrence, except values from outside ("acc", results of reductions).
std::vector<EpilogueRead> collect_reads(const PatternMatch& match, const Program& program);

}  // namespace kw::generator
