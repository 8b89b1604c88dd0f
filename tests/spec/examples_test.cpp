// Every example spec parses and checks, and its printed program says the same thing.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/spec/spec_helpers.h"

namespace kw::generator {

namespace {

std::string example(const std::string& name) {
  std::ifstream in(std::filesystem::path(KW_SOURCE_DIR) / "examples" / name / (name + ".op.toml"));
  REQUIRE(in.good());
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("the examples without user functions check") {
  for (const std::string name : {"matmul_bias_relu", "batched_matmul_residual", "attention_gqa"}) {
    INFO(name);
    const auto program = program_of(example(name));
    CHECK(program->name == name);
    CHECK_FALSE(program->problems.empty());
    CHECK(identity(*program_of(to_text(*program))) == identity(*program));
  }
}

TEST_CASE("the attention example has the extents of its heads and keys") {
  const auto program = program_of(example("attention_gqa"));
  CHECK(program->find_index("j")->extent == IntExpr::variable("Skv"));
  CHECK(to_text(program->statements[0].value).find("K[b,j,h // (Hq // Hkv),d]") != std::string::npos);
}

TEST_CASE("the attention example and its sugar have one identity") {
  std::string text = example("attention_gqa");
  const std::string written = identity(*program_of(text));
  text = text.substr(0, text.find("body = "));
  text.replace(text.find("G   = \"Hq // Hkv\"\n"), 18, "");
  text.replace(text.find("[scalars]\nscale = \"1/sqrt(D)\"\n"), 30, "");
  text += "body = \"O = attention(Q, K, V, causal = true)\"\n";
  CHECK(identity(*program_of(text)) == written);
}

TEST_CASE("the user function example names the functions that its file must define") {
  Diagnostics diagnostics;
  const auto spec = parse_op_spec(example("user_function"), "user_function.op.toml", {}, diagnostics);
  REQUIRE(spec != nullptr);
  CHECK(spec->functions_file == "my_ops.cuh");
  CHECK(spec->called_names == std::vector<std::string>{"leaky", "soft_clip"});
}

}  // namespace kw::generator
