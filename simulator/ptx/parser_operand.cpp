// Operands: registers, numbers, addresses, vectors, pairs and labels, checked against the operand classes of the opcode's row.
// Place: simulator/ptx/parser.h. Widths of registers against the instruction's type are the decoder's matter (simulator/execute).
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "simulator/ptx/parser_state.h"

namespace kw::simulate {
namespace {

constexpr int kMaxOperandDepth = 8;
constexpr std::size_t kMaxVectorParts = 256;

struct ClassText {
  char name;
  bool is_optional;
};

std::vector<ClassText> split_classes(std::string_view text) {
  std::vector<ClassText> classes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text[i] == '?') {
      classes.back().is_optional = true;
    } else {
      classes.push_back(ClassText{text[i], false});
    }
  }
  return classes;
}

std::string_view class_words(char name) {
  switch (static_cast<OperandClass>(name)) {
    case OperandClass::kDestination:
      return "a register or _";
    case OperandClass::kSource:
      return "a register, a number or the address of a variable";
    case OperandClass::kPredicateSource:
      return "a predicate register";
    case OperandClass::kPredicateDestination:
      return "a predicate register or _";
    case OperandClass::kPredicatePair:
      return "a predicate register or a pair p|q";
    case OperandClass::kDestinationPair:
      return "a register or a pair r|p";
    case OperandClass::kMemory:
      return "an address in [ ]";
    case OperandClass::kTensorMemory:
      return "[map, {coordinates}]";
    case OperandClass::kVectorDestination:
      return "a register or a vector in { }";
    case OperandClass::kVectorSource:
      return "a register or a vector in { }";
    case OperandClass::kSourceOrPredicate:
      return "a register, a number or a predicate";
    case OperandClass::kLabel:
      return "a label";
    case OperandClass::kImmediate:
      return "a number";
  }
  return "?";
}

}  // namespace

Status Parser::parse_operands(Instruction& instruction, const OpcodeRow& row) {
  const std::vector<ClassText> classes = split_classes(row.operands);
  const std::string& form = module_.forms[static_cast<std::size_t>(instruction.form)].text;
  int number = 0;
  while (!tokens_.is(';') && !tokens_.at_end()) {
    if (number > 0) KW_TRY_VOID(tokens_.expect(','));
    if (static_cast<std::size_t>(number) >= classes.size()) {
      return tokens_.error(form + ": takes at most " + std::to_string(classes.size()) + " operands, found " + tokens_.shown());
    }
    const char operand_class = classes[static_cast<std::size_t>(number)].name;
    const bool is_label = operand_class == static_cast<char>(OperandClass::kLabel);
    const Token first = tokens_.peek();
    KW_TRY(Operand operand, parse_operand(is_label));
    KW_TRY_VOID(check_operand(operand, operand_class, number + 1, form));
    if (is_label) {
      scopes_.back().open_uses.push_back(LabelUse{first.text, first.line, static_cast<int>(kernel_->instructions.size()), number, false});
    }
    instruction.operands.push_back(std::move(operand));
    ++number;
  }
  if (static_cast<std::size_t>(number) < classes.size() && !classes[static_cast<std::size_t>(number)].is_optional) {
    return tokens_.error(form + ": operand " + std::to_string(number + 1) +
                         " is missing: " + std::string(class_words(classes[static_cast<std::size_t>(number)].name)));
  }
  return {};
}

Result<Operand> Parser::parse_operand(bool is_label) {
  if (operand_depth_ >= kMaxOperandDepth) return tokens_.error("operands are nested too deep");
  ++operand_depth_;
  Result<Operand> operand = tokens_.is('{')                                                ? parse_vector()
                            : tokens_.is('[')                                              ? parse_memory()
                            : tokens_.peek().kind == Token::Kind::kWord || tokens_.is('!') ? parse_name(is_label)
                                                                                           : parse_number();
  --operand_depth_;
  return operand;
}

Result<Operand> Parser::parse_vector() {
  KW_TRY_VOID(tokens_.expect('{'));
  Operand vector{.kind = Operand::Kind::kVector};
  do {
    KW_TRY(Operand part, parse_operand(false));
    if (vector.parts.size() >= kMaxVectorParts) return tokens_.error("a vector has at most 256 elements");
    vector.parts.push_back(std::move(part));
  } while (tokens_.accept(','));
  KW_TRY_VOID(tokens_.expect('}'));
  return vector;
}

Result<Operand> Parser::parse_memory() {
  KW_TRY_VOID(tokens_.expect('['));
  Operand memory{.kind = Operand::Kind::kMemory};
  KW_TRY(Operand base, parse_operand(false));
  if (base.kind != Operand::Kind::kRegister && base.kind != Operand::Kind::kSymbol && base.kind != Operand::Kind::kImmediate) {
    return tokens_.error("an address is a register, a variable or a number, with an offset");
  }
  if (base.is_negated || is_predicate(base)) return tokens_.error("a predicate is no address");
  memory.parts.push_back(std::move(base));
  if (tokens_.is('+') || tokens_.is('-')) {
    tokens_.accept('+');
    KW_TRY(const Operand offset, parse_number());
    if (offset.immediate_type != ScalarType::kS64) return tokens_.error("an address offset is an integer");
    memory.bits = offset.bits;
  }
  if (tokens_.accept(',')) {
    KW_TRY(Operand coordinates, parse_vector());
    memory.parts.push_back(std::move(coordinates));
  }
  KW_TRY_VOID(tokens_.expect(']'));
  return memory;
}

Result<Operand> Parser::parse_number() {
  const bool is_negative = tokens_.accept('-');
  const Token token = tokens_.peek();
  Operand number{.kind = Operand::Kind::kImmediate, .bits = token.bits};
  if (token.kind == Token::Kind::kInteger) {
    number.immediate_type = ScalarType::kS64;
    if (is_negative) number.bits = ~number.bits + 1;
  } else if (token.kind == Token::Kind::kFloat32) {
    number.immediate_type = ScalarType::kF32;
    if (is_negative) number.bits ^= 0x80000000u;
  } else if (token.kind == Token::Kind::kFloat64) {
    number.immediate_type = ScalarType::kF64;
    if (is_negative) number.bits ^= std::uint64_t{1} << 63;
  } else {
    return tokens_.error("an operand expected, found " + tokens_.shown());
  }
  tokens_.take();
  return number;
}

Result<Operand> Parser::parse_name(bool is_label) {
  const bool is_negated = tokens_.accept('!');
  KW_TRY(const std::string_view name, tokens_.expect_word("a name"));
  Operand operand;
  if (is_label) {
    operand.kind = Operand::Kind::kLabel;
    return operand;
  }
  if (name == "_") {
    operand.kind = Operand::Kind::kSink;
  } else if (const int index = find_register(name); index >= 0) {
    operand.kind = Operand::Kind::kRegister;
    operand.index = index;
    operand.is_negated = is_negated;
    if (is_negated && !is_predicate(operand)) return tokens_.error("!" + std::string(name) + ": no predicate register");
  } else if (const auto special = special_register_from_text(name)) {
    operand.kind = Operand::Kind::kSpecial;
    operand.index = static_cast<int>(*special);
  } else if (name == "WARP_SZ") {
    operand = Operand{.kind = Operand::Kind::kImmediate, .immediate_type = ScalarType::kS64, .bits = 32};
  } else if (const int symbol = find_symbol(name); symbol >= 0) {
    operand.kind = Operand::Kind::kSymbol;
    operand.index = symbol;
    // Inside [ ] the offset is the address's.
    if (operand_depth_ == 1 && (tokens_.is('+') || tokens_.is('-'))) {
      tokens_.accept('+');
      KW_TRY(const Operand offset, parse_number());
      operand.bits = offset.bits;
    }
  } else if (name.starts_with('%')) {
    return tokens_.error("register " + std::string(name.substr(0, 80)) + " is not declared", Code::kBadInput);
  } else {
    return tokens_.error("name " + std::string(name.substr(0, 80)) + " is not declared", Code::kBadInput);
  }
  if (tokens_.accept('|')) {
    Operand pair{.kind = Operand::Kind::kPair};
    pair.parts.push_back(std::move(operand));
    KW_TRY(Operand second, parse_operand(false));
    pair.parts.push_back(std::move(second));
    return pair;
  }
  return operand;
}

bool Parser::is_predicate(const Operand& operand) const {
  return operand.kind == Operand::Kind::kRegister && kernel_->registers[static_cast<std::size_t>(operand.index)].type == ScalarType::kPred;
}

Status Parser::check_operand(const Operand& operand, char operand_class, int number, std::string_view form) const {
  using Kind = Operand::Kind;
  const bool is_value = operand.kind == Kind::kRegister && !operand.is_negated;
  const bool is_source = is_value || operand.kind == Kind::kImmediate || operand.kind == Kind::kSpecial || operand.kind == Kind::kSymbol;
  const auto all_parts = [&](auto&& accepts) {
    for (const Operand& part : operand.parts) {
      if (!accepts(part)) return false;
    }
    return true;
  };
  const auto is_target = [](const Operand& part) { return (part.kind == Kind::kRegister && !part.is_negated) || part.kind == Kind::kSink; };
  const auto is_vector_source = [](const Operand& part) {
    return (part.kind == Kind::kRegister && !part.is_negated) || part.kind == Kind::kImmediate || part.kind == Kind::kSink;
  };
  bool fits = false;
  switch (static_cast<OperandClass>(operand_class)) {
    case OperandClass::kDestination:
      fits = is_target(operand);
      break;
    case OperandClass::kSource:
      fits = is_source;
      break;
    case OperandClass::kPredicateSource:
      fits = is_predicate(operand) || operand.kind == Kind::kImmediate;
      break;
    case OperandClass::kPredicateDestination:
      fits = (is_predicate(operand) && !operand.is_negated) || operand.kind == Kind::kSink;
      break;
    case OperandClass::kPredicatePair:
    case OperandClass::kDestinationPair:
      fits = is_target(operand) || (operand.kind == Kind::kPair && all_parts(is_target));
      break;
    case OperandClass::kMemory:
      fits = operand.kind == Kind::kMemory && operand.parts.size() == 1;
      break;
    case OperandClass::kTensorMemory:
      fits = operand.kind == Kind::kMemory && operand.parts.size() == 2;
      break;
    case OperandClass::kVectorDestination:
      fits = is_target(operand) || (operand.kind == Kind::kVector && all_parts(is_target));
      break;
    case OperandClass::kVectorSource:
      fits = is_source || (operand.kind == Kind::kVector && all_parts(is_vector_source));
      break;
    case OperandClass::kSourceOrPredicate:
      fits = is_source || is_predicate(operand);
      break;
    case OperandClass::kLabel:
      fits = operand.kind == Kind::kLabel;
      break;
    case OperandClass::kImmediate:
      fits = operand.kind == Kind::kImmediate && operand.immediate_type == ScalarType::kS64;
      break;
  }
  if (fits) return {};
  return tokens_.error(std::string(form) + ": operand " + std::to_string(number) + " must be " + std::string(class_words(operand_class)));
}

int Parser::find_register(std::string_view name) const {
  std::size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  const std::string_view prefix = name.substr(0, digits);
  const std::string_view number = name.substr(digits);
  const bool is_numbered = !number.empty() && number.size() <= 6 && (number.size() == 1 || number[0] != '0');
  int value = 0;
  for (const char c : is_numbered ? number : std::string_view{}) value = value * 10 + (c - '0');
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->registers.find(name); found != scope->registers.end() && found->second.count < 0) {
      return found->second.first;
    }
    if (!is_numbered) continue;
    if (const auto found = scope->registers.find(prefix); found != scope->registers.end() && value < found->second.count) {
      return found->second.first + value;
    }
  }
  return -1;
}

int Parser::find_symbol(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->symbols.find(name); found != scope->symbols.end()) return found->second;
  }
  return -1;
}

}  // namespace kw::simulate
