// Builds the syntax map from clang's AST: see syntax_map.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/rewrite/syntax_map.h"

#include <algorithm>

#include <clang/AST/DeclCXX.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/StmtCXX.h>
#include <clang/Lex/Lexer.h>

#include "generator/rewrite/clang_places.h"
#include "generator/rewrite/tokens.h"

namespace kw::generator {
namespace {

class Mapper {
 public:
  Mapper(clang::ASTContext& context, std::string_view text) : context_(context), text_(text), tokens_(tokenize(text)) {}

  SyntaxMap map() {
    std::size_t at = 0;
    add_scope(*context_.getTranslationUnitDecl(), Unit::Kind::kTopLevel, -1, at);
    return std::move(map_);
  }

 private:
  // ---- offsets ----
  std::size_t offset(clang::SourceLocation location) const {
    const clang::SourceManager& sources = context_.getSourceManager();
    return sources.getDecomposedLoc(sources.getExpansionLoc(location)).second;
  }
  std::size_t end_offset(clang::SourceLocation location) const {
    const clang::SourceManager& sources = context_.getSourceManager();
    const clang::SourceLocation last = sources.getExpansionRange(location).getEnd();
    return sources.getDecomposedLoc(last).second + clang::Lexer::MeasureTokenLength(last, sources, context_.getLangOpts());
  }
  /// Past a semicolon that follows at once.
  std::size_t past_semicolon(std::size_t end) const {
    const std::size_t next = text_.find_first_not_of(" \t\r\n", end);
    return next != std::string_view::npos && text_[next] == ';' ? next + 1 : end;
  }
  TextRange range_of(const clang::Stmt& statement) const {
    return {offset(statement.getBeginLoc()), past_semicolon(end_offset(statement.getEndLoc()))};
  }
  TextRange expression_range(const clang::Expr& node) const { return {offset(node.getBeginLoc()), end_offset(node.getEndLoc())}; }

  std::size_t first_token_from(std::size_t at) const {
    const auto after =
        std::lower_bound(tokens_.begin(), tokens_.end(), at, [](const CppToken& token, std::size_t value) { return token.begin < value; });
    return static_cast<std::size_t>(after - tokens_.begin());
  }
  /// Begin of the first token from `at` that is code, past stray semicolons.
  std::size_t next_code(std::size_t at) const {
    std::size_t i = first_token_from(at);
    while (i < tokens_.size() && (tokens_[i].kind == CppToken::Kind::kComment || tokens_[i].kind == CppToken::Kind::kDirective ||
                                  spelling(text_, tokens_[i]) == ";"))
      ++i;
    return i < tokens_.size() ? tokens_[i].begin : text_.size();
  }
  std::size_t past_next_semicolon(std::size_t at) const {
    for (std::size_t i = first_token_from(at); i < tokens_.size(); ++i) {
      const std::string_view word = spelling(text_, tokens_[i]);
      if (word == "(" || word == "{" || word == "[") i = matching_bracket(text_, tokens_, i);
      if (i < tokens_.size() && word == ";") return tokens_[i].end;
    }
    return text_.size();
  }

  // ---- declarations ----
  std::size_t end_of(const clang::Decl& decl) const {
    if (llvm::isa<clang::VarDecl, clang::FieldDecl, clang::TypedefNameDecl, clang::TypeAliasTemplateDecl, clang::StaticAssertDecl,
                  clang::TagDecl, clang::ClassTemplateDecl>(decl)) {
      return past_next_semicolon(end_offset(decl.getEndLoc()));
    }
    return past_semicolon(end_offset(decl.getEndLoc()));
  }

  std::size_t add_unit(const clang::Decl& decl, Unit::Kind kind, int parent, std::size_t begin) {
    Unit unit{{begin, end_of(decl)}, kind, parent};
    if (llvm::isa<clang::StaticAssertDecl>(decl) && kind == Unit::Kind::kTopLevel) unit.kind = Unit::Kind::kStaticAssert;
    map_.units.push_back(unit);
    return map_.units.size() - 1;
  }

  /// Declarations of a scope in order; each begins where the code after the one before begins.
  void add_scope(const clang::DeclContext& scope, Unit::Kind kind, int parent, std::size_t& at) {
    for (const clang::Decl* decl : scope.decls()) {
      if (decl->isImplicit() || !is_in_job(context_, decl->getLocation())) continue;
      if (llvm::isa<clang::AccessSpecDecl, clang::EmptyDecl>(decl)) continue;
      if (offset(decl->getEndLoc()) < at) continue;  // a second declarator of the unit before
      const std::size_t begin = next_code(at);
      const std::size_t unit = add_unit(*decl, kind, parent, begin);
      at = map_.units[unit].range.end;
      add_parts(*decl, static_cast<int>(unit));
    }
  }

  void add_parts(const clang::Decl& decl, int unit) {
    if (const auto* linkage = llvm::dyn_cast<clang::LinkageSpecDecl>(&decl)) {
      for (const clang::Decl* inner : linkage->decls()) add_parts(*inner, unit);
    } else if (const auto* function_template = llvm::dyn_cast<clang::FunctionTemplateDecl>(&decl)) {
      add_body(*function_template->getTemplatedDecl(), unit);
    } else if (const auto* function = llvm::dyn_cast<clang::FunctionDecl>(&decl)) {
      add_body(*function, unit);
    } else if (const auto* class_template = llvm::dyn_cast<clang::ClassTemplateDecl>(&decl)) {
      add_members(*class_template->getTemplatedDecl(), unit);
    } else if (const auto* record = llvm::dyn_cast<clang::CXXRecordDecl>(&decl)) {
      add_members(*record, unit);
    }
  }

  /// Config: every member is a unit. Other structs: their ordinary methods are.
  void add_members(const clang::CXXRecordDecl& record, int unit) {
    if (!record.isThisDeclarationADefinition()) return;
    if (record.getName() == "Config") {
      std::size_t at = offset(record.getBraceRange().getBegin()) + 1;
      return add_scope(record, Unit::Kind::kMember, unit, at);
    }
    for (const clang::Decl* member : record.decls()) {
      if (member->isImplicit()) continue;
      const auto* method_template = llvm::dyn_cast<clang::FunctionTemplateDecl>(member);
      const clang::Decl* function = method_template != nullptr ? method_template->getTemplatedDecl() : member;
      const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(function);
      if (method == nullptr) {
        add_parts(*member, unit);
        continue;
      }
      const bool is_special = llvm::isa<clang::CXXConstructorDecl, clang::CXXDestructorDecl, clang::CXXConversionDecl>(method) ||
                              method->isCopyAssignmentOperator() || method->isMoveAssignmentOperator();
      if (is_special) {
        add_body(*method, unit);
        continue;
      }
      map_.units.push_back({{offset(member->getBeginLoc()), end_of(*member)}, Unit::Kind::kMember, unit});
      add_body(*method, static_cast<int>(map_.units.size()) - 1);
    }
  }

  void add_body(const clang::FunctionDecl& function, int unit) {
    if (function.doesThisDeclarationHaveABody() && function.getBody() != nullptr) visit(*function.getBody(), unit, {});
  }

  // ---- statements ----
  struct Parent {
    int block = -1;
    int branch = -1;
    bool is_else = false;
  };

  void visit(const clang::Stmt& statement, int unit, Parent parent) {
    if (const auto* block = llvm::dyn_cast<clang::CompoundStmt>(&statement)) return visit_block(*block, unit);
    if (const auto* branch = llvm::dyn_cast<clang::IfStmt>(&statement)) return visit_branch(*branch, unit, parent);
    if (const auto* choice = llvm::dyn_cast<clang::ConditionalOperator>(&statement)) add_choice(*choice);
    for (const clang::Stmt* child : statement.children()) {
      if (child != nullptr) visit(*child, unit, {});
    }
  }

  void visit_block(const clang::CompoundStmt& block, int unit) {
    const std::size_t index = map_.blocks.size();
    map_.blocks.push_back({{offset(block.getLBracLoc()), offset(block.getRBracLoc()) + 1}, {}, static_cast<std::size_t>(unit)});
    for (const clang::Stmt* child : block.body()) {
      BlockStatement entry{
          range_of(*child), llvm::isa<clang::ReturnStmt, clang::BreakStmt, clang::ContinueStmt>(child), SIZE_MAX, SIZE_MAX, {}};
      if (llvm::isa<clang::IfStmt>(child)) entry.branch = map_.branches.size();
      if (llvm::isa<clang::CompoundStmt>(child)) entry.block = map_.blocks.size();
      if (const auto* declaration = llvm::dyn_cast<clang::DeclStmt>(child)) {
        add_local(*declaration, entry.range, unit);
        entry.declared = names_of(*declaration);
      }
      map_.blocks[index].statements.push_back(entry);
      visit(*child, unit, {static_cast<int>(index), -1, false});
    }
  }

  static std::vector<std::string> names_of(const clang::DeclStmt& declaration) {
    std::vector<std::string> names;
    for (const clang::Decl* decl : declaration.decls()) {
      if (const auto* named = llvm::dyn_cast<clang::NamedDecl>(decl)) names.push_back(named->getNameAsString());
      const auto* decomposition = llvm::dyn_cast<clang::DecompositionDecl>(decl);
      if (decomposition == nullptr) continue;
      for (const clang::BindingDecl* binding : decomposition->bindings()) names.push_back(binding->getNameAsString());
    }
    return names;
  }

  void add_local(const clang::DeclStmt& declaration, TextRange range, int unit) {
    if (!declaration.isSingleDecl() || !llvm::isa<clang::VarDecl, clang::TypedefNameDecl>(declaration.getSingleDecl())) return;
    map_.local_at[range.begin] = map_.units.size();
    map_.units.push_back({range, Unit::Kind::kLocal, unit});
  }

  void visit_branch(const clang::IfStmt& branch, int unit, Parent parent) {
    const std::size_t index = map_.branches.size();
    Branch out;
    out.whole = range_of(branch);
    out.then_part = range_of(*branch.getThen());
    out.is_then_block = llvm::isa<clang::CompoundStmt>(branch.getThen());
    if (branch.getElse() != nullptr) {
      out.else_part = range_of(*branch.getElse());
      out.is_else_block = llvm::isa<clang::CompoundStmt>(branch.getElse());
    }
    out.has_declaration = branch.getInit() != nullptr || branch.getConditionVariable() != nullptr;
    if (!branch.isConstexpr() && !out.has_declaration) out.constant = constant_of(*branch.getCond());
    out.parent_block = parent.block;
    out.parent_branch = parent.branch;
    out.is_parents_else = parent.is_else;
    map_.branch_at[out.whole.begin] = index;
    map_.branches.push_back(out);
    if (branch.getInit() != nullptr) visit(*branch.getInit(), unit, {});
    if (branch.getCond() != nullptr) visit(*branch.getCond(), unit, {});
    visit(*branch.getThen(), unit, {-1, static_cast<int>(index), false});
    if (branch.getElse() != nullptr) visit(*branch.getElse(), unit, {-1, static_cast<int>(index), true});
  }

  void add_choice(const clang::ConditionalOperator& choice) {
    const bool is_one_type = !choice.isTypeDependent() && !choice.isGLValue() &&
                             context_.hasSameUnqualifiedType(choice.getTrueExpr()->IgnoreParenImpCasts()->getType(),
                                                             choice.getFalseExpr()->IgnoreParenImpCasts()->getType());
    const auto is_sequence = [](const clang::Expr* arm) {
      const auto* binary = llvm::dyn_cast<clang::BinaryOperator>(arm->IgnoreImplicit());
      return binary != nullptr && (binary->isAssignmentOp() || binary->isCommaOp());
    };
    if (!is_one_type || is_sequence(choice.getTrueExpr()) || is_sequence(choice.getFalseExpr())) return;
    const std::optional<bool> constant = constant_of(*choice.getCond());
    if (!constant) return;
    map_.choice_at[offset(choice.getQuestionLoc())] = map_.choices.size();
    map_.choices.push_back(
        {expression_range(choice), expression_range(*choice.getTrueExpr()), expression_range(*choice.getFalseExpr()), *constant});
  }

  /// Whether every name in the expression is a constexpr constant; then its value.
  std::optional<bool> constant_of(const clang::Expr& condition) const {
    bool has_name = false;
    if (condition.isValueDependent() || !is_made_of_constants(condition, has_name) || !has_name) return std::nullopt;
    bool value = false;
    if (!condition.EvaluateAsBooleanCondition(value, context_)) return std::nullopt;
    return value;
  }

  bool is_made_of_constants(const clang::Stmt& node, bool& has_name) const {
    if (const auto* reference = llvm::dyn_cast<clang::DeclRefExpr>(&node)) {
      const auto* variable = llvm::dyn_cast<clang::VarDecl>(reference->getDecl());
      has_name = true;
      return variable != nullptr && variable->isConstexpr() && variable->hasGlobalStorage();
    }
    if (llvm::isa<clang::CallExpr>(node)) return false;
    for (const clang::Stmt* child : node.children()) {
      if (child != nullptr && !is_made_of_constants(*child, has_name)) return false;
    }
    return true;
  }

  clang::ASTContext& context_;
  std::string_view text_;
  std::vector<CppToken> tokens_;
  SyntaxMap map_;
};

}  // namespace

int SyntaxMap::unit_of(std::size_t offset) const {
  const auto after =
      std::upper_bound(units.begin(), units.end(), offset, [](std::size_t value, const Unit& unit) { return value < unit.range.begin; });
  int index = static_cast<int>(after - units.begin()) - 1;
  while (index >= 0 && units[static_cast<std::size_t>(index)].range.end <= offset) index = units[static_cast<std::size_t>(index)].parent;
  return index;
}

SyntaxMap map_syntax(clang::ASTContext& context, std::string_view text) { return Mapper(context, text).map(); }

}  // namespace kw::generator
