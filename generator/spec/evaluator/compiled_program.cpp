// Resolves a program for evaluation; see compiled_program.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/spec/evaluator/compiled_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "generator/spec/evaluator.h"
#include "generator/spec/evaluator/affine.h"

namespace kw::generator {
namespace {

using Kind = ExprNode::Kind;

tl::unexpected<Error> refuse(std::string message, const SourceRange& where = {}) {
  return fail(Stage::kSpec, Code::kBadInput, std::move(message), where);
}

class Compiler {
 public:
  Compiler(const Program& program, const Problem& problem, const ScalarReader& read_scalar)
      : program_(program), problem_(problem), read_scalar_(read_scalar) {}

  Result<CompiledProgram> run() {
    out_.program = &program_;
    KW_TRY_VOID(declare_indices());
    for (const Tensor& tensor : program_.tensors) {
      KW_TRY(TensorShape shape, resolve_shape(tensor, problem_));
      if (!tensor.list_dim.empty()) shape.extents.insert(shape.extents.begin(), shape.num_in_list);
      if (shape.extents.size() > kMaxAxes)
        return refuse(fmt::format("tensor {}: {} axes: at most {} are evaluated", tensor.name, shape.extents.size(), kMaxAxes),
                      tensor.where);
      out_.tensor_extents.push_back(shape.extents);
    }
    KW_TRY_VOID(declare_targets());
    for (const Statement& statement : program_.statements) KW_TRY_VOID(compile_statement(statement));
    for (size_t i = 0; i < program_.indices.size(); ++i) KW_TRY_VOID(compile_index_bounds(i));
    // Operands have lower ids, so one pass in order suffices; the second one sees bounds of indices, which are compiled last.
    for (int pass = 0; pass < 2; ++pass) {
      for (CompiledNode& node : out_.nodes) finish_node(node);
    }
    return std::move(out_);
  }

 private:
  Status declare_indices() {
    if (program_.indices.size() > kMaxIndices)
      return refuse(fmt::format("{} indices: at most {} are evaluated", program_.indices.size(), kMaxIndices));
    for (const Index& index : program_.indices) {
      KW_TRY(const std::int64_t extent, index.extent.evaluate(problem_.dims));
      if (extent < 0) return refuse(fmt::format("index {}: extent {} is negative", index.name, extent));
      slots_.emplace(index.name, static_cast<int>(out_.indices.size()));
      out_.indices.push_back({index.name, extent, -1, -1, -1});
    }
    return {};
  }

  Status declare_targets() {
    for (const Statement& statement : program_.statements) {
      const auto [entry, is_new] = out_.target_ids.emplace(statement.target, static_cast<int>(out_.targets.size()));
      if (is_new) out_.targets.push_back({statement.target, nullptr, {}, {}});
      CompiledTarget& target = out_.targets[static_cast<size_t>(entry->second)];
      target.statements.push_back(static_cast<int>(&statement - program_.statements.data()));
      if (statement.is_tensor) {
        target.tensor = program_.find_tensor(statement.target);
        if (target.tensor == nullptr) return refuse(fmt::format("{}: written, but not a tensor", statement.target), statement.where);
        target.extents = out_.tensor_extents[static_cast<size_t>(target.tensor - program_.tensors.data())];
      } else if (is_new) {
        for (const std::string& name : statement.indices) {
          KW_TRY(const int slot, slot_of(name, statement.where));
          target.extents.push_back(out_.indices[static_cast<size_t>(slot)].extent);
        }
      }
    }
    return {};
  }

  Result<int> slot_of(const std::string& name, const SourceRange& where) const {
    const auto found = slots_.find(name);
    if (found == slots_.end()) return refuse(fmt::format("index {}: not declared", name), where);
    return found->second;
  }

  Status compile_statement(const Statement& statement) {
    CompiledStatement compiled;
    for (const std::string& name : statement.indices) {
      KW_TRY(const int slot, slot_of(name, statement.where));
      compiled.slots.push_back(slot);
      compiled.has_ragged_index = compiled.has_ragged_index || !program_.indices[static_cast<size_t>(slot)].ragged_offsets.empty();
    }
    const size_t rank = out_.targets[static_cast<size_t>(out_.target_ids.at(statement.target))].extents.size();
    if (statement.subscripts.size() != rank)
      return refuse(fmt::format("{}: {} subscripts, rank {}", statement.target, statement.subscripts.size(), rank), statement.where);
    for (const ExprRef& subscript : statement.subscripts) {
      const auto affine = read_affine(*subscript, slots_, problem_.dims);
      if (!affine)
        return refuse(fmt::format("{}: subscript {} on the left side is not affine", statement.target, to_text(subscript)),
                      statement.where);
      compiled.subscripts.push_back(*affine);
    }
    KW_TRY(compiled.value, compile(statement.value));
    out_.statements.push_back(std::move(compiled));
    return {};
  }

  Status compile_index_bounds(size_t i) {
    const Index& index = program_.indices[i];
    if (index.below != nullptr) {
      KW_TRY(const int node, compile(index.below));
      out_.indices[i].below = node;
    }
    if (!index.ragged_offsets.empty()) {
      const Tensor* offsets = program_.find_tensor(index.ragged_offsets);
      if (offsets == nullptr || offsets->shape.size() != 1)
        return refuse(fmt::format("index {}: offsets {} must be a tensor of rank 1", index.name, index.ragged_offsets));
      KW_TRY(const int group, slot_of(index.ragged_group, {}));
      out_.indices[i].offsets = static_cast<int>(offsets - program_.tensors.data());
      out_.indices[i].group_slot = group;
    }
    return {};
  }

  Result<int> compile(const ExprRef& expr) {
    if (const auto found = by_pointer_.find(expr.get()); found != by_pointer_.end()) return found->second;
    CompiledNode node;
    node.kind = expr->kind;
    node.dtype = expr->dtype;
    node.function = expr->function;
    node.reduce_op = expr->reduce_op;
    node.where = expr->where;
    node.rounding = rounding_of(expr->dtype, program_.accumulate);
    for (const ExprRef& operand : expr->operands) {
      KW_TRY(const int id, compile(operand));
      node.operands.push_back(id);
    }
    KW_TRY_VOID(resolve(*expr, node));
    const int id = share(node, *expr);
    by_pointer_.emplace(expr.get(), id);
    return id;
  }

  /// Equal nodes get one id, so that a reduction used twice is computed once.
  int share(const CompiledNode& node, const ExprNode& expr) {
    std::string key = fmt::format("{}:{}:{}:{}:{:a}:{}:", static_cast<int>(node.kind), static_cast<int>(node.dtype),
                                  static_cast<int>(node.function), static_cast<int>(node.reduce_op), expr.number, expr.name);
    for (const std::string& index : expr.indices) key += index + ",";
    for (const int operand : node.operands) key += fmt::format(";{}", operand);
    const auto [entry, is_new] = by_key_.emplace(std::move(key), static_cast<int>(out_.nodes.size()));
    if (is_new) out_.nodes.push_back(node);
    return entry->second;
  }

  Status resolve(const ExprNode& expr, CompiledNode& node) {
    switch (expr.kind) {
      case Kind::kNumber:
        node.constant = rounded_constant(expr.number, node);
        return {};
      case Kind::kDim: {
        const auto found = problem_.dims.find(expr.name);
        if (found == problem_.dims.end())
          return refuse(fmt::format("dim {}: has no value in the problem {}", expr.name, problem_.to_text()), expr.where);
        node.constant = {static_cast<double>(found->second), 0};
        return {};
      }
      case Kind::kScalar: {
        KW_TRY(node.constant, scalar_value(expr.name, 0));
        return {};
      }
      case Kind::kIndex: {
        KW_TRY(node.slot, slot_of(expr.name, expr.where));
        return {};
      }
      case Kind::kRead:
        return resolve_read(expr, node);
      case Kind::kCall:
        if (expr.operands.size() != arity(expr.function))
          return refuse(fmt::format("{}: {} operands", to_text(expr.function), expr.operands.size()), expr.where);
        return {};
      case Kind::kCast:
        if (expr.operands.size() != 1) return refuse("cast: needs one operand", expr.where);
        return {};
      case Kind::kReduce:
        return resolve_reduce(expr, node);
      case Kind::kParameter:
        return refuse("a parameter of a user function outside its body", expr.where);
    }
    return {};
  }

  Bounded rounded_constant(double value, const CompiledNode& node) const {
    if (node.rounding.unit == 0 || !std::isfinite(value)) return {value, 0};
    const bool is_single = node.rounding.unit >= 0x1p-24;
    if (is_single && static_cast<double>(static_cast<float>(value)) == value) return {value, 0};
    if (!is_single) return {value, 0};
    return {value, std::abs(value) * 0x1p-24};
  }

  Status resolve_read(const ExprNode& expr, CompiledNode& node) {
    std::string name = expr.name;
    bool is_updated = false;
    if (name.size() > 5 && name.starts_with("new(") && name.back() == ')') {
      name = name.substr(4, name.size() - 5);
      is_updated = true;
    }
    const Tensor* tensor = program_.find_tensor(name);
    const auto target = out_.target_ids.find(is_updated && !out_.target_ids.contains(name) ? expr.name : name);
    const bool reads_target = target != out_.target_ids.end() && (tensor == nullptr || tensor->role == TensorRole::kOut || is_updated);
    if (!reads_target && tensor == nullptr) return refuse(fmt::format("{}: neither a tensor nor an intermediate", expr.name), expr.where);
    std::vector<std::int64_t> extents;
    if (reads_target) {
      node.target = target->second;
      // Statements are in topological order; anything else would be evaluated for ever.
      const int last_writer = out_.targets[static_cast<size_t>(node.target)].statements.back();
      if (last_writer >= static_cast<int>(out_.statements.size()))
        return refuse(fmt::format("{}: read before it is written", expr.name), expr.where);
      extents = out_.targets[static_cast<size_t>(node.target)].extents;
    } else {
      node.tensor = static_cast<int>(tensor - program_.tensors.data());
      extents = out_.tensor_extents[static_cast<size_t>(node.tensor)];
    }
    if (extents.size() != expr.operands.size())
      return refuse(fmt::format("{}: {} subscripts, rank {}", expr.name, expr.operands.size(), extents.size()), expr.where);
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      Subscript subscript;
      const auto affine = read_affine(*expr.operands[axis], slots_, problem_.dims);
      subscript.is_affine = affine.has_value();
      if (affine) subscript.affine = *affine;
      subscript.node = node.operands[axis];
      node.has_affine_subscripts = node.has_affine_subscripts && subscript.is_affine;
      node.subscripts.push_back(std::move(subscript));
    }
    return {};
  }

  Status resolve_reduce(const ExprNode& expr, CompiledNode& node) {
    const bool has_rank = expr.reduce_op == ReduceOp::kTopK || expr.reduce_op == ReduceOp::kTopKIndex;
    if (expr.operands.empty() || (has_rank && expr.operands.size() != 2))
      return refuse(fmt::format("{}: operands missing", to_text(expr.reduce_op)), expr.where);
    if (expr.indices.empty()) return refuse(fmt::format("{}: reduces over no index", to_text(expr.reduce_op)), expr.where);
    if (keeps_index(expr.reduce_op) && expr.indices.size() != 1)
      return refuse(fmt::format("{}: over {} indices: one is evaluated", to_text(expr.reduce_op), expr.indices.size()), expr.where);
    double num_terms = 1;
    bool is_rectangular = true;
    for (const std::string& name : expr.indices) {
      KW_TRY(const int slot, slot_of(name, expr.where));
      const Index& index = program_.indices[static_cast<size_t>(slot)];
      node.slots.push_back(slot);
      num_terms *= static_cast<double>(out_.indices[static_cast<size_t>(slot)].extent);
      is_rectangular = is_rectangular && index.below == nullptr && index.ragged_offsets.empty();
    }
    if (num_terms > static_cast<double>(kMaxTerms))
      return refuse(fmt::format("{}: {:.3g} terms: at most 2^40 are evaluated", to_text(expr.reduce_op), num_terms), expr.where);
    const bool has_order =
        expr.reduce_op == ReduceOp::kArgmax || expr.reduce_op == ReduceOp::kTopKIndex || expr.reduce_op == ReduceOp::kTopK;
    if (is_rectangular && !has_order) {
      const auto extent_of = [&](int slot) { return out_.indices[static_cast<size_t>(slot)].extent; };
      const auto largest =
          std::max_element(node.slots.begin(), node.slots.end(), [&](int x, int y) { return extent_of(x) < extent_of(y); });
      std::rotate(largest, largest + 1, node.slots.end());  // the longest loop is the one in blocks
    }
    return {};
  }

  /// A scalar given at launch is rounded to its dtype by the caller; a derived one is computed in double and rounded once.
  Result<Bounded> scalar_value(const std::string& name, int depth) {
    const Scalar* scalar = program_.find_scalar(name);
    if (scalar == nullptr) return refuse(fmt::format("scalar {}: not declared", name));
    if (depth > 32) return refuse(fmt::format("scalar {}: defined by itself", name));
    if (scalar->value == nullptr) return Bounded{round_to(scalar->dtype, read_scalar_(*scalar)), 0};
    KW_TRY(const double value, constant_value(*scalar->value, depth));
    if (!is_float(scalar->dtype)) return Bounded{value, 0};
    const double rounded = round_to(scalar->dtype, value);
    return Bounded{value, rounded == value || !std::isfinite(value) ? 0 : std::abs(value) * unit_roundoff(scalar->dtype)};
  }

  Result<double> constant_value(const ExprNode& expr, int depth) {
    std::vector<Bounded> operands;
    for (const ExprRef& operand : expr.operands) {
      KW_TRY(const double value, constant_value(*operand, depth));
      operands.push_back({value, 0});
    }
    switch (expr.kind) {
      case Kind::kNumber:
        return expr.number;
      case Kind::kCast:
        return round_to(expr.dtype, operands.at(0).value);
      case Kind::kScalar: {
        KW_TRY(const Bounded value, scalar_value(expr.name, depth + 1));
        return value.value;
      }
      case Kind::kDim: {
        const auto found = problem_.dims.find(expr.name);
        if (found == problem_.dims.end())
          return refuse(fmt::format("dim {}: has no value in the problem {}", expr.name, problem_.to_text()), expr.where);
        return static_cast<double>(found->second);
      }
      case Kind::kCall:
        if (operands.size() != arity(expr.function))
          return refuse(fmt::format("{}: {} operands", to_text(expr.function), operands.size()), expr.where);
        if (expr.function == Function::kWhere) return operands[0].value != 0 ? operands[1].value : operands[2].value;
        return apply(expr.function, operands, {}).value;
      default:
        return refuse("a scalar's value may use numbers, dims and scalars only", expr.where);
    }
  }

  /// Facts that need the operands or the bounds of indices compiled.
  void finish_node(CompiledNode& node) {
    node.depends = 0;
    node.expanded_size = 1;
    for (const int operand : node.operands) {
      const CompiledNode& child = out_.nodes[static_cast<size_t>(operand)];
      node.depends |= child.depends;
      node.expanded_size = std::min(node.expanded_size + child.expanded_size, 1e18);
      node.converts_integers = node.converts_integers || (node.kind == Kind::kCall && is_integer(child.dtype) && is_float(node.dtype));
    }
    if (node.kind == Kind::kIndex) node.depends |= bit(node.slot);
    if (node.kind == Kind::kRead && node.target >= 0) {
      for (const int id : out_.targets[static_cast<size_t>(node.target)].statements) {
        const int value = out_.statements[static_cast<size_t>(id)].value;
        node.expanded_size = std::min(node.expanded_size + out_.nodes[static_cast<size_t>(value)].expanded_size, 1e18);
      }
    }
    if (node.kind == Kind::kReduce) finish_reduce(node);
  }

  void finish_reduce(CompiledNode& node) {
    const std::uint64_t inner = out_.nodes[static_cast<size_t>(node.operands[0])].depends;
    std::uint64_t own = 0;
    std::uint64_t outer = node.operands.size() > 1 ? out_.nodes[static_cast<size_t>(node.operands[1])].depends : 0;
    for (const int slot : node.slots) {
      const CompiledIndex& index = out_.indices[static_cast<size_t>(slot)];
      own |= bit(slot);
      if (index.below >= 0) outer |= out_.nodes[static_cast<size_t>(index.below)].depends;
      if (index.group_slot >= 0) outer |= bit(index.group_slot);
    }
    node.depends = (inner & ~own) | (outer & ~own);
    if (keeps_index(node.reduce_op)) node.depends |= own;
    find_product(node, own);
  }

  void find_product(CompiledNode& node, std::uint64_t own) {
    const CompiledNode& body = out_.nodes[static_cast<size_t>(node.operands[0])];
    const bool is_sum = node.reduce_op == ReduceOp::kSum || node.reduce_op == ReduceOp::kMean;
    if (!is_sum || body.kind != Kind::kCall || body.function != Function::kMul) return;
    const CompiledNode& a = out_.nodes[static_cast<size_t>(body.operands[0])];
    const CompiledNode& b = out_.nodes[static_cast<size_t>(body.operands[1])];
    node.is_product_sum = true;
    if (!program_.uses_tf32 || !is_float(body.dtype)) return;
    node.tf32_unit[0] = tf32_unit(a);
    node.tf32_unit[1] = tf32_unit(b);
    node.has_independent_factors = (node.tf32_unit[0] == 0 || walks_elements(a, own)) && (node.tf32_unit[1] == 0 || walks_elements(b, own));
  }

  /// 2^-11 unless the factor is read from a type whose values tf32 holds exactly.
  double tf32_unit(const CompiledNode& factor) const {
    if (factor.kind == Kind::kRead && factor.tensor >= 0) {
      const DType dtype = program_.tensors[static_cast<size_t>(factor.tensor)].dtype;
      if (dtype != DType::kF32 && dtype != DType::kF64 && dtype != DType::kTF32 && dtype != DType::kI32 && dtype != DType::kI64) return 0;
    }
    return unit_roundoff(DType::kTF32);
  }

  /// Each term of the reduction reads another element: every reduced index is alone on an axis.
  static bool walks_elements(const CompiledNode& factor, std::uint64_t own) {
    if (factor.kind != Kind::kRead || factor.tensor < 0 || !factor.has_affine_subscripts) return false;
    std::uint64_t seen = 0;
    for (const Subscript& subscript : factor.subscripts) {
      if (subscript.affine.terms.size() == 1) seen |= bit(subscript.affine.terms[0].slot);
    }
    return (own & ~seen) == 0;
  }

  static std::uint64_t bit(int slot) { return std::uint64_t{1} << slot; }

  const Program& program_;
  const Problem& problem_;
  const ScalarReader& read_scalar_;
  std::map<std::string, int> slots_;
  CompiledProgram out_;
  std::unordered_map<const ExprNode*, int> by_pointer_;
  std::map<std::string, int> by_key_;
};

}  // namespace

bool keeps_index(ReduceOp op) { return op == ReduceOp::kSoftmax || op == ReduceOp::kCumSum; }

Result<CompiledProgram> compile_program(const Program& program, const Problem& problem, const ScalarReader& read_scalar) {
  return Compiler(program, problem, read_scalar).run();
}

}  // namespace kw::generator
