// A small op for the tests of baselines, and its spec file.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <memory>
#include <string>

#include "tests/catch.h"
#include "tuner/session/ranked_problem.h"
#include "tuner/session/spec_file.h"

namespace kw::tuner::test {

inline std::string spec_text(const std::string& value) {
  return "name = \"small\"\n[dims]\nM = 8\nN = 24\nK = 16\n[tensors]\n"
         "A = { dtype = \"f16\", shape = [\"M\", \"K\"] }\nB = { dtype = \"f16\", shape = [\"N\", \"K\"] }\n"
         "bias = { dtype = \"f16\", shape = [\"N\"] }\nout = { dtype = \"f16\", shape = [\"M\", \"N\"], role = \"out\" }\n"
         "[compute]\nbody = \"\"\"\nacc[m,n] = sum[k](A[m,k] * B[n,k])\nout[m,n] = " +
         value + "\n\"\"\"\n";
}

/// The spec of a whole text, written to `path`.
inline std::shared_ptr<const LoadedSpec> load_text(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  Diagnostics diagnostics;
  auto spec = load_spec(path, diagnostics);
  if (spec == nullptr) FAIL(diagnostics.to_text());
  return spec;
}

inline std::shared_ptr<const LoadedSpec> load(const std::string& path, const std::string& value) {
  return load_text(path, spec_text(value));
}

}  // namespace kw::tuner::test
