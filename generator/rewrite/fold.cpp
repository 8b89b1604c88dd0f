// Turns what the walk found into deletions, with the comments that belong to what goes: see fold.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/rewrite/fold.h"

#include <algorithm>
#include <optional>
#include <set>

#include "generator/rewrite/clang_session.h"
#include "generator/rewrite/reach.h"
#include "generator/rewrite/tokens.h"

namespace kw::generator {
namespace {

class Folder {
 public:
  Folder(std::string_view text, const SyntaxMap& syntax, const Reach& reach)
      : text_(text), syntax_(syntax), reach_(reach), tokens_(tokenize(text)) {}

  std::string fold() {
    for (std::size_t i = 0; i < syntax_.units.size(); ++i) drop_dead_unit(i);
    drop_dead_headings();
    for (const Choice& choice : syntax_.choices) fold_choice(choice);
    for (std::size_t i = 0; i < syntax_.branches.size(); ++i) fold_branch(i);
    for (const Block& block : syntax_.blocks) drop_after_jump(block);
    unwrap_blocks();
    return apply_edits(text_, std::move(edits_));
  }

 private:
  // ---- comments ----
  std::size_t line_begin(std::size_t at) const {
    const std::size_t newline = at == 0 ? std::string_view::npos : text_.rfind('\n', at - 1);
    return newline == std::string_view::npos ? 0 : newline + 1;
  }
  std::string_view trimmed_line(std::size_t begin) const {
    std::string_view line = text_.substr(begin, std::min(text_.find('\n', begin), text_.size()) - begin);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return line;
  }
  /// Start of the comment lines directly above the line of `at`, or `at` when other code stands before it on its line.
  std::size_t with_comments_above(std::size_t at) const {
    std::size_t begin = line_begin(at);
    if (text_.substr(begin, at - begin).find_first_not_of(" \t") != std::string_view::npos) return at;
    while (begin > 0) {
      const std::size_t above = line_begin(begin - 1);
      const std::string_view line = trimmed_line(above);
      if (!line.starts_with("//") && !line.starts_with("#pragma unroll")) break;
      begin = above;
    }
    return begin;
  }
  /// End with the comment behind `at` on its line, and lines that go on with the same "///<" mark.
  std::size_t with_comment_behind(std::size_t at) const {
    const std::size_t comment = text_.find_first_not_of(" \t", at);
    if (comment == std::string_view::npos || text_.substr(comment, 2) != "//") return at;
    std::size_t end = std::min(text_.find('\n', comment), text_.size());
    while (end < text_.size() && trimmed_line(end + 1).starts_with("///<")) end = std::min(text_.find('\n', end + 1), text_.size());
    return end;
  }

  void drop(std::size_t begin, std::size_t end) {
    if (begin < end) edits_.push_back({begin, end, ""});
  }
  void drop_with_comments(TextRange range) { drop(with_comments_above(range.begin), with_comment_behind(range.end)); }

  // ---- declarations ----
  void drop_dead_unit(std::size_t index) {
    const Unit& unit = syntax_.units[index];
    if (reach_.is_live[index] || (unit.kind == Unit::Kind::kLocal && !reach_.is_seen[index])) return;
    drop_with_comments(unit.range);
  }

  /// A comment that a blank line follows heads the declarations up to the next such comment; it goes when they all go.
  void drop_dead_headings() {
    std::size_t unit = 0;
    std::optional<TextRange> heading;
    bool has_live = false;
    const auto close_heading = [&] {
      if (heading && !has_live) drop(heading->begin, heading->end);
    };
    for (std::size_t i = 0; i < tokens_.size();) {
      while (unit < syntax_.units.size() && (syntax_.units[unit].parent >= 0 || syntax_.units[unit].range.end <= tokens_[i].begin)) ++unit;
      if (unit < syntax_.units.size() && syntax_.units[unit].range.begin <= tokens_[i].begin) {
        has_live = has_live || reach_.is_live[unit];
        while (i < tokens_.size() && tokens_[i].begin < syntax_.units[unit].range.end) ++i;
        continue;
      }
      const std::size_t end = end_of_comment_group(i);
      if (end > i && is_blank_line_after(tokens_[end - 1].end)) {
        close_heading();
        heading = TextRange{tokens_[i].begin, tokens_[end - 1].end};
        has_live = false;
      }
      i = std::max(end, i + 1);
    }
    close_heading();
  }
  std::size_t end_of_comment_group(std::size_t i) const {
    while (i < tokens_.size() && tokens_[i].kind == CppToken::Kind::kComment) {
      const bool is_last = i + 1 >= tokens_.size() || is_blank_line_after(tokens_[i].end);
      ++i;
      if (is_last) break;
    }
    return i;
  }
  bool is_blank_line_after(std::size_t at) const {
    const std::size_t next = std::min(text_.find_first_not_of(" \t\r\n", at), text_.size());
    return next == text_.size() ||
           std::count(text_.begin() + static_cast<std::ptrdiff_t>(at), text_.begin() + static_cast<std::ptrdiff_t>(next), '\n') > 1;
  }

  // ---- branches ----
  std::optional<Outcome> decided(std::size_t branch) const {
    const auto found = reach_.outcomes.find(branch);
    if (found == reach_.outcomes.end() || found->second.size() != 1) return std::nullopt;
    return *found->second.begin();
  }

  /// The block that a folded branch's statements would stand in, or -1: its own, or that of the folded branches around it.
  int effective_block(std::size_t index) const {
    const Branch& branch = syntax_.branches[index];
    if (branch.parent_block >= 0 || branch.parent_branch < 0) return branch.parent_block;
    const std::optional<Outcome> outer = decided(static_cast<std::size_t>(branch.parent_branch));
    const bool is_taken = outer && (*outer == Outcome::kElse) == branch.is_parents_else;
    return is_taken ? effective_block(static_cast<std::size_t>(branch.parent_branch)) : -1;
  }

  void fold_branch(std::size_t index) {
    const Branch& branch = syntax_.branches[index];
    const std::optional<Outcome> outcome = decided(index);
    if (!outcome || branch.has_declaration) return;
    if (*outcome == Outcome::kThen) {
      keep_part(index, branch.then_part, branch.is_then_block);
    } else if (branch.else_part) {
      keep_part(index, *branch.else_part, branch.is_else_block);
    } else {
      drop_branch(index);
    }
  }

  void keep_part(std::size_t index, TextRange part, bool is_block) {
    const Branch& branch = syntax_.branches[index];
    drop(branch.whole.begin, part.begin);
    drop(part.end, is_block ? with_comment_behind(branch.whole.end) : branch.whole.end);
    if (is_block && effective_block(index) >= 0) wrapped_.push_back({part, effective_block(index)});
  }

  /// Nothing of the branch runs. As the only statement of a loop or of another branch it leaves `{}`.
  void drop_branch(std::size_t index) {
    const Branch& branch = syntax_.branches[index];
    if (effective_block(index) >= 0) return drop_with_comments(branch.whole);
    if (branch.is_parents_else) {
      const Branch& outer = syntax_.branches[static_cast<std::size_t>(branch.parent_branch)];
      return drop(outer.then_part.end, branch.whole.end);
    }
    edits_.push_back({branch.whole.begin, branch.whole.end, "{}"});
  }

  void fold_choice(const Choice& choice) {
    const TextRange kept = choice.constant ? choice.yes : choice.no;
    drop(choice.whole.begin, kept.begin);
    drop(kept.end, choice.whole.end);
  }

  // ---- what a jump leaves behind ----
  bool always_jumps(const BlockStatement& statement) const {
    if (statement.is_jump) return true;
    if (statement.block != SIZE_MAX) return block_jumps(syntax_.blocks[statement.block]);
    return statement.branch != SIZE_MAX && branch_jumps(statement.branch);
  }
  bool block_jumps(const Block& block) const { return !block.statements.empty() && always_jumps(block.statements.back()); }
  bool branch_jumps(std::size_t index) const {
    const std::optional<Outcome> outcome = decided(index);
    if (!outcome) return false;
    const Branch& branch = syntax_.branches[index];
    const std::optional<TextRange> part = *outcome == Outcome::kThen ? std::optional(branch.then_part) : branch.else_part;
    if (!part) return false;
    for (const Block& block : syntax_.blocks) {
      if (block.range.begin == part->begin) return block_jumps(block);
    }
    if (const auto inner = syntax_.branch_at.find(part->begin); inner != syntax_.branch_at.end()) return branch_jumps(inner->second);
    const std::string_view words = text_.substr(part->begin, part->end - part->begin);
    return words.starts_with("return") || words.starts_with("break") || words.starts_with("continue");
  }
  void drop_after_jump(const Block& block) {
    for (std::size_t i = 0; i + 1 < block.statements.size(); ++i) {
      if (block.statements[i].branch == SIZE_MAX || !branch_jumps(block.statements[i].branch)) continue;
      return drop(block.statements[i].range.end, block.range.end - 1);
    }
  }

  // ---- braces that no longer mean anything ----
  struct Wrapped {
    TextRange part;
    int block;
  };

  bool is_dropped(std::size_t at) const {
    return std::any_of(edits_.begin(), edits_.end(), [&](const Edit& edit) { return edit.begin <= at && at < edit.end; });
  }

  /// Braces go unless a name declared directly in the block is used elsewhere in the kept text of the function.
  void unwrap_blocks() {
    for (const Wrapped& wrapped : wrapped_) {
      if (is_dropped(wrapped.part.begin) || has_clash(wrapped)) continue;
      drop(wrapped.part.begin, wrapped.part.begin + 1);
      drop(wrapped.part.end - 1, with_comment_behind(wrapped.part.end));
    }
  }

  bool has_clash(const Wrapped& wrapped) const {
    std::set<std::string_view> declared;
    for (const Block& block : syntax_.blocks) {
      if (block.range.begin != wrapped.part.begin) continue;
      for (const BlockStatement& statement : block.statements) declared.insert(statement.declared.begin(), statement.declared.end());
    }
    if (declared.empty()) return false;
    const Block& outer = syntax_.blocks[static_cast<std::size_t>(wrapped.block)];
    const TextRange function = syntax_.units[outer.function_unit].range;
    for (const CppToken& token : tokens_) {
      if (token.kind != CppToken::Kind::kIdentifier || token.begin < function.begin || token.begin >= function.end) continue;
      if (token.begin >= wrapped.part.begin && token.begin < wrapped.part.end) continue;
      if (declared.contains(spelling(text_, token)) && !is_dropped(token.begin)) return true;
    }
    return false;
  }

  std::string_view text_;
  const SyntaxMap& syntax_;
  const Reach& reach_;
  std::vector<CppToken> tokens_;
  std::vector<Edit> edits_;
  std::vector<Wrapped> wrapped_;
};

}  // namespace

Result<std::string> fold_unused(const std::string& text, const std::string& kernel) {
  constexpr const char* kFile = "filled-template.cu";
  Result<std::string> folded = fail(Stage::kEmit, Code::kInternal, "the parser gave no tree");
  const auto fold = [&](clang::ASTContext& context) {
    const SyntaxMap syntax = map_syntax(context, text);
    Result<Reach> reach = walk_from_kernel(context, syntax, kernel);
    if (!reach) {
      folded = fail(reach.error());
    } else {
      folded = Folder(text, syntax, *reach).fold();
    }
  };
  const Diagnostics diagnostics = parse_cuda({{{kFile, text}}, kFile, Stage::kEmit}, fold);
  if (diagnostics.has_errors()) return fail(first_error(diagnostics));
  return folded;
}

}  // namespace kw::generator
