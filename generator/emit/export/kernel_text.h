// Export: C++ of one kernel: its recorded source in a namespace, and what the launch plan says about it as functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "generator/emit/export/model.h"

namespace kw::generator {

/// The recorded source inside `namespace k0 { ... }`. C linkage is taken off: two kernels may share one symbol.
std::string scoped_source_text(const UniqueKernel& unique);
/// k0_accepts(), k0_workspace() and k0_launch(), printed from the launch plan.
std::string kernel_functions_text(const ExportModel& model, const UniqueKernel& unique);

}  // namespace kw::generator
