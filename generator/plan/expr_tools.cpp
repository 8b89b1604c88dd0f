// Walks over typed expressions; see expr_tools.h. Shared nodes stay shared: each walk remembers what it rebuilt.
// SPDX-License-Identifier: Apache-2.0
#include "generator/plan/expr_tools.h"

#include "generator/spec/walk.h"

namespace kw::generator {
namespace {

using Kind = ExprNode::Kind;
using Replacements = std::map<std::string, ExprRef>;

void collect_index_names(const ExprRef& expr, std::set<std::string>& names) {
  visit_nodes(expr, [&](const ExprRef& node) {
    if (node->kind == Kind::kIndex) names.insert(node->name);
    return true;
  });
}

ExprRef with_operands(const ExprRef& expr, std::vector<ExprRef> operands) {
  if (operands == expr->operands) return expr;
  auto node = std::make_shared<ExprNode>(*expr);
  node->operands = std::move(operands);
  return node;
}

class Substitution {
 public:
  explicit Substitution(const Replacements& replacements) : replacements_(replacements) {}

  ExprRef apply(const ExprRef& expr) {
    const auto done = done_.find(expr.get());
    if (done != done_.end()) return done->second;
    ExprRef result = rebuild(expr);
    done_[expr.get()] = result;
    return result;
  }

 private:
  ExprRef rebuild(const ExprRef& expr) {
    if (expr->kind == Kind::kIndex) {
      const auto found = replacements_.find(expr->name);
      return found == replacements_.end() ? expr : found->second;
    }
    if (expr->kind == Kind::kReduce) return rebuild_reduction(expr);
    std::vector<ExprRef> operands;
    for (const ExprRef& operand : expr->operands) operands.push_back(apply(operand));
    return with_operands(expr, std::move(operands));
  }

  ExprRef rebuild_reduction(const ExprRef& expr) {
    Replacements inner = replacements_;
    for (const std::string& bound : expr->indices) inner.erase(bound);
    std::set<std::string> incoming;
    for (const auto& [name, value] : inner) collect_index_names(value, incoming);
    auto node = std::make_shared<ExprNode>(*expr);
    for (std::string& bound : node->indices) {
      if (incoming.count(bound) == 0) continue;
      std::string fresh = bound + "'";
      while (incoming.count(fresh) != 0) fresh += "'";
      inner[bound] = make_index(fresh);
      bound = fresh;
    }
    Substitution scope(inner);
    for (ExprRef& operand : node->operands) operand = scope.apply(operand);
    return node;
  }

  const Replacements& replacements_;
  std::map<const ExprNode*, ExprRef> done_;
};

ExprRef replace_reductions(const ExprRef& expr, const std::function<ExprRef(const ExprRef&)>& replace,
                           std::map<const ExprNode*, ExprRef>& done) {
  const auto found = done.find(expr.get());
  if (found != done.end()) return found->second;
  if (expr->kind == Kind::kReduce) return done[expr.get()] = replace(expr);
  std::vector<ExprRef> operands;
  for (const ExprRef& operand : expr->operands) operands.push_back(replace_reductions(operand, replace, done));
  return done[expr.get()] = with_operands(expr, std::move(operands));
}

constexpr std::size_t kMaxFactors = 1000;  // of a power that is written as products of products: the rest stays together

void add_factors(const ExprRef& expr, bool is_divisor, std::vector<Factor>& factors) {
  if (factors.size() >= kMaxFactors) {
    factors.push_back({expr, is_divisor});
  } else if (expr->kind == Kind::kCall && expr->function == Function::kMul) {
    for (const ExprRef& operand : expr->operands) add_factors(operand, is_divisor, factors);
  } else if (expr->kind == Kind::kCall && expr->function == Function::kDiv) {
    add_factors(expr->operands[0], is_divisor, factors);
    add_factors(expr->operands[1], !is_divisor, factors);
  } else if (expr->kind == Kind::kCall && expr->function == Function::kNeg) {
    add_factors(expr->operands[0], is_divisor, factors);
    factors.push_back({make_number(-1, expr->dtype), false});
  } else {
    factors.push_back({expr, is_divisor});
  }
}

}  // namespace

ExprRef substitute_indices(const ExprRef& expr, const Replacements& replacements) { return Substitution(replacements).apply(expr); }

const Index* find_program_index(const Program& program, const std::string& name) {
  return program.find_index(std::string_view(name).substr(0, name.find('\'')));
}

bool contains_reduction(const ExprRef& expr) {
  return any_node(expr, [](const ExprRef& node) { return node->kind == Kind::kReduce; });
}

void collect_reductions(const ExprRef& expr, std::vector<ExprRef>& reductions) {
  visit_nodes(expr, [&](const ExprRef& node) {
    if (node->kind == Kind::kReduce) reductions.push_back(node);
    return node->kind != Kind::kReduce;
  });
}

ExprRef replace_reductions(const ExprRef& expr, const std::function<ExprRef(const ExprRef&)>& replace) {
  std::map<const ExprNode*, ExprRef> done;
  return replace_reductions(expr, replace, done);
}

bool depends_on(const ExprRef& expr, const std::set<std::string>& indices) {
  return any_node(expr, [&](const ExprRef& node) { return node->kind == Kind::kIndex && indices.count(node->name) != 0; });
}

ExprRef make_read(const std::string& name, std::vector<ExprRef> subscripts, const ExprRef& like) {
  ExprNode read;
  read.kind = Kind::kRead;
  read.name = name;
  read.dtype = like->dtype;
  read.where = like->where;
  read.operands = std::move(subscripts);
  return std::make_shared<const ExprNode>(std::move(read));
}

std::vector<Factor> product_factors(const ExprRef& expr) {
  std::vector<Factor> factors;
  add_factors(expr, false, factors);
  return factors;
}

bool stays_inside(const ExprRef& expr, const Program& program) {
  return !any_node(expr, [&](const ExprRef& node) {
    if (node->kind != Kind::kRead) return false;
    const Tensor* tensor = program.find_tensor(node->name);
    const std::vector<IntExpr> shape = tensor == nullptr ? std::vector<IntExpr>() : subscripted_shape(*tensor);
    for (std::size_t axis = 0; axis < node->operands.size(); ++axis) {
      const Index* index = node->operands[axis]->kind == Kind::kIndex ? find_program_index(program, node->operands[axis]->name) : nullptr;
      if (index == nullptr || (tensor != nullptr && !(index->extent == shape[axis]))) return true;
    }
    return false;
  });
}

void drop_unused_indices(Program& step) {
  std::set<std::string> used;
  const auto note = [&](const ExprRef& expr) {
    visit_nodes(expr, [&](const ExprRef& node) {
      if (node->kind == ExprNode::Kind::kIndex) used.insert(node->name);
      used.insert(node->indices.begin(), node->indices.end());
      return true;
    });
  };
  for (const Statement& statement : step.statements) {
    used.insert(statement.indices.begin(), statement.indices.end());
    note(statement.value);
    for (const ExprRef& subscript : statement.subscripts) note(subscript);
  }
  for (std::size_t before = 0; before != used.size();) {
    before = used.size();
    for (const Index& index : step.indices) {
      if (used.count(index.name) == 0) continue;
      if (index.below) note(index.below);
      if (!index.ragged_group.empty()) used.insert(index.ragged_group);
    }
  }
  std::erase_if(step.indices, [&](const Index& index) { return used.count(index.name) == 0; });
}

}  // namespace kw::generator
