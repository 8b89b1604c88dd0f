// See ptx_text.h.
// SPDX-License-Identifier: Apache-2.0
#include "tests/simulator/mutation/ptx_text.h"

#include <algorithm>
#include <cctype>

namespace kw::simulate {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

/// At commas outside of brackets and braces.
std::vector<std::string> split_operands(std::string_view text) {
  std::vector<std::string> operands;
  int depth = 0;
  std::size_t first = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const char letter = at < text.size() ? text[at] : ',';
    depth += letter == '[' || letter == '{' ? 1 : letter == ']' || letter == '}' ? -1 : 0;
    if (letter != ',' || depth != 0) continue;
    const std::string_view operand = trim(text.substr(first, at - first));
    if (!operand.empty()) operands.emplace_back(operand);
    first = at + 1;
  }
  return operands;
}

bool is_statement(std::string_view line) {
  return !line.empty() && line.back() == ';' && line.front() != '.' && line.front() != '/' && line.front() != '{';
}

Statement read_statement(std::string_view line) {
  Statement statement;
  line.remove_suffix(1);
  if (line.front() == '@') {
    const std::size_t end = line.find_first_of(" \t");
    statement.guard = line.substr(0, end);
    line = trim(line.substr(end));
  }
  const std::size_t end = line.find_first_of(" \t");
  statement.opcode = line.substr(0, end);
  if (end != std::string_view::npos) statement.operands = split_operands(line.substr(end));
  return statement;
}

/// Opcodes whose first operand is no destination.
bool writes_no_register(std::string_view opcode) {
  for (const std::string_view prefix :
       {"st.", "stmatrix", "cp.", "bar.", "barrier.", "bra", "ret", "exit", "fence", "membar", "red.", "mbarrier.init", "mbarrier.arrive",
        "mbarrier.expect_tx", "wgmma.fence", "wgmma.commit", "wgmma.wait", "setmaxnreg"}) {
    if (starts_with(opcode, prefix)) return true;
  }
  return false;
}

}  // namespace

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }
bool has_part(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

PtxText read_ptx_text(std::string_view text, std::string_view kernel) {
  PtxText result;
  result.kernel = kernel;
  for (std::size_t first = 0; first < text.size();) {
    const std::size_t end = std::min(text.find('\n', first), text.size());
    result.lines.emplace_back(text.substr(first, end - first));
    first = end + 1;
  }
  const std::string entry = ".entry " + std::string(kernel) + "(";
  bool is_inside = false;
  int depth = 0, block = 0;
  for (std::size_t line = 0; line < result.lines.size(); ++line) {
    const std::string_view written = trim(result.lines[line]);
    is_inside = is_inside || has_part(written, entry);
    if (!is_inside) continue;
    if (written == "{" && ++depth == 2) {  // a block of inline assembly
      result.units.push_back({.first_line = line, .last_line = line, .first_statement = result.statements.size(), .block = block});
    } else if (written == "}" && --depth == 1) {
      result.units.back().last_line = line;
    } else if (written == "}" && depth == 0) {
      break;
    } else if (depth == 1 && !written.empty() && written.back() == ':') {
      ++block;
    } else if (depth > 0 && is_statement(written)) {
      Statement statement = read_statement(written);
      statement.line = line;
      if (depth == 1) {
        const bool is_branch = starts_with(statement.opcode, "bra") || statement.opcode == "ret";
        result.units.push_back(
            {.first_line = line, .last_line = line, .first_statement = result.statements.size(), .block = is_branch ? ++block : block});
        if (is_branch) ++block;
      }
      statement.unit = result.units.size() - 1;
      ++result.units.back().num_statements;
      result.statements.push_back(std::move(statement));
    }
  }
  return result;
}

std::string to_text(const Statement& statement) {
  std::string text = statement.guard.empty() ? "" : statement.guard + " ";
  text += statement.opcode;
  for (std::size_t index = 0; index < statement.operands.size(); ++index) text += (index == 0 ? " " : ", ") + statement.operands[index];
  return text + ";";
}

std::vector<std::string> names_in(std::string_view operand) {
  std::vector<std::string> names;
  const auto is_name = [](char letter) { return std::isalnum(static_cast<unsigned char>(letter)) || letter == '_' || letter == '%'; };
  for (std::size_t at = 0; at < operand.size();) {
    std::size_t end = at;
    while (end < operand.size() && is_name(operand[end])) ++end;
    const bool is_register = end > at && !std::isdigit(static_cast<unsigned char>(operand[at])) && operand.substr(at, end - at) != "_";
    if (is_register) names.emplace_back(operand.substr(at, end - at));
    at = std::max(end, at + 1);
  }
  return names;
}

std::vector<std::string> names_written(const Statement& statement) {
  if (writes_no_register(statement.opcode) || statement.operands.empty()) return {};
  return names_in(statement.operands.front());
}

std::vector<std::string> names_read(const Statement& statement) {
  std::vector<std::string> names = names_in(statement.guard);
  for (std::size_t index = writes_no_register(statement.opcode) ? 0 : 1; index < statement.operands.size(); ++index) {
    for (std::string& name : names_in(statement.operands[index])) names.push_back(std::move(name));
  }
  if (starts_with(statement.opcode, "wgmma.mma")) {  // accumulators are read too
    for (std::string& name : names_in(statement.operands.front())) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace kw::simulate
