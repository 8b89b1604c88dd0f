// See value_writer.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/lower/value_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "generator/lower/lower.h"
#include "generator/plan/expr_tools.h"
#include "generator/spec/walk.h"

namespace kw::generator {
namespace {

using Kind = ExprNode::Kind;

constexpr int kAdditive = 5, kUnary = 7;

/// Deeper brackets are for nobody to read, and LibFormat takes a second for 20 levels and gives up at 50: such a value gets a name.
constexpr int kMaxNesting = 12;

int nesting_of(const std::string& text) {
  int depth = 0, deepest = 0;
  for (const char c : text) {
    if (c == '(') deepest = std::max(deepest, ++depth);
    if (c == ')') --depth;
  }
  return deepest;
}

/// Names that a local of a hook must not hide: its parameters and the functions it calls.
std::set<std::string> function_names() {
  std::set<std::string> names = {"args",
                                 "b",
                                 "m",
                                 "n",
                                 "acc",
                                 "acc2",
                                 "count",
                                 "i",
                                 "values",
                                 "reads",
                                 "columns",
                                 "results",
                                 "partial",
                                 "other",
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

bool has_small_results(const PatternMatch& match) {
  return std::all_of(match.outputs.begin(), match.outputs.end(),
                     [](const PatternMatch::Output& output) { return is_float(output.dtype) && size_bytes(output.dtype) <= 2; });
}

}  // namespace

ExprRef with_squares(const ExprRef& expr) {
  return rewrite(expr, [](const ExprRef& node) -> ExprRef {
    const bool is_square = node->kind == Kind::kCall && node->function == Function::kPow && node->operands[1]->kind == Kind::kNumber &&
                           node->operands[1]->number == 2;
    return is_square ? make_call(Function::kMul, {node->operands[0], node->operands[0]}, node->dtype) : nullptr;
  });
}

ValueWriter::ValueWriter(const PatternMatch& match, const Program& program)
    : match_(match),
      program_(program),
      operations_(match.accumulate, has_small_results(match), support_),
      reads_(collect_reads(match, program)),
      values_(program, reads_),
      locals_(function_names()) {
  for (const PatternMatch::Output& output : match.outputs) written_.insert(output.tensor);
}

void ValueWriter::begin_body() {
  lowered_.clear();
  hoisted_.clear();
  before_.clear();
  loop_.clear();
  locals_ = NameTable(function_names());
  is_lane_guarded_ = false;
}

ValueWriter::Body ValueWriter::new_body() {
  return {.lowered = {}, .hoisted = {}, .before = "", .loop = "", .locals = NameTable(function_names())};
}

void ValueWriter::swap_body(Body& other) {
  std::swap(lowered_, other.lowered);
  std::swap(hoisted_, other.hoisted);
  std::swap(before_, other.before);
  std::swap(loop_, other.loop);
  std::swap(locals_, other.locals);
}

Result<LoweredValue> ValueWriter::output_value(const std::string& output, DType dtype, int position) {
  KW_TRY(const LoweredValue value, lower(position));
  if (loop_.size() + before_.size() + value.text.size() > kMaxTextBytes)
    return fail(Stage::kEmit, Code::kNotSupported,
                fmt::format("{}: the epilogue of {} is too large ({} bytes of text at most)", program_.name, output, kMaxTextBytes));
  if (dtype == DType::kI8 || dtype == DType::kI32 || dtype == DType::kBool) return operations_.cast(dtype, value);
  if (is_float(dtype) && value.type != "float" && value.type != "double") return converted(value, operations_.real_type());
  return value;
}

std::string ValueWriter::constant_term(const std::string& tensor, const IntExpr& offset) {
  if (offset == IntExpr(0)) return "";
  const bool is_negative = offset.is_constant() && offset.constant() < 0;
  return (is_negative ? " - " : " + ") + arguments_.number(tensor + "_offset", is_negative ? normalise(IntExpr(0) - offset) : offset);
}

/// " + b * args.x_stride_b + ...", b, m and n first, then what is not linear by its own value.
Result<std::string> ValueWriter::offset_terms(const std::string& tensor, const LinearForm& offset, bool with_n) {
  std::string text;
  for (const char* index : {"b", "m", "n"}) {
    const IntExpr stride = offset.coefficient_of(index);
    if (stride == IntExpr(0) || (std::string(index) == "n" && !with_n)) continue;
    text += stride == IntExpr(1) ? fmt::format(" + {}", index)
                                 : fmt::format(" + {} * {}", index, arguments_.number(fmt::format("{}_stride_{}", tensor, index), stride));
  }
  int number = 0;
  for (const auto& [atom_text, term] : offset.terms) {
    if (term.atom->kind == Kind::kIndex) continue;
    KW_TRY(const LoweredValue atom, lower(values_.intern(term.atom)));
    const std::string value = at_level(converted(atom, "long long"), kAdditive + 1);
    const std::string field = fmt::format("{}_stride{}", tensor, number++);
    text += term.coefficient == IntExpr(1) ? " + " + value : fmt::format(" + {} * {}", value, arguments_.number(field, term.coefficient));
  }
  return text;
}

std::string ValueWriter::first_element(const Tensor& tensor) {
  const std::string pointer = arguments_.pointer(tensor, written_.count(tensor.name) != 0);
  return tensor.list_dim.empty() ? pointer : pointer + "[m]";  // the matcher has made sure of the position
}

Result<VectorAccess> ValueWriter::vector_access(const Tensor& tensor, const LinearForm& offset) {
  VectorAccess access;
  const std::string pointer = first_element(tensor);
  KW_TRY(const std::string terms, offset_terms(tensor.name, offset, /*with_n=*/true));
  const std::string constant = constant_term(tensor.name, offset.constant);
  access.address = pointer + terms + constant;
  access.stride = arguments_.number(tensor.name + "_stride_n", offset.coefficient_of("n"));
  // Terms of 0 or 1: remainders of negative strides are negative in C++, and would cancel others.
  const auto add_misalignment = [&](const IntExpr& bytes) {
    const IntExpr rest = IntExpr::make(IntExpr::Op::kMod, {bytes, IntExpr(16)});
    access.misalignment = access.misalignment + IntExpr::make(IntExpr::Op::kNe, {rest, IntExpr(0)});
  };
  add_misalignment(IntExpr::variable(tensor.name + ".align"));
  add_misalignment(offset.constant * size_bytes(tensor.dtype));
  std::string steps;
  int number = 0;
  for (const auto& [atom_text, term] : offset.terms) {
    const bool is_index = term.atom->kind == Kind::kIndex;
    const std::string field =
        is_index ? fmt::format("{}_stride_{}", tensor.name, term.atom->name) : fmt::format("{}_stride{}", tensor.name, number++);
    if (is_index && term.atom->name == "n") continue;
    steps += (steps.empty() ? "" : " | ") + arguments_.number(field, term.coefficient);
    add_misalignment(term.coefficient * size_bytes(tensor.dtype));
  }
  access.aligned = fmt::format("is_aligned_for<kVec>({}{}, {})", pointer, constant, steps.empty() ? "0" : steps);
  return access;
}

/// Index of one element: "b * args.x_stride_b + (n + i)". What is not linear comes from its own value.
Result<std::string> ValueWriter::element_index(const EpilogueRead& read) {
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

/// " + in_axis(label, args.logits_extent1)" for every subscript that is data: part of the address, so that it is asked where, and only
/// where, the element is read.
Result<std::string> ValueWriter::axis_checks(const ExprNode& read, const Tensor& tensor, bool is_vector) {
  std::string text;
  const std::vector<IntExpr> shape = subscripted_shape(tensor);
  for (std::size_t axis = 0; axis < read.operands.size(); ++axis) {
    const ExprRef& operand = read.operands[axis];
    if (!any_node(operand, [](const ExprRef& node) { return node->kind == Kind::kRead; })) continue;
    std::vector<std::string> subscripts;
    if (is_vector && depends_on(operand, {"n"})) {
      // Outside of the loop over lanes: "n + label", and so many steps of n further.
      const std::string name = fmt::format("{}_subscript{}", tensor.name, axis);
      const LinearForm form = linear_form(operand);
      KW_TRY(const std::string terms, offset_terms(name, form, /*with_n=*/true));
      const std::string first = terms.substr(std::string_view(" + ").size()) + constant_term(name, form.constant);
      const std::string step = arguments_.number(name + "_step", form.coefficient_of("n"));
      subscripts = {first, fmt::format("{} + {}", first, step == "1" ? "count - 1" : "(count - 1) * " + step)};
    } else {
      KW_TRY(const LoweredValue subscript, lower(values_.intern(operand)));
      subscripts = {converted(subscript, "long long").text};
    }
    for (const std::string& subscript : subscripts) {
      text += fmt::format(" + {}({}, {})", support_.use("in_axis", "long long"), subscript,
                          arguments_.number(fmt::format("{}_extent{}", tensor.name, axis), shape[axis]));
    }
  }
  return text;
}

Result<LoweredValue> ValueWriter::lower_read(int position) {
  // Copies: lowering a subscript adds values to the table, which moves what references would point at.
  const ValueTable::Entry entry = values_.at(position);
  const EpilogueRead* const known = values_.read_of(*entry.node);
  if (known == nullptr) return outside_value(*entry.node);
  const EpilogueRead read = *known;
  const Tensor& tensor = *program_.find_tensor(entry.node->name);
  const std::string type = operations_.type_of(entry.node->dtype);
  if (!entry.reads_in_place && entry.is_per_lane && read.is_vector()) return vector_read(position, tensor, read, type);
  const std::string pointer = first_element(tensor);
  KW_TRY(std::string index, element_index(read));
  KW_TRY(const std::string checks, axis_checks(*entry.node, tensor, /*is_vector=*/false));
  index += checks;
  const LoweredValue element{fmt::format("to_accumulator<{}>({}[{}])", type, pointer, index), type};
  if (!entry.reads_in_place) return shared_read(position, tensor, read, element);
  is_lane_guarded_ = is_lane_guarded_ || entry.is_per_lane;
  return element;
}

LoweredValue ValueWriter::named(const LoweredValue& value, const std::string& wanted, std::string& statements, const char* indent) {
  const std::string name = locals_.unique(wanted);
  statements += fmt::format("{}const {} {} = {};\n", indent, value.type, name, value.text);
  return {name, value.type};
}

/// A value that is the same for every lane, named before the loop.
LoweredValue ValueWriter::hoisted(int position, const LoweredValue& value) {
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

Result<LoweredValue> ValueWriter::lower_leaf(const ValueTable::Entry& entry) {
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
      return fail(Stage::kEmit, Code::kInternal, fmt::format("{}: this expression has no place in a kernel", to_text(entry.node)));
  }
}

Result<LoweredValue> ValueWriter::lower(int position) {
  const auto done = lowered_.find(position);
  if (done != lowered_.end()) return done->second;
  KW_TRY(LoweredValue value, lower_new(position));
  lowered_[position] = value;
  return value;
}

Result<LoweredValue> ValueWriter::lower_new(int position) {
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
  const bool is_deep = nesting_of(value->text) > kMaxNesting;
  if (!entry.is_per_lane) return entry.num_uses > 1 || is_deep || !entry.name_hint.empty() ? hoisted(position, *value) : value;
  if (entry.num_uses > 1 || is_deep) return named(*value, "value", loop_, "    ");
  return value;
}

}  // namespace kw::generator
