// What the folding step knows of a text's syntax, as byte offsets: declarations that could be dropped, branches that could be folded,
// blocks. Built once from clang's AST of the text as written (not of instantiations); plain values afterwards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clang {
class ASTContext;
class Stmt;
}  // namespace clang

namespace kw::generator {

struct TextRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// A declaration that disappears when nothing that is kept refers to it. Units nest: members of Config and methods in their struct,
/// local declarations in their function.
struct Unit {
  enum class Kind { kTopLevel, kMember, kLocal, kStaticAssert };
  TextRange range;
  Kind kind = Kind::kTopLevel;
  int parent = -1;
};

/// An if statement. `whole` begins at `if` and includes the else part; ranges of single statements include the semicolon.
struct Branch {
  TextRange whole;
  TextRange then_part;
  std::optional<TextRange> else_part;
  bool is_then_block = false;
  bool is_else_block = false;
  bool has_declaration = false;  ///< if (init; condition) or a condition variable
  std::optional<bool> constant;  ///< of a plain `if` whose condition is made of constants alone
  int parent_block = -1;         ///< block that holds it directly
  int parent_branch = -1;        ///< branch whose then or else part it is
  bool is_parents_else = false;
};

/// A conditional expression whose condition is made of constants alone; both arms have one type.
struct Choice {
  TextRange whole, yes, no;
  bool constant = false;
};

struct BlockStatement {
  TextRange range;
  bool is_jump = false;               ///< return, break, continue
  std::size_t branch = SIZE_MAX;      ///< index of the branch it is, if any
  std::size_t block = SIZE_MAX;       ///< index of the block it is, if any
  std::vector<std::string> declared;  ///< names it declares
};

struct Block {
  TextRange range;  ///< with its braces
  std::vector<BlockStatement> statements;
  std::size_t function_unit = SIZE_MAX;
};

struct SyntaxMap {
  std::vector<Unit> units;       ///< by begin; parents before children
  std::vector<Branch> branches;  ///< by begin
  std::vector<Choice> choices;
  std::vector<Block> blocks;
  std::map<std::size_t, std::size_t> branch_at;  ///< offset of `if` -> index
  std::map<std::size_t, std::size_t> choice_at;  ///< offset of `?` -> index
  std::map<std::size_t, std::size_t> local_at;   ///< offset of a local declaration statement -> unit

  /// Innermost unit that holds the offset, or -1.
  int unit_of(std::size_t offset) const;
};

SyntaxMap map_syntax(clang::ASTContext& context, std::string_view text);

}  // namespace kw::generator
