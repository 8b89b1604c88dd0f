// Sugar of the notation: common ops, chains and blocks of other specs, expanded to plain statements.
//   O = attention(Q, K, V, causal = true)      chain = "matmul(A, B) -> bias -> relu"      y = rope(x, cos, sin)  with  use =
//   "rope.op.toml"
// Private to generator/spec: the checker expands before it types, so everything behind it sees plain notation only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "generator/spec/checker.h"

namespace kw::generator {

/// Whether `name` is an op that makes whole tensors: matmul, linear, attention, rmsnorm, layernorm, swiglu.
bool is_sugar(std::string_view name);
const std::vector<std::string>& sugar_names();

class SugarExpander {
 public:
  explicit SugarExpander(CheckContext& context);
  std::vector<StatementSyntax> run();

 private:
  using Shape = std::vector<std::optional<IntExpr>>;  ///< an extent that is not known has no value
  /// A whole tensor: a declared one or an intermediate.
  struct Operand {
    std::string name;
    Shape shape;
  };
  /// What an op makes: an expression over indices, one per axis.
  struct Value {
    std::vector<std::string> indices;
    Shape shape;
    SyntaxRef expression;
  };

  void expand_statement(const StatementSyntax& statement);
  void expand_chain();
  void remember_shape(const StatementSyntax& statement);
  std::optional<IntExpr> extent_in(const std::string& index, const SyntaxRef& node) const;

  std::optional<Value> expand_call(const SyntaxNode& call, const std::optional<Value>& piped);
  std::optional<Value> matmul(const SyntaxNode& call, const std::vector<Operand>& operands);
  std::optional<Value> linear(const SyntaxNode& call, const std::vector<Operand>& operands);
  std::optional<Value> attention(const SyntaxNode& call, const std::vector<Operand>& operands);
  std::optional<Value> norm(const SyntaxNode& call, const std::vector<Operand>& operands);
  std::optional<Value> swiglu(const SyntaxNode& call, const std::vector<Operand>& operands);
  std::optional<Value> block(const SyntaxNode& call, const std::vector<Operand>& operands);
  std::optional<std::map<std::string, SyntaxRef>> bind_block_dims(const SyntaxNode& call, const OpSpec& spec, CheckContext& inner,
                                                                  const std::vector<Operand>& operands);

  std::optional<Value> first_step(const ChainStep& step);
  std::optional<Value> next_step(const ChainStep& step, Value value);
  SyntaxRef broadcast(const SyntaxRef& node, const Value& value);
  SyntaxRef read_trailing(const Operand& operand, const Value& value, const SourceRange& where);

  std::optional<Operand> operand(const SyntaxRef& argument);
  Operand materialise(const Value& value, const std::string& base, const SourceRange& where);
  void emit(const std::string& target, const Value& value, const SourceRange& where);
  SyntaxRef keyword(const SyntaxNode& call, std::string_view name) const;
  bool check_keywords(const SyntaxNode& call, std::initializer_list<std::string_view> known);
  std::optional<bool> flag(const SyntaxNode& call, std::string_view name, bool missing);
  std::string fresh(const std::string& base);
  std::vector<std::string> fresh_axes(std::size_t count);
  std::nullopt_t error(const SourceRange& where, std::string message, Code code = Code::kBadInput);

  CheckContext& context_;
  std::vector<StatementSyntax> statements_;
  std::map<std::string, Shape> shapes_;
  std::set<std::string> taken_;
};

}  // namespace kw::generator
