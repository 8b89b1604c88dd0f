// What the parser's files share: the cursor, the module under construction, and the scopes of names in a kernel's body.
// The braces of inline assembly open a scope in which register and label names may repeat.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "simulator/ptx/module.h"
#include "simulator/ptx/parser.h"
#include "simulator/ptx/token_stream.h"

namespace kw::simulate {

class Parser {
 public:
  Parser(std::vector<Token> tokens, std::string_view file);
  Result<Module> run();

 private:
  using SourcePosition = std::tuple<int, int, int>;  ///< file, line, column
  /// A family `%r<n>`: registers first, first + 1, ... named prefix0, prefix1, ...; a single register has count -1.
  struct RegisterName {
    int first = 0;
    int count = -1;
  };
  /// An operand that names a label not seen yet: operand `operand` of instruction `instruction`, or a .branchtargets entry.
  struct LabelUse {
    std::string_view name = {};
    int line = 0;
    int instruction = 0;
    int operand = 0;
    bool is_branch_target = false;
  };
  struct Scope {
    std::unordered_map<std::string_view, RegisterName> registers;
    std::unordered_map<std::string_view, int> symbols;
    std::unordered_map<std::string_view, int> labels;          ///< instruction index
    std::unordered_map<std::string_view, int> branch_targets;  ///< index into Kernel::branch_targets
    std::vector<LabelUse> open_uses;
  };

  // parser.cpp: the module
  Status parse_header();
  Status parse_module_item();
  Status parse_file_directive();
  Status skip_section();
  Status skip_function();
  Result<Variable> parse_variable(StateSpace space, bool is_extern);
  Status parse_variable_name(Variable& variable, int element_bits);
  Status parse_initializer(Variable& variable, int element_bits);
  Status parse_kernel();
  Status parse_parameters();
  Status parse_kernel_directives();
  Result<Extent3> parse_extent3(std::string_view what);
  void count_parameter(Variable& variable);
  // parser_body.cpp: a kernel's statements
  Status parse_body();
  Status parse_statement();
  Status parse_directive_statement();
  Status parse_registers();
  Status add_register(std::string_view name, ScalarType type, int count);
  Status parse_location();
  Result<SourcePosition> parse_position();
  Status parse_branch_targets(std::string_view name);
  Status parse_label(std::string_view name);
  Status close_scope();
  Status parse_instruction();
  Result<int> form_index(std::string_view text);
  // parser_operand.cpp: operands
  Status parse_operands(Instruction& instruction, const OpcodeRow& row);
  Result<Operand> parse_operand(bool is_label);
  Result<Operand> parse_vector();
  Result<Operand> parse_memory();
  Result<Operand> parse_number();
  Result<Operand> parse_name(bool is_label);
  Status check_operand(const Operand& operand, char operand_class, int number, std::string_view form) const;
  bool is_predicate(const Operand& operand) const;
  int find_register(std::string_view name) const;
  int find_symbol(std::string_view name) const;

  TokenStream tokens_;
  Module module_;
  Kernel* kernel_ = nullptr;
  std::vector<Scope> scopes_;                               ///< [0] module, [1] kernel, then braces
  std::unordered_map<std::string_view, int> form_by_text_;  ///< keys: views of the parsed text
  int source_file_ = 0;
  int source_line_ = 0;
  int call_site_ = -1;
  std::map<SourcePosition, int> call_site_at_;                       ///< of the last .loc at this position
  std::map<std::pair<SourcePosition, int>, int> call_site_indices_;  ///< (inlined_at, outer) -> index into Module::call_sites
  int operand_depth_ = 0;
};

}  // namespace kw::simulate
