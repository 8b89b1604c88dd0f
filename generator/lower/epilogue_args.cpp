// See epilogue_args.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/lower/epilogue_args.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "generator/lower/lower.h"

namespace kw::generator {

namespace {

bool is_polynomial(const IntExpr& expr) {
  using Op = IntExpr::Op;
  const Op op = expr.op();
  const bool is_one = op == Op::kConst || op == Op::kVar || op == Op::kNeg || op == Op::kAdd || op == Op::kSub || op == Op::kMul;
  return is_one && std::all_of(expr.operands().begin(), expr.operands().end(), is_polynomial);
}

}  // namespace

void EpilogueArguments::know(const std::string& dim, const std::string& member) {
  known_dim_ = dim;
  known_member_ = member;
}

std::string EpilogueArguments::known(const IntExpr& value, const std::string& field) const {
  std::set<std::string> variables;
  value.collect_variables(variables);
  if (known_dim_.empty() || variables != std::set<std::string>{known_dim_} || !is_polynomial(value)) return field;
  std::string text = value.substitute({{known_dim_, IntExpr::variable(known_member_)}}).to_cpp();
  for (std::size_t at = 0; (at = text.find(known_member_, at)) != std::string::npos; at += known_member_.size() + 8)
    text.insert(at, "Config::");
  return fmt::format("known<{}>({})", text, field);
}

std::string EpilogueArguments::add(const std::string& key, PlanField field, const std::string& declaration_type) {
  const auto found = by_key_.find(key);
  if (found != by_key_.end()) return "args." + found->second;
  field.name = names_.unique(field.name);
  by_key_[key] = field.name;
  types_.push_back(declaration_type);
  fields_.push_back(std::move(field));
  return "args." + fields_.back().name;
}

std::string EpilogueArguments::pointer(const Tensor& tensor, bool is_written) {
  PlanField field;
  field.kind = PlanField::Kind::kTensor;
  field.name = tensor.name;
  field.source = tensor.name;
  return add("tensor " + tensor.name, std::move(field),
             fmt::format("{}{}*{}", is_written ? "" : "const ", element_type_name(tensor.dtype), tensor.list_dim.empty() ? "" : " const*"));
}

std::string EpilogueArguments::number(const std::string& wanted, const IntExpr& value) {
  if (value.is_constant()) return literal(static_cast<double>(value.constant()), "long long");
  PlanField field;
  field.kind = PlanField::Kind::kInt64;
  field.name = wanted;
  field.value = value;
  return known(value, add("number " + wanted + " = " + value.to_text(), std::move(field), "long long"));
}

std::string EpilogueArguments::scalar(const Scalar& scalar, const std::string& type) {
  PlanField field;
  field.kind = PlanField::Kind::kScalar;
  field.name = scalar.name;
  field.source = scalar.name;
  field.scalar_dtype = type == "double" ? DType::kF64 : type == "int" ? DType::kI32 : type == "long long" ? DType::kI64 : DType::kF32;
  return add("scalar " + scalar.name, std::move(field), type);
}

std::string EpilogueArguments::struct_body() const {
  std::string text = "{\n";
  for (std::size_t i = 0; i < fields_.size(); ++i) text += fmt::format("  {} {};\n", types_[i], fields_[i].name);
  return text + "}";
}

}  // namespace kw::generator
