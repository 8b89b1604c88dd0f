// Export: the part of the exported test that runs kernels: shapes, random inputs, buffers, launches, replays.
// SPDX-License-Identifier: Apache-2.0
#include "generator/emit/export/test_text.h"

#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "generator/emit/export/names.h"

namespace kw::generator {
namespace {

/// "fill(r.A_data, Fill{...}, random);" from the spec's data properties.
std::string fill_text(const ExportModel& model, const PlanTensor& tensor) {
  const Tensor* declared = model.program->find_tensor(tensor.name);
  const DataProperties properties = declared == nullptr ? DataProperties{} : declared->properties;
  const bool is_whole = is_integer(tensor.dtype);
  double low = is_whole ? -16 : 0, high = is_whole ? 16 : 0;
  if (tensor.dtype == DType::kBool) low = 0, high = 2;
  if (properties.range_low) low = *properties.range_low;
  if (properties.range_high) high = *properties.range_high;
  std::string highest = double_literal(high);
  if (!limits_of(*model.program, tensor.name).empty()) {
    if (!properties.range_low) low = 0;
    const std::string limit = fmt::format("static_cast<double>(r.{}_limit())", safe_name(tensor.name));
    highest = properties.range_high ? fmt::format("std::min({}, {})", highest, limit) : limit;
  }
  return fmt::format("  fill(r.{}_data, {{{}, {}, {}, {}}}, random);\n", safe_name(tensor.name), double_literal(low), highest,
                     is_whole ? "true" : "false", properties.is_sorted ? "true" : "false");
}

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
                            cpp_factor(tensor.strides[axis + 1]));
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
  std::string text;
  for (const PlanTensor& tensor : model.plan->tensors) {
    const std::string name = safe_name(tensor.name);
    text += fmt::format("  Buffer {0}(static_cast<std::size_t>(r.{0}_elements()) * sizeof({1}));\n", name, storage_type(tensor.dtype));
    if (!tensor.is_list) continue;
    text += fmt::format(
        "  const std::vector<char*> {0}_pointers = r.{0}_table({0}.pointer);\n"
        "  Buffer {0}_table({0}_pointers.size() * sizeof(char*));\n  {0}_table.upload({0}_pointers);\n",
        name);
  }
  text += fmt::format("  {}Arguments arguments;\n", model.type_prefix);
  for (const std::vector<std::string>* names : {&model.dims, &model.strides}) {
    for (const std::string& name : *names) text += fmt::format("  arguments.{0} = r.{0};\n", safe_name(name));
  }
  for (const PlanTensor& tensor : model.plan->tensors) {
    text += fmt::format("  arguments.{0} = static_cast<{1}>({0}{2}.pointer);\n", safe_name(tensor.name), argument_type(tensor),
                        tensor.is_list ? "_table" : "");
  }
  for (const PlanScalar& scalar : model.plan->scalars) text += fmt::format("  arguments.{0} = r.{0};\n", safe_name(scalar.name));
  return text;
}

/// The scratch memory of one launch, inside the loop over the kernels.
std::string workspaces_text(const ExportModel& model) {
  std::string text;
  const auto add = [&](std::string_view name, bool is_zeroed) {
    text += fmt::format("    Buffer {0}({1}_{0}_bytes(arguments));\n", name, model.op);
    if (is_zeroed) text += fmt::format("    CHECK_CUDA(cudaMemset({0}.pointer, 0, {0}.bytes));\n", name);
    text += fmt::format("    arguments.{0} = {0}.pointer;\n    arguments.{0}_bytes = {0}.bytes;\n", name);
  };
  if (model.has_workspace) add("workspace", false);
  if (model.has_zeroed_workspace) add("zeroed_workspace", true);
  return text;
}

constexpr std::string_view kRun = R"kw(
// Tests the kernel that the dispatcher chooses for this shape, then every other one that takes it: a launch, and a replay from a CUDA Graph.
inline bool run(const Case& shape, std::mt19937_64& random) {{
  Reference r;
{dims}  r.set_strides(shape.is_padded ? 3 : 0);
  std::printf("{dims_format}%s\n", {dims_values}, shape.is_padded ? " padded" : "");
  if ({total} > (std::int64_t{{1}} << 28)) {{
    std::printf("  skipped: more elements than this test allocates\n");
    return true;
  }}
{empty}{fill}{set_up}  const auto prepare = [&] {{
{prepare}  }};
  const auto collect = [&] {{
    CHECK_CUDA(cudaDeviceSynchronize());
{collect}    return {guards};
  }};
  cudaStream_t stream = nullptr;
  CHECK_CUDA(cudaStreamCreate(&stream));
  bool are_all_right = true;
  const char* const chosen = {op}_kernel_name(arguments);
  for (int kernel = -1; kernel < {op}_num_kernels; ++kernel) {{
    arguments.kernel = kernel;
    const char* const name = {op}_kernel_name(arguments);
    if (kernel >= 0 && (std::strcmp(name, "none") == 0 || std::strcmp(name, chosen) == 0)) continue;
{workspaces}    prepare();
    {type}Status status = {op}_launch(arguments, stream);
    Comparison comparison;
    bool is_right = false, is_same = false;
    if (status == {type}Status::kOk) {{
      is_right = collect();
{checks}    }}
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
{compare}      CHECK_CUDA(cudaGraphExecDestroy(executable));
      CHECK_CUDA(cudaGraphDestroy(graph));
    }}
    std::printf("  %s%s: ", name, kernel < 0 ? " (chosen)" : "");
    if (status != {type}Status::kOk) {{
      std::printf("FAIL: %s\n", {op}_status_text(status));
    }} else if (!is_right) {{
      std::printf("FAIL: wrong value, or a store past an output's end\n");
    }} else if (!is_same) {{
      std::printf("FAIL: a replay from a CUDA Graph gave other bits\n");
    }} else {{
      std::printf("PASS, %lld elements, largest error %.3f of its bound\n", static_cast<long long>(comparison.count), comparison.worst_ratio);
    }}
    are_all_right = are_all_right && status == {type}Status::kOk && is_right && is_same;
  }}
  CHECK_CUDA(cudaStreamDestroy(stream));
  return are_all_right;
}}
)kw";

std::string run_text(const ExportModel& model) {
  std::string dims, dims_format, dims_values, total, empty, fill, prepare, collect, guards, checks, compare;
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
    if (tensor.role != TensorRole::kOut && !limits_of(*model.program, tensor.name).empty()) {
      empty += fmt::format(
          "  if (r.{0}_limit() < 1 && r.{0}_elements() > 0) {{\n    std::printf(\"  skipped: no element of {0} would be inside an empty "
          "axis\\n\");\n"
          "    return true;\n  }}\n",
          name);
    }
    if (tensor.role != TensorRole::kOut) {
      fill += fmt::format("  r.{0}_data.resize(static_cast<std::size_t>(r.{0}_elements()));\n", name) + fill_text(model, tensor);
      prepare += fmt::format("    {0}.upload(r.{0}_data);\n", name);
    }
    if (tensor.role != TensorRole::kIn) {
      fill += fmt::format("  r.{0}_out.resize(static_cast<std::size_t>(r.{0}_elements()));\n", name);
      if (tensor.role == TensorRole::kOut) prepare += fmt::format("    CHECK_CUDA(cudaMemset({0}.pointer, 0xff, {0}.bytes));\n", name);
      collect += fmt::format("    {0}.download(r.{0}_out);\n", name);
      compare += fmt::format("      is_same = is_same && is_bit_equal(first.{0}_out, r.{0}_out);\n", name);
    }
    guards += fmt::format("{}{}.has_whole_guard()", guards.empty() ? "" : " && ", name);
  }
  for (std::size_t i = 0; i < model.program->statements.size(); ++i) {
    if (model.program->statements[i].is_tensor) checks += fmt::format("      is_right = is_right && r.check_{}(comparison, random);\n", i);
  }
  return fmt::format(fmt::runtime(kRun), fmt::arg("dims", dims), fmt::arg("dims_format", dims_format), fmt::arg("dims_values", dims_values),
                     fmt::arg("total", total), fmt::arg("empty", empty), fmt::arg("fill", fill), fmt::arg("set_up", set_up_text(model)),
                     fmt::arg("op", model.op), fmt::arg("workspaces", workspaces_text(model)), fmt::arg("prepare", prepare),
                     fmt::arg("collect", collect), fmt::arg("guards", guards), fmt::arg("type", model.type_prefix),
                     fmt::arg("checks", checks), fmt::arg("compare", compare));
}

}  // namespace

std::string test_set_strides_text(const ExportModel& model) {
  return fmt::format("  void set_strides([[maybe_unused]] std::int64_t padding) {{\n{}  }}\n", strides_text(model));
}

std::string test_run_text(const ExportModel& model) { return cases_text(model) + run_text(model); }

}  // namespace kw::generator
