// The module level of the parser: header, module variables, kernels with their parameters and directives.
// Place: simulator/ptx/parser.h; bodies are parsed in parser_body.cpp, operands in parser_operand.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/ptx/parser.h"

#include <algorithm>
#include <bit>

#include "simulator/ptx/parser_state.h"

namespace kw::simulate {
namespace {

constexpr std::uint64_t kMaxVariableBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxModuleBytes = std::uint64_t{1} << 31;
constexpr std::uint64_t kMaxParameterBytes = 32764;  // PTX ISA, kernel parameters: 32,764 bytes from sm_70 on
constexpr int kMaxVersionMajor = 9;                  // CUDA 13.x emits 9.0 to 9.9

std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

Parser::Parser(std::vector<Token> tokens, std::string_view file) : tokens_(std::move(tokens), file) {
  module_.file = std::string(file);
  module_.source_files.emplace_back();
  scopes_.emplace_back();
}

Result<Module> Parser::run() {
  KW_TRY_VOID(parse_header());
  while (!tokens_.at_end()) KW_TRY_VOID(parse_module_item());
  return std::move(module_);
}

Status Parser::parse_header() {
  if (!tokens_.accept_word(".version")) return tokens_.error("a PTX text begins with .version, found " + tokens_.shown());
  // "9.0" is cut as a decimal fraction.
  const Token version = tokens_.take();
  const std::size_t dot = version.text.find('.');
  if (version.kind != Token::Kind::kFloat64 || dot == std::string_view::npos || dot > 2 || version.text.size() > dot + 3) {
    return tokens_.error(".version: a number like 8.5 expected, found '" + std::string(version.text.substr(0, 60)) + "'");
  }
  module_.version_major = std::atoi(std::string(version.text.substr(0, dot)).c_str());
  module_.version_minor = std::atoi(std::string(version.text.substr(dot + 1)).c_str());
  if (module_.version_major > kMaxVersionMajor || module_.version_major < 6) {
    return tokens_.error(".version " + std::string(version.text) + ": the simulator knows 6.0 to 9.9", Code::kNotSupported, version.line);
  }
  if (!tokens_.accept_word(".target")) return tokens_.error(".target expected, found " + tokens_.shown());
  KW_TRY(const std::string_view target, tokens_.expect_word(".target's architecture"));
  module_.target = std::string(target);
  if (!target.starts_with("sm_")) return tokens_.error(".target " + module_.target + ": an architecture like sm_80 expected");
  while (tokens_.accept(',')) KW_TRY_VOID(tokens_.expect_word("a target option"));
  if (tokens_.accept_word(".address_size")) {
    KW_TRY(const std::uint64_t bits, tokens_.expect_integer(".address_size", 64));
    if (bits != 64) return tokens_.error(".address_size " + std::to_string(bits) + ": must be 64", Code::kNotSupported);
  }
  return {};
}

Status Parser::parse_module_item() {
  if (tokens_.is_word(".file")) return parse_file_directive();
  if (tokens_.is_word(".section")) return skip_section();
  if (tokens_.is_word(".pragma")) {
    while (!tokens_.at_end() && !tokens_.is(';')) tokens_.take();
    return tokens_.expect(';');
  }
  bool is_extern = false;
  while (true) {
    if (tokens_.accept_word(".extern")) {
      is_extern = true;
    } else if (!tokens_.accept_word(".visible") && !tokens_.accept_word(".weak") && !tokens_.accept_word(".common")) {
      break;
    }
  }
  if (tokens_.accept_word(".entry")) return parse_kernel();
  if (tokens_.accept_word(".func")) return skip_function();
  StateSpace space = StateSpace::kGlobal;
  if (tokens_.accept_word(".const")) {
    space = StateSpace::kConst;
  } else if (tokens_.accept_word(".shared")) {
    space = StateSpace::kShared;
  } else if (!tokens_.accept_word(".global")) {
    return tokens_.error("a module has .entry, .global, .const, .shared, .func; found " + tokens_.shown());
  }
  KW_TRY(Variable variable, parse_variable(space, is_extern));
  if (is_extern && space != StateSpace::kShared) {
    return tokens_.error("variable " + variable.name + " is .extern: linking several modules is not supported", Code::kNotSupported);
  }
  std::uint64_t total = variable.size_bytes;
  for (const Variable& other : module_.variables) total += other.size_bytes;
  if (total > kMaxModuleBytes) return tokens_.error("the module's variables take " + std::to_string(total) + " bytes: at most 2 GiB");
  module_.variables.push_back(std::move(variable));
  return {};
}

Status Parser::parse_file_directive() {
  tokens_.take();
  KW_TRY(const std::uint64_t number, tokens_.expect_integer(".file's number", 4095));
  if (tokens_.peek().kind != Token::Kind::kString) return tokens_.error(".file: a name expected, found " + tokens_.shown());
  const Token name = tokens_.take();
  while (tokens_.accept(',')) KW_TRY_VOID(tokens_.expect_integer(".file's time or size", ~std::uint64_t{0}));
  if (module_.source_files.size() <= number) module_.source_files.resize(number + 1);
  module_.source_files[number] = std::string(name.text);
  return {};
}

Status Parser::skip_section() {
  tokens_.take();
  while (!tokens_.at_end() && !tokens_.is('{')) tokens_.take();
  KW_TRY_VOID(tokens_.expect('{'));
  while (!tokens_.at_end() && !tokens_.is('}')) tokens_.take();
  return tokens_.expect('}');
}

// Functions are declared by printf and assert and defined by __noinline__; `call` is no row of the opcode table, so a kernel that uses
// one is refused there, and a kernel that does not need not care.
Status Parser::skip_function() {
  while (!tokens_.at_end() && !tokens_.is('{') && !tokens_.is(';')) tokens_.take();
  if (tokens_.accept(';')) return {};
  int depth = 0;
  do {
    if (tokens_.is('{')) ++depth;
    if (tokens_.is('}')) --depth;
    if (tokens_.at_end()) return tokens_.error("a .func does not end");
    tokens_.take();
  } while (depth > 0);
  return {};
}

/// From after ".global" to the ';'.
Result<Variable> Parser::parse_variable(StateSpace space, bool is_extern) {
  Variable variable{.space = space, .is_extern = is_extern, .line = tokens_.peek().line};
  int element_bits = 0;
  std::uint32_t align = 0;
  int vector = 1;
  while (tokens_.peek().kind == Token::Kind::kWord && tokens_.peek().text.starts_with('.')) {
    const std::string_view word = tokens_.take().text;
    if (word == ".align") {
      KW_TRY(const std::uint64_t bytes, tokens_.expect_integer(".align", 1 << 20));
      if (!std::has_single_bit(bytes)) return tokens_.error(".align " + std::to_string(bytes) + ": must be a power of two");
      align = static_cast<std::uint32_t>(bytes);
    } else if (word == ".v2" || word == ".v4") {
      vector = word[2] - '0';
    } else if (const auto type = scalar_type_from_text(word.substr(1)); type && *type != ScalarType::kPred) {
      element_bits = bits_of(*type) * vector;
    } else if (word != ".attribute") {
      return tokens_.error("'" + std::string(word) + "' in the declaration of a variable is not known", Code::kNotSupported);
    }
  }
  if (element_bits == 0) return tokens_.error("a variable's type expected, found " + tokens_.shown());
  variable.align_bytes = std::max(align, static_cast<std::uint32_t>(element_bits / 8));
  KW_TRY_VOID(parse_variable_name(variable, element_bits));
  if (tokens_.accept('=')) KW_TRY_VOID(parse_initializer(variable, element_bits / vector));
  KW_TRY_VOID(tokens_.expect(';'));
  return variable;
}

/// NAME[N][M], and its size.
Status Parser::parse_variable_name(Variable& variable, int element_bits) {
  const Token name = tokens_.peek();
  KW_TRY(const std::string_view text, tokens_.expect_word("a variable's name"));
  variable.name = std::string(text);
  std::uint64_t count = 1;
  bool is_open = false;
  while (tokens_.accept('[')) {
    if (tokens_.is(']')) {
      is_open = true;
    } else {
      KW_TRY(const std::uint64_t extent, tokens_.expect_integer("an array's extent", kMaxVariableBytes));
      count *= extent;
      if (count > kMaxVariableBytes) return tokens_.error("variable " + variable.name + ": more than 1 GiB");
    }
    KW_TRY_VOID(tokens_.expect(']'));
  }
  if (is_open && !variable.is_extern) return tokens_.error("variable " + variable.name + ": an extent is missing");
  variable.size_bytes = is_open ? 0 : count * static_cast<std::uint64_t>(element_bits) / 8;
  if (variable.size_bytes > kMaxVariableBytes) return tokens_.error("variable " + variable.name + ": more than 1 GiB");
  int index = static_cast<int>(module_.variables.size());
  if (kernel_ != nullptr) index += static_cast<int>(kernel_->parameters.size() + kernel_->variables.size());
  if (!scopes_.back().symbols.emplace(name.text, index).second) {
    return tokens_.error("variable " + variable.name + " is declared twice", Code::kBadInput, name.line);
  }
  return {};
}

/// A number, or nested { } of numbers; missing ones are zero.
Status Parser::parse_initializer(Variable& variable, int element_bits) {
  const auto bytes = static_cast<std::size_t>(element_bits / 8);
  variable.initial.clear();
  int depth = 0;
  do {
    if (tokens_.accept('{')) {
      ++depth;
      continue;
    }
    if (depth > 0 && tokens_.accept('}')) {
      --depth;
      tokens_.accept(',');
      continue;
    }
    KW_TRY(const Operand value, parse_number());
    std::uint64_t bits = value.bits;
    if (value.immediate_type == ScalarType::kF64 && element_bits == 32) {
      bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
    }
    for (std::size_t i = 0; i < bytes; ++i) variable.initial.push_back(i < 8 ? static_cast<std::uint8_t>(bits >> (8 * i)) : 0);
    if (variable.initial.size() > variable.size_bytes) return tokens_.error("variable " + variable.name + ": too many initial values");
    if (depth > 0 && !tokens_.is('}')) KW_TRY_VOID(tokens_.expect(','));
  } while (depth > 0 && !tokens_.at_end());
  if (depth != 0) return tokens_.error("variable " + variable.name + ": its initial values do not end");
  return {};
}

Status Parser::parse_kernel() {
  const int line = tokens_.peek().line;
  KW_TRY(const std::string_view name, tokens_.expect_word("a kernel's name"));
  Kernel kernel{.name = std::string(name), .line = line, .num_module_variables = module_.variables.size()};
  if (module_.find_kernel(name) != nullptr) return tokens_.error("kernel " + kernel.name + " is defined twice", Code::kBadInput, line);
  kernel_ = &kernel;
  scopes_.emplace_back();
  if (tokens_.accept('(')) KW_TRY_VOID(parse_parameters());
  KW_TRY_VOID(parse_kernel_directives());
  KW_TRY_VOID(parse_body());
  kernel_ = nullptr;
  source_line_ = source_file_ = 0;
  call_site_ = -1;
  call_site_at_.clear();
  module_.kernels.push_back(std::move(kernel));
  return {};
}

Status Parser::parse_parameters() {
  while (!tokens_.accept(')')) {
    if (!tokens_.accept_word(".param")) return tokens_.error(".param expected, found " + tokens_.shown());
    Variable variable{.space = StateSpace::kParam, .line = tokens_.peek().line};
    int element_bits = 0;
    std::uint32_t align = 0;
    while (tokens_.peek().kind == Token::Kind::kWord && tokens_.peek().text.starts_with('.')) {
      const std::string_view word = tokens_.take().text;
      if (word == ".align") {
        KW_TRY(const std::uint64_t bytes, tokens_.expect_integer(".align", 4096));
        if (!std::has_single_bit(bytes)) return tokens_.error(".align " + std::to_string(bytes) + ": must be a power of two");
        // After .ptr the alignment is that of the data pointed to.
        if (element_bits == 0) align = static_cast<std::uint32_t>(bytes);
      } else if (const auto type = scalar_type_from_text(word.substr(1)); type && *type != ScalarType::kPred) {
        element_bits = bits_of(*type);
      } else if (word != ".ptr" && word != ".global" && word != ".const" && word != ".local" && word != ".shared") {
        return tokens_.error("parameter attribute '" + std::string(word) + "' is not known", Code::kNotSupported);
      }
    }
    if (element_bits == 0) return tokens_.error("a parameter's type expected, found " + tokens_.shown());
    variable.align_bytes = std::max(align, static_cast<std::uint32_t>(element_bits / 8));
    KW_TRY_VOID(parse_variable_name(variable, element_bits));
    count_parameter(variable);
    if (kernel_->parameter_bytes > kMaxParameterBytes) {
      return tokens_.error("kernel " + kernel_->name + ": more than " + std::to_string(kMaxParameterBytes) + " bytes of parameters");
    }
    kernel_->parameters.push_back(std::move(variable));
    if (!tokens_.is(')')) KW_TRY_VOID(tokens_.expect(','));
  }
  return {};
}

void Parser::count_parameter(Variable& variable) {
  variable.offset_bytes = round_up(kernel_->parameter_bytes, variable.align_bytes);
  kernel_->parameter_bytes = variable.offset_bytes + variable.size_bytes;
}

Result<Extent3> Parser::parse_extent3(std::string_view what) {
  std::uint32_t extents[3] = {1, 1, 1};
  for (std::uint32_t& extent : extents) {
    KW_TRY(const std::uint64_t value, tokens_.expect_integer(what, 1 << 20));
    extent = static_cast<std::uint32_t>(value);
    if (!tokens_.accept(',')) break;
  }
  return Extent3{extents[0], extents[1], extents[2]};
}

Status Parser::parse_kernel_directives() {
  while (!tokens_.is('{')) {
    KW_TRY(const std::string_view word, tokens_.expect_word("a kernel directive or '{'"));
    if (word == ".maxntid") {
      KW_TRY(kernel_->max_threads, parse_extent3(word));
    } else if (word == ".reqntid") {
      KW_TRY(kernel_->required_threads, parse_extent3(word));
    } else if (word == ".reqnctapercluster") {
      KW_TRY(kernel_->required_cluster, parse_extent3(word));
      kernel_->is_explicit_cluster = true;
    } else if (word == ".explicitcluster") {
      kernel_->is_explicit_cluster = true;
    } else if (word == ".minnctapersm" || word == ".maxnreg" || word == ".maxclusterrank" || word == ".maxnctapersm") {
      KW_TRY_VOID(tokens_.expect_integer(word, 1 << 20));
    } else if (word == ".pragma") {
      while (!tokens_.at_end() && !tokens_.accept(';')) tokens_.take();
    } else if (word != ".noreturn") {
      return tokens_.error("kernel directive '" + std::string(word) + "' is not known", Code::kNotSupported);
    }
  }
  return {};
}

Result<Module> parse_ptx(std::string_view text, std::string_view file) {
  KW_TRY(std::vector<Token> tokens, tokenize(text, file));
  return Parser(std::move(tokens), file).run();
}

}  // namespace kw::simulate
