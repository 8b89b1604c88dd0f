// The fields of a kernel's `epilogue` parameter, made as the epilogue's text asks for them: pointers, strides, offsets, dims, scalars.
// The struct's text and the launch plan's fields are two prints of the same list, so they cannot disagree.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/base/launch_plan.h"
#include "generator/lower/names.h"
#include "generator/spec/program.h"

namespace kw::generator {

class EpilogueArguments {
 public:
  /// From now on numbers that follow from this dim alone are "known<2 * Config::MEMBER>(args.x_stride_m)": constants in the kernels whose
  /// config says what the dim is.
  void know(const std::string& dim, const std::string& member);
  /// "args.bias": pointer to a tensor's first element, of a list to a table of such pointers; writable when the kernel writes it.
  std::string pointer(const Tensor& tensor, bool is_written);
  /// A number of elements: the literal when it is constant, else a field called `wanted` (one field for equal expressions).
  std::string number(const std::string& wanted, const IntExpr& value);
  /// A launch-time scalar as float, double, int or long long.
  std::string scalar(const Scalar& scalar, const std::string& type);

  const std::vector<PlanField>& fields() const { return fields_; }
  /// "{ const Half* bias; ... }": the members of struct EpilogueArgs.
  std::string struct_body() const;

 private:
  std::string add(const std::string& key, PlanField field, const std::string& declaration_type);

  std::string known(const IntExpr& value, const std::string& field) const;

  std::string known_dim_, known_member_;
  NameTable names_{{}};
  std::map<std::string, std::string> by_key_;
  std::vector<PlanField> fields_;
  std::vector<std::string> types_;
};

}  // namespace kw::generator
