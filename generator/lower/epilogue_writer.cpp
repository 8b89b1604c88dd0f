// Writes the epilogue hook of the gemm templates: loads of what the outputs need, one loop over the lanes of a vector, stores.
// Everything is read before anything is stored, so an output may be an updated input. See lower.h and templates/parts/epilogue.cuh.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "generator/lower/epilogue_args.h"
#include "generator/lower/lower.h"
#include "generator/lower/value_lowering.h"
#include "generator/lower/value_table.h"

namespace kw::generator {
namespace {

using Kind = ExprNode::Kind;

constexpr int kAdditive = 5, kUnary = 7;
/// A hook of more text than this comes from an expression nobody wrote by hand.
constexpr std::size_t kMaxTextBytes = 200'000;

/// x ^ 2 is x * x.
ExprRef with_squares(const ExprRef& expr) {
  return rewrite(expr, [](const ExprRef& node) -> ExprRef {
    const bool is_square = node->kind == Kind::kCall && node->function == Function::kPow && node->operands[1]->kind == Kind::kNumber &&
                           node->operands[1]->number == 2;
    return is_square ? make_call(Function::kMul, {node->operands[0], node->operands[0]}, node->dtype) : nullptr;
  });
}

/// Names that a local of the hook must not hide: its parameters and the functions it calls.
std::set<std::string> function_names() {
  std::set<std::string> names = {"args",
                                 "b",
                                 "m",
                                 "n",
                                 "acc",
                                 "count",
                                 "i",
                                 "load_vector",
                                 "store_vector",
                                 "to_accumulator",
                                 "from_accumulator",
                                 "exp",
                                 "log",
                                 "sqrt",
                                 "rsqrt",
                                 "tanh",
                                 "erf",
                                 "sin",
                                 "cos",
                                 "floor",
                                 "pow",
                                 "expf",
                                 "logf",
                                 "sqrtf",
                                 "rsqrtf",
                                 "tanhf",
                                 "erff",
                                 "sinf",
                                 "cosf",
                                 "powf",
                                 "fabs",
                                 "fabsf",
                                 "floorf"};
  for (const std::string& helper : SupportFunctions::names()) names.insert(helper);
  return names;
}

class EpilogueWriter {
 public:
  EpilogueWriter(const PatternMatch& match, const Program& program)
      : match_(match),
        program_(program),
        operations_(match.accumulate, support_),
        reads_(collect_reads(match, program)),
        values_(program, reads_) {
    for (const PatternMatch::Output& output : match.outputs) written_.insert(output.tensor);
  }

  Result<LoweredEpilogue> write() {
    std::vector<int> positions;
    for (const PatternMatch::Output& output : match_.outputs) {
      positions.push_back(values_.intern(output.value));
      values_.add_use(positions.back());
    }
    std::string assignments, declarations, stores;
    for (std::size_t i = 0; i < match_.outputs.size(); ++i) {
      const PatternMatch::Output& output = match_.outputs[i];
      KW_TRY(LoweredValue value, lower(positions[i]));
      KW_TRY(value, stored_value(value, output.dtype));
      const std::string array = locals_.unique(output.tensor + "_values");
      declarations += fmt::format("  {} {}[kVec];\n", value.type, array);
      assignments += fmt::format("    {}[i] = {};\n", array, value.text);
      stores += store_text(output, array);
      if (assignments.size() + loop_.size() + before_.size() > kMaxTextBytes) {
        return fail(
            Stage::kEmit, Code::kNotSupported,
            fmt::format("{}: the epilogue of {} is too large ({} bytes of text at most)", program_.name, output.tensor, kMaxTextBytes));
      }
    }
    LoweredEpilogue result;
    result.hooks["epilogue_args"] = arguments_.struct_body();
    result.hooks["epilogue_store"] = "{\n" + before_ + declarations + loop_text(loop_ + assignments) + stores + "}";
    result.support = support_.text();
    result.fields = arguments_.fields();
    return result;
  }

 private:
  std::string loop_text(const std::string& body) const {
    std::string head = "#pragma unroll\n  for (int i = 0; i < kVec; ++i) {\n";
    if (!is_lane_guarded_) return head + body + "  }\n";
    return head + "    if (i >= count) {\n      break;\n    }\n" + body + "  }\n";
  }

  /// The value in the type that the output's store rounds from: integers saturate, as the reference does.
  Result<LoweredValue> stored_value(const LoweredValue& value, DType dtype) {
    if (dtype == DType::kI8 || dtype == DType::kI32 || dtype == DType::kBool) return operations_.cast(dtype, value);
    if (is_float(dtype) && value.type != "float" && value.type != "double") return converted(value, operations_.real_type());
    return value;
  }

  std::string index_term(const std::string& index, const IntExpr& stride, const std::string& field) {
    if (stride == IntExpr(0)) return "";
    if (stride == IntExpr(1)) return " + " + index;
    return fmt::format(" + {} * {}", index, arguments_.number(field, stride));
  }

  /// " + 8", " - 8", " + args.x_offset" or nothing.
  std::string constant_term(const std::string& tensor, const IntExpr& offset) {
    if (offset == IntExpr(0)) return "";
    const bool is_negative = offset.is_constant() && offset.constant() < 0;
    return (is_negative ? " - " : " + ") + arguments_.number(tensor + "_offset", is_negative ? normalise(IntExpr(0) - offset) : offset);
  }

  /// " + b * args.x_stride_b + ...", over the pattern's indices in a fixed order; also the constant part.
  std::string offset_text(const std::string& tensor, const std::map<std::string, IntExpr>& strides, const IntExpr& offset) {
    std::string text;
    for (const char* index : {"b", "m", "n"}) {
      const auto stride = strides.find(index);
      if (stride != strides.end()) text += index_term(index, stride->second, fmt::format("{}_stride_{}", tensor, index));
    }
    return text + constant_term(tensor, offset);
  }

  std::string stride_text(const std::string& tensor, const IntExpr& stride) { return arguments_.number(tensor + "_stride_n", stride); }

  std::string store_text(const PatternMatch::Output& output, const std::string& array) {
    const Tensor* tensor = program_.find_tensor(output.tensor);
    const auto stride = output.strides.find("n");
    const IntExpr stride_n = stride == output.strides.end() ? IntExpr(0) : stride->second;
    const std::string pointer = arguments_.pointer(*tensor, true);
    const std::string offset = offset_text(output.tensor, output.strides, output.offset);
    return fmt::format("  store_vector<kVec>({}{}, {}, count, {});\n", pointer, offset, stride_text(output.tensor, stride_n), array);
  }

  static std::map<std::string, IntExpr> affine_strides(const EpilogueRead& read) {
    std::map<std::string, IntExpr> strides;
    for (const auto& [text, term] : read.offset.terms) strides[term.atom->name] = term.coefficient;
    return strides;
  }

  /// Index of one element: "b * args.x_stride_b + (n + i)". Not affine terms come from their own values.
  Result<std::string> element_index(const EpilogueRead& read) {
    std::string text;
    int number = 0;
    for (const auto& [atom_text, term] : read.offset.terms) {
      KW_TRY(const LoweredValue atom, lower(values_.intern(term.atom)));
      const LoweredValue value = converted(atom, "long long");
      const std::string field = term.atom->kind == Kind::kIndex ? fmt::format("{}_stride_{}", read.node->name, term.atom->name)
                                                                : fmt::format("{}_stride{}", read.node->name, number++);
      text += text.empty() ? "" : " + ";
      text += term.coefficient == IntExpr(1)
                  ? at_level(value, kAdditive + 1)
                  : fmt::format("{} * {}", at_level(value, kAdditive + 1), arguments_.number(field, term.coefficient));
    }
    const std::string constant = constant_term(read.node->name, read.offset.constant);
    if (text.empty()) return constant.starts_with(" + ") ? constant.substr(3) : "0" + constant;
    return text + constant;
  }

  Result<LoweredValue> lower_read(int position) {
    // Copies: lowering a subscript adds values to the table, which moves what references would point at.
    const ValueTable::Entry entry = values_.at(position);
    if (entry.node->name == "acc") return LoweredValue{"acc[i]", operations_.type_of(entry.node->dtype)};
    const EpilogueRead read = *values_.read_of(*entry.node);
    const Tensor& tensor = *program_.find_tensor(entry.node->name);
    const std::string type = operations_.type_of(entry.node->dtype);
    const std::string pointer = arguments_.pointer(tensor, written_.count(tensor.name) != 0);
    if (read.can_load_first() && entry.is_per_lane) {
      const std::map<std::string, IntExpr> strides = affine_strides(read);
      const std::string array = locals_.unique(tensor.name + "_values");
      const std::string offset = offset_text(tensor.name, strides, read.offset.constant);
      before_ += fmt::format("  {} {}[kVec] = {{}};\n", type, array);
      before_ +=
          fmt::format("  load_vector<kVec>({}{}, {}, count, {});\n", pointer, offset, stride_text(tensor.name, strides.at("n")), array);
      return LoweredValue{array + "[i]", type};
    }
    KW_TRY(const std::string index, element_index(read));
    const LoweredValue element{fmt::format("to_accumulator<{}>({}[{}])", type, pointer, index), type};
    if (entry.reads_in_place) {
      is_lane_guarded_ = is_lane_guarded_ || entry.is_per_lane;
      return element;
    }
    return named(element, tensor.name + "_value", before_, "  ");
  }

  LoweredValue named(const LoweredValue& value, const std::string& wanted, std::string& statements, const char* indent) {
    const std::string name = locals_.unique(wanted);
    statements += fmt::format("{}const {} {} = {};\n", indent, value.type, name, value.text);
    return {name, value.type};
  }

  /// A value that is the same for every lane, named before the loop.
  LoweredValue hoisted(int position, const LoweredValue& value) {
    const ValueTable::Entry& entry = values_.at(position);
    const bool is_operation = entry.node->kind == Kind::kCall || entry.node->kind == Kind::kCast;
    const auto done = hoisted_.find(position);
    if (done != hoisted_.end()) return done->second;
    if (!is_operation || entry.is_per_lane || entry.is_constant || entry.reads_in_place) return value;
    const LoweredValue result = named(value, entry.name_hint.empty() ? "uniform" : entry.name_hint, before_, "  ");
    hoisted_[position] = result;
    lowered_[position] = result;
    return result;
  }

  Result<LoweredValue> lower_leaf(const ValueTable::Entry& entry) {
    const ExprNode& node = *entry.node;
    const std::string type = operations_.type_of(node.dtype);
    switch (node.kind) {
      case Kind::kNumber: {
        const std::string text = literal(node.number, type);
        return LoweredValue{text, type, text.front() == '-' ? kUnary : 8};
      }
      case Kind::kIndex:
        return node.name == "n" ? LoweredValue{"n + i", "long long", kAdditive} : LoweredValue{node.name, "long long"};
      case Kind::kDim:
        return LoweredValue{arguments_.number("dim_" + node.name, IntExpr::variable(node.name)), "long long"};
      case Kind::kScalar: {
        const Scalar* scalar = program_.find_scalar(node.name);
        const std::string scalar_type = operations_.type_of(scalar->dtype);
        return LoweredValue{arguments_.scalar(*scalar, scalar_type == "bool" ? "int" : scalar_type),
                            scalar_type == "bool" ? "int" : scalar_type};
      }
      default:
        return fail(Stage::kEmit, Code::kInternal, fmt::format("{}: this expression has no place in an epilogue", to_text(entry.node)));
    }
  }

  Result<LoweredValue> lower(int position) {
    const auto done = lowered_.find(position);
    if (done != lowered_.end()) return done->second;
    KW_TRY(LoweredValue value, lower_new(position));
    lowered_[position] = value;
    return value;
  }

  Result<LoweredValue> lower_new(int position) {
    const ValueTable::Entry entry = values_.at(position);
    if (entry.node->kind == Kind::kRead) return lower_read(position);
    if (entry.node->kind != Kind::kCall && entry.node->kind != Kind::kCast) return lower_leaf(entry);
    std::vector<LoweredValue> operands;
    for (const int operand : entry.operands) {
      KW_TRY(LoweredValue value, lower(operand));
      operands.push_back(entry.is_per_lane ? hoisted(operand, value) : std::move(value));
    }
    Result<LoweredValue> value =
        entry.node->kind == Kind::kCast ? operations_.cast(entry.node->dtype, operands[0]) : operations_.call(*entry.node, operands);
    if (!value || entry.reads_in_place || entry.is_constant) return value;
    if (value->text.size() > kMaxTextBytes)
      return fail(Stage::kEmit, Code::kNotSupported, fmt::format("{}: the epilogue is too large", program_.name));
    if (!entry.is_per_lane) return entry.num_uses > 1 || !entry.name_hint.empty() ? hoisted(position, *value) : value;
    if (entry.num_uses > 1) return named(*value, "value", loop_, "    ");
    return value;
  }

  const PatternMatch& match_;
  const Program& program_;
  SupportFunctions support_;
  OperationLowering operations_;
  std::vector<EpilogueRead> reads_;
  ValueTable values_;
  EpilogueArguments arguments_;
  NameTable locals_{function_names()};
  std::set<std::string> written_;
  std::map<int, LoweredValue> lowered_, hoisted_;
  std::string before_, loop_;
  bool is_lane_guarded_ = false;
};

}  // namespace

Result<LoweredEpilogue> lower_epilogue(const PatternMatch& match, const Program& program) {
  PatternMatch prepared = match;
  for (PatternMatch::Output& output : prepared.outputs) output.value = with_squares(output.value);
  return EpilogueWriter(prepared, program).write();
}

}  // namespace kw::generator
