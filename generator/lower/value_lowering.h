// Calls and casts of the notation -> C++ text in the kernel's own types. Leaves and the order of statements are the caller's
// (epilogue_writer.cpp); nothing here knows where a value comes from.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "generator/lower/names.h"
#include "generator/lower/support_functions.h"
#include "generator/spec/program.h"

namespace kw::generator {

/// C++ text of a value: its type and how tightly it binds (0 ?: ... 8 a name or a call).
struct LoweredValue {
  std::string text;
  std::string type;
  int level = 8;
};

/// The text in parentheses when it binds less tightly than `level`.
std::string at_level(const LoweredValue& value, int level);
/// The value as another C++ type.
LoweredValue converted(const LoweredValue& value, const std::string& type);

/// Text of calls and casts over already lowered operands.
class OperationLowering {
 public:
  /// `approximates`: every result has 16 bits or fewer, so exponentials and quotients of float need not have all of theirs.
  OperationLowering(DType accumulate, bool approximates, SupportFunctions& support)
      : accumulate_(accumulate), approximates_(approximates && accumulate == DType::kF32), support_(support) {}

  Result<LoweredValue> call(const ExprNode& node, const std::vector<LoweredValue>& operands);
  Result<LoweredValue> cast(DType dtype, const LoweredValue& operand);
  std::string type_of(DType dtype) const { return value_type_name(dtype, accumulate_); }
  std::string real_type() const { return accumulate_ == DType::kF64 ? "double" : "float"; }

 private:
  LoweredValue binary(const char* symbol, int level, const LoweredValue& left, const LoweredValue& right, const std::string& type) const;
  LoweredValue compare(const char* symbol, int level, const LoweredValue& left, const LoweredValue& right) const;
  LoweredValue function(const std::string& name, const std::vector<LoweredValue>& operands, const std::string& type,
                        const std::string& result_type) const;
  LoweredValue helper(const std::string& name, const std::vector<LoweredValue>& operands, const std::string& type,
                      const std::string& result_type);
  LoweredValue arithmetic(const ExprNode& node, const std::vector<LoweredValue>& operands, const std::string& type);
  LoweredValue real_function(const ExprNode& node, const std::vector<LoweredValue>& operands, const std::string& type);

  DType accumulate_;
  bool approximates_;
  SupportFunctions& support_;
};

}  // namespace kw::generator
