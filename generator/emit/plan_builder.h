// From a template's launch description to a launch plan over the op's own variables.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "generator/base/arch.h"
#include "generator/base/config.h"
#include "generator/base/launch_plan.h"
#include "generator/emit/template_values.h"
#include "generator/lower/lower.h"
#include "generator/spec/program.h"

namespace kw::generator {

/// Dims, tensors and scalars of the op: the part of a plan that does not depend on a template.
LaunchPlan skeleton_plan(const Program& program);

struct PlanRequest {
  const LaunchPlan* skeleton = nullptr;
  const TemplateInfo* info = nullptr;
  const PatternMatch* match = nullptr;
  const TemplateValues* values = nullptr;
  const std::vector<PlanField>* epilogue_fields = nullptr;
  const Config* config = nullptr;
  Arch arch = Arch::kSm80;
  std::string kernel_name;
};

/// Errors (kEmit): a launch expression names an unknown variable, a parameter that nothing fills, a config that breaks a rule.
Result<LaunchPlan> build_plan(const PlanRequest& request);

}  // namespace kw::generator
