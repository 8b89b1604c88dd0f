// Export: <op>.cu: banner, the recorded kernels, their launchers and the dispatcher.
// SPDX-License-Identifier: Apache-2.0
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "generator/emit/export/kernel_text.h"
#include "generator/emit/export/model.h"
#include "generator/emit/export/names.h"
#include "generator/emit/export/texts.h"

namespace kw::generator {
namespace {

/// The part of an embedded text below its own head.
std::string body_of(std::string_view text) {
  constexpr std::string_view kMark = "// ---\n";
  const std::size_t at = text.find(kMark);
  return std::string(at == std::string_view::npos ? text : text.substr(at + kMark.size()));
}

/// struct Variables: everything a launch plan's expressions may name, and the function that fills it.
std::string variables_text(const ExportModel& model) {
  std::string members, fill;
  const auto add = [&](const std::string& name, const std::string& value) {
    members += fmt::format("  std::int64_t {} = 0;\n", name);
    fill += fmt::format("  v.{} = {};\n", name, value);
  };
  std::set<std::string> arguments;
  for (const std::vector<std::string>* names : {&model.dims, &model.strides}) {
    for (const std::string& name : *names) {
      arguments.insert(name);
      add(safe_name(name), "arguments." + safe_name(name));
    }
  }
  std::vector<IntExpr> used;
  std::string strides;
  for (const PlanTensor& tensor : model.plan->tensors) {
    for (std::size_t axis = 0; axis < tensor.strides.size(); ++axis) {
      const std::string name = fmt::format("{}.stride{}", tensor.name, axis);
      if (arguments.count(name) != 0) continue;
      members += fmt::format("  std::int64_t {} = 0;\n", safe_name(name));
      strides += fmt::format("  v.{} = {};\n", safe_name(name), cpp_text(tensor.strides[axis]));
      used.push_back(tensor.strides[axis]);
    }
    add(safe_name(tensor.name + ".align"), fmt::format("alignment_of(arguments.{})", safe_name(tensor.name)));
  }
  return fmt::format(
      "// What the launch plans' expressions are over: dims, strides in elements, alignment of pointers in bytes.\nstruct Variables "
      "{{\n{}}};\n"
      "struct Workspace {{\n  std::int64_t bytes, zeroed_bytes;\n}};\n\n"
      "inline Variables variables_of(const {}Arguments& arguments) {{\n  Variables v;\n{}{}{}  return v;\n}}\n",
      members, model.type_prefix, fill, locals_text(used), strides);
}

/// Everything that makes a call wrong whatever kernel runs. Called after the dims and strides are known not to be negative.
std::string check_text(const ExportModel& model) {
  const std::string status = model.type_prefix + "Status";
  std::string text =
      fmt::format("inline {0} check_arguments(const {1}Arguments& arguments, const Variables& v) {{\n", status, model.type_prefix);
  std::vector<IntExpr> used;
  std::string body;
  for (const std::vector<std::string>* names : {&model.dims, &model.strides}) {
    for (const std::string& name : *names) text += fmt::format("  if (v.{} < 0) return {}::kNegativeExtent;\n", safe_name(name), status);
  }
  for (const PlanTensor& tensor : model.plan->tensors) {
    std::string shape, strides;
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      shape += fmt::format("{}{}", axis == 0 ? "" : ", ", cpp_text(tensor.shape[axis]));
      strides += fmt::format("{}v.{}", axis == 0 ? "" : ", ", safe_name(fmt::format("{}.stride{}", tensor.name, axis)));
      used.push_back(tensor.shape[axis]);
    }
    const std::string name = safe_name(tensor.name);
    body += fmt::format(
        "  if (const double elements = span({{{0}}}, {{{1}}}); elements > 0) {{\n"
        "    if (elements > 1152921504606846976.0) return {2}::kTooLarge;  // 2^60\n"
        "    if (arguments.{3} == nullptr) return {2}::kNullPointer;\n"
        "    if (v.{4} < {5}) return {2}::kMisaligned;\n  }}\n",
        shape, strides, status, name, safe_name(tensor.name + ".align"),
        tensor.is_list ? static_cast<int>(sizeof(void*)) : tensor.align_bytes);
  }
  return text + locals_text(used) + body + fmt::format("  return {}::kOk;\n}}\n", status);
}

std::string tables_text(const ExportModel& model) {
  std::string kernels, shapes;
  std::size_t num_shapes = 0;
  for (std::size_t i = 0; i < model.kernels.size(); ++i) {
    const UniqueKernel& unique = model.kernels[i];
    const std::string arch(to_text(unique.kernel->arch));
    kernels += fmt::format("    {{\"{0}\", {1}, {2}, &{3}_accepts, &{3}_workspace, &{3}_launch}},\n", unique.kernel->variant_id,
                           compute_capability(unique.kernel->arch), arch.back() == 'a' ? "true" : "false", unique.scope);
  }
  for (const ExportKernel& tuned : model.request->kernels) {
    std::size_t position = 0;
    for (std::size_t i = 0; i < model.kernels.size(); ++i) {
      for (const ExportKernel* entry : model.kernels[i].tuned_for) {
        if (entry == &tuned) position = i;
      }
    }
    std::vector<std::string> values;
    for (const std::string& dim : model.dims) {
      const auto found = tuned.problem.dims.find(dim);
      values.push_back(fmt::format("{}", found == tuned.problem.dims.end() ? 0 : found->second));
    }
    shapes += fmt::format("    {{{}, {{{}}}}},\n", position, fmt::join(values, ", "));
    ++num_shapes;
  }
  std::vector<std::string> names;
  for (const std::string& dim : model.dims) names.push_back(safe_name(dim));
  std::string text = fmt::format("// The last one takes every shape.\nconstexpr Kernel kKernels[] = {{\n{}}};\n\n", kernels);
  if (num_shapes == 0) return text;
  return text + fmt::format(
                    "struct TunedShape {{\n  int kernel;\n  std::int64_t dims[{}];  // {}\n}};\nconstexpr TunedShape kTunedShapes[] = "
                    "{{\n{}}};\n\n",
                    std::max<std::size_t>(model.dims.size(), 1), fmt::join(names, ", "), shapes);
}

constexpr std::string_view kKernelStruct = R"(struct Kernel {{
  const char* name;
  int compute_capability;   // the least that runs it
  bool is_arch_specific;    // runs on exactly that one
  bool (*accepts)(const Variables&, const Device&);
  Workspace (*workspace)(const Variables&);
  cudaError_t (*launch)(const Variables&, const {0}Arguments&, cudaStream_t);
  bool runs_on(const Device& device) const {{
    return is_arch_specific ? device.compute_capability == compute_capability : device.compute_capability >= compute_capability;
  }}
}};
)";

std::string select_text(const ExportModel& model) {
  std::string text =
      "// The kernel tuned for this shape (distance 0) or nearest to it, else the one for every shape; null: this device runs none.\n"
      "inline const Kernel* select_kernel(const Variables& v, const Device& device, int wanted) {\n";
  text += fmt::format(
      "  if (wanted >= 0) {{\n    if (wanted >= {0}) return nullptr;\n    const Kernel& kernel = kKernels[wanted];\n"
      "    return kernel.runs_on(device) && kernel.accepts(v, device) ? &kernel : nullptr;\n  }}\n",
      model.kernels.size());
  if (!model.request->kernels.empty()) {
    std::string is_empty, distance;
    for (std::size_t i = 0; i < model.dims.size(); ++i) {
      is_empty += fmt::format("{}v.{} == 0", i == 0 ? "" : " || ", safe_name(model.dims[i]));
      distance += fmt::format("{}octaves(v.{}, shape.dims[{}])", i == 0 ? "" : " + ", safe_name(model.dims[i]), i);
    }
    text += fmt::format(
        "  const Kernel* best = nullptr;\n"
        "  double best_distance = 0;\n"
        "  const bool is_empty = {};\n"
        "  for (const TunedShape& shape : kTunedShapes) {{\n"
        "    const Kernel& kernel = kKernels[shape.kernel];\n"
        "    if (is_empty || !kernel.runs_on(device) || !kernel.accepts(v, device)) continue;\n"
        "    // A kernel of another generation of devices was not timed for this one.\n"
        "    const double generation = kernel.compute_capability / 10 == device.compute_capability / 10 ? 0.0 : 1.0;\n"
        "    const double distance = {} + generation;\n"
        "    if (best == nullptr || distance < best_distance) {{\n"
        "      best = &kernel;\n"
        "      best_distance = distance;\n"
        "    }}\n"
        "  }}\n"
        "  if (best != nullptr) return best;\n",
        is_empty.empty() ? "false" : is_empty, distance.empty() ? "0.0" : distance);
  }
  text += fmt::format(
      "  const Kernel& fallback = kKernels[{}];\n  return fallback.runs_on(device) && fallback.accepts(v, device) ? &fallback : "
      "nullptr;\n}}\n",
      model.kernels.size() - 1);
  return text;
}

std::string status_text_function(const ExportModel& model) {
  constexpr std::string_view kTexts[][2] = {{"kOk", "ok"},
                                            {"kNullPointer", "a tensor with elements or a needed workspace is null"},
                                            {"kNegativeExtent", "a dim or a stride is negative"},
                                            {"kTooLarge", "a tensor spans more than 2^60 elements"},
                                            {"kMisaligned", "a pointer is less aligned than the op's spec promises"},
                                            {"kWorkspaceTooSmall", "the workspace is too small: see workspace_bytes()"},
                                            {"kUnsupportedDevice", "no kernel runs on the current device"},
                                            {"kUnsupportedShape", "no kernel takes this shape"},
                                            {"kCudaError", "the CUDA run-time refused the launch: see cudaGetLastError()"}};
  std::string text = fmt::format("const char* {}_status_text({}Status status) {{\n  switch (status) {{\n", model.op, model.type_prefix);
  for (const auto& [name, sentence] : kTexts)
    text += fmt::format("    case {}Status::{}: return \"{}\";\n", model.type_prefix, name, sentence);
  return text + "  }\n  return \"unknown status\";\n}\n";
}

std::string public_functions_text(const ExportModel& model) {
  const std::string& op = model.op;
  const std::string& type = model.type_prefix;
  const std::string scope = op + "_export";
  std::string text = status_text_function(model);
  if (model.has_workspace || model.has_zeroed_workspace) {
    const auto bytes_function = [&](std::string_view name, std::string_view member) {
      return fmt::format(
          "\nstd::size_t {0}_{1}(const {2}Arguments& arguments) {{\n  using namespace {3};\n  const Variables v = "
          "variables_of(arguments);\n"
          "  Device device;\n  if (current_device(device) != cudaSuccess) return 0;\n"
          "  const Kernel* const kernel = select_kernel(v, device, arguments.kernel);\n"
          "  return kernel == nullptr ? 0 : static_cast<std::size_t>(kernel->workspace(v).{4});\n}}\n",
          op, name, type, scope, member);
    };
    if (model.has_workspace) text += bytes_function("workspace_bytes", "bytes");
    if (model.has_zeroed_workspace) text += bytes_function("zeroed_workspace_bytes", "zeroed_bytes");
  }
  text += fmt::format(
      "\nconst char* {0}_kernel_name(const {1}Arguments& arguments) {{\n  using namespace {2};\n  Device device;\n"
      "  const Kernel* const kernel = current_device(device) == cudaSuccess ? select_kernel(variables_of(arguments), device, "
      "arguments.kernel) : nullptr;\n"
      "  return kernel == nullptr ? \"none\" : kernel->name;\n}}\n",
      op, type, scope);
  text += fmt::format(
      "\n{1}Status {0}_launch(const {1}Arguments& arguments, cudaStream_t stream) {{\n  using namespace {2};\n"
      "  const Variables v = variables_of(arguments);\n"
      "  if (const {1}Status status = check_arguments(arguments, v); status != {1}Status::kOk) return status;\n"
      "  Device device;\n  if (current_device(device) != cudaSuccess) return {1}Status::kCudaError;\n"
      "  const Kernel* const kernel = select_kernel(v, device, arguments.kernel);\n"
      "  if (kernel == nullptr) {{\n"
      "    return kKernels[{3}].runs_on(device) ? {1}Status::kUnsupportedShape : {1}Status::kUnsupportedDevice;\n  }}\n",
      op, type, scope, model.kernels.size() - 1);
  const auto check_workspace = [&](std::string_view name, std::string_view member) {
    return fmt::format(
        "  if (needed.{1} > 0 && arguments.{0} == nullptr) return {2}Status::kNullPointer;\n"
        "  if (static_cast<std::size_t>(needed.{1}) > arguments.{0}_bytes) return {2}Status::kWorkspaceTooSmall;\n"
        "  if (alignment_of(arguments.{0}) < 256) return {2}Status::kMisaligned;\n",
        name, member, type);
  };
  if (model.has_workspace || model.has_zeroed_workspace) text += "  const Workspace needed = kernel->workspace(v);\n";
  if (model.has_workspace) text += check_workspace("workspace", "bytes");
  if (model.has_zeroed_workspace) text += check_workspace("zeroed_workspace", "zeroed_bytes");
  return text +
         fmt::format("  return kernel->launch(v, arguments, stream) == cudaSuccess ? {0}Status::kOk : {0}Status::kCudaError;\n}}\n", type);
}

bool uses_tensor_maps(const ExportModel& model) {
  for (const UniqueKernel& unique : model.kernels) {
    for (const PlanLaunch& launch : unique.kernel->plan.launches) {
      for (const PlanParameter& parameter : launch.parameters) {
        for (const PlanField& field : parameter.fields) {
          if (field.kind == PlanField::Kind::kTensorMap) return true;
        }
      }
    }
  }
  return false;
}

}  // namespace

std::string source_text(const ExportModel& model) {
  std::string text = banner_text(model, model.op + ".cu", "kernels, launchers and dispatcher");
  text += fmt::format(
      "#include \"{}.h\"\n\n{}#include <cmath>\n{}#include <initializer_list>\n#include <tuple>\n#include <type_traits>\n\n#include "
      "<cuda_runtime.h>\n\n",
      model.op, uses_tensor_maps(model) ? "#include <algorithm>\n" : "", has_checks(model) ? "#include <cstdio>\n" : "");
  text += fmt::format("namespace {}_export {{\n\n", model.op);
  std::set<std::string> printed;
  for (const UniqueKernel& unique : model.kernels) {
    if (printed.insert(unique.scope).second) text += scoped_source_text(unique) + "\n";
  }
  text += body_of(kLaunchSupport) + "\n";
  if (uses_tensor_maps(model)) text += body_of(kTensorMapSupport) + "\n";
  text += variables_text(model) + "\n";
  printed.clear();
  for (const UniqueKernel& unique : model.kernels) {
    if (printed.insert(unique.scope).second) text += kernel_functions_text(model, unique) + "\n";
  }
  text += fmt::format(fmt::runtime(kKernelStruct), model.type_prefix) + "\n" + tables_text(model) + select_text(model) + "\n" +
          check_text(model);
  text += fmt::format("\n}}  // namespace {}_export\n\n", model.op);
  return text + public_functions_text(model);
}

}  // namespace kw::generator
