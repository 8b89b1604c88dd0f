// Helper functions that an epilogue's text may call: what CUDA has no built-in for, or where its built-in drops NaN.
// Only those that are used are printed, in a fixed order, before everything else of the kernel's text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <utility>

namespace kw::generator {

/// Helpers asked for, by name and the C++ type they work in ("float", "double", "long long", "int").
class SupportFunctions {
 public:
  /// Notes that `name` is used for `type` and returns the name to call.
  std::string use(const std::string& name, const std::string& type);
  /// Every helper there is.
  static std::set<std::string> names();
  /// The functions' text, the ones they call first.
  std::string text() const;

 private:
  std::set<std::pair<std::string, std::string>> used_;
};

/// CUDA's own spelling of a math function for float or double: exp -> expf.
std::string math_function(const std::string& name, const std::string& type);

}  // namespace kw::generator
