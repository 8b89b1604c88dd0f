// A kernel's PTX text as lines, statements and blocks of inline assembly: what the mutation operators work on.
// Reads the layout that nvcc and NVRTC emit (one statement a line, braces alone on theirs). Nothing is parsed further than opcode,
// guard and operands; the simulator's own parser judges the result.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kw::simulate {

/// One instruction of the kernel.
struct Statement {
  std::size_t line = 0;  ///< index into PtxText::lines
  std::string guard;     ///< "@%p1" or ""
  std::string opcode;    ///< "bar.sync"
  std::vector<std::string> operands;
  std::size_t unit = 0;  ///< index into PtxText::units
};

/// Lines that move together: one statement, or a braced block of inline assembly.
struct Unit {
  std::size_t first_line = 0, last_line = 0;
  std::size_t first_statement = 0, num_statements = 0;
  int block = 0;  ///< straight-line part of the kernel; a label and a branch each begin a new one
};

struct PtxText {
  std::string kernel;
  std::vector<std::string> lines;
  std::vector<Statement> statements;  ///< of the kernel only
  std::vector<Unit> units;
};

/// The lines of `text` and the statements of its entry `kernel`; none when there is no such entry.
PtxText read_ptx_text(std::string_view text, std::string_view kernel);

/// "  @%p1 bra L;" as written: guard, opcode, operands.
std::string to_text(const Statement& statement);

/// Names of registers in an operand: "{%r1, %r2}" -> %r1, %r2. Also the names that inline assembly declares.
std::vector<std::string> names_in(std::string_view operand);

/// Operands that the statement writes; the others it reads.
std::vector<std::string> names_written(const Statement& statement);
std::vector<std::string> names_read(const Statement& statement);

bool starts_with(std::string_view text, std::string_view prefix);
bool has_part(std::string_view text, std::string_view part);

}  // namespace kw::simulate
