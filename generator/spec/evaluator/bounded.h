// A value of the fp64 reference with an absolute error bound, and how the bound travels through pointwise arithmetic.
// Part of the evaluator (generator/spec/evaluator.h). The rules, for operands a ± ea, b ± eb and unit roundoff u of the accumulate type:
//   a + b      ea + eb, then u·(|v| + e) for the rounding of the result
//   a * b      |a|·eb + |b|·ea + ea·eb, then the rounding
//   monotone f max(f(a + ea) − f(a), f(a) − f(a − ea)), then a few u for the device's approximation (bounded.cpp lists them)
//   a < b      exact when the intervals are disjoint, else value ± 1 (undecided); where() then covers both branches
// "Not judged" is value 0 (or any finite number) with bound +inf: the arithmetic does not decide what comes out.
// NaN and ±inf with bound 0 are certain: the kernel must give the same.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <span>

#include "generator/spec/program.h"

namespace kw::generator {

struct Bounded {
  double value = 0;
  double bound = 0;
};

/// How the kernel rounds one operation. All zero for integers and booleans, which are exact.
struct Rounding {
  double unit = 0;             ///< unit roundoff u
  double smallest_normal = 0;  ///< device approximations may flush what is smaller
  double largest = std::numeric_limits<double>::infinity();
};

/// Rounding of a node of type `node` in a program that accumulates in `accumulate`: the coarser of the two decides.
Rounding rounding_of(DType node, DType accumulate);

inline Bounded not_judged() { return {0, std::numeric_limits<double>::infinity()}; }
inline bool is_judged(const Bounded& x) { return !std::isinf(x.bound); }

/// Pointwise function of the notation, except kWhere (lazy: the caller chooses the branch, see `either`).
Bounded apply(Function function, std::span<const Bounded> operands, const Rounding& rounding);
Bounded add(const Bounded& a, const Bounded& b, const Rounding& rounding);
Bounded multiply(const Bounded& a, const Bounded& b, const Rounding& rounding);

/// The value of a branch that may or may not be taken: `taken`, with a bound that covers `other` too.
Bounded either(const Bounded& taken, const Bounded& other);

/// `v ± e` as the result of an operation on `a` and `b`: overflow of the accumulate type, NaN and inf, operands that are not judged.
Bounded settle(double v, double e, const Bounded& a, const Bounded& b, const Rounding& rounding);

/// cast(): the rounded value. Its bound is 0 where all values within the operand's bound round alike: a kernel that leaves the rounding out
/// is outside it. Integers truncate and saturate.
Bounded cast_to(DType dtype, const Bounded& x);

/// Final store to the output's dtype: adds u_out·|v| and the smallest subnormal; a value beyond the type's range becomes what
/// rounding gives (f16: inf), one that may or may not overflow is not judged.
Bounded round_to_output(DType dtype, const Bounded& x);

/// Rounds to the dtype and back to double.
double round_to(DType dtype, double value);

}  // namespace kw::generator
