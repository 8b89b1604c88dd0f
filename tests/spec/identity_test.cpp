// Identity: equal for specs that say the same thing, different when anything of the meaning or the launch interface differs.
// SPDX-License-Identifier: Apache-2.0
#include "tests/spec/spec_helpers.h"

namespace kw::generator {

namespace {

const char* kBody = "acc[m,n] = sum[k](A[m,k] * B[n,k])\nout[m,n] = relu(acc[m,n] + bias[n])";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t position = text.find(from);
  REQUIRE(position != std::string::npos);
  return text.replace(position, from.size(), to);
}

std::string id(const std::string& text) { return identity(*program_of(text)); }

}  // namespace

TEST_CASE("two specs that say the same thing have one identity") {
  const std::string base = matmul_spec(kBody);
  const std::string same = id(base);
  CHECK(same.size() == 32);
  CHECK(id(matmul_spec("t[row,col] = sum[x](A[row,x] * B[col,x])\nout[i,j] = relu(t[i,j] + bias[j])")) == same);
  CHECK(id(matmul_spec("out[m,n] = relu(sum[k](A[m,k] * B[n,k]) + bias[n])")) == same);
  CHECK(id(matmul_spec("out[m,n] = relu(bias[n] + sum[k](B[n,k] * A[m,k]))")) == same);
  CHECK(id(replaced(base, "name = \"t\"", "name = \"other\"")) == same);
  CHECK(id(replaced(base, "M = 64", "M = [1, 2, 3]")) == same);
  CHECK(id(replaced(base, "M = 64", "M = \"any\"")) == same);
  CHECK(id(replaced(base, "[compute]", "[compute]\naccumulate = \"f32\"")) == same);
  CHECK(id(replaced(base, "shape = [\"M\", \"K\"] }", "shape = [\"M\", \"K\"], strides = [\"K\", 1], align = 16, role = \"in\" }")) ==
        same);
  std::string chained = base.substr(0, base.find("body"));
  CHECK(id(chained + "chain = \"matmul(A, B) -> bias -> relu\"\n") == same);
  CHECK(id(base + "[tune]\nBLOCK_M = [128]\n") == same);
}

TEST_CASE("anything of the meaning or the interface flips the identity") {
  const std::string base = matmul_spec(kBody);
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"A = { dtype = \"f16\"", "A = { dtype = \"bf16\""},
      {"bias = { dtype = \"f16\"", "bias = { dtype = \"f32\""},
      {"out = { dtype = \"f16\"", "out = { dtype = \"f32\""},
      {"shape = [\"N\", \"K\"] }", "shape = [\"N\", \"K\"], strides = \"any\" }"},
      {"shape = [\"N\", \"K\"] }", "shape = [\"N\", \"K\"], strides = [\"any\", 1] }"},
      {"shape = [\"N\", \"K\"] }", "shape = [\"N\", \"K\"], align = 8 }"},
      {"shape = [\"N\", \"K\"] }", "shape = [\"N\", \"K\"], const = true }"},
      {"shape = [\"N\", \"K\"] }", "shape = [\"N\", \"K\"], range = [0, 1] }"},
      {"role = \"out\"", "role = \"inout\""},
      {"[compute]", "[compute]\naccumulate = \"f64\""},
      {"[compute]", "[compute]\nmultiply = \"tf32\""},
      {"relu", "gelu"},
      {"+ bias", "- bias"},
      {"sum[k]", "mean[k]"},
      {"acc[m,n] + bias", "cast(acc[m,n], f16) + bias"},
      {"acc[m,n] + bias", "2 * acc[m,n] + bias"},
  };
  std::vector<std::string> identities = {id(base)};
  for (const auto& [from, to] : changes) {
    const std::string changed = id(replaced(base, from, to));
    INFO(from << " -> " << to);
    CHECK(std::find(identities.begin(), identities.end(), changed) == identities.end());
    identities.push_back(changed);
  }
}

TEST_CASE("a swapped index or a transposed operand flips the identity") {
  const std::string square = R"toml(name = "t"
[dims]
M = 4
[tensors]
A = { dtype = "f32", shape = ["M", "M"] }
B = { dtype = "f32", shape = ["M", "M"] }
out = { dtype = "f32", shape = ["M", "M"], role = "out" }
[compute]
body = "out[m,n] = sum[k](A[m,k] * B[n,k])"
)toml";
  CHECK(id(square) != id(replaced(square, "B[n,k]", "B[k,n]")));
  CHECK(id(square) != id(replaced(square, "out[m,n]", "out[n,m]")));
  CHECK(id(square) == id(replaced(replaced(square, "out[m,n]", "out[n,m]"), "A[m,k] * B[n,k]", "A[n,k] * B[m,k]")));
}

TEST_CASE("derived scalars do not count by name, launch-time ones do") {
  const auto with = [](const std::string& scalars, const std::string& factor) {
    return id(pointwise_spec("y[m,n] = x[m,n] * " + factor, scalars));
  };
  CHECK(with("[scalars]\ns = \"1/sqrt(N)\"\n", "s") == with("[scalars]\nq = \"1/sqrt(N)\"\n", "q"));
  CHECK(with("[scalars]\ns = \"1/sqrt(N)\"\n", "s") == with("", "(1/sqrt(N))"));
  CHECK(with("[scalars]\ns = \"launch\"\n", "s") != with("[scalars]\nq = \"launch\"\n", "q"));
  CHECK(with("[scalars]\ns = { dtype = \"f32\" }\n", "s") == with("[scalars]\ns = \"launch\"\n", "s"));
}

TEST_CASE("the printed program is a spec of the same identity") {
  const std::vector<std::string> specs = {
      matmul_spec(kBody),
      matmul_spec("acc[m,n] = sum[k](A[m,k] * B[n,k])\nout[m,n] = cast(where(acc[m,n] > 0 and not (m < 3), acc[m,n] ^ 2, -(acc[m,n] - "
                  "1e-3)), bf16) / 3 + bias[n]"),
      pointwise_spec("y[m,n] = softmax[n](x[m,n], sink = x[m,0]) + cumsum[n](x[m,n])"),
      pointwise_spec("z[m,n] = z[m,n] + x[m,n]\ny[m,n] = new(z)[m,n]",
                     "z = { dtype = \"f16\", shape = [\"M\", \"N\"], role = \"inout\", strides = [\"any\", 1] }\n"),
      pointwise_spec(
          "y[m,n] = sum[j](x[m,j]) * s + x[m,n]",
          "len = { dtype = \"i32\", shape = [\"M\"], range = [0, 6] }\n[scalars]\ns = \"launch\"\n[index]\nj = { below = \"len[m]\" }\n"),
  };
  for (const std::string& text : specs) {
    const auto program = program_of(text);
    const std::string shown = to_text(*program);
    const auto again = program_of(shown);
    CHECK(canonical_text(*again) == canonical_text(*program));
    CHECK(to_text(*again) == shown);
  }
}

}  // namespace kw::generator
