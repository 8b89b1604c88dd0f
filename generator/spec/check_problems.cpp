// Shapes of a spec: the problems it lists, and the checks that need numbers: sizes, subscripts inside their axes, left sides that
// cover their tensor exactly once.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "generator/spec/checker.h"
#include "generator/spec/op_spec.h"

namespace kw::generator {

namespace {

constexpr std::int64_t kMaxTensorBytes = std::int64_t{1} << 47;  // x86-64 and CUDA unified addressing: 47 bits of user addresses
constexpr std::size_t kMaxCheckedProblems = 64;
constexpr std::int64_t kSampleExtent = 5040;  // stands for a dim "any": divisible by 1 to 10

struct Interval {
  std::int64_t low = 0, high = 0;
};

/// Elements an axis' left subscript reaches: start, start + step, ..., `count` of them.
struct Progression {
  std::int64_t start = 0, step = 1, count = 1;
  std::int64_t last() const { return start + step * (count - 1); }
};

bool are_disjoint(const Progression& a, const Progression& b) {
  if (a.count == 0 || b.count == 0 || a.last() < b.start || b.last() < a.start) return true;
  const std::int64_t divisor = std::gcd(a.step, b.step);
  return divisor != 0 && (a.start - b.start) % divisor != 0;
}

class ProblemChecker {
 public:
  ProblemChecker(const Program& program, IntBindings bindings, Diagnostics& diagnostics)
      : program_(program), bindings_(std::move(bindings)), diagnostics_(diagnostics) {}

  void check() {
    for (const Tensor& tensor : program_.tensors) check_size(tensor);
    for (const Index& index : program_.indices) {
      const Result<std::int64_t> extent = index.extent.evaluate(bindings_);
      if (!extent)
        return error(
            {}, fmt::format("the extent {} of index {} overflows 64 bits or divides by zero{}", index.extent.to_text(), index.name, at()));
      if (*extent < 0)
        return error({}, fmt::format("the extent {} of index {} is {}: an extent is not negative{}", index.extent.to_text(), index.name,
                                     *extent, at()));
      if (index.ragged_offsets.empty()) ranges_[index.name] = {0, *extent - 1};
      extents_[index.name] = *extent;
    }
    if (has_failed_) return;
    for (const Statement& statement : program_.statements) {
      if (is_empty(statement)) continue;
      if (statement.is_tensor) check_left(statement);
      check_reads(statement.value, statement);
    }
    for (const Tensor& tensor : program_.tensors) {
      if (tensor.role != TensorRole::kIn) check_cover(tensor);
    }
  }

 private:
  void error(const SourceRange& where, std::string message) {
    has_failed_ = true;
    diagnostics_.add({Stage::kSpec, Code::kBadInput, std::move(message), where, {}});
  }
  std::string at() const {
    std::string text;
    for (const auto& [name, value] : bindings_) {
      if (name.find('.') == std::string::npos) text += fmt::format("{}{}={}", text.empty() ? " (at " : ",", name, value);
    }
    return text.empty() ? "" : text + ")";
  }

  std::vector<IntExpr> axes(const Tensor& tensor) const {
    std::vector<IntExpr> extents = tensor.shape;
    if (!tensor.list_dim.empty()) extents.insert(extents.begin(), IntExpr::variable(tensor.list_dim));
    return extents;
  }

  void check_size(const Tensor& tensor) {
    std::int64_t bytes = size_bytes(tensor.dtype), span = 1;
    std::vector<std::pair<std::int64_t, std::int64_t>> steps;  // stride, extent
    bool has_overflow = false, is_empty_tensor = false;
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      const Result<std::int64_t> extent = tensor.shape[axis].evaluate(bindings_);
      const Result<std::int64_t> stride = tensor.strides[axis].evaluate(bindings_);
      if (!extent || !stride)
        return error(tensor.where, fmt::format("axis {} of tensor {} overflows 64 bits or divides by zero{}", axis, tensor.name, at()));
      if (*extent < 0 || *stride < 0)
        return error(tensor.where, fmt::format("axis {} of tensor {} has extent {} and stride {}: neither is negative{}", axis, tensor.name,
                                               *extent, *stride, at()));
      std::int64_t reach = 0;
      has_overflow = has_overflow || __builtin_mul_overflow(bytes, std::max<std::int64_t>(1, *extent), &bytes) ||
                     __builtin_mul_overflow(std::max<std::int64_t>(1, *extent) - 1, *stride, &reach) ||
                     __builtin_add_overflow(span, reach, &span);
      is_empty_tensor = is_empty_tensor || *extent == 0;
      steps.emplace_back(*stride, *extent);
    }
    if (has_overflow || bytes > kMaxTensorBytes || span > kMaxTensorBytes / size_bytes(tensor.dtype)) {
      return error(tensor.where, fmt::format("tensor {} is larger than 2^47 bytes, the most a program can address{}", tensor.name, at()));
    }
    if (tensor.role != TensorRole::kIn && !is_empty_tensor) check_no_overlap(tensor, std::move(steps));
  }

  void check_no_overlap(const Tensor& tensor, std::vector<std::pair<std::int64_t, std::int64_t>> steps) {
    std::sort(steps.begin(), steps.end());
    std::int64_t reach = 1;
    for (const auto& [stride, extent] : steps) {
      if (extent <= 1) continue;
      if (stride < reach)
        return error(tensor.where,
                     fmt::format("the strides of tensor {} put two of its elements at one address: stride {} where {} are needed{}",
                                 tensor.name, stride, reach, at()));
      reach = stride * (extent - 1) + reach;
    }
  }

  bool is_empty(const Statement& statement) const {
    return std::any_of(statement.indices.begin(), statement.indices.end(), [&](const std::string& index) {
      const auto extent = extents_.find(index);
      return extent != extents_.end() && extent->second == 0;
    });
  }

  std::optional<Interval> interval(const ExprRef& expr) const {
    if (expr->kind == ExprNode::Kind::kIndex) {
      const auto range = ranges_.find(expr->name);
      return range == ranges_.end() ? std::nullopt : std::optional(range->second);
    }
    if (expr->kind == ExprNode::Kind::kNumber || expr->kind == ExprNode::Kind::kDim) {
      const Result<IntExpr> value = as_int_expr(expr);
      const Result<std::int64_t> number = value ? value->evaluate(bindings_) : Result<std::int64_t>(fail(value.error()));
      return number ? std::optional(Interval{*number, *number}) : std::nullopt;
    }
    if (expr->kind != ExprNode::Kind::kCall || expr->operands.empty() || expr->operands.size() > 2) return std::nullopt;
    const std::optional<Interval> left = interval(expr->operands[0]);
    const std::optional<Interval> right = expr->operands.size() == 2 ? interval(expr->operands[1]) : Interval{};
    if (!left || !right) return std::nullopt;
    return combine(expr->function, *left, *right);
  }

  static std::optional<Interval> combine(Function function, const Interval& a, const Interval& b) {
    constexpr std::int64_t kLarge = std::int64_t{1} << 31;
    const bool is_small = std::max({-a.low, a.high, -b.low, b.high}) < kLarge;
    if (!is_small) return std::nullopt;
    const auto floor_divide = [](std::int64_t x, std::int64_t y) { return x / y - (x % y < 0 ? 1 : 0); };
    switch (function) {
      case Function::kAdd:
        return Interval{a.low + b.low, a.high + b.high};
      case Function::kSub:
        return Interval{a.low - b.high, a.high - b.low};
      case Function::kNeg:
        return Interval{-a.high, -a.low};
      case Function::kMul: {
        const auto [low, high] = std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
        return Interval{low, high};
      }
      case Function::kFloorDiv:
        if (b.low != b.high || b.low <= 0) return std::nullopt;
        return Interval{floor_divide(a.low, b.low), floor_divide(a.high, b.low)};
      case Function::kMod:
        if (b.low != b.high || b.low <= 0) return std::nullopt;
        if (a.low >= 0 && a.high < b.low) return a;
        return Interval{0, b.low - 1};
      case Function::kMin:
        return Interval{std::min(a.low, b.low), std::min(a.high, b.high)};
      case Function::kMax:
        return Interval{std::max(a.low, b.low), std::max(a.high, b.high)};
      default:
        return std::nullopt;
    }
  }

  static void count_indices(const ExprRef& expr, std::map<std::string, int>& counts, bool& has_modulo) {
    if (expr->kind == ExprNode::Kind::kIndex) ++counts[expr->name];
    has_modulo = has_modulo || (expr->kind == ExprNode::Kind::kCall && expr->function == Function::kMod);
    for (const ExprRef& operand : expr->operands) count_indices(operand, counts, has_modulo);
  }
  /// The interval is exact when each index stands once: only then is leaving an axis a mistake for sure.
  static bool is_exact(const ExprRef& expr) {
    std::map<std::string, int> counts;
    bool has_modulo = false;
    count_indices(expr, counts, has_modulo);
    return !has_modulo && std::all_of(counts.begin(), counts.end(), [](const auto& count) { return count.second == 1; });
  }

  /// Reads outside where(...) and outside bounded indices must stay inside their axes.
  void check_reads(const ExprRef& expr, const Statement& statement) {
    if (expr->kind == ExprNode::Kind::kCall && expr->function == Function::kWhere) return;
    if (expr->kind == ExprNode::Kind::kReduce) {
      for (const std::string& name : expr->indices) {
        const Index* index = program_.find_index(name);
        const auto extent = extents_.find(name);
        if (index == nullptr || index->below || !index->ragged_offsets.empty() || (extent != extents_.end() && extent->second == 0)) return;
      }
    }
    if (expr->kind == ExprNode::Kind::kRead) {
      const Tensor* tensor = program_.find_tensor(expr->name);
      if (tensor != nullptr) check_inside(expr->name, axes(*tensor), expr->operands, expr->where);
    }
    for (const ExprRef& operand : expr->operands) check_reads(operand, statement);
  }

  void check_inside(const std::string& name, const std::vector<IntExpr>& extents, const std::vector<ExprRef>& subscripts,
                    const SourceRange& where) {
    for (std::size_t axis = 0; axis < extents.size() && axis < subscripts.size(); ++axis) {
      const std::optional<Interval> reach = interval(subscripts[axis]);
      const Result<std::int64_t> extent = extents[axis].evaluate(bindings_);
      if (!reach || !extent || !is_exact(subscripts[axis]) || (reach->low >= 0 && reach->high < *extent)) continue;
      error(where, fmt::format("subscript {} of {} reaches {} to {}: axis {} has extent {}{}", to_text(subscripts[axis]), name, reach->low,
                               reach->high, axis, *extent, at()));
      return;
    }
  }

  void check_left(const Statement& statement) {
    const Tensor* tensor = program_.find_tensor(statement.target);
    KW_CHECK(tensor != nullptr, "a tensor statement writes a declared tensor");
    check_inside(statement.target, axes(*tensor), statement.subscripts, statement.where);
  }

  /// start and coefficients of a left subscript, as numbers.
  std::optional<Progression> progression(const ExprRef& subscript) const {
    const Result<IntExpr> expr = as_int_expr(subscript);
    if (!expr) return std::nullopt;
    IntBindings values = bindings_;
    std::set<std::string> names;
    expr->collect_variables(names);
    std::vector<std::string> indices;
    for (const std::string& name : names) {
      if (extents_.contains(name)) {
        values[name] = 0;
        indices.push_back(name);
      }
    }
    const Result<std::int64_t> start = expr->evaluate(values);
    if (!start) return std::nullopt;
    std::vector<std::pair<std::int64_t, std::int64_t>> terms;  // coefficient, extent
    for (const std::string& index : indices) {
      values[index] = 1;
      const Result<std::int64_t> next = expr->evaluate(values);
      values[index] = 0;
      if (!next || std::max(*next, *start) > kMaxTensorBytes || std::min(*next, *start) < -kMaxTensorBytes) return std::nullopt;
      if (extents_.at(index) != 1) terms.emplace_back(*next - *start, extents_.at(index));
    }
    std::sort(terms.begin(), terms.end());
    Progression reached{*start, 1, 1};
    for (const auto& [coefficient, extent] : terms) {
      if (coefficient <= 0) return std::nullopt;  // a reversed or constant axis
      if (reached.count == 1)
        reached.step = coefficient;
      else if (coefficient / reached.count != reached.step || coefficient % reached.count != 0)
        return std::nullopt;
      std::int64_t reach = 0;  // keeps Progression::last() in 64 bits
      if (__builtin_mul_overflow(reached.count, extent, &reached.count) || __builtin_mul_overflow(reached.count, reached.step, &reach))
        return std::nullopt;
    }
    return reached;
  }

  void check_cover(const Tensor& tensor) {
    std::vector<std::pair<const Statement*, std::vector<Progression>>> parts;
    std::int64_t wanted = 1, written = 0;
    for (const IntExpr& extent : axes(tensor)) {
      if (__builtin_mul_overflow(wanted, extent.evaluate(bindings_).value_or(0), &wanted))
        return error(tensor.where, fmt::format("tensor {} has more than 2^63 elements{}", tensor.name, at()));
    }
    for (const Statement& statement : program_.statements) {
      if (statement.target != tensor.name || !statement.is_tensor || is_empty(statement)) continue;
      std::vector<Progression> reached;
      std::int64_t count = 1;
      for (const ExprRef& subscript : statement.subscripts) {
        const std::optional<Progression> axis = progression(subscript);
        if (!axis) {
          return error(statement.where, fmt::format("the left subscript {} of {} does not reach evenly spaced elements once: write sums of "
                                                    "indices with growing factors, as in h*D + d",
                                                    to_text(subscript), tensor.name));
        }
        if (__builtin_mul_overflow(count, axis->count, &count))
          return error(statement.where, fmt::format("the statement writes more than 2^63 elements{}", at()));
        reached.push_back(*axis);
      }
      for (const auto& [other, other_reached] : parts) {
        bool is_disjoint = false;
        for (std::size_t axis = 0; axis < reached.size(); ++axis)
          is_disjoint = is_disjoint || are_disjoint(reached[axis], other_reached[axis]);
        if (!is_disjoint)
          return error(statement.where, fmt::format("{} is written twice: the statement of line {} writes the same elements{}", tensor.name,
                                                    other->where.line, at()));
      }
      if (__builtin_add_overflow(written, count, &written))
        return error(statement.where, fmt::format("the statements write more than 2^63 elements{}", at()));
      parts.emplace_back(&statement, std::move(reached));
    }
    if (tensor.role == TensorRole::kInOut || has_failed_ || has_bounded_write(tensor)) return;  // the rest keeps its value
    if (written != wanted)
      error(tensor.where, fmt::format("the statements write {} of the {} elements of {}: an output is covered once{}", written, wanted,
                                      tensor.name, at()));
  }

  bool has_bounded_write(const Tensor& tensor) const {
    for (const Statement& statement : program_.statements) {
      if (statement.target != tensor.name) continue;
      for (const std::string& name : statement.indices) {
        const Index* index = program_.find_index(name);
        if (index != nullptr && index->below) return true;
      }
    }
    return false;
  }

  const Program& program_;
  IntBindings bindings_;
  Diagnostics& diagnostics_;
  std::map<std::string, Interval> ranges_;
  std::map<std::string, std::int64_t> extents_;
  bool has_failed_ = false;
};

/// Values for all free strides, with the dims: what expressions of the program range over.
IntBindings bindings_of(const Program& program, const Problem& problem) {
  Problem complete = problem;
  complete_strides(program, complete);
  IntBindings bindings = complete.dims;
  for (const auto& [name, value] : complete.strides) bindings[name] = value;
  return bindings;
}

void check_row(CheckContext& context, const ProblemSyntax& row) {
  Problem problem = row.problem;
  const Program& program = context.program;
  for (const auto& [name, value] : problem.dims) {
    const auto kind = context.kinds.find(name);
    if (kind == context.kinds.end() || kind->second != "a dim")
      context.error(row.where, fmt::format("[[problems]]: '{}' is no dim{}", name.substr(0, kMaxNameLength), suggest(context, name)));
  }
  for (const Dim& dim : program.dims) {
    if (problem.dims.contains(dim.name)) continue;
    if (dim.values.size() == 1)
      problem.dims[dim.name] = dim.values.front();
    else
      context.error(row.where, fmt::format("[[problems]]: the row gives no value to dim {}", dim.name));
  }
  for (const auto& [name, value] : problem.strides) {
    const bool is_known = std::any_of(program.tensors.begin(), program.tensors.end(), [&, key = name](const Tensor& tensor) {
      return std::find(tensor.strides.begin(), tensor.strides.end(), IntExpr::variable(key)) != tensor.strides.end();
    });
    if (!is_known)
      context.error(row.where,
                    fmt::format("[[problems]]: '{}' is no free stride: declare strides = \"any\"", name.substr(0, 2 * kMaxNameLength)));
  }
  for (const auto& [name, value] : problem.align_bytes) {
    if (program.find_tensor(name) == nullptr)
      context.error(row.where,
                    fmt::format("[[problems]]: '{}.align' names no tensor{}", name.substr(0, kMaxNameLength), suggest(context, name)));
  }
  context.program.problems.push_back(std::move(problem));
}

void multiply_lists(CheckContext& context) {
  Program& program = context.program;
  std::int64_t count = 1;
  for (const Dim& dim : program.dims) {
    if (dim.is_any || dim.values.empty()) return;
    count *= static_cast<std::int64_t>(dim.values.size());
    if (count > kMaxProblems) {
      return context.error(
          {context.spec.file_name, 0, 0},
          fmt::format("the lists of [dims] multiply to more than {} problems: name the shapes under [[problems]]", kMaxProblems));
    }
  }
  std::vector<Problem> problems(1);
  for (const Dim& dim : program.dims) {
    std::vector<Problem> longer;
    for (const Problem& problem : problems) {
      for (const std::int64_t value : dim.values) {
        longer.push_back(problem);
        longer.back().dims[dim.name] = value;
      }
    }
    problems = std::move(longer);
  }
  program.problems = std::move(problems);
}

}  // namespace

void complete_strides(const Program& program, Problem& problem) {
  for (const Tensor& tensor : program.tensors) {
    if (tensor.has_any_strides) kw::complete_strides(tensor.name, tensor.shape, tensor.strides, problem);
  }
}

void check_problem(const Program& program, const Problem& problem, Diagnostics& diagnostics) {
  std::set<std::string> names;
  for (const Dim& dim : program.dims) {
    const auto value = problem.dims.find(dim.name);
    if (value == problem.dims.end()) {
      diagnostics.add({Stage::kSpec, Code::kBadInput, fmt::format("dim {} has no value", dim.name), {}, {}});
      return;
    }
    names.insert(dim.name);
  }
  for (const auto& [name, value] : problem.dims) {
    if (value >= 0 && value <= kMaxExactInteger && names.contains(name)) continue;
    diagnostics.add({Stage::kSpec,
                     Code::kBadInput,
                     names.contains(name) ? fmt::format("{} = {}: an extent is not negative and at most 2^53", name, value)
                                          : fmt::format("'{}' is no dim of {}", name, program.name),
                     {},
                     {}});
    return;
  }
  ProblemChecker(program, bindings_of(program, problem), diagnostics).check();
}

void make_problems(CheckContext& context) {
  Program& program = context.program;
  program.has_explicit_problems = !context.syntax.problems.empty();
  if (program.has_explicit_problems) {
    for (const ProblemSyntax& row : context.syntax.problems) check_row(context, row);
  } else {
    multiply_lists(context);
  }
  if (context.diagnostics.has_errors() || context.is_partial) return;
  if (program.problems.empty()) {
    Problem sample;
    for (const Dim& dim : program.dims) sample.dims[dim.name] = dim.values.empty() ? kSampleExtent : dim.values.front();
    return check_problem(program, sample, context.diagnostics);
  }
  for (std::size_t i = 0; i < program.problems.size() && i < kMaxCheckedProblems && !context.diagnostics.has_errors(); ++i)
    check_problem(program, program.problems[i], context.diagnostics);
  for (Problem& problem : program.problems) complete_strides(program, problem);
}

}  // namespace kw::generator
