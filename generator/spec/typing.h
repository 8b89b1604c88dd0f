// Types expressions: resolves names, checks ranks and types, inlines user functions. Private to generator/spec.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "generator/spec/checker.h"
#include "generator/spec/functions.h"

namespace kw::generator {

/// Types one expression in a scope of indices. A mistake is reported and gives null.
class ExpressionTyper {
 public:
  ExpressionTyper(CheckContext& context, std::vector<std::string> scope) : context_(context), scope_(std::move(scope)) {}

  ExprRef type(const SyntaxRef& syntax);
  /// As type(), but an exact integer; `what` names it in the message.
  ExprRef type_integer(const SyntaxRef& syntax, const char* what);

 private:
  ExprRef type_name(const SyntaxNode& node);
  ExprRef type_read(const SyntaxNode& node);
  ExprRef finish_read(const SyntaxNode& node, std::vector<ExprRef> subscripts);
  ExprRef read_tensor(const SyntaxNode& node, const Tensor& tensor, std::vector<ExprRef> subscripts);
  ExprRef read_intermediate(const SyntaxNode& node, const Defined& defined, std::vector<ExprRef> subscripts);
  ExprRef read_updated(const SyntaxNode& node, const Tensor& tensor, std::vector<ExprRef> subscripts);
  ExprRef unknown_value(const SyntaxNode& node);
  ExprRef type_operator(const SyntaxNode& node);
  ExprRef type_call(const SyntaxNode& node);
  ExprRef type_builtin(const SyntaxNode& node, const Builtin& builtin);
  ExprRef type_cast(const SyntaxNode& node);
  ExprRef type_user_call(const SyntaxNode& node);
  ExprRef type_reduction(const SyntaxNode& node);
  ExprRef finish_reduction(const SyntaxNode& node, ReduceOp op, ExprRef body, ExprRef extra);
  bool enter_indices(const SyntaxNode& node, ReduceOp op);
  bool check_below(const std::string& index, const SourceRange& where);
  bool is_in_scope(const std::string& name) const;
  bool is_group_in_scope(const std::string& name) const;

  ExprRef apply(Function function, TypeRule rule, std::vector<ExprRef> operands, const SourceRange& where);
  ExprRef select(std::vector<ExprRef> operands, const SourceRange& where);
  std::optional<DType> common_type(const std::vector<ExprRef>& operands, std::size_t first, const SourceRange& where, const char* what);
  /// Integer literals beside reals become real literals.
  ExprRef convert_literal(const ExprRef& expr, DType dtype) const;
  ExprRef real_operand(const ExprRef& expr, const SourceRange& where, const char* what);
  ExprRef error(const SourceRange& where, std::string message, Code code = Code::kBadInput);
  ExprRef located(ExprNode node, const SourceRange& where) const;

  CheckContext& context_;
  std::vector<std::string> scope_;
};

/// Size with intermediates written out and shared parts counted at each use; counts stop at 2^30.
TreeSize tree_size(const ExprRef& expr, const CheckContext& context);

}  // namespace kw::generator
