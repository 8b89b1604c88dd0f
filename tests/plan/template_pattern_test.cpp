// What a template states about itself is read, and mistakes in it are named.
// SPDX-License-Identifier: Apache-2.0
#include "generator/plan/fusion_group.h"
#include "tests/catch.h"

using namespace kw;
using namespace kw::generator;

TEST_CASE("the gemm pattern is read in one statement and in two") {
  for (const char* text : {"out[b,m,n] = epilogue(sum[k](A[b,m,k] * B[b,k,n]))",
                           "acc[b,m,n] = sum[k](A[b,m,k] * B[b,k,n])  out[b,m,n] = epilogue(acc[b,m,n])"}) {
    const Result<TemplatePattern> pattern = parse_template_pattern(text);
    REQUIRE(pattern);
    CHECK(pattern->indices == std::vector<std::string>{"b", "m", "n", "k"});
    CHECK(pattern->reduced == std::vector<std::string>{"k"});
    REQUIRE(pattern->operands.size() == 2);
    CHECK(pattern->operands[1].name == "B");
    CHECK(pattern->operands[1].indices == std::vector<std::string>{"b", "k", "n"});
  }
}

TEST_CASE("a second contraction brings a second right operand") {
  const Result<TemplatePattern> pattern = parse_template_pattern("out[m,n] = epilogue(sum[k](A[m,k] * B[k,n]), sum[k](A[m,k] * B2[k,n]))");
  REQUIRE(pattern);
  REQUIRE(pattern->operands.size() == 3);
  CHECK(pattern->operands[2].name == "B2");
}

TEST_CASE("a pattern that makes no sense is refused with its column") {
  const auto message = [](const char* text) {
    const Result<TemplatePattern> pattern = parse_template_pattern(text);
    REQUIRE_FALSE(pattern);
    return pattern.error().message;
  };
  CHECK(message("out[m,n] = epilogue(sum[k](A[m,k] * B[k,j]))").find("index j of B is neither on the left nor reduced") !=
        std::string::npos);
  CHECK(message("out[m,n] = softmax[k](A[m,k])").find("expected sum[...]") != std::string::npos);
  CHECK(message("out[m,n] = acc[m,n]").find("'acc'") != std::string::npos);
  CHECK(message("out[m,n] = epilogue(sum[k](A[m,k] * B[k,n]), sum[k](C[m,k] * D[k,n]))").find("has the first's left operand") !=
        std::string::npos);
  CHECK(message("").find("expected a statement") != std::string::npos);
  CHECK(message("out[m,n = sum[k](A[m,k] * B[k,n])").find("column 9") != std::string::npos);
}
