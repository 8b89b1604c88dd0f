// Statements of a kernel's body: declarations, labels, locations, instructions, and the scopes of { }.
// Place: simulator/ptx/parser.h. An instruction's form is matched against the opcode table once for each distinct form.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "simulator/ptx/parser_state.h"

namespace kw::simulate {
namespace {

constexpr std::size_t kMaxScopes = 64;
constexpr std::size_t kMaxModifiers = 20;

/// "ld.global.nc" -> "ld", {"global", "nc"}. "shared::cta" stays one modifier.
std::vector<std::string> split_form(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t dot = text.find('.');
    parts.emplace_back(text.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    text.remove_prefix(dot + 1);
  }
}

}  // namespace

Status Parser::parse_body() {
  KW_TRY_VOID(tokens_.expect('{'));
  const std::size_t outer = scopes_.size();
  while (true) {
    if (tokens_.at_end()) return tokens_.error("kernel " + kernel_->name + " does not end");
    if (tokens_.accept('{')) {
      if (scopes_.size() >= kMaxScopes) return tokens_.error("braces are nested more than " + std::to_string(kMaxScopes) + " deep");
      scopes_.emplace_back();
    } else if (tokens_.accept('}')) {
      const bool is_last = scopes_.size() == outer;
      KW_TRY_VOID(close_scope());
      if (is_last) break;
    } else {
      KW_TRY_VOID(parse_statement());
    }
  }
  // A label may stand before the closing brace: it then names the end, where every lane exits.
  KW_TRY(const int end, form_index("ret"));
  kernel_->instructions.push_back(Instruction{.form = end, .line = tokens_.peek().line});
  return {};
}

Status Parser::parse_statement() {
  if (tokens_.accept(';')) return {};
  if (tokens_.is('@')) return parse_instruction();
  if (tokens_.peek().kind != Token::Kind::kWord) return tokens_.error("a statement expected, found " + tokens_.shown());
  if (tokens_.is(':', 1)) {
    const std::string_view name = tokens_.take().text;
    tokens_.take();
    if (tokens_.is_word(".branchtargets")) return parse_branch_targets(name);
    return parse_label(name);
  }
  if (tokens_.peek().text.starts_with('.')) return parse_directive_statement();
  return parse_instruction();
}

Status Parser::parse_directive_statement() {
  const std::string_view word = tokens_.peek().text;
  if (word == ".loc") return parse_location();
  if (word == ".section") return skip_section();
  tokens_.take();
  if (word == ".reg") return parse_registers();
  if (word == ".shared" || word == ".local") {
    KW_TRY(Variable variable, parse_variable(word == ".shared" ? StateSpace::kShared : StateSpace::kLocal, false));
    kernel_->variables.push_back(std::move(variable));
    return {};
  }
  if (word == ".pragma") {
    while (!tokens_.at_end() && !tokens_.is(';')) tokens_.take();
    return tokens_.expect(';');
  }
  return tokens_.error("directive '" + std::string(word) + "' in a body is not known", Code::kNotSupported);
}

Status Parser::parse_registers() {
  KW_TRY(const std::string_view type_word, tokens_.expect_word("a register type"));
  const auto type = scalar_type_from_text(type_word.substr(type_word.starts_with('.') ? 1 : 0));
  if (!type) return tokens_.error(".reg " + std::string(type_word) + ": no such register type", Code::kNotSupported);
  do {
    KW_TRY(const std::string_view name, tokens_.expect_word("a register name"));
    int count = -1;
    if (tokens_.accept('<')) {
      KW_TRY(const std::uint64_t number, tokens_.expect_integer("a number of registers", kMaxRegisters));
      count = static_cast<int>(number);
      KW_TRY_VOID(tokens_.expect('>'));
    }
    KW_TRY_VOID(add_register(name, *type, count));
  } while (tokens_.accept(','));
  return tokens_.expect(';');
}

Status Parser::add_register(std::string_view name, ScalarType type, int count) {
  std::vector<Register>& registers = kernel_->registers;
  const int first = static_cast<int>(registers.size());
  if (first + std::max(count, 1) > kMaxRegisters) {
    return tokens_.error("kernel " + kernel_->name + ": more than " + std::to_string(kMaxRegisters) + " registers", Code::kNotSupported);
  }
  if (!scopes_.back().registers.emplace(name, RegisterName{first, count}).second) {
    return tokens_.error("register " + std::string(name) + " is declared twice");
  }
  if (count < 0) {
    registers.push_back(Register{std::string(name), type});
    return {};
  }
  for (int i = 0; i < count; ++i) registers.push_back(Register{std::string(name) + std::to_string(i), type});
  return {};
}

Result<Parser::SourcePosition> Parser::parse_position() {
  KW_TRY(const std::uint64_t file, tokens_.expect_integer(".loc's file", 4095));
  KW_TRY(const std::uint64_t line, tokens_.expect_integer(".loc's line", 1 << 30));
  KW_TRY(const std::uint64_t column, tokens_.expect_integer(".loc's column", 1 << 30));
  return SourcePosition{static_cast<int>(file), static_cast<int>(line), static_cast<int>(column)};
}

/// .loc FILE LINE COLUMN [, function_name LABEL [+ N], inlined_at FILE LINE COLUMN]. Of nested inlining the directive gives the
/// innermost call only; the call's own position has a .loc before it, which tells the next one.
Status Parser::parse_location() {
  tokens_.take();
  KW_TRY(const SourcePosition position, parse_position());
  std::tie(source_file_, source_line_, std::ignore) = position;
  call_site_ = -1;
  while (tokens_.accept(',')) {
    KW_TRY(const std::string_view word, tokens_.expect_word(".loc's function_name or inlined_at"));
    if (word == "function_name") {
      KW_TRY_VOID(tokens_.expect_word("a debug label"));
      if (tokens_.accept('+')) KW_TRY_VOID(tokens_.expect_integer("an offset", 1 << 30));
    } else if (word == "inlined_at") {
      KW_TRY(const SourcePosition call, parse_position());
      const auto caller = call_site_at_.find(call);
      const int outer = caller == call_site_at_.end() ? -1 : caller->second;
      const auto [entry, is_new] = call_site_indices_.emplace(std::pair(call, outer), static_cast<int>(module_.call_sites.size()));
      if (is_new) module_.call_sites.push_back({std::get<0>(call), std::get<1>(call), outer});
      call_site_ = entry->second;
    } else {
      return tokens_.error(".loc: '" + std::string(word) + "' is not known", Code::kNotSupported);
    }
  }
  call_site_at_[position] = call_site_;
  return {};
}

Status Parser::parse_label(std::string_view name) {
  const int here = static_cast<int>(kernel_->instructions.size());
  if (!scopes_.back().labels.emplace(name, here).second) return tokens_.error("label " + std::string(name) + " is defined twice");
  kernel_->labels.push_back(Label{std::string(name), here});
  return {};
}

/// NAME: .branchtargets L1, L2;
Status Parser::parse_branch_targets(std::string_view name) {
  tokens_.take();
  const int index = static_cast<int>(kernel_->branch_targets.size());
  kernel_->branch_targets.emplace_back();
  if (!scopes_.back().branch_targets.emplace(name, index).second) return tokens_.error(std::string(name) + " is defined twice");
  do {
    const int line = tokens_.peek().line;
    KW_TRY(const std::string_view target, tokens_.expect_word("a label"));
    const int place = static_cast<int>(kernel_->branch_targets.back().size());
    kernel_->branch_targets.back().push_back(0);
    scopes_.back().open_uses.push_back(LabelUse{target, line, index, place, true});
  } while (tokens_.accept(','));
  return tokens_.expect(';');
}

/// Labels may be used before they are defined: uses are resolved when their scope ends, or else in the scope around it.
Status Parser::close_scope() {
  Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  for (const LabelUse& use : scope.open_uses) {
    const auto label = scope.labels.find(use.name);
    if (label != scope.labels.end()) {
      if (use.is_branch_target) {
        kernel_->branch_targets[static_cast<std::size_t>(use.instruction)][static_cast<std::size_t>(use.operand)] = label->second;
      } else {
        kernel_->instructions[static_cast<std::size_t>(use.instruction)].operands[static_cast<std::size_t>(use.operand)].index =
            label->second;
      }
      continue;
    }
    const auto targets = scope.branch_targets.find(use.name);
    if (targets != scope.branch_targets.end() && !use.is_branch_target) {
      kernel_->instructions[static_cast<std::size_t>(use.instruction)].operands[static_cast<std::size_t>(use.operand)].index =
          targets->second;
      continue;
    }
    if (scopes_.size() <= 1) return tokens_.error("label " + std::string(use.name) + " is not defined", Code::kBadInput, use.line);
    scopes_.back().open_uses.push_back(use);
  }
  return {};
}

Result<int> Parser::form_index(std::string_view text) {
  const auto known = form_by_text_.find(text);
  if (known != form_by_text_.end()) return known->second;
  std::vector<std::string> parts = split_form(text);
  const std::string base = parts.front();
  parts.erase(parts.begin());
  const OpcodeRow* row = parts.size() <= kMaxModifiers ? find_opcode(base, parts) : nullptr;
  if (row == nullptr) {
    const std::vector<std::string> names = opcode_names();
    std::string message = "instruction '" + std::string(text.substr(0, 200)) + "' is not supported";
    if (std::find(names.begin(), names.end(), base) != names.end()) {
      message += ": " + base + " is known, not with these modifiers";
    } else if (const std::string near = nearest_name(base, names); !near.empty()) {
      message += " (nearest: " + near + ")";
    }
    return tokens_.error(std::move(message), Code::kNotSupported);
  }
  const int index = static_cast<int>(module_.forms.size());
  module_.forms.push_back(Form{std::string(text), std::move(parts), row});
  form_by_text_.emplace(text, index);
  return index;
}

Status Parser::parse_instruction() {
  Instruction instruction{.line = tokens_.peek().line, .source_file = source_file_, .source_line = source_line_, .call_site = call_site_};
  if (tokens_.accept('@')) {
    instruction.is_guard_negated = tokens_.accept('!');
    KW_TRY(const std::string_view name, tokens_.expect_word("a predicate register"));
    instruction.guard = find_register(name);
    if (instruction.guard < 0 || kernel_->registers[static_cast<std::size_t>(instruction.guard)].type != ScalarType::kPred) {
      return tokens_.error("'" + std::string(name) + "' is no predicate register");
    }
  }
  if (tokens_.peek().kind != Token::Kind::kWord) return tokens_.error("an instruction expected, found " + tokens_.shown());
  KW_TRY(instruction.form, form_index(tokens_.peek().text));
  tokens_.take();
  KW_TRY_VOID(parse_operands(instruction, *module_.forms[static_cast<std::size_t>(instruction.form)].row));
  KW_TRY_VOID(tokens_.expect(';'));
  kernel_->instructions.push_back(std::move(instruction));
  return {};
}

}  // namespace kw::simulate
