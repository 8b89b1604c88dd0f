// The problem that a caller asks for, from names and numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "generator/base/launch_plan.h"
#include "tuner/runtime/include/kernelwright.h"

namespace kw::tuner {

/// As the caller wrote it. Errors: no name, a name twice, a negative number, an alignment that is no power of two.
Result<Problem> problem_of(std::span<const kw_value> values);

/// Against an op's plan: every dim is there, every name is known (else the nearest is named); free strides that are left out are added.
Status complete_problem(const std::string& op, const LaunchPlan& plan, Problem& problem);

}  // namespace kw::tuner
