// The textual steps without a parse: tokens, edits, includes, comments.
// SPDX-License-Identifier: Apache-2.0
#include "generator/rewrite/template_text.h"
#include "generator/rewrite/tokens.h"
#include "tests/catch.h"

namespace kw::generator {
namespace {

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> out;
  for (const CppToken& token : tokenize(text)) out.emplace_back(spelling(text, token));
  return out;
}

}  // namespace

TEST_CASE("tokens keep strings, raw strings, comments and directives whole") {
  CHECK(words("a::b(\"x\\\"y\") // c\n") == std::vector<std::string>{"a", "::", "b", "(", "\"x\\\"y\"", ")", "// c"});
  CHECK(words("#pragma unroll \\\n 4\nx") == std::vector<std::string>{"#pragma unroll \\\n 4", "x"});
  CHECK(words("R\"k(a\" ) b)k\" 1'000.5e-3f 'c'") == std::vector<std::string>{"R\"k(a\" ) b)k\"", "1'000.5e-3f", "'c'"});
}

TEST_CASE("an edit that empties a line takes the line away") {
  const std::string text = "one\n  two;\nthree\n";
  CHECK(apply_edits(text, {{6, 10, ""}}) == "one\nthree\n");
  CHECK(apply_edits(text, {{6, 9, "2"}}) == "one\n  2;\nthree\n");
  CHECK(apply_edits(text, {{4, 16, ""}, {6, 9, "lost"}}) == "one\n");
  CHECK(apply_edits("a b", {{2, 3, ""}, {2, 2, "new "}}) == "a new ");
}

TEST_CASE("an annotation moves behind the head of its declaration") {
  CHECK(move_annotations_inward("HOOK(\"a\") struct S {};") == " struct HOOK(\"a\") S {};");
  CHECK(move_annotations_inward("HOOK(\"a\")\ntemplate <int N, bool B = (N > 2)>\nvoid f();") ==
        "\ntemplate <int N, bool B = (N > 2)>\nHOOK(\"a\") void f();");
  CHECK(move_annotations_inward("COMPUTES(\"c\") REQUIRES_ARCH(\"sm_80\") extern \"C\" void k();") ==
        " extern \"C\" COMPUTES(\"c\") REQUIRES_ARCH(\"sm_80\") void k();");
  CHECK(move_annotations_inward("TUNE(\"w\", 1) static constexpr int W = 1;") == "TUNE(\"w\", 1) static constexpr int W = 1;");
}

TEST_CASE("the opening comment is read without marks and licence line") {
  CHECK(opening_comment("// Contract: x.\n//   more\n// SPDX-License-Identifier: Apache-2.0\n#pragma once\n") == "Contract: x.\n  more");
}

TEST_CASE("each include is put in once, where it is first named") {
  const SourceTree tree = {{"a.cuh", "// A.\n#pragma once\nint a;\n"},
                           {"b.cuh", "#include \"a.cuh\"\nint b;\n"},
                           {"m.cuh", "int first;\n#include \"b.cuh\"\n#include \"a.cuh\"\nint last;\n"}};
  const Result<std::string> flat = flatten_includes(tree, "m.cuh");
  REQUIRE(flat);
  CHECK(words(*flat) == std::vector<std::string>{"int", "first", ";", "int", "a", ";", "int", "b", ";", "int", "last", ";"});
}

}  // namespace kw::generator
