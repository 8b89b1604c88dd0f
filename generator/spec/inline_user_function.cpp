// Inlines the user functions of a body: checks the arguments' types, puts them in place of the parameters, and measures trees.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "generator/spec/spec_reader.h"
#include "generator/spec/typing.h"

namespace kw::generator {

namespace {

constexpr std::int64_t kSizeCap = std::int64_t{1} << 30;  // products of two counts stay in 64 bits

class TreeMeasure {
 public:
  explicit TreeMeasure(const CheckContext& context) : intermediates_(context.intermediates), hidden_sizes_(context.hidden_sizes) {}

  TreeSize measure(const ExprRef& expr) {
    const auto known = known_.find(expr.get());
    if (known != known_.end()) return known->second;
    TreeSize size{1, 1, expr->kind == ExprNode::Kind::kIndex ? 1 : 0};
    TreeSize widest;  // operand
    for (const ExprRef& operand : expr->operands) {
      const TreeSize part = measure(operand);
      size = {capped(size.num_nodes + part.num_nodes), std::max(size.depth, part.depth + 1),
              capped(size.num_index_leaves + part.num_index_leaves)};
      widest = {std::max(widest.num_nodes, part.num_nodes), widest.depth, std::max(widest.num_index_leaves, part.num_index_leaves)};
    }
    const auto intermediate = intermediates_.find(expr->name);
    if (expr->kind == ExprNode::Kind::kRead && intermediate != intermediates_.end()) {
      // Written out, each index of the intermediate becomes the text of a subscript.
      const TreeSize& body = intermediate->second.size;
      size.num_nodes = capped(body.num_nodes + body.num_index_leaves * widest.num_nodes);
      size.num_index_leaves = capped(body.num_index_leaves * std::max<std::int64_t>(1, widest.num_index_leaves));
      size.depth = capped(body.depth + std::max<std::int64_t>(1, size.depth - 1));
    }
    if (expr->kind == ExprNode::Kind::kScalar) add_hidden(expr->name, size);
    for (const std::string& index : expr->indices) add_hidden(index, size);
    known_.emplace(expr.get(), size);
    return size;
  }

 private:
  void add_hidden(const std::string& name, TreeSize& size) const {
    const auto hidden = hidden_sizes_.find(name);
    if (hidden == hidden_sizes_.end()) return;
    size.num_nodes = capped(size.num_nodes + hidden->second.num_nodes);
    size.depth = capped(size.depth + hidden->second.depth);
  }
  static std::int64_t capped(std::int64_t count) { return std::min(kSizeCap, count); }

  const std::map<std::string, Defined>& intermediates_;
  const std::map<std::string, TreeSize>& hidden_sizes_;
  std::unordered_map<const ExprNode*, TreeSize> known_;
};

/// The body with arguments in place of parameters; shared parts stay shared.
class Inliner {
 public:
  Inliner(const std::vector<ExprRef>& arguments, DType real_type, const SourceRange& where)
      : arguments_(arguments), real_type_(real_type), where_(where) {}

  ExprRef substitute(const ExprRef& expr) {
    const auto known = known_.find(expr.get());
    if (known != known_.end()) return known->second;
    ExprRef result;
    if (expr->kind == ExprNode::Kind::kParameter) {
      result =
          static_cast<std::size_t>(expr->parameter) < arguments_.size() ? arguments_[static_cast<std::size_t>(expr->parameter)] : nullptr;
      KW_CHECK(result != nullptr, "a user function names a parameter that it has not");
    } else {
      ExprNode node = *expr;
      for (ExprRef& operand : node.operands) operand = substitute(operand);
      if (node.kind != ExprNode::Kind::kCast) {
        if (is_float(node.dtype)) node.dtype = real_type_;
        if (is_integer(node.dtype)) node.dtype = DType::kI64;
      }
      node.where = where_;
      result = std::make_shared<const ExprNode>(std::move(node));
    }
    known_.emplace(expr.get(), result);
    return result;
  }

 private:
  const std::vector<ExprRef>& arguments_;
  DType real_type_;
  const SourceRange& where_;
  std::unordered_map<const ExprNode*, ExprRef> known_;
};

std::vector<std::string> callable_names(const UserFunctions& functions) {
  std::vector<std::string> names = {"cast"};
  for (const Builtin& builtin : builtins()) names.emplace_back(builtin.name);
  for (const auto& [name, function] : functions) names.push_back(name);
  return names;
}

}  // namespace

TreeSize tree_size(const ExprRef& expr, const CheckContext& context) { return TreeMeasure(context).measure(expr); }

ExprRef ExpressionTyper::type_user_call(const SyntaxNode& node) {
  std::vector<ExprRef> arguments;
  bool is_right = true;
  for (const SyntaxRef& operand : node.operands) {
    arguments.push_back(type(operand));
    is_right = is_right && arguments.back() != nullptr;
  }
  const auto found = context_.functions.find(node.name);
  if (found == context_.functions.end()) {
    if (context_.is_partial && !context_.spec.functions_file.empty()) return nullptr;  // the file of functions was not read
    const std::string file = context_.spec.functions_file.empty() ? "; the spec names no file of functions"
                                                                  : fmt::format(" and not in {}", context_.spec.functions_file);
    return error(node.where, fmt::format("unknown function '{}': not built in{}{}", node.name, file,
                                         did_you_mean(node.name, callable_names(context_.functions))));
  }
  const UserFunction& function = found->second;
  if (!function.body) return nullptr;  // refused where it was read
  if (!node.keywords.empty()) return error(node.where, fmt::format("{} takes no argument named '{}'", node.name, node.keywords[0].first));
  if (arguments.size() != function.parameter_types.size()) {
    return error(node.where, fmt::format("{} takes {} arguments ({}), not {}", node.name, function.parameter_types.size(),
                                         context_.spec.functions_file, arguments.size()));
  }
  if (!is_right) return nullptr;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const DType wanted = function.parameter_types[i], given = arguments[i]->dtype;
    const bool is_legal = is_float(wanted)         ? given != DType::kBool && is_float(context_.real_type())
                          : wanted == DType::kBool ? given == DType::kBool
                                                   : is_integer(given);
    if (!is_legal) {
      return error(node.operands[i]->where, fmt::format("argument {} of {} is {}, of type {}: the function takes {}", i + 1, node.name,
                                                        to_text(arguments[i]), to_text(given), to_text(wanted)));
    }
    if (!is_float(wanted)) continue;
    arguments[i] = convert_literal(arguments[i], context_.real_type());
    if (unit_roundoff(wanted) > unit_roundoff(context_.real_type())) {  // an f32 parameter rounds an f64 argument
      ExprNode rounded;
      rounded.kind = ExprNode::Kind::kCast;
      rounded.dtype = wanted;
      rounded.operands = {arguments[i]};
      arguments[i] = located(std::move(rounded), node.where);
    }
  }
  ExprRef inlined = Inliner(arguments, context_.real_type(), node.where).substitute(function.body);
  const TreeSize size = tree_size(inlined, context_);  // the depth bounds the recursion of the next call around this one
  if (size.num_nodes <= kMaxExpandedNodes && size.depth <= kMaxExpandedDepth) return inlined;
  return error(node.where,
               fmt::format("{} has more than {} parts or {} levels when its arguments are written out", node.name, kMaxExpandedNodes,
                           kMaxExpandedDepth),
               Code::kNotSupported);
}

}  // namespace kw::generator
