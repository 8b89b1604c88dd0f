// Types reductions: scopes of their indices, their types, and what each takes besides its body.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "generator/spec/spec_reader.h"
#include "generator/spec/typing.h"

namespace kw::generator {

namespace {

bool keeps_index(ReduceOp op) { return op == ReduceOp::kSoftmax || op == ReduceOp::kCumSum; }
bool takes_rank(ReduceOp op) { return op == ReduceOp::kTopK || op == ReduceOp::kTopKIndex; }
bool takes_one_index(ReduceOp op) { return takes_rank(op) || op == ReduceOp::kCumSum || op == ReduceOp::kArgmax; }

}  // namespace

/// Every index that the `below` of `index` reads must have a value where `index` has one.
bool ExpressionTyper::check_below(const std::string& index, const SourceRange& where) {
  const auto needs = context_.below_needs.find(index);
  if (needs == context_.below_needs.end()) return true;
  for (const std::string& needed : needs->second) {
    if (is_in_scope(needed) || is_group_in_scope(needed)) continue;
    error(where, fmt::format("the bound of index {} reads index {}, which has no value here", index, needed));
    return false;
  }
  return true;
}

bool ExpressionTyper::enter_indices(const SyntaxNode& node, ReduceOp op) {
  std::set<std::string> seen;
  for (const std::string& index : node.brackets) {
    if (!seen.insert(index).second) {
      error(node.where, fmt::format("index {} stands twice in the brackets of {}", index, node.name));
      return false;
    }
    const auto kind = context_.kinds.find(index);
    if (kind != context_.kinds.end()) {
      error(node.where, fmt::format("{} is {}: an index needs a name of its own", index, kind->second));
      return false;
    }
    if (keeps_index(op) && !is_in_scope(index)) {
      error(node.where, fmt::format("{} keeps its index: {} must be on the left side or reduced around it", node.name, index));
      return false;
    }
    if (!keeps_index(op) && is_in_scope(index)) {
      error(node.where, fmt::format("index {} already has a value here: {} needs an index that is not on the left side", index, node.name));
      return false;
    }
    context_.extents.mention(index, node.where);
  }
  if (!keeps_index(op)) scope_.insert(scope_.end(), node.brackets.begin(), node.brackets.end());
  for (const std::string& index : node.brackets) {
    if (!check_below(index, node.where)) return false;
  }
  return true;
}

ExprRef ExpressionTyper::type_reduction(const SyntaxNode& node) {
  const std::optional<ReduceOp> op = find_reduction(node.name);
  if (!op) return error(node.where, fmt::format("unknown reduction '{}'{}", node.name, did_you_mean(node.name, reduction_names())));
  if (takes_one_index(*op) && node.brackets.size() != 1)
    return error(node.where, fmt::format("{} takes one index, not {}", node.name, node.brackets.size()));
  const std::size_t num_arguments = takes_rank(*op) ? 2 : 1;
  if (node.operands.size() != num_arguments) {
    return error(node.where, takes_rank(*op) ? fmt::format("{} takes a value and a rank: {}[j](x[m,j], r) is the r-th largest, from 0",
                                                           node.name, node.name)
                                             : fmt::format("{} takes one value, not {}", node.name, node.operands.size()));
  }
  ExprRef extra;
  for (const auto& [keyword, value] : node.keywords) {
    if (*op != ReduceOp::kSoftmax || keyword != "sink" || extra)
      return error(value->where, fmt::format("{} takes no argument named '{}'", node.name, keyword));
    extra = type(value);
    if (extra) extra = real_operand(extra, value->where, "sink");
    if (!extra) return nullptr;
  }
  if (takes_rank(*op)) {
    extra = type_integer(node.operands[1], "the rank of topk");
    if (!extra) return nullptr;
  }
  const std::vector<std::string> outer = scope_;
  ExprRef body = enter_indices(node, *op) ? type(node.operands[0]) : nullptr;
  scope_ = outer;
  return body ? finish_reduction(node, *op, std::move(body), std::move(extra)) : nullptr;
}

ExprRef ExpressionTyper::finish_reduction(const SyntaxNode& node, ReduceOp op, ExprRef body, ExprRef extra) {
  ExprNode reduce;
  reduce.kind = ExprNode::Kind::kReduce;
  reduce.reduce_op = op;
  reduce.indices = node.brackets;
  const bool is_bool_reduction = op == ReduceOp::kAny || op == ReduceOp::kAll || op == ReduceOp::kCount;
  if (is_bool_reduction != (body->dtype == DType::kBool)) {
    return error(node.where, is_bool_reduction
                                 ? fmt::format("{} takes a bool: {} has type {}", node.name, to_text(body), to_text(body->dtype))
                                 : fmt::format("{} takes a number: {} is a bool; count[...](...) counts", node.name, to_text(body)));
  }
  switch (op) {
    case ReduceOp::kAny:
    case ReduceOp::kAll:
      reduce.dtype = DType::kBool;
      break;
    case ReduceOp::kCount:
    case ReduceOp::kArgmax:
    case ReduceOp::kTopKIndex:
      reduce.dtype = DType::kI64;
      break;
    case ReduceOp::kMax:
    case ReduceOp::kMin:
    case ReduceOp::kTopK:
      reduce.dtype = is_float(body->dtype) ? context_.real_type() : body->dtype;
      break;
    case ReduceOp::kMean:
    case ReduceOp::kLogSumExp:
    case ReduceOp::kSoftmax:
      body = real_operand(body, node.where, node.name.c_str());
      if (!body) return nullptr;
      reduce.dtype = context_.real_type();
      break;
    case ReduceOp::kSum:
    case ReduceOp::kProd:
    case ReduceOp::kCumSum:
      body = convert_literal(body, context_.real_type());
      reduce.dtype = context_.real_type();
      break;
  }
  reduce.operands = {std::move(body)};
  if (extra) reduce.operands.push_back(std::move(extra));
  return located(std::move(reduce), node.where);
}

}  // namespace kw::generator
