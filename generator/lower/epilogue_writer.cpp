// Writes the epilogue hook of the gemm templates: loads of what the outputs need, one loop over the lanes of a vector, stores.
// Everything is read before anything is stored, so an output may be an updated input. See lower.h and templates/parts/epilogue.cuh.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

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

/// Which hooks are written: epilogue_store, from sums to stored outputs, or the steps of the first output
/// (templates/parts/epilogue_values.cuh).
enum class Purpose { kStore, kValues };

/// Names that a local of the hook must not hide: its parameters and the functions it calls.
std::set<std::string> function_names() {
  std::set<std::string> names = {"args",
                                 "b",
                                 "m",
                                 "n",
                                 "acc",
                                 "count",
                                 "i",
                                 "values",
                                 "reads",
                                 "load_vector",
                                 "store_vector",
                                 "load_elements",
                                 "store_elements",
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
  EpilogueWriter(const PatternMatch& match, const Program& program, Purpose purpose)
      : match_(match),
        program_(program),
        purpose_(purpose),
        operations_(match.accumulate, support_),
        reads_(collect_reads(match, program)),
        values_(program, reads_) {
    for (const PatternMatch::Output& output : match.outputs) written_.insert(output.tensor);
  }

  Result<LoweredEpilogue> write() {
    LoweredEpilogue result;
    KW_TRY(result.hooks, purpose_ == Purpose::kStore ? store_hooks() : values_hooks());
    result.hooks["epilogue_args"] = arguments_.struct_body();
    result.support = support_.text();
    result.fields = arguments_.fields();
    return result;
  }

 private:
  /// The places of the outputs' values, all uses counted.
  std::vector<int> intern_outputs() {
    std::vector<int> positions;
    for (const PatternMatch::Output& output : match_.outputs) {
      positions.push_back(values_.intern(output.value));
      values_.add_use(positions.back());
    }
    return positions;
  }

  /// The value that is stored to an output.
  Result<LoweredValue> output_value(const PatternMatch::Output& output, int position) {
    KW_TRY(const LoweredValue value, lower(position));
    if (loop_.size() + before_.size() + read_text_.size() + value.text.size() > kMaxTextBytes) {
      return fail(
          Stage::kEmit, Code::kNotSupported,
          fmt::format("{}: the epilogue of {} is too large ({} bytes of text at most)", program_.name, output.tensor, kMaxTextBytes));
    }
    return stored_value(value, output.dtype);
  }

  Result<std::map<std::string, std::string>> store_hooks() {
    const std::vector<int> positions = intern_outputs();
    std::string assignments, declarations, stores;
    for (std::size_t i = 0; i < match_.outputs.size(); ++i) {
      const PatternMatch::Output& output = match_.outputs[i];
      KW_TRY(const LoweredValue value, output_value(output, positions[i]));
      const std::string array = locals_.unique(output.tensor + "_values");
      declarations += fmt::format("  {} {}[kVec];\n", value.type, array);
      assignments += fmt::format("    {}[i] = {};\n", array, value.text);
      stores += store_text(output, array);
    }
    return std::map<std::string, std::string>{
        {"epilogue_store", "{\n" + before_ + declarations + loop_text(loop_ + assignments) + stores + "}"}};
  }

  /// Other outputs than the first are lowered for their arguments alone: every kernel of the op takes the same ones.
  Result<std::map<std::string, std::string>> values_hooks() {
    const std::vector<int> positions = intern_outputs();
    std::map<std::string, std::string> hooks;
    for (std::size_t i = 0; i < match_.outputs.size(); ++i) {
      const PatternMatch::Output& output = match_.outputs[i];
      KW_TRY(const LoweredValue value, output_value(output, positions[i]));
      const std::string store = store_text(output, "values");
      if (i > 0) continue;
      const std::string assignment = fmt::format("    values[i] = from_accumulator<Element>({});\n", value.text);
      hooks["epilogue_values"] = "{\n" + before_ + loop_text(loop_ + assignment) + "}";
      hooks["epilogue_reads"] = "{\n" + member_text_ + "}";
      hooks["epilogue_read"] = "{\n" + read_text_ + "}";
      hooks["epilogue_store_values"] = "{\n" + store + "}";
      hooks["epilogue_is_aligned"] = fmt::format("{{\n  return {};\n}}", fmt::join(aligned_, " && "));
    }
    return hooks;
  }

  std::string loop_text(const std::string& body) const {
    const std::string head =
        fmt::format("#pragma unroll\n  for (int i = 0; i < {}; ++i) {{\n", purpose_ == Purpose::kValues ? "2" : "kVec");
    if (!is_lane_guarded_) return head + body + "  }\n";
    const char* const guard = purpose_ == Purpose::kValues ? "!kIsWhole && i >= count" : "i >= count";
    return head + fmt::format("    if ({}) {{\n      break;\n    }}\n", guard) + body + "  }\n";
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
    note_alignment(pointer, output.tensor, output.strides, output.offset);
    return fmt::format("  {}({}{}, {}, count, {});\n",
                       purpose_ == Purpose::kValues ? "store_elements<kVec, kIsWhole>" : "store_vector<kVec>", pointer, offset,
                       stride_text(output.tensor, stride_n), array);
  }

  /// Accesses of whole vectors start at the pointer's offset plus multiples of the strides along b and m.
  void note_alignment(const std::string& pointer, const std::string& tensor, const std::map<std::string, IntExpr>& strides,
                      const IntExpr& offset) {
    std::string steps;
    for (const char* index : {"b", "m"}) {
      const auto stride = strides.find(index);
      if (stride == strides.end() || stride->second == IntExpr(0)) continue;
      steps += (steps.empty() ? "" : " | ") + arguments_.number(fmt::format("{}_stride_{}", tensor, index), stride->second);
    }
    aligned_.push_back(fmt::format("is_aligned_for<kVec>({}{}, {})", pointer, constant_term(tensor, offset), steps.empty() ? "0" : steps));
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
      const std::string offset = offset_text(tensor.name, strides, read.offset.constant);
      const std::string stride = stride_text(tensor.name, strides.at("n"));
      if (purpose_ == Purpose::kValues) {
        note_alignment(pointer, tensor.name, strides, read.offset.constant);
        const std::string member = members_.unique(tensor.name);
        member_text_ += fmt::format("  ElementWords<{}, 2> {};\n", element_type_name(tensor.dtype), member);
        read_text_ += fmt::format("  load_elements<2, kIsWhole>({}{}, {}, count, reads.{});\n", pointer, offset, stride, member);
        return LoweredValue{fmt::format("to_accumulator<{}>(reads.{}.elements[i])", type, member), type};
      }
      const std::string array = locals_.unique(tensor.name + "_values");
      before_ += fmt::format("  {} {}[kVec] = {{}};\n", type, array);
      before_ += fmt::format("  load_vector<kVec>({}{}, {}, count, {});\n", pointer, offset, stride, array);
      return LoweredValue{array + "[i]", type};
    }
    KW_TRY(const std::string index, element_index(read));
    const LoweredValue element{fmt::format("to_accumulator<{}>({}[{}])", type, pointer, index), type};
    if (purpose_ == Purpose::kValues && !entry.reads_in_place && read.is_affine()) {
      const std::string member = members_.unique(tensor.name);
      member_text_ += fmt::format("  {} {};\n", type, member);
      read_text_ += fmt::format("  reads.{} = {};\n", member, element.text);
      return LoweredValue{"reads." + member, type};
    }
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
  const Purpose purpose_;
  SupportFunctions support_;
  OperationLowering operations_;
  std::vector<EpilogueRead> reads_;
  ValueTable values_;
  EpilogueArguments arguments_;
  NameTable locals_{function_names()};
  std::set<std::string> written_;
  std::map<int, LoweredValue> lowered_, hoisted_;
  std::string before_, loop_;
  NameTable members_{{}};  ///< of struct EpilogueReads
  std::string member_text_, read_text_;
  std::vector<std::string> aligned_;  ///< conditions of whole accesses
  bool is_lane_guarded_ = false;
};

}  // namespace

Result<LoweredEpilogue> lower_epilogue(const PatternMatch& match, const Program& program) {
  PatternMatch prepared = match;
  for (PatternMatch::Output& output : prepared.outputs) output.value = with_squares(output.value);
  KW_TRY(LoweredEpilogue result, EpilogueWriter(prepared, program, Purpose::kStore).write());
  KW_TRY(LoweredEpilogue values, EpilogueWriter(prepared, program, Purpose::kValues).write());
  KW_CHECK(values.hooks["epilogue_args"] == result.hooks["epilogue_args"] && values.support == result.support,
           "both forms of an epilogue take the same arguments");
  result.hooks.merge(values.hooks);
  return result;
}

}  // namespace kw::generator
