// One parse by clang, in this process, of a text in memory: no driver, no file system, no global state, so calls run in parallel.
// The callback sees the AST of the whole unit while it lives; nothing of it may be kept.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>

#include "generator/base/error.h"

namespace clang {
class ASTContext;
}

namespace kw::generator {

struct ClangJob {
  std::map<std::string, std::string> files;  ///< path -> text; includes are looked up here
  std::string main_file;
  Stage stage = Stage::kTemplate;       ///< for errors
  int max_constexpr_steps = 1'000'000;  ///< of one constant expression
};

/// Parses as CUDA device code (C++20, sm_90a) behind the prelude. Without errors `use` gets the AST; else all of clang's errors come back,
/// each with file, line and column.
Diagnostics parse_cuda(const ClangJob& job, const std::function<void(clang::ASTContext&)>& use);

/// The first error, with the others' lines as detail.
Error first_error(const Diagnostics& diagnostics);

}  // namespace kw::generator
