// A hand-made op and three hand-written kernels for the tests of export: a matmul with scalar, bias and relu, strides of A open.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "generator/emit/export.h"

namespace kw::generator {

struct Sample {
  std::unique_ptr<Program> program;
  ExportRequest request;
};

/// Element type f32 or f16 for all tensors. The tuned kernels: one with scratch and zeroed workspace in two launches, one in one launch.
Sample make_sample(DType dtype = DType::kF32);

/// A folder of its own below the build folder, emptied, holding the export.
std::string write_export(const ExportRequest& request, const std::string& name);

struct CommandResult {
  int exit_status = 0;
  std::string output;
};
CommandResult run_command(const std::string& command);

/// Path of nvcc, or "" when there is none or the toolkit is to be taken as absent (KERNELWRIGHT_HIDE_TOOLKIT=1).
std::string find_nvcc();
/// Compiles <op>.cu and test_<op>.cu of an export with every warning an error.
CommandResult compile_with_nvcc(const std::string& nvcc, const std::string& folder, const std::string& op, Arch arch = Arch::kSm80,
                                const std::string& flags = "");

}  // namespace kw::generator
