// Programs for the tests of plan, lower and emit, built by hand: no parser is needed to test what comes after it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "generator/spec/program.h"

namespace kw::generator::testing {

inline ExprRef read(const std::string& tensor, std::vector<ExprRef> subscripts, DType dtype = DType::kF32) {
  auto node = std::make_shared<ExprNode>();
  node->kind = ExprNode::Kind::kRead;
  node->dtype = dtype;
  node->name = tensor;
  node->operands = std::move(subscripts);
  return node;
}

inline std::vector<ExprRef> at(const std::vector<std::string>& indices) {
  std::vector<ExprRef> subscripts;
  for (const std::string& index : indices) subscripts.push_back(make_index(index));
  return subscripts;
}

inline ExprRef read(const std::string& tensor, const std::vector<std::string>& indices, DType dtype = DType::kF32) {
  return read(tensor, at(indices), dtype);
}

inline ExprRef named(ExprNode::Kind kind, const std::string& name, DType dtype) {
  auto node = std::make_shared<ExprNode>();
  node->kind = kind;
  node->dtype = dtype;
  node->name = name;
  return node;
}
inline ExprRef dim(const std::string& name) { return named(ExprNode::Kind::kDim, name, DType::kI64); }
inline ExprRef scalar(const std::string& name) { return named(ExprNode::Kind::kScalar, name, DType::kF32); }

inline ExprRef reduce(ReduceOp op, std::vector<std::string> indices, const ExprRef& body, int line = 1) {
  auto node = std::make_shared<ExprNode>();
  node->kind = ExprNode::Kind::kReduce;
  node->dtype = body->dtype;
  node->reduce_op = op;
  node->indices = std::move(indices);
  node->operands = {body};
  node->where = {"test.op.toml", line, 1};
  return node;
}

inline ExprRef cast(DType dtype, const ExprRef& value) {
  auto node = std::make_shared<ExprNode>();
  node->kind = ExprNode::Kind::kCast;
  node->dtype = dtype;
  node->operands = {value};
  return node;
}

inline ExprRef call(Function function, std::vector<ExprRef> operands, DType dtype = DType::kF32) {
  return make_call(function, std::move(operands), dtype);
}
inline ExprRef operator*(const ExprRef& a, const ExprRef& b) { return call(Function::kMul, {a, b}, a->dtype); }
inline ExprRef operator+(const ExprRef& a, const ExprRef& b) { return call(Function::kAdd, {a, b}, a->dtype); }
inline ExprRef number(double value, DType dtype = DType::kF32) { return make_number(value, dtype); }

/// Adds to a program step by step. Extents and shapes are texts over dims.
class Builder {
 public:
  explicit Builder(std::string name) { program.name = std::move(name); }

  Builder& dims(const std::vector<std::string>& names) {
    for (const std::string& name : names) program.dims.push_back({name, true, {}});
    return *this;
  }
  Builder& index(const std::string& name, const std::string& extent) {
    Index result;
    result.name = name;
    result.extent = *IntExpr::parse(extent);
    program.indices.push_back(result);
    return *this;
  }
  Builder& tensor(const std::string& name, DType dtype, const std::vector<std::string>& shape, TensorRole role = TensorRole::kIn) {
    Tensor result;
    result.name = name;
    result.dtype = dtype;
    result.role = role;
    for (const std::string& extent : shape) result.shape.push_back(*IntExpr::parse(extent));
    result.strides = row_major_strides(result.shape);
    program.tensors.push_back(result);
    return *this;
  }
  Builder& strides(const std::vector<std::string>& strides) {
    program.tensors.back().strides.clear();
    for (const std::string& stride : strides) program.tensors.back().strides.push_back(*IntExpr::parse(stride));
    return *this;
  }
  Builder& scalar(const std::string& name, ExprRef value = nullptr) {
    program.scalars.push_back({name, std::move(value), DType::kF32});
    return *this;
  }
  Builder& statement(const std::string& target, const std::vector<std::string>& indices, ExprRef value, bool is_tensor) {
    return statement_at(target, at(indices), indices, std::move(value), is_tensor);
  }
  Builder& statement_at(const std::string& target, std::vector<ExprRef> subscripts, const std::vector<std::string>& indices, ExprRef value,
                        bool is_tensor) {
    Statement result;
    result.target = target;
    result.is_tensor = is_tensor;
    result.subscripts = std::move(subscripts);
    result.indices = indices;
    result.value = std::move(value);
    result.where = {"test.op.toml", static_cast<int>(program.statements.size()) + 1, 1};
    program.statements.push_back(result);
    return *this;
  }

  Program program;
};

/// out[m,n] = relu(sum[k](A[m,k] * B[n,k]) + bias[n]): the example of the README.
inline Program matmul_bias_relu(DType dtype = DType::kF16) {
  Builder builder("matmul_bias_relu");
  builder.dims({"M", "N", "K"}).index("m", "M").index("n", "N").index("k", "K");
  builder.tensor("A", dtype, {"M", "K"})
      .tensor("B", dtype, {"N", "K"})
      .tensor("bias", dtype, {"N"})
      .tensor("out", dtype, {"M", "N"}, TensorRole::kOut);
  builder.statement(
      "acc", {"m", "n"},
      reduce(ReduceOp::kSum, {"k"}, read("A", std::vector<std::string>{"m", "k"}) * read("B", std::vector<std::string>{"n", "k"}), 1),
      false);
  builder.statement("out", {"m", "n"},
                    call(Function::kRelu, {read("acc", std::vector<std::string>{"m", "n"}) + read("bias", std::vector<std::string>{"n"})}),
                    true);
  return builder.program;
}

/// out = t of `length` statements of which each reads the one before twice, under names of indices that alternate: 2^length parts when it
/// is written out. `finish` makes the output's value from the last one's.
inline Program doubling_rows(int length, const std::function<ExprRef(const ExprRef&)>& finish) {
  Builder builder("doubling");
  builder.dims({"M", "N"}).index("m", "M").index("n", "N").index("i", "M").index("j", "N");
  builder.tensor("x", DType::kF32, {"M", "N"}).tensor("out", DType::kF32, {"M", "N"}, TensorRole::kOut);
  std::string before = "x";
  for (int number = 0; number < length; ++number) {
    const std::vector<std::string> indices = number % 2 == 0 ? std::vector<std::string>{"m", "n"} : std::vector<std::string>{"i", "j"};
    const std::string target = "t" + std::to_string(number);
    builder.statement(target, indices,
                      read(before, indices) * make_number(0.5, DType::kF32) + call(Function::kSin, {read(before, indices)}), false);
    before = target;
  }
  const std::vector<std::string> indices = {"m", "n"};
  builder.statement("out", indices, finish(read(before, indices)), true);
  return builder.program;
}

}  // namespace kw::generator::testing
