// The syntax of an op spec as parsed: declarations and the body's tree, names unresolved, sugar unexpanded.
// Private to generator/spec: the parser makes it, the sugar and the checker read it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "generator/base/dtype.h"
#include "generator/base/error.h"
#include "generator/spec/op_spec.h"

namespace kw::generator {

/// Limits that keep a hostile spec from exhausting time, memory or stack. Each is named in the message that refuses.
constexpr std::size_t kMaxSpecBytes = 1 << 20;
constexpr int kMaxDepth = 200;
constexpr std::int64_t kMaxExpandedNodes = 200'000;  ///< of a statement with its intermediates written out
constexpr std::int64_t kMaxExpandedDepth = 500;      ///< likewise
constexpr std::int64_t kMaxProblems = 4096;
constexpr std::size_t kMaxNameLength = 64;
constexpr std::int64_t kMaxExactInteger = std::int64_t{1} << 53;  ///< a double holds every integer up to here
constexpr std::size_t kMaxStatements = 2000;
constexpr std::size_t kMaxTuneValues = 256;  ///< of one tunable under [tune]
constexpr double kMaxToleranceScale = 1000;  ///< a wider bound accepts anything

struct SyntaxNode;
using SyntaxRef = std::shared_ptr<const SyntaxNode>;

struct SyntaxNode {
  enum class Kind {
    kInteger,   ///< integer
    kReal,      ///< real
    kName,      ///< name
    kRead,      ///< name[operands]; new(name)[operands] when is_new
    kCall,      ///< name(operands, keywords) or name[brackets](operands, keywords)
    kOperator,  ///< function applied to operands
  };
  Kind kind = Kind::kInteger;
  std::int64_t integer = 0;
  double real = 0;
  std::string name;
  bool is_new = false;
  bool has_brackets = false;
  Function function = Function::kAdd;
  std::vector<std::string> brackets;
  std::vector<SyntaxRef> operands;
  std::vector<std::pair<std::string, SyntaxRef>> keywords;
  SourceRange where;
  int depth = 1;  ///< height of the tree, at most kMaxDepth
};

struct StatementSyntax {
  std::string target;
  bool has_subscripts = false;
  std::vector<SyntaxRef> subscripts;
  SyntaxRef value;
  SourceRange where;
};

/// One step of `chain`: a name, a call, or an operator applied to the running value ("* alpha").
struct ChainStep {
  std::optional<Function> operator_function;
  SyntaxRef value;
};

struct DimSyntax {
  std::string name;
  bool is_any = false;
  std::vector<std::int64_t> values;
  SyntaxRef derived;  ///< "Hq // Hkv": follows from dims declared above
  SourceRange where;
};

struct TensorSyntax {
  std::string name;
  DType dtype = DType::kF16;
  TensorRole role = TensorRole::kIn;
  std::vector<SyntaxRef> shape;
  std::vector<SyntaxRef> strides;  ///< null entry: any; empty: row-major
  bool has_strides = false;
  int align_bytes = kDefaultAlignBytes;
  bool is_const = false;
  DataProperties properties;
  std::string list_dim;
  SourceRange list_where;
  SourceRange where;
};

struct ScalarSyntax {
  std::string name;
  SyntaxRef value;  ///< null: given at launch
  std::optional<DType> dtype;
  SourceRange where;
};

struct IndexSyntax {
  std::string name;
  SyntaxRef extent;
  SyntaxRef below;
  SyntaxRef ragged;
  SourceRange where;
};

struct ProblemSyntax {
  Problem problem;
  SourceRange where;
};

struct OpSpecSyntax {
  std::vector<DimSyntax> dims;
  std::vector<ProblemSyntax> problems;
  std::vector<TensorSyntax> tensors;
  std::vector<ScalarSyntax> scalars;
  std::vector<IndexSyntax> indices;
  std::optional<DType> accumulate;
  bool uses_tf32 = false;
  SourceRange compute_where;
  std::vector<StatementSyntax> statements;
  bool has_body_errors = false;  ///< some statement did not parse
  std::vector<ChainStep> chain;
  SourceRange chain_where;
  TuneOptions tune;
  std::map<std::string, std::shared_ptr<const OpSpec>> blocks;  ///< ops of the files named by `use`, by op name
};

/// Whether `name` fits [A-Za-z_][A-Za-z0-9_]{0,63}.
bool is_legal_name(std::string_view name);

}  // namespace kw::generator
