// See json_text.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/base/json_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace kw {
namespace {

/// The offset at which the depth passes the bound, or npos. Brackets in strings do not count.
std::size_t offset_of_excess(const std::string& text) {
  int depth = 0;
  bool is_in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (is_in_string) {
      if (c == '\\') ++at;
      if (c == '"') is_in_string = false;
    } else if (c == '"') {
      is_in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxJsonDepth) return at;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return std::string::npos;
}

}  // namespace

Result<nlohmann::json> json_from_text(const std::string& text) {
  if (const std::size_t at = offset_of_excess(text); at != std::string::npos)
    return fail(Stage::kDatabase, Code::kBadInput, fmt::format("byte {}: JSON nested deeper than {}", at, kMaxJsonDepth));
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    return fail(Stage::kDatabase, Code::kBadInput, error.what());
  }
}

}  // namespace kw
