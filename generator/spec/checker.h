// What the parts of the checker share: the program in the making, the names declared so far, and messages. Private to generator/spec.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "generator/spec/extents.h"
#include "generator/spec/program.h"
#include "generator/spec/syntax.h"
#include "generator/spec/user_function.h"

namespace kw::generator {

/// Nodes, height and leaves that are indices, of a tree written out in full.
struct TreeSize {
  std::int64_t num_nodes = 0;
  std::int64_t depth = 0;
  std::int64_t num_index_leaves = 0;
};

/// What is known of a name that a statement has defined.
struct Defined {
  std::vector<std::string> indices;  ///< of its axes
  DType dtype = DType::kF32;
  TreeSize size;
  SourceRange where;
};

struct CheckContext {
  const OpSpec& spec;
  const OpSpecSyntax& syntax;
  const UserFunctions& functions;
  Diagnostics& diagnostics;
  bool is_partial = false;  ///< the file has mistakes of syntax: report only what does not follow from them

  Program program = {};
  std::map<std::string, ExprRef> derived = {};        ///< derived dims and exact integer scalars: written out where used
  std::map<std::string, std::string> kinds = {};      ///< declared name -> "a dim", "a tensor", ...
  std::map<std::string, Defined> intermediates = {};  ///< defined by the statements so far
  std::map<std::string, SourceRange> targets = {};    ///< every name some statement writes, and where first
  std::map<std::string, SourceRange> written = {};    ///< tensors written so far
  std::map<std::string, const IndexSyntax*> stated_indices = {};
  std::map<std::string, ExprRef> below = {};                      ///< typed bounds of indices
  std::map<std::string, std::set<std::string>> below_needs = {};  ///< index -> indices that its `below` reads
  std::map<std::string, TreeSize> hidden_sizes = {};  ///< of derived scalars, and of the bounds of indices: written out at each use
  std::set<std::string> broken = {};                  ///< written by a statement with a mistake: reads of it are not reported again
  std::set<std::string> index_names = {};             ///< every name that stands as an index somewhere
  std::set<std::string> used = {};                    ///< names read anywhere
  ExtentSolver extents = {};

  void error(const SourceRange& where, std::string message, Code code = Code::kBadInput) const {
    diagnostics.add({Stage::kSpec, code, std::move(message), where, {}});
  }
  DType real_type() const { return program.accumulate; }
};

// check_declarations.cpp
void declare_accumulate(CheckContext& context);
void declare_dims(CheckContext& context);
void declare_tensors(CheckContext& context);
void declare_scalars(CheckContext& context);
void declare_indices(CheckContext& context);
void finish_indices(CheckContext& context);

// check_statements.cpp
void check_statements(CheckContext& context, const std::vector<StatementSyntax>& statements);
void check_all_used(CheckContext& context);

// check_problems.cpp
void make_problems(CheckContext& context);

/// "; did you mean 'x'?" with the declared or written name nearest to `name`; "" when none is near.
std::string suggest(const CheckContext& context, const std::string& name);

// check_op_spec.cpp
/// For a file with mistakes of syntax: adds the mistakes of what did parse.
void check_what_parsed(const OpSpec& spec, Diagnostics& diagnostics);

/// Statements of `statements` and `chain` with the sugar expanded; reports what cannot be expanded.
std::vector<StatementSyntax> expand_sugar(CheckContext& context);

}  // namespace kw::generator
