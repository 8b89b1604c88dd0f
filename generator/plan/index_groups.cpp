// See index_groups.h. Orders are tried in lexical order of positions, so that the result is a function of the program alone.
// SPDX-License-Identifier: Apache-2.0
#include "generator/plan/index_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace kw::generator {
namespace {

/// 5 indices have 120 orders; a contraction with more indices of one role is not a matmul anyone writes.
constexpr std::size_t kMaxFlattened = 5;

IntExpr stride_of(const Access& access, const std::string& index) {
  const auto found = access.strides.find(index);
  return found == access.strides.end() ? IntExpr(0) : found->second;
}

/// Whether the members follow each other in memory: stride of one = stride of the next times the next one's extent.
bool is_contiguous(const IndexGroup& group, const Access& access) {
  for (std::size_t i = 0; i + 1 < group.indices.size(); ++i) {
    const IntExpr inner = stride_of(access, group.indices[i + 1]) * group.extents[i + 1];
    if (!are_equal(stride_of(access, group.indices[i]), inner)) return false;
  }
  return true;
}

IndexGroup ordered(const IndexGroup& group, const std::vector<std::size_t>& order) {
  IndexGroup result;
  for (const std::size_t position : order) {
    result.indices.push_back(group.indices[position]);
    result.extents.push_back(group.extents[position]);
  }
  return result;
}

}  // namespace

bool make_access(const std::string& tensor_name, const std::vector<ExprRef>& subscripts, const Program& program, Access& access,
                 std::string& why_not) {
  const Tensor* tensor = program.find_tensor(tensor_name);
  if (tensor == nullptr) {
    why_not = fmt::format("{} is not a tensor", tensor_name);
    return false;
  }
  const LinearForm offset = element_offset(subscripts, tensor->strides);
  access.tensor = tensor_name;
  access.offset = offset.constant;
  for (const auto& [text, term] : offset.terms) {
    if (term.atom->kind != ExprNode::Kind::kIndex) {
      why_not = fmt::format("subscript {} of {} is not affine in the indices: gathered operands are not made yet", text, tensor_name);
      return false;
    }
    access.strides[term.atom->name] = term.coefficient;
  }
  return true;
}

IntExpr IndexGroup::extent() const {
  IntExpr product(1);
  for (const IntExpr& extent : extents) product = product * extent;
  return normalise(product);
}

std::string IndexGroup::name() const { return fmt::format("{}", fmt::join(indices, ",")); }

IntExpr IndexGroup::stride(const Access& access) const { return indices.empty() ? IntExpr(0) : stride_of(access, indices.back()); }

std::map<std::string, ExprRef> IndexGroup::member_values(const std::string& pattern_index) const {
  std::map<std::string, ExprRef> values;
  ExprRef rest = make_index(pattern_index);
  for (std::size_t i = indices.size(); i-- > 1;) {
    const ExprRef extent = from_int_expr(extents[i]);
    values[indices[i]] = make_call(Function::kMod, {rest, extent}, DType::kI64);
    rest = make_call(Function::kFloorDiv, {rest, extent}, DType::kI64);
  }
  if (!indices.empty()) values[indices.front()] = rest;
  return values;
}

bool flatten(IndexGroup& group, const std::vector<const Access*>& accesses, std::string& why_not) {
  if (group.indices.size() < 2) return true;
  if (group.indices.size() > kMaxFlattened) {
    why_not = fmt::format("{} indices of one role ({}): at most {} are made", group.indices.size(), group.name(), kMaxFlattened);
    return false;
  }
  std::vector<std::size_t> order(group.indices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  do {
    const IndexGroup trial = ordered(group, order);
    if (std::all_of(accesses.begin(), accesses.end(), [&](const Access* access) { return is_contiguous(trial, *access); })) {
      group = trial;
      return true;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  const auto obstacle =
      std::find_if(accesses.begin(), accesses.end(), [&](const Access* access) { return !is_contiguous(group, *access); });
  why_not = fmt::format("indices {} do not flatten into one with a common stride (in {})", group.name(), (*obstacle)->tensor);
  return false;
}

}  // namespace kw::generator
