// What read_template() finds in a template, and what it refuses with which words and place.
// SPDX-License-Identifier: Apache-2.0
#include "tests/catch.h"
#include "tests/rewrite/small_template.h"

namespace kw::generator {
namespace {

using test::kSmallConfig;
using test::kSmallKernel;
using test::tree_of;

TemplateInfo read(const std::string& body) {
  Result<TemplateInfo> info = read_template(tree_of(body), "small.cuh");
  if (!info) FAIL(to_text(info.error()) << "\n" << info.error().detail);
  return *info;
}

std::string refusal(const std::string& body) {
  const Result<TemplateInfo> info = read_template(tree_of(body), "small.cuh");
  return info ? "no refusal" : to_text(info.error());
}

const Rule& rule_named(const TemplateInfo& info, const std::string& name) {
  for (const Rule& rule : info.rules) {
    if (rule.name == name) return rule;
  }
  throw std::runtime_error("no rule " + name);
}

std::string rule_text(const std::string& function) {
  return read(kSmallConfig + "RULE(\"r\", \"why\") constexpr " + function + kSmallKernel + "{}").rules.at(0).expression.to_text();
}
std::string rule_refusal(const std::string& functions) { return refusal(kSmallConfig + functions + kSmallKernel + "{}"); }

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("tunables, bindings and the kernel's statement are read from the source") {
  const TemplateInfo info = read(kSmallConfig + kSmallKernel + "{}");
  CHECK(info.name == "small");
  CHECK(info.computes == "out[i] = epilogue(A[i])");
  CHECK(info.min_arch == "sm_80");
  REQUIRE(info.tunables.size() == 2);
  CHECK(info.tunables[0].name == "WIDTH");
  CHECK(info.tunables[0].key == "w");
  CHECK(info.tunables[0].values == std::vector<std::int64_t>{1, 2, 4});
  CHECK(info.tunables[0].default_value == 2);
  CHECK(info.tunables[0].doc == "elements of a thread");
  CHECK(info.tunables[1].values == std::vector<std::int64_t>{0, 1});
  REQUIRE(info.bindings.size() == 1);
  CHECK(info.bindings[0].name == "Element");
  CHECK(info.bindings[0].source == "dtype:A");
  CHECK(info.bindings[0].is_type);
  REQUIRE(info.parameters.size() == 2);
  CHECK(info.parameters[0].is_pointer);
  CHECK(info.parameters[0].type == "const Config::Element*");
}

TEST_CASE("struct parameters are read with their fields in order") {
  const TemplateInfo info = read(kSmallConfig + "struct Problem { long long extent_m; int flags; };\n" +
                                 "COMPUTES(\"x\") REQUIRES_ARCH(\"sm_80\") extern \"C\" __global__ void small(Problem problem) {}");
  REQUIRE(info.parameters.size() == 1);
  CHECK(info.parameters[0].fields == std::vector<std::pair<std::string, std::string>>{{"long long", "extent_m"}, {"int", "flags"}});
}

TEST_CASE("a rule becomes an expression over the template's own names") {
  CHECK(rule_text("bool r() { return Config::WIDTH % 2 == 0 && DeviceLimits::max_smem_bytes >= 4 * Config::WIDTH; }") ==
        "WIDTH % 2 == 0 && max_smem_bytes >= 4 * WIDTH");
  CHECK(rule_text("bool r() { return sizeof(Config::Element) == 4; }") == "size_bytes.Element == 4");
  CHECK(rule_text("long long r() { return sizeof(double) << 2; }") == "32");
}

TEST_CASE("a call in a rule is inlined with its arguments") {
  const TemplateInfo info = read(
      kSmallConfig + "constexpr int twice(int x) { const int y = x + x; return y; }\n" +
      "RULE(\"r\", \"why\") constexpr bool r() { if (Config::FAST) return twice(Config::WIDTH) <= 4; return true; }" + kSmallKernel + "{}");
  const IntExpr& rule = rule_named(info, "r").expression;
  CHECK(rule.evaluate({{"FAST", 1}, {"WIDTH", 2}}).value() == 1);
  CHECK(rule.evaluate({{"FAST", 1}, {"WIDTH", 4}}).value() == 0);
  CHECK(rule.evaluate({{"FAST", 0}, {"WIDTH", 4}}).value() == 1);
}

TEST_CASE("a function with parameters is a rule on the problem") {
  const TemplateInfo info = read(
      kSmallConfig + "RULE(\"even\", \"M is even\") constexpr bool even(long long extent_m) { return extent_m % Config::WIDTH == 0; }\n" +
      kSmallKernel + "{}");
  CHECK(info.rules.at(0).is_on_problem);
  CHECK(info.rules.at(0).why == "M is even");
  CHECK(info.rules.at(0).expression.to_text() == "extent_m % WIDTH == 0");
}

TEST_CASE("sizeof of a struct follows the extents and types that Config gives, with padding") {
  const TemplateInfo info = read(kSmallConfig + R"(
struct Storage {
  alignas(16) Config::Element a[Config::WIDTH * 3];
  alignas(8) unsigned long long full[Config::WIDTH];
  char flag;
};
LAUNCH("dynamic_smem_bytes") constexpr long long smem() { return sizeof(Storage); })" +
                                 kSmallKernel + "{}");
  REQUIRE(info.launch.size() == 1);
  for (const std::int64_t width : {1, 2, 4}) {
    for (const std::int64_t bytes : {2, 4, 8}) {
      const std::int64_t a = (width * 3 * bytes + 7) / 8 * 8;
      const std::int64_t expected = (a + width * 8 + 1 + 15) / 16 * 16;
      CHECK(info.launch[0].expression.evaluate({{"WIDTH", width}, {"size_bytes.Element", bytes}}).value() == expected);
    }
  }
}

TEST_CASE("launch sizes and estimates are sorted by name, workspaces keep source order") {
  const TemplateInfo info = read(kSmallConfig + R"(
LAUNCH("workspace:sums") constexpr long long sums(long long extent_m) { return extent_m * 4; }
LAUNCH("workspace_zeroed:counters") constexpr long long counters() { return 4; }
LAUNCH("grid_x") constexpr long long grid_x(long long extent_m) { return (extent_m + Config::WIDTH - 1) / Config::WIDTH; }
ESTIMATE("stages") constexpr int stages() { return 2; })" +
                                 kSmallKernel + "{}");
  REQUIRE(info.launch.size() == 3);
  CHECK(info.launch[0].name == "grid_x");
  CHECK(info.launch[0].expression.to_text() == "(extent_m + WIDTH - 1) // WIDTH");
  CHECK(info.workspaces == std::vector<std::string>{"sums", "counters"});
  CHECK(info.estimates.at(0).expression.constant() == 2);
}

TEST_CASE("hooks are listed in source order") {
  const TemplateInfo info =
      read(kSmallConfig +
           "HOOK(\"args\") struct Args { int x; };\nHOOK(\"store\") template <int kVec> __device__ void store(const Args& args) {}" +
           kSmallKernel + "{}");
  CHECK(info.hooks == std::vector<std::string>{"args", "store"});
}

TEST_CASE("an unknown annotation is refused with its line and the nearest name") {
  const std::string text = refusal("struct Config {\n  TUNNE(\"w\", 1, 2) static constexpr int WIDTH = 2;\n};" + kSmallKernel + "{}");
  CHECK(text == "small.cuh:3: TUNNE: unknown annotation; did you mean TUNE?");
  CHECK(has(refusal(kSmallConfig + "[[clang::annotate(\"tuned\", \"x\")]] constexpr int kX = 1;" + kSmallKernel + "{}"),
            "annotation \"tuned\" on kX"));
}

TEST_CASE("a rule outside the integer subset is refused by construct and place") {
  CHECK(has(rule_refusal("RULE(\"r\", \"w\") constexpr bool r() { int n = 0; for (int i = 0; i < 3; ++i) n += i; return n > 0; }"),
            "outside the integer subset of rules"));
  CHECK(rule_refusal("\nRULE(\"r\", \"w\") constexpr bool r() {\n  return (Config::WIDTH & 1) == 0;\n}") ==
        "small.cuh:11:25: r(): operator &: outside the integer subset of rules");
  CHECK(has(rule_refusal("template <int N> constexpr int twice() { return 2 * N; }\nRULE(\"r\", \"w\") constexpr bool r() { return "
                         "twice<Config::WIDTH>() > 0; }"),
            "a template parameter"));
  CHECK(has(rule_refusal("RULE(\"r\", \"w\") constexpr bool r() { return Config::WIDTH * 1.5 < 4; }"), "conversion to double"));
  CHECK(has(rule_refusal("constexpr int f(int x) { return x == 0 ? 0 : f(x - 1); }\nRULE(\"r\", \"w\") constexpr bool r() { return "
                         "f(Config::WIDTH) == 0; }"),
            "recursion"));
  CHECK(has(rule_refusal("__device__ int g();\nRULE(\"r\", \"w\") int r() { return 1; }"), "constexpr function"));
}

TEST_CASE("a tunable may take a value of the problem") {
  const TemplateInfo info = read(
      "struct Config {\n  TUNE(\"n\", \"extent_n\", 0) static constexpr long long EXTENT_N = 0;\n};\n"
      "COMPUTES(\"x\") REQUIRES_ARCH(\"sm_80\") extern \"C\" __global__ void small() {}");
  REQUIRE(info.tunables.size() == 1);
  CHECK(info.tunables.front().key == "n");
  CHECK(info.tunables.front().problem_variable == "extent_n");
  CHECK(info.tunables.front().values == std::vector<std::int64_t>{0});
}

TEST_CASE("misplaced or incomplete annotations are refused") {
  CHECK(has(refusal("struct Config {\n  TUNE(\"w\", 1, 2) static constexpr int WIDTH = 3;\n};" + std::string("using E = float;") +
                    "COMPUTES(\"x\") REQUIRES_ARCH(\"sm_80\") extern \"C\" __global__ void small() {}"),
            "WIDTH = 3: the default is not among the values of TUNE"));
  CHECK(has(refusal("struct Config {};\nextern \"C\" __global__ void small() {}"), "COMPUTES(\"...\") is missing"));
  CHECK(has(refusal("struct Config {};\nCOMPUTES(\"x\") REQUIRES_ARCH(\"sm_80\") extern \"C\" __global__ void other() {}"),
            "named like its file, small"));
  CHECK(has(refusal("struct Config {};"), "no __global__ function"));
  CHECK(has(refusal(kSmallConfig + kSmallKernel + "{}\nextern \"C\" __global__ void second() {}"), "second: a second kernel"));
  CHECK(has(refusal("struct Config {\n  TUNE(\"w\", 1) static constexpr int A = 1;\n  TUNE(\"w\", 1) static constexpr int B = "
                    "1;\n};\nCOMPUTES(\"x\") REQUIRES_ARCH(\"sm_80\") extern \"C\" __global__ void small() {}"),
            "key \"w\" is taken"));
}

TEST_CASE("a file that is not legal CUDA C++ is refused with clang's words and the template's line") {
  CHECK(has(refusal(kSmallConfig + kSmallKernel + "{\n  undeclared = 1;\n}"), "small.cuh:12:3: use of undeclared identifier 'undeclared'"));
}

TEST_CASE("includes and preprocessor lines outside the rules are refused") {
  CHECK(refusal("#include \"parts/none.cuh\"\n") == "small.cuh:2: #include \"parts/none.cuh\": no such file in the template folder");
  CHECK(has(refusal("#define WIDTH 4\n"), "no preprocessor line but #include and #pragma"));
  CHECK(has(refusal("#include <cuda_fp16.h>\n"), "may include only files of the template folder"));
}

}  // namespace kw::generator
