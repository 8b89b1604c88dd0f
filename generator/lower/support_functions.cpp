// The table of helpers; see support_functions.h. $T is the type, $f the suffix of literals, {exp} a math function of the type.
// SPDX-License-Identifier: Apache-2.0
#include "generator/lower/support_functions.h"

#include <vector>

#include "generator/base/error.h"

namespace kw::generator {
namespace {

struct Helper {
  const char* name;
  const char* calls;  ///< another helper of the table above it, or ""
  const char* comment;
  const char* text;
  const char* float_text = nullptr;  ///< in place of `text` where the type is float
};

/// In the order of printing: a helper stands after the ones it calls.
const std::vector<Helper>& helpers() {
  static const std::vector<Helper> table = {
      {"floor_div", "", "Quotient rounded down, as // of the notation.",
       "$T floor_div($T a, $T b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0); }"},
      {"floor_mod", "floor_div", "Remainder with the sign of the divisor, as % of the notation.",
       "$T floor_mod($T a, $T b) { return a - floor_div(a, b) * b; }"},
      {"in_axis", "",
       "0. Built with -D KERNELWRIGHT_CHECKED: ends a kernel that reads at a subscript, taken from data, outside of its axis.",
       R"(long long in_axis(long long subscript, long long extent) {
#ifdef KERNELWRIGHT_CHECKED
  if (subscript < 0 || subscript >= extent) {
    printf("subscript %lld: must be in [0, %lld)\n", subscript, extent);
    __trap();
  }
#endif
  return 0 * (subscript + extent);
})"},
      {"floor_mod_real", "", "Remainder with the sign of the divisor.", "$T floor_mod_real($T a, $T b) { return a - {floor}(a / b) * b; }"},
      {"maximum", "", "The larger one; NaN when either is NaN.", "$T maximum($T a, $T b) { return a > b || a != a ? a : b; }",
       R"(float maximum(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
})"},
      {"minimum", "", "The smaller one; NaN when either is NaN.", "$T minimum($T a, $T b) { return a < b || a != a ? a : b; }",
       R"(float minimum(float a, float b) {
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
})"},
      {"exp_approximate", "", "e^x to about 22 bits: more than a result of 16 bits shows.", R"(float exp_approximate(float x) {
  float result;
  asm("ex2.approx.f32 %0, %1;" : "=f"(result) : "f"(1.44269504f * x));
  return result;
})"},
      {"divide_approximate", "", "a / b within two units in the last place.", R"(float divide_approximate(float a, float b) {
  float result;
  asm("div.full.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
})"},
      {"divide_by_one_plus_exp", "", "a / (1 + e^x), for results of 16 bits; what e^x has below 2^-126 is lost beside the 1.",
       R"(float divide_by_one_plus_exp(float a, float x) {
  float power, result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(1.44269504f * x));
  asm("div.full.ftz.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(1 + power));
  return result;
})"},
      {"integer_maximum", "", "The larger one.", "$T integer_maximum($T a, $T b) { return a > b ? a : b; }"},
      {"integer_minimum", "", "The smaller one.", "$T integer_minimum($T a, $T b) { return a < b ? a : b; }"},
      {"integer_abs", "", "Magnitude.", "$T integer_abs($T x) { return x < 0 ? -x : x; }"},
      {"relu", "", "max(x, 0); NaN stays NaN.", "$T relu($T x) { return x < 0 ? 0 : x; }"},
      {"sigmoid", "", "1 / (1 + e^-x).", "$T sigmoid($T x) { return 1 / (1 + {exp}(-x)); }"},
      {"silu", "", "x * sigmoid(x).", "$T silu($T x) { return x / (1 + {exp}(-x)); }"},
      {"sigmoid_approximate", "divide_by_one_plus_exp", "1 / (1 + e^-x), for results of 16 bits.",
       "float sigmoid_approximate(float x) { return divide_by_one_plus_exp(1, -x); }"},
      {"silu_approximate", "divide_by_one_plus_exp", "x * sigmoid(x), for results of 16 bits.",
       "float silu_approximate(float x) { return divide_by_one_plus_exp(x, -x); }"},
      {"gelu_tanh_approximate", "divide_by_one_plus_exp", "GELU by its tanh formula: x / (1 + e^-2u), for results of 16 bits.",
       R"(float gelu_tanh_approximate(float x) {
  return divide_by_one_plus_exp(x, -1.59576912160573071f * (x + 0.044715f * x * x * x));
})"},
      {"gelu", "", "x * P(X <= x) of the normal distribution; erfc keeps the digits of a negative x.",
       "$T gelu($T x) { return 0.5$f * x * {erfc}(-0.70710678118654752$f * x); }"},
      {"gelu_tanh", "", "GELU by its tanh formula: 0.5 x (1 + tanh(u)) = x / (1 + e^-2u).",
       "$T gelu_tanh($T x) { return x / (1 + {exp}(-1.59576912160573071$f * (x + 0.044715$f * x * x * x))); }"},
      {"is_finite", "", "Neither infinite nor NaN.", "bool is_finite($T x) { return x - x == 0; }"},
      {"round_to_tf32", "", "The nearest number with 10 fraction bits, even on a tie.",
       "$T round_to_tf32($T x) {\n  const unsigned bits = __float_as_uint(static_cast<float>(x));\n  if ((bits & 0x7f800000u) == "
       "0x7f800000u) return x;\n"
       "  return __uint_as_float((bits + 0xfffu + ((bits >> 13) & 1u)) & ~0x1fffu);\n}"},
      {"round_to_bf16", "",
       "The nearest bf16, even on a tie. As the lower one of a pair: the conversion of a single value goes to the unit of 16 results a\n"
       "/// clock and SM, that of a pair does not.",
       R"(float round_to_bf16(float x) {
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(0.0f), "f"(x));
  return __uint_as_float(bits << 16);
})"},
      {"saturate_i8", "", "Nearest value of an 8-bit integer.",
       "int saturate_i8($T x) { return static_cast<int>(x < -128 ? -128 : x > 127 ? 127 : x); }"},
      {"saturate_i32", "", "Nearest value of a 32-bit integer.",
       "int saturate_i32($T x) { return static_cast<int>(x < -2147483647 - 1 ? -2147483647 - 1 : x > 2147483647 ? 2147483647 : x); }"},
  };
  return table;
}

std::string replace_all(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
  return text;
}

const Helper& find_helper(const std::string& name) {
  for (const Helper& helper : helpers()) {
    if (name == helper.name) return helper;
  }
  check_failed("helper is in the table", __FILE__, __LINE__, "every helper that is used has a text");
}

}  // namespace

std::string math_function(const std::string& name, const std::string& type) { return type == "float" ? name + "f" : name; }

std::string SupportFunctions::use(const std::string& name, const std::string& type) {
  const Helper& helper = find_helper(name);
  if (helper.calls[0] != '\0') use(helper.calls, type);
  used_.insert({name, type});
  return name;
}

std::set<std::string> SupportFunctions::names() {
  std::set<std::string> names;
  for (const Helper& helper : helpers()) names.insert(helper.name);
  return names;
}

std::string SupportFunctions::text() const {
  std::string text;
  for (const Helper& helper : helpers()) {
    for (const auto& [name, type] : used_) {
      if (name != helper.name) continue;
      std::string body = replace_all(type == "float" && helper.float_text != nullptr ? helper.float_text : helper.text, "$T", type);
      body = replace_all(body, "$f", type == "float" ? "f" : "");
      for (const char* function : {"exp", "erfc", "floor"})
        body = replace_all(body, std::string("{") + function + "}", math_function(function, type));
      text += std::string(text.empty() ? "" : "\n") + "/// " + helper.comment + "\n__device__ __forceinline__ " + body + "\n";
    }
  }
  return text;
}

}  // namespace kw::generator
