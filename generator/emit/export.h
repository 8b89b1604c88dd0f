// Export: tuned kernels -> a folder that builds alone with nvcc. Pure: returns file texts; the command line writes them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/base/arch.h"
#include "generator/base/launch_plan.h"
#include "generator/spec/program.h"

namespace kw::generator {

/// One kernel of the export and what is known of it.
struct ExportKernel {
  std::string variant_id;
  std::string source;  ///< the recorded text: exactly what was verified and timed
  LaunchPlan plan;
  Arch arch = Arch::kSm80;
  Problem problem;  ///< the shape it was tuned for
  std::string device_model, toolchain, flags;
  double median_us = 0;  ///< 0: predicted, not measured
  bool is_predicted = false;
  std::string record_id;
};

struct ExportRequest {
  const Program* program = nullptr;
  std::string op_name;                ///< a C identifier
  std::vector<ExportKernel> kernels;  ///< tuned shapes, in order of preference
  ExportKernel fallback;              ///< legal for every shape the spec allows (gemm_simt)
  std::string command_line;
};

/// File name -> text: <op>.cu, <op>.h, CMakeLists.txt, test_<op>.cu, README.md. Errors: no legal fallback, a name that is no identifier.
Result<std::map<std::string, std::string>> export_files(const ExportRequest& request);

}  // namespace kw::generator
