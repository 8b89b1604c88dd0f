// Programs made by hand for the evaluator's tests, so that they need no parser: small builders and the handbook's example.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "generator/spec/evaluator.h"
#include "generator/spec/program.h"

namespace kw::generator::build {

inline ExprRef node_of(ExprNode node) { return std::make_shared<const ExprNode>(std::move(node)); }
inline ExprRef dim(const std::string& name) {
  ExprNode node;
  node.kind = ExprNode::Kind::kDim;
  node.dtype = DType::kI64;
  node.name = name;
  return node_of(node);
}
inline ExprRef number(double value, DType dtype = DType::kF32) { return make_number(value, dtype); }
inline ExprRef read(const std::string& name, const std::vector<ExprRef>& subscripts, DType dtype = DType::kF32) {
  ExprNode node;
  node.kind = ExprNode::Kind::kRead;
  node.dtype = dtype;
  node.name = name;
  node.operands = subscripts;
  return node_of(node);
}
inline std::vector<ExprRef> indices(const std::vector<std::string>& names) {
  std::vector<ExprRef> result;
  for (const std::string& name : names) result.push_back(make_index(name));
  return result;
}
inline ExprRef read_at(const std::string& name, const std::vector<std::string>& names, DType dtype = DType::kF32) {
  return read(name, indices(names), dtype);
}
inline ExprRef call(Function function, std::vector<ExprRef> operands, DType dtype = DType::kF32) {
  return make_call(function, std::move(operands), dtype);
}
inline ExprRef reduce(ReduceOp op, const std::vector<std::string>& over, std::vector<ExprRef> operands, DType dtype = DType::kF32) {
  ExprNode node;
  node.kind = ExprNode::Kind::kReduce;
  node.dtype = dtype;
  node.reduce_op = op;
  node.indices = over;
  node.operands = std::move(operands);
  return node_of(node);
}
inline Tensor tensor(const std::string& name, DType dtype, const std::vector<std::string>& shape, TensorRole role = TensorRole::kIn) {
  Tensor result;
  result.name = name;
  result.dtype = dtype;
  result.role = role;
  for (const std::string& extent : shape) result.shape.push_back(IntExpr::variable(extent));
  result.strides = row_major_strides(result.shape);
  return result;
}
inline Index index(const std::string& name, const std::string& extent) {
  Index result;
  result.name = name;
  result.extent = IntExpr::variable(extent);
  return result;
}
inline Statement statement(const std::string& target, bool is_tensor, const std::vector<std::string>& names, ExprRef value) {
  return {target, is_tensor, indices(names), names, std::move(value), {}};
}
inline Problem problem(const std::map<std::string, std::int64_t>& dims) {
  Problem result;
  result.dims = dims;
  return result;
}

/// acc[m,n] = sum[k](A[m,k] * B[n,k]);  out[m,n] = relu(acc[m,n] + bias[n])
inline Program matmul_bias_relu(DType dtype = DType::kF16, DType accumulate = DType::kF32) {
  Program program;
  program.name = "matmul_bias_relu";
  program.accumulate = accumulate;
  program.tensors = {tensor("A", dtype, {"M", "K"}), tensor("B", dtype, {"N", "K"}), tensor("bias", dtype, {"N"}),
                     tensor("out", dtype, {"M", "N"}, TensorRole::kOut)};
  program.indices = {index("m", "M"), index("n", "N"), index("k", "K")};
  const ExprRef product = call(Function::kMul, {read_at("A", {"m", "k"}, accumulate), read_at("B", {"n", "k"}, accumulate)}, accumulate);
  const ExprRef sum = reduce(ReduceOp::kSum, {"k"}, {product}, accumulate);
  const ExprRef biased = call(Function::kAdd, {read_at("acc", {"m", "n"}, accumulate), read_at("bias", {"n"}, accumulate)}, accumulate);
  program.statements = {statement("acc", false, {"m", "n"}, sum),
                        statement("out", true, {"m", "n"}, call(Function::kRelu, {biased}, accumulate))};
  return program;
}

/// Inputs from functions of the coordinates.
class FunctionSource : public InputSource {
 public:
  using Element = std::function<double(std::span<const std::int64_t>)>;
  explicit FunctionSource(std::map<std::string, Element> elements, std::map<std::string, double> scalars = {})
      : elements_(std::move(elements)), scalars_(std::move(scalars)) {}
  double element(const Tensor& tensor, std::span<const std::int64_t> coordinates) const override {
    return elements_.at(tensor.name)(coordinates);
  }
  double scalar(const Scalar& scalar) const override { return scalars_.at(scalar.name); }

 private:
  std::map<std::string, Element> elements_;
  std::map<std::string, double> scalars_;
};

}  // namespace kw::generator::build
