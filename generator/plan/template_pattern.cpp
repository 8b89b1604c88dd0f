// Reads what a template states about itself: "out[b,m,n] = epilogue(sum[k](A[b,m,k] * B[b,k,n]))", in one statement or with an
// intermediate in between. A small reader of its own: a pattern has holes, which the op-spec checker would refuse.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "generator/plan/fusion_group.h"

namespace kw::generator {
namespace {

struct Reader {
  std::string_view text;
  std::size_t position = 0;

  void skip_space() {
    while (position < text.size() && std::isspace(static_cast<unsigned char>(text[position]))) ++position;
  }
  bool accept(char wanted) {
    skip_space();
    if (position >= text.size() || text[position] != wanted) return false;
    ++position;
    return true;
  }
  std::string name() {
    skip_space();
    const std::size_t begin = position;
    while (position < text.size() && (std::isalnum(static_cast<unsigned char>(text[position])) || text[position] == '_')) ++position;
    return std::string(text.substr(begin, position - begin));
  }
};

tl::unexpected<Error> bad_pattern(const Reader& reader, const std::string& rule) {
  return fail(Stage::kTemplate, Code::kBadInput, fmt::format("COMPUTES(\"{}\"): column {}: {}", reader.text, reader.position + 1, rule));
}

Result<std::vector<std::string>> read_indices(Reader& reader) {
  std::vector<std::string> indices;
  if (!reader.accept('[')) return bad_pattern(reader, "expected '[' and index names");
  do {
    indices.push_back(reader.name());
    if (indices.back().empty()) return bad_pattern(reader, "expected an index name");
  } while (reader.accept(','));
  if (!reader.accept(']')) return bad_pattern(reader, "expected ']' after the index names");
  return indices;
}

/// A second contraction repeats the first's left operand and brings a right operand with the same indices.
Status read_contraction(Reader& reader, TemplatePattern& pattern) {
  const bool is_second = !pattern.operands.empty();
  KW_TRY(std::vector<std::string> reduced, read_indices(reader));
  if (is_second && reduced != pattern.reduced) return bad_pattern(reader, "both contractions reduce the same indices");
  pattern.reduced = std::move(reduced);
  if (!reader.accept('(')) return bad_pattern(reader, "expected '(' after sum[...]");
  std::vector<TemplatePattern::Operand> operands;
  do {
    TemplatePattern::Operand operand;
    operand.name = reader.name();
    if (operand.name.empty()) return bad_pattern(reader, "expected the name of an operand");
    KW_TRY(operand.indices, read_indices(reader));
    operands.push_back(std::move(operand));
  } while (reader.accept('*'));
  if (!reader.accept(')')) return bad_pattern(reader, "expected ')' after the product of operands");
  if (!is_second) {
    pattern.operands = std::move(operands);
    return {};
  }
  const bool is_pair = pattern.operands.size() == 2 && operands.size() == 2 && operands[0].name == pattern.operands[0].name &&
                       operands[0].indices == pattern.operands[0].indices && operands[1].indices == pattern.operands[1].indices;
  if (!is_pair) return bad_pattern(reader, "a second contraction has the first's left operand, and a right one with the same indices");
  pattern.operands.push_back(std::move(operands[1]));
  return {};
}

/// row[n](m), list[n](m): the index of a row's elements, then that of the rows.
Status read_row(Reader& reader, const std::string& name, TemplatePattern& pattern) {
  (name == "row" ? pattern.is_row : pattern.is_list) = true;
  KW_TRY(std::vector<std::string> indices, read_indices(reader));
  if (!reader.accept('(')) return bad_pattern(reader, fmt::format("expected '(' after {}[...]", name));
  const std::string rows = reader.name();
  if (!reader.accept(')')) return bad_pattern(reader, "expected ')' after the index of the rows");
  if (indices.size() != 1 || pattern.indices != std::vector<std::string>{rows, indices.front()})
    return bad_pattern(reader, fmt::format("a {0} pattern reads out[m,n] = {0}[n](m)", name));
  return {};
}

/// value := sum[...](...) | row[n](m) | list[n](m) | epilogue(value, ...) | name[indices] of an earlier statement
Status read_value(Reader& reader, const std::set<std::string>& intermediates, TemplatePattern& pattern) {
  const std::string name = reader.name();
  if (name == "sum") return read_contraction(reader, pattern);
  if (name == "row" || name == "list") return read_row(reader, name, pattern);
  if (name == "epilogue") {
    if (!reader.accept('(')) return bad_pattern(reader, "expected '(' after epilogue");
    do {
      KW_TRY_VOID(read_value(reader, intermediates, pattern));
    } while (reader.accept(','));
    if (!reader.accept(')')) return bad_pattern(reader, "expected ')' after the value of epilogue");
    return {};
  }
  if (intermediates.count(name) == 0)
    return bad_pattern(reader, fmt::format("'{}': expected sum[...], row[...], list[...], epilogue(...) or an earlier name", name));
  KW_TRY(const std::vector<std::string> indices, read_indices(reader));
  if (indices != pattern.indices) return bad_pattern(reader, fmt::format("{} is read at other indices than it is written", name));
  return {};
}

}  // namespace

Result<TemplatePattern> parse_template_pattern(std::string_view text) {
  Reader reader{text};
  TemplatePattern pattern;
  std::set<std::string> targets;
  do {
    const std::string target = reader.name();
    if (target.empty()) return bad_pattern(reader, "expected a statement: name[indices] = value");
    KW_TRY(std::vector<std::string> indices, read_indices(reader));
    if (!targets.empty() && indices != pattern.indices) return bad_pattern(reader, "all statements of a pattern have the same indices");
    pattern.indices = std::move(indices);
    if (!reader.accept('=')) return bad_pattern(reader, "expected '='");
    KW_TRY_VOID(read_value(reader, targets, pattern));
    targets.insert(target);
    reader.skip_space();
  } while (reader.position < text.size());
  if (pattern.operands.empty() && !pattern.is_row && !pattern.is_list)
    return bad_pattern(reader, "a pattern states one contraction: sum[...](A[...] * B[...])");
  for (const std::string& index : pattern.reduced) pattern.indices.push_back(index);
  for (const TemplatePattern::Operand& operand : pattern.operands) {
    for (const std::string& index : operand.indices) {
      if (std::find(pattern.indices.begin(), pattern.indices.end(), index) != pattern.indices.end()) continue;
      return bad_pattern(reader, fmt::format("index {} of {} is neither on the left nor reduced", index, operand.name));
    }
  }
  return pattern;
}

}  // namespace kw::generator
