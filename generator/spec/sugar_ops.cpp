// The common ops as plain notation: matmul, linear, attention (GQA, causal, sinks), rmsnorm, layernorm, swiglu.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "generator/spec/body_parser.h"
#include "generator/spec/sugar.h"

namespace kw::generator {

namespace {

std::vector<SyntaxRef> names(const std::vector<std::string>& indices, const SourceRange& where) {
  std::vector<SyntaxRef> nodes;
  for (const std::string& index : indices) nodes.push_back(syntax_name(index, where));
  return nodes;
}

SyntaxRef read(const std::string& tensor, const std::vector<std::string>& indices, const SourceRange& where) {
  return syntax_read(tensor, names(indices, where), where);
}

SyntaxRef real(double value, const SourceRange& where) {
  SyntaxNode node;
  node.kind = SyntaxNode::Kind::kReal;
  node.real = value;
  node.where = where;
  return std::make_shared<const SyntaxNode>(std::move(node));
}

bool is_same(const std::optional<IntExpr>& a, const std::optional<IntExpr>& b) { return a && b && is_same_extent(*a, *b); }

/// An extent as syntax; its text is notation.
SyntaxRef extent_syntax(const IntExpr& extent, const SourceRange& where) {
  Diagnostics ignored;
  return parse_expression(extent.to_text(), {where.file, where.line, where.column}, ignored);
}

}  // namespace

std::optional<SugarExpander::Value> SugarExpander::expand_call(const SyntaxNode& call, const std::optional<Value>& piped) {
  std::vector<Operand> operands;
  if (piped) {
    const bool is_read = piped->expression->kind == SyntaxNode::Kind::kRead && shapes_.contains(piped->expression->name) &&
                         piped->expression->operands.size() == piped->indices.size();
    if (is_read)
      operands.push_back({piped->expression->name, piped->shape});
    else
      operands.push_back(materialise(*piped, "t", call.where));
  }
  for (const SyntaxRef& argument : call.operands) {
    std::optional<Operand> value = operand(argument);
    if (!value) return std::nullopt;
    operands.push_back(std::move(*value));
  }
  if (context_.syntax.blocks.contains(call.name)) return block(call, operands);
  if (call.name == "matmul") return matmul(call, operands);
  if (call.name == "linear") return linear(call, operands);
  if (call.name == "attention") return attention(call, operands);
  if (call.name == "swiglu") return swiglu(call, operands);
  return norm(call, operands);
}

/// matmul(A, B): the last axis of A with the first or the last of B's matrix, whichever has the same extent; leading axes are batches.
std::optional<SugarExpander::Value> SugarExpander::matmul(const SyntaxNode& call, const std::vector<Operand>& operands) {
  if (!check_keywords(call, {"transpose_a", "transpose_b"})) return std::nullopt;
  if (operands.size() != 2) return error(call.where, fmt::format("matmul takes two tensors, not {}", operands.size()));
  const Operand &a = operands[0], &b = operands[1];
  const std::size_t rank_a = a.shape.size(), rank_b = b.shape.size();
  if (rank_a < 2 || rank_b < 2 || (rank_b != 2 && rank_b != rank_a)) {
    return error(call.where,
                 fmt::format("matmul({}, {}): the ranks {} and {} do not fit: both at least 2, and equal unless the second is a matrix",
                             a.name, b.name, rank_a, rank_b));
  }
  const std::optional<bool> is_a_transposed = flag(call, "transpose_a", false);
  if (!is_a_transposed) return std::nullopt;
  const std::optional<IntExpr>& contracted = a.shape[*is_a_transposed ? rank_a - 2 : rank_a - 1];
  const bool fits_first = is_same(contracted, b.shape[rank_b - 2]), fits_last = is_same(contracted, b.shape[rank_b - 1]);
  const std::optional<bool> is_b_transposed = flag(call, "transpose_b", !fits_first && fits_last);
  if (!is_b_transposed) return std::nullopt;
  if (!keyword(call, "transpose_b") && !fits_first && !fits_last) {
    return error(call.where, fmt::format("matmul({}, {}): the contracted axis of {} has an extent that neither matrix axis of {} has",
                                         a.name, b.name, a.name, b.name));
  }
  std::vector<std::string> batches = fresh_axes(rank_a - 2);
  const std::string m = fresh("m"), n = fresh("n"), k = fresh("k");
  std::vector<std::string> a_indices = batches, b_indices = rank_b == 2 ? std::vector<std::string>{} : batches;
  a_indices.insert(a_indices.end(), {*is_a_transposed ? k : m, *is_a_transposed ? m : k});
  b_indices.insert(b_indices.end(), {*is_b_transposed ? n : k, *is_b_transposed ? k : n});
  Value value;
  value.indices = batches;
  value.indices.insert(value.indices.end(), {m, n});
  value.shape.assign(a.shape.begin(), a.shape.end() - 2);
  value.shape.push_back(a.shape[*is_a_transposed ? rank_a - 1 : rank_a - 2]);
  value.shape.push_back(b.shape[*is_b_transposed ? rank_b - 2 : rank_b - 1]);
  value.expression = syntax_call(
      "sum", {k}, {syntax_operator(Function::kMul, {read(a.name, a_indices, call.where), read(b.name, b_indices, call.where)}, call.where)},
      call.where);
  return value;
}

/// linear(x, w) and linear(x, w, bias): w is [out, in].
std::optional<SugarExpander::Value> SugarExpander::linear(const SyntaxNode& call, const std::vector<Operand>& operands) {
  if (!check_keywords(call, {})) return std::nullopt;
  if (operands.size() != 2 && operands.size() != 3)
    return error(call.where, fmt::format("linear takes x, w and perhaps a bias, not {} tensors", operands.size()));
  const Operand &x = operands[0], &w = operands[1];
  if (x.shape.empty() || w.shape.size() != 2)
    return error(call.where, fmt::format("linear({}, {}): x has at least one axis, w two ([out, in])", x.name, w.name));
  std::vector<std::string> rows = fresh_axes(x.shape.size() - 1);
  const std::string n = fresh("n"), k = fresh("k");
  std::vector<std::string> x_indices = rows;
  x_indices.push_back(k);
  Value value{rows, Shape(x.shape.begin(), x.shape.end() - 1), nullptr};
  value.indices.push_back(n);
  value.shape.push_back(w.shape[0]);
  value.expression = syntax_call(
      "sum", {k}, {syntax_operator(Function::kMul, {read(x.name, x_indices, call.where), read(w.name, {n, k}, call.where)}, call.where)},
      call.where);
  if (operands.size() == 3) {
    if (operands[2].shape.size() != 1)
      return error(call.where, fmt::format("linear: the bias {} has {} axes, not one", operands[2].name, operands[2].shape.size()));
    value.expression = syntax_operator(Function::kAdd, {value.expression, read(operands[2].name, {n}, call.where)}, call.where);
  }
  return value;
}

/// attention(Q, K, V): Q is [batch, query, head, dim]; K and V [batch, key, kv head, dim]; heads share kv heads in groups (GQA).
std::optional<SugarExpander::Value> SugarExpander::attention(const SyntaxNode& call, const std::vector<Operand>& operands) {
  if (!check_keywords(call, {"causal", "scale", "sink"})) return std::nullopt;
  if (operands.size() != 3) return error(call.where, fmt::format("attention takes Q, K and V, not {} tensors", operands.size()));
  for (const Operand& tensor : operands) {
    if (tensor.shape.size() != 4)
      return error(call.where,
                   fmt::format("attention: {} has {} axes, not four [batch, sequence, head, dim]", tensor.name, tensor.shape.size()));
  }
  const Operand &q = operands[0], &k = operands[1], &v = operands[2];
  for (const std::optional<IntExpr>& extent : {q.shape[1], q.shape[2], q.shape[3], k.shape[1], k.shape[2]}) {
    if (!extent) return error(call.where, "attention: an extent of Q or K does not follow from the body so far: declare the tensor");
  }
  const std::optional<bool> is_causal = flag(call, "causal", false);
  if (!is_causal) return std::nullopt;
  const SourceRange& where = call.where;
  const std::string b = fresh("b"), h = fresh("h"), i = fresh("i"), j = fresh("j"), d = fresh("d"), e = fresh("e");
  SyntaxRef kv_head = syntax_name(h, where);
  if (!is_same(q.shape[2], k.shape[2])) {
    SyntaxRef group = syntax_operator(Function::kFloorDiv, {extent_syntax(*q.shape[2], where), extent_syntax(*k.shape[2], where)}, where);
    kv_head = syntax_operator(Function::kFloorDiv, {kv_head, std::move(group)}, where);
  }
  const auto kv_read = [&](const std::string& tensor, const std::string& last) {
    return syntax_read(tensor, {syntax_name(b, where), syntax_name(j, where), kv_head, syntax_name(last, where)}, where);
  };
  SyntaxRef scale = keyword(call, "scale");
  if (!scale)
    scale = syntax_operator(Function::kDiv, {syntax_integer(1, where), syntax_call("sqrt", {}, {extent_syntax(*q.shape[3], where)}, where)},
                            where);
  SyntaxRef product =
      syntax_call("sum", {d}, {syntax_operator(Function::kMul, {read(q.name, {b, i, h, d}, where), kv_read(k.name, d)}, where)}, where);
  Value scores{{b, h, i, j}, {q.shape[0], q.shape[2], q.shape[1], k.shape[1]}, syntax_operator(Function::kMul, {scale, product}, where)};
  const Operand s = materialise(scores, "s", where);
  SyntaxRef score = read(s.name, scores.indices, where);
  if (*is_causal) {
    // The last query sees every key.
    SyntaxRef limit = syntax_name(i, where);
    if (!is_same(q.shape[1], k.shape[1])) {
      SyntaxRef shift = syntax_operator(Function::kSub, {extent_syntax(*k.shape[1], where), extent_syntax(*q.shape[1], where)}, where);
      limit = syntax_operator(Function::kAdd, {limit, std::move(shift)}, where);
    }
    SyntaxRef masked = syntax_operator(Function::kNeg, {syntax_name("inf", where)}, where);
    score = syntax_call(
        "where", {},
        {syntax_operator(Function::kLe, {syntax_name(j, where), std::move(limit)}, where), std::move(score), std::move(masked)}, where);
  }
  SyntaxNode softmax = *syntax_call("softmax", {j}, {std::move(score)}, where);
  if (const SyntaxRef sink = keyword(call, "sink")) {
    const auto shape = shapes_.find(sink->name);
    const bool is_per_head = sink->kind == SyntaxNode::Kind::kName && shape != shapes_.end() && shape->second.size() == 1;
    softmax.keywords.emplace_back("sink", is_per_head ? read(sink->name, {h}, where) : sink);
  }
  Value weights{scores.indices, scores.shape, std::make_shared<const SyntaxNode>(std::move(softmax))};
  const Operand p = materialise(weights, "p", where);
  Value value{{b, i, h, e}, {q.shape[0], q.shape[1], q.shape[2], v.shape[3]}, nullptr};
  value.expression =
      syntax_call("sum", {j}, {syntax_operator(Function::kMul, {read(p.name, weights.indices, where), kv_read(v.name, e)}, where)}, where);
  return value;
}

/// rmsnorm(x, w) and layernorm(x, w, bias), over the last axis.
std::optional<SugarExpander::Value> SugarExpander::norm(const SyntaxNode& call, const std::vector<Operand>& operands) {
  if (!check_keywords(call, {"eps"})) return std::nullopt;
  const bool is_rms = call.name == "rmsnorm";
  const std::size_t wanted = is_rms ? 2 : 3;
  if (operands.size() != wanted)
    return error(call.where,
                 fmt::format("{} takes {}, not {} tensors", call.name, is_rms ? "x and w" : "x, w and a bias", operands.size()));
  const Operand& x = operands[0];
  if (x.shape.empty()) return error(call.where, fmt::format("{}: {} has no axis to normalise", call.name, x.name));
  for (std::size_t i = 1; i < operands.size(); ++i) {
    if (operands[i].shape.size() != 1)
      return error(call.where, fmt::format("{}: {} has {} axes, not one", call.name, operands[i].name, operands[i].shape.size()));
  }
  const SourceRange& where = call.where;
  SyntaxRef eps = keyword(call, "eps");
  if (!eps) eps = real(is_rms ? 1e-6 : 1e-5, where);
  Value value{fresh_axes(x.shape.size() - 1), x.shape, nullptr};
  const std::string n = fresh("n"), k = fresh("k");
  std::vector<std::string> rows = value.indices, reduced = value.indices;
  value.indices.push_back(n);
  reduced.push_back(k);
  SyntaxRef element = read(x.name, value.indices, where), summed = read(x.name, reduced, where);
  if (!is_rms) {
    Value mean{rows, Shape(x.shape.begin(), x.shape.end() - 1), syntax_call("mean", {k}, {summed}, where)};
    const Operand mean_name = materialise(mean, "mean_x", where);
    element = syntax_operator(Function::kSub, {element, read(mean_name.name, rows, where)}, where);
    summed = syntax_operator(Function::kSub, {summed, read(mean_name.name, rows, where)}, where);
  }
  const std::string k_again = is_rms ? k : fresh("k");
  if (!is_rms) {
    std::vector<std::string> again = rows;
    again.push_back(k_again);
    summed = syntax_operator(Function::kSub, {read(x.name, again, where), summed->operands[1]}, where);
  }
  SyntaxRef square = syntax_operator(Function::kMul, {summed, summed}, where);
  SyntaxRef spread = syntax_operator(Function::kAdd, {syntax_call("mean", {k_again}, {std::move(square)}, where), std::move(eps)}, where);
  SyntaxRef scaled = syntax_operator(Function::kMul, {std::move(element), syntax_call("rsqrt", {}, {std::move(spread)}, where)}, where);
  value.expression = syntax_operator(Function::kMul, {std::move(scaled), read(operands[1].name, {n}, where)}, where);
  if (!is_rms) value.expression = syntax_operator(Function::kAdd, {value.expression, read(operands[2].name, {n}, where)}, where);
  return value;
}

/// swiglu(gate, up) = silu(gate) * up.
std::optional<SugarExpander::Value> SugarExpander::swiglu(const SyntaxNode& call, const std::vector<Operand>& operands) {
  if (!check_keywords(call, {})) return std::nullopt;
  if (operands.size() != 2 || operands[0].shape.size() != operands[1].shape.size())
    return error(call.where, "swiglu takes two tensors of one shape: swiglu(gate, up) = silu(gate) * up");
  Value value{fresh_axes(operands[0].shape.size()), operands[0].shape, nullptr};
  SyntaxRef gate = syntax_call("silu", {}, {read(operands[0].name, value.indices, call.where)}, call.where);
  value.expression = syntax_operator(Function::kMul, {std::move(gate), read(operands[1].name, value.indices, call.where)}, call.where);
  return value;
}

}  // namespace kw::generator
