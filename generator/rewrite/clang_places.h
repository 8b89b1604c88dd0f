// Places and texts of clang nodes as plain values. Private to the files of this folder that include clang's headers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <clang/AST/ASTContext.h>
#include <clang/Basic/SourceManager.h>

#include "generator/base/error.h"

namespace kw::generator {

/// File, line and column; the parser's root folder is not part of the file name.
inline SourceRange place_of(const clang::ASTContext& context, clang::SourceLocation location) {
  const clang::SourceManager& sources = context.getSourceManager();
  const clang::PresumedLoc place = sources.getPresumedLoc(sources.getExpansionLoc(location));
  if (place.isInvalid()) return {};
  constexpr std::string_view kRoot = "/kw/";
  std::string_view file = place.getFilename();
  if (file.starts_with(kRoot)) file.remove_prefix(kRoot.size());
  return {std::string(file), static_cast<int>(place.getLine()), static_cast<int>(place.getColumn())};
}

/// Whether the place is in a file of the job (not in the prelude and not built in).
inline bool is_in_job(const clang::ASTContext& context, clang::SourceLocation location) {
  const clang::SourceManager& sources = context.getSourceManager();
  const clang::PresumedLoc place = sources.getPresumedLoc(sources.getExpansionLoc(location));
  return place.isValid() && std::string_view(place.getFilename()).starts_with("/kw/");
}

}  // namespace kw::generator
