// Names of the emitted text: unique, and never a word of C++ or of the template. Types and literals of C++.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "generator/base/dtype.h"

namespace kw::generator {

/// Hands out names of one scope (the fields of a struct, the locals of a function).
class NameTable {
 public:
  explicit NameTable(std::set<std::string> reserved) : taken_(std::move(reserved)) {}
  /// `wanted`, or wanted_2, wanted_3 ... when it is taken or is a reserved word.
  std::string unique(const std::string& wanted);

 private:
  std::set<std::string> taken_;
};

/// C++ type in which a value of this type is computed: float or double for reals (by `accumulate`), int, long long, bool.
std::string value_type_name(DType dtype, DType accumulate);

/// A literal of that type that reads back to the same value.
std::string literal(double value, const std::string& type);

}  // namespace kw::generator
