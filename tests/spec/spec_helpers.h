// Helpers of the spec tests: check a text, expect a program or the messages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "generator/spec/op_spec.h"
#include "tests/catch.h"

namespace kw::generator {

struct Checked {
  std::shared_ptr<const Program> program;
  std::string messages;
};

inline Checked check_text(std::string_view text, const UserFunctions& functions = {}, const FileReader& read_file = {}) {
  Diagnostics diagnostics;
  Checked checked;
  const auto spec = parse_op_spec(text, "t.op.toml", read_file, diagnostics);
  if (spec) checked.program = check_op_spec(*spec, functions, diagnostics);
  checked.messages = diagnostics.to_text();
  return checked;
}

inline std::shared_ptr<const Program> program_of(std::string_view text, const UserFunctions& functions = {},
                                                 const FileReader& read_file = {}) {
  const Checked checked = check_text(text, functions, read_file);
  INFO(text);
  INFO(checked.messages);
  REQUIRE(checked.program != nullptr);
  return checked.program;
}

/// A spec with A [M,K], B [N,K], bias [N], out [M,N] in f16 around the body.
inline std::string matmul_spec(const std::string& body, const std::string& more = "") {
  return R"toml(name = "t"
[dims]
M = 64
N = 32
K = 16
[tensors]
A = { dtype = "f16", shape = ["M", "K"] }
B = { dtype = "f16", shape = ["N", "K"] }
bias = { dtype = "f16", shape = ["N"] }
out = { dtype = "f16", shape = ["M", "N"], role = "out" }
)toml" + more +
         "[compute]\nbody = \"\"\"\n" + body + "\n\"\"\"\n";
}

/// A spec with x [M,N], y [M,N] out in f32, i [M] i32, b [M,N] bool around the body.
inline std::string pointwise_spec(const std::string& body, const std::string& more = "") {
  return R"toml(name = "t"
[dims]
M = 8
N = 6
[tensors]
x = { dtype = "f32", shape = ["M", "N"] }
y = { dtype = "f32", shape = ["M", "N"], role = "out" }
)toml" + more +
         "[compute]\nbody = \"\"\"\n" + body + "\n\"\"\"\n";
}

}  // namespace kw::generator
