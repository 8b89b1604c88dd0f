// Runs a user function symbolically over clang's AST: see lower_user_function.h. Locals are names for expressions; an if gives a
// selection; a return ends a path. Whatever could be seen from outside, or never end, is refused.
// SPDX-License-Identifier: Apache-2.0
#include "generator/rewrite/lower_user_function.h"

#include <clang/AST/DeclCXX.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/StmtCXX.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "generator/rewrite/clang_places.h"
#include "generator/rewrite/user_math.h"
#include "generator/spec/syntax.h"

namespace kw::generator {
namespace {

constexpr int kMaxStatements = 20000;  // over all paths of one function
constexpr int kMaxValues = 200'000;    // expressions looked at, over all paths and calls

using Environment = std::map<const clang::ValueDecl*, ExprRef>;
using Statements = std::vector<const clang::Stmt*>;

/// Integers are exact in the notation: one type inside expressions.
DType node_type(DType type) { return type == DType::kI32 ? DType::kI64 : type; }

bool contains_return(const clang::Stmt* statement) {
  if (statement == nullptr) return false;
  if (llvm::isa<clang::ReturnStmt>(statement)) return true;
  for (const clang::Stmt* child : statement->children()) {
    if (contains_return(child)) return true;
  }
  return false;
}

class FunctionLowering {
 public:
  explicit FunctionLowering(clang::ASTContext& context) : context_(context) {}

  /// The body over kParameter nodes; null after an error.
  ExprRef lower(const clang::FunctionDecl& function) {
    Environment environment;
    for (unsigned i = 0; i < function.getNumParams(); ++i) {
      ExprNode node;
      node.kind = ExprNode::Kind::kParameter;
      node.parameter = static_cast<int>(i);
      node.name = function.getParamDecl(i)->getNameAsString();
      node.dtype = node_type(dtype_of(function.getParamDecl(i)->getType()).value_or(DType::kF32));
      environment[function.getParamDecl(i)] = std::make_shared<const ExprNode>(std::move(node));
    }
    ExprRef result = call(function, std::move(environment), function.getLocation());
    return error_ ? nullptr : result;
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  ExprRef refuse(clang::SourceLocation location, const std::string& what) {
    if (!error_) error_ = Error{Stage::kSpec, Code::kBadInput, what, place_of(context_, location), {}};
    return nullptr;
  }

  ExprRef call(const clang::FunctionDecl& function, Environment environment, clang::SourceLocation place) {
    const clang::FunctionDecl* definition = nullptr;
    const clang::Stmt* body = function.getBody(definition);
    const std::string name = function.getNameAsString();
    if (body == nullptr) return refuse(place, fmt::format("{}(): a call of a function without a body", name));
    if (std::find(stack_.begin(), stack_.end(), definition) != stack_.end()) return refuse(place, fmt::format("{}(): recursion", name));
    for (unsigned i = 0; i < function.getNumParams(); ++i) {  // a body refers to the definition's own parameters
      const auto given = environment.find(function.getParamDecl(i));
      if (given != environment.end()) environment[definition->getParamDecl(i)] = given->second;
    }
    stack_.push_back(definition);
    ExprRef result = run({body}, std::move(environment), body->getEndLoc());
    stack_.pop_back();
    return result;
  }

  // ---- statements ----
  /// What is returned by running the statements in order.
  ExprRef run(const Statements& list, Environment environment, clang::SourceLocation end) {
    for (std::size_t i = 0; i < list.size() && !error_; ++i) {
      if (list[i] == nullptr) continue;
      if (++num_statements_ > kMaxStatements)
        return refuse(list[i]->getBeginLoc(), fmt::format("{}(): too many paths through its ifs", stack_.front()->getNameAsString()));
      const Statements rest(list.begin() + static_cast<std::ptrdiff_t>(i) + 1, list.end());
      if (const auto* block = llvm::dyn_cast<clang::CompoundStmt>(list[i]))
        return run(joined(Statements(block->body_begin(), block->body_end()), rest), std::move(environment), end);
      if (const auto* result = llvm::dyn_cast<clang::ReturnStmt>(list[i]))
        return result->getRetValue() == nullptr ? refuse(result->getBeginLoc(), "a return without a value")
                                                : value(result->getRetValue(), environment);
      const auto* branch = llvm::dyn_cast<clang::IfStmt>(list[i]);
      if (branch != nullptr && (contains_return(branch->getThen()) || contains_return(branch->getElse())))
        return split(*branch, rest, environment, end);
      execute(list[i], environment);
    }
    return error_ ? nullptr : refuse(end, fmt::format("{}(): a path that ends without return", stack_.back()->getNameAsString()));
  }

  static Statements joined(Statements first, const Statements& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

  ExprRef condition_of(const clang::IfStmt& branch, const Environment& environment) {
    if (branch.getInit() != nullptr || branch.getConditionVariable() != nullptr)
      return refuse(branch.getBeginLoc(), "a declaration inside if ()");
    return value(branch.getCond(), environment);
  }

  ExprRef split(const clang::IfStmt& branch, const Statements& rest, const Environment& environment, clang::SourceLocation end) {
    const ExprRef condition = condition_of(branch, environment);
    if (error_) return nullptr;
    const ExprRef yes = run(joined({branch.getThen()}, rest), environment, end);
    if (error_) return nullptr;
    const ExprRef no = run(joined({branch.getElse()}, rest), environment, end);
    return error_ ? nullptr : make_call(Function::kWhere, {condition, yes, no}, yes->dtype);
  }

  /// A statement that returns nothing: declarations and assignments of locals, and ifs of them.
  void execute(const clang::Stmt* statement, Environment& environment) {
    if (error_ || statement == nullptr || llvm::isa<clang::NullStmt>(statement)) return;
    if (const auto* block = llvm::dyn_cast<clang::CompoundStmt>(statement)) {
      for (const clang::Stmt* child : block->body()) execute(child, environment);
    } else if (const auto* declaration = llvm::dyn_cast<clang::DeclStmt>(statement)) {
      for (const clang::Decl* decl : declaration->decls()) declare(*decl, environment);
    } else if (const auto* branch = llvm::dyn_cast<clang::IfStmt>(statement)) {
      merge(*branch, environment);
    } else if (const auto* expression = llvm::dyn_cast<clang::Expr>(statement)) {
      assign(*expression, environment);
    } else if (llvm::isa<clang::ForStmt, clang::WhileStmt, clang::DoStmt, clang::CXXForRangeStmt>(statement)) {
      refuse(statement->getBeginLoc(), fmt::format("{}(): a loop", stack_.back()->getNameAsString()));
    } else if (llvm::isa<clang::GCCAsmStmt>(statement)) {
      refuse(statement->getBeginLoc(), fmt::format("{}(): inline assembly", stack_.back()->getNameAsString()));
    } else {
      refuse(statement->getBeginLoc(), fmt::format("{}(): statement {}: not part of user functions", stack_.back()->getNameAsString(),
                                                   statement->getStmtClassName()));
    }
  }

  void declare(const clang::Decl& decl, Environment& environment) {
    if (llvm::isa<clang::TypedefNameDecl, clang::StaticAssertDecl>(decl)) return;
    const auto* variable = llvm::dyn_cast<clang::VarDecl>(&decl);
    if (variable == nullptr || !dtype_of(variable->getType()) || !variable->hasLocalStorage()) {
      if (variable != nullptr && variable->isConstexpr() && dtype_of(variable->getType())) {
        environment[variable] = value(variable->getInit(), environment);
        return;
      }
      refuse(decl.getLocation(),
             fmt::format("{}(): a local that is no float, double, int, long long or bool", stack_.back()->getNameAsString()));
      return;
    }
    environment[variable] = variable->getInit() == nullptr ? nullptr : value(variable->getInit(), environment);
  }

  void merge(const clang::IfStmt& branch, Environment& environment) {
    const ExprRef condition = condition_of(branch, environment);
    if (error_) return;
    Environment taken = environment, other = environment;
    execute(branch.getThen(), taken);
    execute(branch.getElse(), other);
    if (error_) return;
    for (auto& [variable, current] : environment) {
      const ExprRef& yes = taken[variable];
      const ExprRef& no = other[variable];
      current = yes == no ? yes : yes == nullptr || no == nullptr ? nullptr : make_call(Function::kWhere, {condition, yes, no}, yes->dtype);
    }
  }

  /// An expression statement: an assignment to a local, or a side effect that is refused.
  void assign(const clang::Expr& statement, Environment& environment) {
    const clang::Expr* node = statement.IgnoreParens();
    if (const auto* cleanups = llvm::dyn_cast<clang::ExprWithCleanups>(node)) node = cleanups->getSubExpr();
    if (const auto* unary = llvm::dyn_cast<clang::UnaryOperator>(node); unary != nullptr && unary->isIncrementDecrementOp()) {
      const clang::ValueDecl* target = local_target(*unary->getSubExpr(), environment);
      if (target == nullptr) return;
      const ExprRef old = read_local(*target, unary->getBeginLoc(), environment);
      if (error_) return;
      environment[target] =
          make_call(unary->isIncrementOp() ? Function::kAdd : Function::kSub, {old, make_number(1, old->dtype)}, old->dtype);
      return;
    }
    const auto* binary = llvm::dyn_cast<clang::BinaryOperator>(node);
    if (binary != nullptr && binary->isAssignmentOp()) {
      const clang::ValueDecl* target = local_target(*binary->getLHS(), environment);
      if (target == nullptr) return;
      ExprRef result = value(binary->getRHS(), environment);
      if (const auto* compound = llvm::dyn_cast<clang::CompoundAssignOperator>(node); compound != nullptr && !error_) {
        ExprRef old = read_local(*target, binary->getBeginLoc(), environment);
        if (error_) return;
        const DType wide = node_type(dtype_of(compound->getComputationResultType()).value_or(old->dtype));
        if (!is_float(wide) && is_zero_divisor(*binary)) return;
        old = converted(old, wide);
        result = converted(arithmetic(clang::BinaryOperator::getOpForCompoundAssignment(compound->getOpcode()), old, result, wide,
                                      binary->getOperatorLoc()),
                           node_type(*dtype_of(target->getType())));
      }
      if (!error_) environment[target] = result;
      return;
    }
    if (const auto* cast = llvm::dyn_cast<clang::CastExpr>(node); cast != nullptr && cast->getCastKind() == clang::CK_ToVoid) return;
    if (const auto* operator_call = llvm::dyn_cast<clang::CallExpr>(node)) {
      const clang::FunctionDecl* callee = operator_call->getDirectCallee();
      refuse(node->getBeginLoc(), fmt::format("{}(): a call of {}() for its side effect", stack_.back()->getNameAsString(),
                                              callee == nullptr ? "a function pointer" : callee->getNameAsString()));
      return;
    }
    refuse(node->getBeginLoc(), fmt::format("{}(): a statement without effect or with a side effect", stack_.back()->getNameAsString()));
  }

  const clang::ValueDecl* local_target(const clang::Expr& node, const Environment& environment) {
    const clang::Expr* target = node.IgnoreParens();
    const auto* reference = llvm::dyn_cast<clang::DeclRefExpr>(target);
    if (reference != nullptr && environment.contains(reference->getDecl())) return reference->getDecl();
    const std::string where = reference != nullptr ? fmt::format("to global {}", reference->getDecl()->getNameAsString())
                              : llvm::isa<clang::UnaryOperator, clang::ArraySubscriptExpr>(target) ? "through a pointer"
                                                                                                   : "to something that is no local";
    refuse(node.getBeginLoc(),
           fmt::format("{}(): a store {}: user functions have no side effects", stack_.back()->getNameAsString(), where));
    return nullptr;
  }

  // ---- expressions ----
  ExprRef read_local(const clang::ValueDecl& decl, clang::SourceLocation place, const Environment& environment) {
    const auto found = environment.find(&decl);
    if (found != environment.end())
      return found->second != nullptr ? found->second
                                      : refuse(place, fmt::format("{} is read before it has a value", decl.getNameAsString()));
    const auto* variable = llvm::dyn_cast<clang::VarDecl>(&decl);
    const std::string name = decl.getNameAsString();
    if (const auto* constant = llvm::dyn_cast<clang::EnumConstantDecl>(&decl))
      return make_number(static_cast<double>(constant->getInitVal().getExtValue()), DType::kI64);
    if (variable == nullptr || variable->getAnyInitializer() == nullptr ||
        !(variable->getType().isConstQualified() || variable->isConstexpr())) {
      return refuse(place, fmt::format("{}(): reads {}, which is neither a parameter, a local nor a constant",
                                       stack_.back()->getNameAsString(), name));
    }
    return value(variable->getAnyInitializer(), {});
  }

  ExprRef value(const clang::Expr* node, const Environment& environment) {
    if (error_ || node == nullptr) return nullptr;
    const std::string name = stack_.front()->getNameAsString();
    if (++num_values_ > kMaxValues)
      return refuse(node->getBeginLoc(), fmt::format("{}() has more than {} parts when its calls are written out", name, kMaxValues));
    const ExprRef result = value_of(node, environment);
    if (error_ || depth(result) <= kMaxExpandedDepth) return result;
    return refuse(node->getBeginLoc(), fmt::format("{}() nests deeper than {} levels when written out", name, kMaxExpandedDepth));
  }

  /// Levels of a tree. Those of its parts are known, but for the few nodes made since the last value().
  std::int64_t depth(const ExprRef& expr) {
    if (expr == nullptr) return 0;
    const auto known = depths_.find(expr.get());
    if (known != depths_.end()) return known->second.second;
    std::int64_t deepest = 0;
    for (const ExprRef& operand : expr->operands) deepest = std::max(deepest, depth(operand));
    depths_.emplace(expr.get(), std::pair(expr, deepest + 1));
    return deepest + 1;
  }

  ExprRef value_of(const clang::Expr* node, const Environment& environment) {
    if (const auto* wrapped = llvm::dyn_cast<clang::FullExpr>(node)) return value(wrapped->getSubExpr(), environment);
    if (const auto* wrapped = llvm::dyn_cast<clang::ParenExpr>(node)) return value(wrapped->getSubExpr(), environment);
    if (const auto* list = llvm::dyn_cast<clang::InitListExpr>(node); list != nullptr && list->getNumInits() == 1)
      return value(list->getInit(0), environment);
    const std::optional<DType> type = dtype_of(node->getType());
    if (!type)
      return refuse(node->getBeginLoc(),
                    fmt::format("{}(): a value of type {}", stack_.back()->getNameAsString(), node->getType().getAsString()));
    if (const auto* literal = llvm::dyn_cast<clang::IntegerLiteral>(node))
      return make_number(static_cast<double>(literal->getValue().getSExtValue()), DType::kI64);
    if (const auto* literal = llvm::dyn_cast<clang::FloatingLiteral>(node))
      return make_number(literal->getValueAsApproximateDouble(), node_type(*type));
    if (const auto* literal = llvm::dyn_cast<clang::CXXBoolLiteralExpr>(node))
      return make_number(literal->getValue() ? 1 : 0, DType::kBool);
    if (const auto* reference = llvm::dyn_cast<clang::DeclRefExpr>(node))
      return read_local(*reference->getDecl(), node->getBeginLoc(), environment);
    if (const auto* cast = llvm::dyn_cast<clang::CastExpr>(node)) return cast_value(*cast, *type, environment);
    if (const auto* unary = llvm::dyn_cast<clang::UnaryOperator>(node)) return unary_value(*unary, *type, environment);
    if (const auto* binary = llvm::dyn_cast<clang::BinaryOperator>(node)) return binary_value(*binary, *type, environment);
    if (const auto* choice = llvm::dyn_cast<clang::ConditionalOperator>(node)) {
      const ExprRef condition = value(choice->getCond(), environment);
      const ExprRef yes = value(choice->getTrueExpr(), environment);
      const ExprRef no = value(choice->getFalseExpr(), environment);
      return error_ ? nullptr : make_call(Function::kWhere, {condition, yes, no}, node_type(*type));
    }
    if (const auto* call = llvm::dyn_cast<clang::CallExpr>(node)) return call_value(*call, *type, environment);
    return refuse(node->getBeginLoc(), fmt::format("{}(): expression {}: not part of user functions", stack_.back()->getNameAsString(),
                                                   node->getStmtClassName()));
  }

  /// Conversion between the notation's types with C's meaning. Widening changes no value and leaves no trace.
  static ExprRef converted(const ExprRef& from, DType type) {
    if (from == nullptr || from->dtype == type) return from;
    if (from->kind == ExprNode::Kind::kNumber && is_float(type))
      return make_number(type == DType::kF32 ? static_cast<double>(static_cast<float>(from->number)) : from->number, type);
    if (type == DType::kBool) return make_call(Function::kNe, {from, make_number(0, from->dtype)}, DType::kBool);
    if (from->dtype == DType::kBool) return make_call(Function::kWhere, {from, make_number(1, type), make_number(0, type)}, type);
    if (from->dtype == DType::kF32 && type == DType::kF64) return from;
    ExprNode node;
    node.kind = ExprNode::Kind::kCast;
    node.dtype = type;
    node.operands = {from};
    node.where = from->where;
    return std::make_shared<const ExprNode>(std::move(node));
  }

  ExprRef cast_value(const clang::CastExpr& cast, DType type, const Environment& environment) {
    switch (cast.getCastKind()) {
      case clang::CK_LValueToRValue:
      case clang::CK_NoOp:
      case clang::CK_ConstructorConversion:
        return value(cast.getSubExpr(), environment);
      case clang::CK_IntegralCast:
      case clang::CK_IntegralToBoolean:
      case clang::CK_IntegralToFloating:
      case clang::CK_FloatingCast:
      case clang::CK_FloatingToIntegral:
      case clang::CK_FloatingToBoolean: {
        const ExprRef from = value(cast.getSubExpr(), environment);
        return error_ ? nullptr : converted(from, node_type(type));
      }
      default:
        return refuse(cast.getBeginLoc(),
                      fmt::format("{}(): a conversion to {}", stack_.back()->getNameAsString(), cast.getType().getAsString()));
    }
  }

  ExprRef unary_value(const clang::UnaryOperator& unary, DType type, const Environment& environment) {
    if (unary.isIncrementDecrementOp())
      return refuse(unary.getBeginLoc(), fmt::format("{}(): {} inside an expression", stack_.back()->getNameAsString(),
                                                     clang::UnaryOperator::getOpcodeStr(unary.getOpcode()).str()));
    if (unary.getOpcode() == clang::UO_Deref)
      return refuse(unary.getBeginLoc(), fmt::format("{}(): a read through a pointer", stack_.back()->getNameAsString()));
    const ExprRef operand = value(unary.getSubExpr(), environment);
    if (error_) return nullptr;
    switch (unary.getOpcode()) {
      case clang::UO_Plus:
        return operand;
      case clang::UO_Minus:
        return operand->kind == ExprNode::Kind::kNumber ? make_number(-operand->number, operand->dtype)
                                                        : make_call(Function::kNeg, {operand}, node_type(type));
      case clang::UO_LNot:
        return make_call(Function::kNot, {operand}, DType::kBool);
      default:
        return refuse(unary.getBeginLoc(), fmt::format("{}(): operator {}", stack_.back()->getNameAsString(),
                                                       clang::UnaryOperator::getOpcodeStr(unary.getOpcode()).str()));
    }
  }

  ExprRef binary_value(const clang::BinaryOperator& binary, DType type, const Environment& environment) {
    if (binary.isAssignmentOp())
      return refuse(binary.getOperatorLoc(), fmt::format("{}(): an assignment inside an expression", stack_.back()->getNameAsString()));
    const ExprRef left = value(binary.getLHS(), environment);
    const ExprRef right = value(binary.getRHS(), environment);
    if (!is_float(type) && binary.isMultiplicativeOp() && is_zero_divisor(binary)) return nullptr;
    return error_ ? nullptr : arithmetic(binary.getOpcode(), left, right, node_type(type), binary.getOperatorLoc());
  }

  /// Refuses an integer / or % whose divisor is the constant 0.
  bool is_zero_divisor(const clang::BinaryOperator& binary) {
    const bool is_division = binary.getOpcode() == clang::BO_Div || binary.getOpcode() == clang::BO_Rem ||
                             binary.getOpcode() == clang::BO_DivAssign || binary.getOpcode() == clang::BO_RemAssign;
    clang::Expr::EvalResult divisor;
    if (error_ || !is_division || binary.getRHS()->isValueDependent() || !binary.getRHS()->EvaluateAsInt(divisor, context_) ||
        divisor.Val.getInt() != 0)
      return false;
    refuse(binary.getOperatorLoc(), fmt::format("{}(): '{}' by zero", stack_.back()->getNameAsString(), binary.getOpcodeStr().str()));
    return true;
  }

  ExprRef arithmetic(clang::BinaryOperatorKind op, const ExprRef& left, const ExprRef& right, DType type, clang::SourceLocation place) {
    if (error_) return nullptr;
    const bool is_integer_type = !is_float(type);
    switch (op) {
      case clang::BO_Add:
        return make_call(Function::kAdd, {left, right}, type);
      case clang::BO_Sub:
        return make_call(Function::kSub, {left, right}, type);
      case clang::BO_Mul:
        return make_call(Function::kMul, {left, right}, type);
      case clang::BO_Div:
        return is_integer_type ? truncating_divide(left, right) : make_call(Function::kDiv, {left, right}, type);
      case clang::BO_Rem:
        return truncating_remainder(left, right);
      case clang::BO_LT:
        return make_call(Function::kLt, {left, right}, DType::kBool);
      case clang::BO_LE:
        return make_call(Function::kLe, {left, right}, DType::kBool);
      case clang::BO_GT:
        return make_call(Function::kGt, {left, right}, DType::kBool);
      case clang::BO_GE:
        return make_call(Function::kGe, {left, right}, DType::kBool);
      case clang::BO_EQ:
        return make_call(Function::kEq, {left, right}, DType::kBool);
      case clang::BO_NE:
        return make_call(Function::kNe, {left, right}, DType::kBool);
      case clang::BO_LAnd:
        return make_call(Function::kAnd, {left, right}, DType::kBool);
      case clang::BO_LOr:
        return make_call(Function::kOr, {left, right}, DType::kBool);
      default:
        return refuse(place,
                      fmt::format("{}(): operator {}", stack_.back()->getNameAsString(), clang::BinaryOperator::getOpcodeStr(op).str()));
    }
  }

  ExprRef call_value(const clang::CallExpr& node, DType type, const Environment& environment) {
    const clang::FunctionDecl* callee = node.getDirectCallee();
    const std::string caller = stack_.back()->getNameAsString();
    if (callee == nullptr) return refuse(node.getBeginLoc(), fmt::format("{}(): a call through a pointer", caller));
    std::vector<ExprRef> arguments;
    for (const clang::Expr* argument : node.arguments()) {
      const bool is_scalar = dtype_of(argument->getType()).has_value() && !argument->isGLValue();
      if (!is_scalar)
        return refuse(argument->getBeginLoc(), fmt::format("{}(): an argument of {}() that is passed by reference or is no scalar", caller,
                                                           callee->getNameAsString()));
      arguments.push_back(value(argument, environment));
    }
    if (error_) return nullptr;
    if (!is_in_job(context_, callee->getLocation())) {
      const std::string name = callee->getNameAsString();
      if (ExprRef result = lower_math_call(name, arguments, node_type(type))) return result;
      return refuse(node.getBeginLoc(), fmt::format("{}(): unknown call of {}(): the notation has no such function", caller, name));
    }
    Environment inner;
    for (unsigned i = 0; i < callee->getNumParams(); ++i) inner[callee->getParamDecl(i)] = arguments.at(i);
    return call(*callee, std::move(inner), node.getBeginLoc());
  }

  clang::ASTContext& context_;
  std::vector<const clang::FunctionDecl*> stack_;
  std::optional<Error> error_;
  int num_statements_ = 0;
  int num_values_ = 0;
  std::unordered_map<const ExprNode*, std::pair<ExprRef, std::int64_t>> depths_;  ///< with the node, so that its address stays its own
};

}  // namespace

std::optional<DType> dtype_of(clang::QualType type) {
  const auto* builtin = type.getCanonicalType().getUnqualifiedType()->getAs<clang::BuiltinType>();
  if (builtin == nullptr || type.isVolatileQualified()) return std::nullopt;
  switch (builtin->getKind()) {
    case clang::BuiltinType::Float:
      return DType::kF32;
    case clang::BuiltinType::Double:
      return DType::kF64;
    case clang::BuiltinType::Int:
      return DType::kI32;
    case clang::BuiltinType::Long:
    case clang::BuiltinType::LongLong:
      return DType::kI64;
    case clang::BuiltinType::Bool:
      return DType::kBool;
    default:
      return std::nullopt;
  }
}

Result<ExprRef> lower_user_function(clang::ASTContext& context, const clang::FunctionDecl& function) {
  FunctionLowering lowering(context);
  ExprRef body = lowering.lower(function);
  if (lowering.error()) return fail(*lowering.error());
  return body;
}

}  // namespace kw::generator
