// The front of the line: TOML text -> OpSpec (syntax) -> Program (typed). Pure functions; files are read by the caller.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "generator/base/error.h"
#include "generator/spec/program.h"
#include "generator/spec/user_function.h"

namespace kw::generator {

/// A parsed spec file: declarations and the body's syntax tree, names unresolved, sugar unexpanded.
struct OpSpecSyntax;
struct OpSpec {
  std::string name;
  std::string file_name;
  std::string functions_file;             ///< `functions = "my_ops.cuh"`, relative to the spec; empty when absent
  SourceRange functions_where;            ///< of that name
  std::vector<std::string> called_names;  ///< functions called in the body that are not built in
  std::shared_ptr<const OpSpecSyntax> syntax;
};

/// Reads the text of a file named in the spec (`use "other.op.toml"`); the path is relative to the spec's folder.
using FileReader = std::function<Result<std::string>(const std::string& relative_path)>;

/// Parses TOML and notation. All mistakes of the file are reported at once: on failure `diagnostics` has them and the result is null.
std::shared_ptr<const OpSpec> parse_op_spec(std::string_view text, const std::string& file_name, const FileReader& read_file,
                                            Diagnostics& diagnostics);

/// Checks one shape against a program: every dim has a value, sizes stay addressable, subscripts stay inside their axes, each output
/// is covered exactly once. For shapes that do not come from the spec (command line, query, launch).
void check_problem(const Program& program, const Problem& problem, Diagnostics& diagnostics);

/// Gives every free stride ("any") of `problem` that has no value the row-major one: the stride of the axis inside it times its extent.
void complete_strides(const Program& program, Problem& problem);

/// Resolves names, infers extents and types, expands sugar, inlines user functions, orders statements.
std::shared_ptr<const Program> check_op_spec(const OpSpec& spec, const UserFunctions& functions, Diagnostics& diagnostics);

}  // namespace kw::generator
