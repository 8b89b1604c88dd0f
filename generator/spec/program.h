// The typed program of an op: what the checker makes of a spec. Plan, evaluator, traffic model and code generation read only this.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "generator/base/dtype.h"
#include "generator/base/error.h"
#include "generator/base/int_expr.h"
#include "generator/base/launch_plan.h"

namespace kw::generator {

/// Pointwise functions of the notation. NaN propagates through every one of them (kRelu, kMin and kMax too).
enum class Function {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDiv,
  kMod,
  kPow,
  kNeg,
  kLt,
  kLe,
  kGt,
  kGe,
  kEq,
  kNe,
  kAnd,
  kOr,
  kNot,
  kWhere,  ///< operands: condition, then, else; lazy in its reads
  kMin,
  kMax,
  kAbs,
  kExp,
  kLog,
  kSqrt,
  kRsqrt,
  kTanh,
  kSigmoid,
  kRelu,
  kGelu,
  kGeluTanh,
  kSilu,
  kErf,
  kSin,
  kCos,
  kFloor,
  kIsFinite,
};
std::string_view to_text(Function function);  ///< spelling in the notation: "+", "relu", "where"

enum class ReduceOp { kSum, kMax, kMin, kMean, kProd, kAny, kAll, kCount, kArgmax, kLogSumExp, kSoftmax, kTopK, kTopKIndex, kCumSum };
std::string_view to_text(ReduceOp op);

struct ExprNode;
using ExprRef = std::shared_ptr<const ExprNode>;

/// One node of a typed expression. Integer-typed nodes (kI64) serve as subscripts and exact index values.
struct ExprNode {
  enum class Kind {
    kNumber,  ///< number
    kIndex,   ///< value of index variable `name`, exact integer
    kDim,     ///< value of dim `name`, exact integer
    kScalar,  ///< scalar `name` of [scalars]
    kRead,    ///< tensor `name` at `operands` (one integer expression per axis)
    kCall,    ///< function(operands)
    /// reduce_op over `indices` of operands[0], which may read the indices; operands[1], if given, is outside their scope.
    /// softmax and cumsum keep their index (the value at the surrounding value of the index); softmax: operands[1] is the sink.
    /// topk, topk_index: operands[1] is the rank, an exact integer: topk[j](x[m,j], r) is the r-th largest (r = 0: the largest),
    /// topk_index its position; ties go to the lower position, NaN is the largest. argmax alike. `count` counts true values.
    kReduce,
    kCast,       ///< operands[0] rounded to `dtype`
    kParameter,  ///< parameter number `parameter` of a user function (only inside UserFunction bodies)
  };
  Kind kind = Kind::kNumber;
  DType dtype = DType::kF32;  ///< type of the value: the accumulate type for reals, kI64 for exact integers, kBool
  double number = 0;
  std::string name;
  Function function = Function::kAdd;
  ReduceOp reduce_op = ReduceOp::kSum;
  int parameter = 0;
  std::vector<std::string> indices;
  std::vector<ExprRef> operands;
  SourceRange where;
};

/// An index variable. Extents follow from use or are stated under [index].
struct Index {
  std::string name;
  IntExpr extent;              ///< over dims
  ExprRef below;               ///< data-dependent bound (optional): a reduction over the index skips values at or past it; as a
                               ///< free index of an output, elements at or past it are not written
  std::string ragged_offsets;  ///< name of the offsets tensor of a ragged index (optional)
  std::string ragged_group;    ///< its group index g: wherever the ragged index m has a value, g is the group with
                               ///< offsets[g] <= m < offsets[g+1]. A reduction over m inside a loop over g covers that group alone.
};

struct DataProperties {
  std::optional<double> range_low, range_high;
  bool is_sorted = false;
  bool is_unique = false;
};

struct Tensor {
  std::string name;
  DType dtype = DType::kF16;
  TensorRole role = TensorRole::kIn;
  std::vector<IntExpr> shape;    ///< over dims; empty is a device scalar
  std::vector<IntExpr> strides;  ///< elements; row-major expressions, named ones, or variables "T.strideI"
  bool has_any_strides = false;
  int align_bytes = 16;
  bool is_const = false;  ///< not written by an earlier launch of the same stream
  DataProperties properties;
  std::string list_dim;  ///< list = "L": a list of L such tensors
  SourceRange where;
};

struct Scalar {
  std::string name;
  ExprRef value;  ///< null: given at launch; else over dims and other scalars
  DType dtype = DType::kF32;
};

/// target[subscripts] = value. An intermediate target (not a tensor) has plain distinct indices as subscripts.
struct Statement {
  std::string target;
  bool is_tensor = false;            ///< target is a declared tensor (out or inout)
  std::vector<ExprRef> subscripts;   ///< affine in the indices
  std::vector<std::string> indices;  ///< free indices of the statement, in order of the left side
  ExprRef value;
  SourceRange where;
};

/// Pointer alignment that a tensor promises when its spec says nothing (bytes).
constexpr int kDefaultAlignBytes = 16;

struct Dim {
  std::string name;
  bool is_any = false;               ///< "any": given at launch or query only
  std::vector<std::int64_t> values;  ///< the listed values (lists of several dims multiply)
};

/// Restrictions of [tune]: the template's own names.
struct TuneOptions {
  std::map<std::string, std::vector<std::int64_t>> values;
  std::map<std::string, SourceRange> places;  ///< where the spec gives each of `values`
  std::optional<double> budget_seconds;
  std::optional<double> tolerance_scale;  ///< multiplies the arithmetic bound of protocol v1
  bool is_warm_l2 = false;
  bool allows_atomics = false;
};

struct Program {
  std::string name;  ///< alias only; not part of the identity
  std::vector<Dim> dims;
  std::vector<Problem> problems;       ///< explicit [[problems]] rows, else the product of the dims' lists; empty when a dim is "any"
  bool has_explicit_problems = false;  ///< problems come from [[problems]]
  std::vector<Tensor> tensors;         ///< spec order: the order of pointers at launch
  std::vector<Scalar> scalars;
  std::vector<Index> indices;
  std::vector<Statement> statements;  ///< topological order; user functions already inlined
  DType accumulate = DType::kF32;
  bool uses_tf32 = false;  ///< [compute] multiply = "tf32"
  TuneOptions tune;

  const Tensor* find_tensor(std::string_view tensor_name) const;
  const Index* find_index(std::string_view index_name) const;
  const Scalar* find_scalar(std::string_view scalar_name) const;
};

/// The canonical text: names of indices and intermediates normalised, sugar expanded, order fixed. Equal programs, equal text.
std::string canonical_text(const Program& program);
/// Hash of the canonical text: the identity of the op.
std::string identity(const Program& program);
/// Readable notation of an expression and of the whole program (for --stop-after check and explain).
std::string to_text(const ExprRef& expr);
std::string to_text(const Statement& statement);
std::string to_text(const Program& program);  ///< a legal op spec of the same identity

// Small builders used by the checker, the planner and the tests.
ExprRef make_number(double value, DType dtype);
ExprRef make_index(std::string name);
ExprRef make_call(Function function, std::vector<ExprRef> operands, DType dtype);
/// Rebuilds `expr` with `replace` applied bottom-up; `replace` returns null to keep a node.
ExprRef rewrite(const ExprRef& expr, const std::function<ExprRef(const ExprRef&)>& replace);
/// Integer expression over dims and indices as an IntExpr (index values become variables of their name); fails on reads.
Result<IntExpr> as_int_expr(const ExprRef& expr);
/// Strides in elements of a contiguous tensor, the last axis fastest.
std::vector<IntExpr> row_major_strides(const std::vector<IntExpr>& shape);

/// Extents of the axes that subscripts name: of a list of tensors the position in the list comes first.
std::vector<IntExpr> subscripted_shape(const Tensor& tensor);
/// Strides of these axes where the tensors of a list lie one behind the other, elements. (Kernels read the pointer of each from a table.)
std::vector<IntExpr> subscripted_strides(const Tensor& tensor);

}  // namespace kw::generator
