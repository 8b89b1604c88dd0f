// See symbol_name.h.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/launch/symbol_name.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/launch/launch_file.h"

namespace kw::simulate {
namespace {

/// Empty when the symbol is not mangled.
std::string demangled(const std::string& symbol) {
  int status = -1;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : std::string();
}

/// The last character in text[0, end) that is `wanted` outside of all brackets; npos when there is none.
std::size_t last_outside_brackets(const std::string& text, std::size_t end, char wanted) {
  int depth = 0;
  for (std::size_t at = end; at-- > 0;) {
    const char c = text[at];
    if (c == wanted && depth == 0) return at;
    if (c == ')' || c == '>') ++depth;
    if (c == '(' || c == '<') --depth;
    if (c == wanted && depth == 0) return at;
  }
  return std::string::npos;
}

}  // namespace

std::string short_name(const std::string& symbol) {
  const std::string name = demangled(symbol);
  if (name.empty()) return symbol;
  const std::size_t last = name.rfind("::");
  return last == std::string::npos ? name : name.substr(last + 2);
}

std::string function_name(const std::string& symbol) {
  const std::string name = demangled(symbol);
  if (name.empty()) return symbol;
  const std::size_t parameters = last_outside_brackets(name, name.size(), '(');
  const std::size_t end = parameters == std::string::npos ? name.size() : parameters;
  std::size_t start = 0;
  for (const char separator : {' ', ':'}) {
    const std::size_t at = last_outside_brackets(name, end, separator);
    if (at != std::string::npos) start = std::max(start, at + 1);
  }
  return name.substr(start, end - start);
}

Result<std::string> find_kernel_symbol(const LaunchFile& file, const Module& module) {
  const std::string& wanted = file.call.kernel;
  std::vector<std::string> all;
  std::vector<std::string> fitting;
  for (const Kernel& kernel : module.kernels) {
    const std::string name = function_name(kernel.name);
    if (kernel.name == wanted) return wanted;
    all.push_back(name);
    if (wanted.empty() || name == wanted || name.substr(0, name.find('<')) == wanted) fitting.push_back(kernel.name);
  }
  if (fitting.size() == 1) return fitting[0];
  const std::string found = all.empty() ? "none" : fmt::format("{}", fmt::join(fitting.empty() ? all : fitting, ", "));
  const std::string subject = wanted.empty() ? "kernel: must be given" : fmt::format("kernel = '{}'", wanted);
  return fail(
      Stage::kCommandLine, Code::kBadInput,
      fmt::format("{}: {} has {}{}", subject, module.file, fitting.size() > 1 && !wanted.empty() ? "several of that name: " : "", found),
      {file.file, 0, 0});
}

}  // namespace kw::simulate
