// Sugar expands to plain notation, which can be shown, and says the same as the written body.
// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "tests/spec/spec_helpers.h"

namespace kw::generator {

namespace {

std::string spec_with(const std::string& tensors, const std::string& compute) {
  return "name = \"t\"\n[dims]\nM = 8\nN = 6\nK = 4\nF = 10\n[tensors]\n" + tensors + "[compute]\n" + compute;
}

const char* kMatmulTensors =
    "A = { dtype = \"f16\", shape = [\"M\", \"K\"] }\nB = { dtype = \"f16\", shape = [\"K\", \"N\"] }\nbias = { dtype = \"f16\", shape = "
    "[\"N\"] }\n"
    "g = { dtype = \"f16\", shape = [\"M\", \"F\"] }\nout = { dtype = \"f16\", shape = [\"M\", \"N\"], role = \"out\" }\n";

std::string without_g(std::string text) {
  const std::size_t start = text.find("g = {");
  text.erase(start, text.find('\n', start) + 1 - start);
  const std::size_t dim = text.find("F = 10\n");
  return text.erase(dim, 7);
}

}  // namespace

TEST_CASE("a chain is a body: matmul, a bias along the last axis, an operator and functions") {
  const auto chained = program_of(without_g(spec_with(kMatmulTensors, "chain = \"matmul(A, B) -> bias -> * 0.5 -> relu -> max(0.1)\"\n")));
  const auto written =
      program_of(without_g(spec_with(kMatmulTensors, "body = \"out[m,n] = max(relu((sum[k](A[m,k] * B[k,n]) + bias[n]) * 0.5), 0.1)\"\n")));
  CHECK(canonical_text(*chained) == canonical_text(*written));
  CHECK(to_text(*chained).find("acc[m,n] = sum[k](A[m,k] * B[k,n])\nout[m,n] = max(relu((acc[m,n] + bias[n]) * 0.5), 0.1)") !=
        std::string::npos);
}

TEST_CASE("an op may be the argument of an op and its result may be read on") {
  const std::string tensors =
      "x = { dtype = \"bf16\", shape = [\"M\", \"K\"] }\nw = { dtype = \"bf16\", shape = [\"K\"] }\nwg = { dtype = \"bf16\", shape = "
      "[\"F\", \"K\"] }\nwu = { dtype = \"bf16\", shape = [\"F\", \"K\"] }\n"
      "wd = { dtype = \"bf16\", shape = [\"N\", \"F\"] }\nb = { dtype = \"bf16\", shape = [\"N\"] }\nout = { dtype = \"bf16\", shape = "
      "[\"M\", \"N\"], role = \"out\" }\n";
  const auto program = program_of(spec_with(
      tensors, "body = \"\"\"\nh = rmsnorm(x, w, eps = 1e-5)\nout = linear(swiglu(linear(h, wg), linear(h, wu)), wd, b)\n\"\"\"\n"));
  CHECK(program->statements.size() == 5);
  CHECK(identity(*program_of(to_text(*program))) == identity(*program));
}

TEST_CASE("layernorm subtracts the mean") {
  const std::string tensors =
      "x = { dtype = \"f32\", shape = [\"M\", \"N\"] }\nw = { dtype = \"f32\", shape = [\"N\"] }\nb = { dtype = \"f32\", shape = [\"N\"] "
      "}\nout = { dtype = \"f32\", shape = [\"M\", \"N\"], role = \"out\" }\n";
  std::string text = spec_with(tensors, "body = \"out = layernorm(x, w, b)\"\n");
  text.replace(text.find("K = 4\nF = 10\n"), 13, "");
  CHECK(program_of(text)->statements.size() == 2);
}

TEST_CASE("sugar that does not fit is refused with the reason") {
  const auto says = [](const std::string& compute, const std::string& part) {
    const std::string messages = check_text(spec_with(kMatmulTensors, compute)).messages;
    INFO(messages);
    CHECK(messages.find(part) != std::string::npos);
  };
  says("body = \"out = matmul(A, g)\"\n", "has an extent that neither matrix axis of g has");
  says("body = \"out = matmul(A)\"\n", "takes two tensors, not 1");
  says("body = \"out = matmul(A, Q)\"\n", "unknown tensor 'Q'");
  says("body = \"out = matmul(A, B, transposed = true)\"\n", "takes no argument named 'transposed'");
  says("body = \"out[m,n] = matmul(A, B)\"\n", "makes a whole tensor");
  says("body = \"out = attention(A, B, g)\"\n", "not four");
  says("chain = \"matmul(A, B) -> relo\"\n", "unknown function 'relo'");
}

TEST_CASE("a block of another file is called like a function") {
  const FileReader files = [](const std::string& name) -> Result<std::string> {
    if (name != "rope.op.toml") return fail(Stage::kSpec, Code::kIo, "no such file");
    return std::string(R"toml(name = "scaled"
[dims]
R = "any"
C = "any"
[tensors]
v = { dtype = "f32", shape = ["R", "C"] }
s = { dtype = "f32", shape = ["C"] }
o = { dtype = "f32", shape = ["R", "C"], role = "out" }
[scalars]
gain = 2.0
[compute]
body = """
n[r] = sum[c](v[r,c] * v[r,c]) / C
o[r,c] = gain * v[r,c] * s[c] * rsqrt(n[r])
"""
)toml");
  };
  const std::string more = "w = { dtype = \"f32\", shape = [\"N\"] }\n";
  const auto called =
      program_of("use = \"rope.op.toml\"\n" + pointwise_spec("t = scaled(x, w, gain = 3.0)\ny[m,n] = t[m,n] + 1", more), {}, files);
  const auto written = program_of(pointwise_spec("y[m,n] = 3.0 * x[m,n] * w[n] * rsqrt(sum[k](x[m,k] * x[m,k]) / N) + 1", more));
  CHECK(canonical_text(*called) == canonical_text(*written));
  CHECK(check_text("use = \"none.op.toml\"\n" + pointwise_spec("y[m,n] = x[m,n]"), {}, files)
            .messages.find("use of 'none.op.toml': no such file") != std::string::npos);
  CHECK(check_text("use = \"../rope.op.toml\"\n" + pointwise_spec("y[m,n] = x[m,n]"), {}, files)
            .messages.find("not inside the spec's folder") != std::string::npos);
  CHECK(
      check_text("use = \"rope.op.toml\"\n" + pointwise_spec("y = scaled(x)"), {}, files).messages.find("takes 2 tensors (v, s), not 1") !=
      std::string::npos);
}

TEST_CASE("files that use each other are refused as a cycle, by their names") {
  const auto messages = [](const std::map<std::string, std::string>& uses) {
    const auto text_of = [&uses](const std::string& name) {
      std::string text = "use = \"" + uses.at(name) + "\"\n" + pointwise_spec("y[m,n] = x[m,n]");
      return text.replace(text.find("name = \"t\""), 10, "name = \"" + name.substr(0, name.find('.')) + "\"");
    };
    const FileReader files = [&](const std::string& name) -> Result<std::string> {
      return text_of(name.substr(name.find_last_of('/') + 1));
    };
    return check_text(text_of("t.op.toml"), {}, files).messages;
  };
  CHECK(messages({{"t.op.toml", "t.op.toml"}}).find("t.op.toml:1:7: use of 't.op.toml' is a cycle: t.op.toml -> t.op.toml\n") == 0);
  CHECK(messages({{"t.op.toml", "a.op.toml"}, {"a.op.toml", "b.op.toml"}, {"b.op.toml", "./a.op.toml"}})
            .find("b.op.toml:1:7: use of './a.op.toml' is a cycle: a.op.toml -> b.op.toml -> a.op.toml\n") == 0);
  std::map<std::string, std::string> chain = {{"t.op.toml", "f0.op.toml"}};
  for (int i = 0; i < 10; ++i) chain["f" + std::to_string(i) + ".op.toml"] = "f" + std::to_string(i + 1) + ".op.toml";
  CHECK(messages(chain).find("f7.op.toml:1:7: use of 'f8.op.toml' is nested deeper than 8 files: t.op.toml -> f0.op.toml") == 0);
}

}  // namespace kw::generator
