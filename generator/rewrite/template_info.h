// What a template says about itself, read once from its source by LibTooling. No clang type leaves this folder.
// The annotations are macros of templates/parts/annotations.cuh over clang::annotate.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/base/error.h"
#include "generator/base/int_expr.h"

namespace kw::generator {

/// File name -> text: the template folder as embedded in the executable ("gemm/gemm_simt.cuh", "ptx/mma.cuh", ...).
using SourceTree = std::map<std::string, std::string>;

/// A member of Config annotated TUNE("key", values...) or TUNE("key", "variable", values...): searched.
struct Tunable {
  std::string name;                  ///< "BLOCK_M"
  std::string key;                   ///< "m": short spelling in variant ids
  std::vector<std::int64_t> values;  ///< ascending as written
  std::int64_t default_value = 0;
  std::string doc;                    ///< the comment behind it
  std::string problem_variable = {};  ///< "extent_n": its value at the problem is searched too; empty for most
};

/// A member of Config annotated BIND("source"): given by the problem, not searched.
/// Type members (`using ElementA`) are bound to an element type, constants to a number.
struct Binding {
  std::string name;    ///< "ElementA", "A_IS_K_CONTIGUOUS"
  std::string source;  ///< "dtype:A", "unit_stride:A:k", "dtype:accumulate", "static:K" ...
  bool is_type = false;
};

/// A constexpr function annotated RULE("name", "why"): over tunables, bindings and limit variables -> on the config;
/// with parameters (dims and strides of the problem) -> on the problem. Bodies are inlined into one expression.
struct Rule {
  std::string name;
  std::string why;
  IntExpr expression;  ///< variables: tunables, numeric bindings, "size_bytes.ElementA", limits, problem variables
  bool is_on_problem = false;
};

/// A constexpr function annotated LAUNCH("what") or ESTIMATE("what"): grid_x, block_x, dynamic_smem_bytes, workspace sizes; model inputs.
struct Quantity {
  std::string name;
  IntExpr expression;
};

struct KernelParameter {
  std::string name;
  std::string type;  ///< as written
  bool is_pointer = false;
  std::vector<std::pair<std::string, std::string>> fields;  ///< of a struct parameter: (type, name) in order; empty otherwise
};

struct TemplateInfo {
  std::string name;               ///< "gemm_sm80_mma": also the extern "C" kernel's name
  std::string file;               ///< "gemm/gemm_sm80_mma.cuh"
  std::string contract;           ///< the opening comment
  std::string computes;           ///< COMPUTES("...") in the notation
  std::string min_arch;           ///< REQUIRES_ARCH("sm_80")
  std::vector<Tunable> tunables;  ///< in source order
  std::vector<Binding> bindings;
  std::vector<Rule> rules;
  std::vector<Quantity> launch;  ///< by name
  std::vector<Quantity> estimates;
  std::vector<std::string> workspaces;  ///< NAME of each LAUNCH("workspace:NAME") and ("workspace_zeroed:NAME"), in source order
  std::vector<KernelParameter> parameters;
  std::vector<std::string> hooks;  ///< functions and structs annotated HOOK("name")
};

/// Parses a template. Errors (stage kTemplate): clang's diagnostics, an annotation that does not fit, a rule outside the integer subset,
/// each with file and line.
Result<TemplateInfo> read_template(const SourceTree& sources, const std::string& file);

}  // namespace kw::generator
