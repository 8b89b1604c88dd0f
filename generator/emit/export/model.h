// Export: what the texts of an export are made of, checked and put in order once: distinct kernels, tuned shapes, arguments.
// In: ExportRequest. Out: ExportModel, read by the *_text.cpp files. The model points into the request, which must outlive it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "generator/emit/export.h"

namespace kw::generator {

/// A distinct (source, plan, arch) of the export; `scope` is the namespace that its source gets.
struct UniqueKernel {
  std::string scope;  ///< "k0"
  const ExportKernel* kernel = nullptr;
  std::vector<const ExportKernel*> tuned_for;  ///< every request entry that is this kernel
};

struct ExportModel {
  const ExportRequest* request = nullptr;
  const Program* program = nullptr;
  std::string op;                     ///< "matmul_bias_relu"
  std::string type_prefix;            ///< "MatmulBiasRelu"
  std::vector<std::string> dims;      ///< in spec order
  std::vector<std::string> strides;   ///< stride arguments of the launcher: "A.stride0" and named ones, in tensor order
  const LaunchPlan* plan = nullptr;   ///< the fallback's: tensors and scalars are the same in all
  std::vector<UniqueKernel> kernels;  ///< the last one is the fallback
  std::vector<Arch> arches;           ///< ascending, distinct
  bool has_workspace = false;
  bool has_zeroed_workspace = false;
};

/// Errors: see export_files().
Result<ExportModel> build_export_model(const ExportRequest& request);

/// "measured 12.34 us on NVIDIA H200" or "predicted, not measured".
std::string timing_text(const ExportKernel& kernel);
/// nvcc options for the architectures, quoted for a shell: "-gencode arch=compute_80,code='[sm_80,compute_80]'".
std::string nvcc_arch_flags(const ExportModel& model);
/// Whether a kernel's text has checks that -D KERNELWRIGHT_CHECKED switches on.
bool has_checks(const ExportModel& model);

// The texts of the folder, one function a file.
std::string header_text(const ExportModel& model);
std::string source_text(const ExportModel& model);
Result<std::string> test_text(const ExportModel& model);
std::string cmake_text(const ExportModel& model);
std::string readme_text(const ExportModel& model);
/// The opening comment of every exported file.
std::string banner_text(const ExportModel& model, std::string_view file, std::string_view what);

}  // namespace kw::generator
