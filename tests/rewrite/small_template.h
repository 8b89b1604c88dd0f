// A template in miniature for the tests of generator/rewrite: annotations are the real ones, the rest is made up per test.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "generator/rewrite/builtin_templates.h"
#include "generator/rewrite/specialise.h"

namespace kw::generator::test {

/// A tree that holds parts/annotations.cuh and `body` behind its include as "small.cuh". Line 1 is the include.
inline SourceTree tree_of(const std::string& body) {
  SourceTree tree;
  tree["parts/annotations.cuh"] = builtin_template_sources().at("parts/annotations.cuh");
  tree["small.cuh"] = "#include \"parts/annotations.cuh\"\n" + body;
  return tree;
}

/// Config with one tunable (1, 2, 4; default 2), one flag and one bound type.
inline const std::string kSmallConfig = R"(
struct Config {
  using Element BIND("dtype:A") = float;
  TUNE("w", 1, 2, 4) static constexpr int WIDTH = 2;  ///< elements of a thread
  TUNE("f", false, true) static constexpr bool FAST = false;
  static constexpr int kUnused = 7;
};
)";

inline const std::string kSmallKernel = R"kw(
COMPUTES("out[i] = epilogue(A[i])") REQUIRES_ARCH("sm_80")
extern "C" __global__ void small(const Config::Element* A, Config::Element* out) )kw";

/// Reads and specialises "small.cuh"; empty hooks, kernel name "k", no banner lines.
inline Result<std::string> specialise_small(const std::string& body, IntBindings values, std::map<std::string, std::string> hooks = {}) {
  const SourceTree tree = tree_of(body);
  KW_TRY(const TemplateInfo info, read_template(tree, "small.cuh"));
  return specialise({&tree, &info, std::move(values), {{"Element", "float"}}, std::move(hooks), "", "k", "banner"});
}

}  // namespace kw::generator::test
