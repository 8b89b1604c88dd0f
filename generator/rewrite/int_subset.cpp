// Lowers constexpr integer functions to IntExpr by walking clang's AST: see int_subset.h. Nothing is evaluated by clang here,
// because clang knows the default Config only.
// SPDX-License-Identifier: Apache-2.0
#include "generator/rewrite/int_subset.h"

#include <map>
#include <optional>
#include <vector>

#include <clang/AST/Attr.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/RecordLayout.h>
#include <clang/AST/StmtCXX.h>
#include <fmt/format.h>

#include "generator/rewrite/clang_places.h"

namespace kw::generator {
namespace {

using Op = IntExpr::Op;
using Environment = std::map<const clang::ValueDecl*, IntExpr>;
using Statements = std::vector<const clang::Stmt*>;

constexpr int kMaxDepth = 100;  // calls and derived constants inside each other

bool has_annotation(const clang::Decl& decl, llvm::StringRef name) {
  for (const auto* attribute : decl.specific_attrs<clang::AnnotateAttr>()) {
    if (attribute->getAnnotation() == name) return true;
  }
  return false;
}

std::optional<Op> op_of(clang::BinaryOperatorKind kind) {
  switch (kind) {
    case clang::BO_Add:
      return Op::kAdd;
    case clang::BO_Sub:
      return Op::kSub;
    case clang::BO_Mul:
      return Op::kMul;
    case clang::BO_Div:
      return Op::kFloorDiv;
    case clang::BO_Rem:
      return Op::kMod;
    case clang::BO_LT:
      return Op::kLt;
    case clang::BO_LE:
      return Op::kLe;
    case clang::BO_GT:
      return Op::kGt;
    case clang::BO_GE:
      return Op::kGe;
    case clang::BO_EQ:
      return Op::kEq;
    case clang::BO_NE:
      return Op::kNe;
    case clang::BO_LAnd:
      return Op::kAnd;
    case clang::BO_LOr:
      return Op::kOr;
    default:
      return std::nullopt;
  }
}

/// A size and an alignment in bytes.
struct Layout {
  IntExpr size_bytes;
  std::int64_t align_bytes = 1;
};

class Lowering {
 public:
  explicit Lowering(clang::ASTContext& context) : context_(context) {}

  Result<IntExpr> function(const clang::FunctionDecl& function) {
    Environment environment;
    for (const clang::ParmVarDecl* parameter : function.parameters()) {
      if (!parameter->getType()->isIntegralOrEnumerationType()) refuse(parameter->getLocation(), "a parameter that is no integer");
      environment.emplace(parameter, IntExpr::variable(parameter->getNameAsString()));
    }
    IntExpr result = body(function, environment);
    if (error_) return fail(*error_);
    return result;
  }

 private:
  IntExpr refuse(clang::SourceLocation location, const std::string& what) {
    if (!error_) {
      error_ = Error{Stage::kTemplate,
                     Code::kNotSupported,
                     fmt::format("{}: outside the integer subset of rules", what),
                     place_of(context_, location),
                     {}};
    }
    return IntExpr(0);
  }

  IntExpr body(const clang::FunctionDecl& function, const Environment& environment) {
    const clang::FunctionDecl* definition = nullptr;
    const clang::Stmt* statement = function.getBody(definition);
    if (statement == nullptr) return refuse(function.getLocation(), fmt::format("{}(): no body", function.getNameAsString()));
    if (++depth_ > kMaxDepth) return refuse(function.getLocation(), fmt::format("{}(): recursion", function.getNameAsString()));
    IntExpr result = statements({statement}, environment, function.getLocation());
    --depth_;
    return result;
  }

  /// What is returned by running `list` in order.
  IntExpr statements(Statements list, Environment environment, clang::SourceLocation place) {
    for (std::size_t i = 0; i < list.size() && !error_; ++i) {
      const clang::Stmt* statement = list[i];
      if (const auto* block = llvm::dyn_cast<clang::CompoundStmt>(statement)) {
        Statements inner(block->body_begin(), block->body_end());
        inner.insert(inner.end(), list.begin() + static_cast<std::ptrdiff_t>(i) + 1, list.end());
        return statements(std::move(inner), std::move(environment), place);
      }
      if (const auto* result = llvm::dyn_cast<clang::ReturnStmt>(statement))
        return result->getRetValue() == nullptr ? refuse(result->getBeginLoc(), "return without a value")
                                                : expression(result->getRetValue(), environment);
      if (const auto* branch = llvm::dyn_cast<clang::IfStmt>(statement)) {
        const Statements rest(list.begin() + static_cast<std::ptrdiff_t>(i) + 1, list.end());
        return branches(*branch, rest, environment, place);
      }
      if (const auto* declaration = llvm::dyn_cast<clang::DeclStmt>(statement)) {
        declare(*declaration, environment);
      } else if (!llvm::isa<clang::NullStmt>(statement)) {
        return refuse(statement->getBeginLoc(), fmt::format("statement {}", statement->getStmtClassName()));
      }
    }
    return error_ ? IntExpr(0) : refuse(place, "a path without return");
  }

  IntExpr branches(const clang::IfStmt& branch, const Statements& rest, Environment& environment, clang::SourceLocation place) {
    if (branch.getInit() != nullptr || branch.getConditionVariable() != nullptr)
      return refuse(branch.getBeginLoc(), "a declaration inside if ()");
    const IntExpr condition = expression(branch.getCond(), environment);
    Statements taken = {branch.getThen()};
    taken.insert(taken.end(), rest.begin(), rest.end());
    Statements other = rest;
    if (branch.getElse() != nullptr) other.insert(other.begin(), branch.getElse());
    const IntExpr yes = statements(std::move(taken), environment, place);
    return error_ ? yes : select(condition, yes, statements(std::move(other), environment, place));
  }

  void declare(const clang::DeclStmt& declaration, Environment& environment) {
    for (const clang::Decl* decl : declaration.decls()) {
      const auto* variable = llvm::dyn_cast<clang::VarDecl>(decl);
      if (llvm::isa<clang::StaticAssertDecl>(decl)) continue;
      if (variable == nullptr || variable->getInit() == nullptr || !(variable->getType().isConstQualified() || variable->isConstexpr())) {
        refuse(decl->getLocation(), "a local that is not `const` with a value");
        return;
      }
      environment.insert_or_assign(variable, expression(variable->getInit(), environment));
    }
  }

  static IntExpr select(const IntExpr& condition, const IntExpr& yes, const IntExpr& no) {
    return IntExpr::make(Op::kSelect, {condition, yes, no});
  }

  IntExpr expression(const clang::Expr* node, const Environment& environment) {
    if (error_) return IntExpr(0);
    if (llvm::isa<clang::SubstNonTypeTemplateParmExpr>(node)) return refuse(node->getBeginLoc(), "a template parameter");
    if (const auto* wrapped = llvm::dyn_cast<clang::FullExpr>(node)) return expression(wrapped->getSubExpr(), environment);
    if (const auto* wrapped = llvm::dyn_cast<clang::ParenExpr>(node)) return expression(wrapped->getSubExpr(), environment);
    if (const auto* literal = llvm::dyn_cast<clang::IntegerLiteral>(node))
      return IntExpr(static_cast<std::int64_t>(literal->getValue().getLimitedValue()));
    if (const auto* literal = llvm::dyn_cast<clang::CXXBoolLiteralExpr>(node)) return IntExpr(literal->getValue() ? 1 : 0);
    if (const auto* cast = llvm::dyn_cast<clang::CastExpr>(node)) return converted(*cast, environment);
    if (const auto* unary = llvm::dyn_cast<clang::UnaryOperator>(node)) return unary_operation(*unary, environment);
    if (const auto* binary = llvm::dyn_cast<clang::BinaryOperator>(node)) return binary_operation(*binary, environment);
    if (const auto* choice = llvm::dyn_cast<clang::ConditionalOperator>(node)) {
      const IntExpr condition = expression(choice->getCond(), environment);
      const IntExpr yes = expression(choice->getTrueExpr(), environment);
      return error_ ? yes : select(condition, yes, expression(choice->getFalseExpr(), environment));
    }
    if (const auto* size = llvm::dyn_cast<clang::UnaryExprOrTypeTraitExpr>(node)) return size_of(*size);
    if (const auto* call = llvm::dyn_cast<clang::CallExpr>(node)) return inlined(*call, environment);
    if (const auto* reference = llvm::dyn_cast<clang::DeclRefExpr>(node))
      return named(*reference->getDecl(), reference->getBeginLoc(), environment);
    if (const auto* member = llvm::dyn_cast<clang::MemberExpr>(node))
      return named(*member->getMemberDecl(), member->getBeginLoc(), environment);
    return refuse(node->getBeginLoc(), fmt::format("expression {}", node->getStmtClassName()));
  }

  IntExpr converted(const clang::CastExpr& cast, const Environment& environment) {
    switch (cast.getCastKind()) {
      case clang::CK_NoOp:
      case clang::CK_LValueToRValue:
      case clang::CK_IntegralCast:
      case clang::CK_ConstructorConversion:
        return expression(cast.getSubExpr(), environment);
      case clang::CK_IntegralToBoolean:
        return IntExpr::make(Op::kNe, {expression(cast.getSubExpr(), environment), IntExpr(0)});
      default:
        return refuse(cast.getBeginLoc(), fmt::format("conversion to {}", cast.getType().getAsString()));
    }
  }

  IntExpr unary_operation(const clang::UnaryOperator& unary, const Environment& environment) {
    switch (unary.getOpcode()) {
      case clang::UO_Plus:
        return expression(unary.getSubExpr(), environment);
      case clang::UO_Minus:
        return IntExpr::make(Op::kNeg, {expression(unary.getSubExpr(), environment)});
      case clang::UO_LNot:
        return IntExpr::make(Op::kNot, {expression(unary.getSubExpr(), environment)});
      default:
        return refuse(unary.getOperatorLoc(), fmt::format("operator {}", clang::UnaryOperator::getOpcodeStr(unary.getOpcode()).str()));
    }
  }

  IntExpr binary_operation(const clang::BinaryOperator& binary, const Environment& environment) {
    const IntExpr left = expression(binary.getLHS(), environment);
    const IntExpr right = expression(binary.getRHS(), environment);
    if (error_) return left;
    if (const std::optional<Op> op = op_of(binary.getOpcode())) return IntExpr::make(*op, {left, right});
    const bool is_shift = binary.getOpcode() == clang::BO_Shl || binary.getOpcode() == clang::BO_Shr;
    if (is_shift && right.is_constant() && right.constant() >= 0 && right.constant() < 62) {
      return IntExpr::make(binary.getOpcode() == clang::BO_Shl ? Op::kMul : Op::kFloorDiv,
                           {left, IntExpr(std::int64_t{1} << right.constant())});
    }
    return refuse(binary.getOperatorLoc(), fmt::format("operator {}", binary.getOpcodeStr().str()));
  }

  IntExpr inlined(const clang::CallExpr& call, const Environment& environment) {
    const clang::FunctionDecl* callee = call.getDirectCallee();
    if (callee == nullptr) return refuse(call.getBeginLoc(), "a call that names no function");
    const std::string name = callee->getNameAsString();
    const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(callee);
    if (method != nullptr && !method->isStatic()) return refuse(call.getBeginLoc(), fmt::format("{}(): a method call", name));
    if (!callee->isConstexpr()) return refuse(call.getBeginLoc(), fmt::format("{}(): a function that is not constexpr", name));
    Environment inner;
    for (unsigned i = 0; i < callee->getNumParams() && i < call.getNumArgs(); ++i)
      inner.emplace(callee->getParamDecl(i), expression(call.getArg(i), environment));
    return error_ ? IntExpr(0) : body(*callee, inner);
  }

  IntExpr named(const clang::ValueDecl& decl, clang::SourceLocation place, const Environment& environment) {
    if (const auto found = environment.find(&decl); found != environment.end()) return found->second;
    const std::string name = decl.getNameAsString();
    if (const auto* constant = llvm::dyn_cast<clang::EnumConstantDecl>(&decl)) {
      if (constant->getInitExpr() != nullptr) return expression(constant->getInitExpr(), {});
      return IntExpr(constant->getInitVal().getExtValue());
    }
    const auto* variable = llvm::dyn_cast<clang::VarDecl>(&decl);
    if (variable == nullptr) return refuse(place, fmt::format("{}: no constant", name));
    const auto* record = llvm::dyn_cast<clang::RecordDecl>(variable->getDeclContext());
    if (has_annotation(*variable, "tune") || has_annotation(*variable, "bind")) return IntExpr::variable(name);
    if (record != nullptr && record->getName() == "DeviceLimits") return IntExpr::variable(name);
    if (llvm::isa_and_nonnull<clang::ClassTemplateSpecializationDecl>(record))
      return refuse(place, fmt::format("{}: a member of a class template", name));
    const clang::Expr* value = variable->getAnyInitializer();
    if (value == nullptr || !variable->isConstexpr()) return refuse(place, fmt::format("{}: no constexpr constant", name));
    if (++depth_ > kMaxDepth) return refuse(place, fmt::format("{}: recursion", name));
    IntExpr result = expression(value, {});
    --depth_;
    return result;
  }

  IntExpr size_of(const clang::UnaryExprOrTypeTraitExpr& node) {
    if (node.getKind() != clang::UETT_SizeOf && node.getKind() != clang::UETT_AlignOf) return refuse(node.getBeginLoc(), "a type trait");
    if (!node.isArgumentType()) return refuse(node.getBeginLoc(), "sizeof of an expression");
    const Layout layout = layout_of(node.getArgumentTypeInfo()->getTypeLoc(), node.getBeginLoc());
    return node.getKind() == clang::UETT_SizeOf ? layout.size_bytes : IntExpr(layout.align_bytes);
  }

  /// Follows the written type, so that extents and element types given by Config stay symbolic.
  Layout layout_of(clang::TypeLoc type, clang::SourceLocation place) {
    if (error_) return {};
    type = type.getUnqualifiedLoc();
    if (const auto elaborated = type.getAs<clang::ElaboratedTypeLoc>()) return layout_of(elaborated.getNamedTypeLoc(), place);
    if (const auto parenthesised = type.getAs<clang::ParenTypeLoc>()) return layout_of(parenthesised.getInnerLoc(), place);
    if (const auto alias = type.getAs<clang::TypedefTypeLoc>()) {
      const clang::TypedefNameDecl& decl = *alias.getTypedefNameDecl();
      if (has_annotation(decl, "bind")) return {IntExpr::variable("size_bytes." + decl.getNameAsString()), 1};
      if (!is_in_job(context_, decl.getLocation())) return known_layout(type.getType());
      return layout_of(decl.getTypeSourceInfo()->getTypeLoc(), place);
    }
    if (const auto array = type.getAs<clang::ConstantArrayTypeLoc>()) {
      if (array.getSizeExpr() == nullptr) return failed_layout(place, "an array without a written extent");
      Layout element = layout_of(array.getElementLoc(), place);
      element.size_bytes = element.size_bytes * expression(array.getSizeExpr(), {});
      return element;
    }
    if (type.getAs<clang::BuiltinTypeLoc>() || type.getAs<clang::PointerTypeLoc>()) return known_layout(type.getType());
    if (const auto record = type.getAs<clang::RecordTypeLoc>()) return record_layout(*record.getDecl(), place);
    return failed_layout(place, fmt::format("sizeof({})", type.getType().getAsString()));
  }

  Layout failed_layout(clang::SourceLocation place, const std::string& what) {
    refuse(place, what);
    return {};
  }

  Layout known_layout(clang::QualType type) {
    return {IntExpr(context_.getTypeSizeInChars(type).getQuantity()), context_.getTypeAlignInChars(type).getQuantity()};
  }

  /// Fields in order, each at a multiple of its alignment. An element type given by the problem has no alignment known here:
  /// its field must carry alignas.
  Layout record_layout(const clang::RecordDecl& record, clang::SourceLocation place) {
    const auto* cxx_record = llvm::dyn_cast<clang::CXXRecordDecl>(&record);
    const bool is_plain = cxx_record != nullptr && cxx_record->hasDefinition() && cxx_record->getNumBases() == 0 &&
                          !cxx_record->isUnion() && !llvm::isa<clang::ClassTemplateSpecializationDecl>(cxx_record);
    if (!is_plain) return failed_layout(place, fmt::format("sizeof({}): not a plain struct", record.getNameAsString()));
    Layout whole{IntExpr(0), 1};
    for (const clang::FieldDecl* field : cxx_record->getDefinition()->fields()) {
      Layout layout = layout_of(field->getTypeSourceInfo()->getTypeLoc(), field->getLocation());
      const std::int64_t stated = field->getMaxAlignment() / 8;
      if (error_) return {};
      if (stated > layout.align_bytes) layout.align_bytes = stated;
      std::set<std::string> variables;
      layout.size_bytes.collect_variables(variables);
      const bool has_bound_type = !variables.empty() && variables.lower_bound("size_bytes.") != variables.end() &&
                                  variables.lower_bound("size_bytes.")->starts_with("size_bytes.");
      if (has_bound_type && stated == 0)
        return failed_layout(field->getLocation(), fmt::format("field {} of a bound type without alignas", field->getNameAsString()));
      whole.size_bytes = round_up(whole.size_bytes, layout.align_bytes) + layout.size_bytes;
      whole.align_bytes = std::max(whole.align_bytes, layout.align_bytes);
    }
    const std::int64_t stated = record.getMaxAlignment() / 8;
    whole.align_bytes = std::max(whole.align_bytes, stated);
    whole.size_bytes = round_up(whole.size_bytes, whole.align_bytes);
    return whole;
  }

  static IntExpr round_up(const IntExpr& value, std::int64_t multiple) {
    return multiple <= 1 ? value : ceil_div(value, IntExpr(multiple)) * IntExpr(multiple);
  }

  clang::ASTContext& context_;
  std::optional<Error> error_;
  int depth_ = 0;
};

}  // namespace

Result<IntExpr> lower_int_function(clang::ASTContext& context, const clang::FunctionDecl& function) {
  return Lowering(context).function(function);
}

}  // namespace kw::generator
