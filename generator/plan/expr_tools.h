// Small operations on expressions that the planner and the matcher share: substitution of indices without capture,
// reductions inside a value, factors of a product.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "generator/spec/program.h"

namespace kw::generator {

/// Replaces index values; an index that a reduction binds is left alone, and is renamed (k -> k') where it would capture one.
ExprRef substitute_indices(const ExprRef& expr, const std::map<std::string, ExprRef>& replacements);

/// The index of the program behind `name`; a renamed one (k') is found under its old name.
const Index* find_program_index(const Program& program, const std::string& name);

bool contains_reduction(const ExprRef& expr);
/// The outermost reductions inside `expr`, in order of occurrence, each node once.
void collect_reductions(const ExprRef& expr, std::vector<ExprRef>& reductions);
/// Rebuilds `expr` with its outermost reductions replaced.
ExprRef replace_reductions(const ExprRef& expr, const std::function<ExprRef(const ExprRef&)>& replace);

/// Whether the value of one of these indices is used anywhere in `expr`.
bool depends_on(const ExprRef& expr, const std::set<std::string>& indices);

/// Whether every read is inside its tensor at all values of the indices: each subscript is an index of the axis' extent.
bool stays_inside(const ExprRef& expr, const Program& program);

/// Leaves the indices that statements use, and those that bounds of such indices use: the bound of another may be a tensor that a step
/// lacks.
void drop_unused_indices(Program& step);

/// A read of tensor or intermediate `name`, of the type and place of `like`.
ExprRef make_read(const std::string& name, std::vector<ExprRef> subscripts, const ExprRef& like);

/// One factor of a product; `is_divisor`: the product divides by it.
struct Factor {
  ExprRef expr;
  bool is_divisor = false;
};
/// a * b / -c gives a, b, 1/c and -1.
std::vector<Factor> product_factors(const ExprRef& expr);

}  // namespace kw::generator
