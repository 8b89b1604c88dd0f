// Matching of forms against the rows of the opcode table.
// Place: simulator/ptx/opcodes.h; the rows are in opcode_rows.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/ptx/opcodes.h"

#include <set>
#include <string>

namespace kw::simulate {
namespace {

bool alternative_matches(std::string_view alternative, std::string_view modifier) {
  if (alternative.ends_with('*')) return modifier.starts_with(alternative.substr(0, alternative.size() - 1));
  return alternative == modifier;
}

bool group_matches(std::string_view group, std::string_view modifier) {
  while (true) {
    const std::size_t bar = group.find('|');
    if (alternative_matches(group.substr(0, bar), modifier)) return true;
    if (bar == std::string_view::npos) return false;
    group.remove_prefix(bar + 1);
  }
}

/// Patterns have at most a dozen optional groups with few words in common, so trying both ways stays cheap.
bool matches_from(std::string_view pattern, const std::vector<std::string>& modifiers, std::size_t at) {
  if (pattern.empty()) return at == modifiers.size();
  const std::size_t space = pattern.find(' ');
  std::string_view group = pattern.substr(0, space);
  const std::string_view rest = space == std::string_view::npos ? std::string_view{} : pattern.substr(space + 1);
  const bool is_optional = group.ends_with('?');
  if (is_optional) group.remove_suffix(1);
  if (at < modifiers.size() && group_matches(group, modifiers[at]) && matches_from(rest, modifiers, at + 1)) return true;
  return is_optional && matches_from(rest, modifiers, at);
}

}  // namespace

bool matches_pattern(std::string_view pattern, const std::vector<std::string>& modifiers) { return matches_from(pattern, modifiers, 0); }

const OpcodeRow* find_opcode(std::string_view base, const std::vector<std::string>& modifiers) {
  for (const OpcodeRow& row : opcode_rows()) {
    if (row.base == base && matches_pattern(row.pattern, modifiers)) return &row;
  }
  return nullptr;
}

std::vector<std::string> opcode_names() {
  std::set<std::string> names;
  for (const OpcodeRow& row : opcode_rows()) names.emplace(row.base);
  return {names.begin(), names.end()};
}

}  // namespace kw::simulate
