// Writes the epilogue hooks of the gemm templates: loads of what the outputs need, one loop over the lanes of a vector, stores.
// Everything is read before anything is stored, so an output may be an updated input. See lower.h and templates/parts/epilogue.cuh.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "generator/lower/lower.h"
#include "generator/lower/value_writer.h"

namespace kw::generator {
namespace {

/// Which hooks are written: epilogue_store, from sums to stored outputs, or the steps of the first output
/// (templates/parts/epilogue_values.cuh).
enum class Purpose { kStore, kValues };

class EpilogueWriter : ValueWriter {
 public:
  EpilogueWriter(const PatternMatch& match, const Program& program, Purpose purpose) : ValueWriter(match, program), purpose_(purpose) {}

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

  Result<std::map<std::string, std::string>> store_hooks() {
    const std::vector<int> positions = intern_outputs();
    std::string assignments, declarations, stores;
    for (std::size_t i = 0; i < match_.outputs.size(); ++i) {
      const PatternMatch::Output& output = match_.outputs[i];
      KW_TRY(const LoweredValue value, output_value(output.tensor, output.dtype, positions[i]));
      const std::string array = locals_.unique(output.tensor + "_values");
      declarations += fmt::format("  {} {}[kVec];\n", value.type, array);
      assignments += fmt::format("    {}[i] = {};\n", array, value.text);
      KW_TRY(const std::string store, store_text(output, array));
      stores += store;
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
      KW_TRY(const LoweredValue value, output_value(output.tensor, output.dtype, positions[i]));
      KW_TRY(const std::string store, store_text(output, "values"));
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

  Result<std::string> store_text(const PatternMatch::Output& output, const std::string& array) {
    LinearForm offset;
    offset.constant = output.offset;
    for (const auto& [index, stride] : output.strides) {
      if (!(stride == IntExpr(0))) offset.terms[index] = {make_index(index), stride};
    }
    KW_TRY(const VectorAccess access, vector_access(*program_.find_tensor(output.tensor), offset));
    aligned_.push_back(access.aligned);
    return fmt::format("  {}({}, {}, count, {});\n", purpose_ == Purpose::kValues ? "store_elements<kVec, kIsWhole>" : "store_vector<kVec>",
                       access.address, access.stride, array);
  }

  /// acc' is acc[i].
  LoweredValue outside_value(const ExprNode& node) override {
    return {node.name.substr(0, node.name.size() - 1) + "[i]", operations_.type_of(node.dtype)};
  }

  Result<LoweredValue> vector_read(int, const Tensor& tensor, const EpilogueRead& read, const std::string& type) override {
    KW_TRY(VectorAccess access, vector_access(tensor, read.offset));
    KW_TRY(const std::string checks, axis_checks(*read.node, tensor, /*is_vector=*/true));
    access.address += checks;
    if (purpose_ == Purpose::kValues) {
      aligned_.push_back(access.aligned);
      const std::string member = members_.unique(tensor.name);
      member_text_ += fmt::format("  ElementWords<{}, 2> {};\n", element_type_name(tensor.dtype), member);
      read_text_ += fmt::format("  load_elements<2, kIsWhole>({}, {}, count, reads.{});\n", access.address, access.stride, member);
      return LoweredValue{fmt::format("to_accumulator<{}>(reads.{}.elements[i])", type, member), type};
    }
    const std::string array = locals_.unique(tensor.name + "_values");
    before_ += fmt::format("  {} {}[kVec] = {{}};\n", type, array);
    before_ += fmt::format("  load_vector<kVec>({}, {}, count, {});\n", access.address, access.stride, array);
    return LoweredValue{array + "[i]", type};
  }

  LoweredValue shared_read(int, const Tensor& tensor, const EpilogueRead& read, const LoweredValue& element) override {
    if (purpose_ == Purpose::kStore || !read.is_affine()) return named(element, tensor.name + "_value", before_, "  ");
    const std::string member = members_.unique(tensor.name);
    member_text_ += fmt::format("  {} {};\n", element.type, member);
    read_text_ += fmt::format("  reads.{} = {};\n", member, element.text);
    return LoweredValue{"reads." + member, element.type};
  }

  const Purpose purpose_;
  NameTable members_{{}};  ///< of struct EpilogueReads
  std::string member_text_, read_text_;
  std::vector<std::string> aligned_;  ///< conditions of whole accesses
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
