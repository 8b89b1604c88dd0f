// The checker: types, extents, order, covers, and what it makes of the whole notation.
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "tests/spec/spec_helpers.h"

namespace kw::generator {

namespace {

bool says(const std::string& text, const std::string& part) {
  const std::string messages = check_text(text).messages;
  INFO(messages);
  return messages.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the matmul example becomes a typed program") {
  const auto program = program_of(matmul_spec("acc[m,n] = sum[k](A[m,k] * B[n,k])\nout[m,n] = relu(acc[m,n] + bias[n])"));
  REQUIRE(program->statements.size() == 2);
  CHECK_FALSE(program->statements[0].is_tensor);
  CHECK(program->statements[0].indices == std::vector<std::string>{"m", "n"});
  CHECK(program->statements[0].value->dtype == DType::kF32);
  CHECK(program->find_index("k")->extent == IntExpr::variable("K"));
  CHECK(program->find_tensor("A")->strides[0] == IntExpr::variable("K"));
  REQUIRE(program->problems.size() == 1);
  CHECK(program->problems[0].dims.at("K") == 16);
}

TEST_CASE("listed values of dims multiply to problems") {
  std::string text = pointwise_spec("y[m,n] = x[m,n]");
  text.replace(text.find("M = 8"), 5, "M = [1, 2, 3]");
  text.replace(text.find("N = 6"), 5, "N = [5, 7]");
  CHECK(program_of(text)->problems.size() == 6);
  text.replace(text.find("N = [5, 7]"), 10, "N = \"any\"");
  CHECK(program_of(text)->problems.empty());
}

TEST_CASE("rows of problems give values to every dim without one") {
  std::string text = pointwise_spec("y[m,n] = x[m,n]", "[[problems]]\nM = 3\n");
  CHECK(program_of(text)->problems.at(0).dims == std::map<std::string, std::int64_t>{{"M", 3}, {"N", 6}});
  text.replace(text.find("N = 6"), 5, "N = \"any\"");
  CHECK(says(text, "the row gives no value to dim N"));
}

TEST_CASE("index values are exact integers and integer tensors gather") {
  const std::string more = "r = { dtype = \"i32\", shape = [\"M\"] }\n";
  const auto program = program_of(pointwise_spec("y[m,n] = x[r[m] // 2, (n + 1) % N] * m", more));
  const ExprRef value = program->statements[0].value;
  CHECK(value->dtype == DType::kF32);
  CHECK(value->operands[1]->dtype == DType::kI64);
  CHECK(value->operands[0]->operands[0]->operands[0]->kind == ExprNode::Kind::kRead);
  CHECK(says(pointwise_spec("y[m,n] = x[m / 2, n]"), "a subscript is m / 2.0, of type f32: it must be an exact integer"));
}

TEST_CASE("literals take the type beside them") {
  const auto program = program_of(pointwise_spec("y[m,n] = 2 * x[m,n]"));
  CHECK(program->statements[0].value->operands[0]->dtype == DType::kF32);
}

TEST_CASE("bools and numbers do not mix") {
  CHECK(says(pointwise_spec("y[m,n] = x[m,n] + (m < 3)"), "mixes a bool and a number"));
  CHECK(says(pointwise_spec("y[m,n] = m < 3"), "its value is a bool"));
  CHECK(says(pointwise_spec("y[m,n] = where(x[m,n], 1, 0)"), "must be a bool"));
  CHECK(says(pointwise_spec("y[m,n] = sum[k](m < k) + x[m,n]"), "count[...](...) counts"));
}

TEST_CASE("an integer matmul accumulates in i32") {
  const std::string text = R"toml(name = "t"
[dims]
M = 4
K = 8
[tensors]
A = { dtype = "i8", shape = ["M", "K"] }
B = { dtype = "i8", shape = ["M", "K"] }
out = { dtype = "i32", shape = ["M", "M"], role = "out" }
[compute]
accumulate = "i32"
body = "out[m,n] = sum[k](A[m,k] * B[n,k])"
)toml";
  CHECK(program_of(text)->statements[0].value->dtype == DType::kI32);
}

TEST_CASE("every reduction of the notation is typed") {
  const std::string more =
      "c = { dtype = \"i64\", shape = [\"M\"], role = \"out\" }\nt = { dtype = \"f32\", shape = [\"M\", 2], role = \"out\" }\n";
  const auto program =
      program_of(pointwise_spec("p[m,n] = softmax[n](x[m,n], sink = 0.5) + cumsum[n](x[m,n])\n"
                                "y[m,n] = p[m,n] + max[k](x[m,k]) - min[k](x[m,k]) + mean[k](x[m,k]) * prod[k](x[m,k]) + "
                                "logsumexp[k](x[m,k]) + where(any[k](x[m,k] > 0) or all[k](isfinite(x[m,k])), 1, 0)\n"
                                "c[m] = argmax[k](x[m,k]) + count[k](x[m,k] > 0) + topk_index[k](x[m,k], 1)\n"
                                "t[m,r] = topk[k](x[m,k], r)",
                                more));
  CHECK(program->statements.size() == 4);
  CHECK(program->find_index("k")->extent == IntExpr::variable("N"));
  CHECK(program->find_index("r")->extent == IntExpr(2));
}

TEST_CASE("an affine left side may be written in parts that cover the tensor once") {
  CHECK(check_text(pointwise_spec("y[m,d] = x[m,d + N//2]\ny[m,d + N//2] = -x[m,d]", "[index]\nd = { extent = \"N//2\" }\n"))
            .messages.empty());
  CHECK(says(pointwise_spec("y[m,d] = x[m,d + N//2]", "[index]\nd = { extent = \"N//2\" }\n"),
             "the statements write 24 of the 48 elements of y"));
  CHECK(says(pointwise_spec("y[m,d] = x[m,d]\ny[m,d + 2] = x[m,d]", "[index]\nd = { extent = \"N//2\" }\n"), "y is written twice"));
  CHECK(says(pointwise_spec("y[m,n] = x[m,n]\ny[i,j] = x[i,j]"), "y is written twice"));
  CHECK(check_text(pointwise_spec("y[m,2*d] = x[m,d]\ny[m,2*d + 1] = x[m,d]", "[index]\nd = { extent = 3 }\n")).messages.empty());
  CHECK(says(pointwise_spec("y[m,m] = x[m,m]"), "index m"));
  CHECK(says(pointwise_spec("y[m,n*n] = x[m,n]"), "is not affine"));
}

TEST_CASE("a read that leaves its axis is refused, unless where guards it") {
  CHECK(says(pointwise_spec("y[m,n] = x[m,n - 1]"), "subscript n - 1 of x reaches -1 to 4: axis 1 has extent 6"));
  CHECK(check_text(pointwise_spec("y[m,n] = where(n >= 1, x[m,n - 1], 0)")).messages.empty());
}

TEST_CASE("new(x) and a written output are read as the stored, rounded value") {
  const std::string more = "z = { dtype = \"f16\", shape = [\"M\", \"N\"], role = \"inout\" }\n";
  const auto program = program_of(pointwise_spec("z[m,n] = z[m,n] + x[m,n]\ny[m,n] = new(z)[m,n] * z[m,n]", more));
  REQUIRE(program->statements.size() == 3);
  CHECK(to_text(program->statements[0]) == "z__new[m,n] = cast(z[m,n] + x[m,n], f16)");
  CHECK(to_text(program->statements[1]) == "z[m,n] = z__new[m,n]");
  CHECK(to_text(program->statements[2]) == "y[m,n] = z__new[m,n] * z[m,n]");
}

TEST_CASE("a bounded index needs the indices of its bound") {
  const std::string more = "len = { dtype = \"i32\", shape = [\"M\"] }\n[index]\nj = { below = \"len[m]\" }\n";
  CHECK(program_of(pointwise_spec("y[m,n] = sum[j](x[m,j]) + x[m,n]", more))->find_index("j")->below != nullptr);
  CHECK(says(pointwise_spec("y[r,n] = sum[j](x[r,j]) + x[r,n]", more), "the bound of index j reads index m, which has no value here"));
}

TEST_CASE("a ragged index brings its group") {
  const std::string text = R"toml(name = "grouped"
[dims]
T = 100
G = 4
N = 8
K = 16
[tensors]
A = { dtype = "bf16", shape = ["T", "K"] }
B = { dtype = "bf16", shape = ["G", "K", "N"] }
offsets = { dtype = "i32", shape = ["G + 1"], sorted = true, range = [0, 100] }
out = { dtype = "bf16", shape = ["T", "N"], role = "out" }
[index]
m = { ragged = "offsets[g]" }
[compute]
body = "out[m,n] = sum[k](A[m,k] * B[g,k,n])"
)toml";
  const auto program = program_of(text);
  CHECK(program->find_index("m")->ragged_offsets == "offsets");
  CHECK(program->find_index("g")->extent == IntExpr::variable("G"));
}

TEST_CASE("tensors in lists take the position first, and device scalars need no brackets") {
  const std::string text = R"toml(name = "t"
[dims]
L = 3
N = 5
[tensors]
x = { dtype = "f32", shape = ["N"], list = "L" }
alpha = { dtype = "f32", shape = [] }
y = { dtype = "f32", shape = ["N"], list = "L", role = "out" }
[compute]
body = "y[l,n] = alpha * x[l,n]"
)toml";
  CHECK(to_text(program_of(text)->statements[0]) == "y[l,n] = alpha[] * x[l,n]");
}

TEST_CASE("every mistake of a file is reported in one run") {
  const std::string messages = check_text(R"toml(name = "t"
colour = "red"
[dims]
M = -4
[tensors]
x = { dtype = "f33", shape = ["M"] }
y = { dtype = "f32", shape = ["M"], role = "out" }
[compute]
body = """
y[m] = relo(z[m])
"""
)toml")
                                   .messages;
  INFO(messages);
  CHECK(messages.find("t.op.toml:2:1: unknown key 'colour'") != std::string::npos);
  CHECK(messages.find("t.op.toml:4:5: M = -4: an extent is not negative") != std::string::npos);
  CHECK(messages.find("unknown dtype") != std::string::npos);
  CHECK(messages.find("t.op.toml:10:13: unknown tensor 'z'") != std::string::npos);
}

TEST_CASE("a shape given outside the spec is checked against the program") {
  const auto program = program_of(pointwise_spec("y[m,n] = x[m,n]"));
  const auto messages = [&](Problem problem) {
    Diagnostics diagnostics;
    check_problem(*program, problem, diagnostics);
    return diagnostics.to_text();
  };
  CHECK(messages({{{"M", 0}, {"N", 3}}, {}, {}}).empty());
  CHECK(messages({{{"M", 1}}, {}, {}}).find("dim N has no value") != std::string::npos);
  CHECK(messages({{{"M", -1}, {"N", 3}}, {}, {}}).find("not negative") != std::string::npos);
  for (const std::int64_t value : {(std::int64_t{1} << 53) + 1, std::numeric_limits<std::int64_t>::max()}) {
    CHECK(messages({{{"M", value}, {"N", 3}}, {}, {}})
              .find("M = " + std::to_string(value) + ": an extent is not negative and at most 2^53") != std::string::npos);
  }
  CHECK(messages({{{"M", 1}, {"N", 3}, {"Q", 3}}, {}, {}}).find("'Q' is no dim") != std::string::npos);
  CHECK(messages({{{"M", std::int64_t{1} << 40}, {"N", 4096}}, {}, {}}).find("larger than 2^47 bytes") != std::string::npos);
}

TEST_CASE("free strides without a value are row-major outside of those that have one") {
  const auto program = program_of(pointwise_spec("y[m,n] = x[m,n]\nz[m,n] = x[m,n]",
                                                 "z = { dtype = \"f32\", shape = [\"M\", \"N\"], strides = \"any\", role = \"out\" }\n"));
  Problem dense{{{"M", 3}, {"N", 5}}, {}, {}};
  complete_strides(*program, dense);
  CHECK(dense.strides == std::map<std::string, std::int64_t>{{"z.stride0", 5}, {"z.stride1", 1}});
  Problem spaced{{{"M", 3}, {"N", 5}}, {{"z.stride1", 2}}, {}};
  complete_strides(*program, spaced);
  CHECK(spaced.strides == std::map<std::string, std::int64_t>{{"z.stride0", 10}, {"z.stride1", 2}});
}

TEST_CASE("strides of an output that overlap are refused") {
  CHECK(says(pointwise_spec("y[m,n] = x[m,n]\nz[m,n] = x[m,n]",
                            "z = { dtype = \"f32\", shape = [\"M\", \"N\"], strides = [2, 1], role = \"out\" }\n"),
             "put two of its elements at one address"));
}

}  // namespace kw::generator
