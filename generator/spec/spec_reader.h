// Reads the sections of an op spec from TOML into OpSpecSyntax. Private to generator/spec.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "generator/spec/syntax.h"
#include "generator/spec/toml_view.h"

namespace kw::generator {

/// Shared by the readers of the sections: messages, typed access, unknown keys.
class SectionReader {
 public:
  SectionReader(OpSpecSyntax& syntax, Diagnostics& diagnostics) : syntax_(syntax), diagnostics_(diagnostics) {}

  void read_dims(const TomlValue& table);
  void read_problems(const TomlValue& array);
  void read_tensors(const TomlValue& table);
  void read_scalars(const TomlValue& table);
  void read_indices(const TomlValue& table);
  void read_compute(const TomlValue& table);
  void read_tune(const TomlValue& table);

  void error(const SourceRange& where, std::string message, Code code = Code::kBadInput);
  /// Reports when `value` is not of `kind`.
  bool expect(const TomlValue& value, TomlValue::Kind kind, std::string_view subject);
  void refuse_unknown_keys(const TomlValue& table, std::string_view subject, std::initializer_list<std::string_view> known);
  /// Reports a name that does not fit [A-Za-z_][A-Za-z0-9_]{0,63} or is a word of the notation.
  bool expect_name(std::string_view name, const SourceRange& where, std::string_view what);

 private:
  SyntaxRef expression(const TomlValue& value, std::string_view subject);
  std::vector<SyntaxRef> expressions(const TomlValue& value, std::string_view subject);
  std::optional<DType> dtype(const TomlValue& value, std::string_view subject);
  bool dim_value(const TomlValue& value, std::string_view subject, std::vector<std::int64_t>& values);
  void read_tensor(const std::string& name, const SourceRange& where, const TomlValue& table);
  void read_role(const TomlValue& value, TensorSyntax& tensor);
  void read_strides(const TomlValue& value, TensorSyntax& tensor);
  void read_properties(const TomlValue& table, TensorSyntax& tensor);
  void read_problem_entry(const std::string& key, const TomlValue& value, const SourceRange& where, ProblemSyntax& problem);
  void read_accumulate(const TomlValue& table);
  void read_tune_values(const std::string& key, const TomlValue& value);

  OpSpecSyntax& syntax_;
  Diagnostics& diagnostics_;
};

/// "unknown key 'dtyp' ...; did you mean 'dtype'?": the tail with the suggestion, or "".
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

}  // namespace kw::generator
