// Export: <op>.h, the plain C++ launcher's declaration with its limits.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "generator/emit/export/model.h"
#include "generator/emit/export/names.h"

namespace kw::generator {
namespace {

std::string shape_comment(const PlanTensor& tensor) {
  std::vector<std::string> shape, strides;
  for (const IntExpr& extent : tensor.shape) shape.push_back(extent.to_text());
  for (const IntExpr& stride : tensor.strides) strides.push_back(stride.to_text());
  if (tensor.is_list)
    return fmt::format("device memory: {} pointers to tensors of at most [{}] {}", shape.front(),
                       fmt::join(shape.begin() + 1, shape.end(), ", "), to_text(tensor.dtype));
  return fmt::format("[{}] {}, strides ({}), {} B aligned", fmt::join(shape, ", "), to_text(tensor.dtype), fmt::join(strides, ", "),
                     tensor.align_bytes);
}

std::string arguments_text(const ExportModel& model) {
  std::string text = fmt::format("/// What one launch works on. Strides are in elements.\nstruct {}Arguments {{\n", model.type_prefix);
  for (const std::string& dim : model.dims) text += fmt::format("  std::int64_t {} = 0;\n", safe_name(dim));
  for (const std::string& stride : model.strides) text += fmt::format("  std::int64_t {} = 0;\n", safe_name(stride));
  for (const PlanTensor& tensor : model.plan->tensors) {
    text += fmt::format("  {} {} = nullptr;  ///< {}\n", argument_type(tensor), safe_name(tensor.name), shape_comment(tensor));
  }
  for (const PlanScalar& scalar : model.plan->scalars) {
    text += fmt::format("  {} {} = 0;\n", scalar_type(scalar.dtype), safe_name(scalar.name));
  }
  if (model.has_workspace) {
    text += "  void* workspace = nullptr;  ///< device memory, 256 B aligned; any contents\n  std::size_t workspace_bytes = 0;\n";
  }
  if (model.has_zeroed_workspace) {
    text +=
        "  /// Device memory, 256 B aligned; all zero before its first use. A launch leaves it zero, so it serves launches of any shape, "
        "one\n"
        "  /// after the other; two launches that may run at the same time need two of them.\n"
        "  void* zeroed_workspace = nullptr;\n  std::size_t zeroed_workspace_bytes = 0;\n";
  }
  text += "  int kernel = -1;  ///< -1: chosen by shape; 0 .. num_kernels - 1: that one, for comparisons\n";
  return text + "};\n";
}

constexpr std::string_view kStatus = R"(enum class {0}Status : int {{
  kOk = 0,
  kNullPointer = 1,          ///< a tensor with elements, or a workspace that is needed, is null
  kNegativeExtent = 2,       ///< a dim or a stride is negative
  kTooLarge = 3,             ///< a tensor spans more than 2^60 elements
  kMisaligned = 4,           ///< a pointer is less aligned than the op's spec promises
  kWorkspaceTooSmall = 5,
  kUnsupportedDevice = 6,    ///< the current device cannot run any of the kernels
  kUnsupportedShape = 7,     ///< no kernel, or not the one asked for, takes this shape
  kCudaError = 8,            ///< the CUDA run-time refused; cudaGetLastError() tells why
}};
)";

std::string device_text(const ExportModel& model) { return std::string(to_text(model.arches.front())); }

}  // namespace

std::string header_text(const ExportModel& model) {
  const std::string& op = model.op;
  const std::string& type = model.type_prefix;
  std::string text = banner_text(model, op + ".h", "launcher");
  text +=
      "#pragma once\n\n#include <cstddef>\n#include <cstdint>\n\ntypedef struct CUstream_st* cudaStream_t;  // as in the CUDA run-time\n\n";
  text += fmt::format(fmt::runtime(kStatus), type) + "\n";
  text += fmt::format("/// Kernels of this file; the last one takes every shape.\nconstexpr int {}_num_kernels = {};\n\n", op,
                      model.kernels.size());
  text += arguments_text(model) + "\n";
  text += fmt::format("/// \"a pointer is null\", for messages.\nconst char* {}_status_text({}Status status);\n\n", op, type);
  if (model.has_workspace) {
    text += fmt::format(
        "/// Bytes of workspace that launch() needs for these dims, strides and pointers, on the current device; 0: none.\n"
        "std::size_t {}_workspace_bytes(const {}Arguments& arguments);\n\n",
        op, type);
  }
  if (model.has_zeroed_workspace) {
    text += fmt::format(
        "/// The same for the workspace that must be zero.\nstd::size_t {}_zeroed_workspace_bytes(const {}Arguments& arguments);\n\n", op,
        type);
  }
  text += fmt::format(
      "/// Name of the kernel that launch() takes, or \"none\".\nconst char* {}_kernel_name(const {}Arguments& arguments);\n\n", op, type);
  text += fmt::format(
      "/// Computes the op on `stream` of the current device: the kernel tuned for exactly this shape, else the one tuned nearest to it "
      "that is\n"
      "/// legal here, else a kernel that takes every shape. Extents of 0 are legal; an empty output is left alone.\n"
      "/// Limits, all checked: dims and strides not negative; pointers aligned as stated above; a device of {} or later.\n"
      "/// Not checked: that memory is there, and that outputs overlap neither inputs nor each other.\n"
      "/// Allocates nothing and waits for nothing, so it may be captured into a CUDA Graph. Thread-safe.\n"
      "{}Status {}_launch(const {}Arguments& arguments, cudaStream_t stream);\n",
      device_text(model), type, op, type);
  return text;
}

}  // namespace kw::generator
