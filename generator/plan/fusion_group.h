// From a program to the kernels to make, and the matcher that unifies a group with what a template states in the notation.
// One group a program: one contraction with any pointwise epilogue, or a function of whole rows. What needs several is cut before:
// partition.h. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "generator/spec/program.h"

namespace kw::generator {

/// Statements that become one kernel: intermediates are inlined, each output is one expression over the program's indices.
struct FusionGroup {
  struct Output {
    std::string tensor;
    std::vector<ExprRef> subscripts;
    std::vector<std::string> indices;
    ExprRef value;
  };
  std::vector<Output> outputs;
  /// The reduction that all values share, or two that share one operand (a gated linear unit); else empty, and
  std::vector<ExprRef> contractions;
  std::string why_no_contraction;  ///< the reason, for templates of contractions; of two, for templates of one
};

/// Errors name what no template makes yet: "two contractions (line 12: s, line 14: O) in one kernel".
Result<std::vector<FusionGroup>> plan_groups(const Program& program);

/// What a template states: notation with holes. `A`, `B` are operand holes; `epilogue` is the hole for a pointwise function of the
/// contraction. Example: "acc[b,m,n] = sum[k](A[b,m,k] * B[b,k,n])  out[b,m,n] = epilogue(acc[b,m,n])". An epilogue of two contractions
/// with one left operand: "out[b,m,n] = epilogue(sum[k](A[b,m,k] * B[b,k,n]), sum[k](A[b,m,k] * B2[b,k,n]))".
/// `row` is the hole for a function of whole rows: any pointwise values and reductions over n at one m: "out[m,n] = row[n](m)".
/// `list` is the one for tensors m of a list and their elements n: pointwise values, and reductions over all of both: "out[m,n] =
/// list[n](m)".
struct TemplatePattern {
  std::vector<std::string> indices;  ///< in order of the left side, then reduced: b, m, n, k
  bool is_row = false;
  bool is_list = false;
  std::vector<std::string> reduced;  ///< k
  struct Operand {
    std::string name;
    std::vector<std::string> indices;
  };
  std::vector<Operand> operands;  ///< A[b,m,k], B[b,k,n]; of two contractions also B2[b,k,n]
  ReduceOp reduce_op = ReduceOp::kSum;
};
Result<TemplatePattern> parse_template_pattern(std::string_view text);

/// What values call the sums of a contraction, and of a second one: reads without subscripts. No tensor can have these names.
inline constexpr std::array<std::string_view, 2> kAccumulators = {"acc'", "acc2'"};
inline bool is_accumulator(std::string_view name) { return name == kAccumulators[0] || name == kAccumulators[1]; }

/// One way to see the group as the template's computation.
struct PatternMatch {
  /// Pattern index -> the program's index name; a batch index the program lacks maps to "" (extent 1).
  std::map<std::string, std::string> index_map;
  std::map<std::string, IntExpr> extents;  ///< pattern index -> extent over dims
  struct OperandMatch {
    std::string tensor;  ///< the program's tensor
    DType dtype = DType::kF16;
    std::map<std::string, IntExpr> strides;  ///< pattern index -> stride in elements (0 when the operand lacks it)
    IntExpr offset;                          ///< constant element offset of the read (0 for plain reads)
  };
  std::map<std::string, OperandMatch> operands;
  struct Output {
    std::string tensor;
    DType dtype = DType::kF16;
    std::map<std::string, IntExpr> strides;  ///< pattern index -> stride in elements
    IntExpr offset;
    ExprRef value;                    ///< over index names of the *pattern*; contractions are reads of kAccumulators without subscripts
    std::vector<ExprRef> subscripts;  ///< of a row pattern, over its indices: where the value is stored
  };
  std::vector<Output> outputs;
  /// A reduction of a row over n; values read it as a read without subscripts of its name.
  struct Reduction {
    std::string name;
    ReduceOp op = ReduceOp::kSum;  ///< sum, product, max or min
    ExprRef operand;               ///< over m and n, and reductions of earlier phases
    int phase = 0;                 ///< 0: needs no other reduction
  };
  std::vector<Reduction> reductions;  ///< of a row pattern, by phase; of a list they run over m too
  bool is_list = false;               ///< m are tensors of a list
  ExprRef length;                     ///< of a list: elements of tensor m, where that is data
  int bytes_per_column = 0;           ///< of a row pattern: what distinct reads along n bring for one n
  int row_bytes_per_column = 0;       ///< the part of it that rows have of their own
  bool columns_are_reduced = false;   ///< reductions read the other part
  bool has_const_rows = false;        ///< rows of tensors are read that are declared const
  bool counts_columns = false;        ///< of a row pattern: reals hold positions of a row, or numbers of them
  DType accumulate = DType::kF32;
  bool uses_tf32 = false;
};

/// The groups that are rows: no reduction multiplies two tensors that each have an index of their own.
bool has_matrix_product(const FusionGroup& group);

/// All matches, best first (n is the fastest index of the first output); empty with a reason in `why_not` when it does not fit.
std::vector<PatternMatch> unify(const TemplatePattern& pattern, const FusionGroup& group, const Program& program, std::string& why_not);

}  // namespace kw::generator
