// LibFormat behind one function: see format_text.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/rewrite/format_text.h"

#include <algorithm>

#include <clang/Format/Format.h>

namespace kw::generator {
namespace {

clang::format::FormatStyle emitted_style() {
  using Style = clang::format::FormatStyle;
  Style style = clang::format::getGoogleStyle(Style::LK_Cpp);
  style.ColumnLimit = 110;
  style.DerivePointerAlignment = false;
  style.PointerAlignment = Style::PAS_Left;
  style.SortIncludes = Style::SI_Never;
  style.SortUsingDeclarations = Style::SUD_Never;
  style.BreakStringLiterals = false;   // PTX text keeps its lines
  style.CommentPragmas = "^[/!<]*  ";  // indented comment lines are tables: no text is moved into them
  style.MaxEmptyLinesToKeep = 1;
  style.AllowShortIfStatementsOnASingleLine = Style::SIS_WithoutElse;
  style.FixNamespaceComments = false;
  style.AttributeMacros = {"__device__",   "__host__",   "__global__",   "__forceinline__",
                           "__noinline__", "__shared__", "__restrict__", "__grid_constant__"};
  return style;
}

constexpr int kMaxFormattedNesting = 40;  // LibFormat leaves a line that nests some 50 brackets as it is

int nesting_of(const std::string& text) {
  int depth = 0, deepest = 0;
  for (const char c : text) {
    if (c == '(') deepest = std::max(deepest, ++depth);
    if (c == ')') depth = std::max(0, depth - 1);
  }
  return deepest;
}

}  // namespace

Result<std::string> format_cuda(const std::string& text) {
  const clang::format::FormatStyle style = emitted_style();
  clang::format::FormattingAttemptStatus status;
  const auto replacements =
      clang::format::reformat(style, text, {clang::tooling::Range(0, static_cast<unsigned>(text.size()))}, "variant.cu", &status);
  // A line too deep for it is legal code that is ugly; anything else that it does not understand is a mistake of ours.
  if (!status.FormatComplete && nesting_of(text) < kMaxFormattedNesting)
    return fail(Stage::kEmit, Code::kInternal, "the emitted text cannot be formatted", {"variant.cu", static_cast<int>(status.Line), 0});
  auto formatted = clang::tooling::applyAllReplacements(text, replacements);
  if (!formatted) {
    llvm::consumeError(formatted.takeError());
    return fail(Stage::kEmit, Code::kInternal, "the formatter's changes overlap");
  }
  return *formatted;
}

}  // namespace kw::generator
