// Writes the hooks of the row templates: what a thread's vector of a row needs, one step of every reduction for it, its outputs.
// See lower.h and templates/parts/row.cuh. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "generator/lower/lower.h"
#include "generator/lower/value_writer.h"
#include "generator/plan/row_match.h"

namespace kw::generator {
namespace {

class RowWriter : ValueWriter {
 public:
  RowWriter(const PatternMatch& match, const Program& program) : ValueWriter(match, program) {
    const IntExpr& extent_n = match.extents.at("n");
    if (extent_n.op() == IntExpr::Op::kVar && !match.is_list) arguments_.know(extent_n.name(), "EXTENT_N");
  }

  Result<LoweredEpilogue> write() {
    LoweredEpilogue result;
    int num_phases = 0;
    for (const PatternMatch::Reduction& reduction : match_.reductions) num_phases = std::max(num_phases, reduction.phase + 1);
    std::vector<std::string> identity, accumulate, combine, finish;
    for (int phase = 0; phase < num_phases; ++phase) {
      KW_TRY(std::string text, accumulate_text(phase));
      accumulate.push_back(std::move(text));
      KW_TRY(text, combine_text(phase));
      combine.push_back(std::move(text));
      identity.push_back(identity_text(phase));
      finish.push_back(finish_text(phase));
    }
    KW_TRY(result.hooks["row_store"], store_text());
    KW_TRY(result.hooks["row_store_once"], store_once_text());
    result.hooks["row_accumulate"] = by_phase(accumulate);
    result.hooks["row_combine"] = by_phase(combine);
    result.hooks["row_identity"] = by_phase(identity);
    result.hooks["row_finish"] = by_phase(finish);
    result.hooks["row_reads"] = "{\n" + of_row_.members + "}";
    result.hooks["row_read"] = "{\n" + of_row_.loads + "}";
    result.hooks["row_prefetch"] = "{\n" + prefetches_ + "}";
    result.hooks["row_columns"] = "{\n" + of_columns_.members + "}";
    result.hooks["row_read_columns"] = "{\n" + of_columns_.loads + "}";
    KW_TRY_VOID(write_alignment(result));
    result.misalignment = normalise(misalignment_);
    std::string members;
    for (const PatternMatch::Reduction& reduction : match_.reductions)
      members += fmt::format("  {} {};\n", operations_.type_of(match_.accumulate), reduction.name);
    result.hooks["row_results"] = "{\n" + members + "}";
    result.hooks["row_args"] = arguments_.struct_body();
    result.support = support_.text();
    result.fields = arguments_.fields();
    return result;
  }

 private:
  Status write_alignment(LoweredEpilogue& result) {
    const std::string aligned =
        fmt::format("{{\n  return {};\n}}", aligned_.empty() ? "true" : fmt::format("{}", fmt::join(aligned_, " & ")));
    if (!match_.is_list) {
      result.hooks["row_is_aligned"] = aligned;
      return {};
    }
    result.hooks["row_is_aligned"] = "{\n  return true;\n}";
    result.hooks["list_is_aligned"] = aligned;
    KW_TRY(result.hooks["list_length"], length_text());
    return {};
  }

  Result<std::string> length_text() {
    if (!match_.length) return std::string("{\n  return extent_n;\n}");
    begin_body();
    const int position = values_.intern(match_.length);
    values_.add_use(position);
    KW_TRY(const LoweredValue value, lower(position));
    const std::string length = locals_.unique("length");
    return fmt::format("{{\n{0}{1}  const long long {2} = {3};\n  return {2} < 0 ? 0 : {2} < extent_n ? {2} : extent_n;\n}}", before_,
                       loop_, length, converted(value, "long long").text);
  }

  std::vector<const PatternMatch::Reduction*> of_phase(int phase) const {
    std::vector<const PatternMatch::Reduction*> found;
    for (const PatternMatch::Reduction& reduction : match_.reductions) {
      if (reduction.phase == phase) found.push_back(&reduction);
    }
    return found;
  }

  static std::string by_phase(const std::vector<std::string>& bodies) {
    std::string text = "{\n";
    for (std::size_t phase = 0; phase < bodies.size(); ++phase) {
      const bool is_last = phase + 1 == bodies.size();
      const std::string head = is_last && phase == 0 ? ""
                               : is_last             ? " else {\n"
                                                     : fmt::format("{}if constexpr (kPhase == {}) {{\n", phase == 0 ? "" : " else ", phase);
      text += head + bodies[phase] + (head.empty() ? "" : "}");
    }
    return text + "\n}";
  }

  static std::string loop(const std::string& body) {
    return "#pragma unroll\n  for (int i = 0; i < Config::VEC; ++i) {\n    if (!kIsWhole && i >= count) {\n      break;\n    }\n" + body +
           "  }\n";
  }

  /// Config::REDUCTIONS: the most reductions of one phase.
  int most_reductions() const {
    std::map<int, int> counts;
    int most = 0;
    for (const PatternMatch::Reduction& reduction : match_.reductions) most = std::max(most, ++counts[reduction.phase]);
    return most;
  }

  std::string identity_text(int phase) const {
    std::string text;
    int slot = 0;
    for (const PatternMatch::Reduction* reduction : of_phase(phase)) {
      const double value = reduction->op == ReduceOp::kSum    ? 0
                           : reduction->op == ReduceOp::kProd ? 1
                           : reduction->op == ReduceOp::kMax  ? -HUGE_VAL
                                                              : HUGE_VAL;
      text += fmt::format("  partial[{}] = {};\n", slot++, literal(value, operations_.type_of(match_.accumulate)));
    }
    // Slots of busier phases travel along: they must hold something.
    for (; slot < most_reductions(); ++slot)
      text += fmt::format("  partial[{}] = {};\n", slot, literal(0, operations_.type_of(match_.accumulate)));
    return text;
  }

  Result<std::string> combined(const PatternMatch::Reduction& reduction, const LoweredValue& left, const LoweredValue& right) {
    const Function function = reduction.op == ReduceOp::kSum    ? Function::kAdd
                              : reduction.op == ReduceOp::kProd ? Function::kMul
                              : reduction.op == ReduceOp::kMax  ? Function::kMax
                                                                : Function::kMin;
    const ExprRef node = make_call(function, {make_number(0, match_.accumulate), make_number(0, match_.accumulate)}, match_.accumulate);
    KW_TRY(const LoweredValue value, operations_.call(*node, {left, right}));
    return value.text;
  }

  Result<std::string> accumulate_text(int phase) {
    begin_body();
    std::string assignments;
    std::vector<int> positions;
    for (const PatternMatch::Reduction* reduction : of_phase(phase)) {
      positions.push_back(values_.intern(reduction->operand));
      values_.add_use(positions.back());
    }
    int slot = 0;
    for (const PatternMatch::Reduction* reduction : of_phase(phase)) {
      KW_TRY(LoweredValue value, lower(positions[static_cast<std::size_t>(slot)]));
      value = converted(value, operations_.type_of(match_.accumulate));
      const std::string partial = fmt::format("partial[{}]", slot++);
      KW_TRY(const std::string text, combined(*reduction, {partial, value.type}, value));
      assignments += fmt::format("    {} = {};\n", partial, text);
    }
    return before_ + loop(loop_ + assignments);
  }

  Result<std::string> combine_text(int phase) {
    std::string text;
    int slot = 0;
    const std::string type = operations_.type_of(match_.accumulate);
    for (const PatternMatch::Reduction* reduction : of_phase(phase)) {
      KW_TRY(const std::string value,
             combined(*reduction, {fmt::format("partial[{}]", slot), type}, {fmt::format("other[{}]", slot), type}));
      text += fmt::format("  partial[{}] = {};\n", slot++, value);
    }
    return text;
  }

  std::string finish_text(int phase) const {
    std::string text;
    int slot = 0;
    for (const PatternMatch::Reduction* reduction : of_phase(phase))
      text += fmt::format("  results.{} = partial[{}];\n", reduction->name, slot++);
    return text;
  }

  LinearForm offset_of(const PatternMatch::Output& output) const {
    return offset_in_tensor(*program_.find_tensor(output.tensor), output.subscripts);
  }
  bool runs_along_row(const PatternMatch::Output& output) const { return !(offset_of(output).coefficient_of("n") == IntExpr(0)); }

  std::vector<const PatternMatch::Output*> outputs(bool along_row) const {
    std::vector<const PatternMatch::Output*> found;
    for (const PatternMatch::Output& output : match_.outputs) {
      if (runs_along_row(output) == along_row) found.push_back(&output);
    }
    return found;
  }

  Result<std::string> store_text() {
    begin_body();
    const std::vector<const PatternMatch::Output*> list = outputs(/*along_row=*/true);
    std::vector<int> positions;
    for (const PatternMatch::Output* output : list) {
      positions.push_back(values_.intern(output->value));
      values_.add_use(positions.back());
    }
    std::string assignments, declarations, stores;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const PatternMatch::Output& output = *list[i];
      KW_TRY(const LoweredValue value, output_value(output.tensor, output.dtype, positions[i]));
      const std::string array = locals_.unique(output.tensor + "_values");
      const std::string element = element_type_name(output.dtype);
      declarations += fmt::format("  ElementWords<{}, Config::VEC> {};\n", element, array);
      assignments += fmt::format("    {}.elements[i] = from_accumulator<{}>({});\n", array, element, value.text);
      KW_TRY(const VectorAccess access, vector_access(*program_.find_tensor(output.tensor), offset_of(output)));
      note_alignment(access);
      stores += fmt::format("  store_row_elements<kIsWhole>({}, {}, count, {});\n", access.address, access.stride, array);
    }
    return list.empty() ? std::string("{\n}") : "{\n" + before_ + declarations + loop(loop_ + assignments) + stores + "}";
  }

  /// Outputs that have one element a row.
  Result<std::string> store_once_text() {
    begin_body();
    std::string text;
    const std::vector<const PatternMatch::Output*> list = outputs(/*along_row=*/false);
    std::vector<int> positions;
    for (const PatternMatch::Output* output : list) {
      positions.push_back(values_.intern(output->value));
      values_.add_use(positions.back());
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      const PatternMatch::Output& output = *list[i];
      KW_TRY(const LoweredValue value, output_value(output.tensor, output.dtype, positions[i]));
      KW_TRY(const VectorAccess access, vector_access(*program_.find_tensor(output.tensor), offset_of(output)));
      text += fmt::format("  *({}) = from_accumulator<{}>({});\n", access.address, element_type_name(output.dtype), value.text);
    }
    return "{\n" + before_ + loop_ + text + "}";
  }

  LoweredValue outside_value(const ExprNode& node) override { return {"results." + node.name, operations_.type_of(node.dtype)}; }

  Result<LoweredValue> vector_read(int position, const Tensor& tensor, const EpilogueRead& read, const std::string& type) override {
    auto member = members_by_position_.find(position);
    if (member == members_by_position_.end()) {
      // Its address may need values of its own: they belong to row_read.
      swap_body(read_body_);
      const Result<VectorAccess> lowered = vector_access(tensor, read.offset);
      const Result<std::string> checks = axis_checks(*read.node, tensor, /*is_vector=*/true);
      swap_body(read_body_);
      KW_TRY(VectorAccess access, lowered);
      KW_TRY(const std::string checked, checks);
      access.address += checked;
      of_row_.loads += std::exchange(read_body_.before, "");
      note_alignment(access);
      const bool is_of_row = !is_shared_by_rows(read.node) || !has_only_columns(read.offset);
      if (is_of_row && is_const_row(read.node, program_)) {
        swap_body(prefetch_body_);
        const Result<VectorAccess> again = vector_access(tensor, read.offset);
        swap_body(prefetch_body_);
        KW_TRY(const VectorAccess fetched, again);
        prefetches_ += std::exchange(prefetch_body_.before, "") + fmt::format("  prefetch_to_l2({});\n", fetched.address);
      }
      const std::string structure = is_of_row ? "reads" : "columns";
      Loads& part = is_of_row ? of_row_ : of_columns_;
      const std::string name = members_.unique(tensor.name);
      member = members_by_position_.emplace(position, structure + "." + name).first;
      part.members += fmt::format("  ElementWords<{}, Config::VEC> {};\n", element_type_name(tensor.dtype), name);
      // What every row reads stays in the caches.
      part.loads +=
          fmt::format("  {}({}, {}, count, {});\n", is_of_row ? "load_row_elements<kIsWhole>" : "load_elements<Config::VEC, kIsWhole>",
                      access.address, access.stride, member->second);
    }
    return LoweredValue{fmt::format("to_accumulator<{}>({}.elements[i])", type, member->second), type};
  }

  /// Whether the address needs nothing but n: values that it is made of are written for reads of the row alone.
  static bool has_only_columns(const LinearForm& offset) {
    return std::all_of(offset.terms.begin(), offset.terms.end(), [](const auto& entry) {
      const ExprNode& atom = *entry.second.atom;
      return atom.kind == ExprNode::Kind::kIndex && atom.name == "n";
    });
  }

  LoweredValue shared_read(int, const Tensor& tensor, const EpilogueRead&, const LoweredValue& element) override {
    return named(element, tensor.name + "_value", before_, "  ");
  }

  void note_alignment(const VectorAccess& access) {
    aligned_.push_back(access.aligned);
    misalignment_ = misalignment_ + access.misalignment;
  }

  struct Loads {
    std::string members, loads;
  };
  std::map<int, std::string> members_by_position_;  ///< "reads.x"
  NameTable members_{{}};                           ///< of struct RowReads and RowColumns
  Loads of_row_, of_columns_;
  Body read_body_ = new_body();      ///< of row_read: the values that have a name there
  Body prefetch_body_ = new_body();  ///< the same of row_prefetch
  std::string prefetches_;
  std::vector<std::string> aligned_;  ///< conditions of whole accesses
  IntExpr misalignment_;              ///< 0 where they hold at 16 bytes
};

}  // namespace

Result<LoweredEpilogue> lower_row(const PatternMatch& match, const Program& program) {
  PatternMatch prepared = match;
  for (PatternMatch::Output& output : prepared.outputs) output.value = with_squares(output.value);
  for (PatternMatch::Reduction& reduction : prepared.reductions) reduction.operand = with_squares(reduction.operand);
  return RowWriter(prepared, program).write();
}

}  // namespace kw::generator
