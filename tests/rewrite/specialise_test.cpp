// What specialise() keeps, folds and drops, shown on kernels of a few lines; and that a misfit gives an error and no text.
// SPDX-License-Identifier: Apache-2.0
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/rewrite/small_template.h"

namespace kw::generator {
namespace {

using test::kSmallConfig;
using test::kSmallKernel;
using test::specialise_small;
using test::tree_of;

std::string emitted(const std::string& body, IntBindings values, std::map<std::string, std::string> hooks = {}) {
  const Result<std::string> text = specialise_small(body, std::move(values), std::move(hooks));
  return text ? *text : to_text(text.error()) + "\n" + text.error().detail;
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \n");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \n") + 1 - begin);
}

/// The emitted body of the kernel, between its braces, for WIDTH = 2 and FAST = fast.
std::string kernel_body(const std::string& body, bool is_fast, const std::string& before = "") {
  const std::string text = emitted(kSmallConfig + before + kSmallKernel + "{" + body + "}", {{"WIDTH", 2}, {"FAST", is_fast ? 1 : 0}});
  const std::size_t kernel = text.find("void k(");
  const std::size_t open = text.find("{", kernel);
  if (open == std::string::npos) return text;
  return trimmed(text.substr(open + 1, text.rfind('}') - open - 1));
}

std::string refusal(const std::string& body, IntBindings values, std::map<std::string, std::string> hooks = {}) {
  const Result<std::string> text = specialise_small(body, std::move(values), std::move(hooks));
  return text ? "no refusal" : to_text(text.error());
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const IntBindings kDefaults = {{"WIDTH", 2}, {"FAST", 0}};

}  // namespace

TEST_CASE("a whole small template comes out as if written by hand for its config") {
  const std::string body = kSmallConfig + R"(
// ---- Rules ----

/// Not needed on the device.
RULE("even", "even") constexpr bool even() { return Config::WIDTH % 2 == 0; }

// ---- Device ----

/// Only the fast way needs this.
__device__ float fast_load(const float* p) { return *p; }

/// The plain way.
__device__ float plain_load(const float* p) { return p[0]; }
)" + kSmallKernel + R"({
  // How an element is loaded.
  if constexpr (Config::FAST) {
    // The fast way.
    out[0] = fast_load(A);
  } else {
    // The plain way.
    out[0] = plain_load(A) * Config::WIDTH;
  }
})";
  CHECK(emitted(body, {{"WIDTH", 4}, {"FAST", 0}}) == R"(// SPDX-License-Identifier: Apache-2.0
// banner

struct Config {
  using Element = float;
  static constexpr int WIDTH = 4;  ///< elements of a thread
};

// ---- Device ----

/// The plain way.
__device__ float plain_load(const float* p) { return p[0]; }

extern "C" __global__ void k(const Config::Element* A, Config::Element* out) {
  // How an element is loaded.
  // The plain way.
  out[0] = plain_load(A) * Config::WIDTH;
}
)");
}

TEST_CASE("a branch that is never taken goes with the comment above it") {
  CHECK(
      kernel_body("\n  out[0] = 1;\n  // Only when fast.\n  if constexpr (Config::FAST) {\n    out[1] = 2;\n  }  // fast\n  out[2] = 3;\n",
                  false) == "out[0] = 1;\n  out[2] = 3;");
}

TEST_CASE("an else-if chain keeps the one part that runs") {
  const std::string chain =
      "\n  if constexpr (Config::FAST) {\n    out[0] = 0;\n  } else if constexpr (Config::WIDTH == 2) {\n    out[1] = 1;\n  } else {\n    "
      "out[2] = 2;\n  }\n";
  CHECK(kernel_body(chain, false) == "out[1] = 1;");
  CHECK(kernel_body(chain, true) == "out[0] = 0;");
}

TEST_CASE("braces stay when a name declared inside is used outside") {
  CHECK(kernel_body(
            "\n  const float x = A[0];\n  if constexpr (!Config::FAST) {\n    const float x = A[1];\n    out[1] = x;\n  }\n  out[0] = x;\n",
            false) == "const float x = A[0];\n  {\n    const float x = A[1];\n    out[1] = x;\n  }\n  out[0] = x;");
  CHECK(kernel_body("\n  if constexpr (Config::FAST) {\n    const float x = A[0];\n    out[0] = x;\n  } else {\n    const float x = "
                    "A[1];\n    out[0] = x;\n  }\n",
                    false) == "const float x = A[1];\n  out[0] = x;");
}

TEST_CASE("statements after a branch that returns are dropped") {
  const std::string body = "\n  if constexpr (Config::FAST) {\n    out[0] = 1;\n    return;\n  }\n  out[1] = 2;\n";
  CHECK(kernel_body(body, true) == "out[0] = 1;\n  return;");
  CHECK(kernel_body(body, false) == "out[1] = 2;");
}

TEST_CASE("a branch that was a loop's only statement leaves an empty block") {
  CHECK(kernel_body("\n  for (int i = 0; i < 4; ++i)\n    if constexpr (Config::FAST) out[i] = 1;\n", false) ==
        "for (int i = 0; i < 4; ++i) {\n  }");
}

TEST_CASE("plain ifs and choices on Config alone are folded") {
  CHECK(kernel_body("\n  if (Config::WIDTH > 1) {\n    out[0] = 1;\n  } else {\n    out[0] = 2;\n  }\n", false) == "out[0] = 1;");
  CHECK(kernel_body("\n  out[0] = 3 * (Config::FAST ? A[1] : A[0] + 1);\n", false) == "out[0] = 3 * (A[0] + 1);");
  CHECK(kernel_body("\n  if (A[0] > 0) out[0] = Config::FAST ? 1 : 2.5;\n", false) == "if (A[0] > 0) out[0] = Config::FAST ? 1 : 2.5;");
}

TEST_CASE("a template's branch is folded only when all reached instantiations agree") {
  const std::string helper =
      "\ntemplate <int N>\n__device__ float get(const float* p) {\n  if constexpr (N > 1) {\n    return p[1];\n  } else {\n    return "
      "p[0];\n  }\n}\n";
  CHECK(has(emitted(kSmallConfig + helper + kSmallKernel + "{ out[0] = get<Config::WIDTH>(A); }", kDefaults),
            "float get(const float* p) {\n  return p[1];\n}"));
  CHECK(has(emitted(kSmallConfig + helper + kSmallKernel + "{ out[0] = get<Config::WIDTH>(A) + get<1>(A); }", kDefaults),
            "if constexpr (N > 1) {"));
  // The instantiation in the dropped branch has no say.
  CHECK(!has(emitted(kSmallConfig + helper + kSmallKernel +
                         "{ if constexpr (Config::FAST) { out[0] = get<1>(A); } else { out[0] = get<Config::WIDTH>(A); } }",
                     kDefaults),
             "if constexpr"));
}

TEST_CASE("locals that only dropped code used are dropped, locals with effects stay") {
  CHECK(kernel_body("\n  constexpr int kStep = Config::WIDTH * 2;\n  const int lane = threadIdx.x % 32;\n  float kept = A[0];\n  if "
                    "constexpr (Config::FAST) {\n    out[lane] = A[kStep];\n  }\n  out[0] = kept;\n",
                    false) == "float kept = A[0];\n  out[0] = kept;");
  CHECK(kernel_body("\n  const float old = atomicAdd(out, 1.0f);\n  if constexpr (Config::FAST) {\n    out[1] = old;\n  }\n", false) ==
        "const float old = atomicAdd(out, 1.0f);");
}

TEST_CASE("unused types, methods, overloads and constants are dropped, used ones keep what they need") {
  const std::string parts = R"(
constexpr int kBase = 3;
constexpr int kOther = kBase + 1;
constexpr int kNobody = 9;
struct Inner { float x; };
struct Pair {
  Inner inner;
  __device__ float first() const { return inner.x + kOther; }
  __device__ float second() const { return kNobody; }
};
struct Lonely { Pair pair; };
__device__ int to_int(float x) { return 1; }
__device__ int to_int(double x) { return 2; }
)";
  const std::string text =
      emitted(kSmallConfig + parts + kSmallKernel + "{ Pair pair = {{A[0]}}; out[0] = pair.first() + to_int(A[1]); }", kDefaults);
  CHECK(has(text, "constexpr int kBase = 3;"));
  CHECK(has(text, "constexpr int kOther"));
  CHECK(has(text, "struct Inner"));
  CHECK(has(text, "first()"));
  CHECK(has(text, "to_int(float x)"));
  for (const char* dropped : {"kNobody", "second", "Lonely", "to_int(double", "kUnused", "DeviceLimits", "FAST"}) {
    INFO(dropped);
    CHECK(!has(text, dropped));
  }
}

TEST_CASE("traits keep the primary and the specialisation in use") {
  const std::string traits = R"(
template <typename T> struct Traits;
template <> struct Traits<float> { using Wide = float4; static constexpr int kCount = 4; };
template <> struct Traits<double> { using Wide = double2; static constexpr int kCount = 2; };
)";
  const std::string text = emitted(kSmallConfig + traits + kSmallKernel + "{ out[0] = Traits<Config::Element>::kCount; }", kDefaults);
  CHECK(has(text, "struct Traits;"));
  CHECK(has(text, "struct Traits<float>"));
  CHECK(!has(text, "Traits<double>"));
}

TEST_CASE("an assertion stays when everything it names stays") {
  const std::string assertions =
      "\nstatic_assert(Config::WIDTH >= 1, \"at least one\");\nstatic_assert(Config::kUnused == 7, \"seven\");\n";
  const std::string text = emitted(kSmallConfig + assertions + kSmallKernel + "{ out[0] = Config::WIDTH; }", kDefaults);
  CHECK(has(text, "at least one"));
  CHECK(!has(text, "seven"));
}

TEST_CASE("hooks are filled and the prologue stands before the first of them") {
  const std::string hooks =
      "\n/// What the epilogue needs.\nHOOK(\"args\") struct Args { int unused; };\n/// Stores.\nHOOK(\"store\") template <int "
      "kVec>\n__device__ void store(const Args& args, float x, float* out) { out[0] = x; }\n";
  const SourceTree tree = tree_of(kSmallConfig + hooks + kSmallKernel + "{ Args args = {}; store<Config::WIDTH>(args, A[0], out); }");
  const Result<TemplateInfo> info = read_template(tree, "small.cuh");
  REQUIRE(info);
  const Result<std::string> text =
      specialise({&tree,
                  &*info,
                  kDefaults,
                  {{"Element", "float"}},
                  {{"args", "{ float alpha; }"}, {"store", "{ out[0] = twice(x) * args.alpha; }"}},
                  "__device__ float twice(float x) { return 2 * x; }\n__device__ float thrice(float x) { return 3 * x; }",
                  "k",
                  "banner"});
  REQUIRE(text);
  CHECK(has(*text, "__device__ float twice(float x) { return 2 * x; }\n\n/// What the epilogue needs.\nstruct Args {\n  float alpha;\n};"));
  CHECK(has(*text, "out[0] = twice(x) * args.alpha;"));
  CHECK(!has(*text, "thrice"));
}

TEST_CASE("the prologue is put in before a first hook without a comment too") {
  const SourceTree tree = tree_of(kSmallConfig + "HOOK(\"store\") __device__ void store(float* out) {}" + kSmallKernel + "{ store(out); }");
  const Result<TemplateInfo> info = read_template(tree, "small.cuh");
  REQUIRE(info);
  const Result<std::string> text = specialise({&tree,
                                               &*info,
                                               kDefaults,
                                               {{"Element", "float"}},
                                               {{"store", "{ out[0] = one(); }"}},
                                               "__device__ float one() { return 1; }",
                                               "k",
                                               "banner"});
  REQUIRE(text);
  CHECK(has(*text, "__device__ float one() { return 1; }\n\n__device__ void store(float* out) { out[0] = one(); }"));
}

TEST_CASE("types and booleans are put in by their own spelling") {
  const std::string body = "\nstruct Half { unsigned short bits; };\n" + kSmallConfig + kSmallKernel +
                           "{ out[0] = Config::FAST || A[0].bits > 0 ? A[0] : A[1]; }";
  const SourceTree tree = tree_of(body);
  SourceTree typed = tree;
  typed["small.cuh"].replace(typed["small.cuh"].find("= float;"), 8, "= Half;");
  const Result<TemplateInfo> info = read_template(typed, "small.cuh");
  REQUIRE(info);
  const Result<std::string> text = specialise({&typed, &*info, {{"WIDTH", 1}, {"FAST", 1}}, {{"Element", "Half"}}, {}, "", "k", "banner"});
  REQUIRE(text);
  CHECK(has(*text, "using Element = Half;"));
  CHECK(has(*text, "static constexpr bool FAST = true;"));
}

TEST_CASE("a request that does not fit the template is refused and gives no text") {
  const std::string body = kSmallConfig + kSmallKernel + "{ out[0] = A[0]; }";
  CHECK(has(refusal(body, {{"WIDTH", 2}}), "small: no value given for FAST"));
  CHECK(has(refusal(body, {{"WIDTH", 2}, {"FAST", 0}, {"DEPTH", 1}}), "small: DEPTH = 1: Config has no such member"));
  CHECK(has(refusal(body, kDefaults, {{"store", "{}"}}), "the template has no hook \"store\""));
}

TEST_CASE("hook text that is not legal CUDA C++ is refused with its place and gives no text") {
  const std::string body = kSmallConfig + "HOOK(\"store\") __device__ void store(float* out) {}" + kSmallKernel + "{ store(out); }";
  CHECK(has(refusal(body, kDefaults, {{"store", "{ out[0] = missing; }"}}), "use of undeclared identifier 'missing'"));
  CHECK(has(refusal(body, kDefaults, {{"store", "{ out[0] = 1;"}}), "expected"));
}

TEST_CASE("what is emitted holds no include, no annotation and one licence line") {
  SourceTree tree =
      tree_of("#include \"parts/more.cuh\"\n" + kSmallConfig + "#include \"parts/more.cuh\"\n" + kSmallKernel + "{ out[0] = more(A[0]); }");
  tree["parts/more.cuh"] =
      "// A part.\n// SPDX-License-Identifier: Apache-2.0\n#pragma once\n\n/// One more.\n__device__ float more(float x) { return x + 1; "
      "}\n";
  const Result<TemplateInfo> info = read_template(tree, "small.cuh");
  REQUIRE(info);
  const Result<std::string> text = specialise({&tree, &*info, kDefaults, {{"Element", "float"}}, {}, "", "k", "banner"});
  REQUIRE(text);
  CHECK(!has(*text, "#include"));
  CHECK(!has(*text, "TUNE"));
  CHECK(!has(*text, "A part."));
  CHECK(text->find("SPDX") == text->rfind("SPDX"));
  CHECK(text->find("float more(") == text->rfind("float more("));
}

TEST_CASE("twenty threads at once emit the same bytes as one") {
  const std::string body = kSmallConfig + kSmallKernel + "{ if constexpr (Config::FAST) { out[0] = A[0]; } else { out[1] = A[1]; } }";
  const SourceTree tree = tree_of(body);
  const Result<TemplateInfo> info = read_template(tree, "small.cuh");
  REQUIRE(info);
  const auto run = [&](int index) {
    return specialise({&tree, &*info, {{"WIDTH", 1 << (index % 3)}, {"FAST", index % 2}}, {{"Element", "float"}}, {}, "", "k", "banner"})
        .value_or("error");
  };
  std::vector<std::string> expected(6);
  for (int i = 0; i < 6; ++i) expected[static_cast<std::size_t>(i)] = run(i);
  std::vector<std::string> found(20);
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i) threads.emplace_back([&, i] { found[static_cast<std::size_t>(i)] = run(i); });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < 20; ++i) CHECK(found[i] == expected[i % 6]);
  CHECK(expected[0] != "error");
}

}  // namespace kw::generator
