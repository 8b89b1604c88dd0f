// The walk from the kernel over instantiated bodies: see reach.h. References are mapped to units by source offset, which an
// instantiation shares with the text it comes from; so no table of declarations is needed.
// SPDX-License-Identifier: Apache-2.0
#include "generator/rewrite/reach.h"

#include <deque>
#include <optional>

#include <clang/AST/RecursiveASTVisitor.h>
#include <fmt/format.h>

#include "generator/rewrite/clang_places.h"

namespace kw::generator {
namespace {

/// Whether running the statement or function can be seen from outside it. Calls are looked into.
class Purity {
 public:
  static bool is_pure(const clang::Stmt* node, int depth = 0) {
    if (node == nullptr) return true;
    if (depth > 40 || node->getStmtClass() == clang::Stmt::CXXNewExprClass || llvm::isa<clang::CXXDeleteExpr, clang::CXXThrowExpr>(node))
      return false;
    if (const auto* assembly = llvm::dyn_cast<clang::GCCAsmStmt>(node)) return !assembly->isVolatile() && assembly->getNumClobbers() == 0;
    if (const auto* unary = llvm::dyn_cast<clang::UnaryOperator>(node); unary != nullptr && unary->isIncrementDecrementOp()) return false;
    if (const auto* binary = llvm::dyn_cast<clang::BinaryOperator>(node); binary != nullptr && binary->isAssignmentOp()) return false;
    if (const auto* cast = llvm::dyn_cast<clang::CastExpr>(node);
        cast != nullptr && cast->getCastKind() == clang::CK_LValueToRValue && cast->getSubExpr()->getType().isVolatileQualified())
      return false;
    if (llvm::isa<clang::LambdaExpr>(node)) return true;
    if (const auto* call = llvm::dyn_cast<clang::CallExpr>(node); call != nullptr && !is_pure_function(call->getDirectCallee(), depth))
      return false;
    if (const auto* construction = llvm::dyn_cast<clang::CXXConstructExpr>(node)) {
      const clang::CXXConstructorDecl* constructor = construction->getConstructor();
      if (!constructor->isTrivial() && !constructor->isDefaulted() && !is_pure_function(constructor, depth)) return false;
    }
    if (const auto* declaration = llvm::dyn_cast<clang::DeclStmt>(node)) return is_pure_declaration(*declaration, depth);
    for (const clang::Stmt* child : node->children()) {
      if (!is_pure(child, depth + 1)) return false;
    }
    return true;
  }

 private:
  static bool is_pure_function(const clang::FunctionDecl* function, int depth) {
    if (function == nullptr) return false;
    if (function->isConstexpr()) return true;
    const clang::Stmt* body = function->getBody();
    return body != nullptr && is_pure(body, depth + 1);
  }
  static bool is_pure_declaration(const clang::DeclStmt& declaration, int depth) {
    for (const clang::Decl* decl : declaration.decls()) {
      const auto* variable = llvm::dyn_cast<clang::VarDecl>(decl);
      if (variable != nullptr && (variable->isStaticLocal() || !is_pure(variable->getInit(), depth + 1))) return false;
    }
    return true;
  }
};

class Walker : public clang::RecursiveASTVisitor<Walker> {
  using Base = clang::RecursiveASTVisitor<Walker>;

 public:
  Walker(clang::ASTContext& context, const SyntaxMap& syntax) : context_(context), syntax_(syntax) {
    reach_.is_live.resize(syntax.units.size());
    reach_.is_seen.resize(syntax.units.size());
  }

  Reach run(const clang::FunctionDecl& kernel) {
    reference(&kernel);
    do {
      has_changed_ = false;
      drain();
      walk_patterns();
      drain();
      keep_assertions();
    } while (has_changed_ || !queue_.empty());
    return std::move(reach_);
  }

  bool shouldVisitImplicitCode() const { return true; }

  // ---- branches: only what runs is walked ----
  bool TraverseIfStmt(clang::IfStmt* branch) {
    const std::optional<Outcome> outcome = outcome_of(*branch);
    if (!outcome) return Base::TraverseIfStmt(branch);
    note_condition(*branch, *outcome);
    if (branch->getInit() != nullptr) TraverseStmt(branch->getInit());
    if (branch->getConditionVariable() != nullptr) TraverseDecl(branch->getConditionVariable());
    return TraverseStmt(*outcome == Outcome::kThen ? branch->getThen() : branch->getElse());
  }

  bool TraverseCompoundStmt(clang::CompoundStmt* block) {
    for (clang::Stmt* statement : block->body()) {
      TraverseStmt(statement);
      if (is_jump_by_branch(statement)) break;
    }
    return true;
  }

  bool TraverseConditionalOperator(clang::ConditionalOperator* choice) {
    const auto found = syntax_.choice_at.find(offset(choice->getQuestionLoc()));
    if (found == syntax_.choice_at.end() || !is_in_job(context_, choice->getQuestionLoc()))
      return Base::TraverseConditionalOperator(choice);
    return TraverseStmt(syntax_.choices[found->second].constant ? choice->getTrueExpr() : choice->getFalseExpr());
  }

  /// A local declaration is walked when something refers to it, if leaving it out changes nothing else.
  bool TraverseDeclStmt(clang::DeclStmt* declaration) {
    const auto local = is_in_job(context_, declaration->getBeginLoc()) ? syntax_.local_at.find(offset(declaration->getBeginLoc()))
                                                                       : syntax_.local_at.end();
    if (local == syntax_.local_at.end()) return Base::TraverseDeclStmt(declaration);
    if (is_in_pattern_) return reach_.is_live[local->second] ? Base::TraverseDeclStmt(declaration) : true;
    const bool is_droppable =
        declaration->isSingleDecl() && Purity::is_pure(declaration) && !declaration->getSingleDecl()->hasAttr<clang::UnusedAttr>();
    if (!is_droppable) {
      mark(static_cast<int>(local->second));
      return Base::TraverseDeclStmt(declaration);
    }
    reach_.is_seen[local->second] = true;
    if (reach_.is_live[local->second]) return Base::TraverseDeclStmt(declaration);
    waiting_[declaration->getSingleDecl()] = declaration;
    return true;
  }

  // ---- references ----
  bool VisitDeclRefExpr(clang::DeclRefExpr* node) { return reference(node->getDecl()); }
  bool VisitMemberExpr(clang::MemberExpr* node) { return reference(node->getMemberDecl()); }
  bool VisitCXXConstructExpr(clang::CXXConstructExpr* node) { return reference(node->getConstructor()); }
  bool VisitExpr(clang::Expr* node) { return reference_type(node->getType()); }
  bool VisitValueDecl(clang::ValueDecl* node) { return reference_type(node->getType()); }
  bool VisitTypedefTypeLoc(clang::TypedefTypeLoc type) { return reference(type.getTypedefNameDecl()); }
  bool VisitTagTypeLoc(clang::TagTypeLoc type) { return reference(type.getDecl()); }
  bool VisitInjectedClassNameTypeLoc(clang::InjectedClassNameTypeLoc type) { return reference(type.getDecl()); }
  bool VisitTemplateSpecializationTypeLoc(clang::TemplateSpecializationTypeLoc type) {
    return reference(type.getTypePtr()->getTemplateName().getAsTemplateDecl());
  }
  bool VisitConceptSpecializationExpr(clang::ConceptSpecializationExpr* node) { return reference(node->getNamedConcept()); }

 private:
  std::size_t offset(clang::SourceLocation location) const {
    const clang::SourceManager& sources = context_.getSourceManager();
    return sources.getDecomposedLoc(sources.getExpansionLoc(location)).second;
  }

  std::optional<std::size_t> branch_index(const clang::IfStmt& branch) const {
    const auto found = syntax_.branch_at.find(offset(branch.getIfLoc()));
    if (found == syntax_.branch_at.end() || !is_in_job(context_, branch.getIfLoc())) return std::nullopt;
    return found->second;
  }

  /// Which way a branch goes here: by its condition in an instantiation, by what all instantiations did in a pattern.
  std::optional<Outcome> outcome_of(const clang::IfStmt& branch) const {
    const std::optional<std::size_t> index = branch_index(branch);
    if (!index) return std::nullopt;
    if (const auto constant = syntax_.branches[*index].constant) return *constant ? Outcome::kThen : Outcome::kElse;
    if (!branch.isConstexpr()) return std::nullopt;
    if (!branch.getCond()->isValueDependent()) {
      bool value = false;
      if (!branch.getCond()->EvaluateAsBooleanCondition(value, context_)) return std::nullopt;
      return value ? Outcome::kThen : Outcome::kElse;
    }
    const auto known = reach_.outcomes.find(*index);
    if (known == reach_.outcomes.end() || known->second.size() != 1) return std::nullopt;
    return *known->second.begin();
  }

  void note_condition(clang::IfStmt& branch, Outcome outcome) {
    auto& outcomes = reach_.outcomes[*branch_index(branch)];
    if (outcomes.insert(outcome).second) has_changed_ = true;
    if (outcomes.size() > 1) TraverseStmt(branch.getCond());  // it stays in the text
  }

  /// Whether nothing after the statement runs because a folded branch in it jumps.
  bool is_jump_by_branch(const clang::Stmt* statement) const {
    const auto* branch = llvm::dyn_cast_or_null<clang::IfStmt>(statement);
    if (branch == nullptr) return false;
    const std::optional<Outcome> outcome = outcome_of(*branch);
    return outcome && always_jumps(*outcome == Outcome::kThen ? branch->getThen() : branch->getElse());
  }
  bool always_jumps(const clang::Stmt* statement) const {
    if (statement == nullptr) return false;
    if (llvm::isa<clang::ReturnStmt, clang::BreakStmt, clang::ContinueStmt>(statement)) return true;
    if (const auto* block = llvm::dyn_cast<clang::CompoundStmt>(statement)) return !block->body_empty() && always_jumps(block->body_back());
    return is_jump_by_branch(statement);
  }

  void mark(int unit) {
    for (; unit >= 0; unit = syntax_.units[static_cast<std::size_t>(unit)].parent) {
      const auto index = static_cast<std::size_t>(unit);
      if (is_probing_) {
        is_probe_live_ = is_probe_live_ && reach_.is_live[index];
      } else if (!reach_.is_live[index]) {
        reach_.is_live[index] = true;
        has_changed_ = true;
      }
    }
  }
  void mark_all(const clang::Decl& decl) {
    for (const clang::Decl* redeclaration : decl.redecls()) {
      if (is_in_job(context_, redeclaration->getLocation())) mark(syntax_.unit_of(offset(redeclaration->getLocation())));
    }
  }

  bool reference_type(clang::QualType type) {
    if (type.isNull() || !seen_types_.insert(type.getCanonicalType().getAsOpaquePtr()).second) return true;
    const clang::Type* inner = type.getCanonicalType()->getPointeeOrArrayElementType();
    while (inner->isPointerType() || inner->isReferenceType() || inner->isArrayType())
      inner = inner->isReferenceType() ? inner->getPointeeType().getTypePtr() : inner->getPointeeOrArrayElementType();
    if (const clang::TagDecl* tag = inner->getAsTagDecl()) reference(tag);
    return true;
  }

  bool reference(const clang::Decl* decl) {
    if (decl == nullptr || !is_in_job(context_, decl->getLocation())) return true;
    if (llvm::isa<clang::EnumConstantDecl>(decl)) decl = llvm::cast<clang::EnumDecl>(decl->getDeclContext());
    mark_all(*decl);
    if (is_probing_) return true;
    if (const auto waiting = waiting_.find(decl); waiting != waiting_.end()) {
      clang::DeclStmt* statement = waiting->second;
      waiting_.erase(waiting);
      return Base::TraverseDeclStmt(statement);
    }
    if (walked_.insert(decl).second) {
      queue_.push_back(decl);
      if (const auto* record = llvm::dyn_cast<clang::CXXRecordDecl>(decl->getDeclContext())) reference(record);
    }
    return true;
  }

  void drain() {
    while (!queue_.empty()) {
      const clang::Decl* decl = queue_.front();
      queue_.pop_front();
      walk(*decl);
    }
  }

  void walk(const clang::Decl& decl) {
    if (const auto* function = llvm::dyn_cast<clang::FunctionDecl>(&decl)) return walk_function(*function);
    if (const auto* record = llvm::dyn_cast<clang::CXXRecordDecl>(&decl)) return walk_record(*record);
    if (const auto* function_template = llvm::dyn_cast<clang::FunctionTemplateDecl>(&decl)) return walk_signature(*function_template);
    if (const auto* class_template = llvm::dyn_cast<clang::ClassTemplateDecl>(&decl)) {
      walk_parameters(*class_template->getTemplateParameters());
      return walk_members(*class_template->getTemplatedDecl());
    }
    const auto* variable = llvm::dyn_cast<clang::VarDecl>(&decl);
    if (variable != nullptr && variable->isLocalVarDeclOrParm()) return;  // walked where it stands
    if (llvm::isa<clang::VarDecl, clang::TypedefNameDecl, clang::EnumDecl, clang::TypeAliasTemplateDecl, clang::ConceptDecl,
                  clang::VarTemplateDecl>(decl))
      TraverseDecl(const_cast<clang::Decl*>(&decl));
  }

  void walk_function(const clang::FunctionDecl& function) {
    if (const clang::FunctionTemplateDecl* primary = function.getPrimaryTemplate()) reference(primary);
    if (const clang::FunctionDecl* pattern = function.getTemplateInstantiationPattern()) patterns_.insert(pattern);
    const clang::FunctionDecl* definition = &function;
    function.hasBody(definition);
    TraverseDecl(const_cast<clang::FunctionDecl*>(definition));
  }

  void walk_parameters(const clang::TemplateParameterList& parameters) {
    for (clang::NamedDecl* parameter : parameters) TraverseDecl(parameter);
    if (parameters.getRequiresClause() != nullptr) TraverseStmt(const_cast<clang::Expr*>(parameters.getRequiresClause()));
  }
  void walk_signature(const clang::FunctionTemplateDecl& function) {
    walk_parameters(*function.getTemplateParameters());
    if (const clang::TypeSourceInfo* type = function.getTemplatedDecl()->getTypeSourceInfo()) TraverseTypeLoc(type->getTypeLoc());
  }

  void walk_record(const clang::CXXRecordDecl& record) {
    if (const auto* specialisation = llvm::dyn_cast<clang::ClassTemplateSpecializationDecl>(&record)) {
      reference(specialisation->getSpecializedTemplate());
      if (const auto* partial = specialisation->getInstantiatedFrom().dyn_cast<clang::ClassTemplatePartialSpecializationDecl*>()) {
        reference(partial);
        walk_parameters(*partial->getTemplateParameters());
      }
      if (const auto* written = specialisation->getTemplateArgsAsWritten()) {
        for (const clang::TemplateArgumentLoc& argument : written->arguments()) TraverseTemplateArgumentLoc(argument);
      }
    }
    if (const clang::CXXRecordDecl* definition = record.getDefinition()) walk_members(*definition);
  }

  /// Everything of a struct but ordinary methods, which are walked when called. Members of Config are walked when named.
  void walk_members(const clang::CXXRecordDecl& record) {
    if (!record.isThisDeclarationADefinition()) return;
    for (const clang::CXXBaseSpecifier& base : record.bases()) TraverseTypeLoc(base.getTypeSourceInfo()->getTypeLoc());
    if (record.getName() == "Config") return;
    for (clang::Decl* member : record.decls()) {
      const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(member);
      const bool is_special = method != nullptr && !method->isImplicit() &&
                              (llvm::isa<clang::CXXConstructorDecl, clang::CXXDestructorDecl, clang::CXXConversionDecl>(method) ||
                               method->isCopyAssignmentOperator() || method->isMoveAssignmentOperator());
      if (is_special) reference(method);
      if (method != nullptr || llvm::isa<clang::FunctionTemplateDecl>(member) || member->isImplicit()) continue;
      TraverseDecl(member);
    }
  }

  /// Names that a template's text holds but no instantiation shows: those in the parts of the text that are kept.
  void walk_patterns() {
    const std::set<const clang::FunctionDecl*> patterns = patterns_;
    is_in_pattern_ = true;
    for (const clang::FunctionDecl* pattern : patterns) TraverseDecl(const_cast<clang::FunctionDecl*>(pattern));
    is_in_pattern_ = false;
  }

  /// An assertion at namespace scope stays when all it names stays anyway.
  void keep_assertions() {
    for (clang::Decl* decl : context_.getTranslationUnitDecl()->decls()) {
      if (!llvm::isa<clang::StaticAssertDecl>(decl) || !is_in_job(context_, decl->getLocation())) continue;
      const int unit = syntax_.unit_of(offset(decl->getLocation()));
      if (unit < 0 || reach_.is_live[static_cast<std::size_t>(unit)]) continue;
      is_probing_ = is_probe_live_ = true;
      const std::set<void*> seen_types = seen_types_;
      TraverseDecl(decl);
      seen_types_ = seen_types;
      is_probing_ = false;
      if (is_probe_live_) mark(unit);
    }
  }

  clang::ASTContext& context_;
  const SyntaxMap& syntax_;
  Reach reach_;
  std::deque<const clang::Decl*> queue_;
  std::set<const clang::Decl*> walked_;
  std::set<const clang::FunctionDecl*> patterns_;
  std::map<const clang::Decl*, clang::DeclStmt*> waiting_;
  std::set<void*> seen_types_;
  bool has_changed_ = false;
  bool is_in_pattern_ = false;
  bool is_probing_ = false;
  bool is_probe_live_ = false;
};

const clang::FunctionDecl* find_kernel(const clang::DeclContext& scope, const std::string& name) {
  for (const clang::Decl* decl : scope.decls()) {
    if (const auto* linkage = llvm::dyn_cast<clang::LinkageSpecDecl>(decl)) {
      if (const clang::FunctionDecl* found = find_kernel(*linkage, name)) return found;
    }
    const auto* function = llvm::dyn_cast<clang::FunctionDecl>(decl);
    if (function != nullptr && function->hasAttr<clang::CUDAGlobalAttr>() && function->getNameAsString() == name) return function;
  }
  return nullptr;
}

}  // namespace

Result<Reach> walk_from_kernel(clang::ASTContext& context, const SyntaxMap& syntax, const std::string& kernel) {
  const clang::FunctionDecl* function = find_kernel(*context.getTranslationUnitDecl(), kernel);
  if (function == nullptr) return fail(Stage::kEmit, Code::kInternal, fmt::format("{}: no such kernel in the filled template", kernel));
  return Walker(context, syntax).run(*function);
}

}  // namespace kw::generator
