// Export: test_<op>.cu, which compares the exported kernels with the op's formula in double, made from the program's expressions.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "generator/emit/export/expression_text.h"
#include "generator/emit/export/model.h"
#include "generator/emit/export/names.h"
#include "generator/emit/export/texts.h"

namespace kw::generator {
namespace {

double max_finite(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 65504.0;
    case DType::kBF16:
      return 0x1.fep127;
    case DType::kE4M3:
      return 448.0;
    case DType::kE5M2:
      return 57344.0;
    case DType::kF32:
    case DType::kTF32:
      return 0x1.fffffep127;
    default:
      return 0x1.fffffffffffffp1023;
  }
}

/// Lowest and highest value of an integer type, as doubles.
std::array<double, 2> integer_range(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return {-128, 127};
    case DType::kI32:
      return {-2147483648.0, 2147483647.0};
    default:
      return {-0x1p63, 0x1.fffffffffffffp62};
  }
}

std::string includes_text(const ExportModel& model) {
  std::set<std::string> headers = {"cuda_runtime.h"};
  for (const PlanTensor& tensor : model.plan->tensors) {
    if (tensor.dtype == DType::kF16) headers.insert("cuda_fp16.h");
    if (tensor.dtype == DType::kBF16) headers.insert("cuda_bf16.h");
    if (tensor.dtype == DType::kE4M3 || tensor.dtype == DType::kE5M2) headers.insert("cuda_fp8.h");
  }
  std::string text = fmt::format("#include \"{}.h\"\n\n", model.op);
  for (const char* header :
       {"algorithm", "cmath", "cstdint", "cstdio", "cstdlib", "cstring", "initializer_list", "limits", "random", "vector"}) {
    text += fmt::format("#include <{}>\n", header);
  }
  text += "\n";
  for (const std::string& header : headers) text += fmt::format("#include <{}>\n", header);
  return text;
}

/// encode() and decode() for the element types of the op.
std::string conversions_text(const ExportModel& model) {
  std::set<std::string> types;
  for (const PlanTensor& tensor : model.plan->tensors) types.insert(storage_type(tensor.dtype));
  std::string text;
  for (const std::string& type : types) {
    std::string from = fmt::format("static_cast<{}>(x)", type), to = "static_cast<double>(x)";
    if (type == "__half") from = "__double2half(x)", to = "static_cast<double>(__half2float(x))";
    if (type == "__nv_bfloat16") from = "__double2bfloat16(x)", to = "static_cast<double>(__bfloat162float(x))";
    if (type.rfind("__nv_fp8", 0) == 0) to = "static_cast<double>(static_cast<float>(x))";
    text += fmt::format("inline double decode({0} x) {{ return {1}; }}\ninline void encode(double x, {0}& out) {{ out = {2}; }}\n", type,
                        to, from);
  }
  return text;
}

std::string offset_text(const PlanTensor& tensor, const std::vector<std::string>& subscripts) {
  std::string text;
  for (std::size_t axis = 0; axis < subscripts.size(); ++axis) {
    text += fmt::format("{}{} * {}", axis == 0 ? "" : " + ", subscripts[axis], cpp_text(tensor.strides[axis]));
  }
  return fmt::format("static_cast<std::size_t>({})", text.empty() ? "0" : text);
}

std::string elements_text(const PlanTensor& tensor) {
  std::vector<std::string> shape, strides;
  for (const IntExpr& extent : tensor.shape) shape.push_back(cpp_text(extent));
  for (const IntExpr& stride : tensor.strides) strides.push_back(cpp_text(stride));
  return fmt::format("span({{{}}}, {{{}}})", fmt::join(shape, ", "), fmt::join(strides, ", "));
}

std::string statement_function(const Program& program, std::size_t position) {
  const Statement& statement = program.statements[position];
  std::size_t part = 0;
  for (std::size_t i = 0; i < position; ++i) part += program.statements[i].target == statement.target ? 1 : 0;
  return fmt::format("{}_value{}", safe_name(statement.target), part == 0 ? "" : fmt::format("_{}", part));
}

std::string index_parameters(const Statement& statement) {
  std::vector<std::string> parameters;
  for (const std::string& index : statement.indices) parameters.push_back("[[maybe_unused]] std::int64_t " + safe_name(index));
  return fmt::format("{}", fmt::join(parameters, ", "));
}

/// One statement of the formula as a member function of its free indices.
Result<std::string> statement_text(const Program& program, std::size_t position) {
  const Statement& statement = program.statements[position];
  KW_TRY(std::string value, expression_text_as(program, statement.value, ValueKind::kReal));
  const Tensor* tensor = program.find_tensor(statement.target);
  if (statement.is_tensor && tensor != nullptr && is_integer(tensor->dtype) && tensor->dtype != DType::kBool) {
    const auto [low, high] = integer_range(tensor->dtype);
    value = fmt::format("to_integer({}, {}, {})", value, double_literal(low), double_literal(high));
  }
  return fmt::format("  Real {}({}) const {{ return {}; }}\n", statement_function(program, position), index_parameters(statement), value);
}

constexpr std::string_view kCheckBody = R"(  bool {name}(Comparison& comparison, std::mt19937_64& random) const {{
    for (std::int64_t position : positions({count}, random)) {{
{indices}      const double out = decode({target}_out[{offset}]);
      const Real expected = {function}({arguments});
      if (!comparison.check(out, expected, {roundoff}, {subnormal}, {max_finite})) {{
        std::printf("  {target} at position %lld: %.9g, expected %.9g within %.3g\n", static_cast<long long>(position), out, expected.value,
                    expected.bound + {roundoff} * std::fabs(expected.value) + {subnormal});
        return false;
      }}
    }}
    return true;
  }}
)";

/// Compares what a kernel wrote with one statement of an output.
Result<std::string> check_text(const ExportModel& model, std::size_t position) {
  const Program& program = *model.program;
  const Statement& statement = program.statements[position];
  std::vector<std::string> subscripts, extents, arguments;
  for (const ExprRef& subscript : statement.subscripts) {
    KW_TRY(const std::string text, expression_text_as(program, subscript, ValueKind::kInt));
    subscripts.push_back(text);
  }
  std::string indices = "      [[maybe_unused]] std::int64_t rest = position;\n";
  for (std::size_t i = statement.indices.size(); i-- > 0;) {
    const Index* index = program.find_index(statement.indices[i]);
    if (index == nullptr) return fail(Stage::kEmit, Code::kInternal, "export: index " + statement.indices[i] + " has no extent");
    const std::string extent = cpp_text(index->extent), name = safe_name(statement.indices[i]);
    extents.push_back(extent);
    indices += fmt::format("      const std::int64_t {0} = rest % ({1});\n      rest /= ({1});\n", name, extent);
  }
  for (const std::string& index : statement.indices) arguments.push_back(safe_name(index));
  const PlanTensor* tensor = nullptr;
  for (const PlanTensor& entry : model.plan->tensors) tensor = entry.name == statement.target ? &entry : tensor;
  if (tensor == nullptr) return fail(Stage::kEmit, Code::kInternal, "export: output " + statement.target + " is not in the launch plan");
  return fmt::format(fmt::runtime(kCheckBody), fmt::arg("name", fmt::format("check_{}", position)),
                     fmt::arg("count", extents.empty() ? std::string("1") : fmt::format("{}", fmt::join(extents, " * "))),
                     fmt::arg("indices", indices), fmt::arg("target", safe_name(statement.target)),
                     fmt::arg("offset", offset_text(*tensor, subscripts)), fmt::arg("function", statement_function(program, position)),
                     fmt::arg("arguments", fmt::format("{}", fmt::join(arguments, ", "))),
                     fmt::arg("roundoff", double_literal(unit_roundoff(tensor->dtype))),
                     fmt::arg("subnormal", double_literal(smallest_subnormal(tensor->dtype))),
                     fmt::arg("max_finite", double_literal(max_finite(tensor->dtype))));
}

/// struct Reference: dims, strides, data, and the formula over them.
Result<std::string> reference_text(const ExportModel& model) {
  const Program& program = *model.program;
  std::string text = "// The op's formula, element by element, in double.\nstruct Reference {\n";
  for (const std::vector<std::string>* names : {&model.dims, &model.strides}) {
    for (const std::string& name : *names) text += fmt::format("  std::int64_t {} = 0;\n", safe_name(name));
  }
  for (const PlanScalar& scalar : model.plan->scalars)
    text += fmt::format("  {} {} = 0;\n", scalar_type(scalar.dtype), safe_name(scalar.name));
  for (const PlanTensor& tensor : model.plan->tensors) {
    const std::string name = safe_name(tensor.name), type = storage_type(tensor.dtype);
    if (tensor.role != TensorRole::kOut) text += fmt::format("  std::vector<{}> {}_data;\n", type, name);
    if (tensor.role != TensorRole::kIn) text += fmt::format("  std::vector<{}> {}_out;  // what the kernel wrote\n", type, name);
  }
  text += "\n";
  for (const PlanTensor& tensor : model.plan->tensors) {
    if (tensor.role == TensorRole::kOut) continue;
    std::vector<std::string> parameters, subscripts;
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      subscripts.push_back(fmt::format("i{}", axis));
      parameters.push_back(fmt::format("std::int64_t i{}", axis));
    }
    text += fmt::format("  Real {0}_at({1}) const {{ return as_real(decode({0}_data[{2}])); }}\n", safe_name(tensor.name),
                        fmt::join(parameters, ", "), offset_text(tensor, subscripts));
  }
  for (const Scalar& scalar : program.scalars) {
    if (!scalar.value) continue;
    KW_TRY(const std::string value, expression_text_as(program, scalar.value, ValueKind::kReal));
    text += fmt::format("  Real {}_value() const {{ return {}; }}\n", safe_name(scalar.name), value);
  }
  for (std::size_t i = 0; i < program.statements.size(); ++i) {
    KW_TRY(const std::string statement, statement_text(program, i));
    text += statement;
  }
  text += "\n";
  for (std::size_t i = 0; i < program.statements.size(); ++i) {
    if (!program.statements[i].is_tensor) continue;
    KW_TRY(const std::string check, check_text(model, i));
    text += check;
  }
  return text + "};\n";
}

/// "fill(r.A_data, Fill{...}, random);" from the spec's data properties.
std::string fill_text(const ExportModel& model, const PlanTensor& tensor) {
  const Tensor* declared = model.program->find_tensor(tensor.name);
  const DataProperties properties = declared == nullptr ? DataProperties{} : declared->properties;
  const bool is_whole = is_integer(tensor.dtype);
  double low = is_whole ? -16 : 0, high = is_whole ? 16 : 0;
  if (tensor.dtype == DType::kBool) low = 0, high = 2;
  if (properties.range_low) low = *properties.range_low;
  if (properties.range_high) high = *properties.range_high;
  return fmt::format("  fill(r.{}_data, {{{}, {}, {}, {}}}, random);\n", safe_name(tensor.name), double_literal(low), double_literal(high),
                     is_whole ? "true" : "false", properties.is_sorted ? "true" : "false");
}

constexpr std::string_view kFill = R"(
// Random elements: standard normal when low == high, else uniform in [low, high).
struct Fill {
  double low, high;
  bool is_whole, is_sorted;
};
template <typename T>
inline void fill(std::vector<T>& data, Fill how, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(how.low, how.high > how.low ? how.high : how.low + 1);
  std::vector<double> values(data.size());
  for (double& value : values) {
    value = how.low == how.high ? normal(random) : uniform(random);
    if (how.is_whole) value = std::floor(value);
  }
  if (how.is_sorted) std::sort(values.begin(), values.end());
  for (std::size_t i = 0; i < data.size(); ++i) encode(values[i], data[i]);
}

// Elements from the first to the last one of a tensor, both counted; 0 when it is empty.
inline std::int64_t span(std::initializer_list<std::int64_t> shape, std::initializer_list<std::int64_t> strides) {
  std::int64_t elements = 1;
  const std::int64_t* stride = strides.begin();
  for (const std::int64_t extent : shape) {
    if (extent == 0) return 0;
    elements += (extent - 1) * *stride++;
  }
  return elements;
}
)";

/// Strides of the tensors that have them as arguments: row-major, odd shapes with 3 elements of padding.
std::string strides_text(const ExportModel& model) {
  std::string text;
  std::set<std::string> done(model.dims.begin(), model.dims.end());
  for (const PlanTensor& tensor : model.plan->tensors) {
    for (std::size_t axis = tensor.strides.size(); axis-- > 0;) {
      const IntExpr& stride = tensor.strides[axis];
      if (stride.op() != IntExpr::Op::kVar || !done.insert(stride.name()).second) continue;
      std::string value = "1";
      if (axis + 1 < tensor.strides.size()) {
        value = fmt::format("std::max<std::int64_t>({}, 1) * {} + padding", cpp_text(tensor.shape[axis + 1]),
                            cpp_text(tensor.strides[axis + 1]));
      }
      text += fmt::format("    {} = {};\n", safe_name(stride.name()), value);
    }
  }
  return text;
}

/// Tuned shapes, odd shapes, and each dim at 0.
std::string cases_text(const ExportModel& model) {
  static constexpr std::array<std::int64_t, 8> kOdd = {1, 7, 16, 33, 63, 100, 129, 257};
  const std::size_t num_dims = model.dims.size();
  std::set<std::string> seen;
  std::string text;
  const auto add = [&](const std::vector<std::int64_t>& dims, bool is_padded) {
    const std::string line = fmt::format("    {{{{{}}}, {}}},\n", fmt::join(dims, ", "), is_padded ? "true" : "false");
    if (seen.insert(line).second) text += line;
  };
  for (const ExportKernel& kernel : model.request->kernels) {
    std::vector<std::int64_t> dims;
    for (const std::string& dim : model.dims) {
      const auto found = kernel.problem.dims.find(dim);
      dims.push_back(found == kernel.problem.dims.end() ? 1 : found->second);
    }
    add(dims, false);
  }
  for (std::size_t i = 0; i < 12; ++i) {
    std::vector<std::int64_t> dims;
    for (std::size_t d = 0; d < num_dims; ++d) dims.push_back(kOdd[(i * (2 * d + 1) + 3 * d) % kOdd.size()]);
    add(dims, i % 2 == 1);
  }
  for (const std::int64_t even : {64, 128, 256}) add(std::vector<std::int64_t>(num_dims, even), false);
  for (std::size_t d = 0; d < num_dims; ++d) {
    std::vector<std::int64_t> dims(num_dims, 33);
    dims[d] = 0;
    add(dims, false);
  }
  return fmt::format("struct Case {{\n  std::int64_t dims[{}];\n  bool is_padded;\n}};\nconstexpr Case kCases[] = {{\n{}}};\n",
                     std::max<std::size_t>(num_dims, 1), text);
}

/// The part of run() that makes buffers and arguments.
std::string set_up_text(const ExportModel& model) {
  std::string text, bytes;
  for (const PlanTensor& tensor : model.plan->tensors) {
    const std::string name = safe_name(tensor.name);
    text += fmt::format("  Buffer {0}(static_cast<std::size_t>(r.{0}_elements()) * sizeof({1}));\n", name, storage_type(tensor.dtype));
  }
  text += fmt::format("  {}Arguments arguments;\n", model.type_prefix);
  for (const std::vector<std::string>* names : {&model.dims, &model.strides}) {
    for (const std::string& name : *names) text += fmt::format("  arguments.{0} = r.{0};\n", safe_name(name));
  }
  for (const PlanTensor& tensor : model.plan->tensors) {
    text += fmt::format("  arguments.{0} = static_cast<{1}{2}*>({0}.pointer);\n", safe_name(tensor.name),
                        tensor.role == TensorRole::kIn ? "const " : "", header_type(tensor.dtype));
  }
  for (const PlanScalar& scalar : model.plan->scalars) text += fmt::format("  arguments.{0} = r.{0};\n", safe_name(scalar.name));
  const auto workspace = [&](std::string_view name, bool is_zeroed) {
    text += fmt::format("  Buffer {0}({1}_{0}_bytes(arguments));\n", name, model.op);
    if (is_zeroed) text += fmt::format("  CHECK_CUDA(cudaMemset({0}.pointer, 0, {0}.bytes));\n", name);
    text += fmt::format("  arguments.{0} = {0}.pointer;\n  arguments.{0}_bytes = {0}.bytes;\n", name);
  };
  if (model.has_workspace) workspace("workspace", false);
  if (model.has_zeroed_workspace) workspace("zeroed_workspace", true);
  return text;
}

constexpr std::string_view kRun = R"(
inline bool run(const Case& shape, std::mt19937_64& random) {{
  Reference r;
{dims}  r.set_strides(shape.is_padded ? 3 : 0);
  std::printf("{dims_format}%s: ", {dims_values}, shape.is_padded ? " padded" : "");
  if ({total} > (std::int64_t{{1}} << 28)) {{
    std::printf("skipped: more elements than this test allocates\n");
    return true;
  }}
{fill}{set_up}  std::printf("%s: ", {op}_kernel_name(arguments));
  const auto prepare = [&] {{
{prepare}  }};
  const auto collect = [&] {{
    CHECK_CUDA(cudaDeviceSynchronize());
{collect}    return {guards};
  }};
  cudaStream_t stream = nullptr;
  CHECK_CUDA(cudaStreamCreate(&stream));
  prepare();
  {type}Status status = {op}_launch(arguments, stream);
  Comparison comparison;
  bool is_right = false;
  if (status == {type}Status::kOk) {{
    is_right = collect();
{checks}  }}
  // The same from a CUDA Graph.
  bool is_same = false;
  if (is_right) {{
    const Reference first = r;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    status = {op}_launch(arguments, stream);
    CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    CHECK_CUDA(cudaGraphInstantiate(&executable, graph, 0));
    prepare();
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_CUDA(cudaGraphLaunch(executable, stream));
    is_same = collect();
{compare}    CHECK_CUDA(cudaGraphExecDestroy(executable));
    CHECK_CUDA(cudaGraphDestroy(graph));
  }}
  CHECK_CUDA(cudaStreamDestroy(stream));
  if (status != {type}Status::kOk) {{
    std::printf("FAIL: %s\n", {op}_status_text(status));
  }} else if (!is_right) {{
    std::printf("FAIL: wrong value, or a store past an output's end\n");
  }} else if (!is_same) {{
    std::printf("FAIL: a replay from a CUDA Graph gave other bits\n");
  }} else {{
    std::printf("PASS, %lld elements, largest error %.3f of its bound\n", static_cast<long long>(comparison.count), comparison.worst_ratio);
  }}
  return status == {type}Status::kOk && is_right && is_same;
}}
)";

std::string run_text(const ExportModel& model) {
  std::string dims, dims_format, dims_values, total, fill, prepare, collect, guards, checks, compare;
  for (std::size_t i = 0; i < model.dims.size(); ++i) {
    dims += fmt::format("  r.{} = shape.dims[{}];\n", safe_name(model.dims[i]), i);
    dims_format += fmt::format("{}{}=%lld", i == 0 ? "" : " ", model.dims[i]);
    dims_values += fmt::format("{}static_cast<long long>(shape.dims[{}])", i == 0 ? "" : ", ", i);
  }
  if (model.dims.empty()) dims_format = "%s", dims_values = "\"one shape\"";
  for (const PlanScalar& scalar : model.plan->scalars) {
    fill += fmt::format("  r.{} = static_cast<{}>({});\n", safe_name(scalar.name), scalar_type(scalar.dtype),
                        is_float(scalar.dtype) ? "0.75" : "3");
  }
  for (const PlanTensor& tensor : model.plan->tensors) {
    const std::string name = safe_name(tensor.name);
    total += fmt::format("{}r.{}_elements()", total.empty() ? "" : " + ", name);
    if (tensor.role != TensorRole::kOut) {
      fill += fmt::format("  r.{0}_data.resize(static_cast<std::size_t>(r.{0}_elements()));\n", name) + fill_text(model, tensor);
      prepare += fmt::format("    {0}.upload(r.{0}_data);\n", name);
    }
    if (tensor.role != TensorRole::kIn) {
      fill += fmt::format("  r.{0}_out.resize(static_cast<std::size_t>(r.{0}_elements()));\n", name);
      if (tensor.role == TensorRole::kOut) prepare += fmt::format("    CHECK_CUDA(cudaMemset({0}.pointer, 0xff, {0}.bytes));\n", name);
      collect += fmt::format("    {0}.download(r.{0}_out);\n", name);
      compare += fmt::format("    is_same = is_same && is_bit_equal(first.{0}_out, r.{0}_out);\n", name);
    }
    guards += fmt::format("{}{}.has_whole_guard()", guards.empty() ? "" : " && ", name);
  }
  for (std::size_t i = 0; i < model.program->statements.size(); ++i) {
    if (model.program->statements[i].is_tensor) checks += fmt::format("    is_right = is_right && r.check_{}(comparison, random);\n", i);
  }
  return fmt::format(fmt::runtime(kRun), fmt::arg("dims", dims), fmt::arg("dims_format", dims_format), fmt::arg("dims_values", dims_values),
                     fmt::arg("total", total), fmt::arg("fill", fill), fmt::arg("set_up", set_up_text(model)), fmt::arg("op", model.op),
                     fmt::arg("prepare", prepare), fmt::arg("collect", collect), fmt::arg("guards", guards),
                     fmt::arg("type", model.type_prefix), fmt::arg("checks", checks), fmt::arg("compare", compare));
}

constexpr std::string_view kMain = R"(
int main() {{
  using namespace {0}_test;
  int num_devices = 0;
  if (cudaGetDeviceCount(&num_devices) != cudaSuccess || num_devices == 0) {{
    std::printf("FAIL: no CUDA device\n");
    return 1;
  }}
  std::mt19937_64 random(20240601);
  int num_failed = 0, num_passed = 0;
  for (const Case& shape : kCases) ++(run(shape, random) ? num_passed : num_failed);
  std::printf("%s: %d passed, %d failed\n", num_failed == 0 ? "PASS" : "FAIL", num_passed, num_failed);
  return num_failed == 0 ? 0 : 1;
}}
)";

}  // namespace

Result<std::string> test_text(const ExportModel& model) {
  KW_TRY(const std::string reference, reference_text(model));
  std::string_view support = kTestSupport;
  support.remove_prefix(support.find("// ---\n") + 7);
  std::string text = banner_text(model, "test_" + model.op + ".cu", "test against the naive formula");
  text += includes_text(model) + fmt::format("\nnamespace {}_test {{\n\n", model.op);
  const double roundoff = unit_roundoff(model.program->accumulate);
  text += fmt::format("constexpr double kRoundoff = {};\nconstexpr double kProductRoundoff = {};\n\n", double_literal(roundoff),
                      double_literal(model.program->uses_tf32 ? 2 * unit_roundoff(DType::kTF32) : roundoff));
  text += std::string(support) + "\n" + conversions_text(model) + std::string(kFill) + "\n";
  std::string sizes;
  for (const PlanTensor& tensor : model.plan->tensors) {
    sizes += fmt::format("  std::int64_t {}_elements() const {{ return {}; }}\n", safe_name(tensor.name), elements_text(tensor));
  }
  const std::string set_strides =
      fmt::format("  void set_strides([[maybe_unused]] std::int64_t padding) {{\n{}  }}\n", strides_text(model));
  std::string whole = reference;
  whole.insert(whole.rfind("};"), "\n" + set_strides + sizes);
  text += whole + "\n" + cases_text(model) + run_text(model);
  return text + fmt::format("\n}}  // namespace {}_test\n", model.op) + fmt::format(fmt::runtime(kMain), model.op);
}

}  // namespace kw::generator
