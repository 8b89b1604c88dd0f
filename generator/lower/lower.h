// Expressions of the op -> CUDA C++ text of a template's hooks, and the kernel parameters that the text needs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/base/launch_plan.h"
#include "generator/plan/fusion_group.h"

namespace kw::generator {

/// Hook texts of an epilogue and the fields of its argument struct, in order.
struct LoweredEpilogue {
  std::map<std::string, std::string> hooks;  ///< "EpilogueArgs" struct members, "epilogue_store" body, ...
  std::string support;                       ///< helper functions the body calls (gelu, NaN-propagating max, ...)
  std::vector<PlanField> fields;             ///< of the parameter `epilogue` or `row`
  IntExpr misalignment;                      ///< of rows: 0 where every tensor begins, and steps from row to row, at multiples of 16 bytes
};

/// The epilogue hook of the gemm templates: see templates/parts/epilogue.cuh for its contract.
Result<LoweredEpilogue> lower_epilogue(const PatternMatch& match, const Program& program);

/// The hooks of the row templates: see templates/parts/row.cuh for their contract.
Result<LoweredEpilogue> lower_row(const PatternMatch& match, const Program& program);

/// Name of the element type in templates/parts/types.cuh: f16 -> "Half", bf16 -> "BFloat16", f32 -> "float", ...
std::string element_type_name(DType dtype);

}  // namespace kw::generator
