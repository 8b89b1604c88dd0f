// See library_epilogue.h. What cuBLASLt fuses, and its rules for the bias (packed, as long as the rows of the column-major result, of its
// type) and for types: cuBLAS documentation, cublasLtEpilogue_t and cublasLtMatmul().
// SPDX-License-Identifier: Apache-2.0
#include "generator/plan/library_epilogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "generator/plan/linear_form.h"

namespace kw::generator {
namespace {

using Kind = ExprNode::Kind;

constexpr const char* kPattern = "out[b,m,n] = epilogue(sum[k](A[b,m,k] * B[b,k,n]))";

tl::unexpected<Error> refuse(const std::string& why, const SourceRange& where = {}) {
  return fail(Stage::kPlan, Code::kNotSupported, why, where);
}

/// The statement that writes the result: what a refusal names.
const Statement* statement_of(const Program& program, const std::string& tensor) {
  for (const Statement& statement : program.statements)
    if (statement.target == tensor) return &statement;
  return nullptr;
}

tl::unexpected<Error> no_epilogue(const Program& program, const std::string& tensor, const std::string& why) {
  const Statement* statement = statement_of(program, tensor);
  KW_CHECK(statement != nullptr, "a statement writes every output of a group");
  return refuse(fmt::format("cuBLASLt has no epilogue for `{}`: {}", to_text(*statement), why), statement->where);
}

/// bias[...] + x as the notation leaves it.
struct EpilogueForm {
  enum class Activation { kNone, kRelu, kGeluTanh } activation = Activation::kNone;
  ExprRef bias;  ///< the read; null without one
};

bool is_sum(const ExprRef& expr) { return expr->kind == Kind::kRead && expr->name == kAccumulators[0] && expr->operands.empty(); }
bool is_zero(const ExprRef& expr) { return expr->kind == Kind::kNumber && expr->number == 0; }

/// A cast of a read to the type of the arithmetic changes nothing.
ExprRef without_widening(const ExprRef& expr, DType accumulate) {
  return expr->kind == Kind::kCast && expr->dtype == accumulate && expr->operands[0]->kind == Kind::kRead ? expr->operands[0] : expr;
}

/// acc, acc + bias or bias + acc. False: something else.
bool read_sum(const ExprRef& expr, DType accumulate, EpilogueForm& form) {
  if (is_sum(expr)) return true;
  if (expr->kind != Kind::kCall || expr->function != Function::kAdd) return false;
  const ExprRef left = without_widening(expr->operands[0], accumulate), right = without_widening(expr->operands[1], accumulate);
  if (is_sum(left) == is_sum(right)) return false;
  form.bias = is_sum(left) ? right : left;
  return form.bias->kind == Kind::kRead;
}

/// Empty with the reason when the value is another function of the product.
std::optional<EpilogueForm> read_epilogue(ExprRef value, const PatternMatch& match, std::string& why_not) {
  EpilogueForm form;
  const PatternMatch::Output& out = match.outputs.front();
  if (value->kind == Kind::kCast && value->dtype == out.dtype) value = value->operands[0];  // the store rounds to this type anyhow
  if (value->kind == Kind::kCall && value->function == Function::kGelu) {
    why_not = "its GELU is the tanh approximation, in this notation gelu_tanh";
    return std::nullopt;
  }
  if (value->kind == Kind::kCall && value->function == Function::kRelu) {
    form.activation = EpilogueForm::Activation::kRelu;
    value = value->operands[0];
  } else if (value->kind == Kind::kCall && value->function == Function::kMax &&
             (is_zero(value->operands[0]) || is_zero(value->operands[1]))) {
    form.activation = EpilogueForm::Activation::kRelu;
    value = is_zero(value->operands[0]) ? value->operands[1] : value->operands[0];
  } else if (value->kind == Kind::kCall && value->function == Function::kGeluTanh) {
    form.activation = EpilogueForm::Activation::kGeluTanh;
    value = value->operands[0];
  }
  if (read_sum(value, match.accumulate, form)) return form;
  why_not = "it fuses a bias vector, relu, gelu_tanh, or a bias and one of them";
  return std::nullopt;
}

LibraryEpilogue epilogue_of(const EpilogueForm& form) {
  const bool has_bias = form.bias != nullptr;
  switch (form.activation) {
    case EpilogueForm::Activation::kNone:
      return has_bias ? LibraryEpilogue::kBias : LibraryEpilogue::kNone;
    case EpilogueForm::Activation::kRelu:
      return has_bias ? LibraryEpilogue::kReluBias : LibraryEpilogue::kRelu;
    case EpilogueForm::Activation::kGeluTanh:
      return has_bias ? LibraryEpilogue::kGeluTanhBias : LibraryEpilogue::kGeluTanh;
  }
  return LibraryEpilogue::kNone;
}

Status check_types(const Program& program, const PatternMatch& match) {
  const PatternMatch::OperandMatch& a = match.operands.at("A");
  const PatternMatch::OperandMatch& b = match.operands.at("B");
  const DType out = match.outputs.front().dtype;
  const bool is_served = a.dtype == b.dtype && (a.dtype == DType::kF16 || a.dtype == DType::kBF16 || a.dtype == DType::kF32) &&
                         (out == a.dtype || out == DType::kF32);
  if (!is_served)
    return refuse(fmt::format("the cuBLASLt baseline multiplies f16, bf16 or f32 into the same type or f32: {} is {}, {} is {}, {} is {}",
                              a.tensor, to_text(a.dtype), b.tensor, to_text(b.dtype), match.outputs.front().tensor, to_text(out)));
  if (program.accumulate != DType::kF32)
    return refuse(fmt::format("the cuBLASLt baseline sums in f32: this op in {}", to_text(program.accumulate)));
  return {};
}

/// Extents and strides of a match at one problem.
class EvaluatedMatch {
 public:
  EvaluatedMatch(const Program& program, const PatternMatch& match, const Problem& problem) : program_(program), match_(match) {
    bindings_.insert(problem.dims.begin(), problem.dims.end());
    bindings_.insert(problem.strides.begin(), problem.strides.end());
  }

  /// The call whose result has `row` as its contiguous index ("m" or "n"), `col` as the other one.
  Result<LibraryMatmul> with_rows(const std::string& row, const std::string& col, const EpilogueForm& form) const {
    const std::string first = row == "m" ? "A" : "B", second = row == "m" ? "B" : "A";
    LibraryMatmul matmul;
    KW_TRY(matmul.rows, evaluate(match_.extents.at(row)));
    KW_TRY(matmul.cols, evaluate(match_.extents.at(col)));
    KW_TRY(matmul.depth, evaluate(match_.extents.at("k")));
    KW_TRY(matmul.num_batches, evaluate(match_.extents.at("b")));
    if (std::min({matmul.rows, matmul.cols, matmul.depth, matmul.num_batches}) < 1)
      return refuse("an empty product: there is nothing to time");
    KW_TRY(matmul.first, operand(first, row, "k", matmul.rows, matmul.depth));
    KW_TRY(matmul.second, operand(second, "k", col, matmul.depth, matmul.cols));
    const PatternMatch::Output& out = match_.outputs.front();
    KW_TRY(matmul.out, matrix(out.tensor, out.dtype, out.strides, row, col, matmul.rows, matmul.cols));
    if (matmul.out.is_transposed)
      return refuse(fmt::format("{}: cuBLASLt needs its {} axis to be contiguous", out.tensor, index_name(row)));
    matmul.epilogue = epilogue_of(form);
    matmul.multiplies_tf32 = match_.uses_tf32 && matmul.first.dtype == DType::kF32;
    if (form.bias != nullptr) KW_TRY_VOID(add_bias(form.bias, row, col, matmul));
    return matmul;
  }

  /// Whether the result is stored with this index as the contiguous one.
  Result<bool> is_contiguous(const std::string& row) const {
    KW_TRY(const std::int64_t stride, evaluate(match_.outputs.front().strides.at(row)));
    return stride == 1;
  }

 private:
  Result<std::int64_t> evaluate(const IntExpr& expr) const { return expr.evaluate(bindings_); }

  Result<LibraryMatmul::Matrix> operand(const std::string& name, const std::string& row, const std::string& col, std::int64_t num_rows,
                                        std::int64_t num_cols) const {
    const PatternMatch::OperandMatch& found = match_.operands.at(name);
    return matrix(found.tensor, found.dtype, found.strides, row, col, num_rows, num_cols);
  }

  /// As it is stored: contiguous along the rows, or transposed.
  Result<LibraryMatmul::Matrix> matrix(const std::string& tensor, DType dtype, const std::map<std::string, IntExpr>& strides,
                                       const std::string& row, const std::string& col, std::int64_t num_rows, std::int64_t num_cols) const {
    LibraryMatmul::Matrix result;
    result.tensor = tensor;
    result.dtype = dtype;
    KW_TRY(const std::int64_t row_stride, evaluate(strides.at(row)));
    KW_TRY(const std::int64_t col_stride, evaluate(strides.at(col)));
    KW_TRY(result.batch_stride, evaluate(strides.at("b")));
    // The stride of an axis of extent 1 is never used; a leading dimension is at least the contiguous extent.
    const auto fits = [&](std::int64_t unit_stride, std::int64_t unit_extent, std::int64_t stride, std::int64_t extent) {
      if (unit_stride != 1 && unit_extent != 1) return false;
      result.leading_dimension = extent == 1 ? std::max(stride, unit_extent) : stride;
      return result.leading_dimension >= unit_extent;
    };
    if (fits(row_stride, num_rows, col_stride, num_cols)) return result;
    result.is_transposed = true;
    if (fits(col_stride, num_cols, row_stride, num_rows)) return result;
    return refuse(fmt::format("{}: cuBLASLt needs a contiguous axis and rows that do not overlap: its strides are {} and {}", tensor,
                              row_stride, col_stride));
  }

  Status add_bias(const ExprRef& read, const std::string& row, const std::string& col, LibraryMatmul& matmul) const {
    const Tensor* tensor = program_.find_tensor(read->name);
    const PatternMatch::Output& out = match_.outputs.front();
    if (tensor == nullptr || tensor->name == out.tensor) return no_epilogue(program_, out.tensor, "the sum is not with a vector");
    const LinearForm offset = element_offset(read->operands, tensor->strides);
    KW_TRY(const std::int64_t constant, evaluate(offset.constant));
    KW_TRY(const std::int64_t row_stride, evaluate(offset.coefficient_of(row)));
    KW_TRY(const std::int64_t col_stride, evaluate(offset.coefficient_of(col)));
    KW_TRY(matmul.bias_batch_stride, evaluate(offset.coefficient_of("b")));
    const bool is_vector =
        offset.is_affine() && constant == 0 && (row_stride == 1 || matmul.rows == 1) && (col_stride == 0 || matmul.cols == 1);
    if (!is_vector)
      return no_epilogue(program_, out.tensor,
                         fmt::format("its bias is a contiguous vector along {}, the contiguous axis of {}; {} is not", index_name(row),
                                     out.tensor, tensor->name));
    if (tensor->dtype != out.dtype)
      return no_epilogue(program_, out.tensor,
                         fmt::format("its bias has the type of the result: {} is {}, {} is {}", tensor->name, to_text(tensor->dtype),
                                     out.tensor, to_text(out.dtype)));
    matmul.bias = tensor->name;
    return {};
  }

  /// The program's name of a pattern index.
  std::string index_name(const std::string& pattern_index) const {
    const std::string& name = match_.index_map.at(pattern_index);
    return name.empty() ? pattern_index : name;
  }

  const Program& program_;
  const PatternMatch& match_;
  IntBindings bindings_;
};

Result<PatternMatch> match_of(const Program& program) {
  KW_TRY(const std::vector<FusionGroup> groups, plan_groups(program));
  if (groups.size() != 1) return refuse(fmt::format("{} kernels: the cuBLASLt baseline serves an op of one", groups.size()));
  KW_TRY(const TemplatePattern pattern, parse_template_pattern(kPattern));
  std::string why_not;
  std::vector<PatternMatch> matches = unify(pattern, groups.front(), program, why_not);
  if (matches.empty()) return refuse("not a matrix product as cuBLASLt knows it: " + why_not);
  PatternMatch match = std::move(matches.front());
  if (match.outputs.size() != 1) {
    const std::string& second = match.outputs[1].tensor;
    return no_epilogue(program, second, fmt::format("a call writes one result, and {} is written too", match.outputs[0].tensor));
  }
  return match;
}

}  // namespace

Result<LibraryMatmul> library_matmul(const Program& program, const Problem& problem) {
  KW_TRY(const PatternMatch match, match_of(program));
  const PatternMatch::Output& out = match.outputs.front();
  if (program.find_tensor(out.tensor)->role != TensorRole::kOut)
    return no_epilogue(program, out.tensor, fmt::format("{} is updated in place", out.tensor));
  std::string why_not;
  const std::optional<EpilogueForm> form = read_epilogue(out.value, match, why_not);
  if (!form) return no_epilogue(program, out.tensor, why_not);
  KW_TRY_VOID(check_types(program, match));
  for (const IntExpr& offset : {match.operands.at("A").offset, match.operands.at("B").offset, out.offset}) {
    if (!are_equal(offset, IntExpr(0))) return refuse("the cuBLASLt baseline takes tensors from their first element on, not at an offset");
  }
  const EvaluatedMatch evaluated(program, match, problem);
  Result<LibraryMatmul> row_major = evaluated.with_rows("n", "m", *form);
  if (row_major) return row_major;
  // A column-major result, or one of extent 1 that is both. The reason of the way that the result is stored is the one to tell.
  Result<LibraryMatmul> column_major = evaluated.with_rows("m", "n", *form);
  KW_TRY(const bool is_row_major, evaluated.is_contiguous("n"));
  return column_major || !is_row_major ? column_major : row_major;
}

}  // namespace kw::generator
