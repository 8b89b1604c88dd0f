// Normal forms of integer expressions: strides that mean the same compare equal, and subscripts split into
// coefficient times index plus constant. Used by the matcher (generator/plan) and by the epilogue (generator/lower).
// In: IntExpr over dims, ExprRef over indices and dims. Out: values; nothing here fails, what is not linear stays an atom.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/spec/program.h"

namespace kw::generator {

/// Sum of products with collected coefficients and a fixed order of terms. An expression that overflows is returned as it is.
IntExpr normalise(const IntExpr& expr);
/// Whether two expressions are the same polynomial. False may also mean "not known".
bool are_equal(const IntExpr& a, const IntExpr& b);

/// constant + sum of coefficient * atom. An atom is an index value or an integer expression that is not linear (`h // G`, a gather).
struct LinearForm {
  struct Term {
    ExprRef atom;
    IntExpr coefficient;
  };
  std::map<std::string, Term> terms;  ///< by the atom's text
  IntExpr constant;

  /// Adds `factor` times the other form.
  void add(const LinearForm& other, const IntExpr& factor);
  /// Whether every atom is a plain index.
  bool is_affine() const;
  /// Coefficient of the index `name`, 0 when it does not occur.
  IntExpr coefficient_of(const std::string& name) const;
};

LinearForm linear_form(const ExprRef& expr);

/// Element offset of a read or store: sum of subscript * stride, with `E*(x // E) + x % E` folded back to x.
LinearForm element_offset(const std::vector<ExprRef>& subscripts, const std::vector<IntExpr>& strides);

/// Element offset from the pointer that a kernel has: of a list of tensors from the first element of the tensor that the first subscript
/// names.
LinearForm offset_in_tensor(const Tensor& tensor, const std::vector<ExprRef>& subscripts);

/// The expression of an IntExpr over dims as an ExprRef (for index values inside epilogues).
ExprRef from_int_expr(const IntExpr& expr);

}  // namespace kw::generator
